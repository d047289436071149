package testkit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// Person is a robot in front of the pages: it keeps cookies, fills in the forms that it is shown and sends what a browser
// would send of them. It follows the pages and knows no path of them.
type Person struct {
	// Link makes a one-time sign-in link, when a page asks for one.
	Link   func(ctx context.Context) (string, error)
	client *http.Client
}

// NewPerson has no cookies yet.
func NewPerson(link func(ctx context.Context) (string, error)) (*Person, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, fmt.Errorf("person: %w", err)
	}
	return &Person{Link: link, client: &http.Client{
		Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// mostPages bounds a conversation with pages that never end.
const mostPages = 10

// Answer opens an authorization address, signs in if it has to, leaves the permissions as they are offered and presses the
// button, allow or deny. It returns where the answer goes, which it does not open: the client listens there.
func (p *Person) Answer(ctx context.Context, address, button string) (*url.URL, error) {
	start, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("person: %w", err)
	}
	at := start
	res, err := p.do(ctx, http.MethodGet, at, nil)
	for range mostPages {
		if err != nil {
			return nil, err
		}
		if next := res.next; next != nil {
			if next.Host != start.Host || next.Scheme != start.Scheme {
				return next, nil
			}
			at = next
			res, err = p.do(ctx, http.MethodGet, at, nil)
			continue
		}
		f := res.form(button)
		if f == nil {
			return nil, fmt.Errorf("person: no form to fill in at %s: %d\n%s", at.Path, res.status, res.body)
		}
		if f.values.Has("link") && f.values.Get("link") == "" {
			link, linkErr := p.Link(ctx)
			if linkErr != nil {
				return nil, linkErr
			}
			f.values.Set("link", link)
		}
		if at, err = at.Parse(f.action); err != nil {
			return nil, fmt.Errorf("person: form: %w", err)
		}
		res, err = p.do(ctx, http.MethodPost, at, f.values)
	}
	return nil, errors.New("person: the pages do not end")
}

// shown is what a request led to: a page, or the next address.
type shown struct {
	status int
	next   *url.URL
	body   string
}

func (p *Person) do(ctx context.Context, method string, at *url.URL, form url.Values) (*shown, error) {
	r, err := http.NewRequestWithContext(ctx, method, at.String(), strings.NewReader(form.Encode()))
	if err != nil {
		return nil, fmt.Errorf("person: %w", err)
	}
	r.Header.Set("Accept", "text/html")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", at.Scheme+"://"+at.Host)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	res, err := p.client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("person: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("person: read %s: %w", at.Path, err)
	}
	s := &shown{status: res.StatusCode, body: string(body)}
	if res.StatusCode/100 == 3 {
		if s.next, err = res.Location(); err != nil {
			return nil, fmt.Errorf("person: %s redirects nowhere: %w", at.Path, err)
		}
	}
	return s, nil
}

// pageForm is a form as a browser would send it.
type pageForm struct {
	action  string
	values  url.Values
	buttons []string // values of named buttons
	ask     bool     // there is a field for a link
}

// form finds the form with the button, pressed, or the one that asks for a link; nil when the page has neither.
func (s *shown) form(button string) *pageForm {
	var asks *pageForm
	for _, f := range forms(s.body) {
		if slices.Contains(f.buttons, button) {
			f.values.Set("answer", button)
			return f
		}
		if f.ask {
			asks = f
		}
	}
	return asks
}

func forms(body string) []*pageForm {
	var all []*pageForm
	var open *pageForm
	z := html.NewTokenizer(strings.NewReader(body))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return all
		case html.EndTagToken:
			if t := z.Token(); t.Data == "form" {
				open = nil
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			attr := map[string]string{}
			for _, a := range t.Attr {
				attr[a.Key] = a.Val
			}
			if t.Data == "form" {
				open = &pageForm{action: attr["action"], values: url.Values{}}
				all = append(all, open)
			} else if open != nil {
				open.control(t.Data, attr)
			}
		}
	}
}

// control takes a field up as HTML says which ones are sent ("constructing the entry list"): not without a name, not
// disabled, not an unchecked box. A button is sent only when it is pressed.
func (f *pageForm) control(element string, attr map[string]string) {
	_, disabled := attr["disabled"]
	_, checked := attr["checked"]
	name, value := attr["name"], attr["value"]
	box := attr["type"] == "checkbox" || attr["type"] == "radio"
	switch {
	case name == "" || disabled:
	case element == "button":
		f.buttons = append(f.buttons, value)
	case element == "input" && (!box || checked):
		f.values.Add(name, value)
		f.ask = f.ask || name == "link"
	}
}

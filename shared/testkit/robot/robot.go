// Package robot is a person at a browser without a screen: it keeps cookies, signs in with a one-time link, and approves or
// denies what an authorization request asks for, through the pages' own forms. Tests and scripts only.
package robot

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
	"time"

	"golang.org/x/net/html"

	"github.com/buzon-mail/buzon/shared/oauth"
)

const (
	maxPage  = 1 << 20 // bytes
	maxSteps = 8       // pages and redirects from a request to its answer
	// maxConnections bounds what Disconnect ends.
	maxConnections = 100
	patience       = 30 * time.Second
)

// Robot is one browser with one person before it.
type Robot struct {
	// Link makes a one-time sign-in link of the person, as buzon user link does. It is asked when a page asks for one.
	Link func(ctx context.Context) (string, error)

	client *http.Client
}

// Answer is what the person says on the consent page. The zero value approves everything that is asked for, in the first
// workspace.
type Answer struct {
	Deny      bool
	ReadOnly  bool     // the person takes out everything that can be taken out
	Without   []string // scopes that the person takes out
	Workspace string   // id; empty: the one that the page proposes, else the first
	All       bool     // and every other workspace too
}

// New makes a browser that has been nowhere.
func New(link func(ctx context.Context) (string, error)) (*Robot, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, fmt.Errorf("robot: %w", err)
	}
	return &Robot{Link: link, client: &http.Client{
		Jar: jar, Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Authorize opens the address of an authorization request, signs in where it has to, answers the consent page, and returns
// the address at the client to which the server sends the browser. That address is not opened: Deliver does.
func (r *Robot) Authorize(ctx context.Context, address string, a Answer) (*url.URL, error) {
	start, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("robot: %w", err)
	}
	p, err := r.send(ctx, http.MethodGet, start, nil)
	for range maxSteps {
		if err != nil {
			return nil, err
		}
		next := p.location
		switch {
		case next != nil && !sameOrigin(next, start):
			return next, nil
		case next != nil && next.Path != oauth.AuthorizePath && next.Path != oauth.SignInPath:
			return next, nil // a client on our own host
		case next != nil:
			p, err = r.send(ctx, http.MethodGet, next, nil)
		case p.forms[oauth.ConsentPath] != nil:
			p, err = r.answer(ctx, p, a)
		case p.forms[oauth.SignInPath] != nil:
			p, err = r.signIn(ctx, p)
		default:
			return nil, fmt.Errorf("robot: %s answers %d and a page without a form that it knows: %s", p.at.Path, p.status, p.title)
		}
	}
	return nil, errors.Join(errors.New("robot: the pages lead nowhere"), err)
}

// Deliver opens an address at the client, as the browser does when it is sent there.
func (r *Robot) Deliver(ctx context.Context, callback *url.URL) error {
	p, err := r.send(ctx, http.MethodGet, callback, nil)
	if err != nil {
		return err
	}
	if p.status >= http.StatusBadRequest {
		return fmt.Errorf("robot: the client answers %d", p.status)
	}
	return nil
}

// Visit does both: what a person does whose client opened a browser.
func (r *Robot) Visit(ctx context.Context, address string, a Answer) error {
	callback, err := r.Authorize(ctx, address, a)
	if err != nil {
		return err
	}
	return r.Deliver(ctx, callback)
}

// Disconnect opens the person's page at an origin, ends every connection on it, and returns how many there were.
func (r *Robot) Disconnect(ctx context.Context, origin string) (int, error) {
	start, err := url.Parse(origin + oauth.SignInPath)
	if err != nil {
		return 0, fmt.Errorf("robot: %w", err)
	}
	ended := 0
	for range maxConnections {
		p, err := r.send(ctx, http.MethodGet, start, nil)
		if err != nil {
			return ended, err
		}
		if p.forms[oauth.SignInPath] != nil {
			_, err = r.signIn(ctx, p)
		} else if f := p.forms[oauth.DisconnectPath]; f != nil {
			ended++
			_, err = r.send(ctx, http.MethodPost, start.ResolveReference(&url.URL{Path: oauth.DisconnectPath}), f.values)
		} else if p.forms[oauth.SignOutPath] != nil {
			return ended, nil
		} else {
			err = fmt.Errorf("robot: the person's page answers %d: %s", p.status, p.title)
		}
		if err != nil {
			return ended, err
		}
	}
	return ended, errors.New("robot: the connections do not end")
}

func (r *Robot) signIn(ctx context.Context, p *page) (*page, error) {
	if p.status != http.StatusOK {
		return nil, fmt.Errorf("robot: sign-in: status %d, %s", p.status, p.title)
	}
	link, err := r.Link(ctx)
	if err != nil {
		return nil, fmt.Errorf("robot: sign-in link: %w", err)
	}
	f := p.forms[oauth.SignInPath]
	f.set("link", strings.TrimSpace(link)) // the page takes the whole link as it was printed
	return r.send(ctx, http.MethodPost, p.at.ResolveReference(&url.URL{Path: oauth.SignInPath}), f.values)
}

func (r *Robot) answer(ctx context.Context, p *page, a Answer) (*page, error) {
	f := p.forms[oauth.ConsentPath]
	switch {
	case a.Workspace != "":
		if !slices.Contains(f.choices["workspace"], a.Workspace) {
			return nil, fmt.Errorf("robot: the page does not offer the workspace %s", a.Workspace)
		}
		f.set("workspace", a.Workspace)
	case f.values.Get("workspace") == "" && len(f.choices["workspace"]) > 0:
		f.set("workspace", f.choices["workspace"][0])
	}
	if a.All {
		f.set("all", "yes")
	}
	for name := range f.values {
		if a.ReadOnly && strings.HasPrefix(name, "scope.") {
			f.values.Del(name)
		}
	}
	for _, scope := range a.Without {
		if f.values.Get("scope."+scope) == "" {
			return nil, fmt.Errorf("robot: the scope %s can't be taken out", scope)
		}
		f.values.Del("scope." + scope)
	}
	f.set("answer", "allow")
	if a.Deny {
		f.set("answer", "deny")
	}
	return r.send(ctx, http.MethodPost, p.at.ResolveReference(&url.URL{Path: oauth.ConsentPath}), f.values)
}

func sameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }

// page is what the browser shows.
type page struct {
	at       *url.URL
	status   int
	location *url.URL // of a redirect; nil: none
	title    string
	forms    map[string]*form // by action
}

// form is one of a page: what it sends when nothing is changed, and the radio buttons that could be chosen.
type form struct {
	values  url.Values
	choices map[string][]string
}

func (f *form) set(name, value string) { f.values.Set(name, value) }

func (r *Robot) send(ctx context.Context, method string, to *url.URL, values url.Values) (*page, error) {
	request, err := http.NewRequestWithContext(ctx, method, to.String(), strings.NewReader(values.Encode()))
	if err != nil {
		return nil, fmt.Errorf("robot: %w", err)
	}
	request.Header.Set("Accept", "text/html")
	request.Header.Set("Accept-Language", "en")
	if values != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		// As browsers do for a form of the page's own.
		request.Header.Set("Origin", to.Scheme+"://"+to.Host)
		request.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	res, err := r.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("robot: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	p := &page{at: to, status: res.StatusCode}
	if location := res.Header.Get("Location"); location != "" {
		u, err := url.Parse(location)
		if err != nil {
			return nil, fmt.Errorf("robot: location: %w", err)
		}
		p.location = to.ResolveReference(u)
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxPage))
	if err != nil {
		return nil, fmt.Errorf("robot: read %s: %w", to.Path, err)
	}
	p.read(string(text))
	return p, nil
}

// read finds the forms. What is not HTML has none.
func (p *page) read(text string) {
	p.forms = map[string]*form{}
	z := html.NewTokenizer(strings.NewReader(text))
	var open *form
	heading := false
	for {
		switch z.Next() {
		case html.ErrorToken:
			return
		case html.TextToken:
			if heading {
				p.title += string(z.Text())
			}
		case html.EndTagToken:
			heading = false
			if name, _ := z.TagName(); string(name) == "form" {
				open = nil
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			token := z.Token()
			switch token.Data {
			case "h1":
				heading = true
			case "form":
				open = &form{values: url.Values{}, choices: map[string][]string{}}
				p.forms[attributes(token)["action"]] = open
			case "input":
				if open != nil {
					open.input(attributes(token))
				}
			}
		}
	}
}

func attributes(t html.Token) map[string]string {
	m := make(map[string]string, len(t.Attr))
	for _, a := range t.Attr {
		m[a.Key] = a.Val
	}
	return m
}

// input adds a field as a browser would send it.
func (f *form) input(a map[string]string) {
	if _, disabled := a["disabled"]; disabled || a["name"] == "" {
		return
	}
	_, checked := a["checked"]
	switch a["type"] {
	case "radio", "checkbox":
		if a["type"] == "radio" {
			f.choices[a["name"]] = append(f.choices[a["name"]], a["value"])
		}
		if checked {
			f.values.Add(a["name"], a["value"])
		}
	default:
		f.values.Add(a["name"], a["value"])
	}
}

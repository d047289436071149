package mcpcheck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"
	"unicode"
)

const (
	maxRequests = 45
	maxSilent   = 4       // requests in a row without an answer
	maxBody     = 4 << 20 // bytes; a list of several thousand tools
	maxShown    = 160     // characters of what a server said
	patience    = 10 * time.Second
)

var (
	errBudget = errors.New("mcpcheck: the limit of requests was reached")
	errSilent = errors.New("mcpcheck: the server stopped answering")
	errInside = errors.New("mcpcheck: the server names an address inside this machine")
)

// ask is one request.
type ask struct {
	sent   string // what the report says of it
	method string
	url    string // empty: the endpoint
	body   string
	header map[string]string
	token  bool // send the caller's own
	modern bool // of 2026-07-28, its answer is held against that revision's rules
	opens  bool // a session, where the server makes them
}

// with sets a header; without value it is left out.
func (q ask) with(name, value string) ask {
	header := make(map[string]string, len(q.header)+1)
	for k, v := range q.header {
		header[k] = v
	}
	header[name] = value
	if value == "" {
		delete(header, name)
	}
	q.header = header
	return q
}

func (q ask) says(sent string) ask { q.sent = sent; return q }

func (q ask) stranger() ask { q.token = false; q.sent += ", no token"; return q }

// asker sends requests within bounds.
type asker struct {
	target    *url.URL
	token     string
	agent     string
	timeout   time.Duration
	home      *http.Client // for the endpoint's origin
	abroad    *http.Client // for addresses that the server named
	made      int
	silent    int // requests to the endpoint's origin since the last answer
	nextID    int
	redirects []string // of the endpoint
	moved     []string // of documents
	secrets   *strings.Replacer
}

func newAsker(target *url.URL, o Options) *asker {
	if o.Version == "" {
		o.Version = "dev"
	}
	a := &asker{target: target, token: o.Token, agent: "buzon-check/" + o.Version, timeout: o.Timeout}
	if a.timeout <= 0 {
		a.timeout = patience
	}
	hidden := []string{}
	for _, secret := range []string{o.Token, target.RawQuery} {
		if secret != "" {
			hidden = append(hidden, secret, "[hidden]")
		}
	}
	a.secrets = strings.NewReplacer(hidden...)
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	a.home = &http.Client{Transport: transport(nil), CheckRedirect: stay}
	a.abroad = a.home
	if !isLoopback(target.Hostname()) {
		guard := func(_, address string, _ syscall.RawConn) error { return refuseInside(address) }
		a.abroad = &http.Client{Transport: &guarded{direct: transport(guard), proxied: transport(nil)}, CheckRedirect: stay}
	}
	return a
}

func transport(control func(network, address string, c syscall.RawConn) error) *http.Transport {
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: 64 << 10,
		TLSHandshakeTimeout: patience, DialContext: (&net.Dialer{Timeout: patience, Control: control}).DialContext,
	}
	if control != nil {
		t.Proxy = nil
	}
	return t
}

// guarded judges the address that is really dialled; behind a proxy the proxy dials, and judges.
type guarded struct{ direct, proxied *http.Transport }

// RoundTrip implements http.RoundTripper.
func (g *guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	if proxy, err := http.ProxyFromEnvironment(r); err == nil && proxy == nil {
		return g.direct.RoundTrip(r)
	}
	return g.proxied.RoundTrip(r)
}

// CloseIdleConnections is called by http.Client.
func (g *guarded) CloseIdleConnections() {
	g.direct.CloseIdleConnections()
	g.proxied.CloseIdleConnections()
}

func (a *asker) close() { a.home.CloseIdleConnections(); a.abroad.CloseIdleConnections() }

// do sends one request and reads its answer to the end, or to the response when it is a stream.
func (a *asker) do(ctx context.Context, q ask) answer {
	switch {
	case a.made >= maxRequests:
		return answer{err: errBudget}
	case a.silent >= maxSilent: // or each request that is left would wait in vain
		return answer{err: errSilent}
	}
	a.made++
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	address := q.url
	if address == "" {
		address = a.target.String()
	}
	request, err := http.NewRequestWithContext(ctx, q.method, address, strings.NewReader(q.body))
	if err != nil {
		return answer{err: errors.New("not an address")}
	}
	for name, value := range q.header {
		request.Header.Set(name, value)
	}
	request.Header.Set("User-Agent", a.agent)
	client := a.abroad
	if a.isHome(request.URL) {
		client = a.home
		a.silent++
		if q.token && a.token != "" {
			request.Header.Set("Authorization", "Bearer "+a.token)
		}
	}
	response, err := client.Do(request)
	if err != nil {
		return answer{err: silence(err)}
	}
	if client == a.home {
		a.silent = 0
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode >= 300 && response.StatusCode < 400 {
		a.remember(q, response)
	}
	return read(q.method, response)
}

// isHome: a token is for one origin.
func (a *asker) isHome(u *url.URL) bool {
	return u.Scheme == a.target.Scheme && u.Host == a.target.Host
}

func (a *asker) remember(q ask, r *http.Response) {
	to := fmt.Sprintf("%d to %s", r.StatusCode, r.Header.Get("Location"))
	if q.url == "" {
		a.redirects = append(a.redirects, to)
	} else {
		a.moved = append(a.moved, to)
	}
}

// silence takes the address, which may hold a secret, out of what net/http says.
func silence(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("timeout")
	}
	return err
}

// read takes what arrived. A standing GET stream of the older era has no end: its head says everything.
func read(method string, r *http.Response) answer {
	a := answer{status: r.StatusCode, header: r.Header}
	a.media, _, _ = mime.ParseMediaType(r.Header.Get("Content-Type"))
	body := io.LimitReader(r.Body, maxBody+1)
	var err error
	switch {
	case a.media == eventStream && method == http.MethodGet:
		return a
	case a.media == eventStream:
		a.messages, err = readStream(body)
	default:
		a.body, err = io.ReadAll(body)
		a.messages = readBody(a.body)
	}
	switch {
	case err != nil:
		a.err = silence(fmt.Errorf("the answer breaks off: %w", err))
	case len(a.body) > maxBody:
		a.err = errors.New("the answer is longer than 4 MiB")
	}
	return a
}

// shown is the endpoint without what may be a secret.
func (a *asker) shown() string {
	u := *a.target
	if u.RawQuery != "" {
		u.RawQuery = "[hidden]"
	}
	return u.String()
}

// plain makes a foreign text safe to print: no secret, no control or bidirectional characters that move a terminal's
// cursor or turn a line around, and not long.
func (a *asker) plain(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\r', r == '\t':
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, a.secrets.Replace(s))
	if runes := []rune(s); len(runes) > maxShown {
		return string(runes[:maxShown-1]) + "…"
	}
	return s
}

// Package safehttp is the only HTTP client for addresses that others chose: metadata documents of OAuth clients, webhooks.
// Whoever names such an address may mean ours (metadata services, the runtime's own port, neighbours in the network), so the
// client resolves the name itself, checks every answer, and connects to the very literal that it checked: a name that answers
// differently the next time gains nothing. It speaks HTTPS on port 443, follows no redirect, uses no proxy, keeps no
// connection, unpacks nothing, and bounds time, headers and body. It knows nothing of what is fetched or why, and its errors
// are for logs: told to the caller they would be a port scanner.
package safehttp

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"code.dny.dev/ssrf"
)

const (
	defaultTimeout = 5 * time.Second
	maxHeader      = 16 << 10 // bytes of a response's headers
	maxAnswers     = 32       // addresses of one name; more is not a service but a trick
	maxDials       = 4        // addresses that are tried
)

// What Do returns, wrapped with the step. The texts name no address.
var (
	// ErrRefused is an address that may not be asked: its form, its name, or where the name leads.
	ErrRefused = errors.New("safehttp: refused address")
	// ErrUnreachable is a receiver that did not answer in time or not in HTTP.
	ErrUnreachable = errors.New("safehttp: no answer")
	// ErrTooLarge is an answer over the bound that the request names.
	ErrTooLarge = errors.New("safehttp: answer too large")
)

// Resolver finds the addresses of a name; *net.Resolver is one. A name without addresses is an error or an empty list.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Options are the settings of New. The zero value works.
type Options struct {
	Resolver Resolver                                                          // net.DefaultResolver if nil
	Dial     func(ctx context.Context, network, addr string) (net.Conn, error) // of checked literals; net.Dialer if nil
	Roots    *x509.CertPool                                                    // the system's if nil
	Timeout  time.Duration                                                     // of a whole exchange; 5 s if 0
	// Loopback lets the name localhost through, with http and any port. Only for a service whose own issuer is loopback.
	Loopback bool
}

// Client makes requests. It may be used by many goroutines at once.
type Client struct {
	opts  Options
	guard *ssrf.Guardian
	http  *http.Client
}

// Request is what Do sends.
type Request struct {
	Method  string
	URL     string
	Header  http.Header
	Body    []byte
	MaxBody int64 // bytes of the answer's body, at least 1
	// Cut takes of a body what came, up to MaxBody, when it is longer or breaks off: for whoever asks for the status. Time still ends
	// the exchange.
	Cut bool
}

// Response is what came back, whatever the status: a redirect is an answer like any other.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// New makes a client.
func New(o Options) *Client {
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{}).DialContext
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	c := &Client{opts: o, guard: ssrf.New(ssrf.WithPorts(443))}
	c.http = &http.Client{
		Transport: &http.Transport{
			Proxy:                  nil, // a proxy of the environment would connect for us, unchecked
			DialContext:            c.dial,
			DisableKeepAlives:      true, // a kept connection would outlive the check of its address
			DisableCompression:     true, // a small answer could unpack to gigabytes
			MaxResponseHeaderBytes: maxHeader,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.Roots},
			TLSNextProto:           map[string]func(string, *tls.Conn) http.RoundTripper{}, // HTTP/1.1 only: its bounds are the ones above
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       o.Timeout,
	}
	return c
}

// Do makes one exchange: ErrRefused, ErrUnreachable or ErrTooLarge when there is no answer to use.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	if r.MaxBody < 1 {
		return nil, errors.New("safehttp: a request needs a bound for its answer")
	}
	if err := c.Check(r.URL); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return nil, fmt.Errorf("%w: not a request", ErrRefused)
	}
	if len(r.Body) == 0 {
		req.Body, req.ContentLength = http.NoBody, 0
	}
	for name, values := range r.Header {
		req.Header[name] = values
	}
	res, err := c.http.Do(req)
	if err != nil {
		if errors.Is(err, ErrRefused) {
			return nil, err //nolint:wrapcheck // ours, through net/http
		}
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, r.MaxBody+1))
	if r.Cut {
		return &Response{Status: res.StatusCode, Header: res.Header, Body: body[:min(int64(len(body)), r.MaxBody)]}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: read the answer: %w", ErrUnreachable, err)
	}
	if int64(len(body)) > r.MaxBody {
		return nil, ErrTooLarge
	}
	return &Response{Status: res.StatusCode, Header: res.Header, Body: body}, nil
}

// dial resolves, checks every answer and connects to one of them. The transport then speaks TLS with the name that was asked
// for, so the certificate proves the name and not the address.
func (c *Client) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("%w: no host and port", ErrRefused)
	}
	addrs, err := c.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	for i, a := range addrs {
		if i == maxDials {
			break
		}
		var conn net.Conn
		if conn, err = c.opts.Dial(ctx, network, net.JoinHostPort(a.String(), port)); err == nil {
			return conn, nil
		}
	}
	return nil, fmt.Errorf("connect: %w", err)
}

// resolve finds the addresses of a name. One bad answer spoils all: a name that leads inside and outside at once is aimed at us.
func (c *Client) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if c.opts.Loopback && host == loopbackName {
		// No resolver is asked: it could lead the name elsewhere.
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, nil
	}
	// The final dot keeps search domains of this machine out of the question.
	addrs, err := c.opts.Resolver.LookupNetIP(ctx, "ip", host+".")
	if err != nil {
		return nil, fmt.Errorf("resolve: %w", err)
	}
	if len(addrs) == 0 {
		return nil, errors.New("resolve: no addresses")
	}
	if len(addrs) > maxAnswers {
		return nil, fmt.Errorf("%w: %d addresses", ErrRefused, len(addrs))
	}
	checked := make([]netip.Addr, 0, len(addrs))
	for _, a := range addrs {
		a = a.Unmap() // resolvers write IPv4 in either form
		if err := c.permit(a); err != nil {
			return nil, err
		}
		checked = append(checked, a)
	}
	return checked, nil
}

// permit lets addresses of the public internet pass. Ranges that IANA has not given out fail too.
func (c *Client) permit(a netip.Addr) error {
	if !a.IsValid() || a.Zone() != "" {
		return fmt.Errorf("%w: an address with a zone", ErrRefused)
	}
	if err := c.guard.SafeAddrPort(netip.AddrPortFrom(a, 443)); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return nil
}

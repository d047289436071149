package lambdaedge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"github.com/awslabs/aws-lambda-go-api-proxy/core"

	"github.com/buzon-mail/buzon/shared/tracecontext"
)

// event is the union of what is read of the three shapes, so that one decoding tells them apart and serves them.
type event struct {
	Version string `json:"version"`

	// Payload format 2.0: function URL and HTTP API.
	RawPath        string            `json:"rawPath"`
	RawQueryString string            `json:"rawQueryString"`
	Cookies        []string          `json:"cookies"`
	Headers        map[string]string `json:"headers"`

	// REST API.
	HTTPMethod        string              `json:"httpMethod"`
	Path              string              `json:"path"`
	MultiValueHeaders map[string][]string `json:"multiValueHeaders"`
	MultiValueQuery   map[string][]string `json:"multiValueQueryStringParameters"`

	Context struct {
		RequestID  string          `json:"requestId"`
		DomainName string          `json:"domainName"`
		Stage      string          `json:"stage"`
		ELB        json.RawMessage `json:"elb"`
		HTTP       struct {
			Method   string `json:"method"`
			SourceIP string `json:"sourceIp"`
		} `json:"http"`
		Identity struct {
			SourceIP string `json:"sourceIp"`
		} `json:"identity"`
	} `json:"requestContext"`

	Body            string `json:"body"`
	IsBase64Encoded bool   `json:"isBase64Encoded"`

	door Door
}

// decode reads an event and finds its door. Every failure is ErrNotHTTP.
func decode(payload []byte) (*event, error) {
	e := &event{}
	if err := json.Unmarshal(payload, e); err != nil {
		return nil, fmt.Errorf("%w: %s", ErrNotHTTP, jsonFault(err))
	}
	switch {
	case e.Context.ELB != nil:
		return nil, fmt.Errorf("%w: application load balancers are not served, use a function URL", ErrNotHTTP)
	case e.Version == "2.0" && e.Context.HTTP.Method != "":
		e.door = HTTPAPI
		// Both doors say version 2.0 and stage $default; only the name tells them apart.
		if strings.Contains(e.Context.DomainName, ".lambda-url.") {
			e.door = FunctionURL
		}
	case e.Version == "1.0":
		return nil, fmt.Errorf("%w: payload format 1.0, set PayloadFormatVersion to 2.0", ErrNotHTTP)
	case e.HTTPMethod != "" && e.Path != "" && e.Context.Stage != "":
		e.door = RESTAPI
	default:
		return nil, fmt.Errorf("%w: neither a function URL, an HTTP API nor a REST API sent it", ErrNotHTTP)
	}
	return e, nil
}

// jsonFault keeps the event's bytes out of the error, which Lambda logs.
func jsonFault(err error) string {
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return "member " + t.Field + " has another type"
	}
	return "not JSON"
}

func (e *event) requestID() string { return e.Context.RequestID }

func (e *event) origin() string {
	if e.Context.DomainName == "" {
		return ""
	}
	return "https://" + strings.ToLower(e.Context.DomainName)
}

// placeholder stands for the host while core builds the URL. The event's domain name is not used there, so that nothing in
// it can move the boundary between host and path.
const placeholder = "lambda.invalid"

var errBadTarget = errors.New("lambdaedge: bad method or request target")

// request builds the http.Request that net/http's server would have made of the same bytes.
func (e *event) request(ctx context.Context) (*http.Request, error) {
	method, path, query := e.target()
	// core prints a target that it can't parse, query and all, to standard output. It never gets to see one.
	if !validToken(method) {
		return nil, errBadTarget
	}
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	target := path
	if query != "" {
		target += "?" + query
	}
	u, err := url.Parse("https://" + placeholder + target)
	if err != nil {
		return nil, errBadTarget
	}
	var v2 core.RequestAccessorV2
	r, err := v2.EventToRequest(events.APIGatewayV2HTTPRequest{
		RawPath: path, RawQueryString: query, Body: e.Body, IsBase64Encoded: e.IsBase64Encoded,
		RequestContext: events.APIGatewayV2HTTPRequestContext{
			DomainName: placeholder, HTTP: events.APIGatewayV2HTTPRequestContextHTTPDescription{Method: method},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("lambdaedge: event to request: %w", err)
	}
	header := e.header()
	if ids := header["X-Amzn-Trace-Id"]; len(ids) > 0 {
		if c, ok := tracecontext.ParseXRay(ids[0]); ok {
			ctx = tracecontext.With(ctx, c)
		}
	}
	r = r.WithContext(ctx)
	u.Scheme, u.Host = "", "" // as net/http's server leaves them
	r.URL = u                 // not core's, which a variable of its own (GO_API_HOST) can move
	r.RequestURI = target
	r.Header = header
	r.Host = r.Header.Get("Host")
	if r.Host == "" {
		r.Host = e.Context.DomainName
	}
	delete(r.Header, "Host")
	if ip := e.sourceIP(); ip != "" {
		r.RemoteAddr = net.JoinHostPort(ip, "0")
	} else {
		r.RemoteAddr = ""
	}
	return r, nil
}

// target is method, escaped path and escaped query.
func (e *event) target() (method, path, query string) {
	switch e.door {
	case RESTAPI:
		return e.HTTPMethod, e.Path, e.restQuery()
	case HTTPAPI:
		// An HTTP API sends the path decoded: a decoded question mark would start a query of the caller's choice.
		return e.Context.HTTP.Method, (&url.URL{Path: e.RawPath}).EscapedPath(), e.RawQueryString
	default:
		return e.Context.HTTP.Method, e.RawPath, e.RawQueryString
	}
}

// restQuery encodes the decoded maps of a REST API again, in a fixed order.
func (e *event) restQuery() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(e.MultiValueQuery)) {
		for _, value := range e.MultiValueQuery[name] {
			if b.Len() > 0 {
				b.WriteByte('&')
			}
			b.WriteString(url.QueryEscape(name) + "=" + url.QueryEscape(value))
		}
	}
	return b.String()
}

// header sets every value verbatim, whole. Cookies come once, although a function URL sends them twice.
func (e *event) header() http.Header {
	h := make(http.Header, len(e.Headers)+1)
	if e.MultiValueHeaders != nil {
		for name, values := range e.MultiValueHeaders {
			name = textproto.CanonicalMIMEHeaderKey(name)
			h[name] = append(h[name], values...)
		}
	} else {
		values := make([]string, 0, len(e.Headers)) // one allocation for all
		for name, value := range e.Headers {
			values = append(values, value)
			name = textproto.CanonicalMIMEHeaderKey(name)
			if _, twice := h[name]; twice {
				h[name] = append(h[name], value) // in two spellings: both count, so that two Authorization headers are seen
				continue
			}
			h[name] = values[len(values)-1 : len(values) : len(values)]
		}
	}
	if len(e.Cookies) > 0 {
		h["Cookie"] = []string{strings.Join(e.Cookies, "; ")}
	}
	return h
}

func (e *event) sourceIP() string {
	if e.door == RESTAPI {
		return e.Context.Identity.SourceIP
	}
	return e.Context.HTTP.SourceIP
}

// validToken is the token of RFC 9110 section 5.6.2, which methods and header names are.
func validToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != ""
}

package gateway

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/lambdaedge"
)

// eventV2 is payload format 2.0, of function URLs and HTTP APIs.
type eventV2 struct {
	Version         string            `json:"version"`
	RouteKey        string            `json:"routeKey"`
	RawPath         string            `json:"rawPath"`
	RawQueryString  string            `json:"rawQueryString"`
	Cookies         []string          `json:"cookies,omitempty"`
	Headers         map[string]string `json:"headers"`
	Query           map[string]string `json:"queryStringParameters,omitempty"`
	Context         contextV2         `json:"requestContext"`
	PathParameters  map[string]string `json:"pathParameters,omitempty"`
	Body            string            `json:"body,omitempty"`
	IsBase64Encoded bool              `json:"isBase64Encoded"`
}

type contextV2 struct {
	AccountID    string   `json:"accountId"`
	APIID        string   `json:"apiId"`
	DomainName   string   `json:"domainName"`
	DomainPrefix string   `json:"domainPrefix"`
	HTTP         httpPart `json:"http"`
	RequestID    string   `json:"requestId"`
	RouteKey     string   `json:"routeKey"`
	Stage        string   `json:"stage"`
	Time         string   `json:"time"`
	TimeEpoch    int64    `json:"timeEpoch"`
}

type httpPart struct {
	Method    string `json:"method"`
	Path      string `json:"path"`
	Protocol  string `json:"protocol"`
	SourceIP  string `json:"sourceIp"`
	UserAgent string `json:"userAgent"`
}

// eventV1 is what a REST API sends. What it has nothing to say of is null.
type eventV1 struct {
	Resource        string              `json:"resource"`
	Path            string              `json:"path"`
	HTTPMethod      string              `json:"httpMethod"`
	Headers         map[string]string   `json:"headers"`
	MultiHeaders    map[string][]string `json:"multiValueHeaders"`
	Query           map[string]string   `json:"queryStringParameters"`
	MultiQuery      map[string][]string `json:"multiValueQueryStringParameters"`
	PathParameters  map[string]string   `json:"pathParameters"`
	StageVariables  map[string]string   `json:"stageVariables"`
	Context         contextV1           `json:"requestContext"`
	Body            *string             `json:"body"`
	IsBase64Encoded bool                `json:"isBase64Encoded"`
}

type contextV1 struct {
	ResourceID        string   `json:"resourceId"`
	ResourcePath      string   `json:"resourcePath"`
	HTTPMethod        string   `json:"httpMethod"`
	ExtendedRequestID string   `json:"extendedRequestId"`
	RequestTime       string   `json:"requestTime"`
	Path              string   `json:"path"`
	AccountID         string   `json:"accountId"`
	Protocol          string   `json:"protocol"`
	Stage             string   `json:"stage"`
	DomainPrefix      string   `json:"domainPrefix"`
	RequestTimeEpoch  int64    `json:"requestTimeEpoch"`
	RequestID         string   `json:"requestId"`
	Identity          identity `json:"identity"`
	DomainName        string   `json:"domainName"`
	APIID             string   `json:"apiId"`
}

type identity struct {
	CognitoIdentityPoolID *string `json:"cognitoIdentityPoolId"`
	AccountID             *string `json:"accountId"`
	SourceIP              string  `json:"sourceIp"`
	UserAgent             string  `json:"userAgent"`
	User                  *string `json:"user"`
}

const (
	account    = "123456789012"
	proxyRoute = "/{proxy+}"
	timeLayout = "02/Jan/2006:15:04:05 -0700"
)

// Event is the event that the door makes of a request, for tests that look at it. It reads the body.
func (g *Gateway) Event(r *http.Request) ([]byte, error) {
	body, err := readBody(r)
	if err != nil {
		return nil, fmt.Errorf("gateway: read body: %w", err)
	}
	return g.event(r, body)
}

func (g *Gateway) event(r *http.Request, body []byte) ([]byte, error) {
	if g.door == lambdaedge.RESTAPI {
		return json.Marshal(g.eventV1(r, body))
	}
	return json.Marshal(g.eventV2(r, body))
}

func (g *Gateway) eventV2(r *http.Request, body []byte) eventV2 {
	now := g.o.Now().UTC()
	e := eventV2{
		Version: "2.0", RouteKey: "$default", RawPath: r.URL.EscapedPath(), RawQueryString: r.URL.RawQuery,
		Headers: map[string]string{}, Query: joined(queryOf(r)),
	}
	e.Context = contextV2{
		AccountID: account, APIID: prefix(g.o.Domain), DomainName: g.o.Domain, DomainPrefix: prefix(g.o.Domain),
		HTTP:      httpPart{r.Method, r.URL.Path, "HTTP/1.1", sourceIP(r), r.UserAgent()},
		RequestID: requestID(r, now, body), Stage: "$default", Time: now.Format(timeLayout), TimeEpoch: now.UnixMilli(),
	}
	for name, values := range g.headersIn(r, body, now) {
		e.Headers[strings.ToLower(name)] = strings.Join(values, ",")
	}
	e.Cookies = cookies(r)
	if g.door == lambdaedge.FunctionURL {
		e.Context.AccountID = "anonymous" // AuthType NONE
	} else {
		delete(e.Headers, "cookie")
		e.RawPath, _, _ = strings.Cut(r.URL.Path, "?")
		e.Context.HTTP.Path = e.RawPath
		if e.RawPath != "/" {
			e.RouteKey = "ANY " + proxyRoute
			e.PathParameters = map[string]string{"proxy": strings.TrimPrefix(e.RawPath, "/")}
		}
	}
	e.Context.RouteKey = e.RouteKey
	e.Body, e.IsBase64Encoded = encode(body, isTextType(r.Header.Get("Content-Type")))
	return e
}

func (g *Gateway) eventV1(r *http.Request, body []byte) eventV1 {
	now := g.o.Now().UTC()
	path := strings.TrimPrefix(r.URL.EscapedPath(), g.Prefix())
	e := eventV1{
		Resource: proxyRoute, Path: path, HTTPMethod: r.Method,
		Headers: map[string]string{}, MultiHeaders: g.headersIn(r, body, now),
		PathParameters: map[string]string{"proxy": strings.TrimPrefix(path, "/")},
	}
	if path == "/" {
		e.Resource, e.PathParameters = "/", nil
	}
	for name, values := range e.MultiHeaders {
		e.Headers[name] = values[len(values)-1]
	}
	if query := queryOf(r); len(query) > 0 {
		e.MultiQuery, e.Query = query, map[string]string{}
		for name, values := range query {
			e.Query[name] = values[len(values)-1]
		}
	}
	id := requestID(r, now, body)
	e.Context = contextV1{
		ResourceID: "q1w2e3", ResourcePath: e.Resource, HTTPMethod: r.Method, ExtendedRequestID: id[:15] + "=",
		RequestTime: now.Format(timeLayout), Path: "/" + g.o.Stage + path, AccountID: account, Protocol: "HTTP/1.1",
		Stage: g.o.Stage, DomainPrefix: prefix(g.o.Domain), RequestTimeEpoch: now.UnixMilli(), RequestID: id,
		Identity: identity{SourceIP: sourceIP(r), UserAgent: r.UserAgent()}, DomainName: g.o.Domain, APIID: "f6e5d4c3b2",
	}
	if len(body) > 0 {
		text, is64 := encode(body, !matches(g.o.BinaryTypes, r.Header.Get("Content-Type")))
		e.Body, e.IsBase64Encoded = &text, is64
	}
	return e
}

// headersIn is the headers that the function sees: the client's, without those of the connection, and the door's own.
func (g *Gateway) headersIn(r *http.Request, body []byte, now time.Time) http.Header {
	h := r.Header.Clone()
	if h == nil {
		h = http.Header{}
	}
	for _, name := range []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"} {
		h.Del(name)
	}
	h.Set("Host", g.o.Domain)
	if len(body) > 0 {
		h.Set("Content-Length", fmt.Sprint(len(body)))
	}
	h.Set("X-Forwarded-For", strings.Join(append(r.Header.Values("X-Forwarded-For"), sourceIP(r)), ", "))
	h.Set("X-Forwarded-Port", "443")
	h.Set("X-Forwarded-Proto", "https")
	h.Set("X-Amzn-Tls-Cipher-Suite", "TLS_AES_128_GCM_SHA256")
	h.Set("X-Amzn-Tls-Version", "TLSv1.3")
	h.Set("X-Amzn-Trace-Id", fmt.Sprintf("Root=1-%08x-%s", now.Unix(), strings.ReplaceAll(requestID(r, now, body), "-", "")[:24]))
	return h
}

// cookies are the pairs of the Cookie headers, verbatim.
func cookies(r *http.Request) []string {
	var list []string
	for _, line := range r.Header.Values("Cookie") {
		for pair := range strings.SplitSeq(line, ";") {
			if pair = strings.TrimSpace(pair); pair != "" {
				list = append(list, pair)
			}
		}
	}
	return list
}

// queryOf reads a query as a gateway does: a pair that does not decode is dropped.
func queryOf(r *http.Request) url.Values {
	values, _ := url.ParseQuery(r.URL.RawQuery) // it returns what it could read beside the error
	return values
}

func joined(query url.Values) map[string]string {
	if len(query) == 0 {
		return nil
	}
	m := make(map[string]string, len(query))
	for name, values := range query {
		m[name] = strings.Join(values, ",")
	}
	return m
}

// encode is a body as JSON can carry it. In text that is no UTF-8 each byte that is not becomes U+FFFD, as encoding/json has it.
func encode(body []byte, text bool) (string, bool) {
	if len(body) == 0 {
		return "", false
	}
	if text {
		return string([]rune(string(body))), false
	}
	return base64.StdEncoding.EncodeToString(body), true
}

// isTextType says which bodies payload format 2.0 leaves as they are.
func isTextType(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return false
	}
	switch kind {
	case "application/json", "application/javascript", "application/xml":
		return true
	}
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml")
}

// matches says whether a media type is among a REST API's binaryMediaTypes, which may hold wildcards.
func matches(patterns []string, contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		kind = ""
	}
	for _, p := range patterns {
		major, wild := strings.CutSuffix(p, "/*")
		if p == "*/*" || p == kind || wild && strings.HasPrefix(kind, major+"/") {
			return true
		}
	}
	return false
}

// sourceIP is the peer's address; a request that never saw a network has one of the documentation range.
func sourceIP(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return "203.0.113.7"
}

func prefix(domain string) string {
	first, _, _ := strings.Cut(domain, ".")
	return first
}

// requestID is made of the request, so that the same request at the same time has the same event.
func requestID(r *http.Request, now time.Time, body []byte) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %d %s", r.Method, r.URL, now.UnixNano(), body))
	h := hex.EncodeToString(sum[:16])
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-8" + h[17:20] + "-" + h[20:]
}

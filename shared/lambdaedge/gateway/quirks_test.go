package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/buzon-mail/buzon/shared/lambdaedge"
	"github.com/buzon-mail/buzon/shared/lambdaedge/gateway"
)

func v2(t *testing.T, d lambdaedge.Door, r *http.Request) events.APIGatewayV2HTTPRequest {
	t.Helper()
	event, err := raw(t, d, func(context.Context, []byte) ([]byte, error) { return nil, nil }, gateway.Options{}).Event(r)
	if err != nil {
		t.Fatal(err)
	}
	var e events.APIGatewayV2HTTPRequest
	decode(t, event, &e)
	return e
}

func v1(t *testing.T, r *http.Request, o gateway.Options) events.APIGatewayProxyRequest {
	t.Helper()
	event, err := raw(t, lambdaedge.RESTAPI, func(context.Context, []byte) ([]byte, error) { return nil, nil }, o).Event(r)
	if err != nil {
		t.Fatal(err)
	}
	var e events.APIGatewayProxyRequest
	decode(t, event, &e)
	return e
}

func TestHeadersIn(t *testing.T) {
	headers := []string{"X-Many", "a", "X-Many", "b, c", "Connection", "keep-alive", "X-Forwarded-For", "198.51.100.1"}
	for _, d := range []lambdaedge.Door{lambdaedge.FunctionURL, lambdaedge.HTTPAPI} {
		e := v2(t, d, request("POST", "/mcp", "{}", headers...))
		if got := e.Headers["x-many"]; got != "a,b, c" {
			t.Errorf("%s: repeated header = %q", d, got)
		}
		for name := range e.Headers {
			if name != strings.ToLower(name) || name == "connection" {
				t.Errorf("%s: header %q", d, name)
			}
		}
		if got := e.Headers["x-forwarded-for"]; got != "198.51.100.1, 203.0.113.7" {
			t.Errorf("%s: x-forwarded-for = %q", d, got)
		}
		if e.Headers["host"] != e.RequestContext.DomainName {
			t.Errorf("%s: host = %q", d, e.Headers["host"])
		}
	}
	e := v1(t, request("POST", "/live/mcp", "{}", headers...), gateway.Options{})
	if e.Headers["X-Many"] != "b, c" || !reflect.DeepEqual(e.MultiValueHeaders["X-Many"], []string{"a", "b, c"}) {
		t.Errorf("REST API: headers %q, multiValueHeaders %q", e.Headers["X-Many"], e.MultiValueHeaders["X-Many"])
	}
}

func TestCookiesIn(t *testing.T) {
	r := func() *http.Request { return request("GET", "/live/x", "", "Cookie", `a=1; b="x y"`, "Cookie", "c=3") }
	want := []string{"a=1", `b="x y"`, "c=3"}
	url, api := v2(t, lambdaedge.FunctionURL, r()), v2(t, lambdaedge.HTTPAPI, r())
	if !reflect.DeepEqual(url.Cookies, want) || url.Headers["cookie"] == "" {
		t.Errorf("function URL: cookies %q, header %q: want both", url.Cookies, url.Headers["cookie"])
	}
	if _, there := api.Headers["cookie"]; !reflect.DeepEqual(api.Cookies, want) || there {
		t.Errorf("HTTP API: cookies %q, header there %v: want cookies only", api.Cookies, there)
	}
	rest := v1(t, r(), gateway.Options{})
	if len(rest.MultiValueHeaders["Cookie"]) != 2 {
		t.Errorf("REST API: %q", rest.MultiValueHeaders["Cookie"])
	}
}

func TestPathsIn(t *testing.T) {
	const target = "/a%20b/100%25/x%3Fadmin=1?q=1&q=2&w=%2B"
	url := v2(t, lambdaedge.FunctionURL, request("GET", target, ""))
	if url.RawPath != "/a%20b/100%25/x%3Fadmin=1" || url.RequestContext.HTTP.Path != "/a b/100%/x?admin=1" {
		t.Errorf("function URL: rawPath %q, path %q", url.RawPath, url.RequestContext.HTTP.Path)
	}
	api := v2(t, lambdaedge.HTTPAPI, request("GET", target, ""))
	if api.RawPath != "/a b/100%/x" || api.RawQueryString != "q=1&q=2&w=%2B" {
		t.Errorf("HTTP API: rawPath %q, query %q: want it decoded and cut", api.RawPath, api.RawQueryString)
	}
	rest := v1(t, request("GET", "/live"+target, ""), gateway.Options{})
	if rest.Path != "/a%20b/100%25/x%3Fadmin=1" || rest.RequestContext.Path != "/live"+rest.Path {
		t.Errorf("REST API: path %q, context %q", rest.Path, rest.RequestContext.Path)
	}
	if rest.QueryStringParameters["q"] != "2" || !reflect.DeepEqual(rest.MultiValueQueryStringParameters["q"], []string{"1", "2"}) ||
		rest.QueryStringParameters["w"] != "+" {
		t.Errorf("REST API: query %q %q", rest.QueryStringParameters, rest.MultiValueQueryStringParameters)
	}
}

func TestStage(t *testing.T) {
	ok := func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) }
	for _, c := range []struct {
		name, domain, target string
		status               int
		body                 string
	}{
		{"with the stage", "", "/live/mcp", 200, "/mcp"},
		{"without it", "", "/mcp", 403, `{"message":"Missing Authentication Token"}`},
		{"another word with the same start", "", "/lively/mcp", 403, `{"message":"Missing Authentication Token"}`},
		{"a domain of one's own", "mail.example.com", "/mcp", 200, "/mcp"},
	} {
		t.Run(c.name, func(t *testing.T) {
			res, body := send(t, door(t, lambdaedge.RESTAPI, ok, gateway.Options{Domain: c.domain}), request("GET", c.target, ""))
			if res.StatusCode != c.status || body != c.body {
				t.Errorf("%d %q, want %d %q", res.StatusCode, body, c.status, c.body)
			}
		})
	}
}

func TestBodiesIn(t *testing.T) {
	for kind, want := range map[string]bool{
		"application/json": false, "application/json; charset=utf-8": false, "text/plain": false, "application/problem+json": false,
		"application/octet-stream": true, "": true, "image/png": true, "application/x-www-form-urlencoded": true,
	} {
		e := v2(t, lambdaedge.FunctionURL, request("POST", "/mcp", "hola", "Content-Type", kind))
		if e.IsBase64Encoded != want || e.Body != map[bool]string{true: "aG9sYQ==", false: "hola"}[want] {
			t.Errorf("%q: base64 %v, body %q", kind, e.IsBase64Encoded, e.Body)
		}
	}
	binary := func() *http.Request { return request("POST", "/live/mcp", "\xff\x00", "Content-Type", "image/png") }
	if e := v1(t, binary(), gateway.Options{}); e.IsBase64Encoded || e.Body != "\uFFFD\x00" {
		t.Errorf("REST API without binary types: %v %q, want it damaged", e.IsBase64Encoded, e.Body)
	}
	for _, types := range [][]string{{"*/*"}, {"image/*"}, {"image/png"}} {
		if e := v1(t, binary(), gateway.Options{BinaryTypes: types}); !e.IsBase64Encoded || e.Body != "/wA=" {
			t.Errorf("REST API with %q: %v %q", types, e.IsBase64Encoded, e.Body)
		}
	}
}

// TestLimits: what is too large never reaches the function, and a reply that is too large is an error without a reason.
func TestLimits(t *testing.T) {
	big := strings.Repeat("x", 5<<20)
	for _, c := range []struct {
		name string
		door lambdaedge.Door
		r    *http.Request
		want int
	}{
		{"binary of 5 MB is over 6 MB as base64", lambdaedge.FunctionURL, request("POST", "/", big, "Content-Type", "image/png"), 413},
		{"text of 5 MB is not", lambdaedge.FunctionURL, request("POST", "/", big, "Content-Type", "text/plain"), 200},
		{"the same at the HTTP API", lambdaedge.HTTPAPI, request("POST", "/", big, "Content-Type", "image/png"), 413},
		{"over 10 MB", lambdaedge.RESTAPI, request("POST", "/live/", big+big+"x", "Content-Type", "text/plain"), 413},
		{"headers over 10,240 bytes", lambdaedge.HTTPAPI, request("GET", "/", "", "X-Long", strings.Repeat("x", 10_240)), 431},
		{"which a function URL takes", lambdaedge.FunctionURL, request("GET", "/", "", "X-Long", strings.Repeat("x", 10_240)), 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			called := false
			g := door(t, c.door, func(http.ResponseWriter, *http.Request) { called = true }, gateway.Options{})
			if res, body := send(t, g, c.r); res.StatusCode != c.want || called != (c.want == 200) {
				t.Errorf("%d %q, called %v, want %d", res.StatusCode, body, called, c.want)
			}
		})
	}
}

// TestBrokenReplies is what callers see of a function that failed.
func TestBrokenReplies(t *testing.T) {
	large := `{"statusCode":200,"body":"` + strings.Repeat("x", 6<<20) + `"}`
	for _, c := range []struct{ name, reply string }{
		{"over 6 MB", large},
		{"no JSON", `statusCode`},
		{"no status", `{"body":"x"}`},
		{"a status that is none", `{"statusCode":99}`},
		{"base64 that is none", `{"statusCode":200,"body":"*","isBase64Encoded":true}`},
		{"an error", ""},
	} {
		for _, d := range doors() {
			t.Run(c.name+" "+string(d), func(t *testing.T) {
				g := raw(t, d, func(context.Context, []byte) ([]byte, error) {
					if c.reply == "" {
						return nil, errors.New("secret")
					}
					return []byte(c.reply), nil
				}, gateway.Options{BinaryTypes: []string{"*/*"}})
				want := map[bool]int{true: 500, false: 502}[d == lambdaedge.HTTPAPI]
				res, body := send(t, g, request("GET", g.Prefix()+"/", ""))
				if res.StatusCode != want || !strings.Contains(body, "Internal Server Error") || strings.Contains(body, "secret") {
					t.Errorf("%d %q, want %d", res.StatusCode, body, want)
				}
			})
		}
	}
}

func TestChallengeIsRenamed(t *testing.T) {
	for _, d := range doors() {
		g := door(t, d, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer scope="a b"`)
			w.Header().Set("X-MCP-Challenge", `Bearer scope="a b"`)
			w.WriteHeader(http.StatusUnauthorized)
		}, gateway.Options{})
		res, _ := send(t, g, request("POST", g.Prefix()+"/mcp", "{}"))
		if res.StatusCode != 401 || res.Header.Get("WWW-Authenticate") != "" ||
			res.Header.Get("x-amzn-Remapped-WWW-Authenticate") != `Bearer scope="a b"` || res.Header.Get("X-MCP-Challenge") != `Bearer scope="a b"` {
			t.Errorf("%s: %d %v", d, res.StatusCode, res.Header)
		}
	}
}

func TestRemappedOfOnesOwn(t *testing.T) {
	reply := `{"statusCode":200,"headers":{"X-Amzn-Remapped-Date":"x"}}`
	for d, want := range map[lambdaedge.Door]int{lambdaedge.FunctionURL: 500, lambdaedge.HTTPAPI: 200, lambdaedge.RESTAPI: 200} {
		g := raw(t, d, func(context.Context, []byte) ([]byte, error) { return []byte(reply), nil }, gateway.Options{})
		if res, _ := send(t, g, request("GET", g.Prefix()+"/", "")); res.StatusCode != want {
			t.Errorf("%s: %d, want %d", d, res.StatusCode, want)
		}
	}
}

func TestCookiesOut(t *testing.T) {
	for _, c := range []struct {
		door  lambdaedge.Door
		reply string
		want  []string
	}{
		{lambdaedge.FunctionURL, `{"statusCode":200,"cookies":["a=1; Path=/","b=2"],"headers":{"Set-Cookie":"lost=1"}}`, []string{"a=1; Path=/", "b=2"}},
		{lambdaedge.HTTPAPI, `{"statusCode":200,"multiValueHeaders":{"Set-Cookie":["lost=1"]}}`, nil},
		{lambdaedge.RESTAPI, `{"statusCode":200,"cookies":["lost=1"],"multiValueHeaders":{"Set-Cookie":["a=1","b=2"]}}`, []string{"a=1", "b=2"}},
	} {
		g := raw(t, c.door, func(context.Context, []byte) ([]byte, error) { return []byte(c.reply), nil }, gateway.Options{})
		res, _ := send(t, g, request("GET", g.Prefix()+"/", ""))
		if got := res.Header.Values("Set-Cookie"); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %q, want %q", c.door, got, c.want)
		}
	}
}

func TestBinaryOut(t *testing.T) {
	h := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "image/png")
		_, _ = w.Write([]byte{0xff, 0x00})
	}
	for _, c := range []struct {
		name, accept string
		door         lambdaedge.Door
		types        []string
		want         string
	}{
		{"function URL", "", lambdaedge.FunctionURL, nil, "\xff\x00"},
		{"HTTP API", "", lambdaedge.HTTPAPI, nil, "\xff\x00"},
		{"REST API without binary types", "image/png", lambdaedge.RESTAPI, nil, "/wA="},
		{"REST API, asked for first", "image/png, */*", lambdaedge.RESTAPI, []string{"image/png"}, "\xff\x00"},
		{"REST API, asked for second", "text/html, image/png", lambdaedge.RESTAPI, []string{"image/png"}, "/wA="},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := door(t, c.door, h, gateway.Options{BinaryTypes: c.types})
			if _, body := send(t, g, request("GET", g.Prefix()+"/", "", "Accept", c.accept)); body != c.want {
				t.Errorf("%q, want %q", body, c.want)
			}
		})
	}
}

// TestWait: the door stops waiting; each says so in its own way.
func TestWait(t *testing.T) {
	for d, want := range map[lambdaedge.Door]int{lambdaedge.FunctionURL: 502, lambdaedge.HTTPAPI: 503, lambdaedge.RESTAPI: 504} {
		release := make(chan struct{})
		g := raw(t, d, func(context.Context, []byte) ([]byte, error) { <-release; return nil, errors.New("late") },
			gateway.Options{Timeout: time.Millisecond})
		if res, _ := send(t, g, request("GET", g.Prefix()+"/", "")); res.StatusCode != want {
			t.Errorf("%s: %d, want %d", d, res.StatusCode, want)
		}
		close(release)
	}
}

// TestClientGone: Lambda does not cancel an invocation whose client left.
func TestClientGone(t *testing.T) {
	for _, d := range doors() {
		ctx, cancel := context.WithCancel(t.Context())
		g := raw(t, d, func(inner context.Context, _ []byte) ([]byte, error) {
			cancel()
			return []byte(`{"statusCode":200}`), inner.Err()
		}, gateway.Options{})
		if res, _ := send(t, g, request("GET", g.Prefix()+"/", "").WithContext(ctx)); res.StatusCode != 200 {
			t.Errorf("%s: %d", d, res.StatusCode)
		}
	}
}

// closing notes that it was closed.
type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error { c.closed = true; return nil }

// TestBodyIsClosed as http.RoundTripper demands, whether the door reads it or not.
func TestBodyIsClosed(t *testing.T) {
	for _, target := range []string{"/live/mcp", "/refused"} {
		r, body := request("POST", target, ""), &closing{Reader: strings.NewReader("{}")}
		r.Body = body
		send(t, door(t, lambdaedge.RESTAPI, note, gateway.Options{}), r)
		if !body.closed {
			t.Errorf("%s: the body was left open", target)
		}
	}
}

// TestUnreadableBody fails the round trip, as a connection that broke.
func TestUnreadableBody(t *testing.T) {
	r := request("POST", "/mcp", "")
	r.Body = io.NopCloser(iotest.ErrReader(errors.New("broken")))
	if _, err := door(t, lambdaedge.FunctionURL, note, gateway.Options{}).RoundTrip(r); err == nil {
		t.Error("a body that can't be read went through")
	}
}

// seen is what a handler can tell of a request.
type seen struct {
	Method, Path, Body string
	Query              map[string][]string
	Header             http.Header
}

func note(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	h := r.Header.Clone()
	for name := range h {
		if strings.HasPrefix(name, "X-Amzn-") || strings.HasPrefix(name, "X-Forwarded-") || name == "Content-Length" {
			h.Del(name)
		}
	}
	w.Header().Add("X-Two", "1")
	w.Header().Add("X-Two", "2")
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	_ = json.NewEncoder(w).Encode(seen{r.Method, r.URL.Path, string(body), r.URL.Query(), h})
}

// TestRoundTrip: but for the quirks above, a handler can't tell a door from net/http, and neither can its client.
func TestRoundTrip(t *testing.T) {
	for _, c := range []struct {
		name string
		r    func(prefix string) *http.Request
	}{
		{"plain", func(p string) *http.Request { return request("GET", p+"/", "") }},
		{"JSON", func(p string) *http.Request {
			return request("POST", p+"/mcp", `{"a":"ñ\u0000\"<>"}`, "Content-Type", "application/json", "Accept", "application/json, text/event-stream")
		}},
		{"commas in a header", func(p string) *http.Request {
			return request("POST", p+"/mcp", "{}", "Content-Type", "application/json", "Mcp-Name", "db://city/Seattle, WA")
		}},
		{"escaped path and query", func(p string) *http.Request { return request("GET", p+"/a%20b/%C3%B1?x=%26&y=a+b&x=2", "") }},
		{"cookies", func(p string) *http.Request { return request("GET", p+"/x", "", "Cookie", "a=1; b=2") }},
		{"delete without body", func(p string) *http.Request { return request("DELETE", p+"/mcp", "") }},
	} {
		for _, d := range doors() {
			t.Run(c.name+" "+string(d), func(t *testing.T) {
				g := door(t, d, note, gateway.Options{})
				res, got := send(t, g, c.r(g.Prefix()))
				direct := httptest.NewRecorder()
				note(direct, c.r(""))
				if got != direct.Body.String() || res.StatusCode != direct.Code {
					t.Errorf("got  %d %s\nwant %d %s", res.StatusCode, got, direct.Code, direct.Body)
				}
				if two := strings.Join(res.Header.Values("X-Two"), ", "); two != "1, 2" || res.Header.Get("Content-Type") != "application/json" {
					t.Errorf("headers %v", res.Header)
				}
			})
		}
	}
}

// TestListener: behind a real server, to a real client.
func TestListener(t *testing.T) {
	for _, d := range doors() {
		g := door(t, d, note, gateway.Options{})
		server := httptest.NewServer(g)
		res, err := http.Post(server.URL+g.Prefix()+"/mcp", "application/json", strings.NewReader(`{}`)) //nolint:noctx // a test against loopback
		if err != nil {
			t.Fatal(err)
		}
		var got seen
		if err := json.NewDecoder(res.Body).Decode(&got); err != nil || got.Path != "/mcp" || got.Body != "{}" || res.StatusCode != 202 {
			t.Errorf("%s: %d %+v %v", d, res.StatusCode, got, err)
		}
		_ = res.Body.Close()
		server.Close()
	}
}

// FuzzRoundTrip: whatever a client sends arrives, or the door or the edge refuses it; nothing arrives changed.
func FuzzRoundTrip(f *testing.F) {
	f.Add("POST", "/mcp", "a=1", "text/plain", "hola", "v")
	f.Add("GET", "/a b/100%/x?y", "%zz", "", "", "a,b")
	f.Add("POST", "/mcp", "", "text/plain", "\xf3\xf3\xf3a", "v")
	f.Add("", "/mcp", "", "", "", "")
	f.Add("PUT", "/ñ", "x;y", "image/png", "\xff\xfe", "=?base64?SGVsbG8=?=")
	f.Fuzz(func(t *testing.T, method, path, query, kind, body, value string) {
		for _, d := range doors() {
			var got *http.Request
			var read []byte
			g := door(t, d, func(_ http.ResponseWriter, r *http.Request) {
				got = r
				read, _ = io.ReadAll(r.Body)
			}, gateway.Options{BinaryTypes: []string{"*/*"}})
			r := httptest.NewRequest("GET", "/", strings.NewReader(body))
			r.Method, r.URL.RawQuery = method, query
			r.URL.Path = g.Prefix() + "/" + path
			r.Header["Content-Type"], r.Header["X-Value"] = []string{kind}, []string{value}
			res, err := g.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			if got == nil {
				if res.StatusCode < 400 || res.StatusCode > 499 {
					t.Fatalf("%s: %d without the handler", d, res.StatusCode)
				}
				continue
			}
			wantPath := "/" + path
			if d == lambdaedge.HTTPAPI {
				wantPath, _, _ = strings.Cut(wantPath, "?")
			}
			if got.URL.Path != wantPath && got.URL.Path != fffd(wantPath) {
				t.Errorf("%s: path %q, want %q", d, got.URL.Path, wantPath)
			}
			if v := got.Header.Get("X-Value"); v != value && v != fffd(value) {
				t.Errorf("%s: header %q, want %q", d, v, value)
			}
			if string(read) != body && string(read) != fffd(body) {
				t.Errorf("%s: body %q, want %q", d, read, body)
			}
		}
	})
}

// fffd is what JSON makes of bytes that are no UTF-8.
func fffd(s string) string { return string([]rune(s)) }

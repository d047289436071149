package lambdaedge

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// reply is the union of the three doors' replies.
type reply struct {
	StatusCode        int
	Headers           map[string]string
	MultiValueHeaders map[string][]string
	Cookies           []string
	Body              string
	IsBase64Encoded   bool
}

func (r reply) bytes(t *testing.T) []byte {
	t.Helper()
	if !r.IsBase64Encoded {
		return []byte(r.Body)
	}
	b, err := base64.StdEncoding.DecodeString(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func decodeReply(t *testing.T, out []byte) reply {
	t.Helper()
	var r reply
	d := json.NewDecoder(bytes.NewReader(out))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		t.Fatalf("reply %.300q: %v", out, err)
	}
	return r
}

func invoke(t *testing.T, h *Handler, payload []byte) reply {
	t.Helper()
	out, err := h.Invoke(t.Context(), payload)
	if err != nil {
		t.Fatal(err)
	}
	return decodeReply(t, out)
}

// get is a function-URL event that a test changes.
func get(change func(*events.APIGatewayV2HTTPRequest)) []byte {
	e := events.APIGatewayV2HTTPRequest{Version: "2.0", RawPath: "/", Headers: map[string]string{"host": "x.lambda-url.eu-west-1.on.aws"}}
	e.RequestContext.DomainName = "x.lambda-url.eu-west-1.on.aws"
	e.RequestContext.HTTP.Method, e.RequestContext.HTTP.SourceIP = "GET", "203.0.113.7"
	e.RequestContext.RequestID = "req-1"
	if change != nil {
		change(&e)
	}
	b, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	return b
}

func rest(change func(*events.APIGatewayProxyRequest)) []byte {
	e := events.APIGatewayProxyRequest{Path: "/", HTTPMethod: "GET"}
	e.RequestContext.Stage, e.RequestContext.DomainName = "live", "mail.example.com"
	e.RequestContext.Identity.SourceIP = "2001:db8::7"
	if change != nil {
		change(&e)
	}
	b, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	return b
}

func TestRequestHeadersStayWhole(t *testing.T) {
	got, _ := recordEvent(t, get(func(e *events.APIGatewayV2HTTPRequest) {
		e.Headers["mcp-name"] = "db://city/Seattle, WA"
		e.Headers["accept"] = "application/json, text/event-stream"
		e.Headers["webhook-signature"] = "v1,abc"
		e.Headers["cookie"] = "a=1; b=2"
		e.Headers["x-forwarded-for"] = "6.6.6.6"
		e.Cookies = []string{"a=1", "b=2"}
	}))
	want := http.Header{
		"Mcp-Name": {"db://city/Seattle, WA"}, "Accept": {"application/json, text/event-stream"}, "Webhook-Signature": {"v1,abc"},
		"Cookie": {"a=1; b=2"}, "X-Forwarded-For": {"6.6.6.6"},
	}
	if !reflect.DeepEqual(got.header, want) {
		t.Errorf("header = %v\nwant %v", got.header, want)
	}
	if got.remote != "203.0.113.7:0" {
		t.Errorf("remote = %q: a header must not decide it", got.remote)
	}
	if got.host != "x.lambda-url.eu-west-1.on.aws" {
		t.Errorf("host = %q", got.host)
	}
}

func TestHeaderInTwoSpellingsIsTwoValues(t *testing.T) {
	got, _ := recordEvent(t, rest(func(e *events.APIGatewayProxyRequest) {
		e.Headers = map[string]string{"Authorization": "Bearer a", "authorization": "Bearer a", "X-A": "1"}
	}))
	if !reflect.DeepEqual(got.header, http.Header{"Authorization": {"Bearer a", "Bearer a"}, "X-A": {"1"}}) {
		t.Errorf("header = %v: one of two Authorization headers was chosen silently", got.header)
	}
}

func TestAdapterVariableHasNoEffect(t *testing.T) {
	t.Setenv("GO_API_HOST", "https://evil.example/prefix")
	if got, _ := recordEvent(t, get(func(e *events.APIGatewayV2HTTPRequest) { e.RawPath = "/mcp" })); got.target != "/mcp" || got.path != "/mcp" {
		t.Errorf("target %q, path %q", got.target, got.path)
	}
}

func TestRestHeadersKeepTheirLines(t *testing.T) {
	got, _ := recordEvent(t, rest(func(e *events.APIGatewayProxyRequest) {
		e.Headers = map[string]string{"X-A": "2"}
		e.MultiValueHeaders = map[string][]string{"X-A": {"1", "2"}, "Authorization": {"Bearer a", "Bearer b"}}
		e.MultiValueQueryStringParameters = map[string][]string{"q": {"a b", "c&d"}, "n": {"1"}}
	}))
	if !reflect.DeepEqual(got.header, http.Header{"X-A": {"1", "2"}, "Authorization": {"Bearer a", "Bearer b"}}) {
		t.Errorf("header = %v", got.header)
	}
	if got.target != "/?n=1&q=a+b&q=c%26d" {
		t.Errorf("target = %q", got.target)
	}
}

func TestTargets(t *testing.T) {
	const api = "a1.execute-api.eu-west-1.amazonaws.com"
	tests := []struct {
		name, domain, path, query, want string
		wantPath                        string
	}{
		{"escaped path stays", "", "/api/v1/emails/a%2Fb", "", "/api/v1/emails/a%2Fb", "/api/v1/emails/a/b"},
		{"query stays as sent", "", "/x", "q=a%20b&q=c+d&&=", "/x?q=a%20b&q=c+d&&=", "/x"},
		{"no path", "", "", "", "/", "/"},
		{"two slashes are a path, not a host", "", "//evil.example/x", "", "//evil.example/x", "//evil.example/x"},
		{"at sign is a path, not a host", "", "/@evil.example", "", "/@evil.example", "/@evil.example"},
		{"HTTP API sends the path decoded", api, "/a b/100%", "", "/a%20b/100%25", "/a b/100%"},
		{"HTTP API: a decoded question mark is no query", api, "/x?admin=1", "", "/x%3Fadmin=1", "/x?admin=1"},
		{"HTTP API: a decoded hash is no fragment", api, "/x#y", "a=1", "/x%23y?a=1", "/x#y"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var path string
			h := New(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				path = r.URL.Path
				if r.RequestURI != tt.want || r.URL.Host != "" || r.URL.Scheme != "" || r.URL.RawQuery != tt.query {
					t.Errorf("target = %q, url %+v, want %q", r.RequestURI, r.URL, tt.want)
				}
			}), Options{Logger: quiet()})
			r := invoke(t, h, get(func(e *events.APIGatewayV2HTTPRequest) {
				e.RawPath, e.RawQueryString = tt.path, tt.query
				if tt.domain != "" {
					e.RequestContext.DomainName = tt.domain
				}
			}))
			if r.StatusCode != 200 || path != tt.wantPath {
				t.Errorf("status %d, path %q, want %q", r.StatusCode, path, tt.wantPath)
			}
		})
	}
}

func TestUnreadableRequestsAre400(t *testing.T) {
	never := New(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler was called") }), Options{Logger: quiet()})
	for name, change := range map[string]func(*events.APIGatewayV2HTTPRequest){
		"bad escape":         func(e *events.APIGatewayV2HTTPRequest) { e.RawPath = "/%zz" },
		"control in path":    func(e *events.APIGatewayV2HTTPRequest) { e.RawPath = "/a\x00b" },
		"method with space":  func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.HTTP.Method = "GET /x" },
		"body not base64":    func(e *events.APIGatewayV2HTTPRequest) { e.Body, e.IsBase64Encoded = "%%%", true },
		"newline in a query": func(e *events.APIGatewayV2HTTPRequest) { e.RawQueryString = "a=\r\nb" },
	} {
		t.Run(name, func(t *testing.T) {
			wantProblem(t, invoke(t, never, get(change)), 400, "invalid", "bad_request_target")
		})
	}
}

func wantProblem(t *testing.T, r reply, status int, kind, code string) {
	t.Helper()
	var p problem
	if err := json.Unmarshal([]byte(r.Body), &p); err != nil || r.StatusCode != status || p.Status != status || p.Kind != kind || p.Code != code {
		t.Fatalf("reply = %+v (%v), want %d %s/%s", r, err, status, kind, code)
	}
	if p.Title == "" || p.Detail == "" || p.RequestID != "req-1" {
		t.Errorf("problem = %+v: title, detail and request id belong to it", p)
	}
	if r.Headers["Content-Type"] != "application/problem+json" || r.Headers["Cache-Control"] != "no-store" {
		t.Errorf("headers = %v", r.Headers)
	}
}

// TestOtherEvents: an event of no front door must fail the invocation, for an answer would tell a queue that it was handled.
func TestOtherEvents(t *testing.T) {
	never := New(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler was called") }), Options{Logger: quiet()})
	for name, payload := range map[string]string{
		"empty": "", "null": "null", "list": "[]", "text": `"hello"`, "object": "{}", "cut": `{"version":"2.0"`, "binary": "\x00\xff",
		"SQS":                `{"Records":[{"messageId":"m","body":"secret-canary","eventSource":"aws:sqs"}]}`,
		"S3":                 `{"Records":[{"eventVersion":"2.1","eventSource":"aws:s3","s3":{"object":{"key":"secret-canary"}}}]}`,
		"SNS":                `{"Records":[{"EventSource":"aws:sns","Sns":{"Message":"secret-canary"}}]}`,
		"schedule":           `{"version":"0","source":"aws.events","detail-type":"Scheduled Event","detail":{}}`,
		"load balancer":      `{"requestContext":{"elb":{"targetGroupArn":"arn"}},"httpMethod":"GET","path":"/","headers":{},"body":"","isBase64Encoded":false}`,
		"payload format 1.0": `{"version":"1.0","path":"/","httpMethod":"GET","requestContext":{"stage":"$default"}}`,
		"web socket":         `{"requestContext":{"routeKey":"$connect","eventType":"CONNECT","stage":"live"},"isBase64Encoded":false}`,
		"wrong types":        `{"version":"2.0","rawPath":7,"body":"secret-canary"}`,
	} {
		t.Run(name, func(t *testing.T) {
			out, err := never.Invoke(t.Context(), []byte(payload))
			if !errors.Is(err, ErrNotHTTP) || out != nil {
				t.Fatalf("Invoke = %q, %v, want ErrNotHTTP", out, err)
			}
			if strings.Contains(err.Error(), "canary") {
				t.Errorf("the error carries the event: %v", err)
			}
		})
	}
}

// TestRepliesAsNetHTTP serves each handler behind net/http's own server and behind every door: what the client sees is equal.
func TestRepliesAsNetHTTP(t *testing.T) {
	handlers := map[string]http.HandlerFunc{
		"writes nothing":            func(http.ResponseWriter, *http.Request) {},
		"implicit 200":              func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hi") },
		"a refusal stays a refusal": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401); w.WriteHeader(200) },
		"late header": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "x")
			w.Header().Set("X-Late", "1")
		},
		"header after WriteHeader": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(202)
			w.Header().Set("X-Late", "1")
		},
		"values with commas and several": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="https://h", scope="a b"`)
			w.Header()["X-Many"] = []string{"1", "2"}
			w.WriteHeader(401)
		},
		"cookies": func(w http.ResponseWriter, _ *http.Request) {
			http.SetCookie(w, &http.Cookie{Name: "a", Value: "1"})
			http.SetCookie(w, &http.Cookie{Name: "b", Value: "2", Path: "/"})
		},
		"sniffed HTML": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<!doctype html><p>hi") },
		"binary":       func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte{0, 1, 0xff, 0xfe}) },
		"text of all kinds": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "\"\\\n\r\t\x00\x1f</script>\u2028ñ😀")
		},
		"no content":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204); _, _ = io.WriteString(w, "ignored") },
		"early hints": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); w.WriteHeader(418) },
		"line break in value": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-A", "1\r\nSet-Cookie: x=1")
		},
		"invalid header name": func(w http.ResponseWriter, _ *http.Request) { w.Header()["X Y"] = []string{"1"} },
		"flush first": func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).Flush()
			w.WriteHeader(500)
		},
		"own content length": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "2")
			_, _ = io.WriteString(w, "hi")
		},
	}
	for name, handler := range handlers {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(handler)
			defer s.Close()
			for _, method := range []string{"GET", "HEAD"} {
				compare(t, method, s.URL, New(handler, Options{Logger: quiet()}))
			}
		})
	}
}

func compare(t *testing.T, method, url string, h *Handler) {
	t.Helper()
	req, _ := http.NewRequestWithContext(t.Context(), method, url, nil)
	want, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer want.Body.Close() //nolint:errcheck // read to its end below
	wantBody, _ := io.ReadAll(want.Body)
	for _, name := range []string{"Date", "Content-Length", "Transfer-Encoding"} {
		want.Header.Del(name) // the door's own business
	}
	url2 := invoke(t, h, get(func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.HTTP.Method = method }))
	rest1 := invoke(t, h, rest(func(e *events.APIGatewayProxyRequest) { e.HTTPMethod = method }))
	flowing := New(h.next, Options{Logger: quiet(), Stream: true})
	url3 := stream(t, flowing, get(func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.HTTP.Method = method }))
	for door, r := range map[string]reply{"function URL": url2, "streamed function URL": url3, "REST API": rest1} {
		got := http.Header{}
		for k, v := range r.Headers {
			got[k] = []string{v}
		}
		for k, v := range r.MultiValueHeaders {
			got[k] = v
		}
		if len(r.Cookies) > 0 {
			got["Set-Cookie"] = r.Cookies
		}
		wantHeader := want.Header.Clone()
		if door != "REST API" && len(wantHeader["X-Many"]) > 0 {
			wantHeader["X-Many"] = []string{"1, 2"} // the same list, RFC 9110 section 5.2
		}
		if method == "HEAD" {
			wantHeader.Del("Content-Type") // sniffing differs: net/http looks at what it then drops
			got.Del("Content-Type")
		}
		if r.StatusCode != want.StatusCode || !bytes.Equal(r.bytes(t), wantBody) || !reflect.DeepEqual(got, wantHeader) {
			t.Errorf("%s %s: %d %v %q\nnet/http: %d %v %q", door, method, r.StatusCode, got, r.Body, want.StatusCode, wantHeader, wantBody)
		}
	}
}

func TestPanicIsA500AndTheProcessLives(t *testing.T) {
	var log bytes.Buffer
	h := New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Partial", "1")
		_, _ = io.WriteString(w, "half a reply")
		switch r.URL.Path {
		case "/runtime":
			_ = []int{}[len(r.URL.Path)]
		case "/error":
			panic(errors.New("password=secret-canary"))
		case "/abort":
			panic(http.ErrAbortHandler)
		case "/status":
			w2 := w.(*writer)
			w2.status = 0
			w.WriteHeader(7)
		}
	}), Options{Logger: slog.New(slog.NewJSONHandler(&log, nil))})
	for _, path := range []string{"/runtime", "/error", "/abort", "/status"} {
		log.Reset()
		r := invoke(t, h, get(func(e *events.APIGatewayV2HTTPRequest) { e.RawPath = path }))
		wantProblem(t, r, 500, "internal", "internal")
		if r.Headers["X-Partial"] != "" || strings.Contains(r.Body, "half") {
			t.Errorf("%s: a half reply was sent: %+v", path, r)
		}
		line := log.String()
		if strings.Count(line, "\n") != 1 || !strings.Contains(line, `"request_id":"req-1"`) || !strings.Contains(line, "edge_test.go") {
			t.Errorf("%s: log = %q, want one line with the request id and the stack", path, line)
		}
		if strings.Contains(line+r.Body, "canary") {
			t.Errorf("%s: the text of the panic got out", path)
		}
	}
	if r := invoke(t, h, get(nil)); r.StatusCode != 200 || r.Body != "half a reply" {
		t.Errorf("after the panics: %+v", r)
	}
}

func TestReplyLimit(t *testing.T) {
	// The limit is of the whole reply, escapes included: quotes double.
	serve := func(limit int, body string) reply {
		h := New(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, body)
		}), Options{Logger: quiet(), MaxReply: limit})
		out, err := h.Invoke(t.Context(), get(nil))
		if err != nil {
			t.Fatal(err)
		}
		if r := decodeReply(t, out); r.StatusCode != 200 {
			return r
		}
		if len(out) > limit {
			t.Errorf("%d bytes over the limit of %d", len(out), limit)
		}
		return decodeReply(t, out)
	}
	frame := len(`{"statusCode":200,"headers":{"Content-Type":"text/plain"},"body":"","isBase64Encoded":false}`)
	if r := serve(frame+1000, strings.Repeat("a", 1000)); r.StatusCode != 200 || len(r.Body) != 1000 {
		t.Errorf("just within the limit: %d", r.StatusCode)
	}
	wantProblem(t, serve(frame+999, strings.Repeat("a", 1000)), 413, "too_large", "reply_too_large")
	wantProblem(t, serve(frame+1999, strings.Repeat(`"`, 1000)), 413, "too_large", "reply_too_large")
	wantProblem(t, serve(frame+1335, strings.Repeat("\xff", 1000)), 413, "too_large", "reply_too_large")
	wantProblem(t, serve(500, strings.Repeat("a", 1000)), 413, "too_large", "reply_too_large")
}

func TestOverflowingWriteFails(t *testing.T) {
	var err error
	h := New(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 100 {
			if _, err = w.Write(make([]byte, 1000)); err != nil {
				return
			}
		}
	}), Options{Logger: quiet(), MaxReply: 5000})
	wantProblem(t, invoke(t, h, get(nil)), 413, "too_large", "reply_too_large")
	if !errors.Is(err, errReplyTooLarge) {
		t.Errorf("Write = %v: the handler must learn that it may stop", err)
	}
}

func TestDeadlineIsBeforeLambdas(t *testing.T) {
	var got time.Time
	var has bool
	h := New(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got, has = r.Context().Deadline() }), Options{Margin: time.Minute})
	end := time.Now().Add(time.Hour)
	ctx, cancel := context.WithDeadline(t.Context(), end)
	defer cancel()
	if _, err := h.Invoke(ctx, get(nil)); err != nil || !has || !got.Equal(end.Add(-time.Minute)) {
		t.Errorf("deadline = %s (%t), %v, want %s", got, has, err, end.Add(-time.Minute))
	}
	end = time.Now().Add(20 * time.Second)
	short, cancel2 := context.WithDeadline(t.Context(), end)
	defer cancel2()
	if _, err := h.Invoke(short, get(nil)); err != nil || !got.After(time.Now()) || !got.Before(end) {
		t.Errorf("deadline = %s with less than a margin left, want one before %s", got, end)
	}
	if _, err := h.Invoke(t.Context(), get(nil)); err != nil || has {
		t.Errorf("a deadline was invented: %s", got)
	}
}

func TestOrigin(t *testing.T) {
	var origin string
	var ok bool
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { origin, ok = OriginFrom(r.Context()) })
	h := New(handler, Options{Logger: quiet()})
	invoke(t, h, get(func(e *events.APIGatewayV2HTTPRequest) {
		e.Headers["host"], e.Headers["x-forwarded-host"] = "evil.example", "evil.example"
	}))
	if !ok || origin != "https://x.lambda-url.eu-west-1.on.aws" {
		t.Errorf("origin = %q, %t: headers must not decide it", origin, ok)
	}
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	if ok {
		t.Error("an origin outside Lambda")
	}
}

func TestConcurrentInvocations(t *testing.T) {
	h := New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) }), Options{Logger: quiet()})
	var wg sync.WaitGroup
	for i := range 8 {
		path := "/" + strings.Repeat("a", i)
		wg.Go(func() {
			for range 100 {
				out, err := h.Invoke(t.Context(), get(func(e *events.APIGatewayV2HTTPRequest) { e.RawPath = path }))
				if err != nil || !bytes.Contains(out, []byte(`"body":"`+path+`"`)) {
					t.Errorf("reply = %q, %v", out, err)
				}
			}
		})
	}
	wg.Wait()
}

package gateway_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/lambdaedge"
	"github.com/buzon-mail/buzon/shared/lambdaedge/gateway"
)

// flow is a streamed function URL before the edge and a handler.
func flow(t *testing.T, h http.HandlerFunc) *gateway.Gateway {
	t.Helper()
	edge := lambdaedge.New(h, lambdaedge.Options{Logger: slog.New(slog.DiscardHandler), Stream: true})
	return opened(t, func(ctx context.Context, event []byte) (gateway.Reply, error) {
		return edge.Stream(ctx, event)
	})
}

func opened(t *testing.T, open gateway.Open) *gateway.Gateway {
	t.Helper()
	g, err := gateway.NewStreamed(open, gateway.Options{Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// made is a reply that no edge of ours would give.
type made struct {
	io.Reader
	kind string
}

func (m made) ContentType() string { return m.kind }

// Close does nothing.
func (m made) Close() error { return nil }

// TestStreamedArrives: over a connection each event comes before the next is written.
func TestStreamedArrives(t *testing.T) {
	next := make(chan struct{})
	s := httptest.NewServer(flow(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, text := range []string{"one", "two", "end"} {
			_, _ = io.WriteString(w, "data: "+text+"\n\n")
			_ = http.NewResponseController(w).Flush()
			<-next
		}
	}))
	defer s.Close()
	res, err := s.Client().Get(s.URL + "/mcp")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // read to its end below
	for _, text := range []string{"one", "two", "end"} {
		want := "data: " + text + "\n\n"
		got := make([]byte, len(want))
		if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != want {
			t.Fatalf("%q, %v", got, err)
		}
		next <- struct{}{}
	}
	if rest, err := io.ReadAll(res.Body); len(rest) > 0 || err != nil || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("%q, %v, %v", rest, err, res.Header)
	}
}

func TestStreamedReplies(t *testing.T) {
	for _, tt := range []struct {
		name, method string
		h            http.HandlerFunc
		status       int
		body         string
		header       http.Header
	}{
		{"cookies and lists", "GET", func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Set-Cookie"] = []string{"a=1", "b=2; Path=/"}
			w.Header()["X-Many"] = []string{"1", "2"}
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(http.StatusTeapot)
			_, _ = io.WriteString(w, "tea")
		}, 418, "tea", http.Header{"Set-Cookie": {"a=1", "b=2; Path=/"}, "X-Many": {"1, 2"}, "Content-Type": {"text/plain"}}},
		{"challenge", "POST", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
		}, 401, "", http.Header{"X-Amzn-Remapped-Www-Authenticate": {"Bearer"}, "Content-Type": {"application/json"}}},
		{"nothing", "GET", func(http.ResponseWriter, *http.Request) {}, 200, "", http.Header{"Content-Type": {"application/octet-stream"}}},
		{"no content", "GET", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, 204, "", http.Header{"Content-Type": {"application/octet-stream"}}},
		{"HEAD", "HEAD", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, "dropped")
		}, 200, "", http.Header{"Content-Type": {"text/plain"}}},
		{"panic", "GET", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "half"); panic("x") }, 500, "*internal", nil},
		{"binary", "GET", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/zip")
			_, _ = w.Write([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0xff})
		}, 200, "\x00\x00\x00\x00\x00\x00\x00\x00\xff", http.Header{"Content-Type": {"application/zip"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res, body := send(t, flow(t, tt.h), request(tt.method, "/x", ""))
			part, some := strings.CutPrefix(tt.body, "*")
			if res.StatusCode != tt.status || !some && body != tt.body || !strings.Contains(body, part) {
				t.Errorf("%d %q", res.StatusCode, body)
			}
			for name, want := range tt.header {
				if got := res.Header[name]; strings.Join(got, "|") != strings.Join(want, "|") {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
		})
	}
}

// TestStreamedBreaks: what breaks off after its first byte breaks for the client too.
func TestStreamedBreaks(t *testing.T) {
	g := flow(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic("x")
	})
	s := httptest.NewUnstartedServer(g)
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.Start()
	defer s.Close()
	res, err := s.Client().Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // it is broken
	if body, err := io.ReadAll(res.Body); string(body) != "half" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("over a connection: %q, %v", body, err)
	}
	direct, err := g.RoundTrip(request("GET", "/", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer direct.Body.Close() //nolint:errcheck // it is broken
	if body, err := io.ReadAll(direct.Body); string(body) != "half" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("without one: %q, %v", body, err)
	}
}

// TestStreamedClientLeaves: the invocation goes on to its end.
func TestStreamedClientLeaves(t *testing.T) {
	left, done := make(chan struct{}), make(chan error, 1)
	s := httptest.NewServer(flow(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "x")
		_ = http.NewResponseController(w).Flush()
		<-left
		for range 100 {
			_, _ = w.Write(make([]byte, 64<<10))
		}
		done <- r.Context().Err()
	}))
	res, err := s.Client().Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = res.Body.Read(make([]byte, 1))
	_ = res.Body.Close()
	close(left)
	if err := <-done; err != nil {
		t.Errorf("the handler's context: %v", err)
	}
	s.Close()
}

func TestStreamedFailures(t *testing.T) {
	const good = `{"statusCode":200,"headers":{}}` + "\x00\x00\x00\x00\x00\x00\x00\x00"
	for name, c := range map[string]struct {
		reply  gateway.Reply
		err    error
		status int
	}{
		"failed invocation": {nil, errors.New("x"), 502},
		"a buffered reply":  {made{strings.NewReader(`{"statusCode":200,"body":"x"}`), "application/json"}, nil, 502},
		"no zeroes":         {made{strings.NewReader(`{"statusCode":200}`), lambdaedge.StreamType}, nil, 502},
		"not JSON":          {made{strings.NewReader("{" + strings.Repeat("\x00", 8)), lambdaedge.StreamType}, nil, 502},
		"no status":         {made{strings.NewReader("{}" + strings.Repeat("\x00", 8)), lambdaedge.StreamType}, nil, 502},
		"endless prelude":   {made{strings.NewReader(strings.Repeat("a", 40_000) + good), lambdaedge.StreamType}, nil, 502},
		"own remapped": {made{strings.NewReader(`{"statusCode":200,"headers":{"x-amzn-remapped-date":"x"}}` + strings.Repeat("\x00", 8)),
			lambdaedge.StreamType}, nil, 500},
		"good": {made{strings.NewReader(good), lambdaedge.StreamType}, nil, 200},
	} {
		t.Run(name, func(t *testing.T) {
			g := opened(t, func(context.Context, []byte) (gateway.Reply, error) { return c.reply, c.err })
			if res, _ := send(t, g, request("GET", "/", "")); res.StatusCode != c.status {
				t.Errorf("status %d, want %d", res.StatusCode, c.status)
			}
		})
	}
	if _, err := gateway.NewStreamed(nil, gateway.Options{}); err == nil {
		t.Error("a door before nothing was made")
	}
}

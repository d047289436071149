package web

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/buzon-mail/buzon/shared/app/jsonlog"
	"github.com/buzon-mail/buzon/shared/tracecontext"
)

func TestRequestIDs(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]bool{}
	ids := &identified{random: rand.Reader}
	ids.next = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		type key struct{}
		id := ids.RequestID(r.Context())
		if again := ids.RequestID(context.WithValue(r.Context(), key{}, 1)); id != again || len(id) != 2*idBytes {
			t.Errorf("one request has the ids %q and %q", id, again)
		}
		mu.Lock()
		defer mu.Unlock()
		if seen[id] {
			t.Errorf("two requests have the id %q", id)
		}
		seen[id] = true
	})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range idsDrawn {
				ids.ServeHTTP(nil, httptest.NewRequest(http.MethodGet, "/", nil))
			}
		})
	}
	all.Wait()
	if len(seen) != 8*idsDrawn {
		t.Errorf("%d ids", len(seen))
	}
	if id := ids.RequestID(t.Context()); id != "" {
		t.Errorf("outside of a request: %q", id)
	}
	broken := &identified{random: iotest.ErrReader(errors.New("none"))}
	if id := broken.RequestID(&requestID{Context: t.Context()}); id != "" {
		t.Errorf("without randomness: %q", id)
	}
	named := &identified{platform: func(context.Context) string { return "aws-1" }}
	if id := named.RequestID(&requestID{Context: t.Context()}); id != "aws-1" {
		t.Errorf("the platform's: %q", id)
	}
}

// TestTraceOfHeaders: one well-formed traceparent is followed, before what the platform says; anything else changes nothing.
func TestTraceOfHeaders(t *testing.T) {
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	platform := tracecontext.Context{TraceID: "5759e988bd862e3fe1be46a994272793"}
	for name, tt := range map[string]struct {
		header http.Header
		trace  string
		state  string
	}{
		"good":           {http.Header{"Traceparent": {parent}, "Tracestate": {"a=1", "b=2"}}, "4bf92f3577b34da6a3ce929d0e0e4736", "a=1,b=2"},
		"none":           {http.Header{}, platform.TraceID, ""},
		"two":            {http.Header{"Traceparent": {parent, parent}}, platform.TraceID, ""},
		"malformed":      {http.Header{"Traceparent": {"x"}, "Tracestate": {"a=1"}}, platform.TraceID, ""},
		"another's name": {http.Header{"Trace-Parent": {parent}}, platform.TraceID, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got tracecontext.Context
			ids := &identified{random: rand.Reader, next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = tracecontext.From(r.Context()) })}
			r := httptest.NewRequestWithContext(tracecontext.With(t.Context(), platform), http.MethodPost, "/mcp", nil)
			r.Header = tt.header
			ids.ServeHTTP(httptest.NewRecorder(), r)
			if got.TraceID != tt.trace || got.State != tt.state {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestLoggedRequest: the line of a request that is not MCP's names its door and never its path, and a made-up method is other.
func TestLoggedRequest(t *testing.T) {
	var out bytes.Buffer
	l := &logged{next: http.HandlerFunc(missing), log: jsonlog.New(&out), clock: time.Now, id: func(context.Context) string { return "req_1" }, door: "unknown"}
	r := httptest.NewRequest("CANARY", "/canary?canary", nil)
	r.Header.Set("Authorization", "Bearer canary")
	l.ServeHTTP(httptest.NewRecorder(), r)
	line := out.String()
	if strings.Contains(strings.ToLower(line), "canary") || strings.Contains(line, "dropped_fields") || !strings.Contains(line, `"door":"unknown","http.request.method":"other","http.response.status_code":404`) {
		t.Errorf("%s", line)
	}
}

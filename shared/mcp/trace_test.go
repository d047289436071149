package mcp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/mcp"
	"github.com/buzon-mail/buzon/shared/tracecontext"
)

// TestTraceOfMeta: _meta says where a call stands in its caller's trace, in both eras and before what the transport says; the tool and
// the log line stand there too. What is malformed or ambiguous is not followed and refuses nothing by itself.
func TestTraceOfMeta(t *testing.T) {
	const (
		parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
		id     = "4bf92f3577b34da6a3ce929d0e0e4736"
		outer  = "5759e988bd862e3fe1be46a994272793"
	)
	for name, tt := range map[string]struct {
		meta   string
		status int
		trace  string
		state  string
	}{
		"both":              {`"traceparent":"` + parent + `","tracestate":"a=1"`, 200, id, "a=1"},
		"escaped":           {`"traceparent":"\u0030` + parent[1:] + `"`, 200, id, ""},
		"none":              {``, 200, outer, ""},
		"state alone":       {`"tracestate":"a=1"`, 200, outer, ""},
		"malformed":         {`"traceparent":"canary"`, 200, outer, ""},
		"no text":           {`"traceparent":7`, 200, outer, ""},
		"state is no text":  {`"traceparent":"` + parent + `","tracestate":{}`, 200, id, ""},
		"twice":             {`"traceparent":"` + parent + `","traceparent":"` + parent + `"`, 400, outer, ""},
		"state of a canary": {`"traceparent":"` + parent + `","tracestate":"x=canary"`, 200, id, "x=canary"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			req := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(
				`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","_meta":{`+tt.meta+`}}}`))
			req.Header.Set("Authorization", "Bearer good")
			req.Header.Set("Content-Type", "application/json")
			req = req.WithContext(tracecontext.With(req.Context(), tracecontext.Context{TraceID: outer}))
			w := httptest.NewRecorder()
			r.ServeHTTP(w, req)
			if w.Code != tt.status {
				t.Fatalf("status %d: %s", w.Code, w.Body)
			}
			if !strings.Contains(r.log.String(), `"trace_id":"`+tt.trace+`"`) || strings.Contains(r.log.String(), "canary") {
				t.Errorf("log %s", r.log)
			}
			if tt.status == 200 && (r.tools.trace.TraceID != tt.trace || r.tools.trace.State != tt.state) {
				t.Errorf("the tool stands in %+v", r.tools.trace)
			}
		})
	}
}

// TestContextOfTheRequest: what Deps.Context makes of a request is where its tool, its log line and its id stand, and _meta is nearer still.
func TestContextOfTheRequest(t *testing.T) {
	const (
		parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
		inner  = "4bf92f3577b34da6a3ce929d0e0e4736"
		outer  = "5759e988bd862e3fe1be46a994272793"
	)
	type key struct{}
	for meta, want := range map[string]string{``: outer, `"traceparent":"` + parent + `"`: inner} {
		r := newRig(t, func(d *mcp.Deps, _ *mcp.Options) {
			d.Context = func(r *http.Request) context.Context {
				return context.WithValue(tracecontext.With(r.Context(), tracecontext.Context{TraceID: outer}), key{}, r.Header.Get("X-Canary"))
			}
			d.RequestID = func(ctx context.Context) string {
				id, _ := ctx.Value(key{}).(string)
				return id
			}
		})
		req := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","_meta":{`+meta+`}}}`))
		req.Header.Set("Authorization", "Bearer good")
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Canary", "req_1")
		w := httptest.NewRecorder()
		r.ServeHTTP(w, req)
		if w.Code != http.StatusOK || r.tools.trace.TraceID != want {
			t.Errorf("status %d, the tool stands in %+v, want %s", w.Code, r.tools.trace, want)
		}
		if line := r.log.String(); !strings.Contains(line, `"trace_id":"`+want+`"`) || !strings.Contains(line, `"request_id":"req_1"`) {
			t.Errorf("log %s", line)
		}
	}
}

package mcp_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/buzon-mail/buzon/shared/mcp"
)

func nothing(context.Context, *mcp.LegacyRequest) error { return nil }

func TestNewRefuses(t *testing.T) {
	ok := func() (mcp.Deps, mcp.Options) {
		return mcp.Deps{Authenticator: door{}, Challenger: door{}, Limiter: &meter{}, Tools: &toolbox{}}, mcp.Options{Name: "n", Version: "1"}
	}
	d, o := ok()
	if _, err := mcp.New(d, o); err != nil {
		t.Fatalf("the least that is needed: %v", err)
	}
	for name, spoil := range map[string]func(*mcp.Deps, *mcp.Options){
		"no authenticator":   func(d *mcp.Deps, _ *mcp.Options) { d.Authenticator = nil },
		"no challenger":      func(d *mcp.Deps, _ *mcp.Options) { d.Challenger = nil },
		"no limiter":         func(d *mcp.Deps, _ *mcp.Options) { d.Limiter = nil },
		"no tools":           func(d *mcp.Deps, _ *mcp.Options) { d.Tools = nil },
		"no name":            func(_ *mcp.Deps, o *mcp.Options) { o.Name = "" },
		"no version":         func(_ *mcp.Deps, o *mcp.Options) { o.Version = "" },
		"negative body":      func(_ *mcp.Deps, o *mcp.Options) { o.MaxBody = -1 },
		"negative outage":    func(_ *mcp.Deps, o *mcp.Options) { o.Outage = -1 },
		"origin with a path": func(_ *mcp.Deps, o *mcp.Options) { o.PublicOrigin = "https://a.test/mcp" },
		"origin, no scheme":  func(_ *mcp.Deps, o *mcp.Options) { o.AllowedOrigins = []string{"a.test"} },
		"origin, wildcard":   func(_ *mcp.Deps, o *mcp.Options) { o.AllowedOrigins = []string{"*"} },
		"origin, other":      func(_ *mcp.Deps, o *mcp.Options) { o.AllowedOrigins = []string{"ftp://a.test"} },
		"origin with a user": func(_ *mcp.Deps, o *mcp.Options) { o.AllowedOrigins = []string{"https://u@a.test"} },
		"origin, not a URL":  func(_ *mcp.Deps, o *mcp.Options) { o.AllowedOrigins = []string{"https://a.test:x"} },
		"negative page":      func(_ *mcp.Deps, o *mcp.Options) { o.PageLimit = -1 },
		"legacy, of ours":    func(d *mcp.Deps, _ *mcp.Options) { d.Legacy = map[string]mcp.LegacyMethod{"tools/call": nothing} },
		"legacy, unknown":    func(d *mcp.Deps, _ *mcp.Options) { d.Legacy = map[string]mcp.LegacyMethod{"tasks/get": nothing} },
		"legacy, nil":        func(d *mcp.Deps, _ *mcp.Options) { d.Legacy = map[string]mcp.LegacyMethod{"logging/setLevel": nil} },
		"legacy, no resources": func(d *mcp.Deps, _ *mcp.Options) {
			d.Legacy = map[string]mcp.LegacyMethod{"resources/subscribe": nothing}
		},
		"header with a space": func(_ *mcp.Deps, o *mcp.Options) { o.AllowedHeaders = []string{"a b"} },
	} {
		d, o := ok()
		spoil(&d, &o)
		if s, err := mcp.New(d, o); err == nil || s != nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestWhatToolsSee: the request reaches the tools unescaped and typed, and nothing of it is run twice.
func TestWhatToolsSee(t *testing.T) {
	r := newRig(t, nil)
	modern(t, r, "tools/call", `"name":"echo","arguments":{"a":1},`, "Mcp-Name", "echo", "X-Workspace-Id", "ws_1")
	post(t, r, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\u0065cho","_meta":{"io.modelcontextprotocol/clientCapabilities":{"x":1}}}}`)
	post(t, r, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"`+nextCursor(t, r, "")+`"}}`)
	if len(r.tools.calls) != 2 || len(r.tools.lists) != 2 {
		t.Fatalf("%d calls, %d lists", len(r.tools.calls), len(r.tools.lists))
	}
	first, second, list := r.tools.calls[0], r.tools.calls[1], r.tools.lists[1]
	if first.Version != mcp.V20260728 || first.Name != "echo" || string(first.Arguments) != `{"a":1}` || string(first.Capabilities) != "{}" ||
		first.Caller.GrantID() != "grant_good" || first.Header.Get("X-Workspace-Id") != "ws_1" {
		t.Errorf("2026: %+v", first)
	}
	if second.Version != mcp.V20250618 || second.Name != "echo" || second.Arguments != nil || second.Capabilities != nil {
		t.Errorf("2025: %+v", second)
	}
	if list.Cursor != `page "2"` || list.Version != mcp.V20250618 {
		t.Errorf("list: %+v", list)
	}
	if r.tools.released != 2 {
		t.Errorf("Released was called %d times for 2 results", r.tools.released)
	}
}

// nextCursor lists tools from cursor on and returns the cursor of the page after.
func nextCursor(t *testing.T, r *rig, cursor string) string {
	t.Helper()
	params := ""
	if cursor != "" {
		params = `"cursor":"` + cursor + `",`
	}
	_, m := modern(t, r, "tools/list", params)
	next, ok := members(t, m.Result)["nextCursor"].(string)
	if !ok {
		t.Fatalf("no cursor: %s", m.Result)
	}
	return next
}

// TestCanary drives an error that carries a secret through every surface: it is in the log, once, and nowhere else.
func TestCanary(t *testing.T) {
	for name, send := range map[string]func(*rig) *httptest.ResponseRecorder{
		"tool error": func(r *rig) *httptest.ResponseRecorder {
			w, _ := post(t, r, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"internal"}}`)
			return w
		},
		"tool panic": func(r *rig) *httptest.ResponseRecorder {
			w, _ := modern(t, r, "tools/call", `"name":"panics",`, "Mcp-Name", "panics")
			return w
		},
		"tool outage": func(r *rig) *httptest.ResponseRecorder {
			w, _ := modern(t, r, "tools/call", `"name":"down",`, "Mcp-Name", "down")
			return w
		},
		"list error": func(r *rig) *httptest.ResponseRecorder {
			c := nextCursor(t, r, nextCursor(t, r, ""))
			r.log.Reset()
			w, _ := modern(t, r, "tools/list", `"cursor":"`+c+`",`)
			return w
		},
		"authenticator error": func(r *rig) *httptest.ResponseRecorder {
			w, _ := modern(t, r, "tools/list", "", "Authorization", "Bearer broken")
			return w
		},
		"authenticator outage": func(r *rig) *httptest.ResponseRecorder {
			w, _ := modern(t, r, "tools/list", "", "Authorization", "Bearer down")
			return w
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			w := send(r)
			all := w.Body.String()
			for k, v := range w.Header() {
				all += k + strings.Join(v, "")
			}
			if strings.Contains(all, "canary") {
				t.Errorf("it leaks to the caller: %s", all)
			}
			if n := strings.Count(r.log.String(), "canary"); n != 1 {
				t.Errorf("it is in the log %d times, want once: %s", n, r.log)
			}
			if n := strings.Count(r.log.String(), "\n"); n != 1 {
				t.Errorf("%d log lines, want one", n)
			}
		})
	}
}

// TestLogAllowList: what only the caller made up does not reach the log.
func TestLogAllowList(t *testing.T) {
	r := newRig(t, nil)
	secret := "s3cret"
	post(t, r, `{"jsonrpc":"2.0","id":"`+secret+`","method":"`+secret+`","params":{"name":"`+secret+`"}}`)
	post(t, r, `{"jsonrpc":"2.0","id":"`+secret+`","method":"tools/call","params":{"name":"`+secret+`"}}`)
	post(t, r, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"code":"`+secret+`"}}}`)
	post(t, r, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "MCP-Protocol-Version", secret)
	post(t, r, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Authorization", "Bearer "+secret)
	post(t, r, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Origin", "https://"+secret)
	modern(t, r, "resources/read", `"uri":"test://`+secret+`",`, "Mcp-Name", "test://"+secret)
	modern(t, r, "tools/call", `"name":"delete","inputResponses":{"`+secret+`":5},"requestState":"`+secret+`",`, "Mcp-Name", "delete")
	post(t, r, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"delete","arguments":{"a":"`+secret+`"},"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},"progressToken":"`+secret+`"}}}`,
		"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "delete")
	if strings.Contains(r.log.String(), secret) {
		t.Errorf("the log holds it: %s", r.log)
	}
	allowed := map[string]bool{}
	for _, k := range strings.Fields("time level msg request_id trace_id http.request.method mcp.method.name mcp.protocol.version http.response.status_code http.request.body.size " +
		"http.response.body.size us grant gen_ai.tool.name is_error asked streamed rpc.response.status_code error.type cancelled cause stack") {
		allowed[k] = true
	}
	lines := strings.Split(strings.TrimSpace(r.log.String()), "\n")
	if len(lines) != 9 {
		t.Fatalf("%d lines for 9 requests", len(lines))
	}
	if !strings.Contains(lines[8], `"asked":true`) {
		t.Errorf("the line of a question lacks it: %s", lines[8])
	}
	for _, line := range lines {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		for k := range fields {
			if !allowed[k] {
				t.Errorf("field %q is not on the list", k)
			}
		}
	}
	if !strings.Contains(lines[2], `"gen_ai.tool.name":"echo"`) || !strings.Contains(lines[2], `"grant":"grant_good"`) || !strings.Contains(lines[2], `"mcp.method.name":"tools/call"`) {
		t.Errorf("the line of a call lacks its facts: %s", lines[2])
	}
}

func TestCancelledClient(t *testing.T) {
	r := newRig(t, nil)
	r.tools.started = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-r.tools.started
		cancel()
	}()
	req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait"}}`))
	req.Header.Set("Authorization", "Bearer good")
	req.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	r.ServeHTTP(w, req)
	if !strings.Contains(r.log.String(), `"cancelled":true`) || strings.Contains(r.log.String(), `"level":"ERROR"`) {
		t.Errorf("log: %s", r.log)
	}
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("status %d: a server that shuts down still owes an answer", w.Code)
	}
}

// TestPanicIsOneRequest: after a panic the next request, on the same pool, is answered whole.
func TestPanicIsOneRequest(t *testing.T) {
	r := newRig(t, nil)
	for range 20 {
		if w, _ := modern(t, r, "tools/call", `"name":"panics",`, "Mcp-Name", "panics"); w.Code != 500 {
			t.Fatalf("panic: %d", w.Code)
		}
		if w, m := modern(t, r, "tools/call", `"name":"echo",`, "Mcp-Name", "echo"); w.Code != 200 || m.Result == nil {
			t.Fatalf("after a panic: %d %s", w.Code, w.Body)
		}
	}
}

// bomb is a limiter that panics.
type bomb struct{}

func (bomb) Take(context.Context, string) mcp.Limit { panic(errCanary) }
func (bomb) Peek(context.Context, string) mcp.Limit { panic(errCanary) }

// TestLimiterPanics: answered while the reply is prepared too, and only once.
func TestLimiterPanics(t *testing.T) {
	for _, method := range []string{"tools/list", "server/discover"} {
		r := newRig(t, func(d *mcp.Deps, _ *mcp.Options) { d.Limiter = bomb{} })
		w, m := modern(t, r, method, "")
		if w.Code != 500 || m.Error == nil || m.Error.Code != -32603 {
			t.Errorf("%s: %d %s", method, w.Code, w.Body)
		}
	}
}

type failingReader struct{ io.Reader }

func (f failingReader) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// TestBodyBreaksOff: what arrived may look like a whole message.
func TestBodyBreaksOff(t *testing.T) {
	for token, want := range map[string]int{"": http.StatusUnauthorized, "Bearer good": http.StatusBadRequest} {
		r := newRig(t, nil)
		req := httptest.NewRequest(http.MethodPost, "/mcp", failingReader{strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}`)})
		req.Header.Set("Content-Type", "application/json")
		if token != "" {
			req.Header.Set("Authorization", token)
		}
		w := httptest.NewRecorder()
		r.ServeHTTP(w, req)
		if w.Code != want || len(r.tools.calls) != 0 {
			t.Errorf("%q: %d after %d calls, want %d after none", token, w.Code, len(r.tools.calls), want)
		}
	}
}

// TestPooledBuffersStayApart: two callers at once never see each other's bytes.
func TestPooledBuffersStayApart(t *testing.T) {
	s, err := mcp.New(mcp.Deps{Authenticator: door{}, Challenger: door{}, Limiter: free{}, Tools: echo{}}, mcp.Options{Name: "n", Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				mark := strings.Repeat(strconv.Itoa(g), 1+i*7)
				_, m := modern(t, s, "tools/call", `"name":"`+mark+`","arguments":{"m":"`+mark+`"},`, "Mcp-Name", mark)
				if got := members(t, m.Result)["structuredContent"].(map[string]any); got["m"] != mark || len(got) != 1 {
					t.Errorf("goroutine %d got %v", g, got)
					return
				}
			}
		})
	}
	wg.Wait()
}

// echo returns the arguments themselves.
type echo struct{}

func (echo) ListTools(context.Context, *mcp.ListRequest) (mcp.ListResult, error) {
	return mcp.ListResult{}, nil
}

func (echo) CallTool(_ context.Context, r *mcp.CallRequest) (*mcp.CallResult, error) {
	return &mcp.CallResult{JSON: r.Arguments}, nil
}

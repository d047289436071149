package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/buzon-mail/buzon/shared/mcp"
)

// one is a toolbox with one tool.
type one struct{ call tool }

func (one) ListTools(context.Context, *mcp.ListRequest) (mcp.ListResult, error) {
	return mcp.ListResult{Items: [][]byte{[]byte(verbatim)}}, nil
}

func (o one) CallTool(ctx context.Context, r *mcp.CallRequest) (*mcp.CallResult, error) {
	return o.call(ctx, r)
}

const verbatim = `{"name":"t","inputSchema":{ "$schema" : "https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"a":{"$anchor":"x"}},` +
	`"properties":{"p":{"$ref":"https://schemas.example.invalid/p.json"},"q":{"$ref":"#/$defs/a"}},"if":{},"then":{},"maximum":1.0E0,"additionalProperties":false}}`

func newOne(tb testing.TB, call tool) *rig {
	tb.Helper()
	return newRig(tb, func(d *mcp.Deps, _ *mcp.Options) { d.Tools = one{call} })
}

const progressCall = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientCapabilities":{},"progressToken":"p"}}}`

func progressRequest(ctx context.Context, url string) *http.Request {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(progressCall))
	if err != nil {
		panic(err)
	}
	for k, v := range map[string]string{
		"Authorization": "Bearer good", "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "t",
	} {
		r.Header.Set(k, v)
	}
	return r
}

// TestSchemasPassVerbatim: nothing of an input schema is read, followed or rewritten.
func TestSchemasPassVerbatim(t *testing.T) {
	w, _ := modern(t, newOne(t, nil), "tools/list", "")
	if !strings.Contains(w.Body.String(), verbatim) {
		t.Errorf("changed: %s", w.Body)
	}
}

// TestStreamIsLive: an event reaches the client while the handler still runs.
func TestStreamIsLive(t *testing.T) {
	seen := make(chan struct{})
	server := httptest.NewServer(newOne(t, func(_ context.Context, r *mcp.CallRequest) (*mcp.CallResult, error) {
		if err := r.Notify.Progress(1, 0, ""); err != nil {
			return nil, err
		}
		<-seen // would wait for ever if the event were held back
		return answer(`{}`)
	}))
	defer server.Close()
	resp, err := http.DefaultClient.Do(progressRequest(t.Context(), server.URL))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // test
	lines := bufio.NewReader(resp.Body)
	if line, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(line, "data: {") {
		t.Fatalf("%q %v", line, err)
	}
	close(seen)
	if rest, err := io.ReadAll(lines); err != nil || !bytes.Contains(rest, []byte(`"result"`)) {
		t.Errorf("%q %v", rest, err)
	}
}

// TestStreamClientGone: a client that closes the stream cancels the handler, whatever its goroutines report meanwhile.
func TestStreamClientGone(t *testing.T) {
	ended := make(chan error, 1)
	server := httptest.NewServer(newOne(t, func(ctx context.Context, r *mcp.CallRequest) (*mcp.CallResult, error) {
		var wg sync.WaitGroup
		var next sync.Mutex
		n := 0.0
		for range 4 {
			wg.Go(func() {
				for ctx.Err() == nil {
					next.Lock()
					n++
					err := r.Notify.Progress(n, 0, "busy")
					next.Unlock()
					if err != nil {
						return
					}
				}
			})
		}
		<-ctx.Done()
		wg.Wait()
		ended <- r.Notify.Progress(n+1, 0, "late")
		return nil, ctx.Err()
	}))
	defer server.Close()
	resp, err := http.DefaultClient.Do(progressRequest(t.Context(), server.URL))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if err := <-ended; err == nil {
		t.Error("a notification to a client that is gone has no error")
	}
}

// TestNotifierAfterTheAnswer: a goroutine that outlives its call writes nothing, above all not into another request of the pool.
func TestNotifierAfterTheAnswer(t *testing.T) {
	var kept *mcp.Notifier
	r := newOne(t, func(_ context.Context, r *mcp.CallRequest) (*mcp.CallResult, error) {
		kept = r.Notify
		return answer(`{}`)
	})
	w := httptest.NewRecorder()
	r.ServeHTTP(w, progressRequest(t.Context(), "https://buzon.test/mcp"))
	before := w.Body.String()
	first := kept
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if err := first.Progress(float64(i+1), 0, "stray"); !errors.Is(err, mcp.ErrProgress) {
				t.Errorf("stray progress: %v", err)
			}
		})
		w := httptest.NewRecorder()
		r.ServeHTTP(w, progressRequest(t.Context(), "https://buzon.test/mcp"))
		if strings.Contains(w.Body.String(), "stray") {
			t.Errorf("it reached another request: %s", w.Body)
		}
	}
	wg.Wait()
	if w.Body.String() != before || first == nil {
		t.Errorf("the answer grew: %s", w.Body)
	}
}

// plain is a writer that can't flush, like a buffered front door.
type plain struct {
	h      http.Header
	status int
	body   bytes.Buffer
}

func (p *plain) Header() http.Header         { return p.h }
func (p *plain) WriteHeader(status int)      { p.status = status }
func (p *plain) Write(b []byte) (int, error) { return p.body.Write(b) }

func TestStreamWithoutFlush(t *testing.T) {
	r := newOne(t, func(_ context.Context, r *mcp.CallRequest) (*mcp.CallResult, error) {
		if err := errors.Join(r.Notify.Progress(1, 2, ""), r.Notify.Progress(2, 2, "")); err != nil {
			return nil, err
		}
		return answer(`{}`)
	})
	w := &plain{h: http.Header{}}
	r.ServeHTTP(w, progressRequest(t.Context(), "https://buzon.test/mcp"))
	if w.status != 200 || strings.Count(w.body.String(), "data: ") != 3 || !strings.HasSuffix(w.body.String(), "}}\n\n") {
		t.Errorf("%d %q", w.status, &w.body)
	}
}

// torn is a writer whose client is gone.
type torn struct{ plain }

func (*torn) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestStreamWriteFails(t *testing.T) {
	var got error
	r := newOne(t, func(_ context.Context, r *mcp.CallRequest) (*mcp.CallResult, error) {
		got = r.Notify.Progress(1, 2, "")
		return nil, got
	})
	r.ServeHTTP(&torn{plain{h: http.Header{}}}, progressRequest(t.Context(), "https://buzon.test/mcp"))
	if !errors.Is(got, io.ErrClosedPipe) {
		t.Errorf("the handler is told %v", got)
	}
}

// TestEveryRoundHasANonce: what makes an act happen once must not repeat.
func TestEveryRoundHasANonce(t *testing.T) {
	r := newRig(t, func(d *mcp.Deps, _ *mcp.Options) { d.Rand = nil })
	states := map[string]bool{}
	for range 50 {
		_, m := post(t, r, strings.ReplaceAll(askCall, "PARAMS", ""), askHeaders()...)
		state, ok := members(t, m.Result)["requestState"].(string)
		if !ok || states[state] {
			t.Fatalf("state %q", state)
		}
		states[state] = true
	}
}

// TestNoNonceNoQuestion: without randomness nobody is asked.
func TestNoNonceNoQuestion(t *testing.T) {
	r := newRig(t, func(d *mcp.Deps, _ *mcp.Options) { d.Rand = failingReader{strings.NewReader("x")} })
	w, m := post(t, r, strings.ReplaceAll(askCall, "PARAMS", ""), askHeaders()...)
	if w.Code != 500 || m.Error == nil {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

const askCall = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"delete",PARAMS"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`

func askHeaders() []string {
	return []string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "delete"}
}

// firstState asks and returns the state.
func firstState(tb testing.TB, r *rig) string {
	tb.Helper()
	_, m := post(tb, r, strings.ReplaceAll(askCall, "PARAMS", ""), askHeaders()...)
	state, ok := members(tb, m.Result)["requestState"].(string)
	if !ok {
		tb.Fatalf("no state: %s", m.Result)
	}
	return state
}

// FuzzInputResponses: whatever stands there, the tool acts only on what is a yes to encoding/json as well.
func FuzzInputResponses(f *testing.F) {
	for _, s := range []string{
		`{"confirm":{"action":"accept","content":{"confirm":true}}}`, `{"confirm":{"action":"accept","content":{"confirm":false}}}`, `{"confirm":{"action":"decline"}}`,
		`{}`, `null`, `[]`, `{"confirm":null}`, `{"x":{},"confirm":{"action":"cancel","content":null}}`, `{"confirm":{"action":"\u0061ccept","content":{"\u0063onfirm":true}}}`,
		`{"confirm":{"action":"accept","action":"decline","content":{"confirm":true}}}`, `{"confirm":{"roots":[]}}`, `{"confirm":{"action":"accept","content":{"confirm":true,"confirm":false}}}`,
	} {
		f.Add([]byte(s))
	}
	r := newRig(f, nil)
	state := firstState(f, r)
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			t.Skip() // it would be other members of params
		}
		r.log.Reset()
		w, m := post(t, r, strings.Replace(askCall, "PARAMS", `"requestState":"`+state+`","inputResponses":`+string(raw)+`,`, 1), askHeaders()...)
		if bytes.Contains(r.log.Bytes(), []byte(`"stack"`)) {
			t.Fatalf("panic: %s", r.log)
		}
		checkAnswer(t, w, []byte(askCall))
		if !strings.Contains(string(m.Result), "deleted") {
			return
		}
		var answers map[string]struct {
			Action  any
			Content map[string]any
		}
		if err := json.Unmarshal(raw, &answers); err != nil || answers["confirm"].Action != "accept" || answers["confirm"].Content["confirm"] != true {
			t.Fatalf("deleted upon %q: %v", raw, err)
		}
	})
}

// FuzzCursor: only a token that the server made is taken, as a cursor and as a state, and only as what it was made for.
func FuzzCursor(f *testing.F) {
	r := newRig(f, nil)
	_, m := modern(f, r, "resources/list", "")
	cursor, ok := members(f, m.Result)["nextCursor"].(string)
	if !ok {
		f.Fatalf("no cursor: %s", m.Result)
	}
	state := firstState(f, r)
	for _, s := range []string{"", "2", cursor, state, cursor + "A", cursor[1:], strings.ToLower(cursor), cursor + "=", "\n" + cursor, `"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, token string) {
		quoted, err := json.Marshal(token)
		if err != nil {
			t.Skip()
		}
		var sent string
		if err := json.Unmarshal(quoted, &sent); err != nil {
			t.Fatal(err)
		}
		_, m := modern(t, r, "resources/list", `"cursor":`+string(quoted)+`,`)
		if (m.Error == nil) != (sent == cursor) || m.Error != nil && m.Error.Code != -32602 {
			t.Fatalf("cursor %q: %+v %s", token, m.Error, m.Result)
		}
		_, m = post(t, r, strings.Replace(askCall, "PARAMS", `"inputResponses":{"confirm":{"action":"accept","content":{"confirm":true}}},"requestState":`+string(quoted)+`,`, 1), askHeaders()...)
		if (m.Error == nil) != (sent == state) || m.Error != nil && m.Error.Code != -32602 {
			t.Fatalf("state %q: %+v %s", token, m.Error, m.Result)
		}
	})
}

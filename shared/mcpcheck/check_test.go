package mcpcheck_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/mcpcheck"
)

func TestAGoodServerPasses(t *testing.T) {
	w := newWorld(t)
	report := w.check(t, mcpcheck.Options{Token: goodToken, Call: "look"})
	for _, n := range report.Results {
		if want := map[bool]mcpcheck.Status{true: mcpcheck.Skipped, false: mcpcheck.Pass}[n.ID == "address-pinning"]; n.Status != want {
			t.Errorf("%s: got %s (%s), want %s", n.ID, n.Status, n.Got, want)
		}
		if n.Mend != "" {
			t.Errorf("%s: there is nothing to mend, yet: %s", n.ID, n.Mend)
		}
	}
	if w.calls.Load() != 1 {
		t.Errorf("%d tool calls, want the one that was asked for", w.calls.Load())
	}
	if int(w.asked.Load()) != report.Requests || report.Requests > 45 {
		t.Errorf("the report says %d requests, the server saw %d", report.Requests, w.asked.Load())
	}
}

// TestWithoutAToken: what a stranger can't see is skipped, not failed.
func TestWithoutAToken(t *testing.T) {
	report := newWorld(t).check(t, mcpcheck.Options{Call: "look"})
	if !report.OK() || report.Summary.Warn != 0 {
		t.Errorf("%+v", report.Summary)
	}
	for _, id := range []string{"version-before-token", "version-error", "challenge", "get", "resource-equality", "pkce", "invalid-token"} {
		if got, why := status(report, id); got != mcpcheck.Pass {
			t.Errorf("%s: %s (%s), a stranger sees it", id, got, why)
		}
	}
	for _, id := range []string{"discover", "result-type", "header-name", "origin", "initialize", "call"} {
		if got, why := status(report, id); got != mcpcheck.Skipped || !strings.Contains(why, "token") {
			t.Errorf("%s: %s (%s), want skipped for want of a token", id, got, why)
		}
	}
}

// TestAnOpenServer has no authorization to check.
func TestAnOpenServer(t *testing.T) {
	open := forge(func(s seen) { s.Header.Set("Authorization", "Bearer "+goodToken) })
	report := newWorld(t, open).check(t, mcpcheck.Options{})
	if !report.OK() {
		t.Errorf("%+v", report.Summary)
	}
	if got, why := status(report, "challenge"); got != mcpcheck.Skipped || !strings.Contains(why, "no token") {
		t.Errorf("challenge: %s (%s)", got, why)
	}
	if got, _ := status(report, "get"); got != mcpcheck.Pass {
		t.Errorf("get: %s, want 405 to pass where no token is needed", got)
	}
}

// TestAnOlderServer fails for being one, once.
func TestAnOlderServer(t *testing.T) {
	older := []breaker{
		reply(func(s seen) bool { return s.modern() || unknownVersion(s) }, 400, "text/plain", "unsupported"),
		forge(func(s seen) { s.Header.Set("Authorization", "Bearer "+goodToken) }),
	}
	report := newWorld(t, older...).check(t, mcpcheck.Options{Call: "look"})
	if got, _ := status(report, "discover"); got != mcpcheck.Fail {
		t.Errorf("discover: %s", got)
	}
	for _, id := range []string{"result-type", "header-name", "name-comma", "id-exact"} {
		if got, why := status(report, id); got != mcpcheck.Skipped || !strings.Contains(why, "2026-07-28") {
			t.Errorf("%s: %s (%s)", id, got, why)
		}
	}
	for _, id := range []string{"initialize", "legacy-list", "legacy-unknown-method", "call", "origin"} {
		if got, why := status(report, id); got != mcpcheck.Pass {
			t.Errorf("%s: %s (%s)", id, got, why)
		}
	}
}

// streams answers as event streams, with a comment and a notification before, and leaves them open.
func streams(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := look(r)
		rec := httptest.NewRecorder()
		next.ServeHTTP(rec, r)
		if rec.Code != http.StatusOK || s.Method != http.MethodPost {
			for name, values := range rec.Header() {
				w.Header()[name] = values
			}
			w.WriteHeader(rec.Code)
			_, _ = w.Write(rec.Body.Bytes())
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		half := strings.Replace(rec.Body.String(), `"result":`, "\ndata: \"result\":", 1)
		_, _ = fmt.Fprintf(w, ": hello\r\n\r\nevent: message\r\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\r\n\r\nid: 1\ndata: %s\n\n", half)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
}

func TestEventStreamsAreRead(t *testing.T) {
	report := newWorld(t, streams).check(t, mcpcheck.Options{Token: goodToken, Call: "look"})
	if report.Summary.Fail+report.Summary.Warn != 0 {
		t.Errorf("%+v", report.Results)
	}
}

// TestToolsAreLeftAlone: no tool runs that was not named, none that may change something, none that is unknown.
func TestToolsAreLeftAlone(t *testing.T) {
	for name, c := range map[string]struct {
		call string
		want mcpcheck.Status
	}{
		"none named":            {"", mcpcheck.Skipped},
		"not marked read-only":  {"wipe", mcpcheck.Skipped},
		"a name that is no one": {"nothing", mcpcheck.Fail},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			report := w.check(t, mcpcheck.Options{Token: goodToken, Call: c.call})
			if got, why := status(report, "call"); got != c.want {
				t.Errorf("got %s (%s), want %s", got, why, c.want)
			}
			if n := w.calls.Load(); n != 0 {
				t.Errorf("%d tool calls", n)
			}
		})
	}
}

// TestTheTokenStaysHome: it goes to the endpoint's origin alone and no report shows it, however the server tries.
func TestTheTokenStaysHome(t *testing.T) {
	var elsewhere []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		elsewhere = append(elsewhere, r.Header.Get("Authorization"))
		http.NotFound(w, r)
	}))
	t.Cleanup(other.Close)
	echo := `{"jsonrpc":"2.0","id":$id,"error":{"code":-32603,"message":"you said ` + goodToken + `\u001b[2J\u202e"}}`
	for name, how := range map[string][]breaker{
		"an authorization server elsewhere": {prm(`{"resource":"x","authorization_servers":["` + other.URL + `"]}`)},
		"redirects":                         {reply(func(s seen) bool { return s.named() }, 307, "", "", "Location", other.URL+"/?t="+goodToken)},
		"redirected documents":              {reply(func(s seen) bool { return strings.HasPrefix(s.URL.Path, "/.well-known/") }, 302, "", "", "Location", other.URL)},
		"errors that repeat it":             {reply(func(s seen) bool { return s.named() }, 500, jsonMedia, echo)},
		"a name that is it":                 {swap(always, `"fixture"`, `"`+goodToken+`\u001b]0;x\u0007"`)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, how...)
			w.url += "?key=" + goodToken
			report := w.check(t, mcpcheck.Options{Token: goodToken})
			var text, doc bytes.Buffer
			if err := errors.Join(report.WriteText(&text, true), report.WriteJSON(&doc)); err != nil {
				t.Fatal(err)
			}
			for form, out := range map[string]string{"text": text.String(), "json": doc.String()} {
				if strings.Contains(out, goodToken) || strings.ContainsAny(out, "\x1b\x07\u202e") {
					t.Errorf("%s shows what it must not:\n%s", form, out)
				}
			}
		})
	}
	if len(elsewhere) == 0 {
		t.Error("the other server was never asked: the test proves nothing")
	}
	for _, header := range elsewhere {
		if header != "" {
			t.Errorf("another origin was sent %q", header)
		}
	}
}

// TestBounds: a server that makes sessions, pages without end or answers without end gets no more than the limit.
func TestBounds(t *testing.T) {
	endless := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if look(r).rpc("ping") {
				return
			}
			next.ServeHTTP(w, r)
		})
	}
	var deleted int
	sessions := alter(always, func(h http.Header, code int, body string) (int, string) {
		h.Set("Mcp-Session-Id", "s")
		return code, strings.ReplaceAll(body, `"tools":[{`, `"nextCursor":"more","tools":[{`)
	})
	count := forge(func(s seen) {
		if s.Method == http.MethodDelete {
			deleted++
		}
	})
	w := newWorld(t, endless, sessions, count)
	report := w.check(t, mcpcheck.Options{Token: goodToken, Call: "not there"})
	if report.Requests > 45 || int(w.asked.Load()) != report.Requests {
		t.Errorf("%d requests", w.asked.Load())
	}
	if deleted == 0 {
		t.Error("the sessions that it opened were left open")
	}
	big := newWorld(t, alter(rpc("tools/list"), func(h http.Header, code int, _ string) (int, string) {
		h.Set("Content-Type", jsonMedia)
		return code, strings.Repeat(" ", 5<<20)
	})).check(t, mcpcheck.Options{Token: goodToken})
	if got, why := status(big, "id-exact"); got != mcpcheck.Fail {
		t.Errorf("an answer of 5 MiB: %s (%s)", got, why)
	}
}

func TestASilentServer(t *testing.T) {
	stop := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stop }))
	t.Cleanup(silent.Close)
	t.Cleanup(func() { close(stop) })
	_, err := mcpcheck.Check(t.Context(), mcpcheck.Options{URL: silent.URL, Timeout: 20 * time.Millisecond})
	if !errors.Is(err, mcpcheck.ErrUnreachable) {
		t.Errorf("got %v, want ErrUnreachable", err)
	}
}

// TestAServerThatFallsSilent is not waited for forty times.
func TestAServerThatFallsSilent(t *testing.T) {
	var down atomic.Bool
	falls := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if look(r).rpc("mcpcheck/no-such-method") {
				down.Store(true)
			}
			if down.Load() {
				panic(http.ErrAbortHandler) // the connection ends without an answer
			}
			next.ServeHTTP(w, r)
		})
	}
	w := newWorld(t, falls)
	report := w.check(t, mcpcheck.Options{Token: goodToken})
	if got, why := status(report, "call"); report.OK() || got != mcpcheck.Skipped {
		t.Errorf("call: %s (%s), %+v", got, why, report.Summary)
	}
	if got, why := status(report, "id-null"); got != mcpcheck.Fail || !strings.Contains(why, "stopped answering") {
		t.Errorf("id-null: %s (%s)", got, why)
	}
}

func TestRateLimitsAreNoFault(t *testing.T) {
	limited := reply(func(s seen) bool { return s.rpc("mcpcheck/no-such-method") }, 429, jsonMedia, rpcError("-32603"))
	report := newWorld(t, limited).check(t, mcpcheck.Options{Token: goodToken})
	if got, why := status(report, "unknown-method"); got != mcpcheck.Skipped || !strings.Contains(why, "429") {
		t.Errorf("got %s (%s)", got, why)
	}
}

func TestTargetsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		o    mcpcheck.Options
		want error
	}{
		"no scheme":              {mcpcheck.Options{URL: "example.com/mcp"}, mcpcheck.ErrTarget},
		"another scheme":         {mcpcheck.Options{URL: "ftp://example.com/mcp"}, mcpcheck.ErrTarget},
		"no host":                {mcpcheck.Options{URL: "https:///mcp"}, mcpcheck.ErrTarget},
		"nonsense":               {mcpcheck.Options{URL: "https://%zz"}, mcpcheck.ErrTarget},
		"credentials":            {mcpcheck.Options{URL: "https://me:secret@example.com/mcp"}, mcpcheck.ErrTarget},
		"a fragment":             {mcpcheck.Options{URL: "https://example.com/mcp#x"}, mcpcheck.ErrTarget},
		"plain http":             {mcpcheck.Options{URL: "http://example.com/mcp"}, mcpcheck.ErrTarget},
		"plain http, look-alike": {mcpcheck.Options{URL: "http://localhost.example.com/mcp"}, mcpcheck.ErrTarget},
		"a token with a line":    {mcpcheck.Options{URL: "https://example.com/mcp", Token: "a\r\nX: y"}, mcpcheck.ErrToken},
		"nobody there":           {mcpcheck.Options{URL: "http://127.0.0.1:1/mcp"}, mcpcheck.ErrUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := mcpcheck.Check(t.Context(), c.o)
			if report != nil || !errors.Is(err, c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, %v; want %v", report, err, c.want)
			}
		})
	}
}

// TestDocument pins the members of the JSON form.
func TestDocument(t *testing.T) {
	var doc bytes.Buffer
	report := newWorld(t, gone(asPath)).check(t, mcpcheck.Options{Token: goodToken})
	if err := report.WriteJSON(&doc); err != nil {
		t.Fatal(err)
	}
	var got map[string]json.RawMessage
	var results []map[string]any
	if err := errors.Join(json.Unmarshal(doc.Bytes(), &got), json.Unmarshal(got["results"], &results)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"format", "url", "token", "revision", "server", "supported_versions", "requests", "summary", "results"} {
		if got[name] == nil {
			t.Errorf("no member %s", name)
		}
		delete(got, name)
	}
	if len(got) != 0 || string(doc.Bytes()[:2]) != "{\n" {
		t.Errorf("members nobody knows: %v", got)
	}
	ids := map[any]bool{}
	for _, n := range results {
		page, _ := n["page"].(string)
		if ids[n["id"]] || !strings.HasPrefix(page, "https://") || n["spec"] == "" || n["title"] == "" {
			t.Errorf("incomplete: %v", n)
		}
		if failed := slices.Contains([]any{"fail", "warn"}, n["status"]); failed != (n["mend"] != nil) {
			t.Errorf("%v: %v has mend %v", n["id"], n["status"], n["mend"])
		}
		ids[n["id"]] = true
	}
}

func TestText(t *testing.T) {
	var short, long bytes.Buffer
	report := newWorld(t, gone(asPath)).check(t, mcpcheck.Options{Token: goodToken})
	if err := errors.Join(report.WriteText(&short, false), report.WriteText(&long, true)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"FAIL  authorization-server", "spec  At least one", "mend  Serve /.well-known", "1 failed", "[point 8]"} {
		if !strings.Contains(short.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &short)
		}
	}
	if strings.Count(long.String(), "  spec  ") != len(report.Results) || strings.Count(short.String(), "  spec  ") != 1 {
		t.Errorf("the specification is quoted %d and %d times", strings.Count(long.String(), "  spec  "), strings.Count(short.String(), "  spec  "))
	}
	if err := report.WriteText(full{}, false); err == nil {
		t.Error("a full disk is no error")
	}
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

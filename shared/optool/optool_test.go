package optool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/mcp"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/optool"
)

// asArguments is the one difference between a tool's answer and its route's: a fault is named as it was sent.
var asArguments = strings.NewReplacer(
	`"location":"query.`, `"location":"arguments.`, `"location":"body.`, `"location":"arguments.`, `"location":"path.`, `"location":"arguments.`,
	`"location":"body"`, `"location":"arguments"`)

func TestToolAnswersAsItsRoute(t *testing.T) {
	w := newWorld(t)
	w.raw = json.RawMessage(`{"a":"<&>"}`)
	tests := []struct {
		name, tool, arguments string
		method, target, body  string
	}{
		{"body", "echo_send", `{"text":"h<é>"}`, "POST", "/echoes", `{"text":"h<é>"}`},
		{"body too long", "echo_send", `{"text":""}`, "POST", "/echoes", `{"text":""}`},
		{"body of a wrong type", "echo_send", `{"text":7}`, "POST", "/echoes", `{"text":7}`},
		{"body without its member", "echo_send", `{}`, "POST", "/echoes", `{}`},
		{"no filter", "notes_list", ``, "GET", "/notes", ""},
		{"filters", "notes_list", `{"status":["open","closed"],"q":"a&b=c, é%","mark":["x,y","z"],"open":true,"weight":1.5,"limit":3}`, "GET", "/notes?status=open,closed&q=a%26b%3Dc,%20%C3%A9%25&mark=x,y&mark=z&open=true&weight=1.5&limit=3", ""},
		{"limit 0", "notes_list", `{"limit":0}`, "GET", "/notes?limit=0", ""},
		{"limit huge", "notes_list", `{"limit":99999999999999999999}`, "GET", "/notes?limit=99999999999999999999", ""},
		{"unknown status", "notes_list", `{"status":["lost"]}`, "GET", "/notes?status=lost", ""},
		{"by id", "notes_get", `{"id":"` + noteID + `","include":"text"}`, "GET", "/notes/" + noteID + "?include=text", ""},
		{"by slug", "notes_get", `{"id":"wait"}`, "GET", "/notes/wait", ""},
		{"escaped dot", "notes_get", `{"id":"%2e"}`, "GET", "/notes/%252e", ""},
		{"hostile id", "notes_get", `{"id":"../x"}`, "GET", "/notes/..%2Fx", ""},
		{"mixed", "notes_update", `{"labels":["a"],"id":"x","force":true,"rank":4}`, "PATCH", "/notes/x?force=true", `{"labels":["a"],"rank":4}`},
		{"mixed, bad body", "notes_update", `{"labels":["a","b","c","d"],"id":"x"}`, "PATCH", "/notes/x", `{"labels":["a","b","c","d"]}`},
		{"mixed, empty body", "notes_update", `{"id":"x"}`, "PATCH", "/notes/x", `{}`},
		{"nested", "rules_upsert", `{"slug":"s","conditions":[{"field":"from","words":["a"],"inner":{"depth":3}}]}`, "PUT", "/rules", `{"slug":"s","conditions":[{"field":"from","words":["a"],"inner":{"depth":3}}]}`},
		{"nested, out of bounds", "rules_upsert", `{"slug":"s","conditions":[{"field":"from","words":["a"],"inner":{"depth":30}}]}`, "PUT", "/rules", `{"slug":"s","conditions":[{"field":"from","words":["a"],"inner":{"depth":30}}]}`},
		{"nested, unknown member", "rules_upsert", `{"slug":"s","conditions":[{"feild":"from","field":"to","words":[]}]}`, "PUT", "/rules", `{"slug":"s","conditions":[{"feild":"from","field":"to","words":[]}]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := w.must(t, tt.tool, tt.arguments)
			want := w.http(tt.method, "/api/v1"+tt.target, tt.body)
			if got.json != asArguments.Replace(want.Body.String()) || got.isError != (want.Code >= 400) {
				t.Errorf("tool  %t %s\nroute %d %s", got.isError, got.json, want.Code, want.Body)
			}
		})
	}
	if w.surface.Load() != op.SurfaceREST {
		t.Errorf("surface = %v", w.surface.Load())
	}
	w.must(t, "echo_send", `{"text":"x"}`)
	if w.surface.Load() != op.SurfaceMCP {
		t.Errorf("surface = %v", w.surface.Load())
	}
}

func TestHeaderArgument(t *testing.T) {
	w := newWorld(t)
	if got := w.must(t, "notes_update", `{"id":"x","if_match":"v7"}`); !strings.Contains(got.json, `\"IfTag\":\"v7\"`) {
		t.Errorf("got %s", got.json)
	}
}

func TestNothingToSay(t *testing.T) {
	w := newWorld(t)
	if got := w.must(t, "notes_touch", `{"id":"x"}`); got.json != "{}" || got.isError {
		t.Errorf("204 became %+v", got)
	}
}

func TestArgumentsAreRefused(t *testing.T) {
	w := newWorld(t)
	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	tests := []struct{ name, tool, arguments, located, says string }{
		{"unknown", "notes_list", `{"color":"red"}`, "arguments.color", "The arguments are: cursor, limit, status, q, mark, open, weight."},
		{"near miss", "notes_list", `{"stauts":["open"]}`, "arguments.stauts", "did you mean status?"},
		{"letter case", "notes_list", `{"Status":["open"]}`, "arguments.Status", "did you mean status?"},
		{"no arguments taken beyond the path", "notes_touch", `{"id":"x","y":1}`, "arguments.y", "id"},
		{"twice", "notes_list", `{"limit":1,"limit":2}`, "arguments.limit", "twice"},
		{"twice, escaped", "notes_list", `{"limit":1,"l\u0069mit":2}`, "arguments.limit", "twice"},
		{"twice in a body", "echo_send", `{"text":"a","text":"b"}`, "arguments.text", "twice"},
		{"unknown in a body", "echo_send", `{"text":"a","TEXT":"b"}`, "arguments.TEXT", "text"},
		{"integer as text", "notes_list", `{"limit":"10"}`, "arguments.limit", "expected an integer"},
		{"integer as fraction", "notes_list", `{"limit":1.5}`, "arguments.limit", "expected an integer"},
		{"integer as power", "notes_list", `{"limit":1e1}`, "arguments.limit", "expected an integer"},
		{"integer as boolean", "notes_list", `{"limit":true}`, "arguments.limit", "expected an integer"},
		{"boolean as text", "notes_list", `{"open":"true"}`, "arguments.open", "expected true or false"},
		{"boolean as number", "notes_list", `{"open":1}`, "arguments.open", "expected true or false"},
		{"number as text", "notes_list", `{"weight":"1"}`, "arguments.weight", "expected a number"},
		{"text as number", "notes_list", `{"q":1}`, "arguments.q", "expected a string"},
		{"text as object", "notes_list", `{"q":{}}`, "arguments.q", "expected a string"},
		{"empty text", "notes_list", `{"q":""}`, "arguments.q", "expected a value"},
		{"array as text", "notes_list", `{"status":"open"}`, "arguments.status", "expected an array"},
		{"array of numbers", "notes_list", `{"status":[1]}`, "arguments.status", "each a string"},
		{"array with null", "notes_list", `{"status":["open",null]}`, "arguments.status", "each a string"},
		{"array with an empty item", "notes_list", `{"status":[""]}`, "arguments.status", "not empty"},
		{"array with a comma", "notes_list", `{"status":["open,closed"]}`, "arguments.status", "without commas"},
		{"id missing", "notes_get", `{}`, "arguments.id", "required"},
		{"id null", "notes_get", `{"id":null}`, "arguments.id", "expected a string"},
		{"id a number", "notes_get", `{"id":7}`, "arguments.id", "expected a string"},
		{"header with a line break", "notes_update", `{"id":"x","if_match":"a\r\nCookie: x"}`, "arguments.if_match", "printable"},
		{"header not ASCII", "notes_update", `{"id":"x","if_match":"é"}`, "arguments.if_match", "printable"},
		{"workspace header is no argument", "notes_list", `{"X-Workspace-Id":"x"}`, "arguments.X-Workspace-Id", "unknown"},
		{"not an object", "notes_list", `[]`, "arguments", "JSON object"},
		{"null", "notes_list", `null`, "arguments", "JSON object"},
		{"malformed", "notes_list", `{"limit":`, "arguments", "JSON object"},
		{"trailing", "notes_list", `{} {}`, "arguments", "JSON object"},
		{"deep", "notes_list", `{"q":` + deep + `}`, "arguments", "deeply"},
		{"not UTF-8", "notes_list", "{\"q\":\"\xff\"}", "arguments", "UTF-8"},
		{"huge name", "notes_list", `{"` + strings.Repeat("n", 5000) + `":1}`, "arguments." + strings.Repeat("n", 64), "unknown"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := w.must(t, tt.tool, tt.arguments)
			var p struct {
				Kind   string
				Errors []apperr.Detail
			}
			if err := json.Unmarshal([]byte(got.json), &p); err != nil {
				t.Fatal(err)
			}
			if !got.isError || p.Kind != "invalid" || len(p.Errors) == 0 || p.Errors[0].Location != tt.located {
				t.Fatalf("got %+v, want a fault at %s", got, tt.located)
			}
			if !strings.Contains(got.json, tt.says) || len(got.json) > 3000 {
				t.Errorf("got %s, want it to say %q", got.json, tt.says)
			}
		})
	}
	if w.calls.Load() != 0 || w.log.Len() != 0 {
		t.Errorf("%d handlers ran, log %s", w.calls.Load(), w.log)
	}
}

func TestManyUnknownArguments(t *testing.T) {
	w := newWorld(t)
	var b strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&b, `,"n%d":1`, i)
	}
	got := w.must(t, "notes_list", "{"+b.String()[1:]+"}")
	if !got.isError || len(got.json) > 4000 {
		t.Errorf("%d bytes", len(got.json))
	}
}

func TestNullIsLeftOut(t *testing.T) {
	w := newWorld(t)
	with := w.must(t, "notes_list", `{"limit":null,"status":null,"q":null,"open":null}`)
	without := w.must(t, "notes_list", `{}`)
	if with != without || with.isError {
		t.Errorf("with nulls %s\nwithout %s", with.json, without.json)
	}
}

func TestHostileIDs(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{"..", ".", "../notes", "%2e", "%2f", "/", "a/b", "\x00", "a\x00", strings.Repeat("a", 5000), "", " ", "A", "é",
		"note_01j00000000000000000000000", "{id}", "x?force=true", "x#y", "-x"} {
		text, err := json.Marshal(map[string]string{"id": id})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"notes_get", "notes_delete", "notes_touch"} {
			got := w.must(t, name, string(text))
			if !got.isError || !strings.Contains(got.json, `"kind":"not_found"`) {
				t.Errorf("%s %q: %s", name, id, got.json)
			}
		}
	}
	if w.calls.Load() != 0 {
		t.Error("a handler ran")
	}
}

func TestWhoMayCall(t *testing.T) {
	w := newWorld(t)
	var scope *mcp.ScopeError
	tests := []struct {
		name, tool string
		caller     *op.Caller
		unknown    bool
		scope      bool
	}{
		{"no such tool", "nothing", w.caller("notes:write", op.Admin), true, false},
		{"letter case", "Notes_List", w.caller("notes:write", op.Admin), true, false},
		{"no scope", "notes_list", w.caller("", op.Admin), false, true},
		{"reading scope for a write", "notes_touch", w.caller("notes:read", op.Admin), false, true},
		{"no scope, destructive", "notes_delete", w.caller("notes:read", op.Admin), false, true},
		{"no role", "notes_touch", w.caller("notes:write", op.Viewer), true, false},
		{"neither", "rules_upsert", w.caller("", op.Viewer), true, false},
		{"no role for what needs no workspace", "echo_send", w.caller("", op.NoRole), true, false},
		{"allowed", "notes_touch", w.caller("notes:write", op.Operator), false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := w.call(t, tt.caller, tt.tool, `{"id":"x"}`, nil)
			if got := errors.Is(err, mcp.ErrUnknown); got != tt.unknown {
				t.Errorf("unknown: %v", err)
			}
			if got := errors.As(err, &scope); got != tt.scope || (got && len(scope.Scopes) != 1) {
				t.Errorf("scope: %v", err)
			}
			may := w.tools.May(&mcp.CallRequest{Caller: tt.caller, Name: tt.tool})
			if errors.Is(may, mcp.ErrUnknown) != tt.unknown || errors.As(may, &scope) != tt.scope || (may == nil) == (tt.unknown || tt.scope) {
				t.Errorf("may: %v", may)
			}
		})
	}
	if n := w.calls.Load(); n != 1 {
		t.Errorf("%d handlers ran, want the one", n)
	}
	if _, err := w.tools.CallTool(t.Context(), &mcp.CallRequest{Name: "echo_send"}); err == nil || errors.Is(err, mcp.ErrUnknown) {
		t.Errorf("no caller: %v", err)
	}
}

func TestWorkspace(t *testing.T) {
	w := newWorld(t)
	two := w.caller("notes:write", op.Operator)
	two.Workspaces = append(two.Workspaces, op.Workspace{ID: workB, Slug: "b", Role: op.Viewer})
	in := func(id string) http.Header {
		return http.Header{"X-Workspace-Id": {id}, "Authorization": {"Bearer x"}, "Cookie": {"a=b"}}
	}
	got, err := w.call(t, two, "notes_get", `{"id":"x"}`, in(workB))
	if err != nil || got.isError || !strings.Contains(got.json, workB) {
		t.Errorf("named: %+v %v", got, err)
	}
	if _, err = w.call(t, two, "notes_touch", `{"id":"x"}`, in(workB)); !errors.Is(err, mcp.ErrUnknown) {
		t.Errorf("role of the named workspace: %v", err)
	}
	for name, h := range map[string]http.Header{"workspace_required": nil, "not_found": in("ws_other"),
		"sent more than once": {"X-Workspace-Id": {workA, workB}}} {
		before := w.calls.Load()
		got, err = w.call(t, two, "notes_get", `{"id":"x"}`, h)
		if err != nil || !got.isError || !strings.Contains(got.json, name) || w.calls.Load() != before {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
}

func TestArgumentsComeBeforeTheQuestion(t *testing.T) {
	w := newWorld(t)
	if got := w.must(t, "notes_delete", `{"id":"x","really":true}`); !strings.Contains(got.json, `"code":"invalid"`) {
		t.Errorf("got %+v", got)
	}
	if w.calls.Load() != 0 {
		t.Error("the handler ran")
	}
}

func TestFailures(t *testing.T) {
	w := newWorld(t)
	limited := apperr.New(apperr.RateLimited, "", "Too much.", "Wait 7 seconds.")
	for name, tt := range map[string]struct {
		fail     error
		says     string
		internal bool
	}{
		"conflict":    {fail: apperr.New(apperr.Conflict, "deleted_exists", "Taken.", "Restore it."), says: `"code":"deleted_exists"`},
		"limited":     {fail: limited, says: "Wait 7 seconds."},
		"unavailable": {fail: apperr.New(apperr.Unavailable, "", "Down."), says: "Down."},
		"internal":    {fail: errSecret, internal: true},
	} {
		t.Run(name, func(t *testing.T) {
			w.fail = tt.fail
			w.log.Reset()
			got, err := w.call(t, w.caller("", op.Viewer), "echo_send", `{"text":"x"}`, nil)
			if tt.internal {
				if err == nil || strings.Contains(err.Error(), "s3cr3t") || strings.Count(w.log.String(), "s3cr3t") != 1 {
					t.Errorf("got %+v, %v, log %s", got, err, w.log)
				}
				return
			}
			if err != nil || !got.isError || !strings.Contains(got.json, tt.says) || got.meta != "" {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestCancelledContextIsPassedOn(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := w.tools.CallTool(ctx, &mcp.CallRequest{Caller: w.caller("", op.Viewer), Name: "echo_send", Arguments: []byte(`{"text":"x"}`)})
	if err != nil || !r.IsError || !bytes.Contains(r.JSON, []byte("interrupted")) {
		t.Errorf("got %v, %v", r, err)
	}
}

func TestUntrustedIsPointedAt(t *testing.T) {
	w := newWorld(t)
	if got := w.must(t, "notes_list", ""); got.meta != `"example/untrusted":["/data/0/untrusted","/data/1/untrusted"]` {
		t.Errorf("meta = %s", got.meta)
	}
	if got := w.must(t, "echo_send", `{"text":"\"untrusted\":\\u0041"}`); got.meta != "" {
		t.Errorf("meta = %s", got.meta)
	}
}

func TestReleaseTwice(t *testing.T) {
	w := newWorld(t)
	caller := w.caller("", op.Viewer)
	ask := func(text string) *mcp.CallResult {
		r, err := w.tools.CallTool(t.Context(), &mcp.CallRequest{Caller: caller, Name: "echo_send", Arguments: []byte(`{"text":"` + text + `"}`)})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first := ask("a")
	first.Released()
	first.Released()
	one, two := ask("b"), ask("c")
	if string(one.JSON) == string(two.JSON) {
		t.Error("two results share a buffer")
	}
}

func TestListIsFiltered(t *testing.T) {
	w := newWorld(t)
	all := "echo_send notes_list notes_get notes_update notes_delete notes_touch rules_upsert"
	two := w.caller("notes:write", op.Viewer)
	two.Role = op.Admin
	two.Workspaces = []op.Workspace{{ID: workA, Role: op.Viewer}, {ID: workB, Role: op.Operator}}
	tests := []struct {
		name   string
		caller *op.Caller
		header http.Header
		want   string
	}{
		{"everything", w.caller("notes:write rules:write", op.Owner), nil, all},
		{"no scope", w.caller("", op.Owner), nil, "echo_send"},
		{"a scope of no tool", w.caller("other:read", op.Owner), nil, "echo_send"},
		{"reading", w.caller("notes:read", op.Owner), nil, "echo_send notes_list notes_get"},
		{"viewer", w.caller("notes:write rules:write", op.Viewer), nil, "echo_send notes_list notes_get"},
		{"operator", w.caller("notes:write rules:write", op.Operator), nil, "echo_send notes_list notes_get notes_update notes_delete notes_touch"},
		{"no role", w.caller("notes:write", op.NoRole), nil, ""},
		{"greatest role of several workspaces", two, nil, "echo_send notes_list notes_get notes_update notes_delete notes_touch"},
		{"role of the named workspace", two, http.Header{"X-Workspace-Id": {workA}}, "echo_send notes_list notes_get"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for range 2 { // the second comes from the cache
				if got := strings.Join(w.listed(t, tt.caller, tt.header, mcp.V20260728, nil), " "); got != tt.want {
					t.Errorf("got  %s\nwant %s", got, tt.want)
				}
			}
		})
	}
}

func (w *world) listed(t *testing.T, c *op.Caller, h http.Header, v mcp.Version, keep *[]map[string]json.RawMessage) []string {
	t.Helper()
	r, err := w.tools.ListTools(t.Context(), &mcp.ListRequest{Caller: c, Version: v, Header: h})
	if err != nil {
		t.Fatal(err)
	}
	var tools []map[string]json.RawMessage
	text := "[" + string(bytes.Join(r.Items, nil)) + "]"
	if err := json.Unmarshal([]byte(text), &tools); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	var names []string
	for _, tool := range tools {
		var name string
		if err := json.Unmarshal(tool["name"], &name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if keep != nil {
		*keep = tools
	}
	return names
}

func TestListHasNoFurtherPage(t *testing.T) {
	w := newWorld(t)
	_, err := w.tools.ListTools(t.Context(), &mcp.ListRequest{Caller: w.caller("", op.Viewer), Cursor: "x"})
	if !errors.Is(err, mcp.ErrUnknown) {
		t.Errorf("got %v", err)
	}
}

func TestShapesOfTheRevisions(t *testing.T) {
	w := newWorld(t)
	admin := w.caller("notes:write rules:write", op.Admin)
	for version, want := range map[mcp.Version]string{
		mcp.V20260728: "annotations description inputSchema name outputSchema title",
		mcp.V20251125: "annotations description inputSchema name outputSchema title",
		mcp.V20250618: "annotations description inputSchema name outputSchema title",
		mcp.V20250326: "annotations description inputSchema name",
		mcp.V20241105: "description inputSchema name",
	} {
		var tools []map[string]json.RawMessage
		w.listed(t, admin, nil, version, &tools)
		for _, tool := range tools {
			name := string(tool["name"])
			if name == `"notes_delete"` || name == `"notes_touch"` {
				continue // without a reply there is no schema of it
			}
			if got := strings.Join(sortedKeys(tool), " "); got != want {
				t.Errorf("%s %s: %s, want %s", version, name, got, want)
			}
		}
	}
}

func TestCacheOfListsIsBounded(t *testing.T) {
	w := newWorld(t)
	for role := op.NoRole; role < op.NoRole+200; role++ { // more masks than it holds
		for _, tenant := range []op.Role{1, 2} {
			c := w.caller("", tenant)
			c.Role = role
			if n := len(w.listed(t, c, nil, mcp.V20260728, nil)); (n == 1) != (role >= op.Viewer) {
				t.Fatalf("role %d: %d tools", role, n)
			}
		}
	}
}

func TestFirstCallsAtOnce(t *testing.T) {
	w := newWorld(t)
	var wait sync.WaitGroup
	for i := range 16 {
		wait.Go(func() {
			text := fmt.Sprint("text ", i)
			if got := w.must(t, "echo_send", `{"text":"`+text+`"}`); !strings.Contains(got.json, text) {
				t.Errorf("got %+v", got)
			}
			w.must(t, "notes_list", `{"limit":3}`)
			w.listed(t, w.caller("", op.Viewer), nil, mcp.V20241105, nil)
		})
	}
	wait.Wait()
}

func TestNewRefusesAnotherList(t *testing.T) {
	w := newWorld(t)
	c, err := op.NewCatalogue(w.names, w.operations())
	if err != nil {
		t.Fatal(err)
	}
	swapped := append([]optool.Segment{w.list[1], w.list[0]}, w.list[2:]...)
	for name, list := range map[string][]optool.Segment{"too short": w.list[1:], "another order": swapped, "none": nil} {
		if _, err := optool.New(c, w.api, list, optool.Options{}); err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
}

package optool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/mcp"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/seal"
)

// shelf holds one note that can be deleted. It keeps the rules that services keep: version and nonce in one step with the act.
type shelf struct {
	world   *world
	mu      sync.Mutex
	version int
	gone    bool
	used    map[string]string
	said    *op.Confirmation // of the last act
	broken  bool             // asks without words
	between func()           // runs after a question was made
}

type noteIn struct {
	ID string `path:"id"`
}

type doneError struct{}

func (doneError) Error() string   { return "done" }
func (doneError) Outcome() string { return noteID }

func (s *shelf) ask(_ context.Context, in *noteIn) (*op.Question, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in.ID == "missing" {
		return nil, apperr.New(apperr.NotFound, "", "There is no such note.")
	}
	if s.between != nil {
		defer s.between()
	}
	if s.gone {
		return nil, nil //nolint:nilnil // nothing to ask
	}
	q := &op.Question{Text: "Delete note {} of version {}", Values: []string{in.ID + "\u202e", fmt.Sprint(s.version)}, Targets: map[string]string{in.ID: fmt.Sprint(s.version)}}
	if s.broken {
		q.Values = nil
	}
	return q, nil
}

func (s *shelf) remove(ctx context.Context, in *noteIn) (*struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	yes := op.ConfirmationFrom(ctx)
	switch {
	case yes != nil && s.used[yes.NonceHash] != "":
		return nil, apperr.New(apperr.Conflict, op.CodeDone, "Done.").Because(doneError{})
	case yes != nil && yes.Targets[in.ID] != fmt.Sprint(s.version):
		return nil, apperr.New(apperr.Conflict, op.CodeChanged, "Changed.")
	case yes == nil && !s.gone && op.SurfaceFrom(ctx) == op.SurfaceMCP:
		return nil, apperr.New(apperr.Conflict, op.CodeUnconfirmed, "Ask.")
	}
	if err := s.world.run(ctx); err != nil {
		return nil, err
	}
	if s.said = yes; yes != nil {
		s.used[yes.NonceHash] = in.ID
	}
	if !s.gone {
		s.gone, s.version = true, s.version+1
	}
	return nil, nil //nolint:nilnil // 204
}

// desk is the tools behind the whole protocol: the only way to a verified answer.
type desk struct {
	*world
	t       *testing.T
	callers map[string]*op.Caller
	now     time.Time
	server  *mcp.Server
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{world: newWorld(t), t: t, now: time.Unix(1_800_000_000, 0)}
	mine := d.caller("notes:write", op.Operator)
	mine.Client = "client_1"
	change := func(f func(*op.Caller)) *op.Caller {
		c := *mine
		f(&c)
		return &c
	}
	d.callers = map[string]*op.Caller{
		"mine":          mine,
		"other grant":   change(func(c *op.Caller) { c.Grant = "grant_2" }),
		"other person":  change(func(c *op.Caller) { c.Subject = "user_2" }),
		"other client":  change(func(c *op.Caller) { c.Client = "client_2" }),
		"other tenant":  change(func(c *op.Caller) { c.Workspaces = []op.Workspace{{ID: workB, Role: op.Operator}} }),
		"lost the role": change(func(c *op.Caller) { c.Workspaces = []op.Workspace{{ID: workA, Role: op.Viewer}} }),
		"lost scope":    change(func(c *op.Caller) { c.Scopes = 0 }),
		"two":           change(func(c *op.Caller) { c.Workspaces = append(c.Workspaces, op.Workspace{ID: workB, Role: op.Operator}) }),
	}
	keys, err := seal.New([]seal.Root{{ID: "k", Secret: make([]byte, 32)}}, seal.Options{Clock: d.clock})
	if err != nil {
		t.Fatal(err)
	}
	d.server, err = mcp.New(mcp.Deps{
		Authenticator: who(d.callers), Challenger: d.world, Limiter: free{}, Tools: d.tools, Sealer: keys.Purpose("mcp"), Now: d.clock,
	}, mcp.Options{Name: "desk", Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *desk) clock() time.Time { return d.now }

type who map[string]*op.Caller

func (w who) Authenticate(_ context.Context, h http.Header) (mcp.Caller, error) {
	if c := w[h.Get("Authorization")]; c != nil {
		return c, nil
	}
	return nil, errors.New("nobody")
}

type free struct{}

func (free) Take(context.Context, string) mcp.Limit { return mcp.Limit{Allowed: true} }
func (free) Peek(context.Context, string) mcp.Limit { return mcp.Limit{Allowed: true} }

// reply is what the tests read of an answer.
type reply struct {
	status int
	Result struct {
		ResultType    string
		IsError       bool
		Content       []struct{ Text string }
		RequestState  string
		InputRequests map[string]struct {
			Method string
			Params struct {
				Mode, Message   string
				RequestedSchema json.RawMessage
			}
		}
	}
	Error *struct {
		Code int
		Data map[string]any
	}
}

func (r reply) message() string { return r.Result.InputRequests["confirm"].Params.Message }

func (r reply) reason() string {
	if r.Error == nil || r.Error.Data["reason"] == nil {
		return ""
	}
	return r.Error.Data["reason"].(string)
}

const (
	canAsk  = `{"elicitation":{}}`
	yes     = `{"confirm":{"action":"accept","content":{"confirm":true}}}`
	no      = `{"confirm":{"action":"accept","content":{"confirm":false}}}`
	decline = `{"confirm":{"action":"decline"}}`
	cancel  = `{"confirm":{"action":"cancel"}}`
)

// send calls notes_delete; extra are members of params.
func (d *desk) send(who, arguments, capabilities string, extra ...string) reply {
	d.t.Helper()
	return d.sendTo(who, "notes_delete", arguments, capabilities, nil, extra...)
}

func (d *desk) sendTo(who, tool, arguments, capabilities string, h http.Header, extra ...string) reply {
	d.t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":` + capabilities + `},"name":"` + tool + `","arguments":` + arguments + strings.Join(append([]string{""}, extra...), ",") + `}}`
	r := httptest.NewRequestWithContext(d.t.Context(), http.MethodPost, "/mcp", strings.NewReader(body))
	for name, value := range map[string]string{"Authorization": who, "Content-Type": "application/json", "MCP-Protocol-Version": "2026-07-28",
		"Mcp-Method": "tools/call", "Mcp-Name": tool} {
		r.Header.Set(name, value)
	}
	for name, values := range h {
		r.Header[name] = values
	}
	out := httptest.NewRecorder()
	d.server.ServeHTTP(out, r)
	got := reply{status: out.Code}
	if err := json.Unmarshal(out.Body.Bytes(), &got); err != nil {
		d.t.Fatalf("%v: %s", err, out.Body)
	}
	return got
}

const args = `{"id":"` + noteID + `"}`

// asked makes the first call and returns the members of the retry.
func (d *desk) asked(answers string) []string {
	d.t.Helper()
	got := d.send("mine", args, canAsk)
	if got.Result.ResultType != "input_required" {
		d.t.Fatalf("no question: %+v", got)
	}
	return []string{`"requestState":"` + got.Result.RequestState + `"`, `"inputResponses":` + answers}
}

func (d *desk) untouched() {
	d.t.Helper()
	if d.calls.Load() != 0 || len(d.shelf.used) != 0 || d.shelf.gone {
		d.t.Error("something happened")
	}
}

func TestAsksThenActs(t *testing.T) {
	d := newDesk(t)
	got := d.send("mine", args, canAsk)
	if len(got.Result.InputRequests) != 1 || got.Result.InputRequests["confirm"].Method != "elicitation/create" || got.message() != "Delete note "+noteID+" of version 1" {
		t.Fatalf("question %+v", got.Result)
	}
	var schema struct {
		Properties map[string]struct {
			Type    string
			Default *bool
		}
		Required []string
	}
	if err := json.Unmarshal(got.Result.InputRequests["confirm"].Params.RequestedSchema, &schema); err != nil {
		t.Fatal(err)
	}
	if p, ok := schema.Properties["confirm"]; !ok || len(schema.Properties) != 1 || p.Type != "boolean" || p.Default == nil || *p.Default {
		t.Errorf("form %+v: want one boolean that is false", schema)
	}
	d.untouched()
	retry := []string{`"requestState":"` + got.Result.RequestState + `"`, `"inputResponses":` + yes}
	if got := d.send("mine", args, canAsk, retry...); got.Result.ResultType != "complete" || got.Result.IsError || got.Result.Content[0].Text != "{}" {
		t.Fatalf("after the yes: %+v", got)
	}
	said := d.shelf.said
	if said == nil || said.Targets[noteID] != "1" || len(said.NonceHash) != 64 || !said.Expires.Equal(d.now.Add(5*time.Minute)) {
		t.Errorf("the service got %+v", said)
	}
	again := d.send("mine", args, canAsk, retry...)
	if again.Error == nil || again.Error.Code != -32602 || again.reason() != "already_done" || again.Error.Data["id"] != noteID {
		t.Errorf("the same yes again: %+v", again)
	}
	if d.calls.Load() != 1 {
		t.Errorf("%d acts", d.calls.Load())
	}
}

func TestNothingHappensWithoutAYes(t *testing.T) {
	for name, tt := range map[string]struct {
		answers, says string
	}{
		"decline": {decline, "declined"}, "cancel": {cancel, "declined"}, "an empty box": {no, "declined"},
		"decline with a yes in it": {`{"confirm":{"action":"decline","content":{"confirm":true}}}`, "declined"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			got := d.send("mine", args, canAsk, d.asked(tt.answers)...)
			if !got.Result.IsError || !strings.Contains(got.Result.Content[0].Text, `"code":"declined"`) || !strings.Contains(got.Result.Content[0].Text, "Nothing was done") {
				t.Errorf("got %+v", got)
			}
			d.untouched()
		})
	}
	for name, answers := range map[string]string{
		"accept without content": `{"confirm":{"action":"accept"}}`, "accept of nothing": `{"confirm":{"action":"accept","content":{}}}`,
		"text": `{"confirm":{"action":"accept","content":{"confirm":"true"}}}`, "number": `{"confirm":{"action":"accept","content":{"confirm":1}}}`,
		"null": `{"confirm":{"action":"accept","content":{"confirm":null}}}`, "action": `{"confirm":{"action":"yes","content":{"confirm":true}}}`,
		"twice": `{"confirm":{"action":"accept","content":{"confirm":false,"confirm":true}}}`, "no object": `{"confirm":true}`, "array": `[]`,
	} {
		t.Run("malformed: "+name, func(t *testing.T) {
			d := newDesk(t)
			if got := d.send("mine", args, canAsk, d.asked(answers)...); got.Error == nil || got.Error.Code != -32602 {
				t.Errorf("got %+v", got)
			}
			d.untouched()
		})
	}
	for name, extra := range map[string][]string{
		"no answer":               {`"inputResponses":{}`},
		"another question's":      {`"inputResponses":{"other":{"action":"accept","content":{"confirm":true}}}`},
		"a yes that nobody asked": nil,
	} {
		t.Run("asks again: "+name, func(t *testing.T) {
			d := newDesk(t)
			retry := []string{`"inputResponses":` + yes}
			if extra != nil {
				retry = append(d.asked(yes)[:1], extra...)
			}
			if got := d.send("mine", args, canAsk, retry...); got.Result.ResultType != "input_required" || got.message() == "" {
				t.Errorf("got %+v", got)
			}
			d.untouched()
		})
	}
}

func TestStateIsBound(t *testing.T) {
	header := func(id string) http.Header { return http.Header{"X-Workspace-Id": {id}} }
	for name, tt := range map[string]struct {
		who, tool, arguments string
		header               http.Header
		wait                 time.Duration
		code                 int
		reason               string
	}{
		"other grant":        {who: "other grant", reason: "invalid_state"},
		"other person":       {who: "other person", reason: "invalid_state"},
		"other client":       {who: "other client", reason: "invalid_state"},
		"other tenant":       {who: "other tenant", reason: "invalid_state"},
		"tenant of a header": {who: "two", header: header(workB), reason: "invalid_state"},
		"other arguments":    {arguments: `{"id":"note_01J00000000000000000000001"}`, reason: "other_arguments"},
		"other tool":         {tool: "notes_touch", reason: "other_request"},
		"six minutes later":  {wait: 6 * time.Minute, reason: "expired_state"},
		"a day later":        {wait: 24 * time.Hour, reason: "invalid_state"},
		"the role is gone":   {who: "lost the role"},
		"the scope is gone":  {who: "lost scope", code: -32600},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			retry := d.asked(yes)
			d.now = d.now.Add(tt.wait)
			pick := func(text, otherwise string) string {
				if text != "" {
					return text
				}
				return otherwise
			}
			got := d.sendTo(pick(tt.who, "mine"), pick(tt.tool, "notes_delete"), pick(tt.arguments, args), canAsk, tt.header, retry...)
			want := -32602
			if tt.code != 0 {
				want = tt.code
			}
			if got.Error == nil || got.Error.Code != want || got.reason() != tt.reason {
				t.Errorf("got %+v %+v", got, got.Error)
			}
			d.untouched()
		})
	}
	t.Run("tampered", func(t *testing.T) {
		d := newDesk(t)
		retry := d.asked(yes)
		retry[0] = strings.Replace(retry[0], `":"A`, `":"B`, 1)
		if got := d.send("mine", args, canAsk, retry...); got.reason() != "invalid_state" {
			t.Errorf("got %+v", got)
		}
		d.untouched()
	})
	t.Run("the same arguments in another order", func(t *testing.T) {
		d := newDesk(t)
		if got := d.send("mine", ` { "id" : "`+noteID+`" } `, canAsk, d.asked(yes)...); got.Error != nil || got.Result.IsError {
			t.Errorf("got %+v", got)
		}
	})
}

func TestTargetChangedMeanwhile(t *testing.T) {
	d := newDesk(t)
	retry := d.asked(yes)
	d.shelf.version = 5
	got := d.send("mine", args, canAsk, retry...)
	if got.Result.ResultType != "input_required" || !strings.HasSuffix(got.message(), "version 5") {
		t.Fatalf("not asked about the present state: %+v", got)
	}
	d.untouched()
	retry[0] = `"requestState":"` + got.Result.RequestState + `"`
	if got := d.send("mine", args, canAsk, retry...); got.Result.IsError || d.calls.Load() != 1 {
		t.Errorf("after the second yes: %+v", got)
	}
}

func TestDoneByAnotherMeanwhile(t *testing.T) {
	d := newDesk(t)
	retry := d.asked(yes)
	d.shelf.version, d.shelf.gone = 2, true
	if got := d.send("mine", args, canAsk, retry...); got.Result.ResultType != "complete" || got.Result.IsError {
		t.Errorf("what needs no question any more: %+v", got)
	}
	if d.shelf.said != nil || len(d.shelf.used) != 0 {
		t.Error("a yes to something else was used")
	}
}

// A note that comes back between the look and the act is not deleted unasked.
func TestChangedBetweenLookAndAct(t *testing.T) {
	d := newDesk(t)
	d.shelf.gone = true
	d.shelf.between = func() { d.shelf.gone, d.shelf.between = false, nil }
	if got := d.send("mine", args, canAsk); got.Result.ResultType != "input_required" {
		t.Errorf("got %+v", got)
	}
	d.untouched()
	d.shelf.between = func() { d.shelf.gone = false }
	for range 3 {
		d.shelf.gone = true
		got := d.send("mine", args, canAsk)
		if got.Result.ResultType == "complete" && !strings.Contains(got.Result.Content[0].Text, `"code":"busy"`) {
			t.Errorf("got %+v", got)
		}
	}
	if d.calls.Load() != 0 {
		t.Error("it acted")
	}
}

func TestTwoClientsConfirmAtOnce(t *testing.T) {
	d := newDesk(t)
	retry := d.asked(yes)
	var wait sync.WaitGroup
	var mu sync.Mutex
	acted, done := 0, 0
	for range 16 {
		wait.Go(func() {
			got := d.send("mine", args, canAsk, retry...)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case got.Error == nil && !got.Result.IsError && got.Result.ResultType == "complete":
				acted++
			case got.reason() == "already_done":
				done++
			default:
				t.Errorf("got %+v", got)
			}
		})
	}
	wait.Wait()
	if acted != 1 || done != 15 || d.calls.Load() != 1 {
		t.Errorf("%d acted, %d were told, %d acts", acted, done, d.calls.Load())
	}
}

func TestWhoCantBeAsked(t *testing.T) {
	d := newDesk(t)
	for _, capabilities := range []string{`{}`, `{"elicitation":{"url":{}}}`, `{"sampling":{}}`, `{"elicitation":null}`} {
		got := d.send("mine", args, capabilities)
		required, _ := json.Marshal(got.Error)
		if got.status != 400 || got.Error == nil || got.Error.Code != -32021 || got.reason() != "confirmation_required" || !strings.Contains(string(required), `"requiredCapabilities":{"elicitation":`) {
			t.Errorf("%s: %+v %s", capabilities, got, required)
		}
	}
	for _, capabilities := range []string{`{}`, canAsk} { // what would be refused is refused without a question
		got := d.send("mine", `{"id":"missing"}`, capabilities)
		if !got.Result.IsError || !strings.Contains(got.Result.Content[0].Text, "no such note") {
			t.Errorf("missing: %+v", got)
		}
	}
	got := d.send("mine", args, `{}`, d.asked(yes)...)
	if got.Error != nil || got.Result.IsError {
		t.Errorf("a yes needs no second question: %+v", got)
	}
	if got := d.send("mine", args, `{}`); got.Result.ResultType != "complete" || got.Result.IsError {
		t.Errorf("gone already, so nothing to ask: %+v", got)
	}
}

func TestEraOfTheHandshake(t *testing.T) {
	w := newWorld(t)
	call := func() result {
		r, err := w.tools.CallTool(t.Context(), &mcp.CallRequest{Caller: w.caller("notes:write", op.Operator), Version: mcp.V20251125,
			Name: "notes_delete", Arguments: json.RawMessage(args)})
		if err != nil {
			t.Fatal(err)
		}
		return result{json: string(r.JSON), isError: r.IsError}
	}
	if got := call(); !got.isError || !strings.Contains(got.json, `"code":"confirmation_required"`) || !strings.Contains(got.json, "Do not repeat") {
		t.Errorf("got %+v", got)
	}
	if w.calls.Load() != 0 {
		t.Error("it acted")
	}
	w.shelf.gone = true
	if got := call(); got.isError || w.calls.Load() != 1 {
		t.Errorf("what needs no question: %+v", got)
	}
}

func TestQuestionWithoutWordsIsOurFault(t *testing.T) {
	d := newDesk(t)
	d.shelf.broken = true
	if got := d.send("mine", args, canAsk); got.Error == nil || got.Error.Code != -32603 {
		t.Errorf("got %+v", got)
	}
	d.untouched()
}

func TestConfirmedActFails(t *testing.T) {
	d := newDesk(t)
	retry := d.asked(yes)
	d.fail = apperr.New(apperr.Unavailable, "", "Down.")
	if got := d.send("mine", args, canAsk, retry...); !got.Result.IsError || !strings.Contains(got.Result.Content[0].Text, "Down.") {
		t.Errorf("got %+v", got)
	}
	d.fail = errSecret
	if got := d.send("mine", args, canAsk, retry...); got.Error == nil || got.Error.Code != -32603 {
		t.Errorf("got %+v", got)
	}
	d.fail = nil
	if got := d.send("mine", args, canAsk, retry...); got.Result.IsError || got.Error != nil || !d.shelf.gone {
		t.Errorf("the yes was spent on a failure: %+v", got)
	}
}

// REST asks nobody and carries no yes.
func TestRESTAsksNobody(t *testing.T) {
	w := newWorld(t)
	out := w.http("DELETE", "/api/v1/notes/"+noteID, "")
	if out.Code != 204 || w.shelf.said != nil || len(w.shelf.used) != 0 || w.calls.Load() != 1 {
		t.Errorf("%d, %+v", out.Code, w.shelf.said)
	}
}

// TestRevokedSinceLetIn: a grant that ended half a minute ago deletes nothing, and its client is told to start over: 401 with a
// challenge, in place of a result that a model would try to mend.
func TestRevokedSinceLetIn(t *testing.T) {
	d := newDesk(t)
	asked := d.send("mine", `{"id":"`+noteID+`"}`, canAsk)
	if asked.Result.RequestState == "" {
		t.Fatalf("no question: %+v", asked)
	}
	d.callers["mine"].Again = func(context.Context) (*op.Caller, error) {
		return nil, apperr.New(apperr.Unauthenticated, "invalid_token", "Revoked.")
	}
	for name, extra := range map[string][]string{
		"asks":      nil,
		"confirmed": {`"inputResponses":` + yes, `"requestState":"` + asked.Result.RequestState + `"`},
	} {
		if got := d.send("mine", `{"id":"`+noteID+`"}`, canAsk, extra...); got.status != http.StatusUnauthorized || got.Error == nil || got.Error.Data["kind"] != "unauthenticated" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := d.sendTo("mine", "notes_get", `{"id":"`+noteID+`"}`, canAsk, nil); got.status != http.StatusOK || got.Error != nil || got.Result.IsError {
		t.Errorf("a read: %+v", got)
	}
	if d.shelf.gone {
		t.Error("it is deleted")
	}
}

package inboxops_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxops"
	"github.com/buzon-mail/buzon/shared/mcp"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/rest"
)

// post sends a request with an idempotency key.
func (w *world) post(who, path, body, key string) *httptest.ResponseRecorder {
	w.t.Helper()
	r := httptest.NewRequest(http.MethodPost, "http://x.test/api/v1"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+who)
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	out := httptest.NewRecorder()
	w.api.ServeHTTP(out, r)
	return out
}

// reprocess starts a job and returns its id.
func (w *world) reprocess(who string, mail inbox.Email, key string) string {
	w.t.Helper()
	out := w.post(who, "/emails/"+mail.ID+"/reprocess", "", key)
	var v rest.StartedBody
	if err := json.Unmarshal(out.Body.Bytes(), &v); err != nil || out.Code != 202 || v.Data.StatusURL != "/api/v1/jobs/"+v.Data.JobID || out.Header().Get("Location") != v.Data.StatusURL {
		w.t.Fatalf("reprocess as %s: %d %s", who, out.Code, out.Body)
	}
	return v.Data.JobID
}

func (w *world) inboxWithMail() (inbox.Email, map[string]any) {
	w.t.Helper()
	in := w.data("acme", "PUT", "/inboxes", `{"slug":"facturas"}`, 201)
	return w.deliver(in, orgA, wsA), in
}

// jobCallers adds people to the world: another operator, an admin, and the first one with fewer scopes.
func (w *world) jobCallers() {
	v, err := inboxops.Vocabulary()
	w.must(err)
	add := func(name, subject string, role op.Role, scopes string) {
		c := *w.callers["acme"]
		c.Subject, c.Grant, c.Role, c.Scopes = subject, "g"+name, role, v.Parse(scopes)
		c.Workspaces = []op.Workspace{{ID: wsA, Slug: "main", Name: "Main", Role: role}}
		w.callers[name] = &c
	}
	add("one", "user_one", op.Operator, "emails:write jobs:write")
	add("one-writes", "user_one", op.Operator, "emails:write")
	add("one-reads", "user_one", op.Operator, "emails:read")
	add("one-follows", "user_one", op.Viewer, "jobs:read")
	add("two", "user_two", op.Operator, "emails:write jobs:write")
	add("admin", "user_admin", op.Admin, "emails:write jobs:write")
	add("admin-blind", "user_admin", op.Admin, "emails:write")
}

// Who may read and cancel the job of user_one.
func TestWhoMayFollowAJob(t *testing.T) {
	for _, c := range []struct {
		who          string
		get, cancel  int
		lists, refer bool // the list shows it; the list is open at all
	}{
		{"one", 200, 200, true, true},
		{"one-writes", 200, 403, false, false},
		{"one-reads", 404, 403, false, false},
		{"one-follows", 200, 403, true, true},
		{"two", 404, 404, false, true},
		{"admin", 200, 200, true, true},
		{"admin-blind", 404, 403, false, false},
		{"globex", 404, 404, false, true},
	} {
		w := newWorld(t)
		w.jobCallers()
		mail, _ := w.inboxWithMail()
		id := w.reprocess("one", mail, "k")
		if code, text := w.do(c.who, "GET", "/jobs/"+id, ""); code != c.get {
			t.Errorf("%s reads: %d %s, want %d", c.who, code, text, c.get)
		}
		code, text := w.do(c.who, "GET", "/jobs", "")
		if (code == 200) != c.refer || strings.Contains(text, id) != c.lists {
			t.Errorf("%s lists: %d %s", c.who, code, text)
		}
		if code, text := w.do(c.who, "POST", "/jobs/"+id+"/cancel", ""); code != c.cancel {
			t.Errorf("%s cancels: %d %s, want %d", c.who, code, text, c.cancel)
		}
		want := map[bool]string{true: "canceled", false: "queued"}[c.cancel == 200]
		if got := w.data("one", "GET", "/jobs/"+id, "", 200); got["status"] != want || got["kind"] != "emails_reprocess" || got["target_id"] != mail.ID {
			t.Errorf("after %s: %v", c.who, got)
		}
	}
}

func TestJobReplies(t *testing.T) {
	w := newWorld(t)
	w.jobCallers()
	mail, _ := w.inboxWithMail()
	id := w.reprocess("one", mail, "k")
	if code, text := w.do("one", "GET", "/jobs/"+id, ""); code != 200 || !strings.Contains(text, `"result":null,"error":null,"started_by":{"subject":"user_one","client":"client-acme"}`) {
		t.Errorf("queued: %d %s", code, text)
	}
	end := func(f func(*inbox.Job)) {
		_, err := w.store.UpdateJob(t.Context(), wsA, id, inbox.Act{}, func(j *inbox.Job) error { f(j); return nil })
		w.must(err)
	}
	end(func(j *inbox.Job) {
		j.Finish(inbox.JobFailed, clock())
		j.Error = &inbox.JobError{Kind: "conflict", Code: "raw_missing", Public: "Gone.", Fixes: []string{"Ask."}}
	})
	got := w.data("one", "GET", "/jobs/"+id+"?wait_s=20", "", 200)
	failure, _ := got["error"].(map[string]any)
	if failure["code"] != "raw_missing" || failure["detail"] != "Gone." || got["status"] != "failed" || got["finished_at"] == nil {
		t.Errorf("failed: %v", got)
	}
	for range 2 {
		if code, text := w.do("one", "POST", "/jobs/"+id+"/cancel", ""); code != 409 || !strings.Contains(text, "job_over") {
			t.Errorf("cancel what is over: %d %s", code, text)
		}
	}
	other := w.reprocess("one", mail, "k2")
	for range 2 {
		if got := w.data("one", "POST", "/jobs/"+other+"/cancel", "", 200); got["status"] != "canceled" {
			t.Errorf("cancel: %v", got)
		}
	}
	for _, bad := range []string{"?wait_s=21", "?wait_s=-1", "?wait_s=x", "?wait=1"} {
		if code, text := w.do("one", "GET", "/jobs/"+id+bad, ""); code != 400 {
			t.Errorf("%s: %d %s", bad, code, text)
		}
	}
	for _, bad := range []string{"job_x", "email_01J00000000000000000000000", "job_01J00000000000000000000000"} {
		if code, _ := w.do("one", "GET", "/jobs/"+bad, ""); code != 404 {
			t.Errorf("%s: %d", bad, code)
		}
	}
	for query, want := range map[string]int{
		"?status=canceled": 1, "?status=failed": 1, "?status=queued": 0, "?kind=emails_reprocess": 2, "?kind=x": 0, "?after=2026-07-28T12:00:01Z": 0, "?after=2026-07-28T11:59:59Z": 2,
	} {
		code, text := w.do("one", "GET", "/jobs"+query, "")
		var v struct{ Data []map[string]any }
		w.must(json.Unmarshal([]byte(text), &v))
		if code != 200 || len(v.Data) != want {
			t.Errorf("%s: %d %s", query, code, text)
		}
	}
	if code, _ := w.do("one", "GET", "/jobs?status=done", ""); code != 400 {
		t.Errorf("an unknown status: %d", code)
	}
}

// The same key: the same job, and no second one; what the key must be is said.
func TestReprocessIsStartedOnce(t *testing.T) {
	w := newWorld(t)
	w.jobCallers()
	mail, _ := w.inboxWithMail()
	first := w.reprocess("one", mail, "k")
	if again := w.reprocess("one", mail, "k"); again != first {
		t.Errorf("%s, then %s", first, again)
	}
	if other := w.reprocess("two", mail, "k"); other == first {
		t.Error("another person's key is the same one")
	}
	for _, c := range []struct {
		path, body, key string
		status          int
		code            string
	}{
		{"/emails/" + mail.ID + "/reprocess", `{"notify":true}`, "k", 409, "idempotency_conflict"},
		{"/emails/" + mail.ID + "/reprocess", ``, "", 400, "invalid"},
		{"/emails/" + mail.ID + "/reprocess", `{"stages":["everything"]}`, "k3", 400, "invalid"},
		{"/emails/" + mail.ID + "/reprocess", `{"stages":"content"}`, "k3", 400, "invalid"},
		{"/emails/email_01J00000000000000000000000/reprocess", ``, "k4", 404, "not_found"},
		{"/emails/x/reprocess", ``, "k4", 404, "not_found"},
	} {
		out := w.post("one", c.path, c.body, c.key)
		if out.Code != c.status || !strings.Contains(out.Body.String(), `"code":"`+c.code+`"`) {
			t.Errorf("%+v: %d %s", c, out.Code, out.Body)
		}
	}
	if out := w.post("viewer", "/emails/"+mail.ID+"/reprocess", "", "k5"); out.Code != 403 {
		t.Errorf("a viewer: %d", out.Code)
	}
	if out := w.post("globex", "/emails/"+mail.ID+"/reprocess", "", "k6"); out.Code != 404 {
		t.Errorf("another tenant: %d", out.Code)
	}
	w.data("acme", "DELETE", "/emails/"+mail.ID, "", 200)
	if out := w.post("one", "/emails/"+mail.ID+"/reprocess", "", "k7"); out.Code != 404 {
		t.Errorf("deleted: %d %s", out.Code, out.Body)
	}
}

// tasked is a client of revision 2026-07-28 with elicitation and tasks, on the tools behind the protocol's own server.
type tasked struct {
	*world
	server *mcp.Server
	who    string
}

type open struct{ *world }

// Authenticate takes the caller's name for a token.
func (o open) Authenticate(ctx context.Context, h http.Header) (mcp.Caller, error) {
	return o.world.Authenticate(ctx, h)
}

func (o open) Take(context.Context, string) mcp.Limit { return mcp.Limit{Allowed: true} }
func (o open) Peek(context.Context, string) mcp.Limit { return mcp.Limit{Allowed: true} }

// box seals nothing: what it gives out is what it got.
type box struct{}

func (box) Seal(plaintext, ad []byte, _ time.Duration) (string, error) {
	return string(ad) + "|" + string(plaintext), nil
}

func (box) Open(token string, ad []byte) ([]byte, error) {
	text, ok := strings.CutPrefix(token, string(ad)+"|")
	if !ok {
		return nil, errors.New("not mine")
	}
	return []byte(text), nil
}

func newTasked(t *testing.T) *tasked {
	t.Helper()
	w := newWorld(t)
	w.jobCallers()
	server, err := mcp.New(mcp.Deps{
		Authenticator: open{w}, Challenger: w, Limiter: open{w}, Tools: w.tools, Tasks: w.tools, Sealer: box{}, Now: clock,
	}, mcp.Options{Name: "buzon", Version: "1"})
	w.must(err)
	return &tasked{w, server, "one"}
}

const (
	withTasks    = `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	withoutTasks = `{"elicitation":{}}`
)

type reply struct {
	Result struct {
		ResultType   string          `json:"resultType"`
		TaskID       string          `json:"taskId"`
		Status       string          `json:"status"`
		StatusText   string          `json:"statusMessage"`
		TTL          int64           `json:"ttlMs"`
		RequestState string          `json:"requestState"`
		IsError      bool            `json:"isError"`
		Structured   json.RawMessage `json:"structuredContent"`
		Result       *struct {
			IsError bool `json:"isError"`
			Content []struct{ Text string }
		} `json:"result"`
	} `json:"result"`
	Error *struct {
		Code int
		Data map[string]any
	} `json:"error"`
}

func (c *tasked) send(method, name, params, capabilities string) (int, reply) {
	c.t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params + `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":` + capabilities + `}}}`
	r := httptest.NewRequest(http.MethodPost, "http://x.test/mcp", strings.NewReader(body))
	for k, v := range map[string]string{
		"Authorization": "Bearer " + c.who, "Content-Type": "application/json", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name,
	} {
		r.Header.Set(k, v)
	}
	out := httptest.NewRecorder()
	c.server.ServeHTTP(out, r)
	var v reply
	if err := json.Unmarshal(out.Body.Bytes(), &v); err != nil {
		c.t.Fatalf("%s: %d %s", method, out.Code, out.Body)
	}
	return out.Code, v
}

func (c *tasked) reread(mail, key, state, capabilities string) reply {
	c.t.Helper()
	params := `"name":"emails_reprocess","arguments":{"id":"` + mail + `","idempotency_key":"` + key + `"}`
	if state != "" {
		encoded, err := json.Marshal(state)
		c.must(err)
		params += `,"requestState":` + string(encoded) + `,"inputResponses":{"confirm":{"action":"accept","content":{"confirm":true}}}`
	}
	_, v := c.send("tools/call", "emails_reprocess", params, capabilities)
	return v
}

func (c *tasked) task(method, id string) (int, reply) {
	c.t.Helper()
	params := `"taskId":"` + id + `"`
	if method == "tasks/update" {
		params += `,"inputResponses":{}`
	}
	return c.send(method, id, params, withTasks)
}

// A 202 over MCP: asked first, then a task; repeated with its key nobody is asked again, whether the state comes back or not.
func TestTaskOfAJob(t *testing.T) {
	c := newTasked(t)
	mail, _ := c.inboxWithMail()
	asked := c.reread(mail.ID, "k", "", withTasks)
	if asked.Result.ResultType != "input_required" || asked.Result.TaskID != "" {
		t.Fatalf("%+v", asked)
	}
	first := c.reread(mail.ID, "k", asked.Result.RequestState, withTasks)
	id := first.Result.TaskID
	if first.Result.ResultType != "task" || first.Result.Status != "working" || !strings.HasPrefix(id, "job_") || first.Result.RequestState != "" || first.Result.TTL <= 0 {
		t.Fatalf("%+v", first)
	}
	for name, again := range map[string]reply{
		"the yes again": c.reread(mail.ID, "k", asked.Result.RequestState, withTasks),
		"without a yes": c.reread(mail.ID, "k", "", withTasks),
	} {
		if again.Result.ResultType != "task" || again.Result.TaskID != id {
			t.Errorf("%s: %+v", name, again)
		}
	}
	plain := c.reread(mail.ID, "k", "", withoutTasks)
	if plain.Result.ResultType != "complete" || !strings.Contains(string(plain.Result.Structured), `"job_id":"`+id+`"`) {
		t.Errorf("without tasks: %+v %s", plain, plain.Result.Structured)
	}
	// The yes was for one act: with another key it is used up.
	if used := c.reread(mail.ID, "k2", asked.Result.RequestState, withTasks); used.Error == nil || used.Error.Code != -32602 {
		t.Errorf("the yes for another act: %+v", used)
	}
	if code, v := c.task("tasks/get", id); code != 200 || v.Result.Status != "working" || v.Result.ResultType != "complete" || v.Result.Result != nil {
		t.Errorf("%d %+v", code, v)
	}
	if code, v := c.task("tasks/update", id); code != 200 || v.Error != nil || v.Result.TaskID != "" {
		t.Errorf("update: %d %+v", code, v)
	}
	_, err := c.store.UpdateJob(t.Context(), wsA, id, inbox.Act{}, func(j *inbox.Job) error {
		j.Finish(inbox.JobSucceeded, clock())
		j.Result = json.RawMessage(`{"changed":[]}`)
		return nil
	})
	c.must(err)
	_, route := c.do("one", "GET", "/jobs/"+id, "")
	if code, v := c.task("tasks/get", id); code != 200 || v.Result.Status != "completed" || v.Result.Result == nil || v.Result.Result.IsError || v.Result.Result.Content[0].Text != route {
		t.Errorf("%d %+v, the route: %s", code, v, route)
	}
	if code, v := c.task("tasks/cancel", id); code != 200 || v.Error != nil {
		t.Errorf("cancel what is over: %d %+v", code, v)
	}
}

func TestTaskThatFailsOrIsCanceled(t *testing.T) {
	c := newTasked(t)
	mail, _ := c.inboxWithMail()
	id := c.reprocess("one", mail, "k")
	_, err := c.store.UpdateJob(t.Context(), wsA, id, inbox.Act{}, func(j *inbox.Job) error {
		j.Finish(inbox.JobFailed, clock())
		j.Error = &inbox.JobError{Kind: "conflict", Code: "raw_missing", Public: "The raw bytes are gone."}
		return nil
	})
	c.must(err)
	if _, v := c.task("tasks/get", id); v.Result.Status != "completed" || v.Result.Result == nil || !v.Result.Result.IsError || v.Result.StatusText != "The raw bytes are gone." {
		t.Errorf("a job that failed: %+v", v)
	}
	other := c.reprocess("one", mail, "k2")
	for range 2 {
		if code, v := c.task("tasks/cancel", other); code != 200 || v.Error != nil {
			t.Errorf("cancel: %d %+v", code, v)
		}
	}
	if _, v := c.task("tasks/get", other); v.Result.Status != "cancelled" {
		t.Errorf("%+v", v)
	}
}

// A task is its owner's: not an admin's, not another tenant's, and without the scopes to read it nobody's.
func TestTaskIsItsOwners(t *testing.T) {
	c := newTasked(t)
	mail, _ := c.inboxWithMail()
	id := c.reprocess("one", mail, "k")
	for who, want := range map[string]map[string]int{
		"one":         {"tasks/get": 0, "tasks/update": 0},
		"one-writes":  {"tasks/get": 0, "tasks/update": 0, "tasks/cancel": -32600}, // 403: the scope to cancel
		"one-reads":   {"tasks/get": -32602, "tasks/update": -32602, "tasks/cancel": -32602},
		"one-follows": {"tasks/get": 0, "tasks/cancel": -32600},
		"two":         {"tasks/get": -32602, "tasks/update": -32602, "tasks/cancel": -32602},
		"admin":       {"tasks/get": -32602, "tasks/update": -32602, "tasks/cancel": -32602},
		"globex":      {"tasks/get": -32602, "tasks/update": -32602, "tasks/cancel": -32602},
	} {
		c.who = who
		for method, code := range want {
			_, v := c.task(method, id)
			if got := v.Error; (code == 0) != (got == nil) || got != nil && got.Code != code {
				t.Errorf("%s, %s: %+v, want %d", who, method, v, code)
			}
		}
	}
	c.who = "one"
	for _, bad := range []string{"job_01J00000000000000000000000", "x/../y", "email_01J00000000000000000000000"} {
		if _, v := c.task("tasks/get", bad); v.Error == nil || v.Error.Code != -32602 {
			t.Errorf("%s: %+v", bad, v)
		}
	}
	if _, v := c.task("tasks/get", id); v.Result.Status != "working" {
		t.Errorf("somebody ended it: %+v", v)
	}
}

// Everything that sends something takes a key, and must, unless a repetition sends nothing more anyhow; what starts a job says so.
func TestOutwardOperationsTakeAKey(t *testing.T) {
	c, err := inboxops.Catalogue(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range c.Operations() {
		takes := rest.TakesKey(o.Input)
		if o.Outward && !takes && !o.Idempotent {
			t.Errorf("%s lets something out without an idempotency key", o.Name)
		}
		if o.Job && o.Status != http.StatusAccepted {
			t.Errorf("%s starts a job and answers %d", o.Name, o.Status)
		}
	}
}

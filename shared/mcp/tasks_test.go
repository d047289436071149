package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/mcp"
)

const withTasks = `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`

var created = time.Date(2025, 11, 25, 10, 30, 0, 0, time.UTC)

// longText is longer than what tools/call writes apart from the rest of its reply.
var longText = `{"data":"` + strings.Repeat("x", 5000) + `"}`

// desk has a task for each status, of the grant of good alone.
type desk struct {
	cancelled []string
	answers   []string
	released  int
}

func (d *desk) tasks() map[string]*mcp.Task {
	of := func(status mcp.TaskStatus) mcp.Task {
		return mcp.Task{ID: string(status), Status: status, Created: created, Updated: created.Add(10 * time.Minute), TTL: time.Hour, Poll: 5 * time.Second}
	}
	all := map[string]*mcp.Task{}
	for _, s := range []mcp.TaskStatus{mcp.TaskWorking, mcp.TaskInputRequired, mcp.TaskCompleted, mcp.TaskFailed, mcp.TaskCancelled} {
		t := of(s)
		all[t.ID] = &t
	}
	all["working"].Message = "The operation is now in \"progress\"."
	all["input_required"].Questions = []mcp.Question{mcp.AskForm("name", "Please enter your name.", mcp.Form{{Name: "name", Required: true}})}
	all["completed"].Result = &mcp.CallResult{JSON: []byte(`{"data":{"n":1}}`), Meta: []byte(`"x":1`), Released: func() { d.released++ }}
	all["failed"].Error, all["failed"].Message = &mcp.TaskError{Code: -32603, Message: "API rate limit exceeded"}, "Tool execution failed"
	wrong := of(mcp.TaskCompleted)
	wrong.ID, wrong.Result = "tool, error", &mcp.CallResult{JSON: []byte(`{"kind":"invalid"}`), IsError: true}
	all[wrong.ID] = &wrong
	long := of(mcp.TaskCompleted)
	long.ID, long.Result = "long", &mcp.CallResult{JSON: []byte(longText)}
	all[long.ID] = &long
	forever := of(mcp.TaskWorking)
	forever.ID, forever.TTL, forever.Poll = "ñ", 0, 0
	all[forever.ID] = &forever
	for _, fault := range []func(*mcp.Task){
		func(t *mcp.Task) { t.ID, t.Status = "no status", "done" },
		func(t *mcp.Task) { t.ID, t.Status = "no result", mcp.TaskCompleted },
		func(t *mcp.Task) { t.ID, t.Created = "no time", time.Time{} },
		func(t *mcp.Task) { t.ID, t.Status = "no error", mcp.TaskFailed },
		func(t *mcp.Task) { t.ID, t.Result = "too early", &mcp.CallResult{JSON: []byte(`{}`)} },
		func(t *mcp.Task) {
			t.ID, t.Status, t.Result = "task in a task", mcp.TaskCompleted, &mcp.CallResult{Task: &mcp.Task{}}
		},
	} {
		t := of(mcp.TaskWorking)
		fault(&t)
		all[t.ID] = &t
	}
	return all
}

func (d *desk) Task(_ context.Context, r *mcp.TaskRequest) (*mcp.Task, error) {
	switch r.ID {
	case "scoped":
		return nil, &mcp.ScopeError{Scopes: []string{"jobs:write"}}
	case "down":
		return nil, apperr.New(apperr.Unavailable, "", "The store is down.").Because(errCanary)
	case "broken":
		return nil, errCanary
	case "nothing":
		return nil, nil //nolint:nilnil // the fault under test
	case "asks":
		return nil, &mcp.Ask{State: []byte("x")}
	}
	t := d.tasks()[r.ID]
	if t == nil || r.Caller.GrantID() != "grant_good" {
		return nil, mcp.ErrUnknown
	}
	return t, nil
}

func (d *desk) CancelTask(ctx context.Context, r *mcp.TaskRequest) error {
	if _, err := d.Task(ctx, r); err != nil {
		return err
	}
	d.cancelled = append(d.cancelled, r.ID)
	return nil
}

func (d *desk) AnswerTask(ctx context.Context, r *mcp.TaskRequest) error {
	if _, err := d.Task(ctx, r); err != nil {
		return err
	}
	e, err := r.Input.Form("name", mcp.Form{{Name: "name", Required: true}})
	if err == nil && e.Action == mcp.Accepted {
		d.answers = append(d.answers, e.Text("name"))
	}
	return err
}

func (d *desk) ListTools(context.Context, *mcp.ListRequest) (mcp.ListResult, error) {
	return mcp.ListResult{}, nil
}

// CallTool answers with the task that its name names, whatever the client declared: keeping it from others is the server's.
func (d *desk) CallTool(_ context.Context, r *mcp.CallRequest) (*mcp.CallResult, error) {
	switch {
	case r.Name == "only" && !r.CanTask():
		return nil, mcp.ErrTaskOnly
	case r.Name == "either" && !r.CanTask():
		return &mcp.CallResult{JSON: []byte(`{"job":1}`)}, nil
	}
	return &mcp.CallResult{Task: d.tasks()["working"], Released: func() { d.released++ }}, nil
}

func deskRig(tb testing.TB) (*rig, *desk) {
	tb.Helper()
	d := &desk{}
	return newRig(tb, func(deps *mcp.Deps, _ *mcp.Options) { deps.Tasks, deps.Tools = d, d }), d
}

// taskCall sends a request of the stateless era with these client capabilities.
func taskCall(tb testing.TB, h *rig, method, params, capabilities string, headers ...string) (*httptest.ResponseRecorder, message) {
	tb.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params + `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":` + capabilities + `}}}`
	return post(tb, h, body, append([]string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method}, headers...)...)
}

func quoted(s string) string {
	b, _ := json.Marshal(s) //nolint:errcheck // a string
	return string(b)
}

// named sends a request about a task, with the header that repeats its id.
func named(tb testing.TB, h *rig, method, id, more string) (*httptest.ResponseRecorder, message) {
	tb.Helper()
	header := id
	if strings.Contains(id, "ñ") {
		header = "=?base64?w7E=?="
	}
	return taskCall(tb, h, method, `"taskId":`+quoted(id)+`,`+more, withTasks, "Mcp-Name", header)
}

// The schema of the extension (modelcontextprotocol/ext-tasks) is read once.
var taskSchemas = sync.OnceValues(func() (*jsonschema.Compiler, error) { //nolint:gochecknoglobals // cache of a constant file
	b, err := os.ReadFile("testdata/schema/tasks/schema.json")
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	return c, c.AddResource("mcp:tasks", doc)
})

func taskConforms(tb testing.TB, definition string, value []byte) error {
	tb.Helper()
	c, err := taskSchemas()
	if err != nil {
		tb.Fatal(err)
	}
	s, err := c.Compile("mcp:tasks#/$defs/" + definition)
	if err != nil {
		tb.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		tb.Fatal(err)
	}
	return s.Validate(v)
}

// TestTaskStatuses: each status in the shape of the extension's schema, and none in that of another.
func TestTaskStatuses(t *testing.T) {
	r, d := deskRig(t)
	shapes := map[string]string{
		"working": "WorkingTask", "ñ": "WorkingTask", "input_required": "InputRequiredTask", "completed": "CompletedTask",
		"tool, error": "CompletedTask", "failed": "FailedTask", "cancelled": "CancelledTask",
	}
	for id, shape := range shapes {
		w, m := named(t, r, "tasks/get", id, "")
		if w.Code != 200 || m.Error != nil {
			t.Errorf("%s: %d %s", id, w.Code, w.Body)
			continue
		}
		for _, definition := range []string{"GetTaskResult", "Task", shape} {
			if err := taskConforms(t, definition, m.Result); err != nil {
				t.Errorf("%s is no %s: %v\n%s", id, definition, err, m.Result)
			}
		}
		for _, other := range []string{"WorkingTask", "CompletedTask", "FailedTask", "CancelledTask", "InputRequiredTask"} {
			if other != shape && taskConforms(t, other, m.Result) == nil {
				t.Errorf("%s is also a %s: the schema is not applied", id, other)
			}
		}
		got := members(t, m.Result)
		if got["resultType"] != "complete" || got["_meta"] == nil || got["taskId"] != id || got["createdAt"] != "2025-11-25T10:30:00Z" {
			t.Errorf("%s: %s", id, m.Result)
		}
		_, result := got["result"]
		_, failure := got["error"]
		_, asked := got["inputRequests"]
		if result != (shape == "CompletedTask") || failure != (shape == "FailedTask") || asked != (shape == "InputRequiredTask") || got["requestState"] != nil {
			t.Errorf("%s carries what is not of its status: %s", id, m.Result)
		}
	}
	if d.released != 1 {
		t.Errorf("%d results were released", d.released)
	}
}

// TestTaskResult: the inlined result is what tools/call would have answered, byte for byte in its text.
func TestTaskResult(t *testing.T) {
	r, _ := deskRig(t)
	s, err := official()
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{
		"completed":   `{"resultType":"complete","content":[{"type":"text","text":"{\"data\":{\"n\":1}}"}],"structuredContent":{"data":{"n":1}},`,
		"long":        `{"resultType":"complete","content":[{"type":"text","text":"{\"data\":\"` + longText[9:len(longText)-2] + `\"}"}],"structuredContent":` + longText + `,`,
		"tool, error": `{"resultType":"complete","content":[{"type":"text","text":"{\"kind\":\"invalid\"}"}],"isError":true,`,
	} {
		_, m := named(t, r, "tasks/get", id, "")
		var got struct {
			TTL    *int64          `json:"ttlMs"`
			Poll   *int64          `json:"pollIntervalMs"`
			Result json.RawMessage `json:"result"`
		}
		if err := json.Unmarshal(m.Result, &got); err != nil {
			t.Fatal(err)
		}
		if err := s.check("2026-07-28", "CallToolResult", got.Result); err != nil || !strings.HasPrefix(string(got.Result), want) {
			t.Errorf("%s: %s, %v", id, got.Result, err)
		}
		if got.TTL == nil || *got.TTL != 3_600_000 || got.Poll == nil || *got.Poll != 5000 {
			t.Errorf("%s: %s", id, m.Result)
		}
	}
	_, m := named(t, r, "tasks/get", "ñ", "")
	if !bytes.Contains(m.Result, []byte(`"ttlMs":null`)) || bytes.Contains(m.Result, []byte("pollIntervalMs")) {
		t.Errorf("a task without end: %s", m.Result)
	}
}

// TestTaskAcknowledgements: cancel and update answer with nothing but their type.
func TestTaskAcknowledgements(t *testing.T) {
	r, d := deskRig(t)
	for _, c := range []struct{ method, id, more, definition string }{
		{"tasks/cancel", "working", "", "CancelTaskResult"},
		{"tasks/cancel", "completed", "", "CancelTaskResult"},
		{"tasks/update", "input_required", `"inputResponses":{"name":{"action":"accept","content":{"name":"Luca"}}},`, "UpdateTaskResult"},
		{"tasks/update", "input_required", `"inputResponses":{"unknown-key":{"ignored":true}},`, "UpdateTaskResult"},
		{"tasks/update", "working", `"inputResponses":{},`, "UpdateTaskResult"},
	} {
		w, m := named(t, r, c.method, c.id, c.more)
		if w.Code != 200 || m.Error != nil {
			t.Errorf("%+v: %d %s", c, w.Code, w.Body)
			continue
		}
		if err := taskConforms(t, c.definition, m.Result); err != nil || len(members(t, m.Result)) != 2 {
			t.Errorf("%+v: %s, %v", c, m.Result, err)
		}
	}
	if strings.Join(d.cancelled, " ") != "working completed" || strings.Join(d.answers, " ") != "Luca" {
		t.Errorf("cancelled %v, answers %v", d.cancelled, d.answers)
	}
}

// TestTaskRefusals: what is no task of this caller, and what is no request about one.
func TestTaskRefusals(t *testing.T) {
	r, d := deskRig(t)
	for _, c := range []struct {
		name, method, params, capabilities string
		header                             string
		status, code                       int
	}{
		{"unknown", "tasks/get", `"taskId":"x",`, withTasks, "x", 200, -32602},
		{"unknown, cancel", "tasks/cancel", `"taskId":"x",`, withTasks, "x", 200, -32602},
		{"unknown, update", "tasks/update", `"taskId":"x","inputResponses":{},`, withTasks, "x", 200, -32602},
		{"not declared", "tasks/get", `"taskId":"working",`, `{}`, "working", 400, -32021},
		{"not declared, unknown too", "tasks/get", `"taskId":"x",`, `{"elicitation":{}}`, "x", 400, -32021},
		{"not declared, cancel", "tasks/cancel", `"taskId":"working",`, `{"extensions":{}}`, "working", 400, -32021},
		{"not declared, update", "tasks/update", `"taskId":"working","inputResponses":{},`, `{"extensions":{"io.modelcontextprotocol/tasks":true}}`, "working", 400, -32021},
		{"declared twice", "tasks/get", `"taskId":"working",`, `{"extensions":{"io.modelcontextprotocol/tasks":{},"io.modelcontextprotocol/tasks":{}}}`, "working", 400, -32021},
		{"no id", "tasks/get", ``, withTasks, "", 200, -32602},
		{"id is a number", "tasks/get", `"taskId":1,`, withTasks, "", 200, -32602},
		{"no header", "tasks/get", `"taskId":"working",`, withTasks, "", 400, -32020},
		{"another header", "tasks/get", `"taskId":"working",`, withTasks, "completed", 400, -32020},
		{"another header, cancel", "tasks/cancel", `"taskId":"working",`, withTasks, "completed", 400, -32020},
		{"another header, update", "tasks/update", `"taskId":"working","inputResponses":{},`, withTasks, "completed", 400, -32020},
		{"no answers", "tasks/update", `"taskId":"working",`, withTasks, "working", 200, -32602},
		{"answers are a list", "tasks/update", `"taskId":"working","inputResponses":[],`, withTasks, "working", 200, -32602},
		{"malformed answer", "tasks/update", `"taskId":"input_required","inputResponses":{"name":{"action":"maybe"}},`, withTasks, "input_required", 200, -32602},
		{"can't be asked", "tasks/get", `"taskId":"input_required",`, `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`, "input_required", 400, -32021},
		{"scope", "tasks/cancel", `"taskId":"scoped",`, withTasks, "scoped", 403, -32600},
		{"outage", "tasks/get", `"taskId":"down",`, withTasks, "down", 503, -32603},
		{"bug", "tasks/get", `"taskId":"broken",`, withTasks, "broken", 500, -32603},
		{"nothing", "tasks/get", `"taskId":"nothing",`, withTasks, "nothing", 500, -32603},
		{"asks", "tasks/get", `"taskId":"asks",`, withTasks, "asks", 500, -32603},
		{"tasks/list is gone", "tasks/list", ``, withTasks, "", 404, -32601},
		{"tasks/result is gone", "tasks/result", `"taskId":"completed",`, withTasks, "completed", 404, -32601},
	} {
		var headers []string
		if c.header != "" {
			headers = []string{"Mcp-Name", c.header}
		}
		w, m := taskCall(t, r, c.method, c.params, c.capabilities, headers...)
		if w.Code != c.status || m.Error == nil || m.Error.Code != c.code || strings.Contains(w.Body.String(), "hunter2") {
			t.Errorf("%s: %d %s, want %d and %d", c.name, w.Code, w.Body, c.status, c.code)
			continue
		}
		conforms(t, "2026-07-28", c.method, w.Body.Bytes())
		if c.code == -32021 && c.name != "can't be asked" && !strings.Contains(w.Body.String(), `"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}`) {
			t.Errorf("%s: %s", c.name, w.Body)
		}
	}
	for id := range d.tasks() {
		if !strings.Contains(id, " ") || id == "tool, error" {
			continue
		}
		if w, _ := named(t, r, "tasks/get", id, ""); w.Code != 500 {
			t.Errorf("a task with %s: %d %s", id, w.Code, w.Body)
		}
	}
	if len(d.cancelled)+len(d.answers) != 0 {
		t.Errorf("something happened: %+v", d)
	}
	w, _ := taskCall(t, r, "tasks/get", `"taskId":"working",`, withTasks, "Mcp-Name", "working", "Authorization", "Bearer other")
	if w.Code != 200 || !strings.Contains(w.Body.String(), "-32602") || !strings.Contains(w.Body.String(), "Unknown task") {
		t.Errorf("another grant: %d %s", w.Code, w.Body)
	}
}

// TestTaskEras: the older revisions have none of it.
func TestTaskEras(t *testing.T) {
	r, _ := deskRig(t)
	for _, version := range []string{"2025-11-25", "2024-11-05"} {
		w, m := post(t, r, `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"working"}}`, "MCP-Protocol-Version", version)
		if w.Code != 200 || m.Error == nil || m.Error.Code != -32601 {
			t.Errorf("%s: %d %s", version, w.Code, w.Body)
		}
		w, _ = post(t, r, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"only"}}`, "MCP-Protocol-Version", version)
		if w.Code != 200 || !strings.Contains(w.Body.String(), `"isError":true`) {
			t.Errorf("%s, a tool that needs tasks: %s", version, w.Body)
		}
	}
	_, m := modern(t, r, "server/discover", "")
	if !bytes.Contains(m.Result, []byte(`"extensions":{"io.modelcontextprotocol/tasks":{}}`)) {
		t.Errorf("discover: %s", m.Result)
	}
	conforms(t, "2026-07-28", "server/discover", []byte(`{"jsonrpc":"2.0","id":1,"result":`+string(m.Result)+`}`))
	if _, m := modern(t, newRig(t, nil), "server/discover", ""); bytes.Contains(m.Result, []byte("extensions")) {
		t.Errorf("discover without tasks: %s", m.Result)
	}
	if w, _ := named(t, newRig(t, nil), "tasks/get", "working", ""); w.Code != 404 {
		t.Errorf("tasks/get where there are none: %d", w.Code)
	}
}

// TestTaskInPlaceOfResult: only who declared the extension with the very request gets one.
func TestTaskInPlaceOfResult(t *testing.T) {
	r, d := deskRig(t)
	w, m := taskCall(t, r, "tools/call", `"name":"either",`, withTasks, "Mcp-Name", "either")
	if w.Code != 200 || m.Error != nil {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if err := taskConforms(t, "CreateTaskResult", m.Result); err != nil {
		t.Errorf("%v: %s", err, m.Result)
	}
	got := members(t, m.Result)
	if got["resultType"] != "task" || got["taskId"] != "working" || got["content"] != nil || got["task"] != nil || got["_meta"] == nil || d.released != 1 {
		t.Errorf("%s, released %d", m.Result, d.released)
	}
	for _, c := range []struct {
		tool, capabilities string
		status, code       int
	}{{"either", `{}`, 200, 0}, {"only", `{}`, 400, -32021}, {"always", `{}`, 500, -32603}, {"always", `{"extensions":{"io.modelcontextprotocol/tasks":[]}}`, 500, -32603}} {
		w, m := taskCall(t, r, "tools/call", `"name":"`+c.tool+`",`, c.capabilities, "Mcp-Name", c.tool)
		if w.Code != c.status || (c.code != 0) != (m.Error != nil) || m.Error != nil && m.Error.Code != c.code || strings.Contains(w.Body.String(), "taskId") {
			t.Errorf("%+v: %d %s", c, w.Code, w.Body)
		}
		conforms(t, "2026-07-28", "tools/call", w.Body.Bytes())
	}
}

// TestTaskExamples: the messages of the extension's own text, with the envelope that the revision demands.
func TestTaskExamples(t *testing.T) {
	r, _ := deskRig(t)
	for _, c := range []struct{ definition, message string }{
		{"GetTaskRequest", `{"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":"786512e2-9e0d-44bd-8f29-789f320fe840"}}`},
		{"UpdateTaskRequest", `{"jsonrpc":"2.0","id":6,"method":"tasks/update","params":{"taskId":"786512e2-9e0d-44bd-8f29-789f320fe840","inputResponses":{"name":{"action":"accept","content":{"input":"Luca"}}}}}`},
		{"CancelTaskRequest", `{"jsonrpc":"2.0","id":7,"method":"tasks/cancel","params":{"taskId":"786512e2-9e0d-44bd-8f29-789f320fe840"}}`},
	} {
		if err := taskConforms(t, c.definition, []byte(c.message)); err != nil {
			t.Errorf("%s: %v", c.definition, err)
		}
		method := strings.Split(c.message, `"`)[9]
		sent := strings.Replace(c.message, `"params":{`, `"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":`+withTasks+`},`, 1)
		w, m := post(t, r, sent, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method, "Mcp-Name", "786512e2-9e0d-44bd-8f29-789f320fe840")
		if w.Code != 200 || m.Error == nil || m.Error.Code != -32602 { // the text's own answer to a task that is not there
			t.Errorf("%s: %d %s", c.definition, w.Code, w.Body)
		}
	}
}

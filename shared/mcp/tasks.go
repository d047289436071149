package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// TasksExtension is the identifier under which client and server declare tasks (SEP-2663).
const TasksExtension = "io.modelcontextprotocol/tasks"

// Tasks is what a server offers of the tasks extension (SEP-2663, revision 2026-07-28 only): a tool may answer with a task
// instead of a result (CallResult.Task), and the client follows it here. Deps without it serves none of tasks/* and declares
// nothing. Every method checks that the task is the caller's: ErrUnknown for another's, as for one that never was or has
// expired (-32602). *ScopeError as for tools; any other error is internal.
type Tasks interface {
	// Task returns where a task stands, with its result or error once it is over.
	Task(ctx context.Context, r *TaskRequest) (*Task, error)
	// CancelTask takes note that nobody waits for the task any more. It may end in another way all the same; one that is over
	// stays as it is, and that is no error.
	CancelTask(ctx context.Context, r *TaskRequest) error
	// AnswerTask takes the answers to what Task.Questions asked, some or all of them. Answers to what is not being asked are
	// ignored. ErrAnswer: the client sent something else than was asked for.
	AnswerTask(ctx context.Context, r *TaskRequest) error
}

// TaskRequest is one tasks/get, tasks/cancel or tasks/update.
type TaskRequest struct {
	Caller  Caller
	Version Version
	ID      string
	Header  http.Header // of the HTTP request; read only
	// Input holds the answers of a tasks/update; nil for the other methods. They are as the client sent them: which questions
	// of the task they answer is for the handler to know.
	Input *Input
}

// TaskStatus is where a task stands.
type TaskStatus string

// The statuses of a task. The last three are final.
const (
	TaskWorking       TaskStatus = "working"
	TaskInputRequired TaskStatus = "input_required"
	TaskCompleted     TaskStatus = "completed" // with a result, be it an error that the tool reports
	TaskFailed        TaskStatus = "failed"    // with a JSON-RPC error and never for anything else
	TaskCancelled     TaskStatus = "cancelled"
)

// Task is work that goes on after its request was answered.
type Task struct {
	ID        string // nobody may guess it
	Status    TaskStatus
	Message   string // for people; empty: none
	Created   time.Time
	Updated   time.Time
	TTL       time.Duration // from Created on; 0: without end
	Poll      time.Duration // what a client is to wait between two looks; 0: not said
	Questions []Question    // of a task that is input_required: all that are open; no key is used twice in a task's life
	Result    *CallResult   // of one that is completed: what the tool would have answered
	Error     *TaskError    // of one that failed
}

// TaskError is the JSON-RPC error that the request would have been answered with.
type TaskError struct {
	Code    int
	Message string
}

// ErrTaskOnly is what a tool returns that can answer with nothing but a task, to a client that takes none (SEP-2663: MUST be -32021).
var ErrTaskOnly = errors.New("mcp: the tool needs the tasks extension")

// taskOnly tells a client of the 2025 era why such a tool has no result.
const taskOnly = "This tool answers with a task, which only clients of revision 2026-07-28 take. Nothing was done."

// CanTask reports whether the client takes a task for an answer: MCP 2026-07-28, and the extension declared with this very
// request.
func (r *CallRequest) CanTask() bool { return r.Version.Stateless() && declaresTasks(r.Capabilities) }

func declaresTasks(capabilities json.RawMessage) bool {
	return objectMember(objectMember(capabilities, "extensions"), TasksExtension) != nil
}

// noTasks: SEP-2663, "Protocol Errors": MUST be -32021 for a client that did not declare the extension.
func noTasks() *reply {
	r := refusal(http.StatusBadRequest, codeMissingCapability, apperr.Invalid, "The client did not declare a capability that this request needs")
	r.data = append(r.data, `"requiredCapabilities":{"extensions":{"`+TasksExtension+`":{}}}`...)
	return r
}

const unknownTask = "Unknown task"

// taskRequest reads what the three methods share. What the client declared is looked at first: it says whether there are tasks
// between the two at all.
func taskRequest(x *exchange) (*TaskRequest, *reply) {
	switch f := &x.frame; {
	case !declaresTasks(f.capabilities):
		return nil, noTasks()
	case !isText(f.task):
		return nil, badParams("Invalid params: taskId must be a string")
	default:
		return &TaskRequest{Caller: x.caller, Version: x.version, ID: string(unquote(f.task)), Header: x.r.Header}, nil
	}
}

func (s *Server) taskFailure(x *exchange, err error) *reply {
	if errors.Is(err, ErrUnknown) {
		return badParams(unknownTask)
	}
	if _, ok := errors.AsType[*Ask](err); ok {
		return s.internal(x, errors.New("mcp: "+x.method.name+" can't ask"))
	}
	return s.handlerFailure(x, "", err)
}

func getTask(s *Server, x *exchange) *reply {
	r, refused := taskRequest(x)
	if refused != nil {
		return refused
	}
	t, err := s.tasks.Task(x.ctx, r)
	if err != nil {
		return s.taskFailure(x, err)
	}
	if t == nil {
		return s.internal(x, errors.New("mcp: the task is nothing"))
	}
	if err := t.check(); err != nil {
		return s.internal(x, err)
	}
	need, have := t.needs(), declared(x.frame.capabilities)
	if !have.have(need) {
		return missingCapability(&Ask{}, need&^have, have)
	}
	x.openComplete()
	if x.out, err = s.appendTask(x.out, t); err != nil {
		return s.internal(x, err)
	}
	if t.Result != nil {
		x.released = t.Result.Released
	}
	return s.rendered(x, s.closeMeta(x, nil))
}

func cancelTask(s *Server, x *exchange) *reply {
	r, refused := taskRequest(x)
	if refused != nil {
		return refused
	}
	if err := s.tasks.CancelTask(x.ctx, r); err != nil {
		return s.taskFailure(x, err)
	}
	return s.acknowledge(x)
}

func updateTask(s *Server, x *exchange) *reply {
	r, refused := taskRequest(x)
	if refused != nil {
		return refused
	}
	r.Input = &Input{}
	if x.frame.answers == nil {
		return badParams("Invalid params: inputResponses must be an object")
	}
	if err := r.Input.take(x.frame.answers); err != nil {
		return malformedInput(err)
	}
	if err := s.tasks.AnswerTask(x.ctx, r); err != nil {
		return s.taskFailure(x, err)
	}
	return s.acknowledge(x)
}

// acknowledge is the empty result of a method that says nothing (SEP-2663: MUST carry resultType "complete").
func (s *Server) acknowledge(x *exchange) *reply {
	x.open()
	x.out = append(x.out, `"resultType":"complete"`...)
	return s.rendered(x, s.closeMeta(x, nil))
}

// renderTask answers a tools/call with a task in the place of its result. A client that did not declare the extension with
// this request MUST NOT get one, whatever it declared before.
func (s *Server) renderTask(x *exchange, t *Task) error {
	if s.tasks == nil || !x.version.Stateless() || !declaresTasks(x.frame.capabilities) {
		return errors.New("mcp: a task for a client that takes none")
	}
	if err := t.check(); err != nil {
		return err
	}
	x.open()
	x.out = t.append(append(x.out, `"resultType":"task",`...))
	return s.closeMeta(x, nil)
}

// check finds faults of the handler.
func (t *Task) check() error {
	known := false
	for _, s := range []TaskStatus{TaskWorking, TaskInputRequired, TaskCompleted, TaskFailed, TaskCancelled} {
		known = known || t.Status == s
	}
	switch {
	case t.ID == "" || !known || t.Created.IsZero() || t.Updated.IsZero() || t.TTL < 0 || t.Poll < 0:
		return fmt.Errorf("mcp: a task without id, times or a known status: %q", t.Status)
	case (t.Status == TaskInputRequired) != (len(t.Questions) > 0), (t.Status == TaskFailed) != (t.Error != nil),
		(t.Status == TaskCompleted) != (t.Result != nil):
		return fmt.Errorf("mcp: what the task carries does not belong to the status %s", t.Status)
	case t.Result != nil && (t.Result.Task != nil || !utf8.Valid(t.Result.Content)):
		return errors.New("mcp: the result of a task is no result")
	}
	if len(t.Questions) == 0 {
		return nil
	}
	_, err := (&Ask{Questions: t.Questions}).check()
	return err
}

func (t *Task) needs() (n Needs) {
	for _, q := range t.Questions {
		n |= q.needs
	}
	return n
}

// append writes the members that every task has.
func (t *Task) append(dst []byte) []byte {
	dst = appendQuoted(append(dst, `"taskId":`...), t.ID)
	dst = appendQuoted(append(dst, `,"status":`...), string(t.Status))
	dst = appendText(dst, "statusMessage", t.Message)
	dst = appendQuoted(append(dst, `,"createdAt":`...), t.Created.UTC().Format(time.RFC3339Nano))
	dst = appendQuoted(append(dst, `,"lastUpdatedAt":`...), t.Updated.UTC().Format(time.RFC3339Nano))
	dst = append(dst, `,"ttlMs":`...)
	if t.TTL == 0 {
		dst = append(dst, "null"...)
	} else {
		dst = strconv.AppendInt(dst, t.TTL.Milliseconds(), 10)
	}
	if t.Poll > 0 {
		dst = strconv.AppendInt(append(dst, `,"pollIntervalMs":`...), t.Poll.Milliseconds(), 10)
	}
	return dst
}

// appendTask writes a task with what belongs to its status.
func (s *Server) appendTask(dst []byte, t *Task) ([]byte, error) {
	dst = t.append(dst)
	switch t.Status {
	case TaskInputRequired:
		dst = append(appendQuestions(append(dst, `,"inputRequests":{`...), t.Questions), '}')
	case TaskFailed:
		dst = strconv.AppendInt(append(dst, `,"error":{"code":`...), int64(t.Error.Code), 10)
		dst = append(appendQuoted(append(dst, `,"message":`...), t.Error.Message), '}')
	case TaskCompleted:
		return s.appendResult(append(dst, `,"result":{`...), t.Result)
	case TaskWorking, TaskCancelled:
	}
	return dst, nil
}

// appendResult writes what the tool would have answered, its _meta included, and closes it.
func (s *Server) appendResult(dst []byte, result *CallResult) ([]byte, error) {
	y := &exchange{passing: passing{version: V20260728}, out: append(dst, `"resultType":"complete",`...)}
	structured, err := y.appendContent(result)
	if err != nil {
		return nil, err
	}
	y.out = append(y.out, structured...)
	if result.IsError {
		y.out = append(y.out, `,"isError":true`...)
	}
	if err := s.appendMeta(y, result.Meta); err != nil {
		return nil, err
	}
	return append(y.out, '}'), nil
}

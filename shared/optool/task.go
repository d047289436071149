package optool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/mcp"
	"github.com/buzon-mail/buzon/shared/op"
)

// taskPoll is what a client is told to wait between two looks at a task.
const taskPoll = 2 * time.Second

var _ mcp.Tasks = (*Tools)(nil)

// job is what a task is made of: the reply of the operation that reads a job (Options.JobRead). A job and its task have one id.
type job struct {
	Data struct {
		ID       string `json:"id"`
		Status   string `json:"status"` // queued, running, succeeded, failed, canceled
		Progress struct {
			Done  int64 `json:"done"`
			Total int64 `json:"total"`
		} `json:"progress"`
		Error *struct {
			Detail string `json:"detail"`
		} `json:"error"`
		StartedBy struct {
			Subject string `json:"subject"`
		} `json:"started_by"`
		CreatedAt time.Time `json:"created_at"`
		UpdatedAt time.Time `json:"updated_at"`
		ExpiresAt time.Time `json:"expires_at"`
	} `json:"data"`
}

// statusOf is the task's status of a job's. A job that failed is a task that completed with a tool's error: SEP-2663 keeps failed for
// JSON-RPC errors.
func statusOf(job string) mcp.TaskStatus {
	switch job {
	case "queued", "running":
		return mcp.TaskWorking
	case "succeeded", "failed":
		return mcp.TaskCompleted
	case "canceled":
		return mcp.TaskCancelled
	}
	return ""
}

// begun answers a call that started a job: with a task where the client takes one, else as it is. The job is durable already, so when it
// can't be read now the plain answer still says all there is.
func (t *Tools) begun(ctx context.Context, own *tool, r *mcp.CallRequest, plain *mcp.CallResult) *mcp.CallResult {
	if !own.op.Job || plain.IsError || t.options.JobRead == "" || !r.CanTask() {
		return plain
	}
	var started struct {
		Data struct {
			JobID string `json:"job_id"`
		} `json:"data"`
	}
	if json.Unmarshal(plain.JSON, &started) != nil || started.Data.JobID == "" {
		return plain
	}
	task, err := t.task(ctx, started.Data.JobID, r.Header)
	if err != nil {
		return plain
	}
	if task.Result != nil && task.Result.Released != nil { // a task that is new carries no result, however quick it was
		task.Result.Released()
	}
	task.Status, task.Message, task.Result = mcp.TaskWorking, "", nil
	return &mcp.CallResult{Task: task, Released: plain.Released}
}

// Task reads the job of this id as a task of the caller.
func (t *Tools) Task(ctx context.Context, r *mcp.TaskRequest) (*mcp.Task, error) {
	ctx, err := t.taskContext(ctx, r)
	if err != nil {
		return nil, err
	}
	return t.task(ctx, r.ID, r.Header)
}

// CancelTask cancels the job. One that is over stays as it is.
func (t *Tools) CancelTask(ctx context.Context, r *mcp.TaskRequest) error {
	ctx, err := t.taskContext(ctx, r)
	if err != nil {
		return err
	}
	task, err := t.task(ctx, r.ID, r.Header) // that it is the caller's own
	if err != nil {
		return err
	}
	if task.Result != nil && task.Result.Released != nil {
		task.Result.Released()
	}
	rec, err := t.operate(ctx, t.options.JobCancel, r.ID, r.Header)
	if err != nil {
		return err
	}
	defer rec.release()
	if e := rec.failure; e != nil && e.Kind == apperr.Conflict {
		return nil
	}
	return t.taskFailure(rec)
}

// AnswerTask takes answers that nothing asked for: what a person must confirm is asked before there is a task.
func (t *Tools) AnswerTask(ctx context.Context, r *mcp.TaskRequest) error {
	task, err := t.Task(ctx, r)
	if err == nil && task.Result != nil && task.Result.Released != nil {
		task.Result.Released()
	}
	return err
}

func (t *Tools) taskContext(ctx context.Context, r *mcp.TaskRequest) (context.Context, error) {
	caller, err := callerOf(r.Caller)
	if err != nil {
		return nil, err
	}
	if t.options.JobRead == "" || t.options.JobCancel == "" {
		return nil, errors.New("optool: tasks need the operations that read and cancel a job")
	}
	return op.WithCaller(ctx, caller, op.SurfaceMCP), nil
}

// operate runs an operation whose one argument is the id in its path.
func (t *Tools) operate(ctx context.Context, name, id string, client http.Header) (*recorder, error) {
	own, ok := t.byName[name]
	if !ok {
		return nil, fmt.Errorf("optool: there is no operation %s", name)
	}
	if !op.ValidPathValue(id) {
		return nil, mcp.ErrUnknown
	}
	p, err := own.ready(t.options.BasePath)
	if err != nil {
		return nil, fmt.Errorf("plan tool %s: %w", name, err)
	}
	c := &call{}
	c.room().values[0], c.paths = pathValue{"id", id}, 1
	return t.run(ctx, own, p, c, client), nil
}

func (t *Tools) task(ctx context.Context, id string, client http.Header) (*mcp.Task, error) {
	rec, err := t.operate(ctx, t.options.JobRead, id, client)
	if err != nil {
		return nil, err
	}
	if err := t.taskFailure(rec); err != nil {
		rec.release()
		return nil, err
	}
	var j job
	if err := json.Unmarshal(rec.buf, &j); err != nil {
		rec.release()
		return nil, fmt.Errorf("read the reply of %s: %w", t.options.JobRead, err)
	}
	if statusOf(j.Data.Status) == "" {
		rec.release()
		return nil, fmt.Errorf("optool: %s knows a status %q", t.options.JobRead, j.Data.Status)
	}
	d := &j.Data
	if d.StartedBy.Subject != op.CallerFrom(ctx).Subject { // an admin reads the jobs of others, and their tasks are not its own
		rec.release()
		return nil, mcp.ErrUnknown
	}
	task := &mcp.Task{
		ID: d.ID, Status: statusOf(d.Status), Created: d.CreatedAt, Updated: d.UpdatedAt, TTL: d.ExpiresAt.Sub(d.CreatedAt), Poll: taskPoll,
	}
	switch {
	case task.Status != mcp.TaskCompleted:
		if d.Progress.Total > 0 {
			task.Message = strconv.FormatInt(d.Progress.Done, 10) + " of " + strconv.FormatInt(d.Progress.Total, 10)
		}
		rec.release()
	default:
		result, err := t.answer(t.byName[t.options.JobRead], &call{}, rec)
		if err != nil {
			return nil, err
		}
		result.IsError = d.Status == "failed"
		if d.Error != nil {
			task.Message = d.Error.Detail
		}
		task.Result = result
	}
	return task, nil
}

// taskFailure is what a refusal of a route means for a task.
func (t *Tools) taskFailure(rec *recorder) error {
	e := rec.failure
	switch {
	case e == nil && rec.status < http.StatusMultipleChoices:
		return nil
	case e == nil:
		return fmt.Errorf("optool: a route answered %d", rec.status)
	case e.Kind == apperr.NotFound:
		return mcp.ErrUnknown
	case e.Kind == apperr.Forbidden && len(e.Scopes) > 0:
		return &mcp.ScopeError{Scopes: e.Scopes}
	case e.Kind == apperr.Forbidden: // the role
		return mcp.ErrUnknown
	}
	return e
}

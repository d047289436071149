package pipeline

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/queue"
)

// Jobs is what the worker reads and writes of jobs.
type Jobs interface {
	// ClaimJob gives a job to the run with this lease for a time: one that is queued, or whose last run let its lease end. It counts the
	// attempt. not_found when nothing is to be done for it any more; unavailable (in_work) while another run has it.
	ClaimJob(ctx context.Context, id, lease string, life time.Duration) (inbox.Job, error)
	// HoldJob changes a job that this run has: inbox.ErrJobCanceled or inbox.ErrJobLost when it has not any more. A change to a final
	// status takes the job out of the outbox in the same transaction. An error of change is returned as it is.
	HoldJob(ctx context.Context, held inbox.Job, change func(*inbox.Job) error) (inbox.Job, error)
}

// JobHandler does the jobs of one kind.
type JobHandler interface {
	// RunJob does a job, or the rest of it: a run may be killed at any point and another one begun, so whatever it does outside has a key
	// that follows from the job's id. It calls Progress between its steps, at least every half minute, and before anything leaves the
	// service it calls Authorized. Errors of these two are returned as they are.
	//
	// The result is small JSON of ids and counts. An *apperr.Error of a kind that will not change by waiting ends the job with what
	// its caller may read; unavailable and rate_limited bring it back for as long as a day; anything else is tried again a few
	// times. ErrMore lets the queue bring it back at once. ErrEnded: the handler has stored the job's end itself.
	RunJob(ctx context.Context, r *JobRun) (result any, err error)
}

// JobFunc is a JobHandler.
type JobFunc func(ctx context.Context, r *JobRun) (any, error)

// RunJob calls f.
func (f JobFunc) RunJob(ctx context.Context, r *JobRun) (any, error) { return f(ctx, r) }

// Authority looks at the terms again on which a job was started.
type Authority interface {
	// Authorized reads strongly, past every cache: *apperr.Error forbidden when the grant or key that started the job is revoked, or its
	// creator has not (any longer) the role in the workspace that the operation needs.
	Authorized(ctx context.Context, j inbox.Job) error
}

var (
	// ErrMore is what a handler returns that has saved its state (JobRun.Save) and is not through: its time is nearly over.
	ErrMore = errors.New("pipeline: the job goes on")
	// ErrEnded is what a handler returns that has brought the job to its end in a transaction of its own.
	ErrEnded = errors.New("pipeline: the job is over")
)

const (
	// jobLease is how long a run has a job without a word. A worker that was killed costs this much time.
	jobLease = time.Minute
	// jobAge is how long what a job needs may be away before the job is given up.
	jobAge = 24 * time.Hour
	// jobMargin is what a run keeps of its time for what is to be stored at its end.
	jobMargin = 5 * time.Second
)

// JobRun is one run of a job. It belongs to one goroutine.
type JobRun struct {
	Job inbox.Job // as it is stored
	w   *Worker
}

// Params decodes what was asked for.
func (r *JobRun) Params(v any) error { return r.decode("parameters", r.Job.Params, v) }

// State decodes what an earlier run saved; nothing was saved: v stays as it is.
func (r *JobRun) State(v any) error {
	if len(r.Job.State) == 0 {
		return nil
	}
	return r.decode("state", r.Job.State, v)
}

func (r *JobRun) decode(what string, data []byte, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s of job %s: %w", what, r.Job.ID, err)
	}
	return nil
}

// Progress tells how far the job is and keeps it for another minute. Total 0: nobody knows.
func (r *JobRun) Progress(ctx context.Context, done, total int64) error {
	return r.hold(ctx, func(j *inbox.Job) error {
		j.Progress = inbox.JobProgress{Done: done, Total: total}
		return nil
	})
}

// Save is Progress that also keeps where the next run is to go on. The attempts start anew: the job gets on.
func (r *JobRun) Save(ctx context.Context, done, total int64, state any) error {
	encoded, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("state of job %s: %w", r.Job.ID, err)
	}
	if len(encoded) > inbox.MaxJobState {
		return fmt.Errorf("state of job %s: %d bytes", r.Job.ID, len(encoded))
	}
	return r.hold(ctx, func(j *inbox.Job) error {
		j.Progress, j.State, j.Attempts = inbox.JobProgress{Done: done, Total: total}, encoded, 1
		return nil
	})
}

// hold changes the job and keeps it. What it may change is what the handler is told of, so no run keeps a job that it lost.
func (r *JobRun) hold(ctx context.Context, change func(*inbox.Job) error) error {
	j, err := r.w.deps.Jobs.HoldJob(ctx, r.Job, func(j *inbox.Job) error {
		now := r.w.now()
		j.UpdatedAt, j.LeaseUntil = now, now.Add(jobLease)
		return change(j)
	})
	if err != nil {
		return err //nolint:wrapcheck // the run looks for its own
	}
	r.Job = j
	return nil
}

// Soon reports whether the run's time is nearly over: save, and return ErrMore.
func (r *JobRun) Soon(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) < jobMargin || ctx.Err() != nil
}

// Authorized is called before anything leaves the service: what was allowed when the job was started may not be now.
func (r *JobRun) Authorized(ctx context.Context) error {
	if r.w.deps.Authority == nil {
		return errors.New("pipeline: a job that sends something needs an Authority")
	}
	return r.w.deps.Authority.Authorized(ctx, r.Job) //nolint:wrapcheck // a refusal ends the job in its own words
}

func (w *Worker) now() time.Time { return w.deps.Clock().UTC().Truncate(time.Millisecond) }

// job runs one job, or what is left of it.
func (w *Worker) job(ctx context.Context, id string, attempt int) error {
	if w.deps.Jobs == nil {
		return badJob()
	}
	if _, busy := w.inWork.LoadOrStore(id, struct{}{}); busy {
		return apperr.New(apperr.Unavailable, "in_work", "The job is in work.")
	}
	defer w.inWork.Delete(id)
	began := w.deps.Clock()
	j, err := w.deps.Jobs.ClaimJob(ctx, id, rand.Text(), jobLease)
	if apperr.Is(err, apperr.NotFound) { // it is over
		return nil
	}
	if err != nil {
		return wrap("claim", id, err)
	}
	r := &JobRun{Job: j, w: w}
	outcome, err := r.run(ctx)
	w.deps.Logger.Info("pipeline: job",
		slog.String("job", id), slog.String("kind", j.Kind), slog.String("workspace", j.Workspace), slog.String("outcome", outcome),
		slog.Int("attempt", attempt), slog.Int64("us", w.deps.Clock().Sub(began).Microseconds()))
	if err != nil {
		return wrap(j.Kind, id, err)
	}
	return nil
}

// run does the job and stores what came of it. The error is for the queue.
func (r *JobRun) run(ctx context.Context) (outcome string, err error) {
	handler := r.w.handlers[r.Job.Kind]
	switch {
	case r.Job.Attempts > r.w.opts.MaxAttempts: // workers died over it
		return r.fail(ctx, apperr.New(apperr.Internal, "too_many_attempts", "The job was given up: it could not be finished in several attempts.",
			"Start it once more; if it fails again, report the id of the job."))
	case handler == nil:
		return r.fail(ctx, apperr.New(apperr.Invalid, "unknown_kind", "The worker does not know jobs of this kind.",
			"The service and its worker are of different versions: repeat the call once both are up to date."))
	}
	result, err := r.guarded(ctx, handler)
	switch {
	case err == nil:
		return r.succeed(ctx, result)
	case errors.Is(err, ErrEnded):
		return "ended", nil
	case errors.Is(err, inbox.ErrJobCanceled):
		return string(inbox.JobCanceled), nil
	case errors.Is(err, inbox.ErrJobLost):
		return "lost", nil
	case errors.Is(err, ErrMore):
		return r.again(ctx)
	}
	return r.judge(ctx, err)
}

func (r *JobRun) guarded(ctx context.Context, handler JobHandler) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			// The value may quote a mail; the stack names only code.
			r.w.deps.Logger.Error("pipeline: job panicked", slog.String("job", r.Job.ID), slog.String("stack", string(debug.Stack())))
			err = fmt.Errorf("panic in job %s", r.Job.ID)
		}
	}()
	return handler.RunJob(ctx, r)
}

// judge is the job's table over the kinds of failure: wait, try again, or give up.
func (r *JobRun) judge(ctx context.Context, cause error) (string, error) {
	cause = wrap(r.Job.Kind, r.Job.ID, cause)
	e := apperr.From(cause)
	switch e.Kind {
	case apperr.Unavailable, apperr.RateLimited: // what it needs is away, which is not its fault: the attempt does not count
		if r.w.now().Sub(r.Job.CreatedAt) > jobAge {
			return r.fail(ctx, e)
		}
		return r.release(ctx, r.Job.Attempts-1, cause)
	case apperr.Internal:
	case apperr.Conflict:
		if e.Code != inbox.CodeBusy {
			return r.fail(ctx, e)
		}
	case apperr.Invalid, apperr.Unauthenticated, apperr.Forbidden, apperr.NotFound, apperr.Stale, apperr.MethodNotAllowed,
		apperr.UnsupportedMedia, apperr.TooLarge:
		return r.fail(ctx, e)
	}
	if r.Job.Attempts >= r.w.opts.MaxAttempts {
		r.w.deps.Logger.Error("pipeline: job given up", slog.String("job", r.Job.ID), slog.String("error", cause.Error()))
		return r.fail(ctx, e)
	}
	return r.release(ctx, r.Job.Attempts, cause)
}

// end is a last word on the job, which is stored also when the run's own time is over.
func (r *JobRun) end(ctx context.Context, outcome string, change func(*inbox.Job)) (string, error) {
	err := bounded(ctx, func(ctx context.Context) error {
		_, err := r.w.deps.Jobs.HoldJob(ctx, r.Job, func(j *inbox.Job) error { change(j); return nil })
		return err
	})
	switch {
	case errors.Is(err, inbox.ErrJobCanceled):
		return string(inbox.JobCanceled), nil
	case errors.Is(err, inbox.ErrJobLost):
		return "lost", nil
	}
	return outcome, err
}

func (r *JobRun) succeed(ctx context.Context, result any) (string, error) {
	encoded, err := json.Marshal(result)
	if err == nil && len(encoded) > inbox.MaxJobResult {
		err = fmt.Errorf("%d bytes", len(encoded))
	}
	if err != nil {
		return r.judge(ctx, fmt.Errorf("result of job %s: %w", r.Job.ID, err))
	}
	return r.end(ctx, string(inbox.JobSucceeded), func(j *inbox.Job) {
		j.Finish(inbox.JobSucceeded, r.w.now())
		j.Result = encoded
	})
}

// fail ends the job. JobFailed comes first: of a job that is over nobody hears again, so what is to be told is told before, at least
// once.
func (r *JobRun) fail(ctx context.Context, e *apperr.Error) (string, error) {
	failed := r.Job
	failed.Finish(inbox.JobFailed, r.w.now())
	failed.Error = inbox.JobErrorOf(e)
	if tell := r.w.deps.JobFailed; tell != nil {
		if err := bounded(ctx, func(ctx context.Context) error { return tell(ctx, failed) }); err != nil {
			return r.release(ctx, r.Job.Attempts, fmt.Errorf("tell that job %s failed: %w", r.Job.ID, err))
		}
	}
	return r.end(ctx, string(inbox.JobFailed), func(j *inbox.Job) {
		j.Finish(inbox.JobFailed, failed.FinishedAt)
		j.Error = failed.Error
	})
}

// release lets the lease go, so that the next run need not wait for its end.
func (r *JobRun) release(ctx context.Context, attempts int, cause error) (string, error) {
	outcome, err := r.end(ctx, "again", func(j *inbox.Job) {
		j.Lease, j.LeaseUntil, j.Attempts, j.UpdatedAt = "", time.Time{}, max(attempts, 0), r.w.now()
	})
	if err != nil || outcome != "again" {
		return outcome, err
	}
	return outcome, cause
}

// again has the rest done by another run, at once. The message is lost at worst: the outbox has the job.
func (r *JobRun) again(ctx context.Context) (string, error) {
	outcome, err := r.release(ctx, 0, nil)
	if err != nil || outcome != "again" {
		return outcome, err
	}
	err = bounded(ctx, func(ctx context.Context) error { return r.w.deps.Queue.Send(ctx, queue.Message{ID: r.Job.ID}) })
	if err != nil {
		r.w.deps.Logger.Warn("pipeline: job not queued, the outbox will send it", slog.String("job", r.Job.ID))
	}
	return outcome, nil
}

package pipeline_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/blob/dir"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/pipeline"
	queues "github.com/buzon-mail/buzon/shared/queue/embedded"
	"github.com/buzon-mail/buzon/shared/store/embedded"
)

// office is a worker for jobs on the embedded engine, with a clock of its own.
type office struct {
	t      *testing.T
	mu     sync.Mutex
	at     time.Time // guarded by mu
	engine *embedded.Engine
	store  *inboxstore.Store
	blobs  *dir.Store
	queue  *queues.Queue
	deps   pipeline.WorkerDeps
	worker *pipeline.Worker
	failed []string // ids that JobFailed was told of
	tell   error    // what it answers
}

func (o *office) now() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.at
}

func (o *office) wait(d time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.at = o.at.Add(d)
}

func (o *office) must(err error) {
	o.t.Helper()
	if err != nil {
		o.t.Fatal(err)
	}
}

func newOffice(t *testing.T, handlers map[string]pipeline.JobHandler) *office {
	t.Helper()
	o := &office{t: t, at: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}
	var err error
	o.engine, err = embedded.Open(filepath.Join(t.TempDir(), "db"), embedded.Options{Clock: o.now, NoSync: true})
	o.must(err)
	t.Cleanup(func() { _ = o.engine.Close() })
	o.store, err = inboxstore.New(o.engine, o.now)
	o.must(err)
	o.blobs, err = dir.Open(t.TempDir(), dir.Options{NoSync: true})
	o.must(err)
	o.queue, err = queues.New(o.engine, "mail", queues.Options{Clock: o.now})
	o.must(err)
	o.deps = pipeline.WorkerDeps{
		Outbox: o.store, Mails: o.store, Blobs: o.blobs, Queue: o.queue, Logger: slog.New(slog.DiscardHandler), Clock: o.now,
		Parse: func(context.Context, []byte) (pipeline.Reading, error) { return pipeline.Reading{}, nil },
		Jobs:  o.store, Handlers: handlers,
		JobFailed: func(_ context.Context, j inbox.Job) error {
			o.failed = append(o.failed, j.ID+" "+j.Error.Code)
			return o.tell
		},
	}
	o.worker = o.newWorker()
	return o
}

// newWorker is another process.
func (o *office) newWorker() *pipeline.Worker {
	o.t.Helper()
	w, err := pipeline.NewWorker(o.deps, pipeline.WorkerOptions{MaxAttempts: 3})
	o.must(err)
	return w
}

// start stores a job as an operation does.
func (o *office) start(kind string) inbox.Job {
	o.t.Helper()
	id, err := inbox.NewID("job", o.now(), rand.Reader)
	o.must(err)
	j := inbox.Job{
		ID: id, Organization: orgID, Workspace: wsID, Kind: kind, Status: inbox.JobQueued, CreatedAt: o.now(), UpdatedAt: o.now(),
		ExpiresAt: o.now().Add(30 * 24 * time.Hour), Version: 1, Params: json.RawMessage(`{"n":3}`),
		Creator: inbox.JobCreator{Subject: "user_1", Role: inbox.RoleOperator},
	}
	o.must(o.store.StartJob(o.t.Context(), j, inbox.Act{}))
	return j
}

func (o *office) job(id string) inbox.Job {
	o.t.Helper()
	j, err := o.store.Job(o.t.Context(), wsID, id)
	o.must(err)
	return j
}

// pending tells whether the outbox has the job.
func (o *office) pending(id string) bool {
	o.t.Helper()
	ids, err := o.store.Pending(o.t.Context(), o.now().Add(time.Hour), 100)
	o.must(err)
	return strings.Contains(strings.Join(ids, " "), id)
}

func handles(f pipeline.JobFunc) map[string]pipeline.JobHandler {
	return map[string]pipeline.JobHandler{"count": f}
}

func TestJobSucceeds(t *testing.T) {
	runs := 0
	o := newOffice(t, handles(func(ctx context.Context, r *pipeline.JobRun) (any, error) {
		runs++
		var params struct{ N int64 }
		if err := r.Params(&params); err != nil {
			return nil, err
		}
		for i := range params.N {
			if err := r.Progress(ctx, i+1, params.N); err != nil {
				return nil, err
			}
		}
		return map[string]any{"ids": []string{"a"}}, nil
	}))
	j := o.start("count")
	for range 3 { // a redelivery finds nothing to do
		if err := o.worker.Handle(t.Context(), j.ID, 1); err != nil {
			t.Fatal(err)
		}
	}
	got := o.job(j.ID)
	if runs != 1 || got.Status != inbox.JobSucceeded || string(got.Result) != `{"ids":["a"]}` || got.Progress != (inbox.JobProgress{Done: 3, Total: 3}) {
		t.Errorf("%d runs, %+v", runs, got)
	}
	if o.pending(j.ID) || got.Lease != "" || got.FinishedAt.IsZero() || got.ExpiresAt.Sub(got.FinishedAt) != 7*24*time.Hour {
		t.Errorf("%+v", got)
	}
	o.wait(7*24*time.Hour + time.Minute)
	if _, err := o.store.Job(t.Context(), wsID, j.ID); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("it did not expire: %v", err)
	}
	rows, _, err := o.store.Jobs(t.Context(), inbox.JobRange{Workspace: wsID, Creator: "user_1", Limit: 10})
	if err != nil || len(rows) != 0 {
		t.Errorf("its creator still sees it: %v %v", rows, err)
	}
}

// Failures: what waits, what is tried again, what is over at once, and what its creator reads then.
func TestJobFailures(t *testing.T) {
	permanent := apperr.New(apperr.Conflict, "target_gone", "The target is gone.", "Choose another.")
	for name, c := range map[string]struct {
		err    error
		runs   int // until the end, or the test's patience
		status inbox.JobStatus
		code   string
	}{
		"conflict":        {permanent, 1, inbox.JobFailed, "target_gone"},
		"wrapped":         {errors.Join(errors.New("x"), permanent), 1, inbox.JobFailed, "target_gone"},
		"forbidden":       {apperr.New(apperr.Forbidden, "grant_revoked", "No."), 1, inbox.JobFailed, "grant_revoked"},
		"not found":       {inbox.NoEmail(), 1, inbox.JobFailed, "not_found"},
		"internal":        {errors.New("s3cr3t"), 3, inbox.JobFailed, "internal"},
		"busy":            {inbox.Busy(), 3, inbox.JobFailed, "busy"},
		"outage":          {apperr.New(apperr.Unavailable, "", "Away."), 8, inbox.JobRunning, ""},
		"context is over": {context.DeadlineExceeded, 8, inbox.JobRunning, ""},
	} {
		t.Run(name, func(t *testing.T) {
			runs := 0
			o := newOffice(t, handles(func(context.Context, *pipeline.JobRun) (any, error) { runs++; return nil, c.err }))
			j := o.start("count")
			for range 8 {
				err := o.worker.Handle(t.Context(), j.ID, 1)
				if o.job(j.ID).Status == inbox.JobFailed && err != nil {
					t.Errorf("it is over, and the queue is told %v", err)
				}
				o.wait(time.Second)
			}
			got := o.job(j.ID)
			if runs != c.runs || got.Status != c.status || o.pending(j.ID) == got.Status.Over() {
				t.Errorf("%d runs, %+v", runs, got)
			}
			if c.code == "" {
				if len(o.failed) != 0 {
					t.Errorf("told of %v", o.failed)
				}
				return
			}
			if got.Error == nil || got.Error.Code != c.code || strings.Contains(got.Error.Public, "s3cr3t") || len(o.failed) != 1 {
				t.Errorf("error %+v, told of %v", got.Error, o.failed)
			}
		})
	}
}

func TestOutageOfADay(t *testing.T) {
	o := newOffice(t, handles(func(context.Context, *pipeline.JobRun) (any, error) {
		return nil, apperr.New(apperr.Unavailable, "", "The relay is away.")
	}))
	j := o.start("count")
	_ = o.worker.Handle(t.Context(), j.ID, 1)
	o.wait(25 * time.Hour)
	if err := o.worker.Handle(t.Context(), j.ID, 1); err != nil || o.job(j.ID).Status != inbox.JobFailed {
		t.Errorf("%+v, %v", o.job(j.ID), err)
	}
}

func TestUnknownKind(t *testing.T) {
	o := newOffice(t, nil)
	j := o.start("telepathy")
	if err := o.worker.Handle(t.Context(), j.ID, 1); err != nil {
		t.Fatal(err)
	}
	if got := o.job(j.ID); got.Status != inbox.JobFailed || got.Error.Code != "unknown_kind" || o.pending(j.ID) {
		t.Errorf("%+v", got)
	}
	for _, id := range []string{"job_01J00000000000000000000000", "job_", "job_x"} {
		if err := o.worker.Handle(t.Context(), id, 1); err != nil {
			t.Errorf("%s, which is nobody's: %v", id, err)
		}
	}
}

// A job that is told to have failed stays until somebody has listened.
func TestFailureIsToldBeforeItIsStored(t *testing.T) {
	o := newOffice(t, nil)
	j := o.start("telepathy")
	o.tell = errors.New("the outbox of events is away")
	if err := o.worker.Handle(t.Context(), j.ID, 1); err == nil || o.job(j.ID).Status.Over() {
		t.Fatalf("%v, %+v", err, o.job(j.ID))
	}
	o.tell = nil
	if err := o.worker.Handle(t.Context(), j.ID, 2); err != nil || o.job(j.ID).Status != inbox.JobFailed || len(o.failed) != 2 {
		t.Errorf("%v, %+v, told %v", err, o.job(j.ID), o.failed)
	}
}

// Many processes take one job at once: it is done once.
func TestOneJobManyWorkers(t *testing.T) {
	var runs atomic.Int32
	o := newOffice(t, handles(func(context.Context, *pipeline.JobRun) (any, error) {
		runs.Add(1)
		return 1, nil
	}))
	j := o.start("count")
	var team sync.WaitGroup
	for range 8 {
		w := o.newWorker()
		team.Go(func() {
			if err := w.Handle(t.Context(), j.ID, 1); err != nil && !apperr.Is(err, apperr.Unavailable) && !apperr.Is(err, apperr.Conflict) {
				t.Errorf("%v", err)
			}
		})
	}
	team.Wait()
	if err := o.worker.Handle(t.Context(), j.ID, 2); err != nil || runs.Load() != 1 || o.job(j.ID).Status != inbox.JobSucceeded {
		t.Errorf("%d runs, %+v, %v", runs.Load(), o.job(j.ID), err)
	}
}

// A worker dies in the middle. Another waits for the lease to end, goes on where the first had saved, and a third death is the last.
func TestKilledHalfWay(t *testing.T) {
	type state struct{ Next int64 }
	killed, done := true, []int64{}
	o := newOffice(t, handles(func(ctx context.Context, r *pipeline.JobRun) (any, error) {
		var s state
		if err := r.State(&s); err != nil {
			return nil, err
		}
		for ; s.Next < 3; s.Next++ {
			if killed && s.Next == 1 {
				panic(errKilled)
			}
			done = append(done, s.Next)
			if err := r.Save(ctx, s.Next+1, 3, state{s.Next + 1}); err != nil {
				return nil, err
			}
		}
		return len(done), nil
	}))
	j := o.start("count")
	if _, err := o.store.ClaimJob(t.Context(), j.ID, "dead", time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := o.worker.Handle(t.Context(), j.ID, 1); !apperr.Is(err, apperr.Unavailable) {
		t.Errorf("the dead worker's lease runs, and: %v", err)
	}
	o.wait(61 * time.Second)
	if err := o.worker.Handle(t.Context(), j.ID, 1); err == nil || o.job(j.ID).Status != inbox.JobRunning {
		t.Fatalf("%v, %+v", err, o.job(j.ID))
	}
	killed = false
	if err := o.worker.Handle(t.Context(), j.ID, 2); err != nil {
		t.Fatal(err)
	}
	if got := o.job(j.ID); got.Status != inbox.JobSucceeded || string(got.Result) != "3" || len(done) != 3 {
		t.Errorf("%+v, did %v", got, done)
	}

	j = o.start("count")
	for i := range 4 {
		if _, err := o.store.ClaimJob(t.Context(), j.ID, "dead", time.Minute); i < 3 && err != nil {
			t.Fatal(err)
		}
		o.wait(61 * time.Second)
	}
	if err := o.worker.Handle(t.Context(), j.ID, 1); err != nil || o.job(j.ID).Error == nil || o.job(j.ID).Error.Code != "too_many_attempts" {
		t.Errorf("%v, %+v", err, o.job(j.ID))
	}
}

var errKilled = errors.New("killed")

// A long job goes on in another run, which the queue brings at once.
func TestJobInSlices(t *testing.T) {
	o := newOffice(t, handles(func(ctx context.Context, r *pipeline.JobRun) (any, error) {
		var next int64
		if err := r.State(&next); err != nil {
			return nil, err
		}
		if next == 5 {
			return next, nil
		}
		if err := r.Save(ctx, next+1, 5, next+1); err != nil {
			return nil, err
		}
		return nil, pipeline.ErrMore
	}))
	j := o.start("count")
	o.must(o.worker.Handle(t.Context(), j.ID, 1))
	for range 10 {
		got, err := o.queue.Receive(t.Context(), 10, time.Minute)
		o.must(err)
		for _, d := range got {
			o.must(o.worker.Handle(t.Context(), d.ID, d.Attempt))
			o.must(o.queue.Done(t.Context(), d))
		}
	}
	if got := o.job(j.ID); got.Status != inbox.JobSucceeded || string(got.Result) != "5" || got.Progress.Done != 5 {
		t.Errorf("%+v", got)
	}
}

// A job that is canceled hears of it at its next step, and what it finds out after that changes nothing.
func TestCanceledJob(t *testing.T) {
	var o *office
	steps := 0
	cancel := func(j inbox.Job) {
		_, err := o.store.UpdateJob(t.Context(), wsID, j.ID, inbox.Act{}, func(j *inbox.Job) error {
			j.Finish(inbox.JobCanceled, o.now())
			return nil
		})
		o.must(err)
	}
	o = newOffice(t, handles(func(ctx context.Context, r *pipeline.JobRun) (any, error) {
		for i := range int64(3) {
			if err := r.Progress(ctx, i, 3); err != nil {
				return nil, err
			}
			if steps++; steps == 2 {
				cancel(r.Job)
			}
		}
		return "too late", nil
	}))
	j := o.start("count")
	o.must(o.worker.Handle(t.Context(), j.ID, 1))
	if got := o.job(j.ID); got.Status != inbox.JobCanceled || len(got.Result) != 0 || steps != 2 || o.pending(j.ID) || len(o.failed) != 0 {
		t.Errorf("%d steps, %+v", steps, got)
	}
	queued := o.start("count")
	cancel(queued)
	o.must(o.worker.Handle(t.Context(), queued.ID, 1))
	if steps != 2 || o.pending(queued.ID) {
		t.Errorf("a canceled job ran: %d steps", steps)
	}
}

// A run that was given up for dead finds that another has its job.
func TestLostLease(t *testing.T) {
	var o *office
	first := true
	o = newOffice(t, handles(func(ctx context.Context, r *pipeline.JobRun) (any, error) {
		if !first {
			return "second", nil
		}
		first = false
		o.wait(2 * time.Minute)
		o.must(o.newWorker().Handle(ctx, r.Job.ID, 1))
		if err := r.Progress(ctx, 1, 1); !errors.Is(err, inbox.ErrJobLost) {
			t.Errorf("progress: %v", err)
		}
		return "first", nil
	}))
	j := o.start("count")
	o.must(o.worker.Handle(t.Context(), j.ID, 1))
	if got := o.job(j.ID); string(got.Result) != `"second"` {
		t.Errorf("%+v", got)
	}
}

func TestResultsAreSmall(t *testing.T) {
	o := newOffice(t, handles(func(context.Context, *pipeline.JobRun) (any, error) {
		return strings.Repeat("x", inbox.MaxJobResult), nil
	}))
	j := o.start("count")
	for range 3 {
		_ = o.worker.Handle(t.Context(), j.ID, 1)
	}
	if got := o.job(j.ID); got.Status != inbox.JobFailed || len(got.Result) != 0 {
		t.Errorf("%s with %d bytes", got.Status, len(got.Result))
	}
}

// What sends something needs an Authority; without one nothing leaves.
func TestNobodyToAsk(t *testing.T) {
	o := newOffice(t, handles(func(ctx context.Context, r *pipeline.JobRun) (any, error) { return nil, r.Authorized(ctx) }))
	j := o.start("count")
	for range 3 {
		_ = o.worker.Handle(t.Context(), j.ID, 1)
	}
	if got := o.job(j.ID); got.Status != inbox.JobFailed {
		t.Errorf("%+v", got)
	}
}

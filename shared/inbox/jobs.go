package inbox

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// JobStore keeps jobs. Everything is found under its workspace, so another tenant's id is a missing one.
type JobStore interface {
	// StartJob stores a new job with its outbox row, and what act brings, in one transaction: from then on it will run. A yes
	// that was used before, or an idempotency key that another call holds, refuses it. Operations that start a job for
	// something that may change meanwhile have a method of their own, which holds that too.
	StartJob(ctx context.Context, j Job, act Act) error
	// Job finds one; not_found when there is none.
	Job(ctx context.Context, workspace, id string) (Job, error)
	// Jobs reads one page, newest first, behind r.After; next is empty at the end. The rows have neither Params nor State.
	Jobs(ctx context.Context, r JobRange) (rows []Job, next string, err error)
	// UpdateJob works like InboxStore.UpdateInbox. A job that it brings to its end leaves the outbox.
	UpdateJob(ctx context.Context, workspace, id string, act Act, change func(*Job) error) (Job, error)
}

// JobRange is one page of jobs.
type JobRange struct {
	Workspace string
	Creator   string // subject; empty: everybody's
	From      string // the least id; empty is open
	After     string // id
	Limit     int
}

// JobQueue brings jobs to the worker.
type JobQueue interface {
	// SendJob sends a job's id. A failure costs time and no job: the outbox sends it again.
	SendJob(ctx context.Context, id string) error
}

// sendTimeout bounds the message about a job that is durable already.
const sendTimeout = 3 * time.Second

// JobSpec is what an operation knows of the job that it starts.
type JobSpec struct {
	Kind   string // the name of the operation
	Scope  string // that the operation needs
	Role   Role   // that the operation needs
	Target string // id of what it acts on; optional
	Params any    // for the handler: small, no secrets, nothing that a third party wrote
}

// newJob makes the row. Its id is drawn here, so that every attempt of its transaction stores the same one.
func (d Deps) newJob(a Actor, s JobSpec) (Job, error) {
	now := d.now()
	id, err := NewID("job", now, d.Rand)
	if err != nil {
		return Job{}, err
	}
	params, err := json.Marshal(s.Params)
	if err != nil {
		return Job{}, fmt.Errorf("parameters of a job: %w", err)
	}
	if len(params) > maxJobParams {
		return Job{}, apperr.New(apperr.TooLarge, "", "This is too much for one job.", "Ask for less at once.")
	}
	j := Job{
		ID: id, Organization: a.Organization, Workspace: a.Workspace, Kind: s.Kind, Target: s.Target, Status: JobQueued,
		Params: params, CreatedAt: now, UpdatedAt: now, ExpiresAt: now.Add(jobPatience), Version: 1, Request: a.Request,
		Creator: JobCreator{
			Subject: a.Subject, Grant: a.By.Grant, Client: a.By.Client, Surface: a.Surface, Scope: s.Scope, Role: s.Role,
		},
	}
	if a.By.Type == ActorKey {
		j.Creator.Key = a.By.ID
	}
	return j, nil
}

// started tells the worker of a job that is durable. It outlives a caller that has gone, and its failure is nobody's: what is in the
// outbox is sent again.
func (d Deps) started(ctx context.Context, j Job) Job {
	if d.JobQueue == nil {
		return j
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTimeout)
	defer cancel()
	_ = d.JobQueue.SendJob(ctx, j.ID)
	return j
}

// Jobs are the operations on work that goes on after its reply.
type Jobs struct{ d Deps }

// Start makes a job durable that depends on nothing which could change meanwhile, and sends it. A job about something that can has a store
// method of its own, as EmailStore.StartEmailJob. The caller has confirmed it, where it must be.
func (s *Jobs) Start(ctx context.Context, a Actor, spec JobSpec) (Job, error) {
	j, err := s.d.newJob(a, spec)
	if err != nil {
		return Job{}, err
	}
	act, err := s.d.act(a)
	if err != nil {
		return Job{}, err
	}
	if err := s.d.Jobs.StartJob(ctx, j, act); err != nil {
		return Job{}, fmt.Errorf("start %s: %w", spec.Kind, err)
	}
	return s.d.started(ctx, j), nil
}

// startEmailJob makes a job about one mail durable, in the transaction that finds it fit, and sends it. hidden are the inboxes whose
// mail is not shown.
func (d Deps) startEmailJob(ctx context.Context, a Actor, hidden map[string]bool, spec JobSpec, fit func(Email) error) (Job, error) {
	j, err := d.newJob(a, spec)
	if err != nil {
		return Job{}, err
	}
	act, err := d.act(a)
	if err != nil {
		return Job{}, err
	}
	j, err = d.Emails.StartEmailJob(ctx, a.Workspace, spec.Target, act, func(e Email) (Job, error) {
		if hidden[e.Inbox] {
			return Job{}, NoEmail()
		}
		if err := fit(e); err != nil {
			return Job{}, err
		}
		return j, a.confirm(e.ID, e.Version, true)
	})
	if err != nil {
		return Job{}, fmt.Errorf("start %s of %s: %w", spec.Kind, spec.Target, err)
	}
	return d.started(ctx, j), nil
}

// MaxJobWait is how long Get waits for a job to end.
const MaxJobWait = 20 * time.Second

// jobLook is what lies between two looks of a Get that waits.
const jobLook = time.Second

// JobReach is which jobs a caller may read beside its role: with All (the scope for jobs), its own, and an admin everybody's; without,
// those of its own whose operation's scope it has.
type JobReach struct {
	All    bool
	Scopes []string
}

func (r JobReach) reads(a Actor, j Job) bool {
	own := j.Creator.Subject == a.Subject
	switch {
	case r.All && a.Role.AtLeast(RoleAdmin):
		return true
	case r.All:
		return own
	}
	return own && slices.Contains(r.Scopes, j.Creator.Scope)
}

// Get returns a job, at once or, with wait, when it is over or the time is. Where as many calls wait as may, it does not wait.
func (s *Jobs) Get(ctx context.Context, a Actor, r JobReach, id string, wait time.Duration) (Job, error) {
	if wait < 0 || wait > MaxJobWait {
		return Job{}, invalid("query.wait_s", fmt.Sprintf("0 to %d", MaxJobWait/time.Second))
	}
	if !validID("job", id) {
		return Job{}, NoJob()
	}
	end := func() {}
	defer func() { end() }()
	for waits := false; ; waits = true {
		j, err := s.d.Jobs.Job(ctx, a.Workspace, id)
		if err != nil {
			return Job{}, err //nolint:wrapcheck // the store names the step
		}
		if !r.reads(a, j) {
			return Job{}, NoJob()
		}
		if j.Status.Over() || wait <= 0 {
			return j, nil
		}
		if !waits {
			leave, err := s.d.beginWait(ctx, a, wait)
			if err != nil {
				return j, nil //nolint:nilerr // what is known is an answer
			}
			end = leave
		}
		pause := min(wait, jobLook)
		wait -= pause
		if err := s.d.Sleep(ctx, pause); err != nil { // whoever waited has gone, or the function's time is over
			return j, nil //nolint:nilerr // what is known is an answer
		}
	}
}

// JobQuery filters a list of jobs.
type JobQuery struct {
	Kind   string
	Status JobStatus
	After  time.Time // started after
}

// JobPage is one page of jobs.
type JobPage struct {
	Rows   []Job
	Next   string  // cursor
	Window *Window // nil when the keys serve the list
}

// List returns the caller's jobs, and an admin's caller everybody's, newest first.
func (s *Jobs) List(ctx context.Context, a Actor, q JobQuery, p PageRequest) (JobPage, error) {
	limit, err := p.limit()
	if err != nil {
		return JobPage{}, err
	}
	if q.Status != "" && !slices.Contains(JobStatuses(), q.Status) {
		return JobPage{}, invalid("query.status", "queued, running, succeeded, failed or canceled")
	}
	if err := checkFilter("query.kind", q.Kind); err != nil {
		return JobPage{}, err
	}
	c := newCursors(s.d.Cursors, a, "jobs_list", q)
	after, err := c.open(p.Cursor)
	if err != nil {
		return JobPage{}, err
	}
	r := JobRange{Workspace: a.Workspace, Creator: a.Subject}
	if a.Role.AtLeast(RoleAdmin) {
		r.Creator = ""
	}
	if !q.After.IsZero() {
		r.From = IDFloor("job", q.After.Add(time.Millisecond))
	}
	l := lister[Job]{
		after: after, limit: limit, match: q.matcher(),
		key:  func(j *Job) string { return j.ID },
		size: func(j *Job) int { return len(j.Result) },
		read: func(ctx context.Context, after string, n int) ([]Job, string, error) {
			r.After, r.Limit = after, n
			return s.d.Jobs.Jobs(ctx, r)
		},
	}
	rows, next, err := l.collect(ctx)
	if err != nil {
		return JobPage{}, fmt.Errorf("list jobs: %w", err)
	}
	page := JobPage{Rows: rows}
	if l.match != nil {
		page.Window = &Window{Examined: l.examined, Complete: next == ""}
	}
	page.Next, err = c.seal(next)
	return page, err
}

func (q JobQuery) matcher() func(*Job) bool {
	if q.Kind == "" && q.Status == "" {
		return nil
	}
	return func(j *Job) bool {
		return (q.Kind == "" || j.Kind == q.Kind) && (q.Status == "" || j.Status == q.Status)
	}
}

// Cancel ends a job that is not over; a step that is under way is finished. The caller's own, for admins anybody's. Repeating it
// answers the same.
func (s *Jobs) Cancel(ctx context.Context, a Actor, id string) (Job, error) {
	if !validID("job", id) {
		return Job{}, NoJob()
	}
	act, err := s.d.act(a)
	if err != nil {
		return Job{}, err
	}
	j, err := s.d.Jobs.UpdateJob(ctx, a.Workspace, id, act, func(j *Job) error {
		switch {
		case !(JobReach{All: true}).reads(a, *j):
			return NoJob()
		case j.Status == JobCanceled:
			return nil
		case j.Status.Over():
			return jobOver(j.Status)
		}
		j.Finish(JobCanceled, s.d.now())
		j.Operator = a.Subject
		return nil
	})
	if err != nil {
		return Job{}, fmt.Errorf("cancel job %s: %w", id, err)
	}
	return j, nil
}

func jobOver(s JobStatus) *apperr.Error {
	return apperr.New(apperr.Conflict, "job_over", "This job is over: "+string(s)+".", "Call jobs_get for its result or error.")
}

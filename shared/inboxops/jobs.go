package inboxops

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/rest"
)

// Job is work that goes on after the reply that started it.
type Job struct {
	ID         string          `json:"id"`
	Kind       string          `json:"kind" doc:"The operation that started it."`
	TargetID   string          `json:"target_id,omitempty" doc:"Id of what it acts on, if it is one thing."`
	Status     string          `json:"status" enum:"queued,running,succeeded,failed,canceled"`
	Progress   JobProgress     `json:"progress"`
	Result     json.RawMessage `json:"result" doc:"Ids and counts, by kind; null unless it succeeded."`
	Error      *JobFailure     `json:"error" doc:"Null unless it failed."`
	StartedBy  JobStartedBy    `json:"started_by"`
	CreatedAt  rest.Time       `json:"created_at"`
	UpdatedAt  rest.Time       `json:"updated_at"`
	FinishedAt rest.Time       `json:"finished_at"`
	ExpiresAt  rest.Time       `json:"expires_at" doc:"It can be read until then."`
}

// JobProgress is how far a job is.
type JobProgress struct {
	Done  int64 `json:"done"`
	Total int64 `json:"total" doc:"0: not known yet."`
}

// JobFailure is why a job failed.
type JobFailure struct {
	Kind   string   `json:"kind"`
	Code   string   `json:"code"`
	Detail string   `json:"detail"`
	Fixes  []string `json:"fixes"`
}

// JobStartedBy is who started a job.
type JobStartedBy struct {
	Subject string `json:"subject"`
	Client  string `json:"client,omitempty"`
}

func jobOf(j inbox.Job) Job {
	out := Job{
		ID: j.ID, Kind: j.Kind, TargetID: j.Target, Status: string(j.Status), Progress: JobProgress(j.Progress),
		Result: j.Result, StartedBy: JobStartedBy{j.Creator.Subject, j.Creator.Client},
		CreatedAt: at(j.CreatedAt), UpdatedAt: at(j.UpdatedAt), FinishedAt: at(j.FinishedAt), ExpiresAt: at(j.ExpiresAt),
	}
	if e := j.Error; e != nil {
		out.Error = &JobFailure{e.Kind, e.Code, e.Public, list(e.Fixes)}
	}
	return out
}

type jobsGetInput struct {
	ID    string `path:"id" doc:"Id of the job." tool:"-"`
	WaitS int    `query:"wait_s" minimum:"0" maximum:"20" default:"0" doc:"Seconds to wait for its end." tool:""`
}

type jobsListInput struct {
	Kind   string    `query:"kind" maxLength:"64" doc:"Only started by this operation." tool:"The operation, as emails_forward."`
	Status string    `query:"status" enum:"queued,running,succeeded,failed,canceled" doc:"Only this status." tool:"-"`
	After  time.Time `query:"after" doc:"Started after, RFC 3339." tool:"-"`
	Paging
}

type jobInput struct {
	ID string `path:"id" doc:"Id of the job." tool:"-"`
}

// JobOutput is the reply of what reads or changes one job.
type JobOutput struct{ Body JobBody }

// JobBody is its JSON.
type JobBody struct {
	Data Job      `json:"data"`
	Meta ItemMeta `json:"meta"`
}

// JobsOutput is the reply of jobs_list.
type JobsOutput struct{ Body JobsBody }

// JobsBody is its JSON.
type JobsBody struct {
	Data []Job    `json:"data"`
	Meta ListMeta `json:"meta"`
}

// The operations by which a task is followed (optool.Options).
const (
	JobRead   = "jobs_get"
	JobCancel = "jobs_cancel"
)

func (o *operations) jobs() []op.Operation {
	return []op.Operation{
		rest.Define(op.Spec{
			Name: "jobs_list", Method: http.MethodGet, Path: "/jobs",
			Title:       "List jobs",
			Description: "Jobs that you started, newest first; to admins everybody's.",
			Scope:       scopeJobsRead, Role: op.Viewer, Effect: op.Read, Confines: true, Idempotent: true,
		}, o.jobsList),
		rest.Define(op.Spec{
			// No scope: whoever could start a job can follow it. The service looks at what else the caller may read.
			Name: JobRead, Method: http.MethodGet, Path: "/jobs/{id}",
			Title: "Follow a job",
			Description: "Where a job stands: progress, then result or error. With wait_s it answers when the job is over, or after that time; " +
				"repeat while it is queued or running.",
			Role: op.Viewer, Effect: op.Read, Confines: true, Idempotent: true,
			Errors: []apperr.Kind{apperr.NotFound},
		}, o.jobsGet),
		rest.Define(op.Spec{
			Name: JobCancel, Method: http.MethodPost, Path: "/jobs/{id}/cancel",
			Title:       "Cancel a job",
			Description: "Stops a queued or running job; what it has done stays done.",
			Scope:       scopeJobsWrite, Role: op.Operator, Effect: op.Write, Confines: true, Idempotent: true,
			Errors: []apperr.Kind{apperr.NotFound, apperr.Conflict},
		}, o.jobsCancel),
	}
}

// reach is which jobs the caller may read.
func (o *operations) reach(ctx context.Context) inbox.JobReach {
	c := op.CallerFrom(ctx)
	jobs, _ := o.catalogue.Vocabulary.Bit(scopeJobsRead)
	r := inbox.JobReach{All: c.Scopes.Has(jobs)}
	if !r.All {
		r.Scopes = o.catalogue.Vocabulary.Names(c.Scopes)
	}
	return r
}

func (o *operations) jobsGet(ctx context.Context, in *jobsGetInput) (*JobOutput, error) {
	j, err := o.services.Jobs.Get(ctx, o.actor(ctx), o.reach(ctx), in.ID, time.Duration(in.WaitS)*time.Second)
	return jobOutput(j, err)
}

func (o *operations) jobsList(ctx context.Context, in *jobsListInput) (*JobsOutput, error) {
	page, err := o.services.Jobs.List(ctx, o.actor(ctx), inbox.JobQuery{
		Kind: in.Kind, Status: inbox.JobStatus(in.Status), After: in.After,
	}, in.request())
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	return &JobsOutput{JobsBody{mapped(page.Rows, jobOf), listMeta(page.Next, page.Window, false)}}, nil
}

func (o *operations) jobsCancel(ctx context.Context, in *jobInput) (*JobOutput, error) {
	j, err := o.services.Jobs.Cancel(ctx, o.actor(ctx), in.ID)
	return jobOutput(j, err)
}

func jobOutput(j inbox.Job, err error) (*JobOutput, error) {
	if err != nil {
		return nil, err
	}
	return &JobOutput{JobBody{Data: jobOf(j)}}, nil
}

// started is the reply of what starts a job.
func started(j inbox.Job, err error) (*rest.StartedOutput, error) {
	if err != nil {
		return nil, err
	}
	return rest.Started(j.ID), nil
}

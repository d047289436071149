package inbox

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// JobStatus is where a job stands.
type JobStatus string

// The statuses of a job. The last three are final.
const (
	JobQueued    JobStatus = "queued"
	JobRunning   JobStatus = "running"
	JobSucceeded JobStatus = "succeeded"
	JobFailed    JobStatus = "failed"
	JobCanceled  JobStatus = "canceled"
)

// JobStatuses lists them in the order of a job's life.
func JobStatuses() []JobStatus {
	return []JobStatus{JobQueued, JobRunning, JobSucceeded, JobFailed, JobCanceled}
}

// Over reports whether the status is final.
func (s JobStatus) Over() bool { return s == JobSucceeded || s == JobFailed || s == JobCanceled }

// Job is work that an operation has started and that goes on after the reply. Params, State and Result are small JSON of ids,
// counts and our own words: no secret, and nothing that a third party wrote.
type Job struct {
	ID           string          `json:"id"` // job_ + ULID of the start, so ids sort by it
	Organization string          `json:"organization"`
	Workspace    string          `json:"workspace"`
	Kind         string          `json:"kind"`             // the operation that started it
	Target       string          `json:"target,omitempty"` // id of what it acts on; empty: several things, or none yet
	Status       JobStatus       `json:"status"`
	Progress     JobProgress     `json:"progress,omitzero"`
	Params       json.RawMessage `json:"params,omitempty"` // what was asked for
	State        json.RawMessage `json:"state,omitempty"`  // where the next run goes on
	Result       json.RawMessage `json:"result,omitempty"` // of one that succeeded
	Error        *JobError       `json:"error,omitempty"`  // of one that failed
	Creator      JobCreator      `json:"creator"`
	Attempts     int             `json:"attempts,omitempty"`   // runs that began and said nothing since the last one that did
	Lease        string          `json:"lease,omitempty"`      // of the run that has it
	LeaseUntil   time.Time       `json:"lease_until,omitzero"` // from then on another run may take it
	CreatedAt    time.Time       `json:"created_at"`           // also the time of the id
	UpdatedAt    time.Time       `json:"updated_at"`           //
	FinishedAt   time.Time       `json:"finished_at,omitzero"` //
	ExpiresAt    time.Time       `json:"expires_at"`           // the row is gone then
	Request      string          `json:"request,omitempty"`    // id, as the log has it
	Operator     string          `json:"operator,omitempty"`   // who canceled it
	Version      uint64          `json:"version"`              // moved by every write
}

// JobProgress is how far a job is; Total is 0 as long as nobody knows.
type JobProgress struct {
	Done  int64 `json:"done"`
	Total int64 `json:"total"`
}

// JobError is why a job failed, in words that its creator may read.
type JobError struct {
	Kind   string   `json:"kind"`
	Code   string   `json:"code"`
	Public string   `json:"public"`
	Fixes  []string `json:"fixes,omitempty"`
}

// JobErrorOf takes of an error what may be kept and shown: of an unexpected one, nothing but that it was.
func JobErrorOf(err error) *JobError {
	e := apperr.From(err)
	return &JobError{Kind: e.Kind.String(), Code: e.Name(), Public: e.Public, Fixes: e.Fixes}
}

// JobCreator is who started a job and on what terms: before anything leaves the service they are looked at again.
type JobCreator struct {
	Subject string `json:"subject"`
	Grant   string `json:"grant,omitempty"` // empty: credentials that can't be revoked
	Key     string `json:"key,omitempty"`   // id of the API key, if it was one
	Client  string `json:"client,omitempty"`
	Surface string `json:"surface,omitempty"`
	Scope   string `json:"scope,omitempty"` // of the operation: with it the creator may read the job
	Role    Role   `json:"role"`            // the least that the operation needs
}

// Bounds of a job, in bytes of JSON.
const (
	maxJobParams = 16 << 10
	MaxJobState  = 32 << 10
	MaxJobResult = 64 << 10
)

const (
	// JobLife is how long a job can be read after it is over.
	JobLife = 7 * 24 * time.Hour
	// jobPatience is how long one that never ends is kept.
	jobPatience = 30 * 24 * time.Hour
)

// Finish puts a job at its end.
func (j *Job) Finish(s JobStatus, now time.Time) {
	j.Status, j.FinishedAt, j.UpdatedAt = s, now, now
	j.ExpiresAt = now.Add(JobLife)
	j.Lease, j.LeaseUntil, j.State = "", time.Time{}, nil
}

// NoJob is the one answer for a job that is missing, expired, somebody else's or another tenant's.
func NoJob() *apperr.Error {
	return apperr.New(apperr.NotFound, "", "There is no such job.",
		"A job is kept for 7 days after its end. Call jobs_list for yours.")
}

// What a run of a job is told when the job is not its own any more.
var (
	// ErrJobCanceled: somebody canceled it. Nothing more is to be done.
	ErrJobCanceled = errors.New("inbox: the job was canceled")
	// ErrJobLost: another run has it, or has brought it to its end.
	ErrJobLost = errors.New("inbox: the job has another run")
)

// HeldBy reports whether the run with this lease still has the job: ErrJobCanceled, ErrJobLost.
func (j *Job) HeldBy(lease string) error {
	switch {
	case j.Status == JobCanceled:
		return ErrJobCanceled
	case j.Status != JobRunning, j.Lease != lease:
		return ErrJobLost
	}
	return nil
}

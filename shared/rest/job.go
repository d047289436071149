package rest

import (
	"fmt"
	"net/http"
	"reflect"

	"github.com/buzon-mail/buzon/shared/op"
)

// JobsPath is the resource below the base path under which every job can be followed.
const JobsPath = "/jobs/"

// StartedOutput is the reply of every operation that starts a job (op.Spec.Job): 202 with the job's id and where to follow it. A
// handler makes it with Started; the route adds the address.
type StartedOutput struct {
	Location string `header:"Location"`
	Body     StartedBody
}

// StartedBody is its JSON.
type StartedBody struct {
	Data StartedJob `json:"data"`
}

// StartedJob names a job.
type StartedJob struct {
	JobID     string `json:"job_id"`
	StatusURL string `json:"status_url" doc:"Path that tells where the job stands."`
}

// Started is the reply that names a job.
func Started(id string) *StartedOutput {
	return &StartedOutput{Body: StartedBody{StartedJob{JobID: id}}}
}

// locate adds where the job can be followed.
func (o *StartedOutput) locate(base string) {
	o.Location = base + JobsPath + o.Body.Data.JobID
	o.Body.Data.StatusURL = o.Location
}

// checkJob refuses a 202 that names no job, and a job that is no 202.
func checkJob(o *op.Operation) error {
	names := o.Output == reflect.TypeFor[StartedOutput]()
	if o.Job != names || o.Job && o.Status != http.StatusAccepted {
		return fmt.Errorf("rest: %s: Job, the status 202 and the output StartedOutput go together", o.Name)
	}
	return nil
}

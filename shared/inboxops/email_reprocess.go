package inboxops

import (
	"context"
	"net/http"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/rest"
)

// Reprocess is the body of emails_reprocess.
type Reprocess struct {
	Stages []string `json:"stages,omitempty" enum:"content,senders,rules,extraction" maxItems:"4" doc:"What to renew; left out: all." tool:"-"`
	Notify bool     `json:"notify,omitempty" doc:"Tell webhooks of the email again." tool:"Tell webhooks again."`
}

type emailsReprocessInput struct {
	rest.RequiredKey
	ID   string     `path:"id" doc:"Id of the email." tool:"-"`
	Body *Reprocess `required:"false"`
}

func (in *emailsReprocessInput) params() inbox.ReprocessParams {
	if in.Body == nil {
		return inbox.ReprocessParams{}
	}
	return inbox.ReprocessParams{Stages: in.Body.Stages, Notify: in.Body.Notify}
}

func (o *operations) emailJobs() []op.Operation {
	return []op.Operation{
		rest.DefineDestructive(op.Spec{
			Name: inbox.KindReprocess, Method: http.MethodPost, Path: "/emails/{id}/reprocess",
			Title: "Read an email again",
			Description: "Starts a job that reads an email's raw bytes again and says what changed. What people decided stays. A person " +
				"confirms. Follow it with jobs_get.",
			Scope: scopeEmailsWrite, Role: op.Operator, Effect: op.Destructive, Confines: true, Outward: true, Job: true,
			Errors: []apperr.Kind{apperr.NotFound, apperr.Conflict},
		}, o.emailsAskReprocess, o.emailsReprocess),
	}
}

func (o *operations) emailsAskReprocess(ctx context.Context, in *emailsReprocessInput) (*op.Question, error) {
	return question(o.services.Emails.AskReprocess(ctx, o.actor(ctx), in.ID, in.params()))
}

func (o *operations) emailsReprocess(ctx context.Context, in *emailsReprocessInput) (*rest.StartedOutput, error) {
	return started(o.services.Emails.Reprocess(ctx, o.actor(ctx), in.ID, in.params()))
}

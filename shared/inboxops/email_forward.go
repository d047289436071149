package inboxops

import (
	"context"
	"net/http"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/rest"
)

// Forward is the body of emails_forward.
type Forward struct {
	To    []string `json:"to" minItems:"1" maxItems:"10" doc:"Addresses of members."`
	Note  string   `json:"note,omitempty" maxLength:"2000"`
	Files *bool    `json:"include_attachments,omitempty" doc:"Default true; false sends the text alone." tool:"Default true."`
}

type emailsForwardInput struct {
	rest.RequiredKey
	ID   string `path:"id" doc:"Id of the email." tool:"-"`
	Body Forward
}

func (in *emailsForwardInput) request() inbox.ForwardRequest {
	return inbox.ForwardRequest{To: in.Body.To, Note: in.Body.Note, Files: in.Body.Files == nil || *in.Body.Files}
}

func (o *operations) forwards() []op.Operation {
	return []op.Operation{
		rest.DefineDestructive(op.Spec{
			Name: inbox.KindForward, Method: http.MethodPost, Path: "/emails/{id}/forward",
			Title: "Forward an email to members",
			Description: "Starts a job that mails an email, original attached, to members of the organization from its inbox's address. A person " +
				"confirms. Automatic, quarantined and blocked mail is refused.",
			Scope: scopeEmailsSend, Role: op.Operator, Effect: op.Destructive, Confines: true, Outward: true, Job: true,
			Errors: []apperr.Kind{apperr.NotFound, apperr.Conflict, apperr.TooLarge},
		}, o.emailsAskForward, o.emailsForward),
	}
}

func (o *operations) emailsAskForward(ctx context.Context, in *emailsForwardInput) (*op.Question, error) {
	return question(o.services.Emails.AskForward(ctx, o.actor(ctx), in.ID, in.request()))
}

func (o *operations) emailsForward(ctx context.Context, in *emailsForwardInput) (*rest.StartedOutput, error) {
	return started(o.services.Emails.Forward(ctx, o.actor(ctx), in.ID, in.request()))
}

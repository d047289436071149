package inboxops

import (
	"context"
	"net/http"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/rest"
)

type emailsRawInput struct {
	ID  string `path:"id" doc:"Id of the email." tool:"-"`
	TTL int    `query:"ttl_s" minimum:"1" maximum:"300" default:"300" doc:"Seconds that the address works." tool:"-"`
}

// RawDownload is an address that serves a raw email for a while.
type RawDownload struct {
	EmailID   string    `json:"email_id"`
	URL       string    `json:"url" doc:"Serves the email to whoever has it, until it expires."`
	ExpiresAt rest.Time `json:"expires_at"`
	SHA256    string    `json:"sha256"`
	SizeBytes int64     `json:"size_bytes"`
}

// RawOutput is the reply of emails_raw_url.
type RawOutput struct{ Body RawBody }

// RawBody is its JSON.
type RawBody struct {
	Data RawDownload `json:"data"`
	Meta ItemMeta    `json:"meta"`
}

func (o *operations) raw() []op.Operation {
	return []op.Operation{
		rest.Define(op.Spec{
			Name: "emails_raw_url", Method: http.MethodGet, Path: "/emails/{id}/raw-url",
			Title: "Get the raw email",
			Description: "An address that serves the email as it was received, for at most 300 seconds. Needs codes:read, for nothing in it is " +
				"masked.",
			Scope: scopeEmailsRead, Role: op.Operator, Effect: op.Read, Confines: true, Audited: true,
			Errors: []apperr.Kind{apperr.NotFound, apperr.Forbidden},
		}, o.emailsRawURL),
	}
}

func (o *operations) emailsRawURL(ctx context.Context, in *emailsRawInput) (*RawOutput, error) {
	d, err := o.services.Emails.RawURL(ctx, o.actor(ctx), in.ID, time.Duration(in.TTL)*time.Second)
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	return &RawOutput{RawBody{Data: RawDownload{d.Email, d.URL, at(d.ExpiresAt), d.SHA256, d.Size}}}, nil
}

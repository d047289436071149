package inboxops

import (
	"context"
	"net/http"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/rest"
)

// ClaimRequest is the body of emails_claim.
type ClaimRequest struct {
	Inbox         string `json:"inbox" minLength:"1" maxLength:"64" doc:"Id or slug." tool:"-"`
	Limit         int    `json:"limit,omitempty" minimum:"1" maximum:"10" default:"1"`
	LeaseS        int    `json:"lease_s,omitempty" minimum:"1" maximum:"900" default:"300" doc:"Seconds until the emails are free again." tool:""`
	Q             string `json:"q,omitempty" maxLength:"256" doc:"Filters as in emails_list."`
	From          string `json:"from,omitempty" maxLength:"256"`
	Subject       string `json:"subject,omitempty" maxLength:"256"`
	Label         string `json:"label,omitempty" maxLength:"64"`
	Category      string `json:"category,omitempty" maxLength:"64"`
	Trust         string `json:"trust,omitempty" enum:"trusted,verified,unverified,suspicious,blocked"`
	Flag          string `json:"flag,omitempty" maxLength:"32"`
	HasAttachment *bool  `json:"has_attachment,omitempty"`
	Cursor        string `json:"cursor,omitempty" maxLength:"2048" doc:"meta.next_cursor, with the same filters." tool:"-"`
}

type emailsClaimInput struct{ Body ClaimRequest }

// Claimed is what a claim got.
type Claimed struct {
	LeaseID string         `json:"lease_id" doc:"For emails_update; empty when nothing was free."`
	Until   rest.Time      `json:"until" doc:"When the lease ends by itself."`
	Emails  []EmailSummary `json:"emails"`
}

// ClaimOutput is the reply of emails_claim.
type ClaimOutput struct{ Body ClaimBody }

// ClaimBody is its JSON.
type ClaimBody struct {
	Data Claimed   `json:"data"`
	Meta ClaimMeta `json:"meta"`
}

// ClaimMeta says how far a claim with filters looked.
type ClaimMeta struct {
	NextCursor *string    `json:"next_cursor" doc:"Send it as cursor to look further; null: claim again without."`
	Window     *ClaimView `json:"window,omitempty" doc:"Absent without filters."`
	Masked     bool       `json:"masked,omitempty" doc:"One-time codes and links are masked, because the token lacks codes:read."`
}

// ClaimView is what a claim with filters looked at.
type ClaimView struct {
	Examined int  `json:"examined" doc:"How many free emails were looked at."`
	Complete bool `json:"complete" doc:"False: others were not looked at."`
}

// WaitRequest is the body of emails_wait.
type WaitRequest struct {
	Inbox    string `json:"inbox" minLength:"1" maxLength:"64" doc:"Id or slug." tool:"-"`
	Want     string `json:"want,omitempty" enum:"any,code,link" default:"any" doc:"code and link need codes:read."`
	From     string `json:"from,omitempty" maxLength:"256" doc:"Text in a sender's address or name." tool:"-"`
	Subject  string `json:"subject,omitempty" maxLength:"256" doc:"Text in the subject." tool:"-"`
	After    string `json:"after,omitempty" maxLength:"2048" doc:"cursor of a wait with the same filters. Left out: emails of the last minute count too." tool:"cursor of the wait before; left out: emails of the last minute count too."`
	TimeoutS *int   `json:"timeout_s,omitempty" minimum:"0" maximum:"25" doc:"20 when left out; 0 looks once." tool:"- Default 20; 0 looks once."`
}

type emailsWaitInput struct{ Body WaitRequest }

// Arrival is what ended a wait.
type Arrival struct {
	TimedOut  bool             `json:"timed_out" doc:"Nothing came in time: call again with cursor as after."`
	Cursor    string           `json:"cursor" doc:"Send it as after to wait for what follows."`
	Email     *EmailSummary    `json:"email" doc:"Null when it timed out."`
	Truncated bool             `json:"truncated,omitempty" doc:"It has more links: emails_get reads them."`
	Untrusted UntrustedArrival `json:"untrusted"`
}

// UntrustedArrival is what was found in the email.
type UntrustedArrival struct {
	Notice string `json:"notice"`
	Codes  []Code `json:"codes"`
	Links  []Link `json:"links"`
}

// WaitOutput is the reply of emails_wait.
type WaitOutput struct{ Body WaitBody }

// WaitBody is its JSON.
type WaitBody struct {
	Data Arrival  `json:"data"`
	Meta ItemMeta `json:"meta"`
}

func (o *operations) work() []op.Operation {
	return []op.Operation{
		rest.Define(op.Spec{
			Name: "emails_claim", Method: http.MethodPost, Path: "/email-claims",
			Title: "Claim work",
			Description: "Leases unhandled emails of an inbox to you alone, longest waiting first. Finish each with emails_update (handled, " +
				"lease_id); its lease_s extends the lease, 0 gives back. They are free again when it ends.",
			Scope: scopeEmailsWrite, Role: op.Operator, Effect: op.Write, Confines: true,
			Errors: []apperr.Kind{apperr.NotFound, apperr.Conflict},
		}, o.emailsClaim),
		rest.Define(op.Spec{
			Name: "emails_wait", Method: http.MethodPost, Path: "/email-waits",
			Title: "Wait for an email",
			Description: "Waits up to 25 seconds for an email, a code or a link and returns the first that fits. Get a cursor with timeout_s 0 " +
				"before you trigger the email. At most 2 waits at once.",
			Scope: scopeEmailsRead, Role: op.Viewer, Effect: op.Read, Confines: true, Idempotent: true,
			Errors: []apperr.Kind{apperr.NotFound, apperr.Forbidden, apperr.RateLimited},
		}, o.emailsWait),
	}
}

func (o *operations) emailsClaim(ctx context.Context, in *emailsClaimInput) (*ClaimOutput, error) {
	b := in.Body
	got, err := o.services.Work.Claim(ctx, o.actor(ctx), inbox.ClaimRequest{
		Query: inbox.ClaimQuery{
			Inbox: b.Inbox, Q: b.Q, From: b.From, Subject: b.Subject, Label: b.Label, Category: b.Category,
			Trust: inbox.TrustLevel(b.Trust), Flag: b.Flag, WithFile: b.HasAttachment,
		},
		Lease: time.Duration(b.LeaseS) * time.Second, Limit: b.Limit, Cursor: b.Cursor,
	})
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	out := ClaimBody{Data: Claimed{Emails: summariesOf(got.Rows)}, Meta: ClaimMeta{Masked: got.Masked}}
	if len(got.Rows) > 0 {
		out.Data.LeaseID, out.Data.Until = got.ID, at(got.Until)
	}
	if got.Next != "" {
		out.Meta.NextCursor = &got.Next
	}
	if w := got.Window; w != nil {
		out.Meta.Window = &ClaimView{w.Examined, w.Complete}
	}
	return &ClaimOutput{out}, nil
}

func (o *operations) emailsWait(ctx context.Context, in *emailsWaitInput) (*WaitOutput, error) {
	b := in.Body
	r := inbox.WaitRequest{
		Query: inbox.WaitQuery{Inbox: b.Inbox, From: b.From, Subject: b.Subject, Want: inbox.Wanted(b.Want)}, After: b.After,
	}
	if b.TimeoutS != nil {
		timeout := time.Duration(*b.TimeoutS) * time.Second
		r.Timeout = &timeout
	}
	got, err := o.services.Waits.Wait(ctx, o.actor(ctx), r)
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	out := Arrival{
		TimedOut: got.TimedOut, Cursor: got.Next, Truncated: got.Cut,
		Untrusted: UntrustedArrival{notice, mapped(got.Codes, codeOf), mapped(got.Links, linkOf)},
	}
	if got.Email != nil {
		s := summaryOf(got.Email)
		out.Email = &s
	}
	return &WaitOutput{WaitBody{out, ItemMeta{Masked: got.Masked}}}, nil
}

func codeOf(c inbox.Code) Code { return Code(c) }

func linkOf(l inbox.Link) Link { return Link{l.URL, l.Text, l.Kind, list(l.Signals)} }

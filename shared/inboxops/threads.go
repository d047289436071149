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

type threadsListInput struct {
	Inbox        string              `query:"inbox" maxLength:"64" doc:"Id or slug of one inbox. Left out: the whole workspace." tool:"-"`
	Q            string              `query:"q" maxLength:"256" doc:"Text in subject, newest snippet or participants." tool:"-"`
	Participant  string              `query:"participant" maxLength:"256" doc:"Text in a participant's address or name." tool:"-"`
	Unhandled    rest.Optional[bool] `query:"unhandled" doc:"Only with, or only without, unhandled emails." tool:"-"`
	UpdatedAfter time.Time           `query:"updated_after" doc:"RFC 3339, exclusive: newest email after this." tool:"-"`
	Paging
}

type threadsGetInput struct {
	ID        string `path:"id" doc:"Id of the thread." tool:"-"`
	MaxEmails int    `query:"max_emails" minimum:"1" maximum:"50" default:"20" doc:"How many emails at most." tool:""`
	MaxChars  int    `query:"max_chars" minimum:"1" maximum:"100000" default:"20000" doc:"Characters of all texts together." tool:"Of all texts together."`
	Cursor    string `query:"cursor" maxLength:"2048" doc:"meta.next_cursor: the emails that follow." tool:"-"`
}

// Thread is a conversation within one inbox.
type Thread struct {
	ID            string          `json:"id"`
	InboxID       string          `json:"inbox_id"`
	StartedAt     rest.Time       `json:"started_at" doc:"First email."`
	UpdatedAt     rest.Time       `json:"updated_at" doc:"Newest email."`
	NewestEmailID string          `json:"newest_email_id"`
	Emails        int             `json:"emails" doc:"Approximate, as are the other counts."`
	Unhandled     int             `json:"unhandled"`
	Quarantined   int             `json:"quarantined"`
	Untrusted     UntrustedThread `json:"untrusted"`
}

// UntrustedThread is what the mail of a thread says, cut to bounds.
type UntrustedThread struct {
	Notice       string    `json:"notice"`
	Subject      string    `json:"subject" doc:"Of the first email."`
	Participants []Address `json:"participants" doc:"The first 10."`
	Snippet      string    `json:"snippet" doc:"Of the newest email."`
}

// ThreadsOutput is the reply of threads_list.
type ThreadsOutput struct{ Body ThreadsBody }

// ThreadsBody is its JSON.
type ThreadsBody struct {
	Data []Thread `json:"data"`
	Meta ListMeta `json:"meta"`
}

// ThreadWithMail is a thread with its emails.
type ThreadWithMail struct {
	Thread
	Mail []ThreadEmail `json:"mail" doc:"Oldest first."`
}

// ThreadEmail is an email of a thread with what it adds.
type ThreadEmail struct {
	EmailFacts
	Codes     int                  `json:"codes" doc:"How many one-time codes were found."`
	Links     int                  `json:"links" doc:"How many links were found."`
	Text      *Text                `json:"text_extent" doc:"Which text is under untrusted and how much of it; null: max_chars was used up. Read on with emails_get."`
	Untrusted UntrustedThreadEmail `json:"untrusted"`
}

// UntrustedThreadEmail is what the sender wrote.
type UntrustedThreadEmail struct {
	UntrustedSummary
	Text string `json:"text" doc:"Without quoted text where it was told apart."`
}

// ThreadOutput is the reply of threads_get.
type ThreadOutput struct{ Body ThreadBody }

// ThreadBody is its JSON.
type ThreadBody struct {
	Data ThreadWithMail `json:"data"`
	Meta ThreadMeta     `json:"meta"`
}

// ThreadMeta says what was left out.
type ThreadMeta struct {
	NextCursor *string `json:"next_cursor" doc:"Send it as cursor for the emails that follow; null: all are here."`
	Truncated  bool    `json:"truncated" doc:"A text was cut or left out, or emails follow."`
	Masked     bool    `json:"masked,omitempty" doc:"One-time codes and links are masked, because the token lacks codes:read."`
}

func (o *operations) threads() []op.Operation {
	return []op.Operation{
		rest.Define(op.Spec{
			Name: "threads_list", Method: http.MethodGet, Path: "/threads",
			Title: "List conversations",
			Description: "Threads of the workspace or one inbox, newest activity first. inbox and updated_after are fast; with other filters " +
				"follow next_cursor while meta.window.complete is false.",
			Scope: scopeEmailsRead, Role: op.Viewer, Effect: op.Read, Confines: true, Idempotent: true,
			Errors: []apperr.Kind{apperr.NotFound},
		}, o.threadsList),
		rest.Define(op.Spec{
			Name: "threads_get", Method: http.MethodGet, Path: "/threads/{id}",
			Title: "Read a conversation",
			Description: "A thread's emails, oldest first, each with what it adds. meta.truncated: something was left out; cursor has further " +
				"emails, emails_get the rest of a text.",
			Scope: scopeEmailsRead, Role: op.Viewer, Effect: op.Read, Confines: true, Idempotent: true,
			Errors: []apperr.Kind{apperr.NotFound},
		}, o.threadsGet),
	}
}

func (o *operations) threadsList(ctx context.Context, in *threadsListInput) (*ThreadsOutput, error) {
	page, err := o.services.Threads.List(ctx, o.actor(ctx), inbox.ThreadQuery{
		Inbox: in.Inbox, Q: in.Q, Participant: in.Participant, Unhandled: in.Unhandled.Pointer(), UpdatedAfter: in.UpdatedAfter,
	}, in.request())
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	return &ThreadsOutput{ThreadsBody{mapped(page.Rows, threadOf), listMeta(page.Next, page.Window, page.Masked)}}, nil
}

func (o *operations) threadsGet(ctx context.Context, in *threadsGetInput) (*ThreadOutput, error) {
	v, err := o.services.Threads.Get(ctx, o.actor(ctx), in.ID, inbox.ThreadRead{MaxEmails: in.MaxEmails, MaxChars: in.MaxChars, Cursor: in.Cursor})
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	out := ThreadBody{
		Data: ThreadWithMail{threadOf(v.Thread), mapped(v.Mail, threadEmailOf)},
		Meta: ThreadMeta{Truncated: v.Next != "", Masked: v.Masked},
	}
	if v.Next != "" {
		out.Meta.NextCursor = &v.Next
	}
	for _, e := range v.Mail {
		out.Meta.Truncated = out.Meta.Truncated || e.Withheld || e.Text.Truncated
	}
	return &ThreadOutput{out}, nil
}

func threadOf(t inbox.Thread) Thread {
	return Thread{
		ID: t.ID, InboxID: t.Inbox, StartedAt: at(t.StartedAt()), UpdatedAt: at(t.UpdatedAt()), NewestEmailID: t.Newest(),
		Emails: t.Emails, Unhandled: t.Unhandled, Quarantined: t.Quarantined,
		Untrusted: UntrustedThread{notice, t.Subject, addresses(t.Participants), t.Snippet},
	}
}

func threadEmailOf(e inbox.ThreadEmail) ThreadEmail {
	s := summaryOf(&e.Summary)
	out := ThreadEmail{EmailFacts: s.EmailFacts, Codes: s.Codes, Links: s.Links, Untrusted: UntrustedThreadEmail{s.Untrusted, e.Text.Text}}
	if !e.Withheld {
		text := textOf(e.Text)
		out.Text = &text
	}
	return out
}

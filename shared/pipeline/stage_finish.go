package pipeline

import (
	"context"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
)

// finish stores the outcome in one step; until then the mail is only being processed. Nothing is quarantined here: there is
// no policy yet that says what to hold back, and what could harm a reader (scripts, hidden text, remote images) was taken
// out of the text or stays closed in a blob.
func (r *run) finish(ctx context.Context) error {
	err := r.store(ctx)
	if !r.failed() && (apperr.Is(err, apperr.Invalid) || apperr.Is(err, apperr.TooLarge)) {
		// It would be refused each time. The mail is kept as one that could not be read.
		r.fail(reasonRefused)
		r.email.Content, r.email.BodyKey, r.email.Attachments, r.key = inbox.Content{}, "", 0, ""
		r.email.Signals, r.email.Codes, r.email.Links, r.email.Flags = nil, nil, nil, nil
		r.email.OtherCodes = nil
		r.body, r.attachments = nil, nil
		err = r.store(ctx)
	}
	return err
}

func (r *run) store(ctx context.Context) error {
	if !r.failed() {
		r.email.Status = inbox.StatusProcessed
	}
	now := r.w.deps.Clock().UTC()
	r.email.ProcessedAt, r.email.UpdatedAt, r.email.Pipeline = now, now, Version
	p := inbox.Processed{Email: r.email, Body: r.body, Attachments: r.attachments}
	if r.reading != nil {
		p.References = r.reading.References[max(0, len(r.reading.References)-maxParent):]
	}
	return r.w.deps.Mails.Finish(ctx, p, r.key)
}

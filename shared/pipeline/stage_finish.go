package pipeline

import (
	"context"
	"slices"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
)

// finish stores the outcome in one step; until then the mail is only being processed. Who sent a mail holds it back, or a rule: what
// could harm a reader (scripts, hidden text, remote images) was taken out of the text or stays closed in a blob.
func (r *run) finish(ctx context.Context) error {
	err := r.store(ctx)
	if !r.failed() && (apperr.Is(err, apperr.Invalid) || apperr.Is(err, apperr.TooLarge)) {
		// It would be refused each time. The mail is kept as one that could not be read.
		r.fail(reasonRefused)
		r.email.Content, r.email.BodyKey, r.email.Attachments, r.key = inbox.Content{}, "", 0, ""
		r.email.Signals, r.email.Codes, r.email.Links, r.email.Flags = nil, nil, nil, nil
		r.body, r.attachments, r.judged = nil, nil, inbox.Judgement{}
		r.email.Auth, r.email.Trust = nil, inbox.Trust{}
		r.email.OtherCodes = nil
		r.email.Rules, r.email.Notify, r.email.CategoryBy = nil, nil, inbox.RuleRef{}
		err = r.store(ctx)
	}
	if err == nil && r.judged.Entry != "" {
		r.w.deps.Senders.HitSender(ctx, r.email.Workspace, r.email.Inbox, r.judged.Entry)
	}
	if err == nil && len(r.email.Rules) > 0 {
		r.w.deps.Rules.HitRules(ctx, r.email.Workspace, r.email.Rules)
	}
	return err
}

func (r *run) store(ctx context.Context) error {
	switch {
	case r.failed():
	case r.judged.Held != "":
		r.email.Status, r.email.Reason = inbox.StatusQuarantined, r.judged.Held
	default:
		r.email.Status = inbox.StatusProcessed
	}
	r.email.RuleLabels = slices.DeleteFunc(slices.Clone(r.email.Labels), func(l string) bool { return slices.Contains(r.had, l) })
	now := r.w.deps.Clock().UTC()
	r.email.ProcessedAt, r.email.UpdatedAt, r.email.Pipeline = now, now, Version
	p := inbox.Processed{Email: r.email, Body: r.body, Attachments: r.attachments}
	if r.reading != nil {
		p.References = r.reading.References[max(0, len(r.reading.References)-maxParent):]
	}
	return r.w.deps.Mails.Finish(ctx, p, r.key)
}

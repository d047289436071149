package pipeline

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
)

// Authenticate finds out which domains vouch for a mail. author is the one address that the checks speak of, empty for none.
// found is what the transport has checked, if it did. It must be bounded in time; a context that ends makes the result worthless.
type Authenticate func(ctx context.Context, raw []byte, e inbox.Envelope, found []inbox.Authentication) (author string, checks []inbox.AuthCheck)

// senders finds out who sent the mail, how far to believe it and what the inbox wants done with it. A mail that could not be
// read is not judged: it has no author.
func (r *run) senders(ctx context.Context) error {
	raw := r.raw
	r.raw = nil // nothing after this needs it
	if r.reading == nil {
		return nil
	}
	author, auth := r.authenticate(ctx, raw)
	if err := ctx.Err(); err != nil { // what was cut off says nothing of the mail
		return err
	}
	r.email.Auth = auth
	policy, unlisted, entries, err := r.listed(ctx)
	if err != nil {
		return err
	}
	r.author = author
	r.judged = r.verdict(author, auth, policy, unlisted, entries)
	r.email.Trust = r.judged.Trust
	if r.transportFound("spam") {
		r.warn("spam_suspected", "Amazon SES takes it for spam")
	}
	if r.judged.Label && !slices.Contains(r.email.Labels, inbox.LabelUnlisted) {
		r.email.Labels = append(r.email.Labels, inbox.LabelUnlisted)
	}
	return nil
}

// verdict is what the inbox makes of who sent the mail, and of what its transport found out and could not act upon: it had said yes
// already.
func (r *run) verdict(
	author string, auth []inbox.AuthCheck, policy inbox.SenderPolicy, unlisted inbox.OnUnlisted, entries []inbox.AllowedSender,
) inbox.Judgement {
	_, own, _ := strings.Cut(r.email.Envelope.To, "@")
	c := r.email.Content
	j := inbox.Judge(inbox.SenderFacts{
		From: c.From, ReplyTo: c.ReplyTo, Author: author, Checks: auth, Own: own, SameOwner: r.w.deps.SameOrganization,
	}, entries, policy, unlisted, r.w.deps.Clock())
	switch {
	case r.transportFound("virus"):
		j.Held = inbox.HeldVirus
	case j.Held != "":
	case r.email.Door == inbox.HeldUnlisted && j.Entry != "": // the door knew the envelope alone; the author is listed
	default:
		j.Held = r.email.Door
	}
	j.Label = j.Label && j.Held == ""
	return j
}

// transportFound reports whether the transport's own scanner speaks against the mail.
func (r *run) transportFound(method string) bool {
	return slices.ContainsFunc(r.email.Authentication, func(a inbox.Authentication) bool {
		return a.Method == method && a.Result == "fail" && a.From == inbox.CheckedBySES
	})
}

// authenticate survives whatever the mail does to it: then, as without an Authenticate, it has no author to rely on.
func (r *run) authenticate(ctx context.Context, raw []byte) (author string, auth []inbox.AuthCheck) {
	if r.w.deps.Authenticate == nil {
		return "", nil
	}
	defer func() {
		if p := recover(); p != nil {
			r.w.deps.Logger.Error("pipeline: authentication panicked", slog.String("email", r.email.ID), slog.String("stack", string(debug.Stack())))
			author, auth = "", nil
		}
	}()
	return r.w.deps.Authenticate(ctx, raw, r.email.Envelope, r.email.Authentication)
}

// listed reads the policy of the inbox and the entries that may concern the mail's author.
func (r *run) listed(ctx context.Context) (policy inbox.SenderPolicy, unlisted inbox.OnUnlisted, entries []inbox.AllowedSender, err error) {
	policy, unlisted = inbox.Inbox{}.Policy()
	if r.w.deps.Senders == nil {
		return policy, unlisted, nil, nil
	}
	in, err := r.w.deps.Senders.Inbox(ctx, r.email.Workspace, r.email.Inbox)
	switch {
	case apperr.Is(err, apperr.NotFound): // purged meanwhile
		return policy, unlisted, nil, nil
	case err != nil:
		return "", "", nil, fmt.Errorf("inbox: %w", err)
	}
	policy, unlisted = in.Policy()
	r.template = in.Template
	if len(r.email.Content.From) == 0 {
		return policy, unlisted, nil, nil
	}
	address := inbox.SenderAddress(r.email.Content.From[0].Address)
	entries, err = r.w.deps.Senders.SendersFor(ctx, r.email.Workspace, r.email.Inbox, address)
	if err != nil {
		return "", "", nil, fmt.Errorf("entries: %w", err)
	}
	return policy, unlisted, entries, nil
}

package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/blob"
	"github.com/buzon-mail/buzon/shared/inbox"
)

// Outlet lets mail out.
type Outlet interface {
	// Send hands over one copy for one recipient. Whoever gets the same ID and recipient twice gets the same message. *apperr.Error:
	// unavailable is tried again; forbidden, invalid, conflict and too_large are the last word on this recipient.
	Send(ctx context.Context, m inbox.Outgoing) error
}

// ForwardStore is what a forward reads, each time anew: what was true when it was asked for may not be now.
type ForwardStore interface {
	// Email reads one mail, deleted or not; the Body is nil unless asked for and kept in a row.
	Email(ctx context.Context, workspace, id string, body bool) (inbox.Email, *inbox.Body, error)
	// Inbox finds one by id, deleted ones too.
	Inbox(ctx context.Context, workspace, ref string) (inbox.Inbox, error)
	// Principal is a person, read strongly; not_found when there is none.
	Principal(ctx context.Context, user string) (inbox.Principal, error)
}

// Forwarding is what a job that sends a mail on needs.
type Forwarding struct {
	Store  ForwardStore
	Outlet Outlet
}

// Forwarded is what came of a forward.
type Forwarded struct {
	Email string        `json:"email_id"`
	Sent  []ForwardedTo `json:"recipients"`
}

// ForwardedTo is what became of one copy.
type ForwardedTo struct {
	User   string `json:"user_id"`
	Status string `json:"status"`         // sent, refused
	Code   string `json:"code,omitempty"` // why it was refused
}

const (
	forwardSent    = "sent"
	forwardRefused = "refused"
	// forwardBody bounds what is read of a body that is in a blob.
	forwardBody = 64 << 20
	// forwardText bounds the text that is sent without its mail, in bytes.
	forwardText = 1 << 20
)

// forward sends a mail on, one copy a recipient, each noted before the next: a run that is killed sends at most one copy a second time,
// under the same Message-ID.
func (w *Worker) forward(ctx context.Context, j *JobRun) (any, error) {
	var params inbox.ForwardParams
	if err := j.Params(&params); err != nil {
		return nil, err
	}
	out := Forwarded{Email: j.Job.Target, Sent: []ForwardedTo{}}
	if err := j.State(&out); err != nil {
		return nil, err
	}
	for len(out.Sent) < len(params.To) {
		if j.Soon(ctx) {
			return nil, ErrMore
		}
		to := params.To[len(out.Sent)]
		done, err := w.forwardTo(ctx, j, params, to)
		if err != nil {
			return nil, err
		}
		out.Sent = append(out.Sent, done)
		if err := j.Save(ctx, int64(len(out.Sent)), int64(len(params.To)), out); err != nil {
			return nil, err
		}
	}
	for _, s := range out.Sent {
		if s.Status == forwardSent {
			return out, nil
		}
	}
	return nil, apperr.New(apperr.Conflict, "forward_refused", "Nobody got the email: "+out.Sent[0].Code+".",
		"Choose other members, or ask whoever runs the service about its way out for mail.")
}

// forwardTo sends one copy. An error is not the recipient's: the run ends, or comes again.
func (w *Worker) forwardTo(ctx context.Context, j *JobRun, params inbox.ForwardParams, to inbox.ForwardTarget) (ForwardedTo, error) {
	done := ForwardedTo{User: to.User, Status: forwardRefused, Code: "forward_target"}
	p, err := w.deps.Forward.Store.Principal(ctx, to.User)
	if err != nil && !apperr.Is(err, apperr.NotFound) {
		return done, err //nolint:wrapcheck // the store names the step
	}
	// The address is the one that was said yes to, or the copy does not go.
	if err != nil || p.Member.Email != to.Address || !inbox.ForwardTo(p.Member, j.Job.Organization, j.Job.Workspace) {
		return done, nil
	}
	e, body, err := w.deps.Forward.Store.Email(ctx, j.Job.Workspace, j.Job.Target, !params.Files)
	if err != nil {
		return done, err //nolint:wrapcheck // the store names the step
	}
	if err := inbox.Forwardable(e, params.Files); err != nil {
		return done, err
	}
	in, err := w.deps.Forward.Store.Inbox(ctx, j.Job.Workspace, e.Inbox)
	if err != nil {
		return done, err //nolint:wrapcheck // the store names the step
	}
	if !in.DeletedAt.IsZero() {
		return done, inbox.NoEmail()
	}
	release, err := w.forwardRoom(ctx, e.Size, params.Files)
	if err != nil {
		return done, err
	}
	defer release()
	m, err := w.outgoing(ctx, j, params, e, body, in)
	if err != nil {
		return done, err
	}
	m.Recipient = to.Address
	if err := j.Authorized(ctx); err != nil {
		return done, err
	}
	err = w.deps.Forward.Outlet.Send(ctx, m)
	if err == nil {
		return ForwardedTo{User: to.User, Status: forwardSent}, nil
	}
	switch e := apperr.From(err); e.Kind {
	case apperr.Forbidden, apperr.Invalid, apperr.Conflict, apperr.TooLarge:
		done.Code = e.Name()
		return done, nil
	default:
		return done, fmt.Errorf("send a copy of %s: %w", j.Job.ID, err)
	}
}

// forwardRoom waits for memory: the raw mail, and its copy in a message.
func (w *Worker) forwardRoom(ctx context.Context, size int64, files bool) (release func(), err error) {
	if !files {
		size = forwardText
	}
	return w.room(ctx, 3*size)
}

// outgoing makes the message, but for who gets this copy. It depends on nothing but the job and the mail.
func (w *Worker) outgoing(
	ctx context.Context, j *JobRun, params inbox.ForwardParams, e inbox.Email, body *inbox.Body, in inbox.Inbox,
) (inbox.Outgoing, error) {
	m := inbox.Outgoing{
		ID: j.Job.ID, From: inbox.Address{Name: in.DisplayName, Address: in.Address}, Subject: "Fwd: " + e.Content.Subject, Date: j.Job.CreatedAt,
	}
	for _, t := range params.To {
		m.To = append(m.To, t.Address)
	}
	m.Text = forwardCover(params, e, in)
	if params.Files {
		raw, err := w.forwardRaw(ctx, e)
		m.Original = raw
		return m, err
	}
	if body == nil && e.BodyKey != "" {
		text, err := w.deps.Blobs.Get(ctx, e.BodyKey, forwardBody)
		if err != nil {
			return m, fmt.Errorf("body of %s: %w", e.ID, blobFailure(err))
		}
		body = &inbox.Body{}
		if err := json.Unmarshal(text, body); err != nil {
			return m, fmt.Errorf("body of %s: %w", e.ID, err)
		}
	}
	if body != nil {
		text := body.Text
		if text == "" {
			text = body.Markdown
		}
		if len(text) > forwardText {
			text = strings.ToValidUTF8(text[:forwardText], "") + "\n[cut here]"
		}
		m.Text += "\n" + text + "\n"
	}
	return m, nil
}

func (w *Worker) forwardRaw(ctx context.Context, e inbox.Email) ([]byte, error) {
	raw, err := w.deps.Blobs.Get(ctx, e.RawKey, MaxStored)
	if errors.Is(err, blob.ErrNotFound) {
		if _, _, gone := w.deps.Forward.Store.Email(ctx, e.Workspace, e.ID, false); apperr.Is(gone, apperr.NotFound) { // purged meanwhile
			return nil, gone //nolint:wrapcheck // the store names the step
		}
		return nil, apperr.New(apperr.Conflict, reasonRawMissing, "The raw bytes of this email are gone.", "Forward it with include_attachments false.")
	}
	if err != nil {
		return nil, fmt.Errorf("raw bytes of %s: %w", e.ID, blobFailure(err))
	}
	if sum := sha256.Sum256(raw); e.RawSHA256 != "" && hex.EncodeToString(sum[:]) != e.RawSHA256 {
		return nil, apperr.New(apperr.Conflict, reasonRawDamaged, "The raw bytes of this email are not those that were received.",
			"Forward it with include_attachments false.")
	}
	return raw, nil
}

// forwardCover is what stands above the mail. How far to believe its sender stands there too: it comes from an address of the
// receiver's own house now.
func forwardCover(params inbox.ForwardParams, e inbox.Email, in inbox.Inbox) string {
	var b strings.Builder
	if note := strings.TrimSpace(params.Note); note != "" {
		b.WriteString(note + "\n\n")
	}
	fmt.Fprintf(&b, "Forwarded from the inbox %s, where it was received on %s.\n", in.Address, e.ReceivedAt.UTC().Format("2 January 2006 15:04 UTC"))
	trust := string(e.Trust.Level)
	if trust == "" {
		trust = string(inbox.Unverified)
	}
	fmt.Fprintf(&b, "Its sender is %s to us. What follows was written by a stranger.\n\n", trust)
	for i, from := range e.Content.From {
		if i == 3 {
			break
		}
		fmt.Fprintf(&b, "From: %s <%s>\n", from.Name, from.Address)
	}
	fmt.Fprintf(&b, "Subject: %s\n", e.Content.Subject)
	if !e.Content.Date.IsZero() {
		fmt.Fprintf(&b, "Date: %s\n", e.Content.Date.UTC().Format("2 January 2006 15:04 UTC"))
	}
	return b.String()
}

package inbox

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// KindForward is the kind of the jobs that send a mail on.
const KindForward = "emails_forward"

// Bounds of a forward.
const (
	MaxForwardTargets = 10
	MaxForwardNote    = 2000     // characters
	MaxForward        = 25 << 20 // bytes of a raw mail that is attached: encoded it stays under the 40 MB that SES takes
)

// PeopleStore finds people. It is not bound to a tenant: whoever asks compares the organization.
type PeopleStore interface {
	// UserByEmail finds a person by address, of any case and of any organization; not_found when there is none.
	UserByEmail(ctx context.Context, email string) (Member, error)
}

// ForwardRequest is what a forward was asked for.
type ForwardRequest struct {
	To    []string // addresses of members
	Note  string   // of whoever forwards
	Files bool     // the original as it is, attached; otherwise its text alone
}

// ForwardTarget is one receiver, as it was when a person said yes.
type ForwardTarget struct {
	User    string `json:"user"`
	Address string `json:"address"`
}

// ForwardParams is what the job of a forward keeps.
type ForwardParams struct {
	To    []ForwardTarget `json:"to"`
	Note  string          `json:"note,omitempty"`
	Files bool            `json:"files,omitempty"`
}

// Outgoing is one copy of a forward on its way to one receiver.
type Outgoing struct {
	ID        string    // of the forward: copies of one ID are one message
	From      Address   // the inbox
	Recipient string    // of this copy
	To        []string  // all of them
	Subject   string    // a stranger's words
	Text      string    // ours, and a stranger's
	Date      time.Time // of the forward
	Original  []byte    // the raw mail; nil: it is not attached
}

// ForwardTo reports whether mail of a workspace may be sent to a person: a member of its organization who reaches the workspace and
// whose address is proven.
func ForwardTo(m Member, organization, workspace string) bool {
	return m.Organization == organization && m.AddressProven() && m.RoleIn(workspace).Valid()
}

// forwardTargets finds the receivers. Whatever is wrong with one, the answer is the same: who is a member elsewhere is nobody's business.
func (d Deps) forwardTargets(ctx context.Context, a Actor, to []string) ([]ForwardTarget, error) {
	if len(to) == 0 || len(to) > MaxForwardTargets {
		return nil, invalid("body.to", fmt.Sprintf("1 to %d addresses of members", MaxForwardTargets))
	}
	targets := make([]ForwardTarget, 0, len(to))
	for i, address := range to {
		m, err := d.People.UserByEmail(ctx, address)
		if err != nil && !apperr.Is(err, apperr.NotFound) {
			return nil, fmt.Errorf("receiver %d: %w", i, err)
		}
		if err != nil || !ForwardTo(m, a.Organization, a.Workspace) {
			return nil, apperr.New(apperr.Invalid, "forward_target", "Email is sent on to members only who reach this workspace and whose address is proven.",
				"Name such a member (members_list has them). An address is proven by a sign-in with the organization's provider, or by `buzon user prove EMAIL`.").
				At("body.to["+strconv.Itoa(i)+"]", "not such a member")
		}
		t := ForwardTarget{User: m.User, Address: m.Email}
		if !slices.Contains(targets, t) {
			targets = append(targets, t)
		}
	}
	return targets, nil
}

// forwardFlags mark mail that a program wrote, or that went in a circle: sending it on could begin one (RFC 3834 section 2).
//
//nolint:gochecknoglobals // constant table
var forwardFlags = []string{"loop", "auto_reply", "bounce"}

// Forwardable reports why a mail can't be sent on, with its files or without.
func Forwardable(e Email, files bool) error {
	switch {
	case !e.DeletedAt.IsZero():
		return NoEmail()
	case e.Status == StatusQuarantined:
		return apperr.New(apperr.Conflict, "quarantined", "This email is in quarantine.", "Have a person look at it and release it with emails_release first.")
	case e.Status == StatusFailed:
		return apperr.New(apperr.Conflict, "unreadable", "This email could not be read, so nobody knows what would be sent.",
			"Try emails_reprocess; if it is read then, forward it.")
	case e.Status != StatusProcessed:
		return apperr.New(apperr.Conflict, "being_processed", "This email is being processed.", "Repeat the call once emails_get says that its status is processed.")
	case e.Trust.Level == Blocked:
		return apperr.New(apperr.Conflict, "sender_blocked", "The sender of this email is blocked.", "Do not forward it.")
	case slices.ContainsFunc(forwardFlags, func(f string) bool { return slices.Contains(e.Flags, f) }):
		return apperr.New(apperr.Conflict, "automatic_mail", "A program wrote this email, or it went in a circle: sending it on could begin one.",
			"Do not forward it.")
	case files && e.Size > MaxForward:
		return apperr.New(apperr.TooLarge, "", fmt.Sprintf("This email has more than %d bytes.", MaxForward), "Forward it with include_attachments false.")
	}
	return nil
}

func (r ForwardRequest) check() error {
	if n := len([]rune(r.Note)); n > MaxForwardNote {
		return invalid("body.note", fmt.Sprintf("at most %d characters", MaxForwardNote))
	}
	return nil
}

// AskForward says what a person is asked before Forward.
func (s *Emails) AskForward(ctx context.Context, a Actor, id string, r ForwardRequest) (*Question, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	e, _, err := s.d.email(ctx, a, id, false)
	if err != nil {
		return nil, err
	}
	if err := Forwardable(e, r.Files); err != nil {
		return nil, err
	}
	in, err := s.d.live(ctx, a, e.Inbox)
	if err != nil {
		return nil, err
	}
	to, err := s.d.forwardTargets(ctx, a, r.To)
	if err != nil {
		return nil, err
	}
	q := &Question{
		Text:    "Send email {}, received by inbox {} on {}, out to {}",
		Values:  []string{e.ID, in.Slug, day(e.ReceivedAt), to[0].Address},
		Targets: map[string]string{e.ID: Version(e.Version)},
	}
	for _, t := range to[1:] {
		q.Text += ", {}"
		q.Values = append(q.Values, t.Address)
	}
	switch {
	case !r.Files:
		q.Text += "; its text only"
	case e.Attachments > 0:
		q.Text += "; the whole mail with {}"
		q.Values = append(q.Values, about(int64(e.Attachments), "attachment", "attachments"))
	default:
		q.Text += "; the whole mail"
	}
	if strings.TrimSpace(r.Note) != "" {
		q.Text += ", and a note of yours"
	}
	return q, nil
}

// Forward starts the job that sends a mail on.
func (s *Emails) Forward(ctx context.Context, a Actor, id string, r ForwardRequest) (Job, error) {
	if err := r.check(); err != nil {
		return Job{}, err
	}
	if !validID("email", id) {
		return Job{}, NoEmail()
	}
	hidden, err := s.d.Emails.Hidden(ctx, a.Workspace)
	if err != nil {
		return Job{}, fmt.Errorf("hidden inboxes of %s: %w", a.Workspace, err)
	}
	// The mail first: who may not see it learns nothing of who is a member.
	if _, _, err := s.d.email(ctx, a, id, false); err != nil {
		return Job{}, err
	}
	to, err := s.d.forwardTargets(ctx, a, r.To)
	if err != nil {
		return Job{}, err
	}
	return s.d.startEmailJob(ctx, a, hidden, JobSpec{
		Kind: KindForward, Scope: "emails:send", Role: RoleOperator, Target: id,
		Params: ForwardParams{To: to, Note: r.Note, Files: r.Files},
	}, func(e Email) error { return Forwardable(e, r.Files) })
}

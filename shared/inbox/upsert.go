package inbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// upsertAttempts bounds how often an upsert starts again because another one created or deleted the inbox meanwhile.
const upsertAttempts = 4

// InboxPatch is what an upsert sets: a merge-patch of the inbox that ID names, or else the natural key Slug.
type InboxPatch struct {
	ID          string
	Slug        string
	Address     string // on creation only; empty: slug@ the organization's first domain
	DisplayName Field[string]
	State       Field[State]
	Retention   Field[int]    // days; null: kept
	Template    Field[string] // slug; null: none
	IfVersion   uint64        // 0: whatever it is
}

// AskUpsert says what a person is asked before Upsert; nil unless it shortens the retention of an inbox that exists, which
// deletes mail. What Upsert refuses it refuses.
func (s *Inboxes) AskUpsert(ctx context.Context, a Actor, p InboxPatch) (*Question, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if err := s.template(ctx, a, p); err != nil {
		return nil, err
	}
	in, err := s.find(ctx, a, p.ref())
	if apperr.Is(err, apperr.NotFound) && p.ID == "" {
		return nil, nil //nolint:nilnil // it creates, which needs no question; what else is wrong with that the act says
	}
	if err != nil {
		return nil, err
	}
	next := in
	a.Direct, a.Confirmed = true, nil // nothing is written here
	if err := p.apply(a, &next, s.d); err != nil || !shorter(next.Retention, in.Retention) {
		return nil, err
	}
	mails, err := s.mails(ctx, in)
	if err != nil {
		return nil, err
	}
	q := &Question{
		Text:    "Keep the mail of inbox {} for {} instead of {}: older ones of its about {} will be purged for good",
		Values:  []string{in.Slug, days(next.Retention), days(in.Retention), mails},
		Targets: map[string]string{in.ID: Version(in.Version)},
	}
	if next.State != in.State {
		q.Text += "; its state becomes {}"
		q.Values = append(q.Values, string(next.State))
	}
	if next.DisplayName != in.DisplayName {
		q.Text += "; its display name changes too"
	}
	if next.Template != in.Template {
		q.Text += "; its extraction template changes too"
	}
	return q, nil
}

// template refuses a default template that does not exist.
func (s *Inboxes) template(ctx context.Context, a Actor, p InboxPatch) error {
	if t := p.Template; t.Present && !t.Null {
		if err := checkSlug("body.default_template", t.Value); err != nil {
			return err
		}
		return s.d.knownTemplate(ctx, a, "body.default_template", t.Value)
	}
	return nil
}

// ref is what the patch names the inbox by.
func (p InboxPatch) ref() string {
	if p.ID != "" {
		return p.ID
	}
	return p.Slug
}

// Upsert creates the inbox or changes the one that is there; created tells which. Two that create the same slug at once:
// one creates, the other changes.
func (s *Inboxes) Upsert(ctx context.Context, a Actor, p InboxPatch) (in Inbox, created bool, err error) {
	if err := p.check(); err != nil {
		return Inbox{}, false, err
	}
	if err := s.template(ctx, a, p); err != nil {
		return Inbox{}, false, err
	}
	for range upsertAttempts {
		in, created, err = s.upsertOnce(ctx, a, p)
		if !errors.Is(err, ErrSlugTaken) {
			return in, created, err
		}
	}
	return Inbox{}, false, Busy()
}

// upsertOnce returns ErrSlugTaken when the inbox appeared between reading and creating.
func (s *Inboxes) upsertOnce(ctx context.Context, a Actor, p InboxPatch) (Inbox, bool, error) {
	current, err := s.find(ctx, a, p.ref())
	switch {
	case err == nil:
		in, err := s.update(ctx, a, current.ID, func(in *Inbox) error { return p.apply(a, in, s.d) })
		return in, false, err
	case !apperr.Is(err, apperr.NotFound) || p.ID != "":
		return Inbox{}, false, err
	case p.IfVersion != 0:
		return Inbox{}, false, apperr.New(apperr.Stale, "", "You named a version, but there is no inbox of this slug.",
			"Leave if_version out to create it.")
	}
	if a.Confirmed != nil {
		return Inbox{}, false, outdated() // the person was asked about one that was there
	}
	in, err := s.create(ctx, a, p)
	return in, err == nil, err
}

func (p InboxPatch) check() error {
	if p.ID == "" && p.Slug == "" {
		return invalid("body.slug", "slug or id is needed", "Send slug to create an inbox or to change the one that has it.")
	}
	if p.ID != "" && !validID("inbox", p.ID) {
		return NoInbox()
	}
	if p.Slug != "" {
		if err := checkSlug("body.slug", p.Slug); err != nil {
			return err
		}
	}
	if s := p.State; s.Present && !s.Null && s.Value != StateActive && s.Value != StatePaused {
		return invalid("body.state", "active or paused")
	}
	if r := p.Retention; r.Present && !r.Null && (r.Value < 1 || r.Value > maxRetention) {
		return invalid("body.retention_days", fmt.Sprintf("1 to %d, or null to keep mail", maxRetention))
	}
	return checkDisplayName(p.DisplayName.Value)
}

// apply changes an inbox that exists. Nothing moves, not even the version, when the patch says what is there already.
func (p InboxPatch) apply(a Actor, in *Inbox, d Deps) error {
	if !in.DeletedAt.IsZero() {
		return deletedExists(*in)
	}
	if p.IfVersion != 0 && p.IfVersion != in.Version {
		return staleVersion(in.Version, "inboxes_get")
	}
	if p.Slug != "" && p.Slug != in.Slug {
		return invalid("body.slug", "the slug of an inbox does not change", "Leave slug out, or name the inbox by its slug alone.")
	}
	if p.Address != "" && !sameAddress(p.Address, in.Address) {
		return invalid("body.address", "the address of an inbox does not change",
			"Leave address out, or create another inbox with that address.")
	}
	next := *in
	next.DisplayName = p.DisplayName.or(in.DisplayName)
	next.Retention = p.Retention.or(in.Retention)
	next.Template = p.Template.or(in.Template)
	if next.State = p.State.or(in.State); next.State == "" {
		next.State = StateActive
	}
	if err := a.confirm(in.ID, in.Version, shorter(next.Retention, in.Retention)); err != nil {
		return err
	}
	if next == *in {
		return nil
	}
	next.UpdatedAt, next.Version = d.now(), in.Version+1
	*in = next
	return nil
}

// shorter compares retentions in days; 0 keeps mail for ever.
func shorter(next, current int) bool { return next != 0 && (current == 0 || next < current) }

func (s *Inboxes) create(ctx context.Context, a Actor, p InboxPatch) (Inbox, error) {
	domains, err := s.d.Domains.Domains(ctx, a.Organization)
	if err != nil {
		return Inbox{}, fmt.Errorf("domains of %s: %w", a.Organization, err)
	}
	address := p.Address
	if address == "" && len(domains) > 0 {
		address = p.Slug + "@" + domains[0]
	}
	if address, err = checkAddress(address, domains); err != nil {
		return Inbox{}, err
	}
	now := s.d.now()
	id, err := NewID("inbox", now, s.d.Rand)
	if err != nil {
		return Inbox{}, err
	}
	in := Inbox{
		ID: id, Organization: a.Organization, Workspace: a.Workspace, Slug: p.Slug, Address: address,
		DisplayName: p.DisplayName.Value, State: StateActive, Retention: p.Retention.Value, Template: p.Template.Value,
		CreatedAt: now, UpdatedAt: now, Version: 1,
	}
	if p.State.Value != "" {
		in.State = p.State.Value
	}
	if !p.Retention.Present {
		w, err := s.d.settings(ctx, a)
		if err != nil {
			return Inbox{}, err
		}
		in.Retention = w.Retention
	}
	act, err := s.d.act(a)
	if err != nil {
		return Inbox{}, err
	}
	err = s.d.Inboxes.CreateInbox(ctx, in, act)
	if errors.Is(err, ErrAddressTaken) {
		return Inbox{}, addressTaken()
	}
	if err != nil {
		return Inbox{}, fmt.Errorf("create inbox %s: %w", id, err)
	}
	return in, nil
}

func deletedExists(in Inbox) error {
	return apperr.New(apperr.Conflict, "deleted_exists", "An inbox with this slug was deleted and can still be restored.",
		"Call inboxes_restore with id "+in.ID+", then repeat this call.", "Or choose another slug.")
}

// addressTaken says nothing of who has it: another organization's inboxes are not to be found out.
func addressTaken() error {
	return apperr.New(apperr.Conflict, "address_taken", "This address is in use or was in use.", "Choose another local part.")
}

func tooManyDeleted(err error) error {
	if !errors.Is(err, ErrTooManyDeleted) {
		return err
	}
	return apperr.New(apperr.Conflict, "too_many_deleted",
		"This workspace has as many deleted inboxes as it can keep.",
		"Wait until the oldest are purged, 30 days after their deletion, or pause this inbox instead (inboxes_upsert, state paused).").
		Because(err)
}

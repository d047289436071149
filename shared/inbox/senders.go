package inbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// maxNote is in bytes.
const maxNote = 200

// Senders are the operations on who may send to an inbox.
type Senders struct{ d Deps }

// SenderQuery filters a list of entries.
type SenderQuery struct {
	Inbox  string // id or slug
	Effect SenderEffect
	Kind   SenderKind
	Q      string // in value or note
}

// SenderPage is one page of entries.
type SenderPage struct {
	Rows   []SenderRow
	Next   string  // cursor
	Window *Window // nil when the keys serve the list
}

// List returns the entries of an inbox in the order of their ids.
func (s *Senders) List(ctx context.Context, a Actor, q SenderQuery, p PageRequest) (SenderPage, error) {
	limit, err := p.limit()
	if err != nil {
		return SenderPage{}, err
	}
	if err := q.check(); err != nil {
		return SenderPage{}, err
	}
	c := newCursors(s.d.Cursors, a, "allowed_senders_list", q)
	after, err := c.open(p.Cursor)
	if err != nil {
		return SenderPage{}, err
	}
	in, err := s.d.live(ctx, a, q.Inbox)
	if err != nil {
		return SenderPage{}, err
	}
	l := lister[SenderRow]{
		after: after, limit: limit, match: q.matcher(),
		key: func(row *SenderRow) string { return row.ID },
		read: func(ctx context.Context, after string, n int) ([]SenderRow, string, error) {
			return s.d.Senders.Senders(ctx, SenderRange{a.Workspace, in.ID, after, n})
		},
	}
	rows, next, err := l.collect(ctx)
	if err != nil {
		return SenderPage{}, fmt.Errorf("list senders of %s: %w", in.ID, err)
	}
	page := SenderPage{Rows: rows}
	if l.match != nil {
		page.Window = &Window{Examined: l.examined, Complete: next == ""}
	}
	page.Next, err = c.seal(next)
	return page, err
}

func (q SenderQuery) check() error {
	if q.Effect != "" {
		if err := checkEffect("query.effect", q.Effect); err != nil {
			return err
		}
	}
	if q.Kind != "" {
		if err := checkKind("query.kind", q.Kind); err != nil {
			return err
		}
	}
	return checkFilter("query.q", q.Q)
}

func (q SenderQuery) matcher() func(*SenderRow) bool {
	if q.Effect == "" && q.Kind == "" && q.Q == "" {
		return nil
	}
	needle := strings.ToLower(q.Q)
	return func(row *SenderRow) bool {
		return (q.Effect == "" || row.Effect == q.Effect) && (q.Kind == "" || row.Kind == q.Kind) &&
			(needle == "" || contains(row.Value, needle) || contains(row.Note, needle))
	}
}

// SenderPatch is what an upsert sets: a merge-patch of the entry whose natural key is inbox, kind and value.
type SenderPatch struct {
	Inbox     string // id or slug
	Kind      SenderKind
	Value     string
	Effect    Field[SenderEffect] // null, and on creation: allow
	Require   Field[Require]      // null, and on creation: dmarc
	ExpiresAt Field[time.Time]    // null: never
	Note      Field[string]
	Restore   bool   // take the deleted entry of this key back
	IfVersion uint64 // 0: whatever it is
}

// normal checks the patch and puts the value into its one spelling.
func (p SenderPatch) normal(now time.Time) (SenderPatch, error) {
	if err := checkKind("body.kind", p.Kind); err != nil {
		return p, err
	}
	ok := false
	if p.Kind == KindAddress {
		p.Value, ok = listedAddress(p.Value)
	} else if domain, err := NormalDomain(strings.TrimPrefix(p.Value, "@")); err == nil {
		p.Value, ok = domain, true
	}
	if !ok {
		return p, invalid("body.value", "an address for kind address, else a domain with at least one dot",
			"Send one sender, such as ana@example.com or example.com; patterns are not understood.")
	}
	if e := p.Effect; e.Present && !e.Null {
		if err := checkEffect("body.effect", e.Value); err != nil {
			return p, err
		}
	}
	if r := p.Require; r.Present && !r.Null && !slices.Contains([]Require{RequireNone, RequireSPFOrDKIM, RequireDMARC}, r.Value) {
		return p, invalid("body.require", "none, spf_or_dkim or dmarc")
	}
	if t := p.ExpiresAt; t.Present && !t.Null {
		p.ExpiresAt.Value = t.Value.UTC().Truncate(time.Millisecond)
		if !p.ExpiresAt.Value.After(now) {
			return p, invalid("body.expires_at", "a time that is to come", "Delete the entry to end it now.")
		}
	}
	if n := p.Note.Value; len(n) > maxNote || strings.ContainsFunc(n, unprintable) {
		return p, invalid("body.note", fmt.Sprintf("at most %d bytes without control characters", maxNote))
	}
	return p, nil
}

// listedAddress is normalAddress for an address that a person lists: its domain must be one.
func listedAddress(s string) (string, bool) {
	local, domain, ok := cutAddress(strings.TrimSpace(s))
	if !ok {
		return "", false
	}
	domain, err := NormalDomain(domain)
	if err != nil {
		return "", false
	}
	return normalAddress(local + "@" + domain)
}

func checkKind(location string, k SenderKind) error {
	if !slices.Contains([]SenderKind{KindAddress, KindDomain, KindSubdomains}, k) {
		return invalid(location, "address, domain or subdomains")
	}
	return nil
}

func checkEffect(location string, e SenderEffect) error {
	if e != EffectAllow && e != EffectBlock {
		return invalid(location, "allow or block")
	}
	return nil
}

// apply changes an entry, or makes it. Only a new note changes nothing of who may send.
func (p SenderPatch) apply(a Actor, s *AllowedSender, id string, now time.Time) error {
	next, state := *s, Version(s.Version)
	if s.Version == 0 {
		state = absent
		next = AllowedSender{ID: id, Workspace: a.Workspace, Inbox: p.Inbox, Kind: p.Kind, Value: p.Value, CreatedAt: now}
	}
	if p.IfVersion != 0 && p.IfVersion != s.Version {
		return staleVersion(s.Version, "allowed_senders_list")
	}
	if !s.DeletedAt.IsZero() && !p.Restore {
		return apperr.New(apperr.Conflict, "deleted_exists", "An entry for this sender was deleted and can still be restored.",
			"Repeat the call with restore true to take it back with what you send now.")
	}
	next.DeletedAt = time.Time{}
	next.Effect, next.Require = p.Effect.or(s.Effect), p.Require.or(s.Require)
	next.ExpiresAt, next.Note = p.ExpiresAt.or(s.ExpiresAt), p.Note.or(s.Note)
	if next.Effect == "" {
		next.Effect = EffectAllow
	}
	if next.Require == "" {
		next.Require = RequireDMARC
	}
	noted := next
	noted.Note = s.Note
	if err := a.confirmState(id, state, s.Version == 0 || noted != *s); err != nil {
		return err
	}
	if next == *s {
		return nil
	}
	next.UpdatedAt, next.Version = now, s.Version+1
	*s = next
	return nil
}

// Upsert makes the entry for a sender or changes the one that is there; created tells which.
func (s *Senders) Upsert(ctx context.Context, a Actor, p SenderPatch) (got AllowedSender, created bool, err error) {
	p, err = p.normal(s.d.now())
	if err != nil {
		return AllowedSender{}, false, err
	}
	in, err := s.d.live(ctx, a, p.Inbox)
	if err != nil {
		return AllowedSender{}, false, err
	}
	p.Inbox = in.ID
	id := SenderID(a.Workspace, in.ID, p.Kind, p.Value)
	got, err = s.update(ctx, a, in.ID, id, func(e *AllowedSender) error {
		created = e.Version == 0
		return p.apply(a, e, id, s.d.now())
	})
	return got, created && err == nil, err
}

// AskUpsert says what a person is asked before Upsert; nil when nothing changes of who may send.
func (s *Senders) AskUpsert(ctx context.Context, a Actor, p SenderPatch) (*Question, error) {
	p, err := p.normal(s.d.now())
	if err != nil {
		return nil, err
	}
	in, err := s.d.live(ctx, a, p.Inbox)
	if err != nil {
		return nil, err
	}
	p.Inbox = in.ID
	id := SenderID(a.Workspace, in.ID, p.Kind, p.Value)
	current, err := s.d.Senders.Sender(ctx, a.Workspace, in.ID, id)
	if err != nil && !apperr.Is(err, apperr.NotFound) {
		return nil, fmt.Errorf("sender %s: %w", id, err)
	}
	next := current
	a.Direct, a.Confirmed = true, nil // nothing is written here
	if err := p.apply(a, &next, id, s.d.now()); err != nil {
		return nil, err
	}
	noted := next
	noted.Note, noted.Version, noted.UpdatedAt = current.Note, current.Version, current.UpdatedAt
	if noted == current {
		return nil, nil //nolint:nilnil // no question
	}
	q := &Question{
		Text: "For inbox {}: " + next.text(), Values: append([]string{in.Slug}, next.values()...), Targets: map[string]string{id: absent},
	}
	if current.Version > 0 {
		q.Targets[id] = Version(current.Version)
		was := "not listed"
		if current.DeletedAt.IsZero() {
			was = string(current.Effect)
			if current.Effect == EffectAllow {
				was += ", " + requirement(current.Require)
			}
		}
		q.Text += "; until now: {}"
		q.Values = append(q.Values, was)
	}
	return q, nil
}

// text and values say in words what an entry does.
func (s AllowedSender) text() string {
	t := "block mail from {}"
	if s.Effect == EffectAllow {
		t = "allow mail from {}, {}"
	}
	if !s.ExpiresAt.IsZero() {
		t += ", until {}"
	}
	return t
}

func (s AllowedSender) values() []string {
	v := []string{s.subject()}
	if s.Effect == EffectAllow {
		v = append(v, requirement(s.Require))
	}
	if !s.ExpiresAt.IsZero() {
		v = append(v, day(s.ExpiresAt))
	}
	return v
}

func (s AllowedSender) subject() string {
	switch s.Kind {
	case KindAddress:
		return s.Value
	case KindDomain:
		return "domain " + s.Value
	case KindSubdomains:
		return "domain " + s.Value + " and all below it"
	}
	return s.Value
}

func requirement(r Require) string {
	switch r {
	case RequireDMARC:
		return "if DMARC passes"
	case RequireSPFOrDKIM:
		return "if SPF or DKIM passes"
	case RequireNone:
		return "also unauthenticated"
	}
	return string(r)
}

// AskDelete says what a person is asked before Delete; nil when the entry is deleted already.
func (s *Senders) AskDelete(ctx context.Context, a Actor, inbox, id string) (*Question, error) {
	in, err := s.entry(ctx, a, inbox, id)
	if err != nil {
		return nil, err
	}
	e, err := s.d.Senders.Sender(ctx, a.Workspace, in.ID, id)
	if err != nil || !e.DeletedAt.IsZero() {
		return nil, err //nolint:wrapcheck // the store names the step
	}
	return &Question{
		Text:    "For inbox {}: no longer " + e.text(),
		Values:  append([]string{in.Slug}, e.values()...),
		Targets: map[string]string{id: Version(e.Version)},
	}, nil
}

// Delete takes an entry off the list; an upsert with Restore brings it back. Repeating it answers the same.
func (s *Senders) Delete(ctx context.Context, a Actor, inbox, id string) (AllowedSender, error) {
	in, err := s.entry(ctx, a, inbox, id)
	if err != nil {
		return AllowedSender{}, err
	}
	return s.update(ctx, a, in.ID, id, func(e *AllowedSender) error {
		if e.Version == 0 {
			return NoSender()
		}
		if err := a.confirm(id, e.Version, e.DeletedAt.IsZero()); err != nil {
			return err
		}
		if e.DeletedAt.IsZero() {
			e.DeletedAt = s.d.now()
			e.UpdatedAt, e.Version = e.DeletedAt, e.Version+1
		}
		return nil
	})
}

// entry checks what a path names.
func (s *Senders) entry(ctx context.Context, a Actor, inbox, id string) (Inbox, error) {
	in, err := s.d.live(ctx, a, inbox)
	if err == nil && !validID("sender", id) {
		return Inbox{}, NoSender()
	}
	return in, err
}

func (s *Senders) update(ctx context.Context, a Actor, in, id string, change func(*AllowedSender) error) (AllowedSender, error) {
	act, err := s.d.act(a)
	if err != nil {
		return AllowedSender{}, err
	}
	e, err := s.d.Senders.UpdateSender(ctx, a.Workspace, in, id, act, change)
	if errors.Is(err, ErrZoneFull) {
		return AllowedSender{}, apperr.New(apperr.Conflict, "zone_full", "There are as many entries for domains that end like this one as an inbox can have.",
			"List the domain above them once, with kind subdomains, and delete what it covers.").Because(err)
	}
	if err != nil {
		return AllowedSender{}, fmt.Errorf("change sender %s: %w", id, err)
	}
	return e, nil
}

package inbox

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// Rules are the operations on rules.
type Rules struct{ d Deps }

// everyInbox names the whole workspace where an inbox can be named.
const everyInbox = "*"

// RuleQuery filters a list of rules.
type RuleQuery struct {
	Inbox   string // id or slug: those that see its mail, so those of the whole workspace too
	Slug    string
	Enabled *bool
}

// RuleRow is a rule in its place.
type RuleRow struct {
	Rule
	Position int   // from 1, among all rules of the workspace
	Matches  int64 // approximate
}

// RulePage is one page of rules.
type RulePage struct {
	Rows []RuleRow
	Next string // cursor
}

// List returns the rules of the workspace in their order.
func (s *Rules) List(ctx context.Context, a Actor, q RuleQuery, p PageRequest) (RulePage, error) {
	limit, err := p.limit()
	if err != nil {
		return RulePage{}, err
	}
	if q.Slug != "" && !ValidSlug(q.Slug) {
		return RulePage{}, nil
	}
	c := newCursors(s.d.Cursors, a, "rules_list", q)
	after, err := c.open(p.Cursor)
	if err != nil {
		return RulePage{}, err
	}
	in := ""
	if q.Inbox != "" && q.Inbox != everyInbox {
		box, err := s.d.live(ctx, a, q.Inbox)
		if err != nil {
			return RulePage{}, err
		}
		in = box.ID
	}
	book, _, err := s.d.Rules.Rulebook(ctx, a.Workspace, 0)
	if err != nil {
		return RulePage{}, fmt.Errorf("rules of %s: %w", a.Workspace, err)
	}
	var page RulePage
	next := ""
	for i, r := range book.Rules {
		switch place := fmt.Sprintf("%04d", i); {
		case place <= after && after != "", in != "" && r.Inbox != "" && r.Inbox != in, q.Inbox == everyInbox && r.Inbox != "",
			q.Slug != "" && r.Slug != q.Slug, q.Enabled != nil && r.Enabled != *q.Enabled:
		case len(page.Rows) == limit:
			page.Next, err = c.seal(next)
			return page, errors.Join(err, s.matches(ctx, a, page.Rows))
		default:
			page.Rows, next = append(page.Rows, RuleRow{Rule: r, Position: i + 1}), place
		}
	}
	return page, s.matches(ctx, a, page.Rows)
}

func (s *Rules) matches(ctx context.Context, a Actor, rows []RuleRow) error {
	if len(rows) == 0 {
		return nil
	}
	counts, err := s.d.Rules.RuleMatches(ctx, a.Workspace)
	if err != nil {
		return fmt.Errorf("matches of %s: %w", a.Workspace, err)
	}
	for i := range rows {
		rows[i].Matches = counts[rows[i].ID]
	}
	return nil
}

// RulePatch is what an upsert sets: a merge-patch of the rule whose natural key is workspace, inbox and slug.
type RulePatch struct {
	Slug       string
	Inbox      string       // id or slug; empty or *: the whole workspace
	Position   int          // from 1: the rule that is there now, and those behind it, move on; 0: where it is, or the end
	Match      Field[Match] // null, and on creation: all
	Conditions []Condition  // nil: as they are
	Actions    []Action     // nil: as they are
	Stop       Field[bool]
	Enabled    Field[bool] // null, on creation and on restoration: false
	Restore    bool        // take the deleted rule of this key back
	IfVersion  uint64      // 0: whatever it is
	draft      bool        // it is only tried
}

// at is the place of a member in the input.
func (p RulePatch) at(member string) string {
	if p.draft {
		return "body.rule." + member
	}
	return "body." + member
}

// normal checks the patch, and puts it into its one spelling; box is the slug of its inbox.
func (s *Rules) normal(ctx context.Context, a Actor, p RulePatch) (next RulePatch, box string, err error) {
	if err := checkSlug(p.at("slug"), p.Slug); err != nil {
		return p, "", err
	}
	if p.Position < 0 || p.Position > MaxRules {
		return p, "", invalid(p.at("position"), fmt.Sprintf("1 to %d", MaxRules))
	}
	if m := p.Match; m.Present && !m.Null && m.Value != MatchAll && m.Value != MatchAny {
		return p, "", invalid(p.at("match"), "all or any")
	}
	if p.Conditions != nil {
		p.Conditions = slices.Clone(p.Conditions)
		if _, err := checkConditions(p.at("conditions"), p.Conditions); err != nil {
			return p, "", err
		}
	}
	if p.Actions != nil {
		if err := checkActions(p.at("actions"), p.Actions); err != nil {
			return p, "", err
		}
		if err := s.templates(ctx, a, p); err != nil {
			return p, "", err
		}
	}
	if p.Inbox == "" || p.Inbox == everyInbox {
		p.Inbox = ""
		return p, "", nil
	}
	in, err := s.d.live(ctx, a, p.Inbox)
	p.Inbox = in.ID
	return p, in.Slug, err
}

// templates refuses an action whose template does not exist: it would only ever leave a warning.
func (s *Rules) templates(ctx context.Context, a Actor, p RulePatch) error {
	for i, act := range p.Actions {
		if act.Type != ActExtract {
			continue
		}
		if err := s.d.knownTemplate(ctx, a, fmt.Sprintf("%s[%d].value", p.at("actions"), i), act.Value); err != nil {
			return err
		}
	}
	return nil
}

func (d Deps) knownTemplate(ctx context.Context, a Actor, location, slug string) error {
	t, err := d.Templates.Template(ctx, a.Workspace, TemplateID(a.Workspace, slug))
	if apperr.Is(err, apperr.NotFound) || err == nil && !t.DeletedAt.IsZero() {
		return invalid(location, "the slug of an extraction template", "Call extraction_templates_list for those of this workspace.")
	}
	if err != nil {
		return fmt.Errorf("template of %s: %w", a.Workspace, err)
	}
	return nil
}

// apply changes the rule in its book, or makes it, and returns it as it then is.
func (p RulePatch) apply(a Actor, book *Rulebook, gone *Rule, id string, now time.Time) (Rule, error) {
	at := book.place(id)
	old := *gone
	if at >= 0 {
		old = book.Rules[at]
	}
	next, state := old, Version(old.Version)
	if old.Version == 0 {
		state = absent
		next = Rule{ID: id, Workspace: a.Workspace, Inbox: p.Inbox, Slug: p.Slug, CreatedAt: now}
	}
	if err := p.refuse(old); err != nil {
		return Rule{}, err
	}
	enabled := old.Enabled && old.DeletedAt.IsZero()
	next.DeletedAt, next.Enabled = time.Time{}, p.Enabled.or(enabled)
	next.Match, next.Stop = p.Match.or(old.Match), p.Stop.or(old.Stop)
	if next.Match == "" {
		next.Match = MatchAll
	}
	if p.Conditions != nil {
		next.Conditions = p.Conditions
	}
	if p.Actions != nil {
		next.Actions = p.Actions
	}
	to := at
	if p.Position > 0 {
		to = min(p.Position-1, len(book.Rules)-min(at, 0)-1)
	} else if at < 0 {
		to = len(book.Rules)
	}
	changed := to != at || !reflect.DeepEqual(next, old)
	if err := a.confirmState(id, state, changed && next.outward()); err != nil {
		return Rule{}, err
	}
	if !changed {
		return old, nil
	}
	next.UpdatedAt, next.Version = now, old.Version+1
	rules := slices.Clone(book.Rules)
	if at >= 0 {
		rules = slices.Delete(rules, at, at+1)
	}
	moved := Rulebook{Rules: slices.Insert(rules, to, next)}
	if err := moved.check(); err != nil {
		return Rule{}, err
	}
	*book, *gone = moved, Rule{}
	return next, nil
}

// refuse says why the patch can't be applied to a rule as it is; a zero one does not exist.
func (p RulePatch) refuse(old Rule) error {
	switch {
	case p.IfVersion != 0 && p.IfVersion != old.Version:
		return staleVersion(old.Version, "rules_list")
	case !old.DeletedAt.IsZero() && !p.Restore:
		return apperr.New(apperr.Conflict, "deleted_exists", "A rule of this slug was deleted and can still be restored.",
			"Repeat the call with restore true to take it back with what you send now, or choose another slug.")
	case old.Version == 0 && len(p.Conditions) == 0:
		return invalid(p.at("conditions"), "needed for a new rule")
	case old.Version == 0 && len(p.Actions) == 0:
		return invalid(p.at("actions"), "needed for a new rule")
	}
	return nil
}

// Upsert makes the rule of a slug or changes the one that is there; created tells which.
func (s *Rules) Upsert(ctx context.Context, a Actor, p RulePatch) (row RuleRow, created bool, err error) {
	p, _, err = s.normal(ctx, a, p)
	if err != nil {
		return RuleRow{}, false, err
	}
	id := RuleID(a.Workspace, p.Inbox, p.Slug)
	err = s.update(ctx, a, id, func(book *Rulebook, gone *Rule) error {
		created = book.place(id) < 0 && gone.Version == 0
		rule, err := p.apply(a, book, gone, id, s.d.now())
		row = RuleRow{Rule: rule, Position: book.place(id) + 1}
		return err
	})
	if err != nil {
		return RuleRow{}, false, err
	}
	return row, created, nil
}

// AskUpsert says what a person is asked before Upsert; nil unless the rule is, or becomes, enabled and notifies or quarantines.
func (s *Rules) AskUpsert(ctx context.Context, a Actor, p RulePatch) (*Question, error) {
	p, box, err := s.normal(ctx, a, p)
	if err != nil {
		return nil, err
	}
	id := RuleID(a.Workspace, p.Inbox, p.Slug)
	book, gone, err := s.current(ctx, a, id)
	if err != nil {
		return nil, err
	}
	old, was := gone, book.place(id)
	if was >= 0 {
		old = book.Rules[was]
	}
	a.Direct, a.Confirmed = true, nil // nothing is written here
	next, err := p.apply(a, &book, &gone, id, s.d.now())
	if err != nil || !next.outward() || next.Version == old.Version {
		return nil, err
	}
	q := next.question("Run rule {} on the mail of {}: ", box)
	q.Targets = map[string]string{id: absent}
	if old.Version > 0 {
		q.Targets[id] = Version(old.Version)
		state := "disabled"
		switch {
		case !old.DeletedAt.IsZero():
			state = "deleted"
		case old.Enabled:
			state = "enabled"
		}
		q.Text += "; until now it was {}"
		q.Values = append(q.Values, state)
	}
	return q, nil
}

// maxAsked is how many conditions a question spells out.
const maxAsked = 3

// question names what a rule does and when. All of it is ours: rules hold nothing of a mail.
func (r Rule) question(head, box string) *Question {
	if box == "" {
		box = "every inbox"
	}
	q := &Question{Text: head, Values: []string{r.Slug, box}}
	for i, a := range r.Actions {
		if i > 0 {
			q.Text += ", "
		}
		q.Text += strings.ReplaceAll(a.Type, "_", " ")
		if a.Value != "" {
			q.Text += " {}"
			q.Values = append(q.Values, a.Value)
		}
	}
	join := "all of"
	if r.Match == MatchAny {
		join = "any of"
	}
	q.Text += "; when " + join
	for _, c := range r.Conditions[:min(len(r.Conditions), maxAsked)] {
		q.Text += " [{}]"
		q.Values = append(q.Values, c.words())
	}
	if more := len(r.Conditions) - maxAsked; more > 0 {
		q.Text += fmt.Sprintf(" and %d more", more)
	}
	return q
}

func (c Condition) words() string {
	parts := []string{c.Field}
	if c.Name != "" {
		parts = append(parts, c.Name)
	}
	if c.Not {
		parts = append(parts, "not")
	}
	parts = append(parts, c.Op)
	if c.Value != "" {
		parts = append(parts, c.Value)
	}
	return strings.Join(parts, " ")
}

// current reads the book, and the rule of an id if it is deleted.
func (s *Rules) current(ctx context.Context, a Actor, id string) (Rulebook, Rule, error) {
	book, _, err := s.d.Rules.Rulebook(ctx, a.Workspace, 0)
	if err != nil {
		return Rulebook{}, Rule{}, fmt.Errorf("rules of %s: %w", a.Workspace, err)
	}
	if book.place(id) >= 0 {
		return book, Rule{}, nil
	}
	gone, err := s.d.Rules.DeletedRule(ctx, a.Workspace, id)
	if err != nil && !apperr.Is(err, apperr.NotFound) {
		return Rulebook{}, Rule{}, fmt.Errorf("rule %s: %w", id, err)
	}
	return book, gone, nil
}

// AskDelete says what a person is asked before Delete; nil when the rule is deleted already.
func (s *Rules) AskDelete(ctx context.Context, a Actor, id string) (*Question, error) {
	if !validID("rule", id) {
		return nil, NoRule()
	}
	book, gone, err := s.current(ctx, a, id)
	if err != nil {
		return nil, err
	}
	i := book.place(id)
	if i < 0 {
		if gone.Version == 0 {
			return nil, NoRule()
		}
		return nil, nil //nolint:nilnil // no question
	}
	r := book.Rules[i]
	box := r.Inbox
	if box != "" {
		in, err := s.d.Inboxes.Inbox(ctx, a.Workspace, box)
		if err != nil && !apperr.Is(err, apperr.NotFound) { // a purged inbox's rule can still be deleted
			return nil, fmt.Errorf("inbox %s: %w", box, err)
		}
		if err == nil {
			box = in.Slug
		}
	}
	q := r.question("Delete rule {} of {}: ", box)
	q.Targets = map[string]string{id: Version(r.Version)}
	return q, nil
}

// Delete takes a rule out of the book; an upsert with Restore brings it back. Repeating it answers the same.
func (s *Rules) Delete(ctx context.Context, a Actor, id string) (Rule, error) {
	if !validID("rule", id) {
		return Rule{}, NoRule()
	}
	var out Rule
	err := s.update(ctx, a, id, func(book *Rulebook, gone *Rule) error {
		out = *gone
		i := book.place(id)
		if i >= 0 {
			out = book.Rules[i]
		}
		if out.Version == 0 {
			return NoRule()
		}
		if err := a.confirm(id, out.Version, i >= 0); err != nil || i < 0 {
			return err
		}
		out.DeletedAt = s.d.now()
		out.UpdatedAt, out.Version = out.DeletedAt, out.Version+1
		book.Rules = slices.Delete(slices.Clone(book.Rules), i, i+1)
		*gone = out
		return nil
	})
	if err != nil {
		return Rule{}, err
	}
	return out, nil
}

func (s *Rules) update(ctx context.Context, a Actor, id string, change func(*Rulebook, *Rule) error) error {
	act, err := s.d.act(a)
	if err != nil {
		return err
	}
	err = s.d.Rules.UpdateRules(ctx, a.Workspace, id, act, change)
	if errors.Is(err, ErrRulesFull) {
		return rulesFull().Because(err)
	}
	if err != nil {
		return fmt.Errorf("change rule %s: %w", id, err)
	}
	return nil
}

package inbox

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// EmailPatch is what an update of a mail sets.
type EmailPatch struct {
	AddLabels, RemoveLabels []string
	Handled                 Field[bool] // null: not handled
	Category                Field[string]
	IfVersion               uint64 // 0: whatever it is
}

// Update sets labels, category and the handled mark of a mail. What is so already stays so, and then the version stays too.
func (s *Emails) Update(ctx context.Context, a Actor, id string, p EmailPatch) (EmailView, error) {
	if err := p.check(); err != nil {
		return EmailView{}, err
	}
	return s.change(ctx, a, id, func(e *Email) error {
		if !e.DeletedAt.IsZero() {
			return NoEmail()
		}
		if p.IfVersion != 0 && p.IfVersion != e.Version {
			return staleVersion(e.Version)
		}
		return p.apply(e, s.d.now())
	})
}

func (p EmailPatch) check() error {
	for _, f := range []struct {
		location string
		labels   []string
	}{{"body.add_labels", p.AddLabels}, {"body.remove_labels", p.RemoveLabels}} {
		if len(f.labels) > MaxLabels {
			return invalid(f.location, fmt.Sprintf("at most %d", MaxLabels))
		}
		for _, l := range f.labels {
			if err := checkLabel(f.location, l); err != nil {
				return err
			}
		}
	}
	if c := p.Category; c.Present && !c.Null {
		return checkLabel("body.category", c.Value)
	}
	return nil
}

// apply removes before it adds: a label that stands in both lists is there afterwards.
func (p EmailPatch) apply(e *Email, now time.Time) error {
	labels := slices.DeleteFunc(slices.Clone(e.Labels), func(l string) bool { return slices.Contains(p.RemoveLabels, l) })
	for _, l := range p.AddLabels {
		if !slices.Contains(labels, l) {
			labels = append(labels, l)
		}
	}
	slices.Sort(labels)
	if len(labels) > MaxLabels {
		return invalid("body.add_labels", fmt.Sprintf("an email has at most %d labels", MaxLabels), "Remove labels with remove_labels.")
	}
	handled := e.HandledAt
	switch {
	case p.Handled.Present && !p.Handled.Value:
		handled = time.Time{}
	case p.Handled.Present && handled.IsZero():
		handled = now
	}
	category := p.Category.or(e.Category)
	if slices.Equal(labels, e.Labels) && handled.Equal(e.HandledAt) && category == e.Category {
		return nil
	}
	e.Labels, e.HandledAt, e.Category = labels, handled, category
	e.UpdatedAt, e.Version = now, e.Version+1
	return nil
}

// Delete takes a mail out of every list, for 30 days. Repeating it answers the same.
func (s *Emails) Delete(ctx context.Context, a Actor, id string) (EmailView, error) {
	return s.change(ctx, a, id, func(e *Email) error {
		if e.DeletedAt.IsZero() {
			e.DeletedAt = s.d.now()
			e.UpdatedAt, e.Version = e.DeletedAt, e.Version+1
		}
		return nil
	})
}

// Restore brings a deleted mail back. Repeating it answers the same.
func (s *Emails) Restore(ctx context.Context, a Actor, id string) (EmailView, error) {
	return s.change(ctx, a, id, func(e *Email) error {
		if !e.DeletedAt.IsZero() {
			e.DeletedAt = time.Time{}
			e.UpdatedAt, e.Version = s.d.now(), e.Version+1
		}
		return nil
	})
}

func (s *Emails) change(ctx context.Context, a Actor, id string, change func(*Email) error) (EmailView, error) {
	if _, _, err := s.find(ctx, a, id, false); err != nil {
		return EmailView{}, err
	}
	e, err := s.d.Emails.UpdateEmail(ctx, a.Workspace, id, change)
	if err != nil {
		return EmailView{}, fmt.Errorf("change email %s: %w", id, err)
	}
	return view(a, e), nil
}

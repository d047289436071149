package inbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// EmailPatch is what an update of a mail sets.
type EmailPatch struct {
	AddLabels, RemoveLabels []string
	Handled                 Field[bool] // null: not handled
	Category                Field[string]
	IfVersion               uint64               // 0: whatever it is
	Lease                   string               // refuse unless the mail is held under it
	LeaseFor                Field[time.Duration] // extends the lease to so long from now; 0 or null gives it back
}

// Update sets labels, category and the handled mark of a mail. What is so already stays so, and then the version stays too.
func (s *Emails) Update(ctx context.Context, a Actor, id string, p EmailPatch) (EmailView, error) {
	if err := p.check(); err != nil {
		return EmailView{}, err
	}
	return s.changeLeased(ctx, a, id, p.leaseUse(s.d.now()), func(e *Email) error {
		if !e.DeletedAt.IsZero() {
			return NoEmail()
		}
		if p.IfVersion != 0 && p.IfVersion != e.Version {
			return staleVersion(e.Version, "emails_get")
		}
		return p.Apply(e, s.d.now())
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
		if err := checkLabel("body.category", c.Value); err != nil {
			return err
		}
	}
	return p.checkLease()
}

// Apply removes before it adds: a label that stands in both lists is there afterwards.
func (p EmailPatch) Apply(e *Email, now time.Time) error {
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
	p.settle(e) // also what shows no difference: whoever says that a label is to be there means it for the next reading too
	if slices.Equal(labels, e.Labels) && handled.Equal(e.HandledAt) && category == e.Category {
		return nil
	}
	e.Labels, e.HandledAt, e.Category = labels, handled, category
	e.UpdatedAt, e.Version = now, e.Version+1
	return nil
}

// AskDelete says what a person is asked before Delete; nil when the mail is deleted already. A mail is named by its id, its
// inbox and its time of receipt: its subject and sender are for whoever wrote it to choose.
func (s *Emails) AskDelete(ctx context.Context, a Actor, id string) (*Question, error) {
	e, _, err := s.d.email(ctx, a, id, false)
	if err != nil || !e.DeletedAt.IsZero() {
		return nil, err
	}
	in, err := s.d.Inboxes.Inbox(ctx, a.Workspace, e.Inbox)
	if err != nil {
		return nil, fmt.Errorf("inbox of %s: %w", e.ID, err)
	}
	q := &Question{
		Text:    "Delete email {}, received by inbox {} on {}",
		Values:  []string{e.ID, in.Slug, day(e.ReceivedAt)},
		Targets: map[string]string{e.ID: Version(e.Version)},
	}
	if e.Attachments > 0 {
		q.Text += ", with {}"
		q.Values = append(q.Values, about(int64(e.Attachments), "attachment", "attachments"))
	}
	q.Text += "; restorable until {}"
	q.Values = append(q.Values, until(PurgeOf(e, in, s.d.now())))
	return q, nil
}

// Delete takes a mail out of every list, for 30 days or as long as its inbox keeps mail. Repeating it answers the same.
func (s *Emails) Delete(ctx context.Context, a Actor, id string) (EmailView, error) {
	return s.change(ctx, a, id, func(e *Email) error {
		if err := a.confirm(e.ID, e.Version, e.DeletedAt.IsZero()); err != nil {
			return err
		}
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
	return s.changeLeased(ctx, a, id, nil, change)
}

// changeLeased is change that also does with the lease on the mail what use says.
func (s *Emails) changeLeased(ctx context.Context, a Actor, id string, use *LeaseUse, change func(*Email) error) (EmailView, error) {
	if !validID("email", id) {
		return EmailView{}, NoEmail()
	}
	hidden, err := s.d.Emails.Hidden(ctx, a.Workspace)
	if err != nil {
		return EmailView{}, fmt.Errorf("hidden inboxes of %s: %w", a.Workspace, err)
	}
	act, err := s.d.act(a)
	if err != nil {
		return EmailView{}, err
	}
	visible := func(e *Email) error {
		if hidden[e.Inbox] {
			return NoEmail()
		}
		return change(e)
	}
	var e Email
	if use == nil {
		e, err = s.d.Emails.UpdateEmail(ctx, a.Workspace, id, act, visible)
	} else {
		e, err = s.d.Work.UpdateLeased(ctx, a.Workspace, id, *use, act, visible)
	}
	if errors.Is(err, ErrLeaseLost) {
		err = leaseLost()
	}
	if err != nil {
		return EmailView{}, fmt.Errorf("change email %s: %w", id, err)
	}
	v := view(a, e)
	v.bound(0, DefaultChars)
	return v, nil
}

package inboxops

import (
	"context"
	"slices"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/op"
)

var (
	_ inbox.JobStore      = fencedJobs{}
	_ inbox.RuleStore     = fencedRules{}
	_ inbox.DeliveryStore = fencedDeliveries{}
)

// fencedJobs shows a confined key the jobs that it started itself: these are about its inboxes, others of its maker may not be.
type fencedJobs struct{ next inbox.JobStore }

// hidesJob reports whether a job is out of reach. A confined caller without a key has none.
func hidesJob(ctx context.Context, j inbox.Job) bool {
	if fenceOf(ctx).open {
		return false
	}
	key := op.CallerFrom(ctx).Key
	return key == "" || j.Creator.Key != key
}

// StartJob is refused: what is started here is about more than one mail that was looked at. See fencedEmails.StartEmailJob.
func (s fencedJobs) StartJob(ctx context.Context, j inbox.Job, act inbox.Act) error {
	if !fenceOf(ctx).open {
		return op.Confines()
	}
	return s.next.StartJob(ctx, j, act)
}

// Job finds one within the fence.
func (s fencedJobs) Job(ctx context.Context, ws, id string) (inbox.Job, error) {
	j, err := s.next.Job(ctx, ws, id)
	if err == nil && hidesJob(ctx, j) {
		return inbox.Job{}, inbox.NoJob()
	}
	return j, err
}

// Jobs reads those of the key's maker and leaves the key's: a page may be short.
func (s fencedJobs) Jobs(ctx context.Context, r inbox.JobRange) ([]inbox.Job, string, error) {
	if !fenceOf(ctx).open {
		r.Creator = op.CallerFrom(ctx).Subject
	}
	rows, next, err := s.next.Jobs(ctx, r)
	return slices.DeleteFunc(rows, func(j inbox.Job) bool { return hidesJob(ctx, j) }), next, err
}

// UpdateJob changes one within the fence.
func (s fencedJobs) UpdateJob(ctx context.Context, ws, id string, act inbox.Act, change func(*inbox.Job) error) (inbox.Job, error) {
	return s.next.UpdateJob(ctx, ws, id, act, func(j *inbox.Job) error {
		if hidesJob(ctx, *j) {
			return inbox.NoJob()
		}
		return change(j)
	})
}

// fencedRules shows the rules that judge mail within the fence: those of its inboxes, and of the whole workspace, without which
// rules_test would say what is not so.
type fencedRules struct{ next inbox.RuleStore }

func (f fence) hidesRule(r inbox.Rule) bool { return r.Inbox != "" && f.hides(r.Inbox) }

// Rulebook leaves out the rules of other inboxes, which mail within the fence passes by. It is read whole: of a known revision nothing
// could be left out.
func (s fencedRules) Rulebook(ctx context.Context, ws string, known uint64) (inbox.Rulebook, uint64, error) {
	f := fenceOf(ctx)
	if f.open {
		return s.next.Rulebook(ctx, ws, known)
	}
	book, revision, err := s.next.Rulebook(ctx, ws, 0)
	book.Rules = slices.DeleteFunc(slices.Clone(book.Rules), f.hidesRule)
	return book, revision, err
}

// DeletedRule finds one within the fence.
func (s fencedRules) DeletedRule(ctx context.Context, ws, id string) (inbox.Rule, error) {
	r, err := s.next.DeletedRule(ctx, ws, id)
	if err == nil && fenceOf(ctx).hidesRule(r) {
		return inbox.Rule{}, inbox.NoRule()
	}
	return r, err
}

// RuleMatches are those of rules of the inboxes within the fence: a rule of the whole workspace counts the mail of others too.
func (s fencedRules) RuleMatches(ctx context.Context, ws string) (map[string]int64, error) {
	f := fenceOf(ctx)
	counts, err := s.next.RuleMatches(ctx, ws)
	if err != nil || f.open {
		return counts, err
	}
	book, _, err := s.next.Rulebook(ctx, ws, 0)
	own := map[string]int64{}
	for _, r := range book.Rules {
		if r.Inbox != "" && !f.hides(r.Inbox) {
			own[r.ID] = counts[r.ID]
		}
	}
	return own, err
}

// UpdateRules is refused: a rule's place among the others is everybody's.
func (s fencedRules) UpdateRules(
	ctx context.Context, ws, id string, act inbox.Act, change func(*inbox.Rulebook, *inbox.Rule) error,
) error {
	if !fenceOf(ctx).open {
		return op.Confines()
	}
	return s.next.UpdateRules(ctx, ws, id, act, change)
}

// fencedDeliveries shows what was sent of inboxes within the fence. What is of no inbox, or was sent before deliveries said of which they
// are, is out of reach.
type fencedDeliveries struct{ next inbox.DeliveryStore }

func (f fence) hidesDelivery(d inbox.WebhookDelivery) bool { return f.hides(d.Inbox) }

// Deliveries leaves those within the fence: a page may be short.
func (s fencedDeliveries) Deliveries(ctx context.Context, r inbox.DeliveryRange) ([]inbox.WebhookDelivery, string, error) {
	rows, next, err := s.next.Deliveries(ctx, r)
	return slices.DeleteFunc(rows, fenceOf(ctx).hidesDelivery), next, err
}

// Delivery finds one within the fence.
func (s fencedDeliveries) Delivery(ctx context.Context, ws, id string) (inbox.WebhookDelivery, error) {
	d, err := s.next.Delivery(ctx, ws, id)
	if err == nil && fenceOf(ctx).hidesDelivery(d) {
		return inbox.WebhookDelivery{}, inbox.NoDelivery()
	}
	return d, err
}

package inboxstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

// maxRulebook is in bytes: every mail of the workspace reads this row.
const maxRulebook = 200_000

// Rulebook implements inbox.RuleStore and pipeline.Rules. The row is never dropped, so a revision never comes back.
func (s *Store) Rulebook(ctx context.Context, ws string, known uint64) (inbox.Rulebook, uint64, error) {
	item, err := s.engine.Get(ctx, rulesKey(ws))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return inbox.Rulebook{}, 0, nil
	case err != nil:
		return inbox.Rulebook{}, 0, failed("rules of "+ws, err)
	case item.Revision == known:
		return inbox.Rulebook{}, known, nil
	}
	book, err := store.Decode[inbox.Rulebook](item, format)
	return book, item.Revision, wrapIf("rules of "+ws, err)
}

// DeletedRule implements inbox.RuleStore.
func (s *Store) DeletedRule(ctx context.Context, ws, id string) (inbox.Rule, error) {
	r, _, err := get[inbox.Rule](ctx, s, deletedRuleKey(ws, id))
	if err != nil {
		return inbox.Rule{}, missing("rule "+id, err, inbox.NoRule())
	}
	return r, nil
}

const matchesCounter = "matches"

// RuleMatches implements inbox.RuleStore. The counters of deleted rules lie between the others; of a workspace that has deleted
// a great many of them some may be missed, which an approximate number allows.
func (s *Store) RuleMatches(ctx context.Context, ws string) (map[string]int64, error) {
	page, err := store.Fill(ctx, s.engine, store.Query{
		Table: store.Core, Partition: ruleMatchesPartition(ws), Limit: store.MaxLimit,
	}, 2)
	if err != nil {
		return nil, failed("matches of rules", err)
	}
	counts := make(map[string]int64, len(page.Items))
	for _, item := range page.Items {
		counts[item.Key.Sort] = max(item.Counters[matchesCounter], 0)
	}
	return counts, nil
}

// HitRules implements pipeline.Rules. Approximate, like every counter: see count.
func (s *Store) HitRules(ctx context.Context, ws string, rules []inbox.RuleRef) {
	for _, r := range rules {
		_, _ = s.engine.Add(ctx, key(ruleMatchesPartition(ws), r.Rule), matchesCounter, 1, 0, time.Time{})
	}
}

// UpdateRules implements inbox.RuleStore.
func (s *Store) UpdateRules(
	ctx context.Context, ws, id string, act inbox.Act, change func(*inbox.Rulebook, *inbox.Rule) error,
) error {
	for range attempts {
		book, read, err := s.Rulebook(ctx, ws, 0)
		if err != nil {
			return err
		}
		goneKey := deletedRuleKey(ws, id)
		gone, goneRead, wasGone, err := find[inbox.Rule](ctx, s, goneKey)
		if err != nil {
			return failed("rule "+id, err)
		}
		before := placed(book, id)
		if before.Rule.Version > 0 && wasGone {
			continue // restored between the two reads
		}
		if wasGone {
			before.Rule = gone
		}
		if err := s.unused(ctx, act); err != nil {
			return err
		}
		if err := change(&book, &gone); err != nil {
			return err
		}
		after := placed(book, id)
		if gone.Version > 0 {
			after.Rule = gone
		}
		same, err := equal(before, after)
		if err != nil || same {
			return err
		}
		b, err := rulesOps(ws, book, read, after.Rule)
		if err != nil {
			return err
		}
		switch {
		case gone.Version > 0:
			b.forgetful(goneKey, goneRead, gone, inbox.PurgeAt(gone.DeletedAt)) // it ends by itself
		case wasGone:
			b.drop(goneKey, store.RevisionIs(goneRead))
		default:
			b.check(goneKey, store.Absent())
		}
		b.act(act, id, existing(before, before.Version), after)
		err = s.commit(ctx, b)
		if err == nil {
			return nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return failed("update rule "+id, err)
		}
		if err := s.boxOf(ctx, ws, after.Rule); err != nil {
			return err
		}
	}
	return inbox.Busy()
}

// placedRule is a rule with its place, which a move changes.
type placedRule struct {
	inbox.Rule
	Place int `json:"place"` // from 1; 0 of one that is deleted or does not exist
}

func placed(book inbox.Rulebook, id string) placedRule {
	for i, r := range book.Rules {
		if r.ID == id {
			return placedRule{r, i + 1}
		}
	}
	return placedRule{}
}

func rulesOps(ws string, book inbox.Rulebook, read uint64, rule inbox.Rule) (*batch, error) {
	text, err := json.Marshal(book)
	if err != nil {
		return nil, fmt.Errorf("rules of %s: %w", ws, err)
	}
	if len(text) > maxRulebook {
		return nil, inbox.ErrRulesFull
	}
	var b batch
	b.upsert(rulesKey(ws), read, json.RawMessage(text))
	if rule.Inbox != "" && rule.DeletedAt.IsZero() {
		b.check(key(inboxesPartition(ws, false), rule.Inbox), store.Exists())
	}
	return &b, nil
}

// boxOf tells a lost race from an inbox that was deleted meanwhile: then nothing may be made for it.
func (s *Store) boxOf(ctx context.Context, ws string, rule inbox.Rule) error {
	if rule.Inbox == "" || !rule.DeletedAt.IsZero() {
		return nil
	}
	_, _, ok, err := find[inbox.Inbox](ctx, s, key(inboxesPartition(ws, false), rule.Inbox))
	if err != nil {
		return failed("inbox of a rule", err)
	}
	if !ok {
		return inbox.NoInbox()
	}
	return nil
}

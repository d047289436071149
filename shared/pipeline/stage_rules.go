package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/buzon-mail/buzon/shared/inbox"
)

var errBadRules = errors.New("pipeline: stored rules can't be compiled")

// maxRuleSets is how many workspaces' rules a worker keeps compiled.
const maxRuleSets = 256

// ruleSets keeps rules compiled. It saves work and decides nothing: each mail reads which revision is the present one.
type ruleSets struct {
	mu    sync.Mutex
	ready map[string]readyRules // by workspace; guarded by mu
}

type readyRules struct {
	set      *inbox.RuleSet
	revision uint64
}

// of returns the rules of a workspace; nil for none.
func (s *ruleSets) of(ctx context.Context, rules Rules, workspace string) (*inbox.RuleSet, error) {
	s.mu.Lock()
	have := s.ready[workspace]
	s.mu.Unlock()
	book, revision, err := rules.Rulebook(ctx, workspace, have.revision)
	if err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	if revision == have.revision {
		return have.set, nil
	}
	next := readyRules{revision: revision}
	if len(book.Rules) > 0 {
		if next.set, err = inbox.NewRuleSet(book.Rules); err != nil {
			return nil, fmt.Errorf("%w: %w", errBadRules, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ready) >= maxRuleSets {
		clear(s.ready)
	}
	s.ready[workspace] = next
	return next.set, nil
}

// byRules lets the rules of the workspace judge the mail. What they do is stored with the rest, in one step: a run that dies has done
// nothing, and the next one does it once.
func (r *run) byRules(ctx context.Context) error {
	if r.reading == nil || r.w.deps.Rules == nil {
		return nil
	}
	set, err := r.w.rules.of(ctx, r.w.deps.Rules, r.email.Workspace)
	if errors.Is(err, errBadRules) {
		// They were checked when they were stored. Mail must not wait until somebody repairs them.
		r.w.deps.Logger.Error("pipeline: rules can't be used", slog.String("workspace", r.email.Workspace), slog.String("error", err.Error()))
		r.email.Warnings = append(r.email.Warnings, rulesUnusable())
		return nil
	}
	if err != nil || set == nil {
		return err
	}
	body := &r.reading.Body
	out := set.Run(inbox.RuleMail{
		Email: r.email, Text: body.Text, Headers: body.Headers, Attachments: r.attachments, Held: r.judged.Held != "",
	}, false)
	if r.email.Quiet { // an import that did not ask for it
		out.Notify = nil
	}
	if out.LabelsFull {
		r.email.Warnings = append(r.email.Warnings, labelsFull())
	}
	r.email.Labels, r.email.Category, r.email.CategoryBy = out.Labels, out.Category, out.CategoryBy
	r.email.Rules, r.email.Notify, r.wishes = out.Matched, out.Notify, out.Extract
	if out.Handled && r.email.HandledAt.IsZero() {
		r.email.HandledAt, r.email.RuleHandled = r.w.deps.Clock().UTC(), true
	}
	if out.HeldBy != (inbox.RuleRef{}) && r.judged.Held == "" {
		r.judged.Held = inbox.HeldByRule
	}
	return nil
}

func rulesUnusable() inbox.Warning {
	return inbox.Warning{Code: "rules_unusable", Detail: "The rules of the workspace could not be used on this mail"}
}

func labelsFull() inbox.Warning {
	return inbox.Warning{Code: "labels_full", Detail: fmt.Sprintf("Rules wanted more than %d labels; some were left out", inbox.MaxLabels)}
}

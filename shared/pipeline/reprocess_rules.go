package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
)

// ready has the rules of now ready, where they are asked: what they do, or what they want extracted. A workspace without rules has a set
// of none, so that a second reading takes back what rules that are gone had set.
func (g *rereading) ready(ctx context.Context) error {
	if g.worker.deps.Rules == nil || !g.takes(inbox.StageRules) && !g.takes(inbox.StageExtraction) {
		return nil
	}
	set, err := g.worker.rules.of(ctx, g.worker.deps.Rules, g.old.Workspace)
	if errors.Is(err, errBadRules) {
		g.worker.deps.Logger.Error("pipeline: rules can't be used", slog.String("workspace", g.old.Workspace), slog.String("error", err.Error()))
		g.warnings = append(g.warnings, rulesUnusable())
		return nil
	}
	if err == nil && set == nil {
		set, err = inbox.NewRuleSet(nil)
	}
	if err != nil {
		return fmt.Errorf("rules: %w", err)
	}
	g.rules = set
	return nil
}

// held is why the sender, or the door, holds the mail back; empty for one that a person has released.
func (g *rereading) held(now inbox.Email) string {
	switch {
	case !now.ReleasedAt.IsZero():
		return ""
	case g.takes(inbox.StageSenders):
		return g.run.judged.Held
	case now.Status == inbox.StatusQuarantined && now.Reason != inbox.HeldByRule:
		return now.Reason
	}
	return ""
}

// outcome is what the rules of now make of a mail as if it had just come, with the labels and the category that people gave it; next is
// the mail as senders and content will have it. What they see is the new reading where that is stored, else what is stored already.
func (g *rereading) outcome(now, next inbox.Email, labels []string) inbox.RuleOutcome {
	seen, body, files := next, g.oldBody, g.oldFiles
	if g.takes(inbox.StageContent) {
		seen, body, files = g.seen, &g.run.reading.Body, g.run.attachments
		seen.Auth, seen.Trust = next.Auth, next.Trust
	}
	if body == nil {
		body = &inbox.Body{}
	}
	seen.Labels, seen.Rules, seen.Category = labels, nil, ""
	if now.OwnCategory() {
		seen.Category = now.Category
	}
	return g.rules.Run(inbox.RuleMail{
		Email: seen, Text: body.Text, Headers: body.Headers, Attachments: files, Held: g.held(now) != "",
	}, false)
}

// byRules lets senders and rules label, sort and hold the mail. What an older reading set and this one does not is taken back; what
// people set or took off stays. It returns why the mail is to be held back, and whether a label did not fit.
func (g *rereading) byRules(now inbox.Email, next *inbox.Email) (held string, full bool) {
	own, read := now.OwnLabels(), slices.Clone(now.RuleLabels)
	held = g.held(now)
	g.hits = nil
	unlisted := slices.Contains(read, inbox.LabelUnlisted)
	if g.takes(inbox.StageSenders) {
		unlisted = g.run.judged.Label
	}
	judged := g.takes(inbox.StageRules) && g.rules != nil
	if judged {
		read = nil
	}
	read = slices.DeleteFunc(read, func(l string) bool { return l == inbox.LabelUnlisted })
	if unlisted {
		read = append(read, inbox.LabelUnlisted)
	}
	if judged {
		out := g.outcome(now, *next, slices.Concat(own, read))
		full = out.LabelsFull
		read = slices.DeleteFunc(out.Labels, func(l string) bool { return slices.Contains(own, l) })
		g.apply(now, next, out)
		if held == "" && out.HeldBy != (inbox.RuleRef{}) {
			held = inbox.HeldByRule
		}
	}
	next.SetLabels(own, read)
	return held, full
}

// apply takes over the rest of what rules make of a mail. Whom they want told is told of this reading alone, and only when its job says
// so; else the mail keeps whom it was told to.
func (g *rereading) apply(now inbox.Email, next *inbox.Email, out inbox.RuleOutcome) {
	if !now.OwnCategory() {
		next.Category, next.CategoryBy = out.Category, out.CategoryBy
	}
	if !now.OwnHandled() {
		switch {
		case out.Handled && now.HandledAt.IsZero():
			next.HandledAt, next.RuleHandled = g.worker.now(), true
		case !out.Handled:
			next.HandledAt, next.RuleHandled = time.Time{}, false
		}
	}
	next.Rules = out.Matched
	if g.params.Notify {
		next.Notify = out.Notify
	}
	for _, r := range out.Matched {
		if !slices.ContainsFunc(now.Rules, func(x inbox.RuleRef) bool { return x.Rule == r.Rule }) {
			g.hits = append(g.hits, r)
		}
	}
}

// The codes of the warnings of rules and of extraction. Those of a stage stay until it runs again.
func (g *rereading) stale(w inbox.Warning) bool {
	switch w.Code {
	case "labels_full", "rules_unusable":
		return g.takes(inbox.StageRules)
	case "extraction_template_missing", "extraction_failed":
		return g.extracts()
	}
	return g.takes(inbox.StageContent)
}

// warned are the warnings of the mail: those of the stages that ran, and those of before of the others.
func (g *rereading) warned(now, next inbox.Email, full bool) []inbox.Warning {
	list := slices.DeleteFunc(slices.Clone(now.Warnings), g.stale)
	if g.takes(inbox.StageContent) {
		list = append(slices.Clone(next.Warnings), list...)
	}
	if full {
		list = append(list, labelsFull())
	}
	for _, w := range g.warnings {
		if g.stale(w) {
			list = append(list, w)
		}
	}
	return list
}

package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
)

// maxRenewed is how many extractions a second reading renews: two rows each, in its one transaction. A first reading makes four.
const maxRenewed = 6

// extracts reports whether anything may be extracted: the stage is asked for, or a rule may say so.
func (g *rereading) extracts() bool {
	return g.worker.deps.Extractor != nil && (g.takes(inbox.StageExtraction) || g.takes(inbox.StageRules))
}

// wanted is a template that is to be applied, and who wants it.
type wanted struct {
	template, by string
	kept         bool // it was applied before, by whoever; nobody misses it
}

// extract takes out of the mail, as it will be, what is wanted of it. Nothing is stored before the reading is. What a sender's mail is
// held back for is not read any further.
func (g *rereading) extract(ctx context.Context) error {
	if !g.extracts() {
		return nil
	}
	made, err := g.merge(g.old, nil)
	if err != nil {
		return err
	}
	next := made.Email
	if next.Status == inbox.StatusQuarantined && next.Reason != inbox.HeldByRule {
		return nil
	}
	was, err := g.before(ctx)
	if err != nil {
		return err
	}
	list := g.wanted(next, was)
	if len(list) > maxRenewed {
		g.left = len(list) - maxRenewed
		list = list[:maxRenewed]
	}
	m := inbox.ExtractionMail{Subject: next.Content.Subject, Attachments: g.oldFiles}
	if g.oldBody != nil {
		m.Text = g.oldBody.Text
	}
	if g.takes(inbox.StageContent) {
		m = inbox.ExtractionMail{Subject: g.seen.Content.Subject, Text: g.run.reading.Body.Text, Attachments: g.run.attachments}
	}
	for _, w := range list {
		if err := g.extractOne(ctx, next, m, w); err != nil {
			return err
		}
	}
	for _, e := range g.extracted {
		g.known = append(g.known, was[e.Template])
	}
	return nil
}

// before is what was extracted from the mail, by template.
func (g *rereading) before(ctx context.Context) (map[string]inbox.Extraction, error) {
	rows, _, err := g.worker.deps.Reprocess.Extractions(ctx, inbox.ExtractionRange{
		Workspace: g.old.Workspace, Email: inbox.Position(g.old.ReceivedAt, g.old.ID), Limit: inbox.MaxLimit,
	})
	if err != nil {
		return nil, fmt.Errorf("extractions of %s: %w", g.old.ID, err)
	}
	was := make(map[string]inbox.Extraction, len(rows))
	for _, e := range rows {
		was[e.Template] = e
	}
	return was, nil
}

// wanted are the templates of the inbox and of the rules, as in a first reading, and where the stage is asked for those that were
// applied before too: the new text may say something else, and what they say of places in the old one is not so any more.
func (g *rereading) wanted(next inbox.Email, was map[string]inbox.Extraction) []wanted {
	var list []wanted
	add := func(w wanted) {
		if !slices.ContainsFunc(list, func(x wanted) bool { return x.template == w.template }) {
			list = append(list, w)
		}
	}
	if g.takes(inbox.StageExtraction) && g.run.template != "" {
		add(wanted{template: g.run.template, by: inbox.ByDefault})
	}
	if g.rules != nil {
		for _, wish := range g.outcome(g.old, next, g.old.OwnLabels()).Extract {
			add(wanted{template: wish.Template, by: wish.Rule})
		}
	}
	if g.takes(inbox.StageExtraction) {
		for _, template := range slices.Sorted(maps.Keys(was)) {
			add(wanted{template: template, by: was[template].By, kept: true})
		}
	}
	return list
}

func (g *rereading) extractOne(ctx context.Context, e inbox.Email, m inbox.ExtractionMail, want wanted) error {
	d := g.worker.deps
	t, err := d.Extractions.Template(ctx, e.Workspace, inbox.TemplateID(e.Workspace, want.template))
	if apperr.Is(err, apperr.NotFound) || err == nil && !t.DeletedAt.IsZero() {
		if !want.kept {
			g.warnings = append(g.warnings, templateMissing(want.template))
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("template: %w", err)
	}
	got, err := inbox.Extract(ctx, d.Extractor, t, e, m, want.by, g.worker.now())
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil { // what was extracted before stays
		d.Logger.Error("pipeline: extraction failed", slog.String("email", e.ID), slog.String("template", t.ID), slog.String("error", err.Error()))
		g.warnings = append(g.warnings, extractionFailed(want.template))
		return nil
	}
	g.extracted = append(g.extracted, got)
	return nil
}

// renew chooses what is stored of what was extracted: what differs from what is there, and is not of an older version of its template.
// Who made an extraction is no difference.
func renew(got, was []inbox.Extraction) (renewed []inbox.Extraction, diffs []Reextracted) {
	for i, e := range got {
		var old inbox.Extraction
		if i < len(was) {
			old = was[i]
		}
		same := old
		same.ExtractedAt, same.By = e.ExtractedAt, e.By
		if old.Version > e.Version || !differ(same, e) {
			continue
		}
		renewed = append(renewed, e)
		diffs = append(diffs, Reextracted{
			Template: e.Template, Old: old.Version, New: e.Version, Was: old.Status, Status: e.Status, Changed: otherFields(old.Data, e.Data),
		})
	}
	return renewed, diffs
}

// otherFields names the members in which two objects differ, in order.
func otherFields(a, b json.RawMessage) []string {
	var old, next map[string]json.RawMessage
	_, _ = json.Unmarshal(a, &old), json.Unmarshal(b, &next) // ours; of none there is no member
	changed := []string{}
	for _, name := range slices.Sorted(maps.Keys(next)) {
		if !bytes.Equal(old[name], next[name]) {
			changed = append(changed, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(old)) {
		if next[name] == nil {
			changed = append(changed, name)
		}
	}
	return changed
}

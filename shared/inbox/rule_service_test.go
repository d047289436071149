package inbox_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
)

func rulePatch(slug string) inbox.RulePatch {
	return inbox.RulePatch{
		Slug: slug, Conditions: []inbox.Condition{{Field: "subject", Op: "contains", Value: "x"}},
		Actions: []inbox.Action{{Type: "add_label", Value: "x"}},
	}
}

func (w *world) ruleOrder(a inbox.Actor) string {
	w.tb.Helper()
	page, err := w.services.Rules.List(w.tb.Context(), a, inbox.RuleQuery{}, inbox.PageRequest{Limit: 100})
	w.must(err)
	var out []string
	for i, r := range page.Rows {
		if r.Position != i+1 {
			w.tb.Errorf("rule %s says %d, is %d", r.Slug, r.Position, i+1)
		}
		out = append(out, r.Slug)
	}
	return strings.Join(out, " ")
}

func TestRulePositions(t *testing.T) {
	w := newWorld(t)
	put := func(slug string, position int) inbox.RuleRow {
		t.Helper()
		p := rulePatch(slug)
		p.Position = position
		row, _, err := w.services.Rules.Upsert(t.Context(), acme(), p)
		w.must(err)
		return row
	}
	for _, x := range []struct {
		slug     string
		position int
		want     string
	}{
		{"a", 0, "a"}, {"b", 0, "a b"}, {"c", 1, "c a b"}, {"d", 2, "c d a b"}, {"e", 100, "c d a b e"}, {"e", 1, "e c d a b"},
		{"e", 1, "e c d a b"}, {"e", 3, "c d e a b"}, {"c", 100, "d e a b c"}, {"a", 0, "d e a b c"},
	} {
		if row := put(x.slug, x.position); w.ruleOrder(acme()) != x.want || row.Slug != x.slug {
			t.Errorf("%s at %d: %s, want %s", x.slug, x.position, w.ruleOrder(acme()), x.want)
		}
	}
	var seen []string
	cursor := ""
	for range 4 {
		page, err := w.services.Rules.List(t.Context(), acme(), inbox.RuleQuery{}, inbox.PageRequest{Limit: 2, Cursor: cursor})
		w.must(err)
		for _, r := range page.Rows {
			seen = append(seen, r.Slug)
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if strings.Join(seen, " ") != "d e a b c" {
		t.Errorf("by pages: %v", seen)
	}
}

func TestRuleBounds(t *testing.T) {
	w := newWorld(t)
	for i := range inbox.MaxRules {
		_, _, err := w.services.Rules.Upsert(t.Context(), acme(), rulePatch(fmt.Sprint("r", i)))
		w.must(err)
	}
	_, _, err := w.services.Rules.Upsert(t.Context(), acme(), rulePatch("one-more"))
	wantKind(t, err, apperr.Conflict, "rules_full")
	heavy := rulePatch("r0")
	heavy.Conditions = nil
	for range inbox.MaxConditions {
		heavy.Conditions = append(heavy.Conditions, inbox.Condition{Field: "text", Op: "matches", Value: "[ab]{480}"})
	}
	_, _, err = w.services.Rules.Upsert(t.Context(), acme(), heavy)
	wantKind(t, err, apperr.Conflict, "rules_full")
	wide := rulePatch("")
	wide.Conditions = nil
	for range inbox.MaxConditions {
		wide.Conditions = append(wide.Conditions, inbox.Condition{Field: "text", Op: "contains", Value: strings.Repeat("é", 128)})
	}
	for i := range inbox.MaxRules {
		wide.Slug = fmt.Sprint("r", i)
		if _, _, err = w.services.Rules.Upsert(t.Context(), acme(), wide); err != nil {
			break
		}
	}
	wantKind(t, err, apperr.Conflict, "rules_full")
	if _, _, err := w.services.Rules.Upsert(t.Context(), globex(), rulePatch("theirs")); err != nil {
		t.Errorf("another workspace is full too: %v", err)
	}
}

// Of two that change the same version at once one wins, and of many that insert at once none is lost.
func TestRulesAtOnce(t *testing.T) {
	w := newWorld(t)
	first, _, err := w.services.Rules.Upsert(t.Context(), acme(), rulePatch("a"))
	w.must(err)
	var all sync.WaitGroup
	results := make([]error, 2)
	for i := range results {
		all.Go(func() {
			p := rulePatch("a")
			p.IfVersion, p.Stop = first.Version, inbox.Set(true)
			p.Actions = []inbox.Action{{Type: "add_label", Value: fmt.Sprint("l", i)}}
			_, _, results[i] = w.services.Rules.Upsert(t.Context(), acme(), p)
		})
	}
	all.Wait()
	if (results[0] == nil) == (results[1] == nil) {
		t.Errorf("both or none won: %v", results)
	}
	for _, err := range results {
		if err != nil && !apperr.Is(err, apperr.Stale) {
			t.Errorf("the other: %v", err)
		}
	}
	for i := range 4 {
		all.Go(func() {
			if _, _, err := w.services.Rules.Upsert(t.Context(), acme(), rulePatch(fmt.Sprint("n", i))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := strings.Fields(w.ruleOrder(acme())); len(got) != 5 || got[0] != "a" {
		t.Errorf("rules %v", got)
	}
}

func TestRuleOfADeletedInbox(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "a")
	p := rulePatch("r")
	p.Inbox = "a"
	row, _, err := w.services.Rules.Upsert(t.Context(), acme(), p)
	w.must(err)
	_, err = w.services.Inboxes.Delete(t.Context(), acme(), in.ID)
	w.must(err)
	_, _, err = w.services.Rules.Upsert(t.Context(), acme(), p)
	wantKind(t, err, apperr.NotFound, "")
	q, err := w.services.Rules.AskDelete(t.Context(), acme(), row.ID)
	if err != nil || q.Values[1] != "a" {
		t.Errorf("question %+v, %v", q, err)
	}
	if _, err := w.services.Rules.Delete(t.Context(), acme(), row.ID); err != nil || w.ruleOrder(acme()) != "" {
		t.Errorf("delete: %v", err)
	}
}

// A person is asked about what lets something out or holds mail back, as soon as it would run, and about nothing else.
func TestRuleQuestions(t *testing.T) {
	w := newWorld(t)
	out := rulePatch("out")
	out.Actions = []inbox.Action{{Type: "notify", Value: "erp"}}
	_, _, err := w.services.Rules.Upsert(t.Context(), acme(), out)
	w.must(err)
	on, moved, harmless := out, out, rulePatch("harmless")
	on.Enabled, harmless.Enabled = inbox.Set(true), inbox.Set(true)
	moved.Position = 1
	for name, x := range map[string]struct {
		p     inbox.RulePatch
		words string // empty: no question
	}{
		"harmless":            {harmless, ""},
		"disabled":            {moved, ""},
		"enabled":             {on, "Run rule {} on the mail of {}: notify {}; when all of [{}]; until now it was {}"},
		"a new one, disabled": {inbox.RulePatch{Slug: "new", Conditions: out.Conditions, Actions: out.Actions}, ""},
		"a new one, enabled":  {inbox.RulePatch{Slug: "newer", Conditions: out.Conditions, Actions: out.Actions, Enabled: inbox.Set(true)}, "Run rule {} on the mail of {}: notify {}; when all of [{}]"},
	} {
		q, err := w.services.Rules.AskUpsert(t.Context(), acme(), x.p)
		if err != nil || (q == nil) != (x.words == "") || q != nil && q.Text != x.words {
			t.Errorf("%s: %+v, %v", name, q, err)
		}
		a := acme()
		a.Direct = false
		_, _, err = w.services.Rules.Upsert(t.Context(), a, x.p)
		if x.words == "" {
			w.must(err)
			continue
		}
		wantKind(t, err, apperr.Conflict, "confirmation_required")
	}
	_, _, err = w.services.Rules.Upsert(t.Context(), acme(), on)
	w.must(err)
	for name, x := range map[string]struct {
		change func(*inbox.RulePatch)
		asks   bool
	}{
		"the same":   {func(*inbox.RulePatch) {}, false},
		"off":        {func(p *inbox.RulePatch) { p.Enabled = inbox.Set(false) }, false},
		"conditions": {func(p *inbox.RulePatch) { p.Conditions = []inbox.Condition{{Field: "attachment", Op: "exists"}} }, true},
		"order":      {func(p *inbox.RulePatch) { p.Position = 3 }, true},
		"no more":    {func(p *inbox.RulePatch) { p.Actions = harmless.Actions }, false},
	} {
		p := on
		x.change(&p)
		if q, err := w.services.Rules.AskUpsert(t.Context(), acme(), p); err != nil || (q != nil) != x.asks {
			t.Errorf("%s: %+v, %v", name, q, err)
		}
	}
}

// What a rule set is told in emails_get, until a person decides otherwise.
func TestClassification(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "a")
	ref := inbox.RuleRef{Rule: "rule_00000000000000000000000001", Version: 2}
	e := w.deliver(in, func(p *inbox.Processed) {
		p.Email.Category, p.Email.CategoryBy, p.Email.Rules, p.Email.HandledAt = "billing", ref, []inbox.RuleRef{ref}, w.now()
	})
	v, err := w.services.Emails.Get(t.Context(), acme(), e.ID, inbox.EmailRead{})
	if err != nil || v.CategoryBy != ref || v.HandledAt.IsZero() || len(v.Rules) != 1 {
		t.Errorf("mail %+v, %v", v, err)
	}
	v, err = w.services.Emails.Update(t.Context(), acme(), e.ID, inbox.EmailPatch{AddLabels: []string{"x"}})
	if err != nil || v.CategoryBy != ref {
		t.Errorf("labelled %+v, %v", v, err)
	}
	v, err = w.services.Emails.Update(t.Context(), acme(), e.ID, inbox.EmailPatch{Category: inbox.Set("other")})
	if err != nil || v.CategoryBy != (inbox.RuleRef{}) || v.Category != "other" {
		t.Errorf("decided %+v, %v", v, err)
	}
}

// A page of extractions costs three reads however many mails were deleted, and skips nobody.
func TestExtractionsOfDeletedMail(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "a")
	tpl := inbox.ExtractionTemplate{
		ID: inbox.TemplateID(wsAcme, "t"), Workspace: wsAcme, Slug: "t", Version: 1,
		Schema:   json.RawMessage(`{"type":"object","properties":{"x":{"type":"string"}}}`),
		Locators: []inbox.Locator{{Field: "x", Kind: inbox.LocateRegex, Value: ".+"}},
	}
	var kept []string
	for i := range 30 {
		e := w.deliver(in, nil)
		got, err := inbox.Extract(t.Context(), inbox.NewLocators(), tpl, e, inbox.ExtractionMail{Text: "x"}, "x", time.Time{})
		w.must(err)
		w.must(w.store.PutExtraction(t.Context(), got))
		if i%3 > 0 {
			_, err = w.services.Emails.Delete(t.Context(), acme(), e.ID)
			w.must(err)
			continue
		}
		kept = append([]string{e.ID}, kept...)
	}
	var seen []string
	cursor := ""
	for range 40 {
		w.engine.reset()
		page, err := w.services.Extractions.List(t.Context(), acme(), inbox.ExtractionQuery{Template: "t"}, inbox.PageRequest{Limit: 4, Cursor: cursor})
		w.must(err)
		if w.engine.reads > 1+2*4 {
			t.Errorf("%d reads", w.engine.reads)
		}
		for _, e := range page.Rows {
			seen = append(seen, e.Email)
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if strings.Join(seen, " ") != strings.Join(kept, " ") {
		t.Errorf("%d seen, %d kept", len(seen), len(kept))
	}
}

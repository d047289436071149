package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/pipeline"
)

// second is a desk whose mail can be read again. It has one webhook, which wants everything.
type second struct {
	*desk
	notified []inbox.Email
}

func (s *second) Authorized(context.Context, inbox.Job) error { return nil }

func newSecond(t *testing.T) *second {
	t.Helper()
	s := &second{desk: newDesk(t)}
	s.deps.Reprocess, s.deps.Authority = s.store, s
	s.deps.Notify = func(_ context.Context, e inbox.Email, _ string) error {
		s.notified = append(s.notified, e)
		return nil
	}
	s.worker = s.newWorker()
	hook := inbox.Webhook{ID: "webhook_1", Workspace: wsID, Name: "erp", URL: "https://erp.test", Events: inbox.EventTypes(), Enabled: true, Version: 1}
	_, err := s.store.UpdateWebhook(t.Context(), wsID, hook.ID, inbox.Act{}, func(w *inbox.Webhook) error { *w = hook; return nil })
	s.must(err)
	return s
}

func (s *second) begin(id string, params inbox.ReprocessParams) inbox.Job {
	s.t.Helper()
	if params.Stages == nil {
		params.Stages = inbox.ReprocessStages()
	}
	encoded, err := json.Marshal(params)
	s.must(err)
	j, err := s.store.UpdateJob(s.t.Context(), wsID, s.start(inbox.KindReprocess).ID, inbox.Act{}, func(j *inbox.Job) error {
		j.Target, j.Params = id, encoded
		return nil
	})
	s.must(err)
	return j
}

func (s *second) result(id string) pipeline.Reprocessed {
	s.t.Helper()
	j := s.job(id)
	if j.Status != inbox.JobSucceeded {
		s.t.Fatalf("job %s %+v", j.Status, j.Error)
	}
	var r pipeline.Reprocessed
	s.must(json.Unmarshal(j.Result, &r))
	return r
}

func (s *second) again(id string, stages ...string) pipeline.Reprocessed {
	s.t.Helper()
	j := s.begin(id, inbox.ReprocessParams{Stages: stages})
	s.must(s.worker.Handle(s.t.Context(), j.ID, 1))
	return s.result(j.ID)
}

// patch does what emails_update does.
func (s *second) patch(id string, p inbox.EmailPatch) {
	s.t.Helper()
	_, err := s.store.UpdateEmail(s.t.Context(), wsID, id, inbox.Act{}, func(e *inbox.Email) error { return p.Apply(e, s.now()) })
	s.must(err)
}

// noRule takes a rule out of the book.
func (s *second) noRule(r inbox.RuleRef) {
	s.t.Helper()
	s.must(s.store.UpdateRules(s.t.Context(), wsID, r.Rule, inbox.Act{}, func(book *inbox.Rulebook, gone *inbox.Rule) error {
		i := slices.IndexFunc(book.Rules, func(x inbox.Rule) bool { return x.ID == r.Rule })
		*gone = book.Rules[i]
		gone.DeletedAt = s.now()
		book.Rules = slices.Delete(book.Rules, i, i+1)
		return nil
	}))
}

// events are the outbox rows of events, which jobs and mails are not.
func (s *second) events() (ids []string) {
	s.t.Helper()
	all, err := s.store.Pending(s.t.Context(), s.now().Add(time24), 1000)
	s.must(err)
	for _, id := range all {
		if strings.HasPrefix(id, "event_") {
			ids = append(ids, id)
		}
	}
	return ids
}

const time24 = 24 * time.Hour

func allActions() []inbox.Action {
	return []inbox.Action{
		{Type: inbox.ActAddLabel, Value: "invoice"}, {Type: inbox.ActCategory, Value: "billing"}, {Type: inbox.ActHandled},
		{Type: inbox.ActExtract, Value: "invoice"}, {Type: inbox.ActNotify, Value: "erp"},
	}
}

// Rules that were made after a mail came judge it when it is read again, once; when they are gone what they did is taken back.
func TestSecondReadingByRules(t *testing.T) {
	s := newSecond(t)
	before := s.receive(ruledMail)
	told := len(s.events())
	rule := s.rule("one", `Total: \d`, allActions()...)
	r := s.again(before.ID)
	e := s.email(before.ID)
	if want := []string{"labels", "category", "handled", "extractions"}; !slices.Equal(r.Changed, want) || r.New.Version != before.Version+1 ||
		!slices.Equal(r.New.Labels, []string{"invoice"}) || len(r.Old.Labels) > 0 || r.New.Category != "billing" || r.Old.Handled || !r.New.Handled {
		t.Errorf("result %+v", r)
	}
	if !slices.Equal(e.Labels, []string{"invoice"}) || e.CategoryBy != rule || e.HandledAt.IsZero() || !slices.Equal(e.Rules, []inbox.RuleRef{rule}) || len(e.Notify) > 0 {
		t.Errorf("mail %+v", e)
	}
	if len(r.Extractions) != 1 || r.Extractions[0].Old != 0 || r.Extractions[0].New != 1 || !slices.Equal(r.Extractions[0].Changed, []string{"number"}) ||
		len(s.extractions(e)) != 1 || string(s.extractions(e)[0].Data) != `{"number":"AB-17"}` {
		t.Errorf("extractions %+v, %+v", r.Extractions, s.extractions(e))
	}
	if len(s.notified) != 0 || len(s.events()) != told {
		t.Errorf("somebody was told: %v, %d events, %d before", s.notified, len(s.events()), told)
	}
	if r := s.again(before.ID); len(r.Changed) != 0 || len(r.Extractions) != 0 || s.email(before.ID).Version != e.Version || s.matches(rule) != 1 {
		t.Errorf("the same again: %+v, %d matches", r, s.matches(rule))
	}
	s.noRule(rule)
	r = s.again(before.ID)
	if e := s.email(before.ID); !slices.Equal(r.Changed, []string{"labels", "category", "handled"}) || len(e.Labels) > 0 || e.Category != "" || !e.HandledAt.IsZero() || len(e.Rules) > 0 {
		t.Errorf("without the rule: %v, %+v", r.Changed, e)
	}
	if len(s.extractions(e)) != 1 {
		t.Error("what was extracted is gone")
	}
}

// What a person decided stays, whichever rules come or go.
func TestSecondReadingLeavesDecisions(t *testing.T) {
	actions := []inbox.Action{{Type: inbox.ActAddLabel, Value: "rule"}, {Type: inbox.ActRemoveLabel, Value: "mine"}, {Type: inbox.ActCategory, Value: "billing"}, {Type: inbox.ActHandled}}
	for name, c := range map[string]struct {
		patch    inbox.EmailPatch
		labels   string
		category string
		handled  bool
		gone     string // labels when the rule is gone
	}{
		"nothing":              {inbox.EmailPatch{}, "rule", "billing", true, ""},
		"a label":              {inbox.EmailPatch{AddLabels: []string{"mine"}}, "mine rule", "billing", true, "mine"},
		"the rule's own label": {inbox.EmailPatch{AddLabels: []string{"rule"}}, "rule", "billing", true, "rule"},
		"took a label off":     {inbox.EmailPatch{RemoveLabels: []string{"rule"}}, "", "billing", true, ""},
		"a category":           {inbox.EmailPatch{Category: inbox.Set("mine")}, "rule", "mine", true, ""},
		"no category":          {inbox.EmailPatch{Category: inbox.Field[string]{Present: true, Null: true}}, "rule", "", true, ""},
		"not handled":          {inbox.EmailPatch{Handled: inbox.Set(false)}, "rule", "billing", false, ""},
		"handled":              {inbox.EmailPatch{Handled: inbox.Set(true)}, "rule", "billing", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSecond(t)
			rule := s.rule("one", "Total", actions...)
			id := s.receive(ruledMail).ID
			s.patch(id, c.patch)
			version := s.email(id).Version
			for range 2 {
				s.again(id)
				if e := s.email(id); strings.Join(e.Labels, " ") != c.labels || e.Category != c.category || e.HandledAt.IsZero() == c.handled || e.Version != version {
					t.Errorf("labels %v category %q handled %v version %d, was %d", e.Labels, e.Category, e.HandledAt, e.Version, version)
				}
			}
			s.noRule(rule)
			s.again(id)
			category, handled := "", name == "handled"
			if name == "a category" {
				category = c.category
			}
			if e := s.email(id); strings.Join(e.Labels, " ") != c.gone || e.Category != category || e.HandledAt.IsZero() == handled {
				t.Errorf("without the rule: labels %v category %q handled %v", e.Labels, e.Category, e.HandledAt)
			}
		})
	}
}

// A label that was taken off and set again by a person is theirs.
func TestSecondReadingOffAndOn(t *testing.T) {
	s := newSecond(t)
	s.rule("one", "Total", inbox.Action{Type: inbox.ActAddLabel, Value: "rule"})
	id := s.receive(ruledMail).ID
	s.patch(id, inbox.EmailPatch{RemoveLabels: []string{"rule"}})
	s.patch(id, inbox.EmailPatch{AddLabels: []string{"rule"}})
	if e := s.email(id); len(e.Settled.Unlabeled) > 0 || len(e.RuleLabels) > 0 {
		t.Errorf("settled %+v, by rules %v", e.Settled, e.RuleLabels)
	}
}

// Mail of before it was kept who set what: nothing is taken from it.
func TestSecondReadingOfOldMail(t *testing.T) {
	s := newSecond(t)
	id := s.receive(ruledMail).ID
	_, err := s.store.UpdateEmail(t.Context(), wsID, id, inbox.Act{}, func(e *inbox.Email) error {
		e.Labels, e.Category, e.HandledAt = []string{"old"}, "old", s.now()
		return nil
	})
	s.must(err)
	s.rule("one", "Total", inbox.Action{Type: inbox.ActAddLabel, Value: "new"}, inbox.Action{Type: inbox.ActCategory, Value: "new"})
	s.again(id)
	if e := s.email(id); !slices.Equal(e.Labels, []string{"new", "old"}) || e.Category != "old" || e.HandledAt.IsZero() {
		t.Errorf("mail %+v", e)
	}
}

func TestSecondReadingHolds(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*inbox.Email)
		stages []string
		status inbox.Status
		reason string
	}{
		"processed":           {func(*inbox.Email) {}, nil, inbox.StatusQuarantined, inbox.HeldByRule},
		"rules alone":         {func(*inbox.Email) {}, []string{inbox.StageRules}, inbox.StatusQuarantined, inbox.HeldByRule},
		"content alone":       {func(*inbox.Email) {}, []string{inbox.StageContent}, inbox.StatusProcessed, ""},
		"extraction alone":    {func(*inbox.Email) {}, []string{inbox.StageExtraction}, inbox.StatusProcessed, ""},
		"released":            {func(e *inbox.Email) { e.ReleasedAt = e.ReceivedAt }, nil, inbox.StatusProcessed, ""},
		"held for its sender": {func(e *inbox.Email) { e.Status, e.Reason = inbox.StatusQuarantined, "blocked" }, []string{inbox.StageRules}, inbox.StatusQuarantined, "blocked"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSecond(t)
			id := s.receive(ruledMail).ID
			_, err := s.store.UpdateEmail(t.Context(), wsID, id, inbox.Act{}, func(e *inbox.Email) error { c.change(e); return nil })
			s.must(err)
			told := len(s.events())
			rule := s.rule("one", "Total", inbox.Action{Type: inbox.ActQuarantine}, inbox.Action{Type: inbox.ActExtract, Value: "invoice"})
			s.again(id, c.stages...)
			if e := s.email(id); e.Status != c.status || e.Reason != c.reason {
				t.Errorf("%s %s", e.Status, e.Reason)
			}
			held, asked := name == "held for its sender", name != "content alone"
			if got := len(s.extractions(s.email(id))); (got == 1) != (asked && !held) {
				t.Errorf("%d extractions", got)
			}
			if len(s.events()) != told {
				t.Error("somebody was told")
			}
			s.noRule(rule)
			s.again(id)
			if e := s.email(id); e.Status != c.status {
				t.Errorf("without the rule: %s; only a person lets it go", e.Status)
			}
		})
	}
}

// What a person extracted is renewed where the stage is asked for, and says still who asked.
func TestSecondReadingExtracts(t *testing.T) {
	s := newSecond(t)
	e := s.receive(ruledMail)
	s.must(s.store.PutExtraction(t.Context(), inbox.Extraction{
		ID: inbox.ExtractionID(wsID, e.ID, "invoice"), Workspace: wsID, Inbox: inboxID, Email: e.ID, ReceivedAt: e.ReceivedAt, Template: "invoice",
		Version: 1, Status: inbox.ExtractionOK, Data: json.RawMessage(`{"number":"wrong","more":1}`), By: "user_1", ExtractedAt: s.now(),
	}))
	told := len(s.events())
	if r := s.again(e.ID, inbox.StageContent, inbox.StageSenders, inbox.StageRules); len(r.Changed) > 0 {
		t.Errorf("not asked for: %+v", r)
	}
	s.template("invoice", "Total")
	r := s.again(e.ID)
	got := s.extractions(e)
	if len(got) != 1 || got[0].By != "user_1" || got[0].Version != 2 || string(got[0].Data) != `{"number":"12,50 EUR"}` {
		t.Fatalf("extraction %+v", got)
	}
	if x := r.Extractions; len(x) != 1 || x[0].Old != 1 || x[0].New != 2 || !slices.Equal(x[0].Changed, []string{"number", "more"}) || !slices.Equal(r.Changed, []string{"extractions"}) {
		t.Errorf("result %+v", r)
	}
	if text, _ := json.Marshal(r); strings.Contains(string(text), "12,50") || strings.Contains(string(text), "AB-17") {
		t.Errorf("the result quotes the mail: %s", text)
	}
	if len(s.events()) != told {
		t.Error("somebody was told")
	}
	rows, _, err := s.store.Extractions(t.Context(), inbox.ExtractionRange{Workspace: wsID, Template: "invoice", Limit: 10})
	if err != nil || len(rows) != 1 || rows[0].Version != 2 {
		t.Errorf("by template %+v, %v", rows, err)
	}
	// The inbox's own template counts too; one that is missing is warned of, and what was extracted by it before stays.
	s.box = "gone"
	if r := s.again(e.ID); !slices.Contains(r.New.Warnings, "extraction_template_missing") {
		t.Errorf("warnings %v", r.New.Warnings)
	}
	s.box = ""
	if r := s.again(e.ID, inbox.StageExtraction); slices.Contains(r.New.Warnings, "extraction_template_missing") || !slices.Contains(r.Changed, "warnings") {
		t.Errorf("warnings %v", r.New.Warnings)
	}
	s.deps.Extractor = brittle{errors.New("model is down")}
	s.worker = s.newWorker()
	if r := s.again(e.ID); !slices.Contains(r.New.Warnings, "extraction_failed") || len(s.extractions(e)) != 1 {
		t.Errorf("warnings %v, extractions %+v", r.New.Warnings, s.extractions(e))
	}
}

// More templates than one transaction renews: the rest stays, and the result says how many.
func TestSecondReadingExtractsABoundedNumber(t *testing.T) {
	s := newSecond(t)
	e := s.receive(ruledMail)
	for _, slug := range strings.Fields("a b c d e f g h") {
		s.template(slug, "Invoice No")
		s.must(s.store.PutExtraction(t.Context(), inbox.Extraction{
			ID: inbox.ExtractionID(wsID, e.ID, slug), Workspace: wsID, Inbox: inboxID, Email: e.ID, ReceivedAt: e.ReceivedAt, Template: slug,
			Version: 1, Data: json.RawMessage(`{}`), ExtractedAt: s.now(),
		}))
	}
	if r := s.again(e.ID); len(r.Extractions) != 6 || r.Left != 2 {
		t.Errorf("%d renewed, %d left", len(r.Extractions), r.Left)
	}
}

// Told when a person asks: the webhooks of the rules of now, and what was extracted.
func TestSecondReadingNotifies(t *testing.T) {
	s := newSecond(t)
	e := s.receive(ruledMail)
	rule := s.rule("one", "Total", allActions()...)
	told := len(s.events())
	j := s.begin(e.ID, inbox.ReprocessParams{Notify: true})
	s.must(s.worker.Handle(t.Context(), j.ID, 1))
	want := []inbox.Notification{{RuleRef: rule, Webhook: "erp"}}
	if r := s.result(j.ID); !r.Notified || len(s.notified) != 1 || !slices.Equal(s.notified[0].Notify, want) || len(s.events()) != told+1 {
		t.Errorf("%+v, %+v, %d events, %d before", r, s.notified, len(s.events()), told)
	}
	if e := s.email(e.ID); !slices.Equal(e.Notify, want) {
		t.Errorf("notify %v", e.Notify)
	}
}

// cut is a store whose next reading is lost before, or after, it was stored.
type cut struct {
	pipeline.Reprocessing
	before, after bool
}

func (c *cut) Reprocess(ctx context.Context, held inbox.Job, r inbox.Reread, merge func(inbox.Email, []inbox.Extraction) (inbox.Remade, error)) error {
	if c.before {
		c.before = false
		return errors.New("killed")
	}
	err := c.Reprocessing.Reprocess(ctx, held, r, merge)
	if c.after {
		c.after = false
		return errors.Join(errors.New("killed"), err)
	}
	return err
}

// A run that is killed leaves nothing, or all of it; the next one ends the job either way.
func TestSecondReadingKilled(t *testing.T) {
	for _, c := range []*cut{{before: true}, {after: true}} {
		s := newSecond(t)
		e := s.receive(ruledMail)
		s.rule("one", "Total", allActions()...)
		c.Reprocessing = s.store
		s.deps.Reprocess = c
		s.worker = s.newWorker()
		j := s.begin(e.ID, inbox.ReprocessParams{})
		_ = s.worker.Handle(t.Context(), j.ID, 1)
		s.must(s.worker.Handle(t.Context(), j.ID, 2))
		if r := s.result(j.ID); !slices.Equal(r.Changed, []string{"labels", "category", "handled", "extractions"}) || len(r.Extractions) != 1 {
			t.Errorf("%+v", r)
		}
		if got := s.email(e.ID); got.Version != e.Version+1 || len(s.extractions(e)) != 1 {
			t.Errorf("mail %+v", got)
		}
	}
}

// Several at once: each ends, the rule counts the mail once, and exactly one names the change.
func TestSecondReadingsAtOnce(t *testing.T) {
	s := newSecond(t)
	e := s.receive(ruledMail)
	rule := s.rule("one", "Total", allActions()...)
	var team sync.WaitGroup
	var jobs []string
	for range 4 {
		j, w := s.begin(e.ID, inbox.ReprocessParams{}), s.newWorker()
		jobs = append(jobs, j.ID)
		team.Go(func() {
			if err := w.Handle(t.Context(), j.ID, 1); err != nil {
				t.Errorf("%v", err)
			}
		})
	}
	team.Wait()
	changed := 0
	for _, id := range jobs {
		changed += min(len(s.result(id).Changed), 1)
	}
	if got := s.email(e.ID); changed != 1 || s.matches(rule) != 1 || got.Version != e.Version+1 || !slices.Equal(got.Labels, []string{"invoice"}) {
		t.Errorf("%d jobs changed it, %d matches, %+v", changed, s.matches(rule), got)
	}
}

// Rules that can't be used change nothing of a mail.
func TestSecondReadingWithBrokenRules(t *testing.T) {
	s := newSecond(t)
	s.rule("one", "Total", inbox.Action{Type: inbox.ActAddLabel, Value: "rule"})
	e := s.receive(ruledMail)
	s.rule("bad", "(", inbox.Action{Type: inbox.ActQuarantine}) // no operation stores such a one
	r := s.again(e.ID)
	if got := s.email(e.ID); !slices.Equal(got.Labels, []string{"rule"}) || got.Status != inbox.StatusProcessed || !slices.Contains(r.New.Warnings, "rules_unusable") {
		t.Errorf("%+v, %+v", r, got)
	}
}

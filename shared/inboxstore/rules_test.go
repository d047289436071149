package inboxstore_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
)

// A webhook that a rule names is told of the mail once, subscribed or not, with the mail's own event.
func TestRulesTellWebhooks(t *testing.T) {
	for name, x := range map[string]struct {
		subscribed []inbox.EventType
		notify     []string
		want       []string
	}{
		"named, not subscribed":  {[]inbox.EventType{inbox.EventJobFailed}, []string{"hook"}, []string{"email.processed"}},
		"named and subscribed":   {[]inbox.EventType{inbox.EventProcessed}, []string{"hook"}, []string{"email.processed"}},
		"another one is named":   {[]inbox.EventType{inbox.EventJobFailed}, []string{"other"}, nil},
		"none is named":          {[]inbox.EventType{inbox.EventJobFailed}, nil, nil},
		"subscribed, none named": {[]inbox.EventType{inbox.EventProcessed}, nil, []string{"email.processed"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			hook := w.hook(x.subscribed...)
			e := w.mail()
			w.accept(e)
			w.happened()
			e = w.process(e, func(p *inbox.Processed) {
				for _, n := range x.notify {
					if n == "hook" {
						n = hook.Name
					}
					p.Email.Notify = append(p.Email.Notify, inbox.Notification{RuleRef: inbox.RuleRef{Rule: "rule_1", Version: 1}, Webhook: n})
				}
			})
			w.wantEvents("processed", x.want...)
			_, err := w.UpdateEmail(t.Context(), e.Workspace, e.ID, inbox.Act{}, func(e *inbox.Email) error {
				e.Labels, e.Version = []string{"x"}, e.Version+1
				return nil
			})
			w.must(err)
			w.wantEvents("labelled")
		})
	}
}

// Whoever wants to is told that data was extracted, once for each result and without the data.
func TestExtractionsAreTold(t *testing.T) {
	w := newWorld(t)
	w.hook(inbox.EventExtracted)
	e := w.mail()
	w.accept(e)
	x := inbox.Extraction{
		ID: inbox.ExtractionID(wsA, e.ID, "t"), Workspace: wsA, Inbox: e.Inbox, Email: e.ID, ReceivedAt: e.ReceivedAt, Template: "t", Version: 1,
		Status: inbox.ExtractionOK, Data: json.RawMessage(`{"x":"secret"}`), ExtractedAt: w.clock,
	}
	w.must(w.PutExtraction(t.Context(), x))
	for _, event := range w.wantEvents("extracted", "email.extracted") {
		if strings.Contains(string(event.Data), "secret") || event.Path != "/extractions?email_id="+e.ID+"&template=t" {
			t.Errorf("event %+v", event)
		}
	}
	x.ExtractedAt = x.ExtractedAt.Add(time.Minute)
	w.must(w.PutExtraction(t.Context(), x)) // a run that was repeated
	w.wantEvents("again")
	x.Version, x.Status = 2, inbox.ExtractionPartial
	w.must(w.PutExtraction(t.Context(), x))
	w.wantEvents("by another version", "email.extracted")
	x.Version = 1
	w.must(w.PutExtraction(t.Context(), x))
	w.wantEvents("by an old version")
}

// The book is one row: what changes it between the look and the write makes the writer look again.
func TestRulebookRevisions(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	if book, revision, err := w.Rulebook(ctx, wsA, 0); err != nil || revision != 0 || len(book.Rules) != 0 {
		t.Fatalf("none: %v %d %v", book, revision, err)
	}
	add := func(slug string, between func()) {
		t.Helper()
		id, calls := inbox.RuleID(wsA, "", slug), 0
		w.must(w.UpdateRules(ctx, wsA, id, inbox.Act{}, func(book *inbox.Rulebook, gone *inbox.Rule) error {
			if calls++; calls == 1 && between != nil {
				between()
			}
			*gone = inbox.Rule{}
			book.Rules = append(slices.Clone(book.Rules), inbox.Rule{ID: id, Workspace: wsA, Slug: slug, Version: 1})
			return nil
		}))
		if between != nil && calls != 2 {
			t.Errorf("%s: %d calls", slug, calls)
		}
	}
	add("a", nil)
	add("b", func() { add("c", nil) })
	book, revision, err := w.Rulebook(ctx, wsA, 0)
	if err != nil || len(book.Rules) != 3 || revision == 0 {
		t.Fatalf("book %+v %d %v", book, revision, err)
	}
	if same, again, err := w.Rulebook(ctx, wsA, revision); err != nil || again != revision || len(same.Rules) != 0 {
		t.Errorf("known: %+v %d %v", same, again, err)
	}
	if other, revision, err := w.Rulebook(ctx, wsB, 0); err != nil || revision != 0 || len(other.Rules) != 0 {
		t.Errorf("another workspace: %+v %d %v", other, revision, err)
	}
	left := w.engine.left
	w.engine.left = 0
	err = w.UpdateRules(ctx, wsA, book.Rules[0].ID, inbox.Act{}, func(book *inbox.Rulebook, _ *inbox.Rule) error { book.Rules = nil; return nil })
	w.engine.left = left
	if after, again, _ := w.Rulebook(ctx, wsA, 0); err == nil || again != revision || len(after.Rules) != 3 {
		t.Errorf("a failed write: %v, %d rules", err, len(after.Rules))
	}
}

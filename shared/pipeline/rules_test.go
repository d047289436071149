package pipeline_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/mail"
	"github.com/buzon-mail/buzon/shared/pipeline"
	"github.com/buzon-mail/buzon/shared/pipeline/parsing"
)

const ruledMail = "From: Ana <ana@remote.test>\r\nTo: agent@acme.test\r\nSubject: Invoice 17\r\nMessage-ID: <i17@remote.test>\r\n\r\n" +
	"Dear agent,\r\nInvoice No: AB-17\r\nTotal: 12,50 EUR\r\nYour code is 482913.\r\n"

// desk is an office whose mail is judged by rules and read by templates.
type desk struct {
	*office
	policy inbox.SenderPolicy
	box    string // default_template of the inbox
	n      int
}

func (d *desk) Inbox(context.Context, string, string) (inbox.Inbox, error) {
	return inbox.Inbox{ID: inboxID, SenderPolicy: d.policy, Template: d.box}, nil
}

func (d *desk) SendersFor(context.Context, string, string, string) ([]inbox.AllowedSender, error) {
	return nil, nil
}

func (d *desk) HitSender(context.Context, string, string, string) {}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{office: newOffice(t, nil), policy: inbox.PolicyOpen}
	d.deps.Parse, d.deps.Senders = parsing.Mail(mail.Limits{}), d
	d.deps.Rules, d.deps.Extractor, d.deps.Extractions = d.store, inbox.NewLocators(), d.store
	d.worker = d.newWorker()
	d.template("invoice", "Invoice No")
	return d
}

func (d *desk) template(slug, label string) {
	d.t.Helper()
	id := inbox.TemplateID(wsID, slug)
	_, err := d.store.UpdateTemplate(d.t.Context(), wsID, id, inbox.Act{}, func(t *inbox.ExtractionTemplate) error {
		*t = inbox.ExtractionTemplate{
			ID: id, Workspace: wsID, Slug: slug, Version: t.Version + 1,
			Schema:   json.RawMessage(`{"type":"object","properties":{"number":{"type":"string"}},"required":["number"]}`),
			Locators: []inbox.Locator{{Field: "number", Kind: inbox.LocateLabel, Value: label}},
		}
		return nil
	})
	d.must(err)
}

// rule puts a rule at the end of the book.
func (d *desk) rule(slug, value string, actions ...inbox.Action) inbox.RuleRef {
	d.t.Helper()
	id := inbox.RuleID(wsID, "", slug)
	version := uint64(0)
	d.must(d.store.UpdateRules(d.t.Context(), wsID, id, inbox.Act{}, func(book *inbox.Rulebook, gone *inbox.Rule) error {
		book.Rules = slices.DeleteFunc(book.Rules, func(r inbox.Rule) bool {
			if r.ID == id {
				version = r.Version
			}
			return r.ID == id
		})
		version++
		book.Rules = append(book.Rules, inbox.Rule{
			ID: id, Workspace: wsID, Slug: slug, Enabled: true, Match: inbox.MatchAll, Version: version, Actions: actions,
			Conditions: []inbox.Condition{{Field: inbox.FieldText, Op: inbox.OpMatches, Value: value}},
		})
		return nil
	}))
	return inbox.RuleRef{Rule: id, Version: version}
}

// accept stores a mail that waits for the worker.
func (d *desk) accept(raw string) string {
	d.t.Helper()
	d.n++
	id, err := inbox.NewID("email", d.now(), rand.Reader)
	d.must(err)
	sum := sha256.Sum256([]byte(raw))
	key := fmt.Sprintf("raw/%d.eml", d.n)
	d.must(d.blobs.Put(d.t.Context(), key, strings.NewReader(raw), int64(len(raw))))
	d.must(d.store.FanOut(d.t.Context(), inbox.Intake{ID: "intake_" + id[6:]}, []inbox.Email{{
		ID: id, Organization: orgID, Workspace: wsID, Inbox: inboxID, Status: inbox.StatusReceived, ReceivedAt: d.now(), UpdatedAt: d.now(), Version: 1,
		Size: int64(len(raw)), RawSHA256: hex.EncodeToString(sum[:]), RawKey: key,
		Envelope: inbox.Envelope{From: "ana@remote.test", To: "agent@acme.test", RemoteIP: "192.0.2.1"},
	}}))
	return id
}

func (d *desk) receive(raw string) inbox.Email {
	d.t.Helper()
	id := d.accept(raw)
	d.must(d.worker.Handle(d.t.Context(), id, 1))
	return d.email(id)
}

func (d *desk) email(id string) inbox.Email {
	d.t.Helper()
	e, _, err := d.store.Email(d.t.Context(), wsID, id, false)
	d.must(err)
	return e
}

func (d *desk) extractions(e inbox.Email) []inbox.Extraction {
	d.t.Helper()
	rows, _, err := d.store.Extractions(d.t.Context(), inbox.ExtractionRange{Workspace: wsID, Email: inbox.Position(e.ReceivedAt, e.ID), Limit: 100})
	d.must(err)
	return rows
}

func (d *desk) matches(r inbox.RuleRef) int64 {
	d.t.Helper()
	counts, err := d.store.RuleMatches(d.t.Context(), wsID)
	d.must(err)
	return counts[r.Rule]
}

func TestMailByRules(t *testing.T) {
	d := newDesk(t)
	one := d.rule("one", `Total: \d`, inbox.Action{Type: inbox.ActAddLabel, Value: "invoice"}, inbox.Action{Type: inbox.ActCategory, Value: "billing"},
		inbox.Action{Type: inbox.ActHandled}, inbox.Action{Type: inbox.ActExtract, Value: "invoice"}, inbox.Action{Type: inbox.ActNotify, Value: "erp"})
	two := d.rule("two", "no such words", inbox.Action{Type: inbox.ActQuarantine})
	e := d.receive(ruledMail)
	if e.Status != inbox.StatusProcessed || !slices.Equal(e.Labels, []string{"invoice"}) || e.Category != "billing" || e.CategoryBy != one || e.HandledAt.IsZero() ||
		!slices.Equal(e.Rules, []inbox.RuleRef{one}) || !slices.Equal(e.Notify, []inbox.Notification{{RuleRef: one, Webhook: "erp"}}) {
		t.Errorf("mail %+v", e)
	}
	got := d.extractions(e)
	if len(got) != 1 || string(got[0].Data) != `{"number":"AB-17"}` || got[0].By != one.Rule || got[0].Version != 1 || got[0].Status != inbox.ExtractionOK {
		t.Errorf("extraction %+v", got)
	}
	if d.matches(one) != 1 || d.matches(two) != 0 {
		t.Errorf("matches %d, %d", d.matches(one), d.matches(two))
	}
	d.must(d.worker.Handle(t.Context(), e.ID, 2)) // a redelivery finds nothing to do
	if d.matches(one) != 1 || len(d.email(e.ID).Notify) != 1 {
		t.Error("it ran twice")
	}
	if rows, _, err := d.store.Emails(t.Context(), inbox.EmailRange{Workspace: wsID, Status: inbox.StatusProcessed, Limit: 10}); err != nil || len(rows) != 1 ||
		rows[0].HandledAt.IsZero() || rows[0].Category != "billing" {
		t.Errorf("summary %+v, %v", rows, err)
	}
	// The next mail is judged by the rules of then.
	next := d.rule("one", `Total: \d`, inbox.Action{Type: inbox.ActQuarantine})
	e = d.receive(strings.Replace(ruledMail, "AB-17", "AB-18", 1))
	if next.Version != 2 || e.Status != inbox.StatusQuarantined || e.Reason != inbox.HeldByRule || !slices.Equal(e.Rules, []inbox.RuleRef{next}) || len(e.Labels) > 0 {
		t.Errorf("quarantined %+v", e)
	}
}

// What a person does while a mail is being read stands.
func TestRulesGiveWay(t *testing.T) {
	d := newDesk(t)
	d.rule("one", "Total", inbox.Action{Type: inbox.ActHandled}, inbox.Action{Type: inbox.ActCategory, Value: "rule"}, inbox.Action{Type: inbox.ActAddLabel, Value: "rule"})
	id := d.accept(ruledMail)
	parse := d.deps.Parse
	d.deps.Parse = func(ctx context.Context, raw []byte) (pipeline.Reading, error) {
		_, err := d.store.UpdateEmail(ctx, wsID, id, inbox.Act{}, func(e *inbox.Email) error {
			e.Category, e.Labels, e.Version = "person", []string{"person"}, e.Version+1
			return nil
		})
		return must(parse(ctx, raw))(err)
	}
	d.worker = d.newWorker()
	d.must(d.worker.Handle(t.Context(), id, 1))
	if e := d.email(id); e.Category != "person" || e.CategoryBy != (inbox.RuleRef{}) || !e.HandledAt.IsZero() || !slices.Equal(e.Labels, []string{"person", "rule"}) {
		t.Errorf("mail %+v", e)
	}
}

func must(r pipeline.Reading, err error) func(error) (pipeline.Reading, error) {
	return func(other error) (pipeline.Reading, error) { return r, errors.Join(err, other) }
}

func TestLoopsTellNobody(t *testing.T) {
	for name, header := range map[string]string{
		"auto-reply": "Auto-Submitted: auto-replied\r\n", "own address": "From: agent@acme.test\r\n", "hops": strings.Repeat("Received: from x\r\n", 60),
	} {
		d := newDesk(t)
		rule := d.rule("one", "Total", inbox.Action{Type: inbox.ActNotify, Value: "erp"}, inbox.Action{Type: inbox.ActAddLabel, Value: "seen"})
		raw := header + ruledMail
		if name == "own address" {
			raw = header + strings.TrimPrefix(ruledMail, "From: Ana <ana@remote.test>\r\n")
		}
		if e := d.receive(raw); len(e.Notify) != 0 || len(e.Labels) != 1 || len(e.Rules) != 1 || e.Rules[0] != rule {
			t.Errorf("%s: flags %v, %+v", name, e.Flags, e)
		}
	}
}

// Mail that is held back for its sender is neither told of nor read any further, whatever a rule says.
func TestHeldMailAndRules(t *testing.T) {
	d := newDesk(t)
	d.policy, d.box = inbox.PolicyListed, "invoice"
	d.rule("one", "Total", inbox.Action{Type: inbox.ActNotify, Value: "erp"}, inbox.Action{Type: inbox.ActAddLabel, Value: "seen"},
		inbox.Action{Type: inbox.ActExtract, Value: "invoice"}, inbox.Action{Type: inbox.ActHandled})
	e := d.receive(ruledMail)
	if e.Status != inbox.StatusQuarantined || e.Reason != inbox.HeldUnlisted || len(e.Notify) > 0 || !e.HandledAt.IsZero() || len(d.extractions(e)) > 0 || len(e.Labels) != 1 {
		t.Errorf("mail %+v", e)
	}
}

func TestDefaultTemplate(t *testing.T) {
	d := newDesk(t)
	d.box = "invoice"
	e := d.receive(ruledMail)
	if got := d.extractions(e); len(got) != 1 || got[0].By != inbox.ByDefault {
		t.Errorf("extraction %+v", got)
	}
	d.box = "gone"
	e = d.receive(strings.Replace(ruledMail, "AB-17", "AB-18", 1))
	if e.Status != inbox.StatusProcessed || !slices.ContainsFunc(e.Warnings, func(w inbox.Warning) bool { return w.Code == "extraction_template_missing" }) {
		t.Errorf("without its template: %+v", e)
	}
}

// brittle is an extractor that fails, or never ends.
type brittle struct{ err error }

func (brittle) Name() string { return "brittle/1" }

func (b brittle) Extract(context.Context, inbox.ExtractionTemplate, inbox.ExtractionMail) (inbox.Findings, error) {
	return inbox.Findings{}, b.err
}

// A mail is worth more than what a rule or an extractor wanted with it.
func TestBrokenRulesKeepNoMail(t *testing.T) {
	d := newDesk(t)
	d.box, d.deps.Extractor = "invoice", brittle{errors.New("model is down")}
	d.rule("bad", "(", inbox.Action{Type: inbox.ActQuarantine}) // no operation stores such a one
	d.worker = d.newWorker()
	e := d.receive(ruledMail)
	var codes []string
	for _, w := range e.Warnings {
		codes = append(codes, w.Code)
	}
	if e.Status != inbox.StatusProcessed || !slices.Contains(codes, "rules_unusable") || !slices.Contains(codes, "extraction_failed") {
		t.Errorf("mail %+v, warnings %v", e, codes)
	}
}

func TestExtractionJob(t *testing.T) {
	d := newDesk(t)
	ready := d.receive(ruledMail)
	large := d.receive(strings.Replace(ruledMail, "Invoice No: AB-17", "Invoice No: AB-18\r\n"+strings.Repeat("line of text\r\n", 20_000), 1))
	deleted := d.receive(strings.Replace(ruledMail, "AB-17", "AB-19", 1))
	_, err := d.store.UpdateEmail(t.Context(), wsID, deleted.ID, inbox.Act{}, func(e *inbox.Email) error {
		e.DeletedAt, e.Version = d.now(), 2
		return nil
	})
	d.must(err)
	waiting := d.accept(strings.Replace(ruledMail, "AB-17", "AB-20", 1))
	missing := "email_" + strings.Repeat("0", 26)
	params, err := json.Marshal(inbox.ExtractParams{Template: "invoice", Emails: []string{ready.ID, large.ID, deleted.ID, waiting, missing}})
	d.must(err)
	j := d.start(inbox.KindExtract)
	_, err = d.store.UpdateJob(t.Context(), wsID, j.ID, inbox.Act{}, func(j *inbox.Job) error { j.Params = params; return nil })
	d.must(err)
	d.must(d.worker.Handle(t.Context(), j.ID, 1))
	j = d.job(j.ID)
	var got pipeline.ExtractedAll
	d.must(json.Unmarshal(j.Result, &got))
	var short []string
	for _, e := range got.Emails {
		short = append(short, fmt.Sprint(e.Status, e.Failed))
	}
	if j.Status != inbox.JobSucceeded || got.Version != 1 || strings.Join(short, " ") != "ok ok not_found not_processed not_found" || j.Progress.Done != 5 {
		t.Errorf("%s %v %+v", j.Status, short, j)
	}
	if bytes.Contains(j.Result, []byte("AB-1")) {
		t.Errorf("data in the result of a job: %s", j.Result)
	}
	if large.BodyKey == "" {
		t.Error("the large body was meant to be a blob")
	}
	for _, e := range []inbox.Email{ready, large} {
		if rows := d.extractions(e); len(rows) != 1 || rows[0].Status != inbox.ExtractionOK || rows[0].By != "user_1" {
			t.Errorf("extraction of %s: %+v", e.ID, rows)
		}
	}
	// Another version replaces what an older one found, and never the other way.
	d.template("invoice", "Total")
	j = d.start(inbox.KindExtract)
	_, err = d.store.UpdateJob(t.Context(), wsID, j.ID, inbox.Act{}, func(j *inbox.Job) error { j.Params = params; return nil })
	d.must(err)
	d.must(d.worker.Handle(t.Context(), j.ID, 1))
	rows := d.extractions(ready)
	if len(rows) != 1 || rows[0].Version != 2 || string(rows[0].Data) != `{"number":"12,50 EUR"}` {
		t.Errorf("by the new version: %+v", rows)
	}
	old := rows[0]
	old.Version, old.Data = 1, json.RawMessage(`{}`)
	d.must(d.store.PutExtraction(t.Context(), old))
	if rows := d.extractions(ready); rows[0].Version != 2 {
		t.Errorf("an old version won: %+v", rows)
	}
}

func TestExtractionJobWithoutItsTemplate(t *testing.T) {
	d := newDesk(t)
	j := d.start(inbox.KindExtract)
	_, err := d.store.UpdateJob(t.Context(), wsID, j.ID, inbox.Act{}, func(j *inbox.Job) error {
		j.Params = json.RawMessage(`{"template":"gone","emails":["email_00000000000000000000000001"]}`)
		return nil
	})
	d.must(err)
	d.must(d.worker.Handle(t.Context(), j.ID, 1))
	if j = d.job(j.ID); j.Status != inbox.JobFailed || j.Error.Kind != "not_found" {
		t.Errorf("job %+v", j)
	}
}

package pipeline_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/pipeline"
)

const rawMail = "From: Ana <ana@remote.test>\r\nSubject: Ignore <all> previous\r\n\r\nCode 482913\r\n"

// post is an office with one mail, read by a parser that a test can teach.
type post struct {
	*office
	read     func(raw []byte) (pipeline.Reading, error)
	entries  []inbox.AllowedSender
	policy   inbox.SenderPolicy
	mail     string
	notified []string
}

func (p *post) Inbox(context.Context, string, string) (inbox.Inbox, error) {
	return inbox.Inbox{ID: inboxID, SenderPolicy: p.policy, OnUnlisted: inbox.UnlistedQuarantine}, nil
}

func (p *post) SendersFor(context.Context, string, string, string) ([]inbox.AllowedSender, error) {
	return p.entries, nil
}

func (p *post) HitSender(context.Context, string, string, string) {}

func (p *post) Authorized(_ context.Context, j inbox.Job) error {
	if j.Creator.Subject != "user_1" {
		return apperr.New(apperr.Forbidden, "grant_revoked", "Revoked.")
	}
	return nil
}

// reading is what the first version of the parser finds.
func reading(subject string, files ...string) pipeline.Reading {
	r := pipeline.Reading{
		Content: inbox.Content{Subject: subject, From: []inbox.Address{{Name: "Ana", Address: "ana@remote.test"}}, MessageID: "m1@remote.test"},
		Body:    inbox.Body{Text: "text of " + subject},
	}
	for _, f := range files {
		r.Files = append(r.Files, pipeline.File{Meta: inbox.Attachment{Kind: "file", Filename: f}, Data: []byte(f)})
	}
	return r
}

func newPost(t *testing.T) *post {
	t.Helper()
	p := &post{office: newOffice(t, nil), policy: inbox.PolicyOpen}
	p.read = func([]byte) (pipeline.Reading, error) { return reading("first", "a.pdf", "b.pdf"), nil }
	p.deps.Parse = func(_ context.Context, raw []byte) (pipeline.Reading, error) { return p.read(raw) }
	p.deps.Senders, p.deps.Reprocess, p.deps.Authority = p, p.store, p
	p.deps.Notify = func(_ context.Context, e inbox.Email, job string) error {
		p.notified = append(p.notified, job+" "+e.Content.Subject)
		return nil
	}
	p.worker = p.newWorker()
	p.mail = p.receive(rawMail)
	return p
}

// receive accepts and processes one mail.
func (p *post) receive(raw string) string {
	p.t.Helper()
	ctx := p.t.Context()
	id, err := inbox.NewID("email", p.now(), bytes.NewReader(sha256.New().Sum([]byte(raw))[:10]))
	p.must(err)
	sum := sha256.Sum256([]byte(raw))
	key := "raw/" + strings.ToLower(id) + ".eml"
	p.must(p.blobs.Put(ctx, key, strings.NewReader(raw), int64(len(raw))))
	e := inbox.Email{
		ID: id, Organization: orgID, Workspace: wsID, Inbox: inboxID, Status: inbox.StatusReceived, ReceivedAt: p.now(), UpdatedAt: p.now(), Version: 1,
		Size: int64(len(raw)), RawSHA256: hex.EncodeToString(sum[:]), RawKey: key,
		Envelope: inbox.Envelope{From: "ana@remote.test", To: "in@acme.test", RemoteIP: "192.0.2.1"},
		Warnings: []inbox.Warning{{Code: "bare_lf", Detail: "1 line feed"}},
	}
	p.must(p.store.FanOut(ctx, inbox.Intake{ID: "intake_" + id[6:]}, []inbox.Email{e}))
	p.must(p.worker.Handle(ctx, id, 1))
	return id
}

func (p *post) email() (inbox.Email, *inbox.Body) {
	p.t.Helper()
	e, b, err := p.store.Email(p.t.Context(), wsID, p.mail, true)
	p.must(err)
	return e, b
}

func (p *post) change(f func(*inbox.Email)) {
	p.t.Helper()
	_, err := p.store.UpdateEmail(p.t.Context(), wsID, p.mail, inbox.Act{}, func(e *inbox.Email) error { f(e); e.Version++; return nil })
	p.must(err)
}

func (p *post) begin(params inbox.ReprocessParams) inbox.Job {
	p.t.Helper()
	if params.Stages == nil {
		params.Stages = inbox.ReprocessStages()
	}
	encoded, err := json.Marshal(params)
	p.must(err)
	j := p.start(inbox.KindReprocess)
	j, err = p.store.UpdateJob(p.t.Context(), wsID, j.ID, inbox.Act{}, func(j *inbox.Job) error {
		j.Target, j.Params = p.mail, encoded
		return nil
	})
	p.must(err)
	return j
}

func (p *post) again(params inbox.ReprocessParams) (inbox.Job, pipeline.Reprocessed) {
	p.t.Helper()
	j := p.begin(params)
	p.must(p.worker.Handle(p.t.Context(), j.ID, 1))
	j = p.job(j.ID)
	var r pipeline.Reprocessed
	if len(j.Result) > 0 {
		p.must(json.Unmarshal(j.Result, &r))
	}
	return j, r
}

func (p *post) attachments() []string {
	p.t.Helper()
	e, _ := p.email()
	rows, _, err := p.store.Attachments(p.t.Context(), inbox.AttachmentRange{Workspace: wsID, Inbox: inboxID, Email: inbox.Position(e.ReceivedAt, e.ID), Limit: 50})
	p.must(err)
	var names []string
	for _, r := range rows {
		names = append(names, r.Filename)
		if _, err := p.store.Attachment(p.t.Context(), wsID, r.ID); err != nil {
			p.t.Errorf("%s by id: %v", r.Filename, err)
		}
	}
	return names
}

func TestReprocessThatFindsTheSame(t *testing.T) {
	p := newPost(t)
	before, _ := p.email()
	j, r := p.again(inbox.ReprocessParams{})
	after, _ := p.email()
	if j.Status != inbox.JobSucceeded || len(r.Changed) != 0 || r.Email != p.mail || r.Notified || len(p.notified) != 0 || p.pending(j.ID) {
		t.Errorf("%+v: %s", j, j.Result)
	}
	if after.Version != before.Version || !after.UpdatedAt.Equal(before.UpdatedAt) || r.Old.Version != r.New.Version || after.Thread != before.Thread {
		t.Errorf("before %+v\nafter %+v", before, after)
	}
}

// A better parser: content, body and attachments follow it; what people decided stays; the diff names members and quotes nothing.
func TestReprocessWithABetterParser(t *testing.T) {
	p := newPost(t)
	p.change(func(e *inbox.Email) {
		e.Labels, e.Category, e.HandledAt = []string{"mine"}, "invoices", p.now()
	})
	before, _ := p.email()
	p.read = func([]byte) (pipeline.Reading, error) {
		r := reading("Ignore <all> previous", "c.pdf")
		r.Flags, r.Codes = []string{"list"}, []inbox.Code{{Value: "482913", Kind: "otp", Confidence: 1}}
		return r, nil
	}
	j, r := p.again(inbox.ReprocessParams{})
	after, body := p.email()
	want := []string{"subject", "flags", "codes", "text", "attachments"}
	if j.Status != inbox.JobSucceeded || !slices.Equal(r.Changed, want) || r.New.Version != before.Version+1 || r.New.Codes != 1 || r.Old.Attachments != 2 || r.New.Attachments != 1 {
		t.Errorf("%+v: %s", j.Error, j.Result)
	}
	for _, secret := range []string{"Ignore", "482913", "remote.test", ".pdf", "text of"} {
		if bytes.Contains(j.Result, []byte(secret)) {
			t.Errorf("the result quotes %s: %s", secret, j.Result)
		}
	}
	if after.Content.Subject != "Ignore <all> previous" || body.Text != "text of Ignore <all> previous" || after.Version != before.Version+1 || after.Thread != before.Thread {
		t.Errorf("%+v %+v", after, body)
	}
	if !slices.Equal(after.Labels, []string{"mine"}) || after.Category != "invoices" || after.HandledAt.IsZero() || after.Warnings[0].Code != "bare_lf" {
		t.Errorf("what was decided is gone: %+v", after)
	}
	if got := p.attachments(); !slices.Equal(got, []string{"c.pdf"}) {
		t.Errorf("attachments %v", got)
	}
	rows, _, err := p.store.Emails(t.Context(), inbox.EmailRange{Workspace: wsID, Limit: 10})
	if err != nil || len(rows) != 1 || rows[0].Subject != "Ignore <all> previous" || rows[0].Version != after.Version {
		t.Errorf("list %+v, %v", rows, err)
	}
}

// Quarantine: what a person released stays released, what is held is let go by a person alone, and what arrived before a rule is held
// back by it now.
func TestReprocessAndQuarantine(t *testing.T) {
	listed := func(p *post) { p.policy = inbox.PolicyListed }
	for name, c := range map[string]struct {
		prepare func(*post)
		stages  []string
		status  inbox.Status
		reason  string
	}{
		"now unlisted":         {listed, nil, inbox.StatusQuarantined, inbox.HeldUnlisted},
		"content alone":        {listed, []string{inbox.StageContent}, inbox.StatusProcessed, ""},
		"released":             {func(p *post) { listed(p); p.change(func(e *inbox.Email) { e.ReleasedAt = p.now() }) }, nil, inbox.StatusProcessed, ""},
		"held and now welcome": {func(p *post) { p.change(func(e *inbox.Email) { e.Status, e.Reason = inbox.StatusQuarantined, "x" }) }, nil, inbox.StatusQuarantined, "x"},
		"held for another reason": {func(p *post) {
			listed(p)
			p.change(func(e *inbox.Email) { e.Status, e.Reason = inbox.StatusQuarantined, "x" })
		}, nil, inbox.StatusQuarantined, inbox.HeldUnlisted},
		"failed the first time": {func(p *post) {
			p.change(func(e *inbox.Email) { e.Status, e.Reason = inbox.StatusFailed, "parse_timeout" })
		}, nil, inbox.StatusProcessed, ""},
		"failed, senders asked": {func(p *post) {
			p.change(func(e *inbox.Email) { e.Status, e.Reason, e.Content = inbox.StatusFailed, "x", inbox.Content{} })
		}, []string{inbox.StageSenders}, inbox.StatusProcessed, ""},
		"failed, and now unlisted": {func(p *post) { listed(p); p.change(func(e *inbox.Email) { e.Status = inbox.StatusFailed }) }, nil, inbox.StatusQuarantined, inbox.HeldUnlisted},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPost(t)
			c.prepare(p)
			j, _ := p.again(inbox.ReprocessParams{Stages: c.stages})
			e, _ := p.email()
			if j.Status != inbox.JobSucceeded || e.Status != c.status || e.Reason != c.reason || e.Content.Subject != "first" {
				t.Errorf("%s %+v: %s %q %q", j.Status, j.Error, e.Status, e.Reason, e.Content.Subject)
			}
		})
	}
}

// What can't be read again stays as it was.
func TestReprocessThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(*post)
		code    string
	}{
		"raw missing": {func(p *post) { e, _ := p.email(); p.must(p.blobs.Delete(p.t.Context(), e.RawKey)) }, "raw_missing"},
		"raw damaged": {func(p *post) {
			e, _ := p.email()
			p.must(p.blobs.Delete(p.t.Context(), e.RawKey))
			p.must(p.blobs.Put(p.t.Context(), e.RawKey, strings.NewReader("other"), 5))
		}, "raw_damaged"},
		"parser refuses": {func(p *post) {
			p.read = func([]byte) (pipeline.Reading, error) { return pipeline.Reading{}, errors.New("s3cr3t") }
		}, "unreadable"},
		"parser panics": {func(p *post) { p.read = func([]byte) (pipeline.Reading, error) { panic("s3cr3t") } }, "parse_panic"},
		"deleted":       {func(p *post) { p.change(func(e *inbox.Email) { e.DeletedAt = p.now() }) }, "email_deleted"},
		"purged":        {func(p *post) { p.mail = "email_01J00000000000000000000000" }, "not_found"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPost(t)
			own := p.mail
			c.prepare(p)
			j, _ := p.again(inbox.ReprocessParams{Notify: true})
			p.mail = own
			e, body := p.email()
			if j.Status != inbox.JobFailed || j.Error.Code != c.code || strings.Contains(j.Error.Public, "s3cr3t") || len(p.notified) != 0 {
				t.Errorf("%s %+v", j.Status, j.Error)
			}
			if e.Status != inbox.StatusProcessed || e.Content.Subject != "first" || body.Text != "text of first" {
				t.Errorf("the mail changed: %+v", e)
			}
		})
	}
}

// Deleted while it is read: nothing of the new reading is stored.
func TestReprocessDeletedMeanwhile(t *testing.T) {
	p := newPost(t)
	p.read = func([]byte) (pipeline.Reading, error) {
		p.change(func(e *inbox.Email) { e.DeletedAt = p.now() })
		return reading("second"), nil
	}
	j, _ := p.again(inbox.ReprocessParams{})
	if e, _ := p.email(); j.Status != inbox.JobFailed || j.Error.Code != "email_deleted" || e.Content.Subject != "first" || e.DeletedAt.IsZero() {
		t.Errorf("%+v, %s", j.Error, e.Content.Subject)
	}
}

// A label that is set while the mail is read stays, and a cancellation while it is read wins.
func TestReprocessRaces(t *testing.T) {
	p := newPost(t)
	once := sync.Once{}
	p.read = func([]byte) (pipeline.Reading, error) {
		once.Do(func() { p.change(func(e *inbox.Email) { e.Labels = []string{"late"} }) })
		return reading("second"), nil
	}
	if j, _ := p.again(inbox.ReprocessParams{}); j.Status != inbox.JobSucceeded {
		t.Fatalf("%+v", j.Error)
	}
	if e, _ := p.email(); !slices.Equal(e.Labels, []string{"late"}) || e.Content.Subject != "second" {
		t.Errorf("%+v", e)
	}
	j := p.begin(inbox.ReprocessParams{})
	p.read = func([]byte) (pipeline.Reading, error) {
		_, err := p.store.UpdateJob(t.Context(), wsID, j.ID, inbox.Act{}, func(j *inbox.Job) error { j.Finish(inbox.JobCanceled, p.now()); return nil })
		p.must(err)
		return reading("third"), nil
	}
	p.must(p.worker.Handle(t.Context(), j.ID, 1))
	if e, _ := p.email(); p.job(j.ID).Status != inbox.JobCanceled || e.Content.Subject != "second" {
		t.Errorf("%s, %s", p.job(j.ID).Status, e.Content.Subject)
	}
}

// Many jobs about one mail at once, each in a process of its own: all end, and the mail is whole.
func TestReprocessAtOnce(t *testing.T) {
	p := newPost(t)
	p.read = func([]byte) (pipeline.Reading, error) { return reading("second", "z.pdf"), nil }
	var team sync.WaitGroup
	var jobs []inbox.Job
	for range 4 {
		j, w := p.begin(inbox.ReprocessParams{}), p.newWorker()
		jobs = append(jobs, j)
		team.Go(func() {
			if err := w.Handle(t.Context(), j.ID, 1); err != nil {
				t.Errorf("%v", err)
			}
		})
	}
	team.Wait()
	changed := 0
	for _, j := range jobs {
		var r pipeline.Reprocessed
		j = p.job(j.ID)
		p.must(json.Unmarshal(j.Result, &r))
		changed += min(len(r.Changed), 1)
	}
	if e, body := p.email(); e.Content.Subject != "second" || body.Text != "text of second" || !slices.Equal(p.attachments(), []string{"z.pdf"}) || changed == 0 {
		t.Errorf("%+v, %d jobs changed it", e, changed)
	}
}

func TestReprocessNotifies(t *testing.T) {
	p := newPost(t)
	p.read = func([]byte) (pipeline.Reading, error) { return reading("second"), nil }
	j, r := p.again(inbox.ReprocessParams{Notify: true})
	if !r.Notified || !slices.Equal(p.notified, []string{j.ID + " second"}) {
		t.Errorf("%s, %v", j.Result, p.notified)
	}
	p.read = func([]byte) (pipeline.Reading, error) { return reading("third"), nil }
	j = p.begin(inbox.ReprocessParams{Notify: true})
	_, err := p.store.UpdateJob(t.Context(), wsID, j.ID, inbox.Act{}, func(j *inbox.Job) error { j.Creator.Subject = "user_gone"; return nil })
	p.must(err)
	p.must(p.worker.Handle(t.Context(), j.ID, 1))
	if e, _ := p.email(); p.job(j.ID).Error == nil || p.job(j.ID).Error.Code != "grant_revoked" || len(p.notified) != 1 || e.Content.Subject != "second" {
		t.Errorf("revoked meanwhile: %+v, %v", p.job(j.ID), p.notified)
	}
}

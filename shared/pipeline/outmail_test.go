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
	"sync/atomic"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/mail"
	"github.com/buzon-mail/buzon/shared/pipeline"
	"github.com/buzon-mail/buzon/shared/pipeline/parsing"
)

// outlet notes what leaves and answers what a test wants.
type outlet struct {
	sent []inbox.Outgoing
	say  func(m inbox.Outgoing) error
}

func (o *outlet) Send(_ context.Context, m inbox.Outgoing) error {
	if o.say != nil {
		if err := o.say(m); err != nil {
			return err
		}
	}
	o.sent = append(o.sent, m)
	return nil
}

// authority refuses with what it is.
type authority struct{ err error }

func (a *authority) Authorized(context.Context, inbox.Job) error { return a.err }

// bureau is an office with an inbox, people, a way out, and imports.
type bureau struct {
	*office
	out    *outlet
	terms  *authority
	intake *pipeline.Intake
}

func newBureau(t *testing.T) *bureau {
	t.Helper()
	b := &bureau{office: newOffice(t, nil), out: &outlet{}, terms: &authority{}}
	w := &world{store: b.store}
	b.must(w.seed(t.Context()))
	var err error
	b.intake, err = pipeline.NewIntake(pipeline.IntakeDeps{
		Recipients: b.store, Outbox: b.store, Blobs: b.blobs, Queue: b.queue, Logger: b.deps.Logger, Clock: b.now, Known: b.store,
	}, pipeline.IntakeOptions{})
	b.must(err)
	b.deps.Parse = parsing.Mail(mail.Limits{})
	b.deps.Authenticate = parsing.Senders(nil)
	b.deps.Senders, b.deps.Authority = b.store, b.terms
	b.deps.Importing = &pipeline.Importing{
		Uploads: b.store, Inboxes: b.store, Blobs: b.blobs, Intake: b.intake, Cut: parsing.Cut, Dated: parsing.ImportedAt,
	}
	b.deps.Forward = &pipeline.Forwarding{Store: b.store, Outlet: b.out}
	b.worker = b.newWorker()
	return b
}

// started stores a job of a kind.
func (b *bureau) started(kind, target string, params any) inbox.Job {
	b.t.Helper()
	text, err := json.Marshal(params)
	b.must(err)
	id, err := inbox.NewID("job", b.now(), rand.Reader)
	b.must(err)
	j := inbox.Job{
		ID: id, Organization: orgID, Workspace: wsID, Kind: kind, Target: target, Status: inbox.JobQueued, CreatedAt: b.now(), UpdatedAt: b.now(),
		ExpiresAt: b.now().Add(30 * 24 * time.Hour), Version: 1, Params: text, Creator: inbox.JobCreator{Subject: "user_1", Role: inbox.RoleOperator},
	}
	b.must(b.store.StartJob(b.t.Context(), j, inbox.Act{}))
	return j
}

// done runs a job until it is over, as a queue would, and returns it.
func (b *bureau) done(id string) inbox.Job {
	b.t.Helper()
	for range 50 {
		_ = b.worker.Handle(b.t.Context(), id, 1)
		if j := b.job(id); j.Status.Over() {
			return j
		}
		b.wait(2 * time.Minute)
	}
	b.t.Fatalf("%s has no end: %+v", id, b.job(id))
	return inbox.Job{}
}

func (b *bureau) person(name string, proven bool, role inbox.Role) inbox.ForwardTarget {
	b.t.Helper()
	id, err := inbox.NewID("user", b.now(), rand.Reader)
	b.must(err)
	m := inbox.Member{User: id, Email: name + "@acme.test", Organization: orgID, Role: role}
	if proven {
		m.Proven = m.Email
	}
	b.must(b.store.CreateMember(b.t.Context(), m))
	return inbox.ForwardTarget{User: id, Address: m.Email}
}

const helloMail = "From: Eve <eve@remote.test>\r\nTo: agent@acme.test\r\nSubject: Hello\r\nDate: Mon, 30 Nov 2026 09:15:03 +0000\r\nMessage-ID: <1@remote.test>\r\n\r\nhello there\r\n"

// letterIn has a mail come in and be processed.
func (b *bureau) letterIn(raw string) inbox.Email {
	b.t.Helper()
	to, err := b.store.Recipient(b.t.Context(), "agent@acme.test")
	b.must(err)
	id, err := b.intake.Accept(b.t.Context(), inbox.Incoming{From: "eve@remote.test", RemoteIP: "192.0.2.1", Recipients: []inbox.Recipient{to}, Body: strings.NewReader(raw)})
	b.must(err)
	in, err := b.store.Intake(b.t.Context(), id)
	b.must(err)
	b.must(b.worker.Handle(b.t.Context(), id, 1))
	e, _, err := b.store.Email(b.t.Context(), wsID, in.Recipients[0].Email, false)
	b.must(err)
	return e
}

func TestForward(t *testing.T) {
	b := newBureau(t)
	e := b.letterIn(helloMail)
	ana, berta := b.person("ana", true, inbox.RoleViewer), b.person("berta", true, inbox.RoleViewer)
	j := b.started(inbox.KindForward, e.ID, inbox.ForwardParams{To: []inbox.ForwardTarget{ana, berta}, Note: "look", Files: true})
	got := b.done(j.ID)
	if got.Status != inbox.JobSucceeded || got.Progress != (inbox.JobProgress{Done: 2, Total: 2}) || len(b.out.sent) != 2 {
		t.Fatalf("%+v %s", got, got.Result)
	}
	for i, m := range b.out.sent {
		if m.Recipient != []string{ana.Address, berta.Address}[i] || m.ID != j.ID || m.From.Address != "agent@acme.test" || string(m.Original) != helloMail ||
			m.Subject != "Fwd: Hello" || !strings.HasPrefix(m.Text, "look\n\nForwarded from the inbox agent@acme.test") || !strings.Contains(m.Text, "unverified") || !m.Date.Equal(j.CreatedAt) {
			t.Errorf("%+v", m)
		}
	}
	_ = b.worker.Handle(t.Context(), j.ID, 1)
	if len(b.out.sent) != 2 {
		t.Error("a redelivery sent it again")
	}
	bare := b.started(inbox.KindForward, e.ID, inbox.ForwardParams{To: []inbox.ForwardTarget{ana}})
	if got := b.done(bare.ID); got.Status != inbox.JobSucceeded || b.out.sent[2].Original != nil || !strings.Contains(b.out.sent[2].Text, "hello there") {
		t.Errorf("%s %+v", got.Result, b.out.sent[2])
	}
}

// What keeps a copy from going, when it is about to: nothing was sent, and the job says why.
func TestForwardRefusedByTheWorker(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b *bureau, e inbox.Email, to inbox.ForwardTarget)
		code   string
	}{
		"grant revoked": {func(b *bureau, _ inbox.Email, _ inbox.ForwardTarget) {
			b.terms.err = apperr.New(apperr.Forbidden, "grant_revoked", "No.")
		}, "grant_revoked"},
		"mail deleted": {func(b *bureau, e inbox.Email, _ inbox.ForwardTarget) {
			b.alter(e, func(e *inbox.Email) { e.DeletedAt = b.now() })
		}, "not_found"},
		"mail quarantined": {func(b *bureau, e inbox.Email, _ inbox.ForwardTarget) {
			b.alter(e, func(e *inbox.Email) { e.Status = inbox.StatusQuarantined })
		}, "quarantined"},
		"sender blocked": {func(b *bureau, e inbox.Email, _ inbox.ForwardTarget) {
			b.alter(e, func(e *inbox.Email) { e.Trust.Level = inbox.Blocked })
		}, "sender_blocked"},
		"inbox deleted": {func(b *bureau, _ inbox.Email, _ inbox.ForwardTarget) {
			_, err := b.store.UpdateInbox(b.t.Context(), wsID, inboxID, inbox.Act{}, func(in *inbox.Inbox) error { in.DeletedAt = b.now(); return nil })
			b.must(err)
		}, "not_found"},
		"member without a role": {func(b *bureau, _ inbox.Email, to inbox.ForwardTarget) {
			b.must(b.store.CreateMember(b.t.Context(), inbox.Member{User: to.User, Email: to.Address, Organization: orgID, Proven: to.Address}))
		}, "forward_refused"},
		"address not proven": {func(b *bureau, _ inbox.Email, to inbox.ForwardTarget) {
			b.must(b.store.CreateMember(b.t.Context(), inbox.Member{User: to.User, Email: to.Address, Organization: orgID, Role: inbox.RoleOwner}))
		}, "forward_refused"},
		"bytes gone": {func(b *bureau, e inbox.Email, _ inbox.ForwardTarget) { b.must(b.blobs.Delete(b.t.Context(), e.RawKey)) }, "raw_missing"},
		"relay says no": {func(b *bureau, _ inbox.Email, _ inbox.ForwardTarget) {
			b.out.say = func(inbox.Outgoing) error { return apperr.New(apperr.Conflict, "recipient_refused", "No.") }
		}, "forward_refused"},
		"relay is broken": {func(b *bureau, _ inbox.Email, _ inbox.ForwardTarget) {
			b.out.say = func(inbox.Outgoing) error { return errors.New("s3cret") }
		}, "internal"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBureau(t)
			e, to := b.letterIn(helloMail), b.person("ana", true, inbox.RoleViewer)
			j := b.started(inbox.KindForward, e.ID, inbox.ForwardParams{To: []inbox.ForwardTarget{to}, Files: true})
			c.change(b, e, to)
			got := b.done(j.ID)
			if got.Status != inbox.JobFailed || got.Error.Code != c.code || len(b.out.sent) != 0 || strings.Contains(got.Error.Public, "s3cret") {
				t.Errorf("%+v %+v, %d sent", got.Status, got.Error, len(b.out.sent))
			}
		})
	}
}

func (b *bureau) alter(e inbox.Email, do func(*inbox.Email)) {
	b.t.Helper()
	_, err := b.store.UpdateEmail(b.t.Context(), wsID, e.ID, inbox.Act{}, func(e *inbox.Email) error { do(e); return nil })
	b.must(err)
}

// A way out that is closed for a while delays a copy; those that went are not sent again; one refusal does not stop the others.
func TestForwardComesAgain(t *testing.T) {
	b := newBureau(t)
	e := b.letterIn(helloMail)
	to := []inbox.ForwardTarget{b.person("ana", true, inbox.RoleViewer), b.person("berta", true, inbox.RoleViewer), b.person("carla", true, inbox.RoleViewer)}
	calls := map[string]int{}
	b.out.say = func(m inbox.Outgoing) error {
		calls[m.Recipient]++
		switch {
		case m.Recipient == "berta@acme.test" && calls[m.Recipient] < 4:
			return apperr.New(apperr.Unavailable, "relay", "Away.")
		case m.Recipient == "carla@acme.test":
			return apperr.New(apperr.Conflict, "recipient_refused", "No.")
		}
		return nil
	}
	got := b.done(b.started(inbox.KindForward, e.ID, inbox.ForwardParams{To: to, Files: true}).ID)
	var result pipeline.Forwarded
	b.must(json.Unmarshal(got.Result, &result))
	want := []pipeline.ForwardedTo{{User: to[0].User, Status: "sent"}, {User: to[1].User, Status: "sent"}, {User: to[2].User, Status: "refused", Code: "recipient_refused"}}
	if got.Status != inbox.JobSucceeded || !slices.Equal(result.Sent, want) || calls["ana@acme.test"] != 1 || len(b.out.sent) != 2 {
		t.Errorf("%s %v", got.Result, calls)
	}
}

// upload puts a file and starts its import.
func (b *bureau) upload(content []byte, format string, notify bool) inbox.Job {
	b.t.Helper()
	id, err := inbox.NewID("upload", b.now(), rand.Reader)
	b.must(err)
	sum := sha256.Sum256(content)
	u := inbox.Upload{
		ID: id, Organization: orgID, Workspace: wsID, Purpose: inbox.PurposeImport, Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:]),
		Key: "upload/" + strings.ToLower(id), CreatedAt: b.now(), ExpiresAt: b.now().Add(inbox.UploadInUse),
	}
	b.must(b.store.CreateUpload(b.t.Context(), u, inbox.Act{}))
	b.must(b.blobs.Put(b.t.Context(), u.Key, bytes.NewReader(content), u.Size))
	return b.started(inbox.KindImport, inboxID, inbox.ImportParams{Inbox: inboxID, Upload: id, Format: format, Notify: notify})
}

func (b *bureau) mails() []inbox.Email {
	b.t.Helper()
	list, err := (&world{store: b.store}).mails(b.t.Context())
	b.must(err)
	var all []inbox.Email
	for _, s := range list {
		e, _, err := b.store.Email(b.t.Context(), wsID, s.ID, false)
		b.must(err)
		all = append(all, e)
	}
	return all
}

func imported(t *testing.T, j inbox.Job) inbox.ImportResult {
	t.Helper()
	var r inbox.ImportResult
	if j.Status != inbox.JobSucceeded {
		t.Fatalf("%s %+v", j.Status, j.Error)
	}
	if err := json.Unmarshal(j.Result, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestImportOneMail(t *testing.T) {
	b := newBureau(t)
	signed := "Authentication-Results: acme.test; dkim=pass\nDKIM-Signature: v=1; a=rsa-sha256; d=remote.test; s=x; h=from; bh=x; b=x\n" + strings.ReplaceAll(strings.Replace(helloMail, "2026", "2019", 1), "\r\n", "\n")
	r := imported(t, b.done(b.upload([]byte(signed), inbox.FormatMail, false).ID))
	all := b.mails()
	if r.Imported != 1 || r.Duplicates+r.Refused != 0 || len(all) != 1 || !slices.Equal(r.Emails, []string{all[0].ID}) {
		t.Fatalf("%+v, %d mails", r, len(all))
	}
	e := all[0]
	if e.Status != inbox.StatusProcessed || !e.Envelope.Imported || !e.Quiet || !e.ReceivedAt.Equal(time.Date(2019, 11, 30, 9, 15, 3, 0, time.UTC)) ||
		!inbox.IDTime(e.ID).Equal(e.ReceivedAt) || e.Content.Subject != "Hello" || e.Trust.Level != inbox.Unverified {
		t.Errorf("%+v", e)
	}
	for _, c := range e.Auth {
		if c.Result != "unavailable" {
			t.Errorf("%+v vouches for what a file holds", c)
		}
	}
	if len(e.Auth) != 3 {
		t.Errorf("auth %+v", e.Auth)
	}
	again := imported(t, b.done(b.upload([]byte(signed), inbox.FormatMail, false).ID))
	if again.Duplicates != 1 || again.Imported != 0 || len(b.mails()) != 1 {
		t.Errorf("%+v", again)
	}
	if notified := b.letterFromFile(t); notified.Quiet {
		t.Error("asked to be told, and quiet")
	}
}

// What was imported goes for good as any other mail does, with its bytes; imported once more, it is there again.
func TestImportedMailIsPurged(t *testing.T) {
	b := newBureau(t)
	keeper, err := pipeline.NewRetention(pipeline.RetentionDeps{Store: b.store, Blobs: b.blobs, Logger: b.deps.Logger, Clock: b.now}, pipeline.RetentionOptions{})
	b.must(err)
	to, err := b.store.Recipient(t.Context(), "agent@acme.test")
	b.must(err)
	take := func() inbox.Imported {
		t.Helper()
		raw := []byte(helloMail)
		got, err := b.intake.Import(t.Context(), inbox.ImportedMail{To: to, Raw: raw, Source: "file", ReceivedAt: parsing.ImportedAt(raw, b.now())})
		b.must(err)
		if got.Intake != "" {
			b.must(b.worker.Handle(t.Context(), got.Intake, 1))
		}
		return got
	}
	first := take()
	if again := take(); again.Email != first.Email || again.Intake != "" {
		t.Fatalf("%+v, then %+v", first, again)
	}
	e, _, err := b.store.Email(t.Context(), wsID, first.Email, false)
	b.must(err)
	_, err = b.store.UpdateEmail(t.Context(), wsID, e.ID, inbox.Act{}, func(e *inbox.Email) error {
		e.DeletedAt, e.PurgeAt = b.now(), inbox.PurgeAt(b.now())
		return nil
	})
	b.must(err)
	b.wait(31 * 24 * time.Hour)
	for range 3 {
		err = keeper.Run(t.Context())
		b.must(err)
		b.wait(2 * time.Hour)
	}
	if _, _, err := b.store.Email(t.Context(), wsID, e.ID, false); !apperr.Is(err, apperr.NotFound) {
		t.Fatalf("it was not purged: %v", err)
	}
	if _, err := b.blobs.Get(t.Context(), e.RawKey, 1<<20); err == nil {
		t.Error("its bytes stay")
	}
	anew := take()
	if anew.Email == first.Email || anew.Intake == "" {
		t.Fatalf("imported anew: %+v", anew)
	}
	e, _, err = b.store.Email(t.Context(), wsID, anew.Email, false)
	if err != nil || e.Status != inbox.StatusProcessed {
		t.Errorf("%+v, %v", e, err)
	}
}

// Rules judge what is imported, and notify of it only where the import asked for that.
func TestRulesOnImportedMail(t *testing.T) {
	b := newBureau(t)
	b.deps.Rules, b.deps.Extractor, b.deps.Extractions = b.store, inbox.NewLocators(), b.store
	b.worker = b.newWorker()
	(&desk{office: b.office}).rule("one", "hello", inbox.Action{Type: inbox.ActNotify, Value: "erp"}, inbox.Action{Type: inbox.ActAddLabel, Value: "seen"})
	for name, notify := range map[string]bool{"quiet": false, "asked for": true} {
		raw := strings.Replace(helloMail, "<1@", "<"+name[:1]+"@", 1)
		r := imported(t, b.done(b.upload([]byte(raw), inbox.FormatMail, notify).ID))
		e, _, err := b.store.Email(t.Context(), wsID, r.Emails[0], false)
		b.must(err)
		if !slices.Contains(e.Labels, "seen") || (len(e.Notify) > 0) != notify {
			t.Errorf("%s: labels %v, notify %v", name, e.Labels, e.Notify)
		}
	}
}

func (b *bureau) letterFromFile(t *testing.T) inbox.Email {
	t.Helper()
	r := imported(t, b.done(b.upload([]byte(helloMail), inbox.FormatMail, true).ID))
	e, _, err := b.store.Email(t.Context(), wsID, r.Emails[0], false)
	b.must(err)
	return e
}

// mailbox is an mbox file of n mails, hostile ones among them: the 10th is too large, the 11th empty, the 12th no mail, the 13th the 5th
// once more, the 14th a mail of 60 open levels.
func mailbox(n int) []byte {
	var f bytes.Buffer
	body := func(i int) string {
		return fmt.Sprintf("From: a%d@remote.test\nSubject: mail %d\nMessage-ID: <%d@remote.test>\nDate: Mon, 2 Nov 2020 10:00:00 +0000\n\n>From the start\nhello %d\n", i, i, i, i)
	}
	for i := range n {
		f.WriteString("From a@remote.test Mon Nov  2 10:00:00 2020\n")
		switch i {
		case 10:
			f.WriteString("Subject: large\n\n" + strings.Repeat(strings.Repeat("x", 1023)+"\n", 26<<10))
		case 11:
			f.WriteString("\n")
		case 12:
			f.WriteString("no header at all\nand nothing more\n")
		case 13:
			f.WriteString(body(5))
		case 14:
			for d := range 60 {
				fmt.Fprintf(&f, "Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n", d, d)
			}
		default:
			f.WriteString(body(i))
		}
		f.WriteString("\n")
	}
	return f.Bytes()
}

func TestImportMailbox(t *testing.T) {
	b := newBureau(t)
	j := b.upload(mailbox(1000), inbox.FormatMbox, false)
	got := b.done(j.ID)
	r := imported(t, got)
	if r.Imported != 996 || r.Duplicates != 1 || r.Refused != 3 || got.Progress != (inbox.JobProgress{Done: 1000, Total: 1000}) || len(r.Emails) != 100 {
		t.Errorf("%+v %+v", r, got.Progress)
	}
	if want := []inbox.ImportError{{Index: 10, Code: "too_large"}, {Index: 11, Code: "empty"}, {Index: 12, Code: "not_a_mail"}}; !slices.Equal(r.Errors, want) {
		t.Errorf("errors %+v", r.Errors)
	}
	all := b.mails()
	if len(all) != 996 {
		t.Errorf("%d mails", len(all))
	}
	for _, e := range all {
		if e.Status != inbox.StatusProcessed && e.Status != inbox.StatusFailed {
			t.Fatalf("%s is %s", e.ID, e.Status)
		}
	}
	// What was used is gone.
	var p inbox.ImportParams
	b.must(json.Unmarshal(j.Params, &p))
	if _, err := b.store.Upload(t.Context(), wsID, p.Upload); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("the upload stays: %v", err)
	}
	if _, err := b.blobs.Get(t.Context(), "upload/"+strings.ToLower(p.Upload), 1<<30); err == nil {
		t.Error("its bytes stay")
	}
}

// dying ends the context of a run after some mails were stored: the worker is killed half-way.
type dying struct {
	pipeline.Outbox
	left   *atomic.Int32 // an import stores several mails at once
	cancel context.CancelFunc
}

func (d *dying) PutIntake(ctx context.Context, in inbox.Intake) error {
	if d.left.Add(-1) == 0 {
		d.cancel()
	}
	return d.Outbox.PutIntake(ctx, in)
}

func TestImportIsKilledAndGoesOn(t *testing.T) {
	b := newBureau(t)
	j := b.upload(mailbox(200), inbox.FormatMbox, false)
	for kill := range int32(4) {
		ctx, cancel := context.WithCancel(t.Context())
		var left atomic.Int32
		left.Store(30 + kill)
		intake, err := pipeline.NewIntake(pipeline.IntakeDeps{
			Recipients: b.store, Outbox: &dying{b.store, &left, cancel}, Blobs: b.blobs, Queue: b.queue, Logger: b.deps.Logger, Clock: b.now, Known: b.store,
		}, pipeline.IntakeOptions{})
		b.must(err)
		deps := *b.deps.Importing
		deps.Intake = intake
		b.deps.Importing = &deps
		if err := b.newWorker().Handle(ctx, j.ID, 1); err == nil {
			t.Fatal("it was not killed")
		}
		cancel()
		b.wait(2 * time.Minute)
	}
	b.deps.Importing.Intake = b.intake
	b.worker = b.newWorker()
	r := imported(t, b.done(j.ID))
	if r.Imported != 196 || r.Duplicates != 1 || r.Refused != 3 {
		t.Errorf("%+v", r)
	}
	// What a killed run had stored and not processed, the outbox still has.
	ids, err := b.store.Pending(t.Context(), b.now().Add(time.Hour), 500)
	b.must(err)
	for _, id := range ids {
		b.must(b.worker.Handle(t.Context(), id, 1))
	}
	all := b.mails()
	if len(all) != 196 {
		t.Errorf("%d mails, want 196: none twice, none lost", len(all))
	}
	subjects := map[string]int{}
	for _, e := range all {
		if subjects[e.RawSHA256]++; subjects[e.RawSHA256] > 1 || e.Status == inbox.StatusReceived || e.Status == inbox.StatusProcessing {
			t.Errorf("%s: %s, %d times", e.Content.Subject, e.Status, subjects[e.RawSHA256])
		}
	}
}

func TestImportRefused(t *testing.T) {
	good := []byte("From a@remote.test Mon Nov  2 10:00:00 2020\n" + strings.ReplaceAll(helloMail, "\r\n", "\n"))
	for name, c := range map[string]struct {
		content []byte
		format  string
		change  func(b *bureau, p inbox.ImportParams)
		code    string
	}{
		"not an mbox": {[]byte(helloMail), inbox.FormatMbox, nil, "not_mbox"},
		"no mails":    {[]byte("\n\n"), inbox.FormatMbox, nil, "no_mails"},
		"nothing put": {good, inbox.FormatMbox, func(b *bureau, p inbox.ImportParams) {
			b.must(b.blobs.Delete(b.t.Context(), "upload/"+strings.ToLower(p.Upload)))
		}, "upload_missing"},
		"other bytes": {good, inbox.FormatMbox, func(b *bureau, p inbox.ImportParams) {
			b.must(b.blobs.Delete(b.t.Context(), "upload/"+strings.ToLower(p.Upload)))
			b.must(b.blobs.Put(b.t.Context(), "upload/"+strings.ToLower(p.Upload), bytes.NewReader(bytes.Replace(good, []byte("hello"), []byte("jello"), 1)), int64(len(good))))
		}, "upload_damaged"},
		"other length": {good, inbox.FormatMbox, func(b *bureau, p inbox.ImportParams) {
			b.must(b.blobs.Delete(b.t.Context(), "upload/"+strings.ToLower(p.Upload)))
			b.must(b.blobs.Put(b.t.Context(), "upload/"+strings.ToLower(p.Upload), strings.NewReader("x"), 1))
		}, "upload_damaged"},
		"inbox deleted": {good, inbox.FormatMbox, func(b *bureau, _ inbox.ImportParams) {
			_, err := b.store.UpdateInbox(b.t.Context(), wsID, inboxID, inbox.Act{}, func(in *inbox.Inbox) error { in.DeletedAt = b.now(); return nil })
			b.must(err)
		}, "inbox_deleted"},
		"upload expired": {good, inbox.FormatMbox, func(b *bureau, _ inbox.ImportParams) { b.wait(inbox.UploadInUse + time.Hour) }, "not_found"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBureau(t)
			j := b.upload(c.content, c.format, false)
			var p inbox.ImportParams
			b.must(json.Unmarshal(j.Params, &p))
			if c.change != nil {
				c.change(b, p)
			}
			if got := b.done(j.ID); got.Status != inbox.JobFailed || got.Error.Code != c.code {
				t.Errorf("%s %+v", got.Status, got.Error)
			}
			if all := b.mails(); len(all) != 0 {
				t.Errorf("%d mails", len(all))
			}
		})
	}
}

func TestSweepUploads(t *testing.T) {
	b := newBureau(t)
	j := b.upload([]byte("never used"), inbox.FormatMbox, false)
	var p inbox.ImportParams
	b.must(json.Unmarshal(j.Params, &p))
	key := "upload/" + strings.ToLower(p.Upload)
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{0, 0}, {inbox.UploadInUse, 0}, {11 * time.Minute, 1}, {0, 0}} {
		b.wait(c.after)
		if n, err := pipeline.SweepUploads(t.Context(), b.store, b.blobs, b.now(), 10); err != nil || n != c.want {
			t.Errorf("after %s: %d, %v", c.after, n, err)
		}
		if _, err := b.blobs.Get(t.Context(), key, 100); (err == nil) != (c.want == 0 && b.now().Before(j.CreatedAt.Add(inbox.UploadInUse+10*time.Minute))) {
			t.Errorf("after %s: %v", c.after, err)
		}
	}
}

func TestImportedAt(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	day := time.Date(2019, 11, 30, 9, 15, 3, 0, time.UTC)
	for name, c := range map[string]struct {
		raw  string
		want time.Time
	}{
		"date":            {"Subject: x\r\nDate: Sat, 30 Nov 2019 10:15:03 +0100\r\n\r\n", day},
		"folded":          {"DATE:\r\n Sat, 30 Nov 2019\r\n\t09:15:03 +0000\r\n\r\n", day},
		"line feeds":      {"date: Sat, 30 Nov 2019 09:15:03 +0000\n\n", day},
		"in the body":     {"Subject: x\r\n\r\nDate: Sat, 30 Nov 2019 09:15:03 +0000\r\n", now},
		"the first":       {"Date: Sat, 30 Nov 2019 09:15:03 +0000\r\nDate: Sun, 1 Dec 2019 09:15:03 +0000\r\n\r\n", day},
		"none":            {"Subject: x\r\n\r\n", now},
		"nonsense":        {"Date: tomorrow\r\n\r\n", now},
		"in the future":   {"Date: Tue, 1 Dec 2026 09:15:03 +0000\r\n\r\n", now},
		"before all mail": {"Date: Thu, 1 Jan 1970 00:00:00 +0000\r\n\r\n", now},
		"empty":           {"", now},
	} {
		if got := parsing.ImportedAt([]byte(c.raw), now); !got.Equal(c.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

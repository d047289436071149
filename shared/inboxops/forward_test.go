package inboxops_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxops"
	"github.com/buzon-mail/buzon/shared/op"
)

// uploadOf announces a file.
func uploadOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return fmt.Sprintf(`{"purpose":"import","size":%d,"sha256":"%s"}`, len(content), hex.EncodeToString(sum[:]))
}

// upload announces a file and returns its id.
func (w *world) upload(who, content string) string {
	w.t.Helper()
	return w.data(who, "POST", "/uploads", uploadOf(content), 201)["upload_id"].(string)
}

// jobs is how many jobs a workspace has.
func (w *world) jobCount(ws string) int {
	w.t.Helper()
	rows, _, err := w.store.Jobs(w.t.Context(), inbox.JobRange{Workspace: ws, Limit: 100})
	w.must(err)
	return len(rows)
}

// change alters a mail as the pipeline would have.
func (w *world) change(e inbox.Email, do func(*inbox.Email)) inbox.Email {
	w.t.Helper()
	e, err := w.store.UpdateEmail(w.t.Context(), e.Workspace, e.ID, inbox.Act{}, func(e *inbox.Email) error { do(e); return nil })
	w.must(err)
	return e
}

func TestForwardRefused(t *testing.T) {
	w := newWorld(t)
	w.jobCallers()
	v, err := inboxops.Vocabulary()
	w.must(err)
	sender := *w.callers["viewer"]
	sender.Scopes = v.Parse("emails:send")
	w.callers["sends"] = &sender
	mail, in := w.inboxWithMail()
	theirs := w.deliver(w.data("globex", "PUT", "/inboxes", `{"slug":"facturas"}`, 201), orgB, wsB)
	w.member(orgA, "acme", "unproven@acme.test", inbox.RoleOwner, false)
	w.member(orgA, "acme", "changed@acme.test", inbox.RoleOwner, false)
	out := w.member(orgA, "acme", "outside@acme.test", inbox.RoleAdmin, true)
	out.Workspaces = map[string]inbox.Role{wsA: ""}
	w.must(w.store.CreateMember(t.Context(), out))
	flagged := func(flag string) string {
		return w.change(w.deliver(in, orgA, wsA), func(e *inbox.Email) { e.Flags = []string{flag} }).ID
	}
	deleted := w.deliver(in, orgA, wsA)
	w.data("acme", "DELETE", "/emails/"+deleted.ID, "", 200)
	hidden := w.data("acme", "PUT", "/inboxes", `{"slug":"gone"}`, 201)
	gone := w.deliver(hidden, orgA, wsA)
	w.data("acme", "DELETE", "/inboxes/gone", "", 200)
	const ana = `{"to":["ana@acme.test"]}`
	many := make([]string, 11)
	for i := range many {
		many[i] = "ana@acme.test"
	}
	list, err := json.Marshal(many)
	w.must(err)
	for _, c := range []struct {
		name, who, id, body string
		status              int
		contains            string
	}{
		{"no scope", "one", mail.ID, ana, 403, "emails:send"},
		{"viewer", "sends", mail.ID, ana, 403, "role"},
		{"nobody", "nobody", mail.ID, ana, 401, ""},
		{"another tenant", "globex", mail.ID, `{"to":["ana@globex.test"]}`, 404, "no such email"},
		{"another tenant's mail", "acme", theirs.ID, ana, 404, "no such email"},
		{"another tenant's member", "acme", mail.ID, `{"to":["ana@globex.test"]}`, 400, "forward_target"},
		{"nobody's address", "acme", mail.ID, `{"to":["eve@remote.test"]}`, 400, "forward_target"},
		{"no address", "acme", mail.ID, `{"to":["ana@acme.test\r\nBcc: eve@remote.test"]}`, 400, "forward_target"},
		{"not proven", "acme", mail.ID, `{"to":["unproven@acme.test"]}`, 400, "forward_target"},
		{"not of the workspace", "acme", mail.ID, `{"to":["outside@acme.test"]}`, 400, "forward_target"},
		{"one good, one not", "acme", mail.ID, `{"to":["ana@acme.test","eve@remote.test"]}`, 400, "body.to[1]"},
		{"nobody at all", "acme", mail.ID, `{"to":[]}`, 400, "to"},
		{"too many", "acme", mail.ID, `{"to":` + string(list) + `}`, 400, "to"},
		{"long note", "acme", mail.ID, `{"to":["ana@acme.test"],"note":"` + strings.Repeat("x", 2001) + `"}`, 400, "note"},
		{"loop", "acme", flagged("loop"), ana, 409, "automatic_mail"},
		{"automatic", "acme", flagged("auto_reply"), ana, 409, "automatic_mail"},
		{"bounce", "acme", flagged("bounce"), ana, 409, "automatic_mail"},
		{"quarantined", "acme", w.hold(w.deliver(in, orgA, wsA)).ID, ana, 409, "emails_release"},
		{"blocked", "acme", w.change(w.deliver(in, orgA, wsA), func(e *inbox.Email) { e.Trust.Level = inbox.Blocked }).ID, ana, 409, "sender_blocked"},
		{"failed", "acme", w.change(w.deliver(in, orgA, wsA), func(e *inbox.Email) { e.Status = inbox.StatusFailed }).ID, ana, 409, "unreadable"},
		{"in work", "acme", w.change(w.deliver(in, orgA, wsA), func(e *inbox.Email) { e.Status = inbox.StatusProcessing }).ID, ana, 409, "being_processed"},
		{"too large", "acme", w.change(w.deliver(in, orgA, wsA), func(e *inbox.Email) { e.Size = inbox.MaxForward + 1 }).ID, ana, 413, "include_attachments false"},
		{"deleted", "acme", deleted.ID, ana, 404, "no such email"},
		{"of a deleted inbox", "acme", gone.ID, ana, 404, "no such email"},
		{"no id", "acme", "email_1", ana, 404, "nothing with this id"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := w.post(c.who, "/emails/"+c.id+"/forward", c.body, "key-"+strings.ReplaceAll(c.name, " ", "-"))
			if got.Code != c.status || !strings.Contains(got.Body.String(), c.contains) {
				t.Errorf("%d %s, want %d with %q", got.Code, got.Body, c.status, c.contains)
			}
		})
	}
	if got := w.post("acme", "/emails/"+mail.ID+"/forward", ana, ""); got.Code != 400 || !strings.Contains(got.Body.String(), "Idempotency-Key") {
		t.Errorf("without a key: %d %s", got.Code, got.Body)
	}
	if w.jobCount(wsA) != 0 || w.jobCount(wsB) != 0 {
		t.Error("a refused forward left a job")
	}
}

func TestForwardStarts(t *testing.T) {
	w := newWorld(t)
	mail, _ := w.inboxWithMail()
	released := w.change(w.hold(w.deliver(map[string]any{"id": mail.Inbox, "address": "facturas@acme.test"}, orgA, wsA)), func(e *inbox.Email) {
		e.Status, e.Reason, e.ReleasedAt = inbox.StatusProcessed, "", clock()
	})
	for i, id := range []string{mail.ID, released.ID} {
		got := w.post("acme", "/emails/"+id+"/forward", `{"to":["ANA@acme.test","ana@acme.test "],"include_attachments":false}`, fmt.Sprint("k", i))
		if got.Code != 202 {
			t.Fatalf("%d %s", got.Code, got.Body)
		}
	}
	again := w.post("acme", "/emails/"+mail.ID+"/forward", `{"to":["ANA@acme.test","ana@acme.test "],"include_attachments":false}`, "k0")
	if again.Code != 202 || w.jobCount(wsA) != 2 {
		t.Errorf("the same key: %d, %d jobs", again.Code, w.jobCount(wsA))
	}
	if other := w.post("acme", "/emails/"+mail.ID+"/forward", `{"to":["ana@acme.test"]}`, "k0"); other.Code != 409 {
		t.Errorf("the same key for another act: %d", other.Code)
	}
	rows, _, err := w.store.Jobs(t.Context(), inbox.JobRange{Workspace: wsA, Limit: 10})
	w.must(err)
	for _, row := range rows {
		j, err := w.store.Job(t.Context(), wsA, row.ID)
		w.must(err)
		var p inbox.ForwardParams
		w.must(json.Unmarshal(j.Params, &p))
		if len(p.To) != 1 || p.To[0].Address != "ana@acme.test" || p.Files || j.Creator.Scope != "emails:send" || j.Creator.Role != inbox.RoleOperator {
			t.Errorf("%+v %+v", p, j.Creator)
		}
	}
}

// What a person is asked names every receiver, and nothing of the mail.
func TestForwardQuestion(t *testing.T) {
	w := newWorld(t)
	w.data("globex", "PUT", "/inboxes", `{"slug":"facturas"}`, 201)
	mail, _ := w.inboxWithMail()
	w.member(orgA, "acme", "berta@acme.test", inbox.RoleOperator, true)
	var asked op.Inquiry
	w.inside("emails_forward", destructive{path: mail.ID, body: `{"to":["ana@acme.test","berta@acme.test"],"include_attachments":false}`}, nil, &asked)
	if asked.Question == nil {
		t.Fatal("no question")
	}
	message, err := asked.Question.Message()
	if err != nil || !strings.HasSuffix(message, "out to ana@acme.test, berta@acme.test; its text only?") && !strings.Contains(message, "out to ana@acme.test, berta@acme.test; its text only") {
		t.Errorf("%q, %v", message, err)
	}
	// A yes for one mail does not hold for the mail as it was changed meanwhile.
	w.change(mail, func(e *inbox.Email) { e.Version++ })
	yes := &op.Confirmation{NonceHash: "n1", Targets: asked.Question.Targets, Expires: clock().Add(time.Minute)}
	out := w.inside("emails_forward", destructive{path: mail.ID, body: `{"to":["ana@acme.test"]}`}, yes, nil)
	if out.failure == nil || out.failure.Code != op.CodeChanged || w.jobCount(wsA) != 0 {
		t.Errorf("%d %s", out.Code, out.Body)
	}
}

func TestUploadsAndImports(t *testing.T) {
	w := newWorld(t)
	w.jobCallers()
	w.data("acme", "PUT", "/inboxes", `{"slug":"facturas"}`, 201)
	w.data("globex", "PUT", "/inboxes", `{"slug":"facturas"}`, 201)
	good := uploadOf("hello")
	for _, c := range []struct {
		name, who, body string
		status          int
	}{
		{"viewer", "viewer", good, 403},
		{"scope", "one-reads", good, 403},
		{"nobody", "nobody", good, 401},
		{"purpose", "acme", strings.Replace(good, "import", "export", 1), 400},
		{"empty", "acme", strings.Replace(good, `"size":5`, `"size":0`, 1), 400},
		{"huge", "acme", strings.Replace(good, `"size":5`, `"size":268435457`, 1), 400},
		{"digest", "acme", `{"purpose":"import","size":5,"sha256":"` + strings.Repeat("g", 64) + `"}`, 400},
		{"short digest", "acme", `{"purpose":"import","size":5,"sha256":"ab"}`, 400},
	} {
		if code, text := w.do(c.who, "POST", "/uploads", c.body); code != c.status {
			t.Errorf("%s: %d %s", c.name, code, text)
		}
	}
	ticket := w.data("acme", "POST", "/uploads", good, 201)
	id, _ := ticket["upload_id"].(string)
	if !strings.HasPrefix(ticket["put_url"].(string), "https://files.test/upload/"+strings.ToLower(wsA)+"/upload_") || ticket["expires_at"] != "2026-07-28T12:15:00.123Z" ||
		ticket["kept_until"] != "2026-07-29T12:00:00.123Z" {
		t.Errorf("%v", ticket)
	}
	foreign := w.upload("globex", "hello")
	body := func(in, upload, format string) string {
		return fmt.Sprintf(`{"inbox":%q,"upload_id":%q,"format":%q}`, in, upload, format)
	}
	for _, c := range []struct {
		name, who, body string
		status          int
		contains        string
	}{
		{"viewer", "viewer", body("facturas", id, "mbox"), 403, "role"},
		{"scope", "one-reads", body("facturas", id, "mbox"), 403, "emails:write"},
		{"another tenant's upload", "acme", body("facturas", foreign, "mbox"), 404, "no such upload"},
		{"mine, by another tenant", "globex", body("facturas", id, "mbox"), 404, "no such upload"},
		{"no upload", "acme", body("facturas", "upload_1", "mbox"), 404, "no such upload"},
		{"no inbox", "acme", body("nothing", id, "mbox"), 404, "no such inbox"},
		{"format", "acme", body("facturas", id, "pst"), 400, "format"},
	} {
		if got := w.post(c.who, "/email-imports", c.body, "k-"+strings.ReplaceAll(c.name, " ", "-")); got.Code != c.status || !strings.Contains(got.Body.String(), c.contains) {
			t.Errorf("%s: %d %s", c.name, got.Code, got.Body)
		}
	}
	if w.jobCount(wsA)+w.jobCount(wsB) != 0 {
		t.Error("a refused import left a job")
	}
	first := w.post("acme", "/email-imports", body("facturas", id, "mbox"), "k")
	if first.Code != 202 {
		t.Fatalf("%d %s", first.Code, first.Body)
	}
	if again := w.post("acme", "/email-imports", body("facturas", id, "mbox"), "k"); again.Code != 202 || again.Body.String() != first.Body.String() {
		t.Errorf("the same key: %d %s", again.Code, again.Body)
	}
	if twice := w.post("acme", "/email-imports", body("facturas", id, "mbox"), "k2"); twice.Code != 409 || !strings.Contains(twice.Body.String(), "upload_used") {
		t.Errorf("twice: %d %s", twice.Code, twice.Body)
	}
	// What came to nothing may be tried again.
	rows, _, err := w.store.Jobs(t.Context(), inbox.JobRange{Workspace: wsA, Limit: 10})
	w.must(err)
	_, err = w.store.UpdateJob(t.Context(), wsA, rows[0].ID, inbox.Act{}, func(j *inbox.Job) error { j.Finish(inbox.JobFailed, clock()); return nil })
	w.must(err)
	if twice := w.post("acme", "/email-imports", body("facturas", id, "mbox"), "k3"); twice.Code != 202 {
		t.Errorf("after a failure: %d %s", twice.Code, twice.Body)
	}
	for range inbox.MaxUploads - 1 {
		w.upload("acme", "hello")
	}
	if code, text := w.do("acme", "POST", "/uploads", good); code != 409 || !strings.Contains(text, "too_many_uploads") {
		t.Errorf("one too many: %d %s", code, text)
	}
	w.upload("globex", "hello")
}

func TestNewToolsAnnotations(t *testing.T) {
	c, err := inboxops.Catalogue(nil)
	if err != nil {
		t.Fatal(err)
	}
	var asks []string
	for _, o := range c.Operations() {
		if o.Asks && o.Outward {
			asks = append(asks, o.Name)
		}
	}
	if !slices.Contains(asks, "emails_forward") {
		t.Errorf("what sends outward asks: %q", asks)
	}
}

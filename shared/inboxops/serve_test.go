package inboxops_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxops"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/optool"
	"github.com/buzon-mail/buzon/shared/rest"
	"github.com/buzon-mail/buzon/shared/safehttp"
	"github.com/buzon-mail/buzon/shared/seal"
	"github.com/buzon-mail/buzon/shared/store"
	"github.com/buzon-mail/buzon/shared/store/embedded"
)

const (
	orgA, wsA = "org_00000000000000000000000001", "ws_00000000000000000000000001"
	orgB, wsB = "org_00000000000000000000000002", "ws_00000000000000000000000002"
)

// world is the inbox behind its routes; the bearer token is the caller's name.
type world struct {
	t       *testing.T
	api     *rest.API
	engine  store.Engine
	store   *inboxstore.Store
	tools   *optool.Tools
	callers map[string]*op.Caller
	mails   int
	kept    []string // secrets on pages
	calls   int
	gate    gate // of what lets something out
}

func (w *world) Authenticate(_ context.Context, h http.Header) (*op.Caller, error) {
	if c, ok := w.callers[strings.TrimPrefix(h.Get("Authorization"), "Bearer ")]; ok {
		return c, nil
	}
	return nil, apperr.New(apperr.Unauthenticated, "", "No.")
}

func (w *world) Challenge(string, []string) (string, map[string]any) { return "Bearer", nil }

func (w *world) Open(context.Context, string) (io.ReadCloser, error) {
	return nil, errors.New("no blobs")
}

func (w *world) SignedURL(_ context.Context, a inbox.Attachment, ttl time.Duration) (string, time.Time, error) {
	return "https://files.test/" + a.BlobKey, clock().Add(ttl), nil
}

func (w *world) PutURL(_ context.Context, u inbox.Upload, ttl time.Duration) (string, map[string]string, time.Time, error) {
	return "https://files.test/" + u.Key, map[string]string{"Content-Type": "application/octet-stream"}, clock().Add(ttl), nil
}

// Keep is the page of a secret.
func (w *world) Keep(_ context.Context, person, what, secret string) (string, time.Time, error) {
	w.kept = append(w.kept, person+" "+what+" "+secret)
	return "https://mail.test/secret?id=page", clock().Add(15 * time.Minute), nil
}

func clock() time.Time { return time.Date(2026, 7, 28, 12, 0, 0, 123456789, time.UTC) }

// signIns stands in for the authorization server.
type signIns struct{}

func (signIns) Disconnect(context.Context, string, string, inbox.AuditActor) error { return nil }

func (signIns) Invite(_ context.Context, _, person string, _ inbox.AuditActor) (string, time.Time, error) {
	return "https://buzon.test/sign-in?link=" + person, clock().Add(72 * time.Hour), nil
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t}
	engine, err := embedded.Open(filepath.Join(t.TempDir(), "db"), embedded.Options{Clock: clock, NoSync: true})
	w.must(err)
	t.Cleanup(func() { _ = engine.Close() })
	w.engine = engine
	w.store, err = inboxstore.New(engine, clock)
	w.must(err)
	keys, err := seal.New([]seal.Root{{ID: "k", Secret: make([]byte, 32)}}, seal.Options{Clock: clock})
	w.must(err)
	services, err := inboxops.NewServices(inbox.Deps{
		Inboxes: w.store, Domains: w.store, Counts: w.store, Emails: w.store, Attachments: w.store, Senders: w.store, Rules: w.store, Templates: w.store, Extractions: w.store, Audit: w.store, Threads: w.store, Work: w.store, Waiting: w.store, Usage: w.store, Jobs: w.store, Blobs: w, Downloads: w, People: w.store, Uploads: w.store, Puts: w,
		Organizations: w.store, Members: w.store, Keys: w.store, SignIns: signIns{},
		Webhooks: w.store, Deliveries: w.store, WebhookSecrets: keys.Purpose("webhook/secret"), Receivers: safehttp.New(safehttp.Options{Loopback: true}), SecretPages: w,
		Cursors: keys.Purpose("cursor"), Now: clock, Rand: rand.Reader,
	})
	w.must(err)
	c, err := inboxops.Catalogue(services)
	w.must(err)
	w.api, err = rest.New(c, rest.Deps{
		Authenticator: w, Challenger: w, Logger: slog.New(slog.DiscardHandler), RequestID: func(context.Context) string { return "r" },
		Idempotency: inboxops.Keys{Store: w.store}, Outward: &w.gate, Source: func(context.Context) string { return "192.0.2.7" },
	}, rest.Options{BasePath: "/api/v1"})
	w.must(err)
	segments, err := optool.ParseSegments(inboxops.Tools())
	w.must(err)
	w.tools, err = optool.New(c, w.api, segments, optool.Options{
		BasePath: "/api/v1", JobRead: inboxops.JobRead, JobCancel: inboxops.JobCancel,
	})
	w.must(err)
	w.seed(c.Vocabulary)
	return w
}

func (w *world) seed(v *op.Vocabulary) {
	all := v.Parse("workspaces:write members:write keys:write inboxes:write senders:write emails:write emails:send attachments:read usage:read audit:read codes:read jobs:write webhooks:write webhooks:send rules:write extraction:write extraction:run")
	caller := func(name, org, ws string, role op.Role, scopes op.ScopeSet) *op.Caller {
		return &op.Caller{
			Subject: "user_" + name, Person: true, Grant: "g" + name, Organization: org, Email: name + "@example.com", Client: "client-" + name, Role: role, Own: role, Scopes: scopes, Expires: clock(),
			Workspaces: []op.Workspace{{ID: ws, Slug: "main", Name: "Main", Role: role}},
		}
	}
	w.callers = map[string]*op.Caller{
		"acme":   caller("acme", orgA, wsA, op.Owner, all),
		"viewer": caller("viewer", orgA, wsA, op.Viewer, all),
		"blind":  caller("blind", orgA, wsA, op.Admin, v.Parse("emails:read inboxes:read")),
		"globex": caller("globex", orgB, wsB, op.Owner, all),
	}
	for _, x := range []struct{ org, ws, name string }{{orgA, wsA, "acme"}, {orgB, wsB, "globex"}} {
		w.must(w.store.CreateOrganization(w.t.Context(), inbox.Organization{ID: x.org, Slug: x.name, Name: x.name}))
		w.must(w.store.CreateWorkspace(w.t.Context(), inbox.Workspace{ID: x.ws, Organization: x.org, Slug: "main", Name: "Main"}))
		_, err := w.store.AddDomain(w.t.Context(), x.org, x.name+".test")
		w.must(err)
		w.member(x.org, x.name, "ana@"+x.name+".test", inbox.RoleViewer, true)
	}
}

// member makes a person of an organization.
func (w *world) member(org, name, email string, role inbox.Role, proven bool) inbox.Member {
	w.t.Helper()
	w.mails++
	id, err := inbox.NewID("user", clock().Add(time.Duration(w.mails)*time.Second), rand.Reader)
	w.must(err)
	m := inbox.Member{User: id, Email: email, Organization: org, Role: role, CreatedAt: clock()}
	if proven {
		m.Proven = email
	}
	w.must(w.store.CreateMember(w.t.Context(), m))
	return m
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// do calls a route as who and returns status and body.
func (w *world) do(who, method, path, body string) (int, string) {
	w.t.Helper()
	r := httptest.NewRequest(method, "http://x.test/api/v1"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+who)
	r.Header.Set("Content-Type", "application/json")
	out := httptest.NewRecorder()
	w.api.ServeHTTP(out, r)
	return out.Code, out.Body.String()
}

// data is the data member of a reply with this status.
func (w *world) data(who, method, path, body string, status int) map[string]any {
	w.t.Helper()
	code, text := w.do(who, method, path, body)
	if code != status {
		w.t.Fatalf("%s %s as %s: %d %s, want %d", method, path, who, code, text, status)
	}
	var v struct {
		Data map[string]any `json:"data"`
	}
	w.must(json.Unmarshal([]byte(text), &v))
	return v.Data
}

// deliver stores a mail that carries a code and an attachment.
func (w *world) deliver(in map[string]any, org, ws string) inbox.Email {
	w.t.Helper()
	ctx := w.t.Context()
	w.mails++
	at := clock().Add(-time.Duration(w.mails) * time.Hour).Truncate(time.Millisecond)
	id, err := inbox.NewID("email", at, rand.Reader)
	w.must(err)
	e := inbox.Email{
		ID: id, Organization: org, Workspace: ws, Inbox: in["id"].(string), Status: inbox.StatusReceived, ReceivedAt: at,
		RawSHA256: id, RawKey: "raw", Envelope: inbox.Envelope{From: "a@remote.test", To: in["address"].(string), RemoteIP: "192.0.2.1"}, Version: 1,
	}
	w.must(w.store.FanOut(ctx, inbox.Intake{ID: "intake_" + id[6:]}, []inbox.Email{e}))
	e, err = w.store.ClaimMail(ctx, id)
	w.must(err)
	att, err := inbox.NewID("att", at, rand.Reader)
	w.must(err)
	e.Status, e.Codes = inbox.StatusProcessed, []inbox.Code{{Value: "482913", Kind: "otp", Confidence: 0.9}}
	e.Auth = []inbox.AuthCheck{{Method: "spf", Result: "pass", Domain: "remote.test", Aligned: true}, {Method: "dmarc", Result: "none", Domain: "remote.test", Reason: "no_policy"}}
	e.Trust = inbox.Trust{Level: inbox.Verified, Reasons: []string{inbox.TrustAligned}}
	e.Content = inbox.Content{Subject: "Ignore <all> previous", From: []inbox.Address{{Name: "Eve", Address: "eve@remote.test"}}, Snippet: "482913"}
	w.must(w.store.Finish(ctx, inbox.Processed{
		Email: e, Body: &inbox.Body{Text: "Code 482913", HTML: "<b>482913</b>"},
		Attachments: []inbox.Attachment{{ID: att, Email: id, Inbox: e.Inbox, Workspace: ws, Filename: "x.pdf", Kind: "file", BlobKey: "b"}},
	}, ""))
	return e
}

// hold puts a mail into quarantine, as the pipeline would have.
func (w *world) hold(e inbox.Email) inbox.Email {
	w.t.Helper()
	e, err := w.store.UpdateEmail(w.t.Context(), e.Workspace, e.ID, inbox.Act{}, func(e *inbox.Email) error {
		e.Status, e.Reason, e.Trust = inbox.StatusQuarantined, inbox.HeldUnlisted, inbox.Trust{Level: inbox.Unverified}
		return nil
	})
	w.must(err)
	return e
}

// thread is the conversation of a mail.
func (w *world) thread(e inbox.Email) string {
	w.t.Helper()
	e, _, err := w.store.Email(w.t.Context(), e.Workspace, e.ID, false)
	w.must(err)
	return e.Thread
}

func TestServed(t *testing.T) {
	w := newWorld(t)
	in := w.data("acme", "PUT", "/inboxes", `{"slug":"support","retention_days":30}`, 201)
	if in["address"] != "support@acme.test" || in["created_at"] != "2026-07-28T12:00:00.123Z" || in["deleted_at"] != nil || in["retention_days"] != 30.0 {
		t.Errorf("inbox %v", in)
	}
	again := w.data("acme", "PUT", "/inboxes", `{"slug":"support","retention_days":null,"state":"paused"}`, 200)
	if again["retention_days"] != nil || again["state"] != "paused" || again["version"] != 2.0 {
		t.Errorf("null did not reset: %v", again)
	}
	theirs := w.data("globex", "PUT", "/inboxes", `{"slug":"support"}`, 201)
	mail, foreign := w.deliver(in, orgA, wsA), w.deliver(theirs, orgB, wsB)

	code, list := w.do("acme", "GET", "/emails?handled=false&has_attachment=true&limit=5", "")
	if code != 200 || !strings.Contains(list, mail.ID) || strings.Contains(list, foreign.ID) || !strings.Contains(list, `"complete":true`) {
		t.Errorf("list: %d %s", code, list)
	}
	if code, none := w.do("acme", "GET", "/emails?has_attachment=false", ""); code != 200 || strings.Contains(none, mail.ID) {
		t.Errorf("has_attachment=false: %d %s", code, none)
	}
	if code, bare := w.do("acme", "GET", "/emails?inbox=support", ""); code != 200 || strings.Contains(bare, "window") || !strings.Contains(bare, `"next_cursor":null`) {
		t.Errorf("served by keys: %d %s", code, bare)
	}
	got := w.data("acme", "GET", "/emails/"+mail.ID+"?include=text,html&max_chars=4", "", 200)
	untrusted := got["untrusted"].(map[string]any)
	if untrusted["text"] != "Code" || untrusted["subject"] != "Ignore <all> previous" || untrusted["notice"] == "" || got["received_at"] == nil {
		t.Errorf("email %v", got)
	}
	updated := w.data("acme", "PATCH", "/emails/"+mail.ID, `{"handled":true,"add_labels":["seen"],"category":"codes"}`, 200)
	if updated["handled"] != true || updated["category"] != "codes" {
		t.Errorf("updated %v", updated)
	}
	if u := w.data("acme", "PATCH", "/emails/"+mail.ID, `{"handled":null,"category":null}`, 200); u["handled"] != false || u["category"] != nil {
		t.Errorf("null did not reset: %v", u)
	}
	_, atts := w.do("acme", "GET", "/attachments?email_id="+mail.ID, "")
	var page struct {
		Data []struct{ ID string }
	}
	w.must(json.Unmarshal([]byte(atts), &page))
	one := w.data("acme", "GET", "/attachments/"+page.Data[0].ID, "", 200)
	if one["email_id"] != mail.ID || one["url"] != nil || one["untrusted"].(map[string]any)["filename"] != "x.pdf" {
		t.Errorf("metadata %v", one)
	}
	d := w.data("acme", "GET", "/attachments/"+page.Data[0].ID+"/download-url?ttl_s=60", "", 200)
	if d["url"] != "https://files.test/b" || d["expires_at"] != "2026-07-28T12:01:00.123Z" {
		t.Errorf("download %v", d)
	}
	if gone := w.data("acme", "DELETE", "/inboxes/support", "", 200); gone["deleted_at"] == nil || gone["purge_at"] != "2026-08-27T12:00:00.123Z" {
		t.Errorf("deleted %v", gone)
	}
	w.data("acme", "POST", "/inboxes/"+in["id"].(string)+"/restore", "", 200)
	w.data("acme", "DELETE", "/emails/"+mail.ID, "", 200)
	w.data("acme", "POST", "/emails/"+mail.ID+"/restore", "", 200)
}

func TestRefused(t *testing.T) {
	w := newWorld(t)
	w.data("acme", "PUT", "/inboxes", `{"slug":"support"}`, 201)
	theirs := w.data("globex", "PUT", "/inboxes", `{"slug":"theirs"}`, 201)
	foreign := w.deliver(theirs, orgB, wsB)
	for _, c := range []struct {
		name, who, method, path, body string
		status                        int
		contains                      string
	}{
		{"viewer may not write", "viewer", "PUT", "/inboxes", `{"slug":"x"}`, 403, "role"},
		{"scope missing", "blind", "DELETE", "/inboxes/support", "", 403, "inboxes:write"},
		{"viewer and deleted", "viewer", "GET", "/emails?include_deleted=true", "", 403, "admins"},
		{"limit 0", "acme", "GET", "/emails?limit=0", "", 400, "limit"},
		{"limit huge", "acme", "GET", "/emails?limit=100000", "", 400, "limit"},
		{"limit text", "acme", "GET", "/emails?limit=all", "", 400, "limit"},
		{"unknown filter", "acme", "GET", "/emails?stat=x", "", 400, "unknown parameter"},
		{"handled text", "acme", "GET", "/emails?handled=maybe", "", 400, "handled"},
		{"time text", "acme", "GET", "/emails?received_after=yesterday", "", 400, "received_after"},
		{"include unknown", "acme", "GET", "/emails/" + foreign.ID + "?include=raw", "", 400, "include"},
		{"foreign mail", "acme", "GET", "/emails/" + foreign.ID, "", 404, "no such email"},
		{"foreign mail, delete", "acme", "DELETE", "/emails/" + foreign.ID, "", 404, "no such email"},
		{"foreign inbox", "acme", "GET", "/inboxes/theirs", "", 404, "no such inbox"},
		{"cursor of nobody", "acme", "GET", "/emails?cursor=abc", "", 400, "invalid_cursor"},
		{"stale", "acme", "PUT", "/inboxes", `{"slug":"support","if_version":9}`, 412, "stale"},
		{"domain", "acme", "PUT", "/inboxes", `{"slug":"a","address":"a@globex.test"}`, 400, "acme.test"},
		{"unknown member", "acme", "PUT", "/inboxes", `{"slug":"a","nme":1}`, 400, "unknown member"},
		{"state of another type", "acme", "PUT", "/inboxes", `{"slug":"a","state":7}`, 400, "state"},
		{"retention 0", "acme", "PUT", "/inboxes", `{"slug":"a","retention_days":0}`, 400, "retention_days"},
		{"download for an hour", "acme", "GET", "/attachments/att_00000000000000000000000001/download-url?ttl_s=3600", "", 400, "ttl_s"},
		{"unknown attachment", "acme", "GET", "/attachments/att_00000000000000000000000001", "", 404, "no such attachment"},
		{"attachments of nothing", "acme", "GET", "/attachments", "", 400, "email_id"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, text := w.do(c.who, c.method, c.path, c.body)
			if code != c.status || !strings.Contains(text, c.contains) {
				t.Errorf("%d %s, want %d with %q", code, text, c.status, c.contains)
			}
		})
	}
}

func TestMaskedForTheBlind(t *testing.T) {
	w := newWorld(t)
	w.data("globex", "PUT", "/inboxes", `{"slug":"a"}`, 201)
	mail := w.deliver(w.data("acme", "PUT", "/inboxes", `{"slug":"a"}`, 201), orgA, wsA)
	for _, path := range []string{"/emails", "/emails?q=eve", "/emails/" + mail.ID + "?include=text,html,headers"} {
		for _, who := range []string{"blind", "viewer"} { // one has no codes:read, the other has it and not the role
			code, text := w.do(who, "GET", path, "")
			if code != 200 || strings.Contains(text, "482913") || !strings.Contains(text, `"masked":true`) {
				t.Errorf("%s as %s: %d %s", path, who, code, text)
			}
		}
	}
	if _, text := w.do("viewer", "GET", "/session", ""); strings.Contains(text, "reconnect") && strings.Contains(text, "granting: codes:read") {
		t.Errorf("a viewer is sent for a scope that is of no use: %s", text)
	}
	if _, text := w.do("acme", "GET", "/emails/"+mail.ID, ""); !strings.Contains(text, "482913") || strings.Contains(text, `"masked"`) {
		t.Errorf("with codes:read: %s", text)
	}
}

// Third-party text stands under untrusted and nowhere else.
func TestUntrusted(t *testing.T) {
	w := newWorld(t)
	w.data("globex", "PUT", "/inboxes", `{"slug":"a"}`, 201)
	w.mails = -1 // now: a wait looks no further back than a minute
	mail := w.deliver(w.data("acme", "PUT", "/inboxes", `{"slug":"a"}`, 201), orgA, wsA)
	var strip func(v any) any
	strip = func(v any) any {
		switch x := v.(type) {
		case map[string]any:
			delete(x, "untrusted")
			for _, inner := range x {
				strip(inner)
			}
		case []any:
			for _, inner := range x {
				strip(inner)
			}
		}
		return v
	}
	for _, path := range []string{"/emails", "/emails/" + mail.ID + "?include=text,html,headers,markdown,reply_text", "/attachments?inbox=a",
		"/threads", "/threads/" + w.thread(mail), "POST /email-waits", "POST /email-claims"} {
		method, body := "GET", ""
		if x, ok := strings.CutPrefix(path, "POST "); ok {
			method, path, body = "POST", x, `{"inbox":"a"}`
			if path == "/email-waits" {
				body = `{"inbox":"a","timeout_s":0}`
			}
		}
		code, text := w.do("acme", method, path, body)
		if code != 200 || !strings.Contains(text, "Ignore") {
			if !strings.HasPrefix(path, "/attachments") {
				t.Errorf("%s: %d %s", path, code, text)
			}
		}
		var v any
		w.must(json.Unmarshal([]byte(text), &v))
		rest, err := json.Marshal(strip(v))
		w.must(err)
		for _, foreign := range []string{"Ignore", "Eve", "remote.test", "482913", "x.pdf", "192.0.2.1"} {
			if strings.Contains(string(rest), foreign) {
				t.Errorf("%s: %q outside of untrusted: %s", path, foreign, rest)
			}
		}
	}
}

func TestSession(t *testing.T) {
	w := newWorld(t)
	full := w.data("acme", "GET", "/session", "", 200)
	if len(full["hidden_tools"].([]any)) != 0 || full["role"] != "owner" || full["default_workspace"] != wsA || full["reconnect"] != nil {
		t.Errorf("session %v", full)
	}
	blind := w.data("blind", "GET", "/session", "", 200)
	text, _ := json.Marshal(blind)
	for _, want := range []string{"inboxes_upsert", "emails_delete", "attachments_download_url", "attachments:read", "codes:read", "connect it again"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("session of a narrow token lacks %s: %s", want, text)
		}
	}
	if strings.Contains(string(text), "globex") || strings.Contains(string(text), `"emails_list"`) {
		t.Errorf("session %s", text)
	}
	if _, list := w.do("globex", "GET", "/workspaces", ""); !strings.Contains(list, wsB) || strings.Contains(list, wsA) {
		t.Errorf("workspaces %s", list)
	}
}

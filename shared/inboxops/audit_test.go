package inboxops_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxops"
	"github.com/buzon-mail/buzon/shared/mcp"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/rest"
	"github.com/buzon-mail/buzon/shared/store"
)

// audited has every operation that leaves a line in the audit: a new one fails TestEveryActLeavesALine until it stands here, or, when
// it asks, in destructives.
func (w *world) audited() map[string]destructive {
	all := w.destructives()
	in := w.data("acme", "PUT", "/inboxes", `{"slug":"gone"}`, 201)
	w.data("acme", "DELETE", "/inboxes/gone", "", 200)
	other := w.data("acme", "PUT", "/inboxes", `{"slug":"other"}`, 201)
	mail, deleted := w.deliver(other, orgA, wsA), w.deliver(other, orgA, wsA)
	w.data("acme", "DELETE", "/emails/"+deleted.ID, "", 200)
	_, text := w.do("acme", "GET", "/attachments?email_id="+mail.ID, "")
	var files struct{ Data []struct{ ID string } }
	w.must(json.Unmarshal([]byte(text), &files))
	id := in["id"].(string)
	all["workspaces_upsert"] = destructive{org: true, body: `{"slug":"main","name":"Main again"}`, act: wsA}
	all["inboxes_restore"] = destructive{path: id, act: id}
	all["emails_update"] = destructive{path: mail.ID, act: mail.ID, body: `{"handled":true}`}
	all["emails_claim"] = destructive{body: `{"inbox":"other"}`, act: mail.ID}
	all["emails_raw_url"] = destructive{path: mail.ID, act: mail.ID}
	all["emails_restore"] = destructive{path: deleted.ID, act: deleted.ID}
	all["attachments_download_url"] = destructive{path: files.Data[0].ID, act: files.Data[0].ID}
	all["uploads_create"] = destructive{body: uploadOf("hello")}
	all["emails_import"] = destructive{body: `{"inbox":"other","upload_id":"` + w.upload("acme", "hello") + `","format":"mbox"}`}
	gone := w.data("acme", "PUT", "/webhooks", `{"name":"gone","url":"https://h.example.test/","events":["email.failed"]}`, 201)["id"].(string)
	w.data("acme", "DELETE", "/webhooks/"+gone, "", 200)
	all["webhooks_restore"] = destructive{path: gone, act: gone}
	job := w.reprocess("acme", mail, "to-cancel")
	all["jobs_cancel"] = destructive{path: job, act: job}
	return all
}

// lines reads all of the audit of both organizations, by id.
func (w *world) lines() map[string]inbox.AuditEvent {
	w.t.Helper()
	all := map[string]inbox.AuditEvent{}
	for _, r := range []inbox.AuditRange{
		{Organization: orgA, Workspace: wsA}, {Organization: orgB, Workspace: wsB}, {Organization: orgA}, {Organization: orgB},
	} {
		r.Limit = 200
		rows, next, err := w.store.Events(w.t.Context(), r)
		w.must(err)
		if next != "" {
			w.t.Fatal("more lines than the test reads")
		}
		for _, e := range rows {
			all[e.ID] = e
		}
	}
	return all
}

// fresh is what was added to the audit since before.
func (w *world) fresh(before map[string]inbox.AuditEvent) []inbox.AuditEvent {
	var added []inbox.AuditEvent
	for id, e := range w.lines() {
		if _, old := before[id]; !old {
			added = append(added, e)
		}
	}
	return added
}

// over calls an operation over REST.
func (w *world) over(o op.Operation, who string, d destructive) *httptest.ResponseRecorder {
	path := strings.NewReplacer("{id}", d.path, "{sender_id}", d.entry).Replace(o.Path)
	out := httptest.NewRecorder()
	if rest.TakesKey(o.Input) {
		out.Code, _ = w.keyed(who, o.Method, path, d.body, "one-act")
		return out
	}
	out.Code, _ = w.do(who, o.Method, path, d.body)
	return out
}

// TestEveryActLeavesALine: on both surfaces, who did it stands in the audit exactly once when it was done, and not at all when it was
// refused, only asked about, or done already.
func TestEveryActLeavesALine(t *testing.T) {
	c, err := inboxops.Catalogue(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range c.Operations() {
		if !o.Traced() {
			continue
		}
		for _, surface := range []op.Surface{op.SurfaceREST, op.SurfaceMCP} {
			t.Run(o.Name+"/"+string(surface), func(t *testing.T) {
				w := newWorld(t)
				w.data("globex", "PUT", "/inboxes", `{"slug":"facturas"}`, 201)
				d, ok := w.audited()[o.Name]
				if !ok {
					t.Fatal("nothing proves that this operation leaves a line in the audit")
				}
				before := w.lines()
				w.refused(o, surface, d)
				if got := w.fresh(before); len(got) > 0 {
					t.Fatalf("refused, and %d lines: %+v", len(got), got)
				}
				w.done(o, surface, d)
				w.checkLine(o, surface, d, w.fresh(before))
			})
		}
	}
}

// refused has the operation refused in every way that its surface has.
func (w *world) refused(o op.Operation, surface op.Surface, d destructive) {
	w.t.Helper()
	if surface == op.SurfaceREST {
		for _, who := range []string{"blind", "nobody"} {
			if out := w.over(o, who, d); out.Code/100 == 2 {
				w.t.Fatalf("as %s: %d", who, out.Code)
			}
		}
		return
	}
	if !o.Asks {
		return
	}
	if out := w.inside(o.Name, d, nil, nil); out.Code/100 == 2 {
		w.t.Fatalf("without a yes: %d", out.Code)
	}
	if out := w.inside(o.Name, d, &op.Confirmation{NonceHash: "n0", Targets: map[string]string{"x": "1"}, Expires: clock().Add(time.Minute)}, nil); out.Code/100 == 2 {
		w.t.Fatalf("with a yes to something else: %d", out.Code)
	}
}

// done does it.
func (w *world) done(o op.Operation, surface op.Surface, d destructive) {
	w.t.Helper()
	if surface == op.SurfaceREST {
		if out := w.over(o, "acme", d); out.Code/100 != 2 {
			w.t.Fatalf("%d", out.Code)
		}
		return
	}
	var yes *op.Confirmation
	if o.Asks {
		var asked op.Inquiry
		w.inside(o.Name, d, nil, &asked)
		if asked.Question == nil {
			w.t.Fatal("no question")
		}
		yes = &op.Confirmation{NonceHash: "n1", Targets: asked.Question.Targets, Expires: clock().Add(5 * time.Minute)}
	}
	if out := w.inside(o.Name, d, yes, nil); out.Code/100 != 2 {
		w.t.Fatalf("%d %s", out.Code, out.Body)
	}
	if yes == nil {
		return
	}
	if _, err := w.engine.Get(w.t.Context(), store.Key{Table: store.Ephemeral, Partition: "confirmed/n1", Sort: "-"}); err != nil {
		w.t.Errorf("the line took the place of the nonce: %v", err)
	}
	w.inside(o.Name, d, yes, nil) // the same yes again does nothing, and leaves nothing
}

func (w *world) checkLine(o op.Operation, surface op.Surface, d destructive, got []inbox.AuditEvent) {
	w.t.Helper()
	if len(got) != 1 {
		w.t.Fatalf("%d lines, want one: %+v", len(got), got)
	}
	e := got[0]
	where := wsA
	if d.org {
		where = ""
	}
	if e.Action != o.Name || e.Workspace != where || e.Organization != orgA || e.Surface != string(surface) || e.Request != "r" || e.Source != "192.0.2.7" || !e.At.Equal(clock().Truncate(time.Millisecond)) {
		w.t.Errorf("line %+v", e)
	}
	if a := e.Actor; a.Type != inbox.ActorPerson || a.ID != "user_acme" || a.Email != "acme@example.com" || a.Grant != "gacme" || a.Client != "client-acme" {
		w.t.Errorf("actor %+v", a)
	}
	if d.act != "" && !slices.Contains(e.Targets, d.act) {
		w.t.Errorf("targets %v, want %s", e.Targets, d.act)
	}
	switch read := o.Effect == op.Read; {
	case read && (e.Before != "" || e.After != ""):
		w.t.Errorf("a read that changed something: %+v", e)
	case !read && (len(e.After) != 64 || e.Before == e.After):
		w.t.Errorf("digests %q and %q", e.Before, e.After)
	}
}

// The line of a mail's change holds nothing that a stranger wrote, and neither does the answer.
func TestAuditServed(t *testing.T) {
	w := newWorld(t)
	in := w.data("acme", "PUT", "/inboxes", `{"slug":"a"}`, 201)
	mail := w.deliver(in, orgA, wsA)
	w.data("acme", "PATCH", "/emails/"+mail.ID, `{"add_labels":["secret-label"]}`, 200)
	w.data("globex", "PUT", "/inboxes", `{"slug":"theirs"}`, 201)
	call := &mcp.CallRequest{
		Caller: w.callers["acme"], Version: mcp.V20260728, Name: "emails_update", Arguments: []byte(`{"id":"` + mail.ID + `","handled":true}`),
		ClientInfo: []byte(`{"name":"Evil\u202e\u0000` + strings.Repeat("x", 300) + `","version":"9"}`),
	}
	if got, err := w.tools.CallTool(t.Context(), call); err != nil || got.IsError {
		t.Fatalf("%+v, %v", got, err)
	}
	code, text := w.do("acme", "GET", "/audit-events", "")
	for _, absent := range []string{"secret-label", "482913", "remote.test", "theirs", orgB, "user_globex"} {
		if strings.Contains(text, absent) {
			t.Errorf("%q in the audit: %s", absent, text)
		}
	}
	var page struct {
		Data []struct {
			ID, Action, At string
			Surface        string
			Before         string `json:"before_sha256"`
			Untrusted      struct{ Software string }
		}
		Meta map[string]any
	}
	w.must(json.Unmarshal([]byte(text), &page))
	if code != 200 || len(page.Data) != 3 || page.Meta["window"] != nil {
		t.Fatalf("%d %s", code, text)
	}
	for _, e := range page.Data {
		created := e.Action == "inboxes_upsert"
		if e.At != "2026-07-28T12:00:00.123Z" || created != (e.Before == "") {
			t.Errorf("line %+v", e)
		}
		software := e.Untrusted.Software
		if e.Surface == "mcp" && (!strings.HasPrefix(software, "Evilx") || len([]rune(software)) > 80) || e.Surface != "mcp" && software != "" {
			t.Errorf("software %q over %s", software, e.Surface)
		}
	}
}

func TestAuditFilters(t *testing.T) {
	w := newWorld(t)
	in := w.data("acme", "PUT", "/inboxes", `{"slug":"a"}`, 201)
	for i := range 4 {
		w.data("acme", "PUT", "/inboxes", fmt.Sprintf(`{"slug":"a","display_name":"n%d"}`, i), 200)
	}
	w.data("acme", "PUT", "/inboxes", `{"slug":"b"}`, 201)
	w.data("acme", "DELETE", "/inboxes/a", "", 200)
	count := func(query string) int {
		t.Helper()
		n, cursor := 0, ""
		for {
			code, text := w.do("acme", "GET", strings.TrimSuffix("/audit-events?limit=2&"+query, "&")+cursor, "")
			var page struct {
				Data []json.RawMessage
				Meta struct {
					Next *string `json:"next_cursor"`
				}
			}
			w.must(json.Unmarshal([]byte(text), &page))
			if code != 200 {
				t.Fatalf("%s: %d %s", query, code, text)
			}
			if n += len(page.Data); page.Meta.Next == nil {
				return n
			}
			cursor = "&cursor=" + *page.Meta.Next
		}
	}
	for query, want := range map[string]int{
		"": 7, "action=inboxes_upsert": 6, "action=inboxes_delete": 1, "action=inboxes": 0, "target=" + in["id"].(string): 6,
		"target=inbox_00000000000000000000000009": 0, "actor=user_acme": 7, "actor=ACME@example.com": 7, "actor=user_globex": 0,
		"action=inboxes_delete&target=" + in["id"].(string): 1, "after=2026-07-28T12:00:00.122Z": 7, "after=2026-07-28T12:00:00.123Z": 0,
		"before=2026-07-28T12:00:00.124Z": 7, "before=2026-07-28T12:00:00.123Z": 0, "organization=true": 0,
	} {
		if got := count(query); got != want {
			t.Errorf("%q: %d lines, want %d", query, got, want)
		}
	}
}

func TestAuditRefused(t *testing.T) {
	w := newWorld(t)
	w.data("acme", "PUT", "/inboxes", `{"slug":"a"}`, 201)
	w.data("acme", "PUT", "/inboxes", `{"slug":"b"}`, 201)
	w.data("globex", "PUT", "/inboxes", `{"slug":"a"}`, 201)
	narrow := *w.callers["acme"]
	narrow.Own = op.NoRole // a grant of one workspace, or an admin of that one only
	w.callers["narrow"] = &narrow
	_, first := w.do("acme", "GET", "/audit-events?limit=1", "")
	var page struct{ Meta map[string]any }
	w.must(json.Unmarshal([]byte(first), &page))
	cursor, _ := page.Meta["next_cursor"].(string)
	if cursor == "" {
		t.Fatalf("no second page: %s", first)
	}
	for name, x := range map[string]struct {
		who, query string
		status     int
	}{
		"viewer":                         {"viewer", "", 403},
		"scope":                          {"blind", "", 403},
		"nobody":                         {"nobody", "", 401},
		"organization, without its role": {"narrow", "?organization=true", 403},
		"limit":                          {"acme", "?limit=0", 400},
		"time":                           {"acme", "?after=yesterday", 400},
		"unknown filter":                 {"acme", "?workspace=x", 400},
		"a cursor of another tenant":     {"globex", "?limit=1&cursor=" + cursor, 400},
		"a cursor of another filter":     {"acme", "?limit=1&action=inboxes_upsert&cursor=" + cursor, 400},
		"a cursor of the workspace's":    {"acme", "?limit=1&organization=true&cursor=" + cursor, 400},
	} {
		if code, text := w.do(x.who, "GET", "/audit-events"+x.query, ""); code != x.status {
			t.Errorf("%s: %d %s", name, code, text)
		}
	}
	if code, _ := w.do("narrow", "GET", "/audit-events", ""); code != 200 {
		t.Errorf("its own workspace: %d", code)
	}
}

// TestActorOfTheAudit: a key is named as itself, beside whoever made it.
func TestActorOfTheAudit(t *testing.T) {
	w := newWorld(t)
	service, key := *w.callers["acme"], *w.callers["acme"]
	service.Subject, service.Client, service.Person, service.Email = "svc_1", "svc_1", false, ""
	key.Person, key.Key, key.Client = false, "key_1", ""
	w.callers["service"], w.callers["key"] = &service, &key
	for who, want := range map[string]inbox.AuditActor{
		"service": {Type: inbox.ActorService, ID: "svc_1", Client: "svc_1", Grant: "gacme"},
		"key":     {Type: inbox.ActorKey, ID: "key_1", Email: "acme@example.com", Grant: "gacme"},
	} {
		before := w.lines()
		w.data(who, "PUT", "/inboxes", `{"slug":"`+who+`"}`, 201)
		if got := w.fresh(before); len(got) != 1 || got[0].Actor != want {
			t.Errorf("%s: %+v", who, got)
		}
	}
}

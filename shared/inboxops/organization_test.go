package inboxops_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/op"
)

const (
	boss  = "user_00000000000000000000000001"
	clerk = "user_00000000000000000000000002"
	alien = "user_00000000000000000000000003"

	later = `"expires_at":"2026-12-01T00:00:00Z"`
)

// people gives acme two owners, one of them acme itself, and globex one.
func (w *world) people() {
	w.t.Helper()
	for _, m := range []inbox.Member{
		{User: boss, Email: "boss@acme.test", Organization: orgA, Role: inbox.RoleOwner, CreatedAt: clock()},
		{User: clerk, Email: "clerk@acme.test", Organization: orgA, Role: inbox.RoleOperator, CreatedAt: clock()},
		{User: alien, Email: "alien@globex.test", Organization: orgB, Role: inbox.RoleOwner, CreatedAt: clock()},
	} {
		w.must(w.store.CreateMember(w.t.Context(), m))
	}
}

// key makes a key over REST and returns what came back.
func (w *world) key(who, body string) map[string]any {
	w.t.Helper()
	return w.data(who, "POST", "/api-keys", body, 201)
}

// named finds a row of a list.
func (w *world) named(path, member, value string) map[string]any {
	w.t.Helper()
	_, text := w.do("acme", "GET", path, "")
	var v struct{ Data []map[string]any }
	w.must(json.Unmarshal([]byte(text), &v))
	for _, row := range v.Data {
		if row[member] == value {
			return row
		}
	}
	return nil
}

// organizationActs are the operations that ask and act on the organization, for destructives.
func (w *world) organizationActs() map[string]destructive {
	w.people()
	w.data("acme", "PUT", "/workspaces", `{"slug":"sales"}`, 201)
	sales := w.named("/workspaces", "slug", "sales") // not of this grant yet
	if sales != nil {
		w.t.Fatalf("a caller that was verified before reaches the new workspace: %v", sales)
	}
	old := w.key("acme", `{"name":"old","scopes":["emails:read"],`+later+`}`)["id"].(string)
	return map[string]destructive{
		"members_upsert": {
			org: true, body: `{"email":"New@Acme.test","role":"admin","workspace_roles":[{"workspace":"sales","role":"none"}]}`,
			words: "Invite new@acme.test into the organization: admin, in sales no access",
			gone:  func() bool { return w.named("/members", "email", "new@acme.test") != nil },
			made:  func() string { return w.named("/members", "email", "new@acme.test")["id"].(string) },
		},
		"members_delete": {
			org: true, path: clerk, act: clerk, words: "Remove clerk@acme.test (operator) from the organization and end their connections and API keys",
			gone: func() bool { return w.named("/members", "email", "clerk@acme.test") == nil },
		},
		"api_keys_create": {
			org: true, body: `{"name":"Nightly","scopes":["senders:read","emails:read"],"workspaces":["main"],"inboxes":["facturas"],` + later + `}`,
			words: "Create API key Nightly, which acts as acme@example.com until 1 December 2026; may emails:read, senders:read; in workspace main; in inbox facturas",
			gone:  func() bool { return w.named("/api-keys", "name", "Nightly") != nil },
			made:  func() string { return w.named("/api-keys", "name", "Nightly")["id"].(string) },
		},
		"api_keys_rotate": {
			org: true, path: old, body: `{"overlap_h":0}`, act: old, words: "Make a new secret for API key old (bzk_", // and the old one ends at once
			gone: func() bool { return w.named("/api-keys", "name", "old")["version"] == 2.0 },
		},
		"api_keys_revoke": {
			org: true, path: old, act: old, words: "Revoke API key old (bzk_",
			gone: func() bool { return w.named("/api-keys", "name", "old")["revoked_at"] != nil },
		},
	}
}

// TestSecretsOverTwoSurfaces: REST has the secret once, MCP never: the person behind it has a page, and who is none is sent away.
func TestSecretsOverTwoSurfaces(t *testing.T) {
	w := newWorld(t)
	w.people()
	body := `{"name":"a","scopes":["emails:read"],` + later + `}`
	made := w.key("acme", body)
	secret := made["key"].(map[string]any)["secret"].(string)
	if len(secret) != 47 || !strings.HasPrefix(secret, "bzk_") || made["prefix"] != secret[:10] || made["key"].(map[string]any)["reveal_url"] != nil {
		t.Errorf("made %v", made)
	}
	for _, path := range []string{"/api-keys", "/session", "/audit-events?organization=true"} {
		if _, text := w.do("acme", "GET", path, ""); strings.Contains(text, secret) || strings.Contains(text, inbox.KeyHash(secret)) {
			t.Errorf("%s shows the secret or its hash: %s", path, text)
		}
	}
	k, err := w.store.APIKeyByHash(t.Context(), inbox.KeyHash(secret))
	if err != nil || k.ID != made["id"] {
		t.Fatalf("%+v, %v", k, err)
	}
	acts := map[string]destructive{
		"api_keys_create": {body: strings.Replace(body, `"a"`, `"b"`, 1)}, "api_keys_rotate": {path: k.ID, body: `{}`},
		"members_upsert": {body: `{"email":"new@acme.test","role":"viewer"}`},
	}
	for name, d := range acts {
		var asked op.Inquiry
		w.inside(name, d, nil, &asked)
		if asked.Question == nil {
			t.Fatalf("%s: no question", name)
		}
		out := w.inside(name, d, &op.Confirmation{NonceHash: "n" + name, Targets: asked.Question.Targets, Expires: clock().Add(time.Minute)}, nil)
		if text := out.Body.String(); out.Code/100 != 2 || strings.Contains(text, `"secret":`) || strings.Contains(text, "invitation_url") ||
			!strings.Contains(text, `"reveal_url":"https://mail.test/secret?id=page"`) {
			t.Errorf("%s over MCP: %d %s", name, out.Code, text)
		}
	}
	service := *w.callers["acme"]
	service.Person = false
	w.callers["acme"] = &service
	for name, d := range map[string]destructive{
		"api_keys_create": {body: strings.Replace(body, `"a"`, `"c"`, 1)}, "api_keys_rotate": {path: k.ID, body: `{}`},
		"members_upsert": {body: `{"email":"newer@acme.test","role":"viewer"}`},
	} {
		var asked op.Inquiry
		if out := w.inside(name, d, nil, &asked); asked.Answered || out.failure == nil || out.failure.Code != "secret_needs_person" {
			t.Errorf("%s for a service account over MCP: %d %s", name, out.Code, out.Body)
		}
	}
	w.key("acme", strings.Replace(body, `"a"`, `"c"`, 1)) // over REST it may
}

func TestOrganizationRefused(t *testing.T) {
	w := newWorld(t)
	w.people()
	w.data("acme", "PUT", "/inboxes", `{"slug":"mine"}`, 201)
	w.data("globex", "PUT", "/inboxes", `{"slug":"theirs"}`, 201)
	own := w.key("acme", `{"name":"own","scopes":["emails:read"],`+later+`}`)["id"].(string)
	foreign := w.key("globex", `{"name":"own","scopes":["emails:read"],`+later+`}`)["id"].(string)
	caller := func(name string, change func(*op.Caller)) {
		c := *w.callers["acme"]
		change(&c)
		c.Grant = "g" + name
		w.callers[name] = &c
	}
	caller("partial", func(c *op.Caller) { c.Own = op.NoRole })
	caller("admin", func(c *op.Caller) {
		c.Subject, c.Own, c.Role = "user_admin", op.Admin, op.Admin
		c.Workspaces = []op.Workspace{{ID: wsA, Slug: "main", Role: op.Admin}}
	})
	caller("local", func(c *op.Caller) {
		c.Subject, c.Own, c.Role = "user_local", op.Viewer, op.Admin
		c.Workspaces = []op.Workspace{{ID: wsA, Slug: "main", Role: op.Admin}}
	})
	caller("narrow", func(c *op.Caller) { c.Scopes = bits(t, "keys:write", "inboxes:read") })
	caller("confined", func(c *op.Caller) { c.Within = []string{"inbox_x"} })
	for _, c := range []struct {
		name, who, method, path, body string
		status                        int
		contains                      string
	}{
		{"an unknown member is added twice", "acme", "PUT", "/members", `{"email":"boss@acme.test"}`, 200, `"created":false`},
		{"no role for a new member", "acme", "PUT", "/members", `{"email":"n@acme.test"}`, 400, "body.role"},
		{"a role that is none", "acme", "PUT", "/members", `{"email":"n@acme.test","role":"king"}`, 400, "body.role"},
		{"no address", "acme", "PUT", "/members", `{"email":"nobody","role":"viewer"}`, 400, "invalid_email"},
		{"an address that turns its text", "acme", "PUT", "/members", `{"email":"a\u202e@acme.test","role":"viewer"}`, 400, "invalid_email"},
		{"somebody else's member", "acme", "PUT", "/members", `{"email":"alien@globex.test","role":"viewer"}`, 409, `"taken"`},
		{"a workspace of globex", "acme", "PUT", "/members", `{"email":"n@acme.test","role":"viewer","workspace_roles":[{"workspace":"` + wsB + `","role":"admin"}]}`, 404, "no such workspace"},
		{"a stale version", "acme", "PUT", "/members", `{"email":"clerk@acme.test","role":"viewer","if_version":9}`, 412, "stale"},
		{"an admin invites", "admin", "PUT", "/members", `{"email":"n@acme.test","role":"viewer"}`, 403, "owner"},
		{"an owner's grant of one workspace invites", "partial", "PUT", "/members", `{"email":"n@acme.test","role":"viewer"}`, 403, "insufficient_role"},
		{"without the scope", "blind", "PUT", "/members", `{"email":"n@acme.test","role":"viewer"}`, 403, "members:write"},
		{"confined", "confined", "PUT", "/members", `{"email":"n@acme.test","role":"viewer"}`, 403, "confined"},
		{"globex's member removed", "acme", "DELETE", "/members/" + alien, "", 404, "no such member"},
		{"nobody removed", "acme", "DELETE", "/members/user_00000000000000000000000009", "", 404, "no such member"},
		{"no id", "acme", "DELETE", "/members/boss", "", 404, "no such member"},
		{"the last owner removed", "acme", "DELETE", "/members/" + boss, "", 409, "last_owner"},
		{"the last owner demoted", "acme", "PUT", "/members", `{"email":"boss@acme.test","role":"admin"}`, 409, "last_owner"},
		{"members for an admin of one workspace", "local", "GET", "/members", "", 403, "organization itself"},
		{"members for a viewer", "viewer", "GET", "/members", "", 403, "role"},
		{"members of a role that is none", "acme", "GET", "/members?role=king", "", 400, "role"},

		{"workspaces of an admin", "admin", "PUT", "/workspaces", `{"slug":"x"}`, 403, "owner"},
		{"workspaces of a grant of one", "partial", "PUT", "/workspaces", `{"slug":"x"}`, 403, "insufficient_role"},
		{"no slug", "acme", "PUT", "/workspaces", `{"slug":"No Slug"}`, 400, "slug"},
		{"no zone", "acme", "PUT", "/workspaces", `{"slug":"x","timezone":"../etc"}`, 400, "timezone"},
		{"retention 0", "acme", "PUT", "/workspaces", `{"slug":"x","retention_days":0}`, 400, "retention_days"},
		{"less than mail needs", "acme", "PUT", "/workspaces", `{"slug":"x","max_message_bytes":65535}`, 400, "max_message_bytes"},
		{"more than the server takes", "acme", "PUT", "/workspaces", `{"slug":"x","max_message_bytes":26214401}`, 400, "max_message_bytes"},
		{"stale workspace", "acme", "PUT", "/workspaces", `{"slug":"main","name":"y","if_version":7}`, 412, "stale"},

		{"a scope that is not its own", "narrow", "POST", "/api-keys", `{"name":"n","scopes":["emails:read"],` + later + `}`, 400, "body.scopes"},
		{"no scope", "acme", "POST", "/api-keys", `{"name":"n","scopes":[],` + later + `}`, 400, "body.scopes"},
		{"a scope that is none", "acme", "POST", "/api-keys", `{"name":"n","scopes":["emails:*"],` + later + `}`, 400, "body.scopes"},
		{"in the past", "acme", "POST", "/api-keys", `{"name":"n","scopes":["emails:read"],"expires_at":"2026-07-28T11:59:59Z"}`, 400, "expires_at"},
		{"for ever", "acme", "POST", "/api-keys", `{"name":"n","scopes":["emails:read"],"expires_at":"2036-07-28T11:59:59Z"}`, 400, "expires_at"},
		{"never", "acme", "POST", "/api-keys", `{"name":"n","scopes":["emails:read"]}`, 400, "expires_at"},
		{"a name of two lines", "acme", "POST", "/api-keys", `{"name":"n\nn","scopes":["emails:read"],` + later + `}`, 400, "body.name"},
		{"a name that is taken", "acme", "POST", "/api-keys", `{"name":"OWN","scopes":["emails:read"],` + later + `}`, 409, "name_taken"},
		{"a workspace of globex", "acme", "POST", "/api-keys", `{"name":"n","scopes":["emails:read"],"workspaces":["` + wsB + `"],` + later + `}`, 404, "no such workspace"},
		{"an inbox of globex", "acme", "POST", "/api-keys", `{"name":"n","scopes":["emails:read"],"inboxes":["theirs"],` + later + `}`, 404, "no such inbox"},
		{"11 inboxes", "acme", "POST", "/api-keys", `{"name":"n","scopes":["emails:read"],"inboxes":["a","b","c","d","e","f","g","h","i","j","k"],` + later + `}`, 400, "inboxes"},
		{"a viewer's", "viewer", "POST", "/api-keys", `{"name":"n","scopes":["emails:read"],` + later + `}`, 403, "role"},
		{"a confined caller's", "confined", "POST", "/api-keys", `{"name":"n","scopes":["emails:read"],` + later + `}`, 403, "confined"},
		{"globex's rotated", "acme", "POST", "/api-keys/" + foreign + "/rotate", `{}`, 404, "no such API key"},
		{"globex's revoked", "acme", "DELETE", "/api-keys/" + foreign, "", 404, "no such API key"},
		{"an owner's, rotated by an admin", "admin", "POST", "/api-keys/" + own + "/rotate", `{}`, 403, "not_creator"},
		{"an owner's, rotated by an admin of one workspace", "local", "POST", "/api-keys/" + own + "/rotate", `{}`, 404, "no such API key"},
		{"an owner's, revoked by an admin of one workspace", "local", "DELETE", "/api-keys/" + own, "", 404, "no such API key"},
		{"its maker's, rotated with fewer scopes", "narrow", "POST", "/api-keys/" + own + "/rotate", `{}`, 403, "beyond_own"},
		{"its maker's, rotated through one workspace", "partial", "POST", "/api-keys/" + own + "/rotate", `{}`, 403, "beyond_own"},
		{"rotated for two days", "acme", "POST", "/api-keys/" + own + "/rotate", `{"overlap_h":48}`, 400, "overlap_h"},
		{"a key in the way of its literal", "acme", "DELETE", "/api-keys/rotate", "", 404, "no such API key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, text := w.do(c.who, c.method, c.path, c.body)
			if code != c.status || !strings.Contains(text, c.contains) {
				t.Errorf("%d %s, want %d with %q", code, text, c.status, c.contains)
			}
		})
	}
	if got := w.named("/members", "email", "n@acme.test"); got != nil {
		t.Errorf("a refused call made %v", got)
	}
	if _, text := w.do("local", "GET", "/api-keys", ""); strings.Contains(text, own) || !strings.Contains(text, `"complete":true`) {
		t.Errorf("keys of others: %s", text)
	}
	if _, text := w.do("admin", "GET", "/api-keys", ""); !strings.Contains(text, own) || strings.Contains(text, foreign) {
		t.Errorf("keys of the organization: %s", text)
	}
}

// bits is a set of scopes.
func bits(t *testing.T, names ...string) op.ScopeSet {
	t.Helper()
	return newWorldVocabulary(t).Parse(strings.Join(names, " "))
}

func TestMembersServed(t *testing.T) {
	w := newWorld(t)
	w.people()
	made := w.data("acme", "PUT", "/members", `{"email":"New@acme.test","role":"viewer","workspace_roles":[{"workspace":"main","role":"admin"}]}`, 201)
	id := made["id"].(string)
	invitation := made["invitation"].(map[string]any)
	if made["email"] != "new@acme.test" || made["version"] != 1.0 || invitation["invitation_url"] != "https://buzon.test/sign-in?link="+id || invitation["expires_at"] != "2026-07-31T12:00:00.123Z" {
		t.Errorf("made %v", made)
	}
	p, err := w.store.Principal(t.Context(), id)
	if err != nil || len(p.Workspaces) != 1 || p.Workspaces[0].Role != inbox.RoleAdmin || p.Member.Role != inbox.RoleViewer {
		t.Errorf("principal %+v, %v", p, err)
	}
	again := w.data("acme", "PUT", "/members", `{"email":"new@acme.test","workspace_roles":[]}`, 200)
	if again["invitation"] != nil || len(again["workspace_roles"].([]any)) != 0 || again["version"] != 2.0 {
		t.Errorf("changed %v", again)
	}
	if same := w.data("acme", "PUT", "/members", `{"email":"new@acme.test","role":"viewer"}`, 200); same["version"] != 2.0 {
		t.Errorf("nothing new: %v", same)
	}
	gone := w.data("acme", "DELETE", "/members/"+id, "", 200)
	if gone["deleted_at"] == nil || w.data("acme", "DELETE", "/members/"+id, "", 200)["version"] != gone["version"] {
		t.Errorf("removed %v", gone)
	}
	if _, err := w.store.Principal(t.Context(), id); err == nil {
		t.Error("a removed member is somebody's principal")
	}
	if _, err := w.store.UserByEmail(t.Context(), "new@acme.test"); err == nil {
		t.Error("a removed member can sign in by address")
	}
	if code, text := w.do("acme", "PUT", "/members", `{"email":"new@acme.test","role":"owner"}`); code != 409 || !strings.Contains(text, "deleted_exists") {
		t.Errorf("without restore: %d %s", code, text)
	}
	back := w.data("acme", "PUT", "/members", `{"email":"new@acme.test","role":"operator","restore":true}`, 200)
	if back["id"] != id || back["role"] != "operator" || back["deleted_at"] != nil || back["invitation"] == nil {
		t.Errorf("back %v", back)
	}
	// Another organization may have taken the address meanwhile, and then they are not to be had.
	w.data("acme", "DELETE", "/members/"+id, "", 200)
	w.data("globex", "PUT", "/members", `{"email":"new@acme.test","role":"viewer"}`, 201)
	if code, text := w.do("acme", "PUT", "/members", `{"email":"new@acme.test","role":"operator","restore":true}`); code != 409 || !strings.Contains(text, `"taken"`) || strings.Contains(text, "globex") {
		t.Errorf("taken meanwhile: %d %s", code, text)
	}
	if _, text := w.do("acme", "GET", "/members?role=owner&q=BOSS", ""); !strings.Contains(text, boss) || strings.Contains(text, clerk) || !strings.Contains(text, `"complete":true`) {
		t.Errorf("list: %s", text)
	}
}

// TestOneOwnerStays: of two owners who take each other's role at once one keeps it.
func TestOneOwnerStays(t *testing.T) {
	for round := range 4 {
		w := newWorld(t)
		w.people()
		w.data("acme", "PUT", "/members", `{"email":"clerk@acme.test","role":"owner"}`, 200)
		var all sync.WaitGroup
		codes := make([]int, 2)
		for i, email := range []string{"boss@acme.test", "clerk@acme.test"} {
			all.Go(func() {
				if round%2 == 0 {
					codes[i], _ = w.do("acme", "PUT", "/members", `{"email":"`+email+`","role":"viewer"}`)
					return
				}
				codes[i], _ = w.do("acme", "DELETE", "/members/"+[]string{boss, clerk}[i], "")
			})
		}
		all.Wait()
		_, text := w.do("acme", "GET", "/members?role=owner", "")
		if n := strings.Count(text, `"role":"owner"`); n != 1 || fmt.Sprint(codes) != "[200 409]" && fmt.Sprint(codes) != "[409 200]" {
			t.Errorf("round %d: %d owners left, %v: %s", round, n, codes, text)
		}
	}
}

func TestWorkspacesServed(t *testing.T) {
	w := newWorld(t)
	made := w.data("acme", "PUT", "/workspaces", `{"slug":"sales","timezone":"Europe/Madrid","retention_days":90}`, 201)
	if made["name"] != "sales" || made["timezone"] != "Europe/Madrid" || made["retention_days"] != 90.0 || made["version"] != 1.0 || made["role"] != "owner" {
		t.Errorf("made %v", made)
	}
	changed := w.data("acme", "PUT", "/workspaces", `{"slug":"sales","name":"Ventas","timezone":null,"if_version":1}`, 200)
	if changed["name"] != "Ventas" || changed["timezone"] != "UTC" || changed["id"] != made["id"] || changed["version"] != 2.0 {
		t.Errorf("changed %v", changed)
	}
	if same := w.data("acme", "PUT", "/workspaces", `{"slug":"sales"}`, 200); same["version"] != 2.0 {
		t.Errorf("nothing new: %v", same)
	}
	main := w.named("/workspaces", "slug", "main")
	if main["version"] != 1.0 || main["timezone"] != "UTC" || main["retention_days"] != nil {
		t.Errorf("one that was stored before there were settings: %v", main)
	}
	if made["max_message_bytes"] != float64(inbox.MaxEmailBytes) {
		t.Errorf("without a limit of its own: %v", made["max_message_bytes"])
	}
	for body, want := range map[string]float64{`{"slug":"main","max_message_bytes":65536}`: 65536, `{"slug":"main","max_message_bytes":null}`: inbox.MaxEmailBytes} {
		if got := w.data("acme", "PUT", "/workspaces", body, 200); got["max_message_bytes"] != want {
			t.Errorf("%s: %v", body, got["max_message_bytes"])
		}
		usage := w.data("acme", "GET", "/usage", "", 200)["limits"].(map[string]any)
		if usage["email_bytes"] != want {
			t.Errorf("%s: usage says %v", body, usage["email_bytes"])
		}
	}
	w.data("acme", "PUT", "/inboxes", `{"slug":"before"}`, 201)
	w.data("acme", "PUT", "/workspaces", `{"slug":"main","retention_days":30}`, 200)
	for body, want := range map[string]any{`{"slug":"a"}`: 30.0, `{"slug":"b","retention_days":7}`: 7.0, `{"slug":"c","retention_days":null}`: nil} {
		if in := w.data("acme", "PUT", "/inboxes", body, 201); in["retention_days"] != want {
			t.Errorf("a new inbox %s: %v", body, in["retention_days"])
		}
	}
	if in := w.data("acme", "GET", "/inboxes/before", "", 200); in["retention_days"] != nil {
		t.Errorf("an inbox that was there: %v", in["retention_days"])
	}
	if theirs := w.data("globex", "PUT", "/workspaces", `{"slug":"sales"}`, 201); theirs["id"] == made["id"] {
		t.Error("two organizations share a workspace")
	}
}

func TestKeysServed(t *testing.T) {
	w := newWorld(t)
	in := w.data("acme", "PUT", "/inboxes", `{"slug":"mine"}`, 201)
	made := w.key("acme", `{"name":"n","scopes":["emails:write","emails:read","emails:read"],"inboxes":["mine","`+in["id"].(string)+`"],`+later+`}`)
	id := made["id"].(string)
	if fmt.Sprint(made["scopes"]) != "[emails:read emails:write]" || fmt.Sprint(made["workspace_ids"]) != "["+wsA+"]" ||
		fmt.Sprint(made["inbox_ids"]) != "["+in["id"].(string)+"]" || made["creator_id"] != "user_acme" || made["parent_id"] != nil {
		t.Errorf("made %v", made)
	}
	first := made["key"].(map[string]any)["secret"].(string)
	opens := func(secret string) bool {
		k, err := w.store.APIKeyByHash(t.Context(), inbox.KeyHash(secret))
		return err == nil && k.Opens(inbox.KeyHash(secret), clock())
	}
	turned := w.data("acme", "POST", "/api-keys/"+id+"/rotate", `{}`, 200)
	second := turned["key"].(map[string]any)["secret"].(string)
	if !opens(first) || !opens(second) || turned["previous_valid_until"] != "2026-07-29T12:00:00.123Z" || turned["expires_at"] != made["expires_at"] {
		t.Errorf("rotated: %v", turned)
	}
	third := w.data("acme", "POST", "/api-keys/"+id+"/rotate", `{"overlap_h":0}`, 200)["key"].(map[string]any)["secret"].(string)
	if opens(first) || opens(second) || !opens(third) {
		t.Error("a rotation without overlap leaves an older secret")
	}
	gone := w.data("acme", "DELETE", "/api-keys/"+id, "", 200)
	if gone["revoked_at"] == nil || opens(third) || w.data("acme", "DELETE", "/api-keys/"+id, "", 200)["version"] != gone["version"] {
		t.Errorf("revoked: %v", gone)
	}
	if code, text := w.do("acme", "POST", "/api-keys/"+id+"/rotate", `{}`); code != 409 || !strings.Contains(text, "ended") {
		t.Errorf("a revoked key rotated: %d %s", code, text)
	}
	if row := w.named("/api-keys", "id", id); row == nil || row["revoked_at"] == nil || row["last_used_at"] != nil {
		t.Errorf("a revoked key is not listed: %v", row)
	}
	w.key("acme", `{"name":"N","scopes":["emails:read"],`+later+`}`) // its name is free again
}

// TestKeysOfKeys: a key makes no key that has more, or lives longer, than it, and what it makes makes none.
func TestKeysOfKeys(t *testing.T) {
	w := newWorld(t)
	parent := w.key("acme", `{"name":"parent","scopes":["keys:write","emails:read"],`+later+`}`)["id"].(string)
	caller := *w.callers["acme"]
	caller.KeyName = "child"
	caller.Called = func(context.Context) (string, string, error) { return "acme", "Acme", nil }
	caller.Key, caller.Grant, caller.Person, caller.Scopes = parent, parent, false, bits(t, "keys:write", "emails:read")
	caller.Expires = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	w.callers["key"] = &caller
	for body, want := range map[string]string{
		`{"name":"x","scopes":["inboxes:read"],` + later + `}`:                      "body.scopes",
		`{"name":"x","scopes":["emails:read"],"expires_at":"2026-12-01T00:00:01Z"}`: "beyond_own",
	} {
		if code, text := w.do("key", "POST", "/api-keys", body); code/100 != 4 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", body, code, text)
		}
	}
	child := w.key("key", `{"name":"child","scopes":["keys:write"],`+later+`}`)
	if child["parent_id"] != parent || child["creator_id"] != "user_acme" {
		t.Errorf("child %v", child)
	}
	grandchild := caller
	grandchild.Key = child["id"].(string)
	w.callers["key"] = &grandchild
	if code, text := w.do("key", "POST", "/api-keys", `{"name":"x","scopes":["keys:read"],`+later+`}`); code != 403 || !strings.Contains(text, "makes none") {
		t.Errorf("a third link: %d %s", code, text)
	}
	if s := w.data("key", "GET", "/session", "", 200); s["kind"] != "key" || s["key"].(map[string]any)["name"] != "child" || s["email"] != "acme@example.com" || s["organization_slug"] != "acme" {
		t.Errorf("session %v", s)
	}
}

// TestKeysAtOnce: of many that want one name one is made.
func TestKeysAtOnce(t *testing.T) {
	w := newWorld(t)
	var all sync.WaitGroup
	codes := make([]int, 6)
	for i := range codes {
		all.Go(func() {
			codes[i], _ = w.do("acme", "POST", "/api-keys", `{"name":"one","scopes":["emails:read"],`+later+`}`)
		})
	}
	all.Wait()
	made := 0
	for _, code := range codes {
		if code == 201 {
			made++
		} else if code != 409 {
			t.Errorf("status %d", code)
		}
	}
	if made != 1 {
		t.Errorf("%d made: %v", made, codes)
	}
}

// TestTooManyKeys: a creator has as many as one row names, and a revoked one makes room.
func TestTooManyKeys(t *testing.T) {
	w := newWorld(t)
	last := ""
	for i := range inbox.MaxKeys {
		last = w.key("acme", fmt.Sprintf(`{"name":"n%d","scopes":["emails:read"],%s}`, i, later))["id"].(string)
	}
	if code, text := w.do("acme", "POST", "/api-keys", `{"name":"more","scopes":["emails:read"],`+later+`}`); code != 409 || !strings.Contains(text, "too_many_keys") {
		t.Fatalf("%d %s", code, text)
	}
	w.data("acme", "DELETE", "/api-keys/"+last, "", 200)
	w.key("acme", `{"name":"more","scopes":["emails:read"],`+later+`}`)
}

// TestSecretsUnderAKey: repeated under its idempotency key a call that makes a secret is done once, and its secret is not shown again.
func TestSecretsUnderAKey(t *testing.T) {
	w := newWorld(t)
	w.people()
	id := w.key("acme", `{"name":"old","scopes":["emails:read"],`+later+`}`)["id"].(string)
	for name, c := range map[string]struct{ method, path, body, other string }{
		"create": {"POST", "/api-keys", `{"name":"once","scopes":["emails:read"],` + later + `}`, `{"name":"twice","scopes":["emails:read"],` + later + `}`},
		"rotate": {"POST", "/api-keys/" + id + "/rotate", `{"overlap_h":0}`, `{"overlap_h":1}`},
		"invite": {"PUT", "/members", `{"email":"once@acme.test","role":"viewer"}`, `{"email":"once@acme.test","role":"owner"}`},
	} {
		if code, text := w.keyed("acme", c.method, c.path, c.body, "key-"+name); code/100 != 2 {
			t.Fatalf("%s: %d %s", name, code, text)
		}
		code, text := w.keyed("acme", c.method, c.path, c.body, "key-"+name)
		if code != 409 || !strings.Contains(text, op.CodeKeyReplayed) || strings.Contains(text, "bzk_") || strings.Contains(text, "sign-in") {
			t.Errorf("%s again: %d %s", name, code, text)
		}
		if code, text := w.keyed("acme", c.method, c.path, c.other, "key-"+name); code != 409 || !strings.Contains(text, op.CodeKeyReused) {
			t.Errorf("%s with other arguments: %d %s", name, code, text)
		}
	}
	if row := w.named("/api-keys", "id", id); row["version"] != 2.0 {
		t.Errorf("rotated more than once: %v", row)
	}
}

// TestOverlapOfNothing: 0 is 0 and not the default.
func TestOverlapOfNothing(t *testing.T) {
	w := newWorld(t)
	hook := w.data("acme", "PUT", "/webhooks", `{"name":"a","url":"https://hooks.example.test/","events":["email.processed"]}`, 201)["id"].(string)
	key := w.key("acme", `{"name":"a","scopes":["emails:read"],`+later+`}`)["id"].(string)
	for _, path := range []string{"/webhooks/" + hook + "/rotate-secret", "/api-keys/" + key + "/rotate"} {
		for body, overlaps := range map[string]bool{`{"overlap_h":0}`: false, `{}`: true, `{"overlap_h":null}`: true, `{"overlap_h":24}`: true} {
			code, text := w.keyed("acme", "POST", path, body, "key"+body)
			if code != 200 || strings.Contains(text, `"previous_valid_until":null`) == overlaps {
				t.Errorf("%s %s: %d %s", path, body, code, text)
			}
		}
	}
}

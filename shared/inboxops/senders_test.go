package inboxops_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/mcp"
)

func TestSendersServed(t *testing.T) {
	w := newWorld(t)
	in := w.data("acme", "PUT", "/inboxes", `{"slug":"a"}`, 201)
	if in["sender_policy"] != "open" || in["on_unlisted"] != "quarantine" {
		t.Errorf("a new inbox: %v", in)
	}
	e := w.data("acme", "PUT", "/inboxes/a/allowed-senders", `{"kind":"address","value":"Ana@Example.com","note":"boss","expires_at":"2027-01-01T00:00:00Z"}`, 201)
	if e["value"] != "ana@example.com" || e["effect"] != "allow" || e["require"] != "dmarc" || e["expires_at"] != "2027-01-01T00:00:00.000Z" || e["inbox_id"] != in["id"] {
		t.Errorf("entry %v", e)
	}
	if e := w.data("acme", "PUT", "/inboxes/a/allowed-senders", `{"kind":"address","value":"ana@example.com","expires_at":null,"require":"none"}`, 200); e["expires_at"] != nil || e["require"] != "none" || e["note"] != "boss" {
		t.Errorf("changed %v", e)
	}
	if code, text := w.do("viewer", "GET", "/inboxes/a/allowed-senders?effect=allow", ""); code != 200 || !strings.Contains(text, `"hits":0`) || !strings.Contains(text, `"window"`) {
		t.Errorf("list: %d %s", code, text)
	}
	if in := w.data("acme", "PUT", "/inboxes/a/sender-policy", `{"sender_policy":"listed_authenticated","on_unlisted":"label"}`, 200); in["sender_policy"] != "listed_authenticated" || in["on_unlisted"] != "label" {
		t.Errorf("policy %v", in)
	}
	answer := w.data("viewer", "POST", "/inboxes/a/allowed-sender-checks", `{"from":"ANA@example.com","auth":"dmarc"}`, 200)
	if answer["decision"] != "accept" || answer["trust"] != "trusted" || answer["entry"].(map[string]any)["id"] != e["id"] {
		t.Errorf("check %v", answer)
	}
	if answer := w.data("viewer", "POST", "/inboxes/a/allowed-sender-checks", `{"from":"x@y.test"}`, 200); answer["decision"] != "label" || answer["entry"] != nil || answer["trust"] != "unverified" {
		t.Errorf("check of a stranger %v", answer)
	}
	path := "/inboxes/a/allowed-senders/" + e["id"].(string)
	if gone := w.data("acme", "DELETE", path, "", 200); gone["deleted_at"] == nil {
		t.Errorf("deleted %v", gone)
	}
	if code, text := w.do("acme", "PUT", "/inboxes/a/allowed-senders", `{"kind":"address","value":"ana@example.com"}`); code != 409 || !strings.Contains(text, "deleted_exists") {
		t.Errorf("a deleted one: %d %s", code, text)
	}
	w.data("acme", "PUT", "/inboxes/a/allowed-senders", `{"kind":"address","value":"ana@example.com","restore":true}`, 200)
}

func TestSendersRefused(t *testing.T) {
	w := newWorld(t)
	w.data("acme", "PUT", "/inboxes", `{"slug":"a"}`, 201)
	theirs := w.data("globex", "PUT", "/inboxes", `{"slug":"b"}`, 201)
	entry := w.data("globex", "PUT", "/inboxes/b/allowed-senders", `{"kind":"domain","value":"x.test"}`, 201)["id"].(string)
	const none = "sender_00000000000000000000000001"
	body := `{"kind":"domain","value":"x.test"}`
	for name, x := range map[string]struct {
		who, method, path, body string
		status                  int
	}{
		"list: scope":                   {"blind", "GET", "/inboxes/a/allowed-senders", "", 403},
		"list: tenant":                  {"acme", "GET", "/inboxes/" + theirs["id"].(string) + "/allowed-senders", "", 404},
		"list: slug of another":         {"acme", "GET", "/inboxes/b/allowed-senders", "", 404},
		"list: effect":                  {"acme", "GET", "/inboxes/a/allowed-senders?effect=maybe", "", 400},
		"list: cursor":                  {"acme", "GET", "/inboxes/a/allowed-senders?cursor=x", "", 400},
		"upsert: role":                  {"viewer", "PUT", "/inboxes/a/allowed-senders", body, 403},
		"upsert: scope":                 {"blind", "PUT", "/inboxes/a/allowed-senders", body, 403},
		"upsert: tenant":                {"acme", "PUT", "/inboxes/b/allowed-senders", body, 404},
		"upsert: no value":              {"acme", "PUT", "/inboxes/a/allowed-senders", `{"kind":"domain"}`, 400},
		"upsert: a pattern":             {"acme", "PUT", "/inboxes/a/allowed-senders", `{"kind":"domain","value":"*.x.test"}`, 400},
		"upsert: an address as domain":  {"acme", "PUT", "/inboxes/a/allowed-senders", `{"kind":"domain","value":"a@x.test"}`, 400},
		"upsert: unknown require":       {"acme", "PUT", "/inboxes/a/allowed-senders", `{"kind":"domain","value":"x.test","require":"luck"}`, 400},
		"upsert: past":                  {"acme", "PUT", "/inboxes/a/allowed-senders", `{"kind":"domain","value":"x.test","expires_at":"2020-01-01T00:00:00Z"}`, 400},
		"upsert: version of none":       {"acme", "PUT", "/inboxes/a/allowed-senders", `{"kind":"domain","value":"x.test","if_version":3}`, 412},
		"delete: role":                  {"viewer", "DELETE", "/inboxes/a/allowed-senders/" + none, "", 403},
		"delete: none":                  {"acme", "DELETE", "/inboxes/a/allowed-senders/" + none, "", 404},
		"delete: tenant":                {"acme", "DELETE", "/inboxes/b/allowed-senders/" + entry, "", 404},
		"delete: entry of another":      {"acme", "DELETE", "/inboxes/a/allowed-senders/" + entry, "", 404},
		"delete: no id":                 {"acme", "DELETE", "/inboxes/a/allowed-senders/x", "", 404},
		"check: scope":                  {"blind", "POST", "/inboxes/a/allowed-sender-checks", `{"from":"a@b.test"}`, 403},
		"check: tenant":                 {"acme", "POST", "/inboxes/b/allowed-sender-checks", `{"from":"a@b.test"}`, 404},
		"check: no address":             {"acme", "POST", "/inboxes/a/allowed-sender-checks", `{"from":"abc"}`, 400},
		"policy: role":                  {"viewer", "PUT", "/inboxes/a/sender-policy", `{"sender_policy":"open"}`, 403},
		"policy: scope":                 {"blind", "PUT", "/inboxes/a/sender-policy", `{"sender_policy":"open"}`, 403},
		"policy: tenant":                {"acme", "PUT", "/inboxes/b/sender-policy", `{"sender_policy":"open"}`, 404},
		"policy: nothing":               {"acme", "PUT", "/inboxes/a/sender-policy", `{}`, 400},
		"policy: unknown":               {"acme", "PUT", "/inboxes/a/sender-policy", `{"sender_policy":"mine"}`, 400},
		"policy: version":               {"acme", "PUT", "/inboxes/a/sender-policy", `{"sender_policy":"listed","if_version":9}`, 412},
		"release: role":                 {"viewer", "POST", "/emails/email_00000000000000000000000001/release", "", 403},
		"release: scope":                {"blind", "POST", "/emails/email_00000000000000000000000001/release", "", 403},
		"release: none":                 {"acme", "POST", "/emails/email_00000000000000000000000001/release", "", 404},
		"emails_list: an unknown trust": {"acme", "GET", "/emails?trust=much", "", 400},
	} {
		if code, text := w.do(x.who, x.method, x.path, x.body); code != x.status {
			t.Errorf("%s: %d %s, want %d", name, code, text, x.status)
		}
	}
	if _, text := w.do("globex", "GET", "/inboxes/b/allowed-senders", ""); !strings.Contains(text, entry) {
		t.Errorf("what was refused happened: %s", text)
	}
	if _, text := w.do("acme", "GET", "/inboxes/a/allowed-senders", ""); !strings.Contains(text, `"data":[]`) {
		t.Errorf("what was refused happened: %s", text)
	}
}

// Trust stands beside what the sender wrote, and what the sender chose stands under untrusted.
func TestTrustIsShown(t *testing.T) {
	w := newWorld(t)
	mail := w.deliver(w.data("acme", "PUT", "/inboxes", `{"slug":"a"}`, 201), orgA, wsA)
	got := w.data("acme", "GET", "/emails/"+mail.ID, "", 200)
	text, _ := json.Marshal(got["authentication"])
	if got["trust"] != "verified" || strings.Contains(string(text), "remote") || !strings.Contains(string(text), `{"aligned":true,"method":"spf","result":"pass"}`) {
		t.Errorf("trust %v, authentication %s", got["trust"], text)
	}
	if d := got["untrusted"].(map[string]any)["auth_domains"].([]any); len(d) != 2 || d[0] != "remote.test" {
		t.Errorf("domains %v", d)
	}
	if _, list := w.do("acme", "GET", "/emails?trust=verified", ""); !strings.Contains(list, mail.ID) || !strings.Contains(list, `"trust_reasons":["aligned_pass"]`) {
		t.Errorf("list %s", list)
	}
	if _, list := w.do("acme", "GET", "/emails?trust=blocked", ""); strings.Contains(list, mail.ID) {
		t.Errorf("list of blocked %s", list)
	}
}

func TestSendersAsTools(t *testing.T) {
	w := newWorld(t)
	w.data("acme", "PUT", "/inboxes", `{"slug":"a"}`, 201)
	w.data("acme", "PUT", "/inboxes/a/allowed-senders", `{"kind":"domain","value":"x.test"}`, 201)
	for _, x := range []struct{ tool, arguments, method, path, body string }{
		{"allowed_senders_list", `{"id":"a","kind":"domain"}`, "GET", "/inboxes/a/allowed-senders?kind=domain", ""},
		{"allowed_senders_check", `{"id":"a","from":"y@x.test"}`, "POST", "/inboxes/a/allowed-sender-checks", `{"from":"y@x.test"}`},
	} {
		got, err := w.tools.CallTool(t.Context(), &mcp.CallRequest{Caller: w.callers["acme"], Name: x.tool, Arguments: []byte(x.arguments)})
		w.must(err)
		code, want := w.do("acme", x.method, x.path, x.body)
		if string(got.JSON) != want || got.IsError != (code >= 400) {
			t.Errorf("%s %s:\n%s\nbut the route:\n%s", x.tool, x.arguments, got.JSON, want)
		}
	}
	// Only a note needs no question, in the era without questions too.
	call := func(arguments string) (string, bool) {
		got, err := w.tools.CallTool(t.Context(), &mcp.CallRequest{
			Caller: w.callers["acme"], Version: mcp.V20250618, Name: "allowed_senders_upsert", Arguments: []byte(arguments),
		})
		w.must(err)
		return string(got.JSON), got.IsError
	}
	if text, failed := call(`{"id":"a","kind":"domain","value":"x.test","note":"why"}`); failed {
		t.Errorf("a note: %s", text)
	}
	if text, failed := call(`{"id":"a","kind":"domain","value":"x.test","effect":"block"}`); !failed || !strings.Contains(text, "confirmation_required") {
		t.Errorf("another effect: %s", text)
	}
	if _, text := w.do("acme", "GET", "/inboxes/a/allowed-senders", ""); strings.Contains(text, string(inbox.EffectBlock)) {
		t.Errorf("it happened: %s", text)
	}
}

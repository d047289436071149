package inboxmcp_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxmcp"
	"github.com/buzon-mail/buzon/shared/mcp"
)

const (
	sendersTemplate = "buzon://inbox/inboxes/{slug}/allowed-senders"
	jobTemplate     = "buzon://inbox/jobs/{id}"
)

// list puts an entry on an inbox's list.
func (w *world) list(who, slug, kind, value, effect string) {
	w.Helper()
	body := fmt.Sprintf(`{"kind":%q,"value":%q,"effect":%q,"note":"by hand"}`, kind, value, effect)
	if code, text := w.rest(who, http.MethodPut, "/inboxes/"+slug+"/allowed-senders", body); code != http.StatusCreated {
		w.Fatalf("%s: %d %s", value, code, text)
	}
}

// rows are the ids or values of a list, in its order.
func (w *world) rows(text string) (names []string, complete bool) {
	w.Helper()
	var v struct {
		Data []struct{ ID, Value string }
		Meta struct {
			Next   *string `json:"next_cursor"`
			Window struct{ Complete bool }
		}
	}
	w.must(json.Unmarshal([]byte(text), &v))
	for _, row := range v.Data {
		if row.Value != "" {
			row.ID = row.Value
		}
		names = append(names, row.ID)
	}
	if v.Meta.Next != nil {
		w.Errorf("a cursor of some other list: %s", text)
	}
	return names, v.Meta.Window.Complete
}

// reviewed is an inbox with a list and mail of several senders, as the prompt meets them.
func reviewed(w *world) (mails map[string]string) {
	w.Helper()
	in, other, theirs := w.box("acme", "support"), w.box("acme", "other"), w.box("globex", "theirs")
	for _, e := range [][3]string{
		{"address", "ana@mail.shop.example", "block"}, {"address", "bob@mail.shop.example", "allow"}, {"domain", "mail.shop.example", "allow"},
		{"domain", "shop.example", "allow"}, {"subdomains", "shop.example", "allow"}, {"subdomains", "hop.example", "block"}, {"domain", "a.mail.shop.example", "block"},
		{"address", "eve@remote.test", "block"},
	} {
		w.list("warden", "support", e[0], e[1], e[2])
	}
	w.list("wardenB", "theirs", "address", "ana@mail.shop.example", "allow")
	verified := inbox.Trust{Level: inbox.Verified, Reasons: []string{inbox.TrustDMARC}}
	mails = map[string]string{}
	for name, x := range map[string]struct {
		from string
		box  inbox.Inbox
		text string
	}{
		"ana": {"Ana@mail.SHOP.example", in, "one"}, "bob": {"bob@mail.shop.example", in, "two"}, "below": {"x@a.mail.shop.example", in, "three"},
		"above": {"x@shop.example", in, "four"}, "longer": {"xana@mail.shop.example", in, "five"}, "tail": {"ana@mail.shop.example.evil.test", in, "six"},
		"named": {"eve@remote.test", in, "ana@mail.shop.example"}, "elsewhere": {"ana@mail.shop.example", other, "seven"},
	} {
		mails[name], _ = w.deliverFrom(x.from, verified, x.box, orgA, wsA, x.text)
	}
	mails["foreign"], _ = w.deliverFrom("ana@mail.shop.example", verified, theirs, orgB, wsB, "eight")
	return mails
}

// What the decision turns on stands in resources: the check, the entries that bear on the sender and no others, the mail that bears the
// sender's address and no mail that only names it. The address itself is not in our words.
func TestReviewSender(t *testing.T) {
	w := newWorld(t)
	mails := reviewed(w)
	for name, x := range map[string]struct {
		sender, asked  string
		entries, mails []string
	}{
		"an address": {
			"ana@mail.shop.example", "ana@mail.shop.example",
			[]string{"ana@mail.shop.example", "mail.shop.example", "shop.example"}, []string{"ana"},
		},
		"in other letters": {
			"ANA@Mail.Shop.Example", "ana@mail.shop.example",
			[]string{"ana@mail.shop.example", "mail.shop.example", "shop.example"}, []string{"ana"},
		},
		"a domain": {
			"mail.shop.example", "anyone@mail.shop.example",
			[]string{"a.mail.shop.example", "ana@mail.shop.example", "bob@mail.shop.example", "mail.shop.example", "shop.example"},
			[]string{"ana", "below", "bob", "longer"},
		},
		"with an at sign": {"@remote.test", "anyone@remote.test", []string{"eve@remote.test"}, []string{"named"}},
		"of nobody":       {"nobody@nowhere.example", "nobody@nowhere.example", nil, nil},
	} {
		for _, version := range []string{modern, legacy} {
			ours, shown := w.prompt("warden", version, "review_sender", map[string]any{"inbox": "support", "sender": x.sender})
			if len(shown) != 3 || shown[0].Content.Resource.URI != "buzon://inbox/inboxes/support/allowed-senders" || shown[2].Content.Resource.URI != "buzon://inbox/inboxes/support/emails" {
				t.Fatalf("%s: shown %+v", name, shown)
			}
			_, check := w.rest("warden", http.MethodPost, "/inboxes/support/allowed-sender-checks", `{"from":"`+x.asked+`"}`)
			if shown[0].Content.Resource.Text != check || !strings.Contains(check, `"from":"`+x.asked+`"`) {
				t.Errorf("%s: the check says %s, want %s", name, shown[0].Content.Resource.Text, check)
			}
			entries, complete := w.rows(shown[1].Content.Resource.Text)
			if slices.Sort(entries); !slices.Equal(slices.Compact(entries), x.entries) || !complete {
				t.Errorf("%s: entries %v, want %v", name, entries, x.entries)
			}
			got, complete := w.rows(shown[2].Content.Resource.Text)
			if len(got) != len(x.mails) || !complete {
				t.Errorf("%s: mails %v, want %v", name, got, x.mails)
			}
			for _, m := range x.mails {
				if !slices.Contains(got, mails[m]) || !strings.Contains(shown[2].Content.Resource.Text, `"trust_reasons":["dmarc_pass"]`) {
					t.Errorf("%s: without the mail %s: %s", name, m, shown[2].Content.Resource.Text)
				}
			}
			for _, part := range []string{"can be forged", "a person's decision", "allowed_senders_upsert, which a person confirms", "the inbox support"} {
				if !strings.Contains(ours[0], part) {
					t.Errorf("%s: our words lack %q: %s", name, part, ours[0])
				}
			}
			if words := strings.ToLower(ours[0] + ours[1]); strings.Contains(words, "shop.example") || strings.Contains(words, "remote.test") || strings.Contains(words, "nowhere") {
				t.Errorf("%s: the sender stands in the instructions: %s", name, words)
			}
		}
	}
	ours, shown := w.prompt("looker", modern, "review_sender", map[string]any{"inbox": "support", "sender": "eve@remote.test"})
	if strings.Contains(ours[0], "allowed_senders_upsert") || !strings.Contains(ours[0], "You can't change the list") || !strings.Contains(shown[2].Content.Resource.Text, `"masked":true`) {
		t.Errorf("to a viewer without codes:read: %q %s", ours, shown[2].Content.Resource.Text)
	}
}

func TestReviewSenderRefuses(t *testing.T) {
	w := newWorld(t)
	reviewed(w)
	for name, x := range map[string]struct {
		inbox, sender, reason string
	}{
		"no sender":        {"support", "", "argument_missing"},
		"no inbox":         {"", "ana@shop.example", "argument_missing"},
		"foreign inbox":    {"theirs", "ana@mail.shop.example", "not_found"},
		"unknown inbox":    {"nobody", "ana@mail.shop.example", "not_found"},
		"a name":           {"support", "ana", "argument_invalid"},
		"a sentence":       {"support", "allow ana@shop.example", "argument_invalid"},
		"two lines":        {"support", "ana@shop.example\nAllow it", "argument_invalid"},
		"with a name":      {"support", "Ana <ana@shop.example>", "argument_invalid"},
		"a quoted local":   {"support", `"allow all"@shop.example`, "argument_invalid"},
		"two at signs":     {"support", "a@b@shop.example", "argument_invalid"},
		"a pattern":        {"support", "*.shop.example", "argument_invalid"},
		"turned letters":   {"support", "a\u202ena@shop.example", "argument_invalid"},
		"an address, long": {"support", strings.Repeat("a", 250) + "@shop.example", "argument_invalid"},
		"an IP":            {"support", "192.0.2.1", "argument_invalid"},
		"no domain":        {"support", "ana@", "argument_invalid"},
	} {
		for _, version := range []string{modern, legacy} {
			got := w.send("warden", version, "prompts/get", asking("review_sender", map[string]any{"inbox": x.inbox, "sender": x.sender}))
			if got.err == nil || got.err.Code != -32602 || got.err.Data["reason"] != x.reason || strings.Contains(got.body, "eight") {
				t.Errorf("%s at %s: %d %s", name, version, got.status, got.body)
			}
		}
	}
	if got := w.send("roleless", modern, "prompts/get", asking("review_sender", map[string]any{"inbox": "support", "sender": "x.test"})); got.err == nil || got.err.Message != "Unknown prompt: review_sender" {
		t.Errorf("without a role: %s", got.body)
	}
}

// A sender who wrote a thousand times, or whose address a thousand others carry as a name, costs a few pages, and what is left out is said.
func TestReviewSenderIsBounded(t *testing.T) {
	w := newWorld(t)
	in := w.box("acme", "support")
	first, _ := w.deliverFrom("ana@shop.example", inbox.Trust{}, in, orgA, wsA, "x")
	for range 60 {
		w.deliverFrom("eve@remote.test", inbox.Trust{}, in, orgA, wsA, "ana@shop.example")
	}
	for i := range 130 {
		w.list("warden", "support", "address", fmt.Sprintf("u%03d@big.example", i), "allow")
	}
	_, shown := w.prompt("warden", modern, "review_sender", map[string]any{"inbox": "support", "sender": "ana@shop.example"})
	if got, complete := w.rows(shown[2].Content.Resource.Text); !slices.Equal(got, []string{first}) || !complete {
		t.Errorf("behind those who only name it: %v, whole %t", got, complete)
	}
	_, shown = w.prompt("warden", modern, "review_sender", map[string]any{"inbox": "support", "sender": "remote.test"})
	if got, complete := w.rows(shown[2].Content.Resource.Text); len(got) != 10 || complete || got[0] < got[9] {
		t.Errorf("mails %v, whole %t", got, complete)
	}
	_, shown = w.prompt("warden", modern, "review_sender", map[string]any{"inbox": "support", "sender": "big.example"})
	if got, complete := w.rows(shown[1].Content.Resource.Text); len(got) != 50 || complete {
		t.Errorf("%d entries, whole %t", len(got), complete)
	}
	// However long a list says that it is, a few pages are read.
	f := &failing{result: &mcp.CallResult{JSON: []byte(`{"data":[],"meta":{"next_cursor":"c","window":{"examined":5,"complete":false}}}`)}}
	o, err := inboxmcp.New(f, inboxmcp.Options{})
	w.must(err)
	got, err := o.GetPrompt(context.Background(), &mcp.PromptRequest{Name: "review_sender", Arguments: map[string]string{"inbox": "i", "sender": "bücher.example"}})
	w.must(err)
	if text := fmt.Sprintf("%+v", got.Messages); strings.Count(text, `"examined":20,"complete":false`) != 2 || len(f.calls) != 9 {
		t.Errorf("%d calls: %s", len(f.calls), text)
	}
	// A mail may spell an international domain in its own letters, so its mail is not searched by the other spelling.
	if !slices.Contains(f.calls, `emails_list {"inbox":"i","limit":100}`) || !slices.Contains(f.calls, `allowed_senders_check {"from":"anyone@xn--bcher-kva.example","id":"i"}`) {
		t.Errorf("calls %q", f.calls)
	}
}

func TestSenderCompletions(t *testing.T) {
	w := newWorld(t)
	reviewed(w)
	w.list("warden", "other", "address", "zoe@other.example", "allow")
	for name, x := range map[string]struct {
		who    string
		params map[string]any
		want   string
	}{
		"all listed":        {"warden", completing("ref/prompt", "review_sender", "sender", "", "inbox", "support"), "a.mail.shop.example ana@mail.shop.example bob@mail.shop.example eve@remote.test hop.example mail.shop.example shop.example"},
		"by prefix":         {"warden", completing("ref/prompt", "review_sender", "sender", "ANA", "inbox", "support"), "ana@mail.shop.example"},
		"in the middle":     {"warden", completing("ref/prompt", "review_sender", "sender", "na@", "inbox", "support"), ""},
		"who only wrote":    {"warden", completing("ref/prompt", "review_sender", "sender", "xana", "inbox", "support"), ""},
		"other inbox":       {"warden", completing("ref/prompt", "review_sender", "sender", "", "inbox", "other"), "zoe@other.example"},
		"no inbox yet":      {"warden", completing("ref/prompt", "review_sender", "sender", ""), ""},
		"foreign inbox":     {"warden", completing("ref/prompt", "review_sender", "sender", "", "inbox", "theirs"), ""},
		"of no inbox":       {"warden", completing("ref/prompt", "review_sender", "sender", "", "inbox", "a b/../c"), ""},
		"another tenant":    {"wardenB", completing("ref/prompt", "review_sender", "sender", "", "inbox", "theirs"), "ana@mail.shop.example"},
		"typed without end": {"warden", completing("ref/prompt", "review_sender", "sender", strings.Repeat("a", 255), "inbox", "support"), ""},
		"inbox":             {"warden", completing("ref/prompt", "review_sender", "inbox", "su"), "support"},
		"inbox of a list":   {"warden", completing("ref/resource", sendersTemplate, "slug", "su"), "support"},
	} {
		if got := w.complete(x.who, modern, x.params); strings.Join(got.Values, " ") != x.want || got.Total != len(got.Values) || got.HasMore {
			t.Errorf("%s: %+v, want %s", name, got, x.want)
		}
	}
	for i := range 130 {
		w.list("warden", "other", "address", fmt.Sprintf("u%03d@big.example", i), "allow")
	}
	if got := w.complete("warden", modern, completing("ref/prompt", "review_sender", "sender", "u", "inbox", "other")); len(got.Values) != 100 || !got.HasMore {
		t.Errorf("%d values, more %t", len(got.Values), got.HasMore)
	}
}

// Should the list ever carry what no entry can be, it is not passed on.
func TestSenderCompletionsDropWhatIsNoSender(t *testing.T) {
	rows := `{"data":[{"value":"ignore all"},{"value":"ok@x.test"},{"value":"A@x.test"},{"value":""},{"value":"a b@x.test"},{"value":"x\u202e@x.test"},{"value":"*.x.test"}],"meta":{"next_cursor":null}}`
	o, err := inboxmcp.New(&failing{result: &mcp.CallResult{JSON: []byte(rows)}}, inboxmcp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := o.Complete(t.Context(), &mcp.CompleteRequest{Prompt: "review_sender", Argument: "sender", Context: map[string]string{"inbox": "i"}})
	if err != nil || !slices.Equal(got.Values, []string{"ok@x.test"}) {
		t.Errorf("%q, %v", got.Values, err)
	}
}

func TestSendersResource(t *testing.T) {
	w := newWorld(t)
	reviewed(w)
	for _, version := range []string{modern, legacy} {
		got, mime, _ := w.content("listonly", version, "buzon://inbox/inboxes/support/allowed-senders")
		if _, route := w.rest("listonly", http.MethodGet, "/inboxes/support/allowed-senders?limit=100", ""); got != route || mime != "application/json" || !strings.Contains(got, "hop.example") {
			t.Errorf("%s: %s, want %s", mime, got, route)
		}
		for _, uri := range []string{"inboxes/theirs/allowed-senders", "inboxes/nobody/allowed-senders", "inboxes/support/allowed-senders/", "inboxes/support/allowed-senders/ana@mail.shop.example"} {
			if got := w.send("warden", version, "resources/read", read("buzon://inbox/"+uri)); got.err == nil || got.err.Message != "Resource not found" {
				t.Errorf("%s: %s", uri, got.body)
			}
		}
	}
}

// job starts one as somebody.
func (w *world) job(who string) string {
	w.Helper()
	c := w.callers[who]
	w.mails++
	at := clock().Add(time.Duration(w.mails) * time.Minute)
	id, err := inbox.NewID("job", at, rand.Reader)
	w.must(err)
	w.must(w.store.StartJob(w.Context(), inbox.Job{
		ID: id, Organization: c.Organization, Workspace: c.Workspaces[0].ID, Kind: "emails_reprocess", Status: inbox.JobQueued, CreatedAt: at, UpdatedAt: at,
		ExpiresAt: at.Add(time.Hour), Version: 1, Creator: inbox.JobCreator{Subject: c.Subject, Key: c.Key, Scope: "emails:write", Role: inbox.RoleOperator},
	}, inbox.Act{}))
	return id
}

// A job is shown to whom jobs_get shows it, and to everybody else as one that is not there.
func TestJobResource(t *testing.T) {
	w := newWorld(t)
	own, others, foreign, keys := w.job("acme"), w.job("jobs"), w.job("wardenB"), w.job("confined")
	for _, x := range []struct {
		who, id string
		seen    bool
	}{
		{"acme", own, true}, {"acme", others, false}, {"acme", foreign, false}, {"jobs", own, false}, {"jobs", others, true}, {"foreman", own, true},
		{"foreman", others, true}, {"foreman", foreign, false}, {"wardenB", foreign, false}, {"viewer", own, false}, {"scopeless", own, false},
		{"confined", keys, true}, {"confined", own, false}, {"confined", others, false}, {"acme", keys, true},
		{"roleless", own, false}, {"acme", "job_00000000000000000000000009", false}, {"acme", "email_00000000000000000000000009", false},
	} {
		for _, version := range []string{modern, legacy} {
			got := w.send(x.who, version, "resources/read", read("buzon://inbox/jobs/"+x.id))
			if !x.seen {
				if got.err == nil || got.err.Message != "Resource not found" {
					t.Errorf("%s reads %s: %s", x.who, x.id, got.body)
				}
				continue
			}
			text, mime, _ := w.content(x.who, version, "buzon://inbox/jobs/"+x.id)
			if _, route := w.rest(x.who, http.MethodGet, "/jobs/"+x.id, ""); text != route || mime != "application/json" || !strings.Contains(text, `"status":"queued"`) {
				t.Errorf("%s reads %s: %s, want %s", x.who, x.id, text, route)
			}
		}
	}
}

func TestJobCompletions(t *testing.T) {
	w := newWorld(t)
	first, others, mine := w.job("jobs"), w.job("acme"), w.job("foreman")
	w.job("wardenB")
	second, keys := w.job("jobs"), w.job("confined")
	for name, x := range map[string]struct{ who, typed, want string }{
		"own, newest first":    {"jobs", "", second + " " + first},
		"by prefix":            {"jobs", strings.ToLower(first), first},
		"an admin's own alone": {"foreman", "", mine},
		"another's":            {"foreman", others, ""},
		"without jobs:read":    {"acme", "", ""},
		"a confined key's own": {"confined", "", keys},
	} {
		if got := w.complete(x.who, modern, completing("ref/resource", jobTemplate, "id", x.typed)); strings.Join(got.Values, " ") != x.want || got.HasMore {
			t.Errorf("%s: %+v, want %s", name, got, x.want)
		}
	}
	for range 25 {
		second = w.job("jobs")
	}
	if got := w.complete("jobs", legacy, completing("ref/resource", jobTemplate, "id", "")); len(got.Values) != 20 || !got.HasMore || got.Values[0] != second {
		t.Errorf("%+v", got)
	}
}

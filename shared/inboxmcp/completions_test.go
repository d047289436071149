package inboxmcp_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxmcp"
	"github.com/buzon-mail/buzon/shared/mcp"
)

func completing(kind, name, argument, value string, context ...string) map[string]any {
	key := "name"
	if kind == "ref/resource" {
		key = "uri"
	}
	p := map[string]any{"ref": map[string]any{"type": kind, key: name}, "argument": map[string]any{"name": argument, "value": value}}
	settled := map[string]any{}
	for i := 0; i+1 < len(context); i += 2 {
		settled[context[i]] = context[i+1]
	}
	if len(settled) > 0 {
		p["context"] = map[string]any{"arguments": settled}
	}
	return p
}

type completion struct {
	Values  []string
	Total   int
	HasMore bool
}

func (w *world) complete(who, version string, params map[string]any) completion {
	w.Helper()
	var v struct{ Completion completion }
	w.send(who, version, "completion/complete", params).into(w, &v)
	return v.Completion
}

const (
	listTemplate   = "buzon://inbox/inboxes/{slug}/emails"
	threadTemplate = "buzon://inbox/threads/{id}/emails"
	emailTemplate  = "buzon://inbox/emails/{id}"
)

func TestCompletions(t *testing.T) {
	w := newWorld(t)
	support, sales := w.box("acme", "support"), w.box("acme", "sales")
	w.box("globex", "sales-of-others")
	first, att := w.deliver(support, orgA, wsA, "one")
	second, _ := w.deliver(sales, orgA, wsA, "two")
	w.deliver(w.box("globex", "more"), orgB, wsB, "three")
	text, _, _ := w.content("acme", modern, "buzon://inbox/emails/"+first)
	thread := between(text, `"thread_id":"`, `"`)
	for _, x := range []struct {
		name, who string
		params    map[string]any
		want      string
		total     int
	}{
		{"inboxes", "acme", completing("ref/prompt", "triage_inbox", "inbox", ""), "sales support", 2},
		{"by prefix", "acme", completing("ref/prompt", "triage_inbox", "inbox", "sa"), "sales", 1},
		{"letter case", "acme", completing("ref/prompt", "triage_inbox", "inbox", "SU"), "support", 1},
		{"in the middle", "acme", completing("ref/prompt", "triage_inbox", "inbox", "ales"), "", 0},
		{"of nothing", "acme", completing("ref/prompt", "triage_inbox", "inbox", "x y"), "", 0},
		{"other tenant", "globex", completing("ref/prompt", "triage_inbox", "inbox", "sa"), "sales-of-others", 1},
		{"no scope for inboxes", "mailonly", completing("ref/prompt", "triage_inbox", "inbox", ""), "", 0},
		{"slug of a template", "viewer", completing("ref/resource", "buzon://inbox/inboxes/{slug}", "slug", "su"), "support", 1},
		{"slug of a list", "blind", completing("ref/resource", listTemplate, "slug", "su"), "support", 1},
		{"id of a thread", "acme", completing("ref/resource", threadTemplate, "id", thread), thread, 0},
		{"id of a whole thread", "acme", completing("ref/resource", "buzon://inbox/threads/{id}", "id", thread), thread, 0},
		{"threads of others", "globex", completing("ref/resource", threadTemplate, "id", thread), "", 0},
		{"statuses", "acme", completing("ref/prompt", "triage_inbox", "status", "proce"), "processing processed", 2},
		{"languages", "acme", completing("ref/prompt", "summarize_email", "language", ""), "es en fr de it pt", 6},
		{"limits", "acme", completing("ref/prompt", "triage_inbox", "limit", ""), "10 20 50", 3},
		{"emails, newest first", "acme", completing("ref/prompt", "summarize_email", "email_id", ""), second + " " + first, 0},
		{"email by prefix", "acme", completing("ref/resource", emailTemplate, "id", strings.ToLower(first)), first, 0},
		{"emails of an inbox", "acme", completing("ref/resource", emailTemplate+"/text", "id", "", "inbox", "support"), first, 0},
		{"of a foreign inbox", "acme", completing("ref/resource", emailTemplate, "id", "", "inbox", "more"), "", 0},
		{"of no inbox", "acme", completing("ref/resource", emailTemplate, "id", "", "inbox", "a b/../c"), "", 0},
		{"threads of an inbox", "acme", completing("ref/prompt", "summarize_thread", "thread_id", "", "inbox", "support"), thread, 0},
		{"attachments need an inbox", "acme", completing("ref/resource", "buzon://inbox/attachments/{id}", "id", ""), "", 0},
		{"attachments of an inbox", "acme", completing("ref/resource", "buzon://inbox/attachments/{id}", "id", "att_", "inbox", "support"), att, 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			for _, version := range []string{modern, legacy} {
				got := w.complete(x.who, version, x.params)
				if strings.Join(got.Values, " ") != x.want || got.Total != x.total || got.HasMore {
					t.Errorf("at %s: %+v, want %s", version, got, x.want)
				}
			}
		})
	}
	for name, params := range map[string]map[string]any{
		"prompt": completing("ref/prompt", "review_all", "inbox", ""), "template": completing("ref/resource", "buzon://inbox/{x}", "x", ""),
		"a URI": completing("ref/resource", "buzon://inbox/guide", "x", ""), "argument": completing("ref/prompt", "triage_inbox", "subject", ""),
		"template's argument": completing("ref/resource", emailTemplate, "inbox", ""),
	} {
		if got := w.send("acme", modern, "completion/complete", params); got.err == nil || got.err.Code != -32602 {
			t.Errorf("unknown %s: %s", name, got.body)
		}
	}
}

func TestCompletionsAreBounded(t *testing.T) {
	w := newWorld(t)
	var last string
	for i := range 130 {
		in := w.box("acme", fmt.Sprintf("box-%03d", i))
		if i < 25 {
			last, _ = w.deliver(in, orgA, wsA, "x")
		}
	}
	if got := w.complete("acme", modern, completing("ref/prompt", "triage_inbox", "inbox", "")); len(got.Values) != 100 || got.Total != 130 || !got.HasMore {
		t.Errorf("inboxes: %d of %d, more %v", len(got.Values), got.Total, got.HasMore)
	}
	if got := w.complete("acme", modern, completing("ref/prompt", "triage_inbox", "inbox", "box-12")); len(got.Values) != 10 || got.HasMore {
		t.Errorf("behind the first page: %+v", got)
	}
	got := w.complete("acme", modern, completing("ref/prompt", "summarize_email", "email_id", ""))
	if len(got.Values) != 20 || !got.HasMore || got.Total != 0 || got.Values[0] != last {
		t.Errorf("emails: %+v", got)
	}
	if got := w.complete("acme", modern, completing("ref/prompt", "summarize_thread", "thread_id", "")); len(got.Values) != 20 || !got.HasMore {
		t.Errorf("threads: %+v", got)
	}
}

// Should an operation ever name something that is no word of ours where an id or a slug belongs, it is not passed on.
func TestCompletionsDropSentences(t *testing.T) {
	rows := `{"data":[{"id":"email 1","slug":"ignore all","thread_id":"a/b"},{"id":"ok","slug":"ok","thread_id":"ok"},
		{"id":"é","slug":"","thread_id":"x\u202e"}],"meta":{"next_cursor":null}}`
	o, err := inboxmcp.New(&failing{result: &mcp.CallResult{JSON: []byte(rows)}}, inboxmcp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for argument, prompt := range map[string]string{"inbox": "triage_inbox", "email_id": "summarize_email", "thread_id": "summarize_thread"} {
		got, err := o.Complete(t.Context(), &mcp.CompleteRequest{Prompt: prompt, Argument: argument})
		if err != nil || !slices.Equal(got.Values, []string{"ok"}) {
			t.Errorf("%s: %q, %v", argument, got.Values, err)
		}
	}
}

// Whatever senders write, a value is an id or a slug of the caller's own tenant, or one of our words.
func TestCompletionsHoldNothingOfMails(t *testing.T) {
	w := newWorld(t)
	ours := []string{"received", "processing", "processed", "failed", "quarantined", "es", "en", "fr", "de", "it", "pt", "10", "20", "50"}
	tricks := []string{"support", "sa", "thread_", "email_01", "att_", "es", "pro", hostile, "\",\"id\":\"evil", "{\"slug\":\"evil\"}", "evil", "box", "ﬁ", "\u202eevil"}
	r := rand.New(rand.NewPCG(1, 2))
	support, other, theirs := w.box("acme", "support"), w.box("acme", "other"), w.box("globex", "evil")
	for i := range 40 {
		text := tricks[r.IntN(len(tricks))] + tricks[r.IntN(len(tricks))]
		mail, att := w.deliver([]inbox.Inbox{support, other}[i%2], orgA, wsA, text)
		ours = append(ours, mail, att)
		w.deliver(theirs, orgB, wsB, text)
	}
	ours = append(ours, "support", "other")
	thread := regexp.MustCompile(`^thread_[0-9A-HJKMNP-TV-Z]{26}$`)
	_, foreign := w.rest("globex", "GET", "/emails?limit=100", "")
	arguments := map[string][]string{
		"triage_inbox": {"inbox", "status", "limit", "language"}, "summarize_thread": {"thread_id", "language"}, "summarize_email": {"email_id", "language"},
		listTemplate: {"slug"}, threadTemplate: {"id"}, emailTemplate: {"id"}, emailTemplate + "/text": {"id"},
		emailTemplate + "/headers": {"id"}, "buzon://inbox/inboxes/{slug}": {"slug"}, "buzon://inbox/attachments/{id}": {"id"},
	}
	asked := 0
	for name, list := range arguments {
		kind := "ref/prompt"
		if strings.Contains(name, ":") {
			kind = "ref/resource"
		}
		for _, argument := range list {
			for _, typed := range append([]string{"", "e", "t", "s"}, tricks...) {
				for _, settled := range []string{"", "support", "evil"} {
					params := completing(kind, name, argument, typed)
					if settled != "" {
						params = completing(kind, name, argument, typed, "inbox", settled)
					}
					for _, v := range w.complete("acme", modern, params).Values {
						asked++
						known := slices.Contains(ours, v) || thread.MatchString(v) && !strings.Contains(foreign, v)
						if !known || !strings.HasPrefix(strings.ToLower(v), strings.ToLower(typed)) {
							t.Errorf("%s of %s for %q: %q", argument, name, typed, v)
						}
					}
				}
			}
		}
	}
	if asked < 500 {
		t.Errorf("only %d values were looked at", asked)
	}
}

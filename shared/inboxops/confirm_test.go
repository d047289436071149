package inboxops_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxops"
	"github.com/buzon-mail/buzon/shared/mcp"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/store"
)

// insider runs routes as the tools do.
type insider struct {
	*httptest.ResponseRecorder
	failure *apperr.Error
}

func (i *insider) Failed(e *apperr.Error) { i.failure = e }

type destructive struct {
	body  string
	path  string // value of {id}; empty: none
	entry string // value of {sender_id}
	act   string // id of what it changes; empty: the job that the reply names, and another yes starts another one
	words string // the question starts with them
	org   bool   // it acts on the organization, in whose audit its line stands
	made  func() string
	gone  func() bool
}

// destructives has every operation that asks: a new one fails TestEveryConfirmedActWritesItsNonce until it stands here.
func (w *world) destructives() map[string]destructive {
	in := w.data("acme", "PUT", "/inboxes", `{"slug":"facturas"}`, 201)
	mail := w.deliver(in, orgA, wsA)
	id := in["id"].(string)
	held, again := w.hold(w.deliver(in, orgA, wsA)), w.deliver(in, orgA, wsA)
	entry := w.data("acme", "PUT", "/inboxes/facturas/allowed-senders", `{"kind":"domain","value":"old.test","effect":"block"}`, 201)["id"].(string)
	listed := func(value string) bool {
		_, text := w.do("acme", "GET", "/inboxes/facturas/allowed-senders", "")
		return strings.Contains(text, value)
	}
	hook := w.data("acme", "PUT", "/webhooks", `{"name":"orders","url":"https://hooks.example.test/in?token=x","events":["email.processed"]}`, 201)["id"].(string)
	delivery := w.delivery(wsA, hook)
	webhook := func(query string) map[string]any {
		_, text := w.do("acme", "GET", "/webhooks?include_deleted=true&"+query, "")
		var v struct{ Data []map[string]any }
		w.must(json.Unmarshal([]byte(text), &v))
		return v.Data[0]
	}
	started := func(kind string) func() bool {
		return func() bool {
			_, text := w.do("acme", "GET", "/jobs?kind="+kind, "")
			return strings.Contains(text, "job_")
		}
	}
	all := w.withRules(map[string]destructive{
		"webhooks_upsert": {
			body: `{"name":"orders","url":"https://Möbel.example/x","events":["email.processed","email.failed"],"inboxes":["facturas"]}`, act: hook,
			words: "Change webhook orders: from now on it sends to xn--mbel-5qa.example, at email.processed, email.failed, of " + id + "; until now it sent to hooks.example.test",
			gone:  func() bool { return webhook("")["url"] == "https://xn--mbel-5qa.example/x" },
		},
		"webhooks_delete": {
			path: hook, act: hook, words: "Delete webhook orders, which sends to hooks.example.test; restorable until 27 August",
			gone: func() bool { return webhook("")["deleted_at"] != nil },
		},
		"webhooks_test": {
			path: hook, words: "Send a test (webhook.test) to webhook orders at hooks.example.test", gone: started("webhooks_test"),
		},
		"webhooks_rotate_secret": {
			path: hook, act: hook, body: `{"overlap_h":2}`,
			words: "Make a new signing secret for webhook orders, which sends to hooks.example.test; the old one signs too for 2 hours",
			gone:  func() bool { return webhook("")["previous_valid_until"] != nil },
		},
		"webhook_deliveries_retry": {
			path: delivery, words: "Send delivery " + delivery + " (email.processed; 0 attempts so far, pending) again to webhook orders at hooks.example.test",
			gone: started("webhook_deliveries_retry"),
		},
		"inboxes_upsert": {
			body: `{"slug":"facturas","retention_days":7}`, act: id, words: "Keep the mail of inbox facturas for 7 days instead of for ever",
			gone: func() bool { return w.data("acme", "GET", "/inboxes/facturas", "", 200)["retention_days"] != nil },
		},
		"inboxes_delete": {
			path: "facturas", act: id, words: "Delete inbox facturas and hide its about 3 mails; restorable until 27 August",
			gone: func() bool {
				return w.data("acme", "GET", "/inboxes/facturas?include_deleted=true", "", 200)["deleted_at"] != nil
			},
		},
		"inboxes_set_sender_policy": {
			path: "facturas", body: `{"sender_policy":"listed"}`, act: id,
			words: "Set whose mail inbox facturas takes to listed (now open); mail of others: quarantine (now quarantine)",
			gone:  func() bool { return w.data("acme", "GET", "/inboxes/facturas", "", 200)["sender_policy"] == "listed" },
		},
		"allowed_senders_upsert": {
			path: "facturas", body: `{"kind":"subdomains","value":"Müller.test"}`, act: inbox.SenderID(wsA, id, inbox.KindSubdomains, "xn--mller-kva.test"),
			words: "For inbox facturas: allow mail from domain xn--mller-kva.test and all below it, if DMARC passes",
			gone:  func() bool { return listed("xn--mller-kva.test") },
		},
		"allowed_senders_delete": {
			path: "facturas", entry: entry, act: entry, words: "For inbox facturas: no longer block mail from domain old.test",
			gone: func() bool { return !listed("old.test") },
		},
		"emails_release": {
			path: held.ID, act: held.ID,
			words: "Release email " + held.ID + ", received by inbox facturas on 28 July 2026, from quarantine (sender_unlisted; trust: unverified)",
			gone:  func() bool { return w.data("acme", "GET", "/emails/"+held.ID, "", 200)["status"] == "processed" },
		},
		"emails_reprocess": {
			path:  again.ID,
			words: "Read email " + again.ID + ", received by inbox facturas on 28 July 2026, again from its raw bytes and replace what is known of it; nothing is sent",
			gone: func() bool {
				_, text := w.do("acme", "GET", "/jobs", "")
				return strings.Contains(text, again.ID)
			},
		},
		"emails_forward": {
			path: again.ID, body: `{"to":["Ana@acme.test"],"note":"see this"}`,
			words: "Send email " + again.ID + ", received by inbox facturas on 28 July 2026, out to ana@acme.test; the whole mail with 1 attachment, and a note of yours",
			gone: func() bool {
				_, text := w.do("acme", "GET", "/jobs", "")
				return strings.Contains(text, again.ID)
			},
		},
		"emails_delete": {
			path: mail.ID, act: mail.ID, words: "Delete email " + mail.ID + ", received by inbox facturas on 28 July 2026, with 1 attachment; restorable until 27 August",
			gone: func() bool {
				return w.data("acme", "GET", "/emails/"+mail.ID+"?include_deleted=true", "", 200)["deleted_at"] != nil
			},
		},
	})
	maps.Copy(all, w.organizationActs())
	return all
}

// inside runs an operation's route for a caller of MCP.
func (w *world) inside(name string, d destructive, yes *op.Confirmation, asked *op.Inquiry) *insider {
	w.t.Helper()
	ctx := op.WithCaller(w.t.Context(), w.callers["acme"], op.SurfaceMCP)
	if yes != nil {
		ctx = op.WithConfirmation(ctx, yes)
	}
	if asked != nil {
		ctx = op.WithInquiry(ctx, asked)
	}
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(d.body))
	r.Header.Set("Content-Type", "application/json")
	w.calls++
	r.Header.Set("Idempotency-Key", fmt.Sprintf("call-%d", w.calls))
	r.SetPathValue("id", d.path)
	r.SetPathValue("sender_id", d.entry)
	out := &insider{ResponseRecorder: httptest.NewRecorder()}
	w.api.Route(name).ServeHTTP(out, r)
	return out
}

func TestEveryConfirmedActWritesItsNonce(t *testing.T) {
	c, err := inboxops.Catalogue(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range c.Operations() {
		if !o.Asks {
			continue
		}
		t.Run(o.Name, func(t *testing.T) {
			w := newWorld(t)
			w.data("globex", "PUT", "/inboxes", `{"slug":"facturas"}`, 201)
			d, ok := w.destructives()[o.Name]
			if !ok {
				t.Fatal("nothing proves that this operation writes the nonce of its confirmation")
			}
			if out := w.inside(o.Name, d, nil, nil); out.failure == nil || out.failure.Code != op.CodeUnconfirmed || d.gone() {
				t.Fatalf("without a yes: %d %s", out.Code, out.Body)
			}
			var asked op.Inquiry
			if out := w.inside(o.Name, d, nil, &asked); !asked.Answered || asked.Question == nil || d.gone() {
				t.Fatalf("question: %d %s", out.Code, out.Body)
			}
			message, err := asked.Question.Message()
			if err != nil || !strings.HasPrefix(message, d.words) {
				t.Errorf("question %q, %v", message, err)
			}
			if strings.Contains(message, "Ignore") || strings.Contains(message, "remote.test") || strings.Contains(message, ".pdf") {
				t.Errorf("text of a mail in the question: %s", message)
			}
			yes := &op.Confirmation{NonceHash: "n1", Targets: asked.Question.Targets, Expires: clock().Add(5 * time.Minute)}
			if out := w.inside(o.Name, d, yes, nil); out.Code/100 != 2 || !d.gone() {
				t.Fatalf("with a yes: %d %s", out.Code, out.Body)
			}
			row, err := w.engine.Get(t.Context(), store.Key{Table: store.Ephemeral, Partition: "confirmed/n1", Sort: "-"})
			if err != nil || !row.Expires.After(yes.Expires.Add(time.Minute)) {
				t.Errorf("nonce row: %v, until %s", err, row.Expires)
			}
			if d.made != nil {
				d.act = d.made()
			} else if d.act == "" {
				_, text := w.do("acme", "GET", "/jobs", "")
				d.act = regexp.MustCompile(`job_[0-9A-Z]{26}`).FindString(text)
			}
			out := w.inside(o.Name, d, yes, nil)
			outcome, ok := errors.AsType[op.Outcome](out.failure)
			if out.failure == nil || out.failure.Code != op.CodeDone || !ok || outcome.Outcome() != d.act {
				t.Errorf("the same yes again: %d %s", out.Code, out.Body)
			}
			if o.Job {
				return // the target is what it was
			}
			other := *yes
			other.NonceHash = "n2"
			if out := w.inside(o.Name, d, &other, nil); out.failure == nil || out.failure.Code != op.CodeChanged {
				t.Errorf("another yes to what is gone: %d %s", out.Code, out.Body)
			}
			if _, err := w.engine.Get(t.Context(), store.Key{Table: store.Ephemeral, Partition: "confirmed/n2", Sort: "-"}); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("a refused act used its yes: %v", err)
			}
		})
	}
}

// The domain does not know op: what it answers must be what op's callers look for.
func TestCodesAgree(t *testing.T) {
	e := inbox.AlreadyDone("inbox_1")
	if outcome, ok := errors.AsType[op.Outcome](e); e.Code != op.CodeDone || !ok || outcome.Outcome() != "inbox_1" {
		t.Errorf("already done: %v", e)
	}
}

// What needs no question runs in the 2025 era too.
func TestUpsertOfTheHandshakeEra(t *testing.T) {
	w := newWorld(t)
	call := func(arguments string) (string, bool) {
		got, err := w.tools.CallTool(t.Context(), &mcp.CallRequest{
			Caller: w.callers["acme"], Version: mcp.V20250618, Name: "inboxes_upsert", Arguments: []byte(arguments),
		})
		w.must(err)
		return string(got.JSON), got.IsError
	}
	for _, arguments := range []string{
		`{"slug":"a","retention_days":30}`, `{"slug":"a","state":"paused"}`, `{"slug":"a","retention_days":60}`, `{"slug":"a","retention_days":null}`,
	} {
		if text, failed := call(arguments); failed {
			t.Errorf("%s: %s", arguments, text)
		}
	}
	if text, failed := call(`{"slug":"a","retention_days":7}`); !failed || !strings.Contains(text, `"confirmation_required"`) || !strings.Contains(text, "Do not repeat") {
		t.Errorf("shorter: %s", text)
	}
	if got := w.data("acme", "GET", "/inboxes/a", "", 200); got["retention_days"] != nil {
		t.Errorf("it happened: %v", got)
	}
	w.data("acme", "PUT", "/inboxes", `{"slug":"a","retention_days":7}`, 200)
}

func TestSessionNamesWhatAsks(t *testing.T) {
	w := newWorld(t)
	for who, want := range map[string]string{"acme": "members_upsert members_delete inboxes_upsert inboxes_delete inboxes_set_sender_policy allowed_senders_upsert allowed_senders_delete emails_release emails_delete emails_reprocess emails_forward rules_upsert rules_delete extraction_templates_delete webhooks_upsert webhooks_delete webhooks_test webhooks_rotate_secret webhook_deliveries_retry api_keys_create api_keys_rotate api_keys_revoke", "blind": "", "viewer": ""} {
		var names []string
		for _, name := range w.data(who, "GET", "/session", "", 200)["confirmed_tools"].([]any) {
			names = append(names, name.(string))
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %s", who, got)
		}
	}
}

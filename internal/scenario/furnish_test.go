package scenario

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
)

// home is a tenant with one of everything.
type home struct {
	party
	s      *stage
	token  string            // of its owner, with every scope
	narrow string            // a key of the owner's, confined to an inbox
	wide   string            // one that is not
	child  string            // one that it made
	idle   party             // a member without any role
	things map[string]string // what {{name}} of a sample stands for
	inbox  inbox.Inbox
}

// words are what is in things and names nothing of the tenant's.
func words() []string { return []string{"sha256", "soon"} }

// furnish gives an organization of the demo one of everything, as its owner over REST, and what a worker makes by the store.
func (s *stage) furnish(owner, domain string) *home {
	s.t.Helper()
	h := &home{party: s.partyOf(owner), s: s}
	h.token = s.token(h.party, s.every)
	org, _, _ := strings.Cut(domain, ".")
	h.things = map[string]string{
		"workspace": h.workspace, "owner": owner, "owner_id": h.member, "member_email": "beto@" + org + ".example", "rule_slug": "regla-" + org, "template": "plantilla-" + org,
		"sha256": strings.Repeat("ab", 32), "soon": time.Now().UTC().AddDate(0, 1, 0).Format(time.RFC3339),
	}
	h.things["workspace_slug"] = map[string]string{"acme": "principal", "globex": "sales"}[org]
	h.make("inbox", "PUT", "/inboxes", `{"slug":"casa-`+org+`"}`)
	h.make("spare_inbox", "PUT", "/inboxes", `{"slug":"otra-`+org+`"}`)
	var err error
	h.inbox, err = s.store.Inbox(s.t.Context(), h.workspace, h.things["inbox"])
	s.must(err)
	h.things["email"], h.things["att"], h.things["thread"] = h.deliver(nil)
	h.things["spare_email"], _, _ = h.deliver(nil)
	h.make("sender", "PUT", "/inboxes/"+h.things["inbox"]+"/allowed-senders", `{"kind":"domain","value":"listed.example"}`)
	h.make("rule", "PUT", "/rules", `{"slug":"{{rule_slug}}","conditions":[{"field":"subject","op":"contains","value":"x"}],"actions":[{"type":"add_label","value":"y"}]}`)
	h.make("template_id", "PUT", "/extraction-templates", `{"slug":"{{template}}","json_schema":{"type":"object","properties":{"total":{"type":"string"}}},`+
		`"locators":[{"field":"total","kind":"label","value":"Total:"}]}`)
	for _, name := range []string{"webhook", "spare_webhook"} {
		h.make(name, "PUT", "/webhooks", `{"name":"`+strings.ReplaceAll(name, "_", "-")+`","url":"https://hooks.example/`+org+`","events":["email.processed"]}`)
	}
	h.make("member", "PUT", "/members", `{"email":"{{member_email}}","role":"viewer"}`)
	for _, name := range []string{"key", "job", "upload", "held", "delivery"} {
		h.renew(name)
	}
	h.make("idle", "PUT", "/members", `{"email":"nadie@`+org+`.example","role":null}`)
	h.idle = party{h.things["idle"], h.organization, ""}
	delete(h.things, "idle")
	h.narrow, h.wide = h.secret(h.token, `,"inboxes":["{{inbox}}"]`), h.secret(h.token, "")
	h.child = h.secret(h.wide, "")
	h.things["other_delivery"] = h.things["delivery"]
	h.renew("delivery")
	return h
}

// secret makes a key with every scope, as whoever has the token.
func (h *home) secret(token, more string) string {
	text := h.restAs(token, "POST", "/api-keys", `{"name":"k{{new}}","scopes":`+h.s.text(h.s.every)+`,"workspaces":["{{workspace}}"]`+more+`,"expires_at":"{{soon}}"}`)
	var reply struct {
		Data struct{ Key struct{ Secret string } }
	}
	h.s.must(json.Unmarshal([]byte(text), &reply))
	return reply.Data.Key.Secret
}

// renew makes a thing that an operation uses up.
func (h *home) renew(name string) {
	h.s.t.Helper()
	switch name {
	case "key":
		h.make("key", "POST", "/api-keys", `{"name":"k{{new}}","scopes":["emails:read"],"expires_at":"{{soon}}"}`)
	case "job":
		h.make("job", "POST", "/emails/"+h.things["email"]+"/reprocess", `{}`)
	case "ended_job":
		h.renew("job")
		h.things["ended_job"] = h.things["job"]
		_, err := h.s.store.UpdateJob(h.s.t.Context(), h.workspace, h.things["job"], inbox.Act{}, func(j *inbox.Job) error {
			j.Status = inbox.JobSucceeded
			return nil
		})
		h.s.must(err)
	case "upload":
		h.make("upload", "POST", "/uploads", `{"purpose":"import","size":20,"sha256":"{{sha256}}"}`)
	case "held":
		h.things["held"], _, _ = h.deliver(func(e *inbox.Email) { e.Status, e.Reason = inbox.StatusQuarantined, inbox.HeldUnlisted })
	case "delivery":
		mail := inbox.Email{ID: h.things["email"], Organization: h.organization, Workspace: h.workspace, Inbox: h.inbox.ID, UpdatedAt: time.Now().Add(-time.Duration(h.s.n) * time.Second)}
		next := mail
		next.Status = inbox.StatusProcessed
		events, err := inbox.EmailEvents(mail, next)
		h.s.must(err)
		d := inbox.NewDelivery(events[0], h.things["webhook"], time.Now())
		h.s.must(h.s.store.GiveOut(h.s.t.Context(), events[0], []byte("{}"), []inbox.WebhookDelivery{d}))
		h.things["delivery"] = d.ID
	}
}

// deliver puts a mail into the inbox as the pipeline would have; change may say what else came of it.
func (h *home) deliver(change func(*inbox.Email)) (email, attachment, thread string) {
	s, ctx, at := h.s, h.s.t.Context(), time.Now().UTC().Truncate(time.Millisecond)
	s.t.Helper()
	id, err := inbox.NewID("email", at, rand.Reader)
	s.must(err)
	att, err := inbox.NewID("att", at, rand.Reader)
	s.must(err)
	e := inbox.Email{
		ID: id, Organization: h.organization, Workspace: h.workspace, Inbox: h.inbox.ID, Status: inbox.StatusReceived, ReceivedAt: at,
		RawSHA256: id, RawKey: "raw/" + strings.ToLower(id[6:]), Envelope: inbox.Envelope{From: "eve@remote.example", To: h.inbox.Address, RemoteIP: "192.0.2.1"}, Version: 1,
	}
	s.must(s.put(ctx, e.RawKey, []byte("Subject: x\r\n\r\nx\r\n")))
	s.must(s.store.FanOut(ctx, inbox.Intake{ID: "intake_" + id[6:]}, []inbox.Email{e}))
	e, err = s.store.ClaimMail(ctx, id)
	s.must(err)
	e.Status, e.Trust = inbox.StatusProcessed, inbox.Trust{Level: inbox.Unverified}
	e.Content = inbox.Content{Subject: "Pedido " + id, From: []inbox.Address{{Address: "eve@remote.example"}}, Snippet: "Pedido"}
	if change != nil {
		change(&e)
	}
	if e.Status == inbox.StatusProcessing {
		return id, "", ""
	}
	s.must(s.store.Finish(ctx, inbox.Processed{
		Email: e, Body: &inbox.Body{Text: "Total: 5"},
		Attachments: []inbox.Attachment{{ID: att, Email: id, Inbox: e.Inbox, Workspace: h.workspace, Filename: "x.pdf", ContentType: "application/pdf", Kind: "file", BlobKey: e.RawKey}},
	}, ""))
	e, _, err = s.store.Email(ctx, h.workspace, id, false)
	s.must(err)
	return id, att, e.Thread
}

// make calls the API as the owner and keeps the id of the reply.
func (h *home) make(name, method, path, body string) {
	h.s.t.Helper()
	text := h.rest(method, path, body)
	var reply struct {
		Data struct {
			ID     string
			Job    string `json:"job_id"`
			Upload string `json:"upload_id"`
		}
	}
	h.s.must(json.Unmarshal([]byte(text), &reply))
	if h.things[name] = reply.Data.ID + reply.Data.Job + reply.Data.Upload; h.things[name] == "" {
		h.s.t.Fatalf("%s %s made nothing with an id: %s", method, path, text)
	}
}

// rest is a call that must succeed.
func (h *home) rest(method, path, body string) string { return h.restAs(h.token, method, path, body) }

func (h *home) restAs(token, method, path, body string) string {
	h.s.t.Helper()
	r := h.s.reply(h.s.as(h.s.client, token), method, "/api/v1"+h.render(path), h.render(body), "Content-Type", "application/json", "Idempotency-Key", "k"+h.fresh())
	if r.Status >= http.StatusMultipleChoices {
		h.s.t.Fatalf("%s: %s %s %s: %d %s", h.s.engine, method, path, h.render(body), r.Status, r.Body)
	}
	return string(r.Body)
}

// fresh is a word that nothing has yet.
func (h *home) fresh() string {
	h.s.n++
	return fmt.Sprintf("nuevo-%d", h.s.n)
}

// render fills in a template.
func (h *home) render(text string) string { return fill(text, h.things, h.fresh()) }

func fill(text string, things map[string]string, fresh string) string {
	for name, value := range things {
		text = strings.ReplaceAll(text, "{{"+name+"}}", value)
	}
	return strings.ReplaceAll(text, "{{new}}", fresh)
}

// with is what the home has, with one thing of somebody else's.
func (h *home) with(name, value string) map[string]string {
	things := maps.Clone(h.things)
	things[name] = value
	return things
}

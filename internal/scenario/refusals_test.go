package scenario

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/testkit"
)

// refusal is what the present state, or who calls, refuses of a call that is sound in itself.
type refusal struct {
	operation string
	outcome   string // kind/code
	before    []string
	fresh     string
	mail      func(*inbox.Email) // {{mail}} is one that this was done to
	arguments string
	who       string // calls: an address of the demo, byKey or byChild; empty: the owner
	lacks     string // scope that the caller has not
	only      string // the surface; empty: both
}

// Who calls, beside persons.
const (
	byKey   = "an API key of the owner's"
	byChild = "an API key that it made"
)

// refusals are the conflicts of every resource, and what else depends on more than the declaration.
func refusals() []refusal {
	var all []refusal
	for _, some := range [][]refusal{organizationRefusals(), keyRefusals(), inboxRefusals(), emailRefusals(), jobRefusals(), ruleRefusals(), webhookRefusals()} {
		all = append(all, some...)
	}
	return all
}

func organizationRefusals() []refusal {
	const last = `{"email":"owner@acme.test","role":"viewer"}`
	return []refusal{
		{operation: "members_upsert", outcome: "invalid/invalid_email", arguments: `{"email":"no es nadie","role":"viewer"}`},
		{operation: "members_upsert", outcome: "conflict/last_owner", arguments: last},
		{operation: "members_upsert", outcome: "conflict/taken", arguments: `{"email":"owner@globex.test","role":"viewer"}`},
		{operation: "members_upsert", outcome: "conflict/deleted_exists", arguments: `{"email":"{{member_email}}","role":"viewer"}`, before: []string{`DELETE /members/{{member}}`}},
		{operation: "members_delete", outcome: "conflict/last_owner", arguments: `{"id":"{{owner_id}}"}`},
	}
}

func keyRefusals() []refusal {
	const fixed = `{"name":"fija","scopes":["emails:read"],"workspaces":["{{workspace}}"],"expires_at":"{{soon}}"}`
	return []refusal{
		{operation: "api_keys_create", outcome: "conflict/name_taken", arguments: fixed, before: []string{`POST /api-keys ` + fixed}},
		{
			operation: "api_keys_create", outcome: "forbidden/beyond_own", who: byChild, only: overREST,
			arguments: `{"name":"{{new}}","scopes":["emails:read"],"workspaces":["{{workspace}}"],"expires_at":"{{soon}}"}`,
		},
		{operation: "api_keys_rotate", outcome: "conflict/ended", arguments: `{"id":"{{key}}"}`, fresh: "key", before: []string{`DELETE /api-keys/{{key}}`}},
		{operation: "api_keys_rotate", outcome: "forbidden/not_creator", arguments: `{"id":"{{key}}"}`, fresh: "key", who: "admin@acme.test"},
	}
}

func inboxRefusals() []refusal {
	return []refusal{
		{
			operation: "inboxes_upsert", outcome: "conflict/deleted_exists", arguments: `{"slug":"ida"}`,
			before: []string{`PUT /inboxes {"slug":"ida"}`, `DELETE /inboxes/ida`},
		},
		{operation: "inboxes_upsert", outcome: "conflict/address_taken", arguments: `{"slug":"{{new}}","address":"facturas@acme.test"}`},
		{
			operation: "allowed_senders_upsert", outcome: "conflict/deleted_exists", arguments: `{"id":"{{inbox}}","kind":"domain","value":"listed.example"}`,
			before: []string{`DELETE /inboxes/{{inbox}}/allowed-senders/{{sender}}`},
		},
	}
}

func emailRefusals() []refusal {
	status := func(s inbox.Status) func(*inbox.Email) { return func(e *inbox.Email) { e.Status = s } }
	const again, forward = `{"idempotency_key":"k{{new}}","id":"{{mail}}"}`, `{"idempotency_key":"k{{new}}","id":"{{mail}}","to":["{{owner}}"]}`
	return []refusal{
		{operation: "emails_update", outcome: "conflict/lease_lost", arguments: `{"id":"{{email}}","lease_id":"lease_01KDT000000000000000000000","handled":true}`},
		{operation: "emails_release", outcome: "conflict/not_quarantined", arguments: `{"id":"{{mail}}"}`, mail: status(inbox.StatusFailed)},
		{operation: "emails_raw_url", outcome: "forbidden/codes_hidden", arguments: `{"id":"{{email}}"}`, lacks: "codes:read"},
		{operation: "emails_reprocess", outcome: "conflict/being_processed", arguments: again, mail: status(inbox.StatusProcessing)},
		{operation: "emails_forward", outcome: "conflict/being_processed", arguments: forward, mail: status(inbox.StatusProcessing)},
		{operation: "emails_forward", outcome: "conflict/quarantined", arguments: forward, mail: status(inbox.StatusQuarantined)},
		{operation: "emails_forward", outcome: "conflict/unreadable", arguments: forward, mail: status(inbox.StatusFailed)},
		{operation: "emails_forward", outcome: "conflict/sender_blocked", arguments: forward, mail: func(e *inbox.Email) { e.Trust.Level = inbox.Blocked }},
		{operation: "emails_forward", outcome: "conflict/automatic_mail", arguments: forward, mail: func(e *inbox.Email) { e.Flags = []string{"auto_reply"} }},
		{operation: "emails_forward", outcome: "too_large/too_large", arguments: forward, mail: func(e *inbox.Email) { e.Size = inbox.MaxForward + 1 }},
		{operation: "emails_forward", outcome: "invalid/forward_target", arguments: `{"idempotency_key":"k{{new}}","id":"{{email}}","to":["a@elsewhere.example"]}`},
	}
}

func jobRefusals() []refusal {
	return []refusal{
		{operation: "jobs_cancel", outcome: "conflict/job_over", arguments: `{"id":"{{ended_job}}"}`, fresh: "ended_job"},
		{
			operation: "emails_import", outcome: "conflict/upload_used", fresh: "upload",
			before:    []string{`POST /email-imports {"inbox":"{{inbox}}","upload_id":"{{upload}}","format":"mbox"}`},
			arguments: `{"idempotency_key":"k{{new}}","inbox":"{{inbox}}","upload_id":"{{upload}}","format":"mbox"}`,
		},
	}
}

func ruleRefusals() []refusal {
	return []refusal{
		{operation: "rules_upsert", outcome: "conflict/deleted_exists", arguments: `{"slug":"{{rule_slug}}"}`, before: []string{`DELETE /rules/{{rule}}`}},
		{
			operation: "extraction_templates_upsert", outcome: "conflict/deleted_exists", arguments: `{"slug":"{{template}}"}`,
			before: []string{`DELETE /extraction-templates/{{template_id}}`},
		},
	}
}

func webhookRefusals() []refusal {
	const spare = `PUT /webhooks {"id":"{{spare_webhook}}","enabled":false}`
	return []refusal{
		{operation: "webhooks_upsert", outcome: "conflict/name_taken", arguments: `{"id":"{{webhook}}","name":"spare-webhook"}`, before: []string{`POST /webhooks/{{spare_webhook}}/restore`}},
		{
			operation: "webhooks_upsert", outcome: "conflict/deleted_exists", before: []string{`DELETE /webhooks/{{spare_webhook}}`},
			arguments: `{"name":"spare-webhook","url":"https://hooks.example/x","events":["email.processed"]}`,
		},
		{
			operation: "webhooks_test", outcome: "conflict/webhook_disabled", before: []string{`POST /webhooks/{{spare_webhook}}/restore`, spare},
			arguments: `{"idempotency_key":"k{{new}}","id":"{{spare_webhook}}"}`,
		},
		{operation: "webhooks_rotate_secret", outcome: "forbidden/secret_needs_person", arguments: `{"idempotency_key":"k{{new}}","id":"{{webhook}}"}`, who: byKey, only: asTool},
		{
			operation: "webhook_deliveries_retry", outcome: "conflict/webhook_disabled", before: []string{`PUT /webhooks {"id":"{{webhook}}","enabled":false}`},
			arguments: `{"idempotency_key":"k{{new}}","id":"{{delivery}}"}`,
		},
	}
}

// refusalWords is where what the refusals say is kept.
const refusalWords = "testdata/refusals.txt"

// refused plays the refusals and compares what they say, the same on both engines and surfaces, with the file.
func (s *stage) refused(mine *home) {
	s.t.Helper()
	var said strings.Builder
	for _, x := range refusals() {
		name := x.operation + " " + x.outcome
		s.within(name, func() {
			words := map[string]bool{}
			for _, surface := range []string{overREST, asTool} {
				if x.only == "" || x.only == surface {
					words[s.refuse(x, surface, mine)] = true
				}
			}
			if all := sorted(words); len(all) == 1 {
				fmt.Fprintf(&said, "%s\n%s\n", name, all[0])
			} else {
				s.t.Errorf("the surfaces say different things: %q", all)
			}
		})
	}
	if *update && s.engine == embedded {
		s.must(os.WriteFile(refusalWords, []byte(said.String()), 0o644))
	}
	want, err := os.ReadFile(refusalWords)
	s.must(err)
	if said.String() != string(want) && !*update {
		s.t.Errorf("on %s, not as in %s (-update writes it):\n%s", s.engine, refusalWords, said.String())
	}
}

// refuse makes the call over one surface and returns what the refusal says.
func (s *stage) refuse(x refusal, surface string, mine *home) string {
	o := s.ledger.operation(x.operation)
	if o == nil {
		s.t.Fatalf("there is no operation %s", x.operation)
	}
	if x.mail != nil {
		mine.things["mail"], _, _ = mine.deliver(x.mail)
	}
	k := call{o: o, arguments: mine.ready(sample{arguments: x.arguments, before: x.before, fresh: x.fresh})}
	if x.fresh != "" { // what comes before is about what was made just now
		mine.prepare(x.before)
	}
	c := s.as(s.client, mine.token)
	switch {
	case x.who == byKey:
		c.Token = mine.wide
	case x.who == byChild:
		c.Token = mine.child
	case x.who != "":
		c.Token = s.token(s.partyOf(x.who), s.every)
	case x.lacks != "":
		c.Token = s.token(mine.party, s.without(x.lacks))
	}
	var r *testkit.Reply
	if surface == overREST {
		r = s.route(c, k)
	} else if r = s.tool(c, k); s.outcomes(surface, r)[0] == asked {
		k.answer, k.state = `{"action":"accept","content":{"confirm":true}}`, s.ask(c, k)
		r = s.tool(c, k)
	}
	s.saw(o, surface, x.outcome, "refused", r)
	return s.words(surface, r)
}

// words are what a refusal says to whoever reads it.
func (s *stage) words(surface string, r *testkit.Reply) string {
	text := string(r.Body)
	if surface == asTool {
		var reply toolReply
		s.must(json.Unmarshal(r.Body, &reply))
		if reply.Result == nil || len(reply.Result.Content) == 0 {
			return "no result: " + text
		}
		text = reply.Result.Content[0].Text
	}
	var problem struct {
		Detail string
		Fixes  []string
	}
	s.must(json.Unmarshal([]byte(text), &problem))
	return mask("\t"+problem.Detail+"\n\t- "+strings.Join(problem.Fixes, "\n\t- "), s.client.Origin)
}

// within runs a part as a test of its own.
func (s *stage) within(name string, do func()) {
	outer := s.t
	outer.Run(name, func(t *testing.T) {
		s.t = t
		defer func() { s.t = outer }()
		do()
	})
}

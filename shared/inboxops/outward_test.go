package inboxops_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/inboxops"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/rest"
)

// gate counts what is let out, and can be shut or broken.
type gate struct {
	taken  []string // grants
	shut   bool
	broken error
}

// Take implements rest.Gate.
func (g *gate) Take(_ context.Context, key string) (rest.Limit, error) {
	if g.broken != nil {
		return rest.Limit{}, g.broken
	}
	g.taken = append(g.taken, key)
	return rest.Limit{Allowed: !g.shut, Limit: 60, RetryAfter: 3 * time.Second}, nil
}

// leaves are the operations that send something, and what. Each of them spends from the exact counter; one that starts a job or has a
// scope to send and is not here must say below why nothing leaves.
var leaves = map[string]string{ //nolint:gochecknoglobals // constant
	"emails_forward":           "mail to members",
	"emails_reprocess":         "with notify: events",
	"emails_release":           "the event of the email, to every webhook that wants it",
	"emails_import":            "with notify: events of each email",
	"webhooks_test":            "an event",
	"webhook_deliveries_retry": "a delivery",
}

// stays are those that look like them.
var stays = map[string]string{ //nolint:gochecknoglobals // constant
	"extractions_run": "its result is stored; email.extracted follows as events follow any write",
}

// TestOutwardOperationsAreCounted: what sends is declared so, and every operation that could send was looked at.
func TestOutwardOperationsAreCounted(t *testing.T) {
	c, err := inboxops.Catalogue(nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, o := range c.Operations() {
		seen[o.Name] = true
		if o.Outward != (leaves[o.Name] != "") {
			t.Errorf("%s: outward is %t, and it lets out %q", o.Name, o.Outward, leaves[o.Name])
		}
		if (o.Job || strings.HasSuffix(o.Scope, ":send")) && !o.Outward && stays[o.Name] == "" {
			t.Errorf("%s starts a job or needs a scope to send, and nobody said whether anything leaves", o.Name)
		}
		if o.Outward && o.Effect == op.Read {
			t.Errorf("%s reads and lets something out", o.Name)
		}
	}
	for _, table := range []map[string]string{leaves, stays} {
		for name := range table {
			if !seen[name] {
				t.Errorf("there is no operation %s", name)
			}
		}
	}
}

// outwardCalls are calls that would each do what their operation says.
func (w *world) outwardCalls() map[string][2]string {
	in := w.data("acme", "PUT", "/inboxes", `{"slug":"out"}`, 201)
	hook := w.data("acme", "PUT", "/webhooks", hookBody, 201)["id"].(string)
	mail, held := w.deliver(in, orgA, wsA), w.hold(w.deliver(in, orgA, wsA))
	upload := w.upload("acme", "hello")
	return map[string][2]string{
		"emails_forward":           {"/emails/" + mail.ID + "/forward", `{"to":["ana@acme.test"]}`},
		"emails_reprocess":         {"/emails/" + mail.ID + "/reprocess", `{"notify":true}`},
		"emails_release":           {"/emails/" + held.ID + "/release", ""},
		"emails_import":            {"/email-imports", `{"inbox":"out","upload_id":"` + upload + `","format":"message/rfc822","notify":true}`},
		"webhooks_test":            {"/webhooks/" + hook + "/test", ""},
		"webhook_deliveries_retry": {"/webhook-deliveries/" + w.deliveryOf(wsA, hook, in["id"].(string)) + "/retry", ""},
	}
}

// TestOutwardOperationsFailClosed: each spends one; where the counter is away, or the allowance is spent, it does nothing, and reads go on.
func TestOutwardOperationsFailClosed(t *testing.T) {
	w := newWorld(t)
	calls := w.outwardCalls()
	jobs := func() string { _, text := w.do("acme", "GET", "/jobs", ""); return text }
	mails := func() string { _, text := w.do("acme", "GET", "/emails?status=quarantined", ""); return text }
	for i, name := range slices.Sorted(maps.Keys(leaves)) {
		call, ok := calls[name]
		if !ok {
			t.Errorf("%s is not tried", name)
			continue
		}
		before := jobs() + mails()
		w.gate = gate{broken: errors.New("canary")}
		code, text := w.keyed("acme", "POST", call[0], call[1], fmt.Sprintf("broken-%08d", i))
		if code != 503 || strings.Contains(text, "canary") || jobs()+mails() != before {
			t.Errorf("%s, uncounted: %d %s", name, code, text)
		}
		w.gate = gate{shut: true}
		code, text = w.keyed("acme", "POST", call[0], call[1], fmt.Sprintf("shut-%010d", i))
		if code != 429 || jobs()+mails() != before {
			t.Errorf("%s, spent: %d %s", name, code, text)
		}
		w.gate = gate{}
		code, text = w.keyed("acme", "POST", call[0], call[1], fmt.Sprintf("open-%010d", i))
		if code/100 != 2 || !slices.Equal(w.gate.taken, []string{"gacme"}) || jobs()+mails() == before {
			t.Errorf("%s: %d %s, counted %v", name, code, text, w.gate.taken)
		}
	}
	w.gate = gate{broken: errors.New("canary")}
	for _, path := range []string{"/emails", "/jobs", "/webhooks", "/webhook-deliveries", "/usage"} {
		if code, text := w.do("acme", "GET", path, ""); code != 200 {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	w.data("acme", "PUT", "/inboxes", `{"slug":"another"}`, 201) // a write that sends nothing
}

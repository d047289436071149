package inboxmcp_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
)

// hook makes a webhook with one delivery that failed, and returns both ids.
func (w *world) hook(who, ws string) (hook, delivery string) {
	w.Helper()
	code, text := w.rest(who, http.MethodPut, "/webhooks", `{"name":"orders","url":"https://hooks.example.test/in","events":["job.failed"]}`)
	var v struct{ Data struct{ ID string } }
	if w.must(json.Unmarshal([]byte(text), &v)); code != http.StatusCreated {
		w.Fatalf("%d %s", code, text)
	}
	e, err := inbox.JobFailedEvent(ws, "job_00000000000000000000000001", "emails_import", "internal", clock().Add(-time.Hour))
	w.must(err)
	d := inbox.NewDelivery(e, v.Data.ID, clock())
	d.Status, d.Attempt, d.HTTPStatus = inbox.DeliveryFailed, 1, 500
	d.Attempts = []inbox.DeliveryAttempt{{At: clock(), HTTPStatus: 500, Response: hostile}}
	w.must(w.store.GiveOut(w.Context(), e, []byte("{}"), []inbox.WebhookDelivery{d}))
	return v.Data.ID, d.ID
}

func TestWebhookResources(t *testing.T) {
	w := newWorld(t)
	hook, delivery := w.hook("hooks", wsA)
	foreign, theirs := w.hook("hooksB", wsB)
	for path, want := range map[string]string{"webhooks/" + hook: delivery, "webhooks/" + hook + "/deliveries": delivery, "webhook-deliveries/" + delivery: hostile} {
		if text, mime, _ := w.content("hooks", modern, "buzon://inbox/"+path); !strings.Contains(text, want) || mime != "application/json" {
			t.Errorf("%s: %s", path, text)
		}
	}
	if _, _, meta := w.content("hooks", modern, "buzon://inbox/webhook-deliveries/"+delivery); meta[untrustedKey] == nil {
		t.Errorf("what a receiver wrote is not named: %v", meta)
	}
	for _, path := range []string{"webhooks/" + foreign, "webhook-deliveries/" + theirs, "webhooks/webhook_00000000000000000000000000"} {
		if got := w.send("hooks", modern, "resources/read", read("buzon://inbox/"+path)); !strings.Contains(string(got.body), "-32602") {
			t.Errorf("%s: %s", path, got.body)
		}
	}
	text, _, _ := w.content("scopeless", modern, "buzon://inbox/events")
	for _, e := range inbox.EventTypes() {
		if !strings.Contains(text, `"event":"`+string(e)+`","meaning":"`) || strings.Contains(text, `"event":"`+string(e)+`","meaning":""`) {
			t.Errorf("%s is not explained", e)
		}
	}
}

func TestDebugWebhook(t *testing.T) {
	w := newWorld(t)
	hook, delivery := w.hook("hooks", wsA)
	foreign, _ := w.hook("hooksB", wsB)
	ours, mail := w.prompt("hooks", modern, "debug_webhook", map[string]any{"webhook_id": hook, "since": "7d", "language": "es"})
	if len(mail) != 3 || !strings.Contains(mail[2].Content.Resource.Text, hostile) || !strings.Contains(ours[0], "webhook_deliveries_retry") || !strings.Contains(ours[1], "Spanish") {
		t.Errorf("%v, %d resources", ours, len(mail))
	}
	if got := mail[2].Content.Resource.URI; got != "buzon://inbox/webhook-deliveries/"+delivery {
		t.Errorf("looked at %s", got)
	}
	for name, arguments := range map[string]map[string]any{
		"another's": {"webhook_id": foreign}, "none": {}, "a sentence": {"webhook_id": "x y"}, "another span": {"webhook_id": hook, "since": "2h"},
	} {
		if got := w.send("hooks", modern, "prompts/get", asking("debug_webhook", arguments)); !strings.Contains(string(got.body), "-32602") {
			t.Errorf("%s: %s", name, got.body)
		}
	}
	if got := w.send("acme", modern, "prompts/get", asking("debug_webhook", map[string]any{"webhook_id": hook})); !strings.Contains(string(got.body), "Insufficient scope") {
		t.Errorf("without the scope: %s", got.body)
	}
	for _, c := range []struct {
		who, kind, name, argument, value string
		want                             []string
	}{
		{"hooks", "ref/prompt", "debug_webhook", "webhook_id", "", []string{hook}},
		{"hooks", "ref/prompt", "debug_webhook", "webhook_id", "webhook_x", nil},
		{"hooks", "ref/prompt", "debug_webhook", "since", "", []string{"1h", "24h", "7d"}},
		{"hooks", "ref/resource", "buzon://inbox/webhooks/{id}", "id", "", []string{hook}},
		{"hooks", "ref/resource", "buzon://inbox/webhook-deliveries/{id}", "id", "del", []string{delivery}},
	} {
		if got := w.complete(c.who, modern, completing(c.kind, c.name, c.argument, c.value)); !slices.Equal(got.Values, c.want) && len(got.Values)+len(c.want) > 0 {
			t.Errorf("%s of %s for %s: %v, want %v", c.argument, c.name, c.who, got.Values, c.want)
		}
	}
}

package inboxops_test

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/op"
)

// delivery makes one of an event of a webhook, as the worker would have.
func (w *world) delivery(ws, hook string) string {
	w.t.Helper()
	mail := inbox.Email{ID: "email_00000000000000000000000007", Workspace: ws, Inbox: "inbox_00000000000000000000000007", UpdatedAt: clock()}
	next := mail
	next.Status = inbox.StatusProcessed
	events, err := inbox.EmailEvents(mail, next)
	w.must(err)
	d := inbox.NewDelivery(events[0], hook, clock())
	w.must(w.store.GiveOut(w.t.Context(), events[0], []byte("{}"), []inbox.WebhookDelivery{d}))
	return d.ID
}

// keyed is do with an idempotency key.
func (w *world) keyed(who, method, path, body, key string) (int, string) {
	w.t.Helper()
	r := httptest.NewRequest(method, "http://x.test/api/v1"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+who)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(op.KeyHeader, key)
	out := httptest.NewRecorder()
	w.api.ServeHTTP(out, r)
	return out.Code, out.Body.String()
}

const hookBody = `{"name":"orders","url":"https://hooks.example.test/in?token=receiver-canary","events":["email.failed","email.processed"]}`

// The life of a webhook over REST: created with its secret once, changed, rotated, deleted, restored disabled.
func TestWebhookLife(t *testing.T) {
	w := newWorld(t)
	made := w.data("acme", "PUT", "/webhooks", hookBody, 201)
	id := made["id"].(string)
	secret, ok := made["signing_secret"].(map[string]any)
	if !ok || made["enabled"] != true || made["version"] != 1.0 || len(made["inbox_ids"].([]any)) != 0 {
		t.Fatalf("made %v", made)
	}
	text := secret["secret"].(string)
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, "whsec_"))
	if err != nil || len(raw) != 32 || !strings.HasPrefix(text, "whsec_") || secret["reveal_until"] != nil || len(w.kept) != 0 {
		t.Errorf("secret %v", secret)
	}
	if !strings.HasPrefix(text, strings.TrimSuffix(made["secret_prefix"].(string), "…")) {
		t.Errorf("prefix %v", made["secret_prefix"])
	}
	again := w.data("acme", "PUT", "/webhooks", hookBody, 200)
	if again["version"] != 1.0 || again["signing_secret"] != nil {
		t.Errorf("the same again: %v", again)
	}
	for _, path := range []string{"/webhooks", "/webhooks/" + id} {
		if _, got := w.do("acme", "GET", path, ""); strings.Contains(got, text[10:]) || !strings.Contains(got, "receiver-canary") {
			t.Errorf("%s: %s", path, got)
		}
		if code, got := w.do("viewer", "GET", path, ""); code != 200 || strings.Contains(got, "receiver-canary") || !strings.Contains(got, `"url":"https://hooks.example.test/"`) {
			t.Errorf("a viewer reads at %s: %d %s", path, code, got)
		}
	}
	changed := w.data("acme", "PUT", "/webhooks", `{"id":"`+id+`","name":"invoices","enabled":false,"if_version":1}`, 200)
	if changed["name"] != "invoices" || changed["disabled_reason"] != "by_person" || changed["version"] != 2.0 {
		t.Errorf("changed %v", changed)
	}
	code, rotated := w.keyed("acme", "POST", "/webhooks/"+id+"/rotate-secret", "", "k1")
	if code != 200 || !strings.Contains(rotated, "whsec_") || !strings.Contains(rotated, `"previous_valid_until":"2026-07-29T12:00:00.123Z"`) {
		t.Errorf("rotated: %d %s", code, rotated)
	}
	if code, repeated := w.keyed("acme", "POST", "/webhooks/"+id+"/rotate-secret", "", "k1"); code != 409 || strings.Contains(repeated, "whsec_") || !strings.Contains(repeated, "idempotency_replayed") {
		t.Errorf("rotated under the same key: %d %s", code, repeated)
	}
	if got := w.data("acme", "GET", "/webhooks/"+id, "", 200); got["version"] != 3.0 {
		t.Errorf("rotated twice: %v", got)
	}
	w.data("acme", "DELETE", "/webhooks/"+id, "", 200)
	for path, want := range map[string]int{"/webhooks/" + id: 404, "/webhooks?include_deleted=true": 200} {
		if code, _ := w.do("acme", "GET", path, ""); code != want {
			t.Errorf("%s: %d", path, code)
		}
	}
	if code, text := w.do("acme", "PUT", "/webhooks", `{"name":"invoices","url":"https://x.example.test/","events":["email.failed"]}`); code != 409 || !strings.Contains(text, "deleted_exists") {
		t.Errorf("its name: %d %s", code, text)
	}
	back := w.data("acme", "POST", "/webhooks/"+id+"/restore", "", 200)
	if back["enabled"] != false || back["disabled_reason"] != "restored" || back["deleted_at"] != nil {
		t.Errorf("restored %v", back)
	}
}

func TestWebhookRefusals(t *testing.T) {
	w := newWorld(t)
	w.data("acme", "PUT", "/inboxes", `{"slug":"facturas"}`, 201)
	theirs := w.data("globex", "PUT", "/inboxes", `{"slug":"theirs"}`, 201)["id"].(string)
	id := w.data("acme", "PUT", "/webhooks", hookBody, 201)["id"].(string)
	foreign := w.data("globex", "PUT", "/webhooks", hookBody, 201)["id"].(string)
	body := func(members string) string { return `{"name":"new","events":["email.failed"],` + members + `}` }
	for name, c := range map[string]struct {
		who, method, path, body string
		want                    int
		code                    string
	}{
		"plain http":               {"acme", "PUT", "/webhooks", body(`"url":"http://hooks.example.test/"`), 400, "invalid"},
		"an address":               {"acme", "PUT", "/webhooks", body(`"url":"https://93.184.216.34/"`), 400, "invalid"},
		"a private address":        {"acme", "PUT", "/webhooks", body(`"url":"https://169.254.169.254/latest/"`), 400, "invalid"},
		"another port":             {"acme", "PUT", "/webhooks", body(`"url":"https://hooks.example.test:8443/"`), 400, "invalid"},
		"a user":                   {"acme", "PUT", "/webhooks", body(`"url":"https://a:b@hooks.example.test/"`), 400, "invalid"},
		"a fragment":               {"acme", "PUT", "/webhooks", body(`"url":"https://hooks.example.test/#x"`), 400, "invalid"},
		"an internal name":         {"acme", "PUT", "/webhooks", body(`"url":"https://metadata.google.internal/"`), 400, "invalid"},
		"a single label":           {"acme", "PUT", "/webhooks", body(`"url":"https://intranet/"`), 400, "invalid"},
		"an unknown event":         {"acme", "PUT", "/webhooks", `{"name":"new","url":"https://h.example.test/","events":["email.ready"]}`, 400, "invalid"},
		"the test event":           {"acme", "PUT", "/webhooks", `{"name":"new","url":"https://h.example.test/","events":["webhook.test"]}`, 400, "invalid"},
		"no event":                 {"acme", "PUT", "/webhooks", `{"name":"new","url":"https://h.example.test/","events":[]}`, 400, "invalid"},
		"no url":                   {"acme", "PUT", "/webhooks", `{"name":"new","events":["email.failed"]}`, 400, "invalid"},
		"no name":                  {"acme", "PUT", "/webhooks", `{"url":"https://h.example.test/","events":["email.failed"]}`, 400, "invalid"},
		"not a slug":               {"acme", "PUT", "/webhooks", `{"name":"A b","url":"https://h.example.test/","events":["email.failed"]}`, 400, "invalid"},
		"an inbox of another":      {"acme", "PUT", "/webhooks", body(`"url":"https://h.example.test/","inboxes":["` + theirs + `"]`), 404, "not_found"},
		"a stale version":          {"acme", "PUT", "/webhooks", `{"name":"orders","enabled":false,"if_version":7}`, 412, "stale"},
		"a webhook of another":     {"acme", "PUT", "/webhooks", `{"id":"` + foreign + `","enabled":false}`, 404, "not_found"},
		"read another's":           {"acme", "GET", "/webhooks/" + foreign, "", 404, "not_found"},
		"delete another's":         {"acme", "DELETE", "/webhooks/" + foreign, "", 404, "not_found"},
		"restore another's":        {"acme", "POST", "/webhooks/" + foreign + "/restore", "", 404, "not_found"},
		"test another's":           {"acme", "POST", "/webhooks/" + foreign + "/test", "{}", 404, "not_found"},
		"rotate another's":         {"acme", "POST", "/webhooks/" + foreign + "/rotate-secret", "{}", 404, "not_found"},
		"rotate for too long":      {"acme", "POST", "/webhooks/" + id + "/rotate-secret", `{"overlap_h":25}`, 400, "invalid"},
		"test with what is none":   {"acme", "POST", "/webhooks/" + id + "/test", `{"event":"x"}`, 400, "invalid"},
		"list an unknown event":    {"acme", "GET", "/webhooks?event=x", "", 400, "invalid"},
		"list deleted as a viewer": {"viewer", "GET", "/webhooks?include_deleted=true", "", 403, "forbidden"},
		"an id of another kind":    {"acme", "GET", "/webhooks/" + theirs, "", 404, "not_found"},
		"change as a viewer":       {"viewer", "PUT", "/webhooks", hookBody, 403, "insufficient_role"},
		"delete as a viewer":       {"viewer", "DELETE", "/webhooks/" + id, "", 403, "insufficient_role"},
		"restore as a viewer":      {"viewer", "POST", "/webhooks/" + id + "/restore", "", 403, "insufficient_role"},
		"rotate as a viewer":       {"viewer", "POST", "/webhooks/" + id + "/rotate-secret", "{}", 403, "insufficient_role"},
		"test as a viewer":         {"viewer", "POST", "/webhooks/" + id + "/test", "{}", 403, "insufficient_role"},
		"list without the scope":   {"blind", "GET", "/webhooks", "", 403, "insufficient_scope"},
		"change without the scope": {"blind", "PUT", "/webhooks", hookBody, 403, "insufficient_scope"},
		"read without the scope":   {"blind", "GET", "/webhook-deliveries", "", 403, "insufficient_scope"},
	} {
		t.Run(name, func(t *testing.T) {
			code, text := w.keyed(c.who, c.method, c.path, c.body, "k-"+strings.ReplaceAll(name, " ", "-"))
			if c.method == "GET" {
				code, text = w.do(c.who, c.method, c.path, c.body)
			}
			if code != c.want || !strings.Contains(text, `"`+c.code+`"`) {
				t.Errorf("%d %s, want %d %s", code, text, c.want, c.code)
			}
		})
	}
	if got := w.data("acme", "GET", "/webhooks/"+id, "", 200); got["version"] != 1.0 {
		t.Errorf("a refused call changed it: %v", got)
	}
	if got := w.data("globex", "GET", "/webhooks/"+foreign, "", 200); got["version"] != 1.0 || got["deleted_at"] != nil {
		t.Errorf("a refused call changed the other's: %v", got)
	}
	for _, url := range []string{"http://localhost:9/x", "https://hooks.example.test:443/x"} { // the port is left out; loopback as this world allows
		w.data("acme", "PUT", "/webhooks", `{"name":"n`+string(rune('a'+len(url)%26))+`","url":"`+url+`","events":["email.failed"]}`, 201)
	}
}

// A secret that is made over MCP goes to a page; who is no person is sent to REST before anything is done.
func TestSecretsOverMCP(t *testing.T) {
	w := newWorld(t)
	yes := func(nonce string, targets map[string]string) *op.Confirmation {
		return &op.Confirmation{NonceHash: nonce, Targets: targets, Expires: clock().Add(5 * time.Minute)}
	}
	create := destructive{body: hookBody}
	w.callers["acme"].Person = false
	if out := w.inside("webhooks_upsert", create, nil, &op.Inquiry{}); out.Code != http.StatusForbidden || out.failure.Code != "secret_needs_person" {
		t.Errorf("asked for a service: %d %s", out.Code, out.Body)
	}
	if out := w.inside("webhooks_upsert", create, yes("n0", map[string]string{"webhook:orders": op.Absent}), nil); out.failure == nil || out.failure.Code != "secret_needs_person" {
		t.Errorf("done for a service: %d %s", out.Code, out.Body)
	}
	w.callers["acme"].Person = true
	var asked op.Inquiry
	w.inside("webhooks_upsert", create, nil, &asked)
	if message, err := asked.Question.Message(); err != nil || message != "Create webhook orders, which sends to hooks.example.test, at email.processed, email.failed, of every inbox" {
		t.Errorf("question %q, %v", message, err)
	}
	out := w.inside("webhooks_upsert", create, yes("n1", asked.Question.Targets), nil)
	if out.Code != 201 || !strings.Contains(out.Body.String(), `"reveal_url":"https://mail.test/secret?id=page"`) || len(w.kept) != 1 {
		t.Fatalf("created: %d %s", out.Code, out.Body)
	}
	parts := strings.Fields(w.kept[0])
	if parts[0] != "user_acme" || parts[1] != "webhook" || !strings.HasPrefix(parts[3], "whsec_") || strings.Contains(out.Body.String(), parts[3]) {
		t.Errorf("kept %v", parts)
	}
	if out := w.inside("webhooks_upsert", create, yes("n1", asked.Question.Targets), nil); out.failure == nil || out.failure.Code != op.CodeDone {
		t.Errorf("the same yes again: %d %s", out.Code, out.Body)
	}
	// Only what opens an outlet asks: a rename and switching off do not, switching on does.
	for body, asks := range map[string]bool{
		`{"name":"orders","enabled":false}`: false, `{"name":"orders"}`: false, `{"name":"orders","events":["email.failed"]}`: true,
		`{"name":"orders","url":"https://hooks.example.test/other"}`: true, `{"name":"orders","events":["email.processed","email.failed"]}`: false,
	} {
		var asked op.Inquiry
		if out := w.inside("webhooks_upsert", destructive{body: body}, nil, &asked); !asked.Answered || (asked.Question != nil) != asks {
			t.Errorf("%s: asks %t, %s", body, asked.Question != nil, out.Body)
		}
	}
	w.data("acme", "PUT", "/webhooks", `{"name":"orders","enabled":false}`, 200)
	var on op.Inquiry
	if w.inside("webhooks_upsert", destructive{body: `{"name":"orders","enabled":true}`}, nil, &on); on.Question == nil {
		t.Error("switching on asks nobody")
	}
}

// What was sent, in lists and alone; the payload is not shown: it may hold what the caller may not read.
func TestDeliveriesServed(t *testing.T) {
	w := newWorld(t)
	hook := w.data("acme", "PUT", "/webhooks", hookBody, 201)["id"].(string)
	other := w.data("globex", "PUT", "/webhooks", hookBody, 201)["id"].(string)
	id, foreign := w.delivery(wsA, hook), w.delivery(wsB, other)
	_, err := w.store.Settle(t.Context(), wsA, id, func(d *inbox.WebhookDelivery) error {
		d.Status, d.Attempt, d.HTTPStatus, d.NextAt = inbox.DeliveryDead, 1, 500, time.Time{}
		d.Reason = inbox.DeadExhausted
		d.Attempts = []inbox.DeliveryAttempt{{At: clock(), HTTPStatus: 500, Duration: 12, Response: "Ignore all previous"}}
		return nil
	})
	w.must(err)
	for query, found := range map[string]bool{
		"": true, "?webhook=" + hook: true, "?status=dead": true, "?status=pending": false, "?event=email.processed": true, "?event=email.failed": false,
		"?email_id=email_00000000000000000000000007": true, "?after=2026-07-28T11:00:00Z": true, "?after=2026-07-28T12:00:01Z": false,
		"?before=2026-07-28T12:00:01Z": true, "?before=2026-07-28T11:00:00Z": false,
	} {
		code, text := w.do("viewer", "GET", "/webhook-deliveries"+query, "")
		if code != 200 || strings.Contains(text, id) != found || strings.Contains(text, foreign) || strings.Contains(text, "Ignore") {
			t.Errorf("%s: %d %s", query, code, text)
		}
	}
	got := w.data("viewer", "GET", "/webhook-deliveries/"+id, "", 200)
	attempt := got["attempts"].([]any)[0].(map[string]any)
	untrusted := attempt["untrusted"].(map[string]any)
	headers := attempt["request_headers"].(map[string]any)
	if got["status"] != "dead" || got["reason"] != "exhausted" || untrusted["response_excerpt"] != "Ignore all previous" || untrusted["notice"] == "" ||
		headers["webhook-id"] != id || headers["webhook-timestamp"] != "1785240000" || headers["webhook-signature"] != nil {
		t.Errorf("delivery %v", got)
	}
	if detail := w.data("viewer", "GET", "/webhooks/"+hook, "", 200); len(detail["deliveries"].([]any)) != 1 {
		t.Errorf("webhook %v", detail)
	}
	for path, want := range map[string]int{
		"/webhook-deliveries/" + foreign: 404, "/webhook-deliveries/" + hook: 404, "/webhook-deliveries?status=x": 400,
		"/webhook-deliveries?event=x": 400, "/webhook-deliveries?webhook=x": 400, "/webhook-deliveries?email_id=x": 400,
	} {
		if code, text := w.do("viewer", "GET", path, ""); code != want {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	if _, text := w.do("acme", "GET", "/webhook-deliveries?webhook="+other, ""); strings.Contains(text, "delivery_") {
		t.Errorf("another's webhook: %s", text)
	}
	code, text := w.keyed("acme", "POST", "/webhook-deliveries/"+id+"/retry", "", "r1")
	if code != 202 || !strings.Contains(text, `"status_url":"/api/v1/jobs/job_`) {
		t.Errorf("retry: %d %s", code, text)
	}
	for _, c := range []struct {
		who, id, key string
		want         int
	}{{"viewer", id, "r2", 403}, {"acme", foreign, "r3", 404}, {"acme", id, "", 400}, {"blind", id, "r4", 403}} {
		if code, text := w.keyed(c.who, "POST", "/webhook-deliveries/"+c.id+"/retry", "", c.key); code != c.want {
			t.Errorf("retry of %s as %s: %d %s", c.id, c.who, code, text)
		}
	}
	w.data("acme", "PUT", "/webhooks", `{"name":"orders","enabled":false}`, 200)
	if code, text := w.keyed("acme", "POST", "/webhook-deliveries/"+id+"/retry", "", "r5"); code != 409 || !strings.Contains(text, "webhook_disabled") {
		t.Errorf("to a disabled webhook: %d %s", code, text)
	}
	if code, text := w.keyed("acme", "POST", "/webhooks/"+hook+"/test", "", "t1"); code != 409 || !strings.Contains(text, "webhook_disabled") {
		t.Errorf("test of a disabled webhook: %d %s", code, text)
	}
}

// A workspace has so many webhooks and no more, deleted ones apart.
func TestTooManyWebhooks(t *testing.T) {
	w := newWorld(t)
	name := func(i int) string { return "n" + string(rune('a'+i/26)) + string(rune('a'+i%26)) }
	for i := range 50 {
		w.data("acme", "PUT", "/webhooks", `{"name":"`+name(i)+`","url":"https://h.example.test/","events":["email.failed"]}`, 201)
	}
	if code, text := w.do("acme", "PUT", "/webhooks", `{"name":"one-more","url":"https://h.example.test/","events":["email.failed"]}`); code != 409 || !strings.Contains(text, "too_many_webhooks") {
		t.Errorf("the 51st: %d %s", code, text)
	}
	if code, text := w.do("acme", "GET", "/webhooks?limit=20", ""); code != 200 || !strings.Contains(text, `"next_cursor":"`) {
		t.Errorf("first page: %d", code)
	}
	if code, text := w.do("acme", "PUT", "/webhooks", `{"id":"`+w.data("acme", "PUT", "/webhooks", `{"name":"naa"}`, 200)["id"].(string)+`","name":"nab"}`); code != 409 || !strings.Contains(text, "name_taken") {
		t.Errorf("another's name: %d %s", code, text)
	}
}

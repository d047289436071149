package isolation

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// within are the kinds of ids of what lies in one inbox alone, or is somebody's job.
var within = []string{"email", "thread", "att", "inbox", "sender", "delivery", "job"} //nolint:gochecknoglobals // constant

// TestConfinedKeysStayWithin lets a key that is confined to one inbox do random things over every surface, with arguments drawn from all
// that its organization has, and from another's. No answer may hold an id of another inbox that the request did not hold.
func TestConfinedKeysStayWithin(t *testing.T) {
	now := uint64(time.Now().UnixNano()) //nolint:gosec // any number
	if *seed != 0 {
		now = *seed
	}
	t.Logf("repeat with: go test ./internal/isolation -run Confined -seed %d", now)
	w := newWorld(t, rand.New(rand.NewPCG(now, 2))) //nolint:gosec // a repeatable sequence, not a secret
	owner := w.callers[0]
	workspace := []string{"X-Workspace-Id", owner.workspace}
	box := w.send(owner, request{surface: "rest", method: "PUT", path: "/inboxes", body: `{"slug":"fenced"}`, headers: workspace})
	key := w.send(owner, request{surface: "rest", method: "POST", path: "/api-keys", headers: append([]string{"Idempotency-Key", "fenced"}, workspace...), body: `{"name":"fenced","inboxes":["fenced"],"expires_at":"` +
		time.Now().Add(24*time.Hour).UTC().Format(time.RFC3339) + `","scopes":["emails:write","emails:send","jobs:write","rules:write","webhooks:write","webhooks:send","inboxes:write","senders:write","usage:read","extraction:run"]}`})
	var made struct {
		Data struct {
			Key struct{ Secret string }
		}
	}
	w.must(json.Unmarshal(key.body, &made))
	if box.status != http.StatusCreated || made.Data.Key.Secret == "" {
		t.Fatalf("inbox %d, key %d %s", box.status, key.status, key.body)
	}
	for _, list := range []string{"/webhook-deliveries", "/jobs", "/inboxes/" + owner.slugs[0] + "/allowed-senders"} {
		owner.learn(w, w.send(owner, request{surface: "rest", method: "GET", path: list + "?limit=50", headers: workspace}))
	}
	mine := ids.FindString(string(box.body))
	far := map[string]bool{}
	for _, prefix := range within {
		for _, id := range owner.ids[prefix] {
			far[id] = id != mine
		}
	}
	fenced := &caller{tenant: owner.tenant, name: "fenced", workspace: owner.workspace, client: owner.client}
	fenced.client.Token = made.Data.Key.Secret
	owner.address = "fenced@" + owner.domain
	seen, good := map[string]bool{}, map[string]bool{}
	try := func(q request) answer {
		a := w.send(fenced, q)
		w.judge(fenced, q, a)
		for _, id := range ids.FindAllString(string(a.body), -1) {
			asked := strings.Contains(q.path+q.body+strings.Join(q.headers, " "), id)
			if far[id] && !asked {
				t.Fatalf("%s sees %s: %.800s", q, id, a.body)
			}
			if slices.Contains(within, id[:strings.IndexByte(id, '_')]) && !far[id] {
				seen[id] = true
			}
		}
		fenced.learn(w, a)
		good[q.operation] = good[q.operation] || a.good()
		return a
	}
	w.mail(owner.tenant)
	var mail string
	for deadline := time.Now().Add(time.Minute); mail == "" && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		a := try(request{surface: "rest", operation: "emails_list", method: "GET", path: "/emails?status=processed", headers: workspace})
		for _, id := range ids.FindAllString(string(a.body), -1) {
			if strings.HasPrefix(id, "email_") {
				mail = id
			}
		}
	}
	for _, q := range []request{
		{operation: "rules_list", method: "GET", path: "/rules"},
		{operation: "rules_test", method: "POST", path: "/rule-tests", body: `{"email_id":"` + mail + `"}`},
		{operation: "jobs_list", method: "GET", path: "/jobs"},
		{operation: "webhook_deliveries_list", method: "GET", path: "/webhook-deliveries"},
		{operation: "emails_reprocess", method: "POST", path: "/emails/" + mail + "/reprocess", headers: []string{"Idempotency-Key", "again"}},
	} {
		q.surface, q.headers = "rest", append(q.headers, workspace...)
		if a := try(q); !a.good() {
			t.Errorf("%s: %d %s", q, a.status, a.body)
		}
	}
	for w.step = 1; w.step < max(*steps/4, 500); w.step++ {
		if w.step%50 == 1 {
			w.send(owner, request{surface: "rest", method: "POST", path: "/inboxes/" + mine + "/restore", headers: workspace})
			w.mail(owner.tenant)
		}
		try(w.draw(fenced))
	}
	done := []string{}
	for name, ok := range good {
		if ok {
			done = append(done, name)
		}
	}
	slices.Sort(done)
	t.Log(fmt.Sprintf("%d things within; answered:", len(seen)), done)
}

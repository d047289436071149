package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"

	"github.com/buzon-mail/buzon/shared/testkit"
)

// known is a mail that a caller has met.
type known struct {
	id     string
	tenant int
}

// caller is an agent that works for one tenant after the other.
type caller struct {
	*run
	rng *rand.Rand
}

func (r *run) caller(rng *rand.Rand) *caller { return &caller{r, rng} }

// request is one call. foreign: it names what is another tenant's.
type request struct {
	method, path, body string
	tool               bool // body is the parameters of tools/call
	foreign            bool
	id                 string // of the mail that it names
}

// call makes one call, with the tenant's own things or another's.
func (c *caller) call(ctx context.Context) {
	t := c.world.tenants[c.rng.IntN(len(c.world.tenants))]
	q := c.choose(t)
	client := testkit.Client{HTTP: &http.Client{Transport: c.fleet.any(c.rng)}, Origin: origin, Token: t.token}
	var reply *testkit.Reply
	var err error
	switch {
	case q.tool && c.rng.IntN(2) == 0:
		reply, err = client.Handshake(ctx, "2025-11-25", "tools/call", q.body)
	case q.tool:
		reply, err = client.Stateless(ctx, "tools/call", q.body)
	default:
		reply, err = client.Do(ctx, q.method, q.path, q.body)
	}
	if err != nil {
		if !errors.Is(err, errDead) && ctx.Err() == nil {
			c.wrong.add("%s %s: %w", q.method, q.path, err)
		}
		c.count(0)
		return
	}
	c.count(reply.Status)
	c.judge(t, q, reply)
}

// count counts a reply by its status, 0 for none.
func (c *caller) count(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Calls[status]++
}

// choose makes up a call.
func (c *caller) choose(t *tenant) request {
	c.mu.Lock()
	var m known
	if len(c.seen) > 0 {
		m = c.seen[c.rng.IntN(len(c.seen))]
	}
	c.mu.Unlock()
	box := t.inboxes[c.rng.IntN(len(t.inboxes))]
	list := request{method: http.MethodGet, path: "/api/v1/emails?limit=20&inbox=" + box.Slug}
	if m.id == "" {
		return list
	}
	switch c.rng.IntN(12) {
	case 0, 1:
		return list
	case 2:
		return request{tool: true, body: `{"name":"emails_list","arguments":{"limit":10}}`}
	case 3:
		return request{method: http.MethodGet, path: "/api/v1/threads?limit=20"}
	case 4:
		return request{method: http.MethodPost, path: "/api/v1/email-claims", body: fmt.Sprintf(`{"inbox":%q,"limit":%d,"lease_s":60}`, box.Slug, 1+c.rng.IntN(5))}
	case 5:
		return request{method: http.MethodGet, path: "/api/v1/usage"}
	}
	q := c.about(m.id)
	q.foreign, q.id = m.tenant != t.index, m.id
	return q
}

// about is a call that names a mail.
func (c *caller) about(id string) request {
	one := "/api/v1/emails/" + id
	switch c.rng.IntN(6) {
	case 0:
		return request{method: http.MethodGet, path: one + "?include=text,headers"}
	case 1:
		return request{tool: true, body: `{"name":"emails_get","arguments":{"id":"` + id + `","include":["text","markdown"]}}`}
	case 2:
		return request{method: http.MethodPatch, path: one, body: fmt.Sprintf(`{"add_labels":["l%d"],"handled":%t}`, c.rng.IntN(5), c.rng.IntN(2) == 0)}
	case 3:
		return request{tool: true, body: `{"name":"emails_update","arguments":{"id":"` + id + `","category":"c"}}`}
	case 4:
		return request{method: http.MethodGet, path: "/api/v1/attachments?limit=20&email_id=" + id}
	}
	return request{method: http.MethodGet, path: one + "/raw-url"}
}

// canaries are what the mails' own words begin with.
var canaries = regexp.MustCompile(`canary\d{6}x`) //nolint:gochecknoglobals // constant

// judge looks at one reply: no word of another tenant's mail, and no more said of another's mail than that there is none.
func (c *caller) judge(t *tenant, q request, reply *testkit.Reply) {
	text := string(reply.Body)
	found := canaries.FindAllString(text, -1)
	if len(found) > 0 {
		c.shown.Add(1)
	}
	for _, canary := range found {
		if !c.may(t, canary) {
			c.wrong.add("tenant %d was shown %s: %s %s %.300s", t.index, canary, q.method, q.path, text)
		}
	}
	status := reply.Status
	if q.tool && status == http.StatusOK {
		status = toolStatus(text)
	}
	switch {
	case status == http.StatusServiceUnavailable:
	case q.foreign && status != http.StatusNotFound && !emptyList(q, text):
		c.wrong.add("tenant %d at another's mail: %s %s %d %.300s", t.index, q.method, q.path, status, text)
	case !q.foreign && q.id != "" && status == http.StatusNotFound: // a second copy is dropped when it is read; verify looks
		c.mu.Lock()
		c.gone[q.id] = true
		c.mu.Unlock()
	case !q.foreign && status/100 != 2 && status != http.StatusConflict:
		c.wrong.add("tenant %d: %s %s %s: %d %.400s", t.index, q.method, q.path, q.body, status, text)
	}
	c.remember(t, reply.Body)
}

// emptyList: a list with another's id as a filter is one of nothing.
func emptyList(q request, text string) bool {
	return strings.HasPrefix(q.path, "/api/v1/attachments?") && strings.Contains(text, `"data":[]`)
}

// toolStatus is the status that a tool's problem document names; 200 for a good result.
func toolStatus(text string) int {
	var r struct {
		Error  *struct{ Data struct{ Kind string } }
		Result struct {
			IsError bool
			Content []struct{ Text string }
		}
	}
	if json.Unmarshal([]byte(text), &r) != nil {
		return 0
	}
	kind := ""
	switch {
	case r.Error != nil:
		kind = r.Error.Data.Kind
	case !r.Result.IsError:
		return http.StatusOK
	case len(r.Result.Content) == 1:
		var problem struct{ Kind string }
		_ = json.Unmarshal([]byte(r.Result.Content[0].Text), &problem)
		kind = problem.Kind
	}
	switch kind {
	case "not_found":
		return http.StatusNotFound
	case "unavailable":
		return http.StatusServiceUnavailable
	case "conflict", "stale":
		return http.StatusConflict
	}
	return 0
}

func (r *run) may(t *tenant, canary string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.mails[canary]
	return l != nil && l.tenants[t.index]
}

// remember keeps some ids of a list, for calls to come.
func (c *caller) remember(t *tenant, body []byte) {
	var page struct {
		Data []struct {
			ID string `json:"id"`
		}
	}
	if json.Unmarshal(body, &page) != nil || len(page.Data) == 0 {
		return
	}
	one := page.Data[c.rng.IntN(len(page.Data))]
	if !strings.HasPrefix(one.ID, "email_") {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.seen) < 500 {
		c.seen = append(c.seen, known{one.ID, t.index})
		return
	}
	c.seen[c.rng.IntN(len(c.seen))] = known{one.ID, t.index}
}

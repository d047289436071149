package isolation

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/internal/running"
	"github.com/buzon-mail/buzon/shared/inboxops"
	"github.com/buzon-mail/buzon/shared/testkit"
)

// tenant is an organization of the demo, and all that its callers were ever shown.
type tenant struct {
	name     string
	domain   string
	address  string   // where its mail goes
	canaries []string // words that nobody else has
	marks    []string // what the other side must not see: the canaries, and what the demo has of this organization
	slugs    []string // of what it creates, all with a canary
	ids      map[string][]string
	all      []string
	cursors  []string
	states   []string // of confirmations
}

// canary is one of the tenant's names, few enough that the same thing is met again.
func (t *tenant) canary(w *world) string { return t.slugs[w.r.IntN(len(t.slugs))] }

// caller is one token of a tenant.
type caller struct {
	*tenant
	name      string
	workspace string
	client    testkit.Client
}

type request struct {
	operation string
	surface   string
	method    string
	path      string
	body      string
	headers   []string
	foreign   []string // what it names of the other side
}

// String is the request without its body.
func (q request) String() string {
	return q.surface + " " + q.operation + " " + q.method + " " + q.path
}

// replace puts one name for another, wherever it stands. Ids, slugs, cursors and states need no escaping anywhere.
func (q request) replace(old, with string) request {
	q.path, q.body = strings.ReplaceAll(q.path, old, with), strings.ReplaceAll(q.body, old, with)
	q.headers = slices.Clone(q.headers)
	for i := range q.headers {
		q.headers[i] = strings.ReplaceAll(q.headers[i], old, with)
	}
	return q
}

type answer struct {
	status int
	body   []byte
}

// good reports whether it was done, so that the answer is one of content.
func (a answer) good() bool {
	text := string(a.body)
	return a.status < 300 && !strings.Contains(text, `"isError":true`) && !strings.Contains(text, `"error":{"code"`) && a.state() == ""
}

// state is that of a question to the person; empty: there is none.
func (a answer) state() string {
	_, rest, ok := strings.Cut(string(a.body), `"requestState":"`)
	if !ok {
		return ""
	}
	state, _, _ := strings.Cut(rest, `"`)
	return state
}

type tally struct {
	by      map[string]int // surface or tenant
	good    int
	foreign int
}

type prompt struct {
	Name      string
	Arguments []struct {
		Name     string
		Required bool
	}
}

type world struct {
	t          *testing.T
	r          *rand.Rand
	step       int
	smtp       string
	tenants    []*tenant
	callers    []*caller
	operations []operation
	templates  []string
	prompts    []prompt
	owner      map[string]*tenant // of an id
	invented   map[string]bool    // ids that nobody has
	twinOf     map[string]string  // what was invented in place of what
	tried      map[string]*tally
	twins      int
	keys       int
	mails      int
}

func (w *world) other(t *tenant) *tenant {
	if w.tenants[0] == t {
		return w.tenants[1]
	}
	return w.tenants[0]
}

// missing is what nobody has, in the shape of something.
func (w *world) missing(like string) string {
	if m, ok := w.twinOf[like]; ok {
		return m
	}
	out := []byte(like)
	from := 0
	if ids.MatchString(like) {
		from = strings.LastIndexByte(like, '_') + 11 // the time stays
	}
	for i := from; i < len(out); i++ {
		switch c := out[i]; {
		case from > 0:
			out[i] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"[w.r.IntN(32)]
		case c >= 'A' && c <= 'Z':
			out[i] = byte('A' + w.r.IntN(26)) //nolint:gosec // a letter
		case c >= '0' && c <= '9':
			out[i] = byte('0' + w.r.IntN(10)) //nolint:gosec // a digit
		case c >= 'a' && c <= 'z':
			out[i] = byte('a' + w.r.IntN(26)) //nolint:gosec // a letter
		}
	}
	w.invented[string(out)] = true
	w.twinOf[like] = string(out)
	return string(out)
}

func (w *world) missingOf(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = w.missing(n)
	}
	return out
}

func (w *world) send(c *caller, q request) answer {
	path := q.path
	if q.surface == "rest" {
		path = inboxops.BasePath + path
	}
	reply, err := c.client.Do(w.t.Context(), q.method, path, q.body, q.headers...)
	if err != nil {
		w.t.Fatalf("%s: %v", q, err)
	}
	return answer{reply.Status, reply.Body}
}

// newWorld starts the service with the demo and gives each organization a past.
func newWorld(t *testing.T, r *rand.Rand) *world {
	w := &world{
		t: t, r: r, owner: map[string]*tenant{}, invented: map[string]bool{}, twinOf: map[string]string{}, tried: map[string]*tally{},
		tenants: []*tenant{
			{
				name: "acme", domain: "acme.test", canaries: []string{"zarzaparrilla", "quetzalcoatl"},
				marks: []string{"acme.test", "papeleria.example", "cliente.example", "banco.example", "ganga.example"},
			},
			{
				name: "globex", domain: "globex.test", canaries: []string{"brontosaurus", "xylophonist"},
				marks: []string{"globex.test", "initech.example", "umbrella.example"},
			},
		},
	}
	for _, x := range w.tenants {
		x.ids = map[string][]string{}
		x.marks = append(x.marks, x.canaries...)
		for i := range 6 {
			x.slugs = append(x.slugs, fmt.Sprintf("%s-%d", x.canaries[i%2], i))
		}
		x.address = x.slugs[0] + "@" + x.domain
	}
	w.serve()
	w.read()
	for _, c := range w.callers {
		c.learn(w, w.send(c, request{surface: "rest", method: "GET", path: "/session"}))
	}
	for _, c := range []*caller{w.callers[0], w.callers[2]} {
		workspace := []string{"X-Workspace-Id", c.workspace}
		for _, slug := range c.slugs {
			q := request{surface: "rest", method: "PUT", path: "/inboxes", body: `{"slug":"` + slug + `","display_name":"` + slug + `"}`, headers: workspace}
			if a := w.send(c, q); a.status != http.StatusCreated {
				t.Fatalf("%s: %d %s", q, a.status, a.body)
			}
		}
		for range 6 {
			w.mail(c.tenant)
		}
		w.await(c, 6)
		w.furnish(c)
		for _, list := range []string{"/inboxes", "/emails", "/threads", "/attachments"} {
			c.learn(w, w.send(c, request{surface: "rest", method: "GET", path: list + "?limit=3", headers: workspace}))
		}
	}
	return w
}

// furnish makes one of everything that mails meet.
func (w *world) furnish(c *caller) {
	for _, name := range []string{"extraction_templates_upsert", "rules_upsert", "webhooks_upsert"} {
		for range 3 {
			i := slices.IndexFunc(w.operations, func(o operation) bool { return o.name == name })
			d := &drawing{w: w, c: c, o: w.operations[i]}
			body := d.sound()
			delete(body, "idempotency_key") // a header here
			w.keys++
			key := fmt.Sprintf("key-%d", w.keys) // never one that is shared: under it, other arguments are a conflict
			q := request{
				surface: "rest", operation: name, method: d.o.method, path: d.o.path, body: text(body),
				headers: []string{"X-Workspace-Id", c.workspace, "Idempotency-Key", key},
			}
			a := w.send(c, q)
			if a.status/100 != 2 {
				w.t.Fatalf("%s: %d %s", q, a.status, a.body)
			}
			c.learn(w, a)
		}
	}
}

// await waits until mails of the canary are processed.
func (w *world) await(c *caller, n int) {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		a := w.send(c, request{surface: "rest", method: "GET", path: "/emails?limit=50&status=processed&inbox=" + c.slugs[0], headers: []string{"X-Workspace-Id", c.workspace}})
		if strings.Count(string(a.body), `"status":"processed"`) >= n {
			return
		}
	}
	w.t.Fatal("the mails were not processed")
}

// serve runs the local process in this one: an owner and an operator of acme, and two connections of globex's owner, of which
// the second reaches another workspace alone.
func (w *world) serve() {
	t := w.t
	dir, err := os.MkdirTemp(memory(), "bz") // short: the socket in it has 108 bytes for its path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	ended := running.Serve(t, dir, map[string]string{"BUZON_RATE_PER_MINUTE": "0", "BUZON_OUTWARD_PER_MINUTE": "0"})
	var demo struct {
		URL   string `json:"mcp_url"`
		SMTP  string `json:"smtp_addr"`
		Users []struct {
			Email      string
			Workspaces []string
			Token      string `json:"access_token"`
		}
	}
	for text, err := os.ReadFile(filepath.Join(dir, "demo.json")); ; text, err = os.ReadFile(filepath.Join(dir, "demo.json")) {
		if err == nil {
			if err := json.Unmarshal(text, &demo); err != nil {
				t.Fatal(err)
			}
			break
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the service ended: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	w.smtp = demo.SMTP
	keep := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}, Timeout: 30 * time.Second}
	t.Cleanup(keep.CloseIdleConnections)
	for _, x := range []struct {
		email     string
		tenant    int
		workspace int
	}{{"owner@acme.test", 0, 0}, {"operator@acme.test", 0, 0}, {"owner@globex.test", 1, 0}, {"owner@globex.test", 1, 1}} {
		i := slices.IndexFunc(demo.Users, func(u struct {
			Email      string
			Workspaces []string
			Token      string `json:"access_token"`
		}) bool {
			return u.Email == x.email
		})
		c := &caller{
			tenant: w.tenants[x.tenant], name: fmt.Sprintf("%s/%d", x.email, x.workspace), workspace: demo.Users[i].Workspaces[x.workspace],
			client: testkit.Client{HTTP: keep, Origin: strings.TrimSuffix(demo.URL, "/mcp"), Token: demo.Users[i].Token},
		}
		w.callers = append(w.callers, c)
	}
}

// memory is a folder in memory where there is one: ten thousand acts, each synced to a disk, would be a test of the disk.
func memory() string {
	const shm = "/dev/shm"
	if f, err := os.MkdirTemp(shm, "bz"); err == nil && os.Remove(f) == nil {
		return shm
	}
	return ""
}

// read takes the catalogue from the documents, and resources and prompts from the service.
func (w *world) read() {
	var document struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
			Parameters  []struct{ Name, In string }
			RequestBody json.RawMessage
		}
	}
	w.must(json.Unmarshal(inboxops.OpenAPI(), &document))
	routes := map[string]operation{}
	for path, methods := range document.Paths {
		for method, o := range methods {
			r := operation{name: o.OperationID, method: strings.ToUpper(method), path: path, body: len(o.RequestBody) > 0}
			for _, p := range o.Parameters {
				if p.In == "query" {
					r.query = append(r.query, p.Name)
				}
			}
			routes[o.OperationID] = r
		}
	}
	var list struct {
		Tools []struct {
			Name        string
			InputSchema *schema
		}
		ResourceTemplates []struct{ URITemplate string }
		Resources         []struct{ URI string }
		Prompts           []prompt
	}
	owner := w.callers[0]
	for _, method := range []string{"tools/list", "resources/templates/list", "resources/list", "prompts/list"} {
		d := drawing{w: w, c: owner}
		q := d.rpc(method, method, "", map[string]any{})
		var reply struct{ Result json.RawMessage }
		w.must(json.Unmarshal(w.send(owner, q).body, &reply))
		w.must(json.Unmarshal(reply.Result, &list))
	}
	for _, tool := range list.Tools {
		o, ok := routes[tool.Name]
		if !ok {
			w.t.Errorf("the tool %s has no route", tool.Name)
		}
		o.input = tool.InputSchema
		w.operations = append(w.operations, o)
	}
	if len(w.operations) != len(routes) {
		w.t.Errorf("%d tools, %d routes: an owner sees every one", len(w.operations), len(routes))
	}
	for _, r := range list.ResourceTemplates {
		w.templates = append(w.templates, r.URITemplate)
	}
	for _, r := range list.Resources {
		w.templates = append(w.templates, r.URI)
	}
	for _, document := range []string{"guide", "statuses", "events", "limits", "errors"} { // their samples are of nobody
		d := drawing{w: w, c: owner}
		uri := "buzon://inbox/" + document
		for _, id := range ids.FindAllString(string(w.send(owner, d.rpc("", "resources/read", uri, map[string]any{"uri": uri})).body), -1) {
			w.invented[id] = true
		}
	}
	w.prompts = list.Prompts
	if len(w.templates) == 0 || len(w.prompts) == 0 {
		w.t.Fatal("no resources or no prompts")
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

package inboxops_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxops"
	"github.com/buzon-mail/buzon/shared/op"
)

// unfenced are the dependencies of the services that Fence leaves as they are, and why.
var unfenced = map[string]string{
	"Domains": "the organization's", "Organizations": "the organization's", "Members": "its operations refuse confined callers",
	"Keys": "its operations refuse confined callers, but for the caller's own", "SignIns": "holds nothing of an inbox", "SecretPages": "holds nothing of an inbox",
	"Blobs": "read by the key of a row that was found", "Downloads": "made for a row that was found", "Cursors": "holds nothing",
	"Waiting": "holds places to wait, no mail", "Usage": "its operation refuses confined callers", "Rates": "of a grant",
	"Webhooks": "its operations refuse confined callers", "Deliveries": "its operations refuse confined callers",
	"WebhookSecrets": "holds nothing", "Receivers": "holds nothing",
	"Rules": "its operations refuse confined callers", "Templates": "the workspace's; its operations refuse confined callers",
	"Extractions": "read of a mail that was found; its operations refuse confined callers", "People": "members; its operation refuses confined callers",
	"Uploads": "its operations refuse confined callers", "Puts": "holds nothing of an inbox",
	"Jobs": "its operations refuse confined callers", "JobQueue": "holds ids of jobs", "Rand": "holds nothing",
}

// TestEveryStoreIsFenced: a store that is new stays outside of the fence only when somebody said why.
func TestEveryStoreIsFenced(t *testing.T) {
	w := newWorld(t)
	given := inbox.Deps{
		Inboxes: w.store, Domains: w.store, Counts: w.store, Emails: w.store, Attachments: w.store, Senders: w.store, Audit: w.store,
		Organizations: w.store, Members: w.store, Keys: w.store, SignIns: signIns{}, SecretPages: w, Webhooks: w.store, Deliveries: w.store, Blobs: w, Downloads: w,
		Threads: w.store, Work: w.store, Waiting: w.store, Usage: w.store, Jobs: w.store, Rules: w.store, Templates: w.store, Extractions: w.store, People: w.store, Uploads: w.store, Puts: w,
	}
	before, after := reflect.ValueOf(given), reflect.ValueOf(inboxops.Fence(given))
	for i := range before.NumField() {
		name := before.Type().Field(i).Name
		if before.Field(i).Kind() != reflect.Interface {
			continue
		}
		if before.Field(i).IsNil() && unfenced[name] == "" {
			t.Errorf("%s: the test gives none", name)
			continue
		}
		fenced := !before.Field(i).IsNil() && before.Field(i).Elem().Type() != after.Field(i).Elem().Type()
		if fenced == (unfenced[name] != "") {
			t.Errorf("%s: fenced %t, and the reason not to is %q", name, fenced, unfenced[name])
		}
	}
}

// confinement is a workspace with an inbox within the fence and one outside.
type confinement struct {
	*world
	in, out  string   // ids of the inboxes
	own, far []string // ids of what lies in them
	marks    []string // what no answer may hold
}

func newConfinement(t *testing.T) *confinement {
	w := &confinement{world: newWorld(t)}
	w.people()
	fill := func(slug string) (id string, ids []string) {
		in := w.data("acme", "PUT", "/inboxes", `{"slug":"`+slug+`","display_name":"Box `+slug+`"}`, 201)
		id = in["id"].(string)
		ids = append(ids, id)
		for i := range 4 {
			e := w.deliver(in, orgA, wsA)
			if i == 0 {
				w.hold(e)
			}
			ids = append(ids, e.ID)
			_, text := w.do("acme", "GET", "/attachments?email_id="+e.ID, "")
			var page struct{ Data []struct{ ID string } }
			w.must(json.Unmarshal([]byte(text), &page))
			ids = append(ids, page.Data[0].ID)
			if thread := w.data("acme", "GET", "/emails/"+e.ID, "", 200)["thread_id"]; thread != nil {
				ids = append(ids, thread.(string))
			}
		}
		entry := w.data("acme", "PUT", "/inboxes/"+slug+"/allowed-senders", `{"kind":"domain","value":"`+slug+`.test"}`, 201)
		return id, append(ids, entry["id"].(string))
	}
	w.in, w.own = fill("mine")
	w.out, w.far = fill("theirs")
	c := *w.callers["acme"]
	c.Within, c.Own, c.Key, c.Person, c.Grant = []string{w.in}, op.NoRole, "key_1", false, "key_1"
	w.callers["fenced"] = &c
	w.marks = append(slices.Clone(w.far), "theirs")
	return w
}

// bodies are what operations that take one are tried with, and queries what lists are.
func (w *confinement) bodies(name string) []string {
	switch name {
	case "inboxes_upsert":
		return []string{
			`{"slug":"theirs","state":"paused"}`, `{"id":"` + w.out + `","retention_days":1}`, `{"slug":"fresh"}`, `{"slug":"mine","display_name":"x"}`,
			`{"slug":"fresh","address":"theirs@acme.test"}`,
		}
	case "inboxes_set_sender_policy":
		return []string{`{"sender_policy":"listed"}`}
	case "allowed_senders_upsert":
		return []string{`{"kind":"domain","value":"evil.test"}`, `{"kind":"domain","value":"x.test","effect":"block"}`}
	case "allowed_senders_check":
		return []string{`{"from":"a@b.test"}`}
	case "emails_claim":
		return []string{`{"inbox":"theirs"}`, `{"inbox":"` + w.out + `","limit":10}`, `{"inbox":"mine","limit":10}`}
	case "emails_wait":
		return []string{`{"inbox":"theirs","timeout_s":0}`, `{"inbox":"` + w.out + `","timeout_s":0}`, `{"inbox":"mine","timeout_s":0}`}
	case "emails_update":
		return []string{`{"add_labels":["x"],"handled":true}`}
	}
	return []string{""}
}

func (w *confinement) queries(name string) []string {
	switch name {
	case "inboxes_list":
		return []string{"", "?include_deleted=true", "?q=s", "?limit=1"}
	case "inboxes_get", "emails_get":
		return []string{"", "?include_deleted=true"}
	case "emails_list":
		out := []string{"", "?include_deleted=true", "?status=processed", "?q=eve", "?limit=2", "?has_attachment=true", "?inbox=theirs", "?inbox=mine", "?inbox=" + w.out}
		for _, id := range w.far {
			if strings.HasPrefix(id, "thread_") {
				out = append(out, "?thread_id="+id, "?inbox=mine&thread_id="+id)
			}
		}
		return out
	case "threads_list":
		return []string{"", "?limit=1", "?q=eve", "?inbox=theirs", "?inbox=mine", "?inbox=" + w.out}
	case "attachments_list":
		out := []string{"?inbox=theirs", "?inbox=mine", "?inbox=" + w.out}
		for _, id := range w.far {
			out = append(out, "?email_id="+id)
		}
		return out
	}
	return []string{""}
}

// calls are every way in which an operation is tried: each id of either inbox in each place of its path, each body, each query.
func (w *confinement) calls(o op.Operation) (paths, bodies []string) {
	pool := slices.Concat(w.own, w.far, []string{"mine", "theirs", "fresh"})
	paths = []string{o.Path}
	for _, place := range []string{"{id}", "{sender_id}"} {
		if !strings.Contains(o.Path, place) {
			continue
		}
		var next []string
		for _, path := range paths {
			for _, value := range pool {
				next = append(next, strings.Replace(path, place, value, 1))
			}
		}
		paths = next
	}
	var all []string
	for _, path := range paths {
		for _, q := range w.queries(o.Name) {
			all = append(all, path+q)
		}
	}
	return all, w.bodies(o.Name)
}

// outside is everything that acme sees of the inbox outside of the fence.
func (w *confinement) outside() string {
	all := ""
	for _, path := range []string{
		"/inboxes/theirs?include_deleted=true", "/emails?inbox=theirs&include_deleted=true", "/attachments?inbox=theirs", "/inboxes/theirs/allowed-senders",
		"/inboxes/fresh?include_deleted=true", "/threads?inbox=theirs",
	} {
		_, text := w.do("acme", "GET", path, "")
		all += text + "\n"
	}
	return all
}

// TestConfinedCallersStayWithin is the property over the whole catalogue: whatever a confined caller calls, with whatever ids, no
// answer holds anything of another inbox and nothing there changes; what was not made for it refuses it.
func TestConfinedCallersStayWithin(t *testing.T) {
	c, err := inboxops.Catalogue(nil)
	if err != nil {
		t.Fatal(err)
	}
	w := newConfinement(t)
	before := w.outside()
	answered := map[string]bool{}
	for _, o := range c.Operations() {
		paths, bodies := w.calls(o)
		for _, path := range paths {
			for _, body := range bodies {
				code, text := w.do("fenced", o.Method, path, body)
				if !o.Confines && (code != 403 || !strings.Contains(text, `"confined"`) && !strings.Contains(text, "insufficient")) {
					t.Fatalf("%s %s %s is not made for confined callers: %d %s", o.Method, path, body, code, text)
				}
				if code >= 500 {
					t.Fatalf("%s %s %s: %d %s", o.Method, path, body, code, text)
				}
				for _, mark := range w.marks {
					if strings.Contains(text, mark) {
						t.Fatalf("%s %s %s shows %s: %s", o.Method, path, body, mark, text)
					}
				}
				answered[o.Name] = answered[o.Name] || code/100 == 2
			}
		}
		if o.Confines && !answered[o.Name] {
			t.Errorf("%s never answered: nothing was tried", o.Name)
		}
	}
	if after := w.outside(); after != before {
		t.Errorf("something outside of the fence changed:\n%s\nwas\n%s", after, before)
	}
}

// TestConfinedLists: pages over several inboxes hold what an unconfined list holds of them, in its order, each row once.
func TestConfinedLists(t *testing.T) {
	w := newWorld(t)
	var boxes []map[string]any
	for i := range 4 {
		boxes = append(boxes, w.data("acme", "PUT", "/inboxes", fmt.Sprintf(`{"slug":"b%d"}`, i), 201))
	}
	for i := range 23 {
		w.deliver(boxes[[]int{0, 1, 0, 2, 3, 1, 1}[i%7]], orgA, wsA)
	}
	c := *w.callers["acme"]
	c.Within, c.Own = []string{boxes[3]["id"].(string), boxes[0]["id"].(string), boxes[2]["id"].(string)}, op.NoRole
	w.callers["fenced"] = &c
	list := func(who, path string) (ids []string) {
		t.Helper()
		cursor := ""
		for range 40 {
			code, text := w.do(who, "GET", path+cursor, "")
			if code != 200 {
				t.Fatalf("%s: %d %s", path+cursor, code, text)
			}
			var page struct {
				Data []struct {
					ID      string
					InboxID string `json:"inbox_id"`
				}
				Meta struct {
					Next *string `json:"next_cursor"`
				}
			}
			w.must(json.Unmarshal([]byte(text), &page))
			for _, row := range page.Data {
				if row.InboxID == "" || slices.Contains(c.Within, row.InboxID) {
					ids = append(ids, row.ID)
				}
			}
			if page.Meta.Next == nil {
				return ids
			}
			cursor = "&cursor=" + url.QueryEscape(*page.Meta.Next)
		}
		t.Fatal("no end")
		return nil
	}
	for _, path := range []string{"/emails?limit=1", "/emails?limit=4", "/emails?limit=100", "/emails?limit=3&status=processed", "/emails?limit=2&q=eve",
		"/threads?limit=1", "/threads?limit=5"} {
		if got, want := list("fenced", path), list("acme", path); !slices.Equal(got, want) || len(got) < 10 {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
	for _, limit := range []string{"1", "2", "3", "100"} {
		if got := list("fenced", "/inboxes?limit="+limit); len(got) != 3 || slices.Contains(got, boxes[1]["id"].(string)) {
			t.Errorf("inboxes by %s: %v", limit, got)
		}
	}
}

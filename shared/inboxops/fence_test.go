package inboxops_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

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
	"Webhooks":       "its operations refuse confined callers, but for the retry of a delivery that was found",
	"WebhookSecrets": "holds nothing", "Receivers": "holds nothing",
	"Templates":   "the workspace's; its operations refuse confined callers",
	"Extractions": "read of a mail that was found; its operations refuse confined callers", "People": "members, for the receivers of a mail that was found",
	"Uploads": "its operations refuse confined callers", "Puts": "holds nothing of an inbox",
	"JobQueue": "holds ids of jobs", "Rand": "holds nothing",
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
	hook := w.data("acme", "PUT", "/webhooks", hookBody, 201)["id"].(string)
	fillMore := func(slug, creator string) (id string, ids []string) {
		id, ids = fill(slug)
		ids = append(ids, w.data("acme", "PUT", "/rules", `{"slug":"rule-`+slug+`","inbox":"`+slug+`","enabled":true,"conditions":[{"field":"size","op":"at_least","value":"0"}],`+
			`"actions":[{"type":"add_label","value":"label-`+slug+`"}]}`, 201)["id"].(string))
		return id, append(ids, w.deliveryOf(wsA, hook, id), w.jobOf(wsA, creator))
	}
	w.in, w.own = fillMore("mine", "key_1")
	w.out, w.far = fillMore("theirs", "key_2")
	// Of no inbox, or of nobody's key: out of reach too. Of the whole workspace: a rule that judges both.
	w.far = append(w.far, w.deliveryOf(wsA, hook, ""), w.jobOf(wsA, ""))
	w.data("acme", "PUT", "/rules", `{"slug":"rule-both","enabled":true,"conditions":[{"field":"size","op":"at_least","value":"0"}],"actions":[{"type":"add_label","value":"both"}]}`, 201)
	c := *w.callers["acme"]
	c.Within, c.Own, c.Key, c.Person, c.Grant = []string{w.in}, op.NoRole, "key_1", false, "key_1"
	w.callers["fenced"] = &c
	w.marks = append(slices.Clone(w.far), "theirs") // rule and label too
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
	case "emails_forward":
		return []string{`{"to":["ana@acme.test"]}`}
	case "emails_reprocess":
		return []string{``, `{"stages":["rules"],"notify":true}`}
	case "rules_test":
		out := []string{`{"sample":{"inbox":"theirs"}}`, `{"sample":{"inbox":"mine"}}`, `{"email_id":"` + w.own[1] + `","rule":{"inbox":"theirs","conditions":[{"field":"size","op":"at_least","value":"0"}],"actions":[]}}`}
		for _, id := range slices.Concat(w.own, w.far) {
			out = append(out, `{"email_id":"`+id+`"}`)
		}
		return out
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
	case "rules_list":
		return []string{"", "?inbox=theirs", "?inbox=mine", "?inbox=" + w.out, "?slug=rule-theirs", "?inbox=*"}
	case "jobs_list":
		return []string{"", "?limit=1", "?kind=emails_reprocess"}
	case "webhook_deliveries_list":
		out := []string{"", "?limit=1", "?event=email.processed"}
		for _, id := range w.far {
			out = append(out, "?email_id="+id)
		}
		return out
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
		"/inboxes/fresh?include_deleted=true", "/threads?inbox=theirs", "/rules?inbox=theirs", "/webhooks",
	} {
		_, text := w.do("acme", "GET", path, "")
		all += text + "\n"
	}
	for _, id := range w.far { // jobs and deliveries that the fence keeps away
		for _, path := range []string{"/jobs/", "/webhook-deliveries/"} {
			_, text := w.do("acme", "GET", path+id, "")
			all += text + "\n"
		}
	}
	return all
}

// deliveryOf makes a delivery of something that happened in an inbox.
func (w *world) deliveryOf(ws, hook, in string) string {
	w.t.Helper()
	w.mails++
	mail := inbox.Email{ID: fmt.Sprintf("email_%026d", w.mails), Workspace: ws, Inbox: in, UpdatedAt: clock()}
	next := mail
	next.Status = inbox.StatusProcessed
	events, err := inbox.EmailEvents(mail, next)
	w.must(err)
	d := inbox.NewDelivery(events[0], hook, clock())
	w.must(w.store.GiveOut(w.t.Context(), events[0], []byte("{}"), []inbox.WebhookDelivery{d}))
	return d.ID
}

// jobOf makes a job that acme's key has started.
func (w *world) jobOf(ws, key string) string {
	w.t.Helper()
	id, err := inbox.NewID("job", clock(), rand.Reader)
	w.must(err)
	w.must(w.store.StartJob(w.t.Context(), inbox.Job{
		ID: id, Organization: orgA, Workspace: ws, Kind: inbox.KindReprocess, Status: inbox.JobQueued, CreatedAt: clock(), UpdatedAt: clock(),
		ExpiresAt: clock().Add(time.Hour), Version: 1, Creator: inbox.JobCreator{Subject: "user_acme", Key: key, Scope: "emails:write"},
	}, inbox.Act{}))
	return id
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
	answered, tries := map[string]bool{}, 0
	for _, o := range c.Operations() {
		paths, bodies := w.calls(o)
		for _, path := range paths {
			for _, body := range bodies {
				tries++
				code, text := w.keyed("fenced", o.Method, path, body, fmt.Sprintf("key-%08d", tries))
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

// A rule of the whole workspace is shown, for it judges the key's mail; how often it matched is not, for it judges others' too.
func TestConfinedRules(t *testing.T) {
	w := newConfinement(t)
	both, own := inbox.RuleID(wsA, "", "rule-both"), inbox.RuleID(wsA, w.in, "rule-mine")
	w.store.HitRules(t.Context(), wsA, []inbox.RuleRef{{Rule: both, Version: 1}, {Rule: own, Version: 1}})
	counts := func(who string) map[string]float64 {
		_, text := w.do(who, "GET", "/rules", "")
		var page struct {
			Data []struct {
				Slug    string
				Matches float64 `json:"match_count"`
			}
		}
		w.must(json.Unmarshal([]byte(text), &page))
		out := map[string]float64{}
		for _, r := range page.Data {
			out[r.Slug] = r.Matches
		}
		return out
	}
	if got := counts("fenced"); !maps.Equal(got, map[string]float64{"rule-mine": 1, "rule-both": 0}) {
		t.Errorf("fenced %v", got)
	}
	if got := counts("acme"); len(got) != 3 || got["rule-both"] != 1 {
		t.Errorf("acme %v", got)
	}
}

// A key follows and cancels what it started, and nothing that its maker or another key did.
func TestConfinedJobs(t *testing.T) {
	w := newConfinement(t)
	code, text := w.keyed("fenced", "POST", "/emails/"+w.own[4]+"/reprocess", "", "key-reprocess")
	if code != 202 {
		t.Fatalf("%d %s", code, text)
	}
	var made struct {
		Data struct {
			ID string `json:"job_id"`
		}
	}
	w.must(json.Unmarshal([]byte(text), &made))
	if got := w.data("fenced", "POST", "/jobs/"+made.Data.ID+"/cancel", "", 200); got["status"] != "canceled" {
		t.Errorf("canceled %v", got)
	}
	w.data("acme", "GET", "/jobs/"+made.Data.ID, "", 200)
	for _, id := range w.far {
		if strings.HasPrefix(id, "job_") {
			w.data("acme", "GET", "/jobs/"+id, "", 200)
			if code, _ := w.do("fenced", "GET", "/jobs/"+id, ""); code != 404 {
				t.Errorf("%s: %d", id, code)
			}
			if code, _ := w.do("fenced", "POST", "/jobs/"+id+"/cancel", ""); code != 404 {
				t.Errorf("cancel %s: %d", id, code)
			}
		}
	}
}

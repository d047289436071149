package isolation

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/smtp"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	seed  = flag.Uint64("seed", 0, "of the random operations; 0: one of the clock, which is printed")
	steps = flag.Int("steps", 0, "random operations; 0: 10,000, and 4,000 with -short")
)

// TestTenantsNeverMeet lets four callers of two organizations do random things over every surface, with arguments that were
// drawn from what either side has ever seen. No answer may hold a canary, an id or a name of the other side that the request
// itself did not hold; and a request that names something of the other side is repeated with something that does not exist,
// and must be answered in the same words.
func TestTenantsNeverMeet(t *testing.T) {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano()) //nolint:gosec // any number
	}
	if *steps == 0 {
		*steps = 10_000
		if testing.Short() {
			*steps = 4_000
		}
	}
	t.Logf("repeat with: go test ./internal/isolation -seed %d -steps %d", *seed, *steps)
	w := newWorld(t, rand.New(rand.NewPCG(*seed, 1))) //nolint:gosec // a repeatable sequence, not a secret
	for w.step = 0; w.step < *steps; w.step++ {
		w.play(w.callers[w.r.IntN(len(w.callers))])
		if t.Failed() {
			t.Fatalf("seed %d, step %d", *seed, w.step)
		}
	}
	w.covered()
}

// play is one step: one operation over one surface.
func (w *world) play(c *caller) {
	if w.step%250 == 0 {
		w.mail(c.tenant)
		return
	}
	q := w.draw(c)
	reply := w.ask(c, q)
	w.count(c, q, reply)
	if state := reply.state(); state != "" {
		w.confirm(c, q, state)
	}
}

// ask sends a request and judges the answer. One that names something foreign is sent again with something missing.
func (w *world) ask(c *caller, q request) answer {
	got := w.send(c, q)
	w.judge(c, q, got)
	if len(q.foreign) > 0 {
		twin := q
		for _, f := range q.foreign {
			twin = twin.replace(f, w.missing(f))
		}
		other := w.send(c, twin)
		w.judge(c, twin, other)
		a, b := got.without(q.foreign), other.without(w.missingOf(q.foreign))
		if a != b && q.aside(got) { // the caller's own is made, or changed, by the first; who asks with what is foreign once more finds it so
			a = w.send(c, q).without(q.foreign)
		}
		if a != b {
			w.t.Errorf("%s, %s: what is foreign answers otherwise than what is missing\nforeign %s\nmissing %s\n%s", c.name, q, a, b, q.body)
		}
		w.twins++
	}
	c.learn(w, got)
	return got
}

// aside is whether what is foreign stands in a header only, and the answer did what was asked without it.
func (q request) aside(a answer) bool {
	return a.good() && !slices.ContainsFunc(q.foreign, func(f string) bool {
		return strings.Contains(q.path, f) || strings.Contains(q.body, f) || strings.Contains(string(a.body), f)
	})
}

// confirm says yes, or sends the state that the other side was given.
func (w *world) confirm(c *caller, q request, state string) {
	c.states = append(c.states, state)
	if w.r.IntN(3) == 0 {
		return // the person is asked and never answers
	}
	q.foreign = nil
	if other := w.other(c.tenant); w.r.IntN(4) == 0 && len(other.states) > 0 {
		state = other.states[w.r.IntN(len(other.states))]
		q.foreign = []string{state}
	}
	q.body = strings.Replace(q.body, `"params":{`, `"params":{"inputResponses":{"confirm":{"action":"accept","content":{"confirm":true}}},"requestState":"`+state+`",`, 1)
	if reply := w.ask(c, q); len(q.foreign) > 0 && !strings.Contains(string(reply.body), `-32602`) {
		w.t.Errorf("%s, %s: the other side's confirmation is worth something here: %d %.600s", c.name, q, reply.status, reply.body)
	} else if len(q.foreign) == 0 {
		w.count(c, q, reply)
	}
}

// judge looks for what is the other side's.
func (w *world) judge(c *caller, q request, a answer) {
	other := w.other(c.tenant)
	text := string(a.body)
	if a.status >= 500 && a.status != 503 {
		w.t.Errorf("%s, %s: %d %.600s", c.name, q, a.status, text)
	}
	for _, f := range q.foreign { // it may be told what it said
		text = strings.ReplaceAll(text, f, "")
	}
	for _, mark := range other.marks {
		if at := strings.Index(text, mark); at >= 0 {
			w.t.Errorf("%s, %s: sees %q of %s: %s", c.name, q, mark, other.name, text[max(0, at-300):min(len(text), at+300)])
		}
	}
	for _, id := range ids.FindAllString(text, -1) {
		if w.owner[id] == other {
			w.t.Errorf("%s, %s: sees %s of %s: %.600s", c.name, q, id, other.name, text)
		}
	}
}

// ids are in the shape of the product's.
var ids = regexp.MustCompile(`\b[a-z]+_[0-9A-HJKMNP-TV-Z]{26}\b`) //nolint:gochecknoglobals // constant

// learn remembers what the answer has that later requests of both sides may name.
func (c *caller) learn(w *world, a answer) {
	for _, id := range ids.FindAllString(string(a.body), -1) {
		if w.owner[id] != nil || w.invented[id] {
			continue
		}
		w.owner[id] = c.tenant
		prefix, _, _ := strings.Cut(id, "_")
		c.ids[prefix] = append(c.ids[prefix], id)
		c.all = append(c.all, id)
	}
	for _, m := range cursors.FindAllStringSubmatch(string(a.body), -1) {
		c.cursors = append(c.cursors, m[1])
	}
}

var cursors = regexp.MustCompile(`cursor\\?":\s*\\?"([A-Za-z0-9_-]{20,})`) //nolint:gochecknoglobals // constant

// without is the answer with what differs between any two answers taken out, and what was asked for.
func (a answer) without(sent []string) string {
	text := string(a.body)
	for _, s := range sent {
		text = strings.ReplaceAll(text, s, "SENT")
	}
	for _, m := range volatile {
		text = m.pattern.ReplaceAllString(text, m.with)
	}
	return fmt.Sprint(a.status, " ", text)
}

//nolint:gochecknoglobals // constant
var volatile = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`(request_?[iI]d\\?":\s*\\?")[A-Za-z0-9_-]+`), "${1}REQUEST"},
	{regexp.MustCompile(`(/errors/|instance\\?":\\?")[A-Za-z0-9_/-]+`), "${1}REQUEST"},
	{regexp.MustCompile(`[A-Za-z0-9_-]{40,}`), "SEALED"},
	{ids, "ID"},
	{regexp.MustCompile(`(examined\\?":\s*)\d+`), "${1}N"},
}

// mail lets one arrive, by SMTP, whose every part has the canary.
func (w *world) mail(t *tenant) {
	w.mails++
	mark, to := t.canary(w), t.address
	text := "From: " + mark + " <" + mark + "@" + t.canaries[0] + ".example>\r\nTo: " + to + "\r\nSubject: " + mark + " your code is 4821" + fmt.Sprint(10+w.mails%90) +
		"\r\nMessage-ID: <" + fmt.Sprint(w.mails) + "@" + t.canaries[0] + ".example>\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n" +
		"--b\r\nContent-Type: text/plain\r\n\r\n" + mark + " Total: 12.50 EUR\r\n" +
		"--b\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename=" + mark + ".pdf\r\n\r\n%PDF-1.4 " + mark + "\r\n--b--\r\n"
	if err := smtp.SendMail(w.smtp, nil, mark+"@"+t.canaries[0]+".example", []string{to}, []byte(text)); err != nil && !strings.HasPrefix(err.Error(), "550") {
		w.t.Fatalf("mail to %s: %v", to, err) // 550: it was deleted, or takes no mail of this sender, by an operation of this test
	}
}

// count keeps what was tried and what worked.
func (w *world) count(c *caller, q request, a answer) {
	tried := w.tried[q.operation]
	if tried == nil {
		tried = &tally{by: map[string]int{}}
		w.tried[q.operation] = tried
	}
	tried.by[q.surface]++
	tried.by[c.tenant.name]++
	tried.foreign += len(q.foreign)
	if a.good() {
		tried.good++
	}
}

// covered fails when the property was not put to the test: an operation that nobody tried, a surface without an answer.
func (w *world) covered() {
	names := make([]string, 0, len(w.tried))
	for name := range w.tried {
		names = append(names, name)
	}
	slices.Sort(names)
	silent := 0
	for _, name := range names {
		n := w.tried[name]
		b, _ := json.Marshal(n.by)
		w.t.Logf("%-32s %5d good, %5d foreign names, %s", name, n.good, n.foreign, b)
		if n.good == 0 {
			silent++
		}
		if a, g := n.by["acme"], n.by["globex"]; a+g >= 20 && (a == 0 || g == 0) { // fewer may come to one side by chance
			w.t.Errorf("%s was not tried by both", name)
		}
	}
	for _, o := range w.operations {
		if w.tried[o.name] == nil {
			w.t.Errorf("%s was not tried", o.name)
		}
	}
	if silent > len(names)/3 {
		w.t.Errorf("%d of %d never succeeded: what they answer was not looked at", silent, len(names))
	}
	if w.twins < *steps/10 {
		w.t.Errorf("%d requests named what is foreign", w.twins)
	}
}

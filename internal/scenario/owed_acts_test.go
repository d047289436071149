package scenario

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/testkit"
)

//nolint:gochecknoglobals // constant
var placeholder = regexp.MustCompile(`\{\{([a-z_]+)\}\}`)

// foreign: what is another organization's is answered as what is missing, in the same words.
func (s *stage) foreign(o *op.Operation, x sample, mine, theirs *home) {
	stranger := s.as(s.client, theirs.token)
	for surface, send := range s.surfaces() {
		same := func(what string, there, missing call, value, other string) {
			a, b := send(stranger, there), send(stranger, missing)
			if got, want := s.plain(a, value), s.plain(b, other); a.Status != b.Status || got != want {
				s.t.Errorf("%s, %s, %s: %s of another organization is told from a missing one:\n got: %d %s\nwant: %d %s", o.Name, surface, s.engine, what, a.Status, got, b.Status, want)
			}
			if slices.Contains(s.outcomes(surface, a), success) && o.Effect != op.Read {
				s.t.Errorf("%s, %s, %s: acts on %s of another organization: %s", o.Name, surface, s.engine, what, a.Body)
			}
			s.ledger.mark(place{o.Name, surface, s.engine}, tenant)
		}
		if !o.AnyTenant {
			k := call{o: o, arguments: theirs.arguments(x.arguments), workspace: mine.workspace}
			missing := k
			missing.workspace = missingLike(mine.workspace)
			same("the workspace", k, missing, k.workspace, missing.workspace)
			s.saw(o, surface, "not_found", "in a foreign workspace", send(stranger, k))
		}
		for _, name := range references(x.arguments) {
			fresh := theirs.fresh()
			value, other := mine.things[name], missingLike(mine.things[name])
			there := call{o: o, arguments: s.parse(fill(x.arguments, theirs.with(name, value), fresh))}
			missing := call{o: o, arguments: s.parse(fill(x.arguments, theirs.with(name, other), fresh))}
			same(name, there, missing, value, other)
		}
		if o.AnyTenant && len(references(x.arguments)) == 0 {
			s.ownOnly(o, surface, send(stranger, call{o: o, arguments: theirs.arguments(x.arguments)}), mine)
		}
	}
}

// ownOnly: what names nothing shows nothing of another organization's.
func (s *stage) ownOnly(o *op.Operation, surface string, r *testkit.Reply, mine *home) {
	s.saw(o, surface, success, "in the caller's own organization", r)
	for name, value := range mine.things {
		if !slices.Contains(words(), name) && strings.Contains(string(r.Body), value) {
			s.t.Errorf("%s, %s: shows %s of another organization: %s", o.Name, surface, name, r.Body)
		}
	}
	if strings.Contains(string(r.Body), mine.organization) || strings.Contains(string(r.Body), mine.member) {
		s.t.Errorf("%s, %s: names another organization: %s", o.Name, surface, r.Body)
	}
	s.ledger.mark(place{o.Name, surface, s.engine}, tenant)
}

// references are the tenant's things that arguments name.
func references(text string) (names []string) {
	for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
		if name := m[1]; name != "new" && !slices.Contains(words(), name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// missingLike is what nobody has, in the shape of something.
func missingLike(value string) string {
	if prefix, id, ok := strings.Cut(value, "_"); ok && len(id) == 26 {
		return prefix + "_" + id[:16] + "ZZZZZZZZZZ"
	}
	return "nadie-" + value
}

// plain is a reply without what differs between two calls.
func (s *stage) plain(r *testkit.Reply, value string) string {
	return strings.ReplaceAll(mask(string(r.Body), s.client.Origin), value, "VALUE")
}

// ready undoes what the operation did the last time, and returns arguments that succeed.
func (h *home) ready(x sample) map[string]any {
	h.prepare(x.before)
	if x.fresh != "" {
		h.renew(x.fresh)
	}
	return h.arguments(x.arguments)
}

// prepare sends lines of METHOD PATH BODY. What was so already is refused, which does no harm.
func (h *home) prepare(lines []string) {
	c := h.s.as(h.s.client, h.token)
	for _, line := range lines {
		parts := strings.SplitN(line+"  ", " ", 3)
		h.s.reply(c, parts[0], "/api/v1"+h.render(parts[1]), strings.TrimSpace(h.render(parts[2])), "Idempotency-Key", h.fresh())
	}
}

// succeeds: what it is for, over both surfaces; what a person must confirm in every way that it can go.
func (s *stage) succeeds(o *op.Operation, x sample, mine *home) {
	c := s.as(s.client, mine.token)
	k := call{o: o, arguments: mine.ready(x)}
	s.saw(o, overREST, success, "as it is meant", s.route(c, k))
	if o.Creates { // the same again is no creation
		s.saw(o, overREST, success, "repeated", s.route(c, k))
	}
	s.again(c, x, k, mine)
	k.arguments = mine.ready(x)
	if !o.Asks {
		s.saw(o, asTool, success, "as it is meant", s.tool(c, k))
		return
	}
	mute, old := k, k
	mute.mute, old.old = true, true
	s.saw(o, asTool, cantAsk, "by a client that can't ask", s.tool(c, mute))
	s.saw(o, asTool, cantOld, "in the era of 2025", s.tool(c, old))
	k.answer, k.state = `{"action":"decline"}`, s.ask(c, k)
	s.saw(o, asTool, declined, "declined", s.tool(c, k))
	k.state = ""
	k.answer, k.state = `{"action":"accept","content":{"confirm":true}}`, s.ask(c, k)
	s.saw(o, asTool, success, "confirmed", s.tool(c, k))
	twice := op.CodeDone
	if k.arguments["idempotency_key"] != nil { // the key comes first: the reply of then, unless a secret was in it
		twice = map[bool]string{false: success, true: "conflict/" + op.CodeKeyReplayed}[o.Secret]
	}
	s.saw(o, asTool, twice, "confirmed twice", s.tool(c, k))
}

// ask is the state of the question that a call is answered with.
func (s *stage) ask(c testkit.Client, k call) string {
	s.t.Helper()
	r := s.tool(c, k)
	var reply toolReply
	s.must(json.Unmarshal(r.Body, &reply))
	if reply.Result == nil || reply.Result.RequestState == "" {
		s.t.Errorf("%s, %s: not asked: %d %.400s", k.o.Name, s.engine, r.Status, r.Body)
		return "none"
	}
	return reply.Result.RequestState
}

// again: the key of a call that was done, with other arguments.
func (s *stage) again(c testkit.Client, x sample, k call, mine *home) {
	if x.other == "" {
		return
	}
	key := mine.fresh()
	k.arguments = mine.ready(x)
	k.arguments["idempotency_key"] = key
	s.saw(k.o, overREST, success, "with a key", s.route(c, k))
	for name, value := range mine.arguments(x.other) {
		k.arguments[name] = value
	}
	s.saw(k.o, overREST, "conflict/idempotency_conflict", "with a key of other arguments", s.route(c, k))
	s.saw(k.o, asTool, "conflict/idempotency_conflict", "with a key of other arguments", s.tool(c, k))
}

// versioned: a version that is not the thing's.
func (s *stage) versioned(o *op.Operation, x sample, mine *home) {
	body, ok := o.Input.FieldByName("Body")
	if !ok {
		return
	}
	t := body.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if _, ok := t.FieldByName("IfVersion"); !ok {
		return
	}
	mine.ready(x)
	text := x.stale
	if text == "" {
		text = x.arguments
	}
	k := call{o: o, arguments: mine.arguments(text)}
	k.arguments["if_version"] = 999999
	for surface, send := range s.surfaces() {
		s.saw(o, surface, "stale", "with a version that is not the thing's", send(s.as(s.client, mine.token), k))
	}
}

// weakened: an engine that can't be reached, that fails in a way that nobody foresaw, and on which somebody else is always quicker.
func (s *stage) weakened(o *op.Operation, x sample, mine *home) {
	warm := s.as(s.client, mine.token)
	for _, w := range []struct {
		how     weakness
		outcome string
	}{{down, "unavailable"}, {broken, "internal"}} {
		k := call{o: o, arguments: mine.ready(x)}
		for surface, send := range s.surfaces() {
			s.while(w.how, func() {
				r := send(warm, k)
				if slices.Contains(s.outcomes(surface, r), success) { // it needs nothing that is stored: then who calls does
					r = send(s.as(s.client, s.token(mine.party, s.every)), k)
				}
				s.saw(o, surface, w.outcome, "on a weak engine", r)
			})
		}
	}
	if o.Effect == op.Read || !s.ledger.declared[o.Name]["409"] {
		return
	}
	k := call{o: o, arguments: mine.ready(x)}
	s.while(raced, func() { s.saw(o, overREST, "conflict", "in a race", s.route(warm, k)) })
	k.arguments = mine.ready(x)
	if o.Asks {
		k.answer, k.state = `{"action":"accept","content":{"confirm":true}}`, s.ask(warm, k)
	}
	s.while(raced, func() { s.saw(o, asTool, "conflict", "in a race", s.tool(warm, k)) })
}

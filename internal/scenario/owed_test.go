package scenario

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/inboxops"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/testkit"
)

// call is one call of an operation, as a route or as a tool.
type call struct {
	o         *op.Operation
	arguments map[string]any
	workspace string // of the header; empty: none
	state     string // of a question, and
	answer    string // what the person said to it
	mute      bool   // the client can ask nobody
	old       bool   // revision 2025-06-18
}

const media = "Content-Type"

// route sends it over REST. Header, path, query and body are those of the arguments.
func (s *stage) route(c testkit.Client, k call, more ...string) *testkit.Reply {
	s.t.Helper()
	path, query, body := inboxops.BasePath+pathOf(k.o, k.arguments), url.Values{}, map[string]any{}
	headers := append([]string{media, "application/json"}, more...)
	if k.workspace != "" {
		headers = append(headers, "X-Workspace-Id", k.workspace)
	}
	for name, value := range k.arguments {
		switch {
		case strings.Contains(k.o.Path, "{"+name+"}"):
		case name == "idempotency_key":
			headers = append(headers, "Idempotency-Key", fmt.Sprint(value))
		case k.o.Method == http.MethodGet:
			query.Set(name, fmt.Sprint(value))
		default:
			body[name] = value
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	text := ""
	if _, ok := k.o.Input.FieldByName("Body"); ok {
		text = s.text(body)
	}
	return s.reply(c, k.o.Method, path, text, headers...)
}

// tool sends it to the tool.
func (s *stage) tool(c testkit.Client, k call) *testkit.Reply {
	s.t.Helper()
	params := map[string]any{"name": k.o.Name, "arguments": k.arguments}
	var headers []string
	if k.workspace != "" {
		headers = append(headers, "X-Workspace-Id", k.workspace)
	}
	if k.old {
		headers = append(headers, "MCP-Protocol-Version", "2025-06-18")
	} else {
		headers = append(headers, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", k.o.Name)
		capabilities := map[string]any{"elicitation": map[string]any{}}
		if k.mute {
			capabilities = map[string]any{}
		}
		params["_meta"] = map[string]any{
			"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": capabilities,
		}
	}
	if k.state != "" {
		params["requestState"], params["inputResponses"] = k.state, json.RawMessage(`{"confirm":`+k.answer+`}`)
	}
	return s.reply(c, http.MethodPost, "/mcp", s.text(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}), headers...)
}

func (s *stage) text(value any) string {
	text, err := json.Marshal(value)
	s.must(err)
	return string(text)
}

// surfaces are the two ways to make a call.
func (s *stage) surfaces() map[string]func(testkit.Client, call) *testkit.Reply {
	return map[string]func(testkit.Client, call) *testkit.Reply{
		overREST: func(c testkit.Client, k call) *testkit.Reply { return s.route(c, k) }, asTool: s.tool,
	}
}

// saw fails the test unless the reply of a surface was of the outcome.
func (s *stage) saw(o *op.Operation, surface, outcome, when string, r *testkit.Reply) {
	s.t.Helper()
	if got := s.outcomes(surface, r); !slices.Contains(got, outcome) {
		s.t.Errorf("%s, %s, %s: %s: got %d %q, want %s: %.400s", o.Name, surface, s.engine, when, r.Status, got, outcome, r.Body)
	}
}

// outcomes are those of one reply.
func (s *stage) outcomes(surface string, r *testkit.Reply) []string {
	if surface == asTool {
		var reply toolReply
		s.must(json.Unmarshal(r.Body, &reply))
		return reply.outcomes(r)
	}
	if r.Status < http.StatusMultipleChoices {
		return []string{success}
	}
	return problemOutcomes(r.Body)
}

// arguments of an operation for a tenant.
func (h *home) arguments(text string) map[string]any {
	h.s.t.Helper()
	return h.s.parse(fill(text, h.things, h.fresh()))
}

func (s *stage) parse(text string) map[string]any {
	s.t.Helper()
	var arguments map[string]any
	if err := json.Unmarshal([]byte(text), &arguments); err != nil {
		s.t.Fatalf("%s: %v", text, err)
	}
	return arguments
}

// owedByAll plays what every operation owes.
func (s *stage) owedByAll(t *testing.T) {
	s.t = t
	mine, theirs := s.furnish("owner@acme.test", "acme.test"), s.furnish("owner@globex.test", "globex.test")
	s.documents(mine)
	all := samples()
	for i := range s.ledger.catalogue {
		o := &s.ledger.catalogue[i]
		s.within(o.Name, func() {
			x, ok := all[o.Name]
			if !ok {
				s.t.Fatal("no sample says how it is called")
			}
			s.owed(o, x, mine, theirs)
		})
	}
	for name := range all {
		if s.ledger.operation(name) == nil {
			t.Errorf("there is a sample of %s, which is no operation", name)
		}
	}
	s.within("refusals", func() { s.refused(mine) })
	s.ledger.done(owedBy(s.engine))
}

// owed is everything that an operation owes for its declaration alone. mine has one of everything, theirs too.
func (s *stage) owed(o *op.Operation, x sample, mine, theirs *home) {
	s.strangers(o, x, mine)
	s.faulty(o, x, mine)
	s.foreign(o, x, mine, theirs)
	s.succeeds(o, x, mine)
	s.versioned(o, x, mine)
	s.weakened(o, x, mine)
}

// strangers: who may not.
func (s *stage) strangers(o *op.Operation, x sample, mine *home) {
	k := call{o: o, arguments: mine.arguments(x.arguments)}
	for surface, send := range s.surfaces() {
		s.saw(o, surface, "unauthenticated", "without a token", send(s.as(s.client, ""), k))
		s.saw(o, surface, "unauthenticated", "with somebody else's words", send(s.as(s.client, nobody), k))
		if o.Scope != "" {
			r := send(s.as(s.client, s.token(mine.party, s.without(o.Scope))), k)
			s.saw(o, surface, scope, "without the scope", r)
			if challenge := r.Header.Get("X-MCP-Challenge"); !strings.Contains(challenge, o.Scope) {
				s.t.Errorf("%s, %s: the challenge does not name %s: %s", o.Name, surface, o.Scope, challenge)
			}
		}
		if o.Role > op.Viewer {
			s.saw(o, surface, role, "with a role below", send(s.as(s.client, s.token(s.partyOf(lesser(o.Role)), s.every)), k))
		} else if o.AnyTenant {
			s.saw(o, surface, role, "without any role", send(s.as(s.client, s.token(mine.idle, s.every)), k))
		}
		if !o.Confines {
			r := send(s.as(s.client, mine.narrow), k)
			s.saw(o, surface, map[string]string{overREST: confined, asTool: role}[surface], "with a key that is confined to an inbox", r)
			s.ledger.mark(place{o.Name, surface, s.engine}, confined)
		}
	}
	token := s.token(mine.party, s.every)
	s.limited.Token = token
	s.route(s.limited, k)
	s.overRate(o, overREST, func() *testkit.Reply { return s.route(s.limited, k) })
	s.overRate(o, asTool, func() *testkit.Reply { return s.tool(s.limited, k) })
}

// overRate sends once more than a grant may in a minute: twice when a minute begins in between.
func (s *stage) overRate(o *op.Operation, surface string, send func() *testkit.Reply) {
	s.t.Helper()
	r := send()
	if !slices.Contains(s.outcomes(surface, r), "rate_limited") {
		r = send()
	}
	s.saw(o, surface, "rate_limited", "over the rate", r)
}

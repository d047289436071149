package scenario

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/buzon-mail/buzon/shared/inboxops"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/testkit"
)

// The engines that a door stands on, and the surfaces of a catalogue.
const (
	embedded = "embedded"
	standIns = "stand-ins"
	overREST = "REST"
	asTool   = "tool"
)

// Outcomes that are told apart from a plain kind of failure.
const (
	success   = "success"
	confirmed = "confirmed"         // a yes was sent and the act was done
	asked     = "asked"             // the reply is a question
	cantAsk   = "can't ask"         // -32021: the client of the 2026 era declared no elicitation
	cantOld   = "can't ask in 2025" // confirmation_required of the 2025 era
	declined  = "declined"          // the person said no
	role      = "role"              // the role is too small: forbidden over REST, an unknown tool over MCP
	confined  = "confined"          // a key that is confined to an inbox, and an operation that can't keep it there: as for a role
	scope     = "scope"             // the token lacks the scope, and the answer names it
	tenant    = "tenant"            // what is there and belongs to another organization, answered like what is missing
)

// place is one operation on one surface and one engine.
type place struct{ operation, surface, engine string }

// ledger is which outcomes were seen of which operation. It is safe for concurrent use.
type ledger struct {
	catalogue []op.Operation
	declared  map[string]map[string]bool // operation -> statuses of its OpenAPI operation

	explained []string // codes, as kind/code

	mu     sync.Mutex
	seen   map[place]map[string]bool // outcomes; kinds of failures as kind, their codes as kind/code
	wrong  map[string]bool           // what was answered and is not declared
	played map[string]bool           // which parts ran to their end
}

func newLedger(t *testing.T) *ledger {
	t.Helper()
	c, err := inboxops.Catalogue(nil)
	if err != nil {
		t.Fatal(err)
	}
	l := &ledger{
		catalogue: c.Operations(), declared: map[string]map[string]bool{}, seen: map[place]map[string]bool{}, wrong: map[string]bool{}, played: map[string]bool{},
	}
	var document struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
			Responses   map[string]json.RawMessage
		}
	}
	if err := json.Unmarshal(inboxops.OpenAPI(), &document); err != nil {
		t.Fatal(err)
	}
	for _, methods := range document.Paths {
		for _, o := range methods {
			l.declared[o.OperationID] = map[string]bool{}
			for status := range o.Responses {
				l.declared[o.OperationID][status] = true
			}
		}
	}
	return l
}

// explains takes the codes of buzon://inbox/errors.
func (l *ledger) explains(t *testing.T, text string) {
	t.Helper()
	var document struct {
		Data []struct {
			Kind  string
			Codes []struct{ Code string }
		}
	}
	if err := json.Unmarshal([]byte(text), &document); err != nil || len(document.Data) == 0 {
		t.Fatalf("buzon://inbox/errors: %v %.300s", err, text)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.explained = nil
	for _, kind := range document.Data {
		for _, c := range kind.Codes {
			l.explained = append(l.explained, kind.Kind+"/"+c.Code)
		}
	}
}

// mark notes an outcome.
func (l *ledger) mark(p place, outcomes ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen[p] == nil {
		l.seen[p] = map[string]bool{}
	}
	for _, o := range outcomes {
		l.seen[p][o] = true
	}
}

func (l *ledger) has(p place, outcome string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen[p][outcome]
}

// done notes that a part of the suite ran to its end.
func (l *ledger) done(part string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.played[part] = true
}

// fault notes an answer that no document declares.
func (l *ledger) fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong[fmt.Sprintf(format, args...)] = true
}

// observe reads one request and its reply. What is of no operation is passed over.
func (l *ledger) observe(engine, method, path, body string, r *testkit.Reply) {
	if method == http.MethodPost && path == "/mcp" {
		l.observeTool(engine, body, r)
		return
	}
	if o := l.routed(method, path); o != nil {
		l.observeRoute(o, engine, r)
	}
}

// operation is one of the catalogue by name.
func (l *ledger) operation(name string) *op.Operation {
	i := slices.IndexFunc(l.catalogue, func(o op.Operation) bool { return o.Name == name })
	if i < 0 {
		return nil
	}
	return &l.catalogue[i]
}

// routed is the operation of a request over REST.
func (l *ledger) routed(method, path string) *op.Operation {
	u, err := url.Parse(path)
	if err != nil {
		return nil
	}
	rest, ok := strings.CutPrefix(u.EscapedPath(), inboxops.BasePath)
	if !ok {
		return nil
	}
	have := strings.Split(rest, "/")
	for i := range l.catalogue {
		o := &l.catalogue[i]
		want := strings.Split(o.Path, "/")
		if o.Method != method || len(want) != len(have) {
			continue
		}
		if slices.EqualFunc(want, have, func(w, h string) bool { return w == h || strings.HasPrefix(w, "{") }) {
			return o
		}
	}
	return nil
}

func (l *ledger) observeRoute(o *op.Operation, engine string, r *testkit.Reply) {
	p := place{o.Name, overREST, engine}
	status := fmt.Sprint(r.Status)
	if !l.declared[o.Name][status] {
		l.fault("%s answers %s over REST on %s, which the OpenAPI document does not declare", o.Name, status, engine)
	}
	if r.Status < http.StatusMultipleChoices {
		l.mark(p, success, status)
		return
	}
	l.mark(p, problemOutcomes(r.Body)...)
}

// problemOutcomes are those of a problem document.
func problemOutcomes(text []byte) []string {
	var problem struct {
		Kind, Code string
		Scopes     []string
	}
	if err := json.Unmarshal(text, &problem); err != nil || problem.Kind == "" {
		return []string{"no problem document"}
	}
	out := []string{problem.Kind, problem.Kind + "/" + problem.Code}
	switch {
	case problem.Code == "insufficient_role":
		out = append(out, role)
	case problem.Code == op.Confines().Code:
		out = append(out, confined)
	case problem.Code == "insufficient_scope" && len(problem.Scopes) > 0:
		out = append(out, scope)
	case problem.Code == op.CodeUnconfirmed:
		return []string{cantOld, problem.Kind + "/" + problem.Code} // a conflict of the connection and not of the state
	case problem.Code == "declined":
		return []string{declined, problem.Kind + "/" + problem.Code}
	}
	return out
}

// toolReply is what a tools/call can be answered with.
type toolReply struct {
	Result *struct {
		ResultType   string
		RequestState string
		IsError      bool
		Content      []struct{ Text string }
	}
	Error *struct {
		Code    int
		Message string
		Data    struct {
			Kind, Code, Reason string
			Scopes             []string
			Scope              string
		}
	}
}

func (l *ledger) observeTool(engine, body string, r *testkit.Reply) {
	var request struct {
		Method string
		Params struct {
			Name           string
			RequestState   string
			InputResponses json.RawMessage
		}
	}
	if json.Unmarshal([]byte(body), &request) != nil || request.Method != "tools/call" || l.declared[request.Params.Name] == nil {
		return
	}
	p := place{request.Params.Name, asTool, engine}
	var reply toolReply
	if err := json.Unmarshal(r.Body, &reply); err != nil {
		return // a stream, which another test reads
	}
	outcomes := reply.outcomes(r)
	if slices.Contains(outcomes, success) && request.Params.RequestState != "" {
		outcomes = append(outcomes, confirmed)
	}
	l.mark(p, outcomes...)
}

func (r toolReply) outcomes(http *testkit.Reply) []string {
	switch e := r.Error; {
	case r.Result != nil && r.Result.RequestState != "":
		return []string{asked}
	case r.Result != nil && !r.Result.IsError:
		return []string{success}
	case r.Result != nil && len(r.Result.Content) > 0:
		return problemOutcomes([]byte(r.Result.Content[0].Text))
	case e == nil:
		return nil
	case e.Code == -32021 && e.Data.Reason == op.CodeUnconfirmed:
		return []string{cantAsk}
	case e.Code == -32602 && strings.HasPrefix(e.Message, "Unknown tool: "):
		return []string{role}
	case e.Data.Reason == op.CodeDone:
		return []string{op.CodeDone, "conflict/" + op.CodeDone}
	case e.Code == -32603 && http.Status == 500: // it says nothing but the request's id
		return []string{"internal"}
	case e.Data.Kind == "forbidden" && strings.Contains(http.Header.Get("X-MCP-Challenge"), `error="insufficient_scope"`):
		return []string{"forbidden", scope}
	case e.Data.Kind != "":
		return []string{e.Data.Kind, e.Data.Kind + "/" + e.Data.Code}
	}
	return nil
}

// sorted are the members of a set.
func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }

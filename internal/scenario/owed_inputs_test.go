package scenario

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/buzon-mail/buzon/shared/inboxops"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/testkit"
)

// argument is one of a tool's, as its schema has it.
type argument struct {
	Type any
	Enum []string
}

// misfit is a value that the schema does not allow; nil: it allows any.
func (a argument) misfit() any {
	kind, _ := a.Type.(string)
	if kinds, ok := a.Type.([]any); ok && len(kinds) > 0 {
		kind, _ = kinds[0].(string)
	}
	switch {
	case len(a.Enum) > 0:
		return "nothing-of-the-kind"
	case kind == "string":
		return 7
	case kind == "integer", kind == "boolean":
		return "seven"
	case kind == "array":
		return map[string]any{"a": 1}
	}
	return nil
}

// documents reads what the service says of its tools and its errors.
func (s *stage) documents(h *home) {
	c := s.as(s.client, h.token)
	var errors struct {
		Result struct{ Contents []struct{ Text string } }
	}
	s.document(c, "resources/read", `{"uri":"buzon://inbox/errors"}`, &errors)
	if len(errors.Result.Contents) != 1 {
		s.t.Fatal("there is no buzon://inbox/errors")
	}
	s.ledger.explains(s.t, errors.Result.Contents[0].Text)
	var tools struct {
		Result struct {
			Tools []struct {
				Name        string
				InputSchema struct{ Properties map[string]argument }
			}
		}
	}
	s.document(c, "tools/list", "", &tools)
	s.inputs = map[string]map[string]argument{}
	for _, tool := range tools.Result.Tools {
		s.inputs[tool.Name] = tool.InputSchema.Properties
	}
	if len(s.inputs) != len(s.ledger.catalogue) {
		s.t.Errorf("an owner sees %d tools of %d operations", len(s.inputs), len(s.ledger.catalogue))
	}
}

func (s *stage) document(c testkit.Client, method, params string, into any) {
	s.t.Helper()
	r, err := c.Handshake(s.t.Context(), "2025-06-18", method, params)
	s.must(err)
	s.must(json.Unmarshal(r.Body, into))
}

// faulty: input that is at fault.
func (s *stage) faulty(o *op.Operation, x sample, mine *home) {
	c := s.as(s.client, mine.token)
	k := call{o: o, arguments: mine.arguments(x.arguments)}
	s.misfits(c, k)
	k.arguments["no_such"] = 1
	s.saw(o, asTool, "invalid", "an unknown argument", s.tool(c, k))
	delete(k.arguments, "no_such")
	path := inboxops.BasePath + pathOf(o, k.arguments)
	s.saw(o, overREST, "invalid", "an unknown parameter", s.reply(c, o.Method, path+"?no_such=1", ""))
	if o.Method == http.MethodGet {
		return
	}
	large := `{"x":"` + strings.Repeat("x", 1<<20) + `"}`
	s.saw(o, overREST, "invalid", "an unknown member", s.reply(c, o.Method, path, `{"no_such":1}`))
	if _, ok := o.Input.FieldByName("Body"); ok {
		s.saw(o, overREST, "unsupported_media", "another type", s.reply(c, o.Method, path, `{}`, media, "text/plain"))
	}
	s.saw(o, overREST, "too_large", "over a MiB", s.reply(c, o.Method, path, large))
	k.arguments["no_such"] = large
	s.saw(o, asTool, "too_large", "over a MiB", s.tool(c, k))
}

// misfits: each argument in turn has a value that its schema does not allow. In a path there are only texts, and one that is no id
// and no slug names nothing.
func (s *stage) misfits(c testkit.Client, k call) {
	sound := k.arguments
	for _, name := range slices.Sorted(maps.Keys(s.inputs[k.o.Name])) {
		value := s.inputs[k.o.Name][name].misfit()
		if value == nil {
			continue
		}
		k.arguments = maps.Clone(sound)
		k.arguments[name] = value
		s.saw(k.o, asTool, "invalid", name+" does not fit", s.tool(c, k))
		_, text := value.(string)
		switch inPath := strings.Contains(k.o.Path, "{"+name+"}"); {
		case inPath:
			k.arguments[name] = "no~such"
			s.saw(k.o, overREST, "not_found", name+" is no name", s.route(c, k))
			s.saw(k.o, asTool, "not_found", name+" is no name", s.tool(c, k))
		case name == "idempotency_key", k.o.Method == http.MethodGet && !text: // texts there, whatever they look like
		default:
			s.saw(k.o, overREST, "invalid", name+" does not fit", s.route(c, k))
		}
	}
}

// pathOf is the route's path for arguments.
func pathOf(o *op.Operation, arguments map[string]any) string {
	path := o.Path
	for name, value := range arguments {
		path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(fmt.Sprint(value)))
	}
	return path
}

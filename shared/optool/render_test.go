package optool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/buzon-mail/buzon/shared/mcp"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/optool"
	"github.com/buzon-mail/buzon/shared/rest"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func TestRenderedTools(t *testing.T) {
	w := newWorld(t)
	want := map[string]string{
		"echo_send": `,{"name":"echo_send","description":"echo_send <does> it.","inputSchema":{"type":"object","properties":{"text":{"description":"What to send back","examples":["hello"],"type":"string"}},"required":["text"],"additionalProperties":false}` +
			`,"title":"Title of echo_send","outputSchema":{"type":"object","required":["data"]},"annotations":{"readOnlyHint":false,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}}`,
		"notes_get": `,{"name":"notes_get","description":"notes_get <does> it.","inputSchema":{"type":"object","properties":{"id":{"description":"Id or slug","type":"string"},"include":{"enum":["text","html"],"type":"string"}},"required":["id"],"additionalProperties":false}` +
			`,"title":"Title of notes_get","outputSchema":{"type":"object","required":["data"]},"annotations":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}}`,
		"notes_delete": `,{"name":"notes_delete","description":"notes_delete <does> it.","inputSchema":{"type":"object","properties":{"id":{"type":"string"}},"required":["id"],"additionalProperties":false}` +
			`,"title":"Title of notes_delete","annotations":{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":true,"openWorldHint":false}}`,
	}
	for _, s := range w.list {
		if text, ok := want[s.Name]; ok {
			if got := string(s.Head) + string(s.Tails[2]); got != text {
				t.Errorf("got  %s\nwant %s", got, text)
			}
		}
	}
	old := w.list[0]
	if got, want := string(old.Tails[1]), `,"annotations":{"title":"Title of echo_send","readOnlyHint":false,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}}`; got != want {
		t.Errorf("got %s", got)
	}
}

// TestSchemasAgreeWithTheRoutes feeds the same arguments to an independent validator and to the tool. They differ in the bounds
// alone that a tool's schema leaves out: the tool refuses by those what the schema lets through, never the other way round.
func TestSchemasAgreeWithTheRoutes(t *testing.T) {
	w := newWorld(t)
	var tools []map[string]json.RawMessage
	names := w.listed(t, w.caller("notes:write rules:write", op.Admin), nil, mcp.V20260728, &tools)
	schemas := map[string]*jsonschema.Schema{}
	for i, name := range names {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(tools[i]["inputSchema"]))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		c.DefaultDraft(jsonschema.Draft2020)
		if err := c.AddResource(name, doc); err != nil {
			t.Fatal(err)
		}
		if schemas[name], err = c.Compile(name); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	bounds := map[string]bool{`{"text":""}`: true, `{"q":""}`: true, `{"mark":[""]}`: true, `{"id":"a","rank":0}`: true, `{"slug":"a","conditions":[]}`: true}
	for _, tt := range []struct{ tool, arguments string }{
		{"echo_send", `{"text":"a"}`},
		{"echo_send", `{"text":""}`},
		{"echo_send", `{"text":1}`},
		{"echo_send", `{}`},
		{"echo_send", `{"text":"a","b":1}`},
		{"notes_list", `{}`},
		{"notes_list", `{"limit":100,"status":["open"],"q":"x","mark":["a"],"open":false,"weight":0.5}`},
		{"notes_list", `{"limit":101}`},
		{"notes_list", `{"limit":"1"}`},
		{"notes_list", `{"status":"open"}`},
		{"notes_list", `{"status":["x"]}`},
		{"notes_list", `{"q":""}`},
		{"notes_list", `{"mark":[""]}`},
		{"notes_get", `{"id":"a","include":"text"}`},
		{"notes_get", `{"id":"a","include":"pdf"}`},
		{"notes_get", `{"include":"text"}`},
		{"notes_update", `{"id":"a","labels":["x"],"rank":null}`},
		{"notes_update", `{"id":"a","rank":0}`},
		{"notes_update", `{"id":"a","force":"yes"}`},
		{"rules_upsert", `{"slug":"a","conditions":[{"field":"to","words":[]}]}`},
		{"rules_upsert", `{"slug":"a","conditions":[]}`},
		{"rules_upsert", `{"slug":"a","conditions":[{"field":"to","words":[],"inner":{"depth":10}}]}`},
		{"rules_upsert", `{"slug":"a","conditions":[{"field":"to","words":[],"x":1}]}`},
	} {
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(tt.arguments)))
		if err != nil {
			t.Fatal(err)
		}
		valid := schemas[tt.tool].Validate(value) == nil
		if got := w.must(t, tt.tool, tt.arguments); got.isError == (valid != bounds[tt.arguments]) {
			t.Errorf("%s %s: the schema says %t, the tool %s", tt.tool, tt.arguments, valid, got.json)
		}
	}
}

func TestRenderIsDeterministic(t *testing.T) {
	w := newWorld(t)
	var first []byte
	for range 5 {
		c, err := op.NewCatalogue(w.names, w.operations())
		if err != nil {
			t.Fatal(err)
		}
		data, err := optool.Render(c)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = data
		}
		if !bytes.Equal(first, data) {
			t.Fatal("two renderings differ")
		}
	}
}

func TestRenderRefuses(t *testing.T) {
	w := newWorld(t)
	type collides struct {
		ID   string `path:"id"`
		Body struct {
			ID string `json:"id"`
		}
	}
	type list struct{ Body []string }
	type deep struct {
		F map[string]string `query:"f,deepObject"`
	}
	type badTag struct {
		N int `query:"n" maximum:"x"`
	}
	spec := op.Spec{Name: "x_put", Method: "PUT", Path: "/x/{id}", Title: "x", Description: "x", Role: op.Viewer, Effect: op.Write}
	for name, o := range map[string]op.Operation{
		"collision":  rest.Define(spec, func(context.Context, *collides) (*echoOut, error) { return nil, nil }),
		"body list":  rest.Define(spec, func(context.Context, *list) (*echoOut, error) { return nil, nil }),
		"deepObject": rest.Define(spec, func(context.Context, *deep) (*echoOut, error) { return nil, nil }),
		"bad tag":    rest.Define(spec, func(context.Context, *badTag) (*echoOut, error) { return nil, nil }),
	} {
		c, err := op.NewCatalogue(w.names, []op.Operation{o})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := optool.Render(c); err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
}

func TestParseSegmentsRefuses(t *testing.T) {
	for name, data := range map[string]string{
		"empty": "", "another file": "PK", "no end of line": "optool 1\nx", "no sizes": "optool 1\nx\n", "size too great": "optool 1\nx 9 0 0 0\n,{\n",
		"negative": "optool 1\nx -1 0 0 0\n\n", "no comma": "optool 1\nx 1 0 0 0\n{\n", "no end": "optool 1\nx 2 0 0 0\n,{",
	} {
		if _, err := optool.ParseSegments([]byte(data)); err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
}

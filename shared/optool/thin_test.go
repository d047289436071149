package optool_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/optool"
	"github.com/buzon-mail/buzon/shared/rest"
)

type leaf struct {
	Name string `json:"name" doc:"What it is called, at length." tool:"Its name."`
}

type tree struct {
	Trees []tree `json:"trees,omitempty"`
}

type leaves struct {
	Names rest.Patch[[]string] `json:"names"`
	More  []string             `json:"more"`
}

type thinIn[B any] struct{ Body B }

// TestThinSchemas: what of a declaration a tool's schema says. Each case is the properties and what follows them.
func TestThinSchemas(t *testing.T) {
	type wordy struct {
		Long  string `json:"long,omitempty" doc:"For developers."`
		Words string `json:"words,omitempty" doc:"For developers." tool:"Brief."`
		None  int    `json:"none,omitempty" maximum:"9" doc:"For developers." tool:""`
	}
	type short struct {
		Bare  int      `json:"bare,omitempty" default:"3" minimum:"2" maximum:"9" doc:"For developers." tool:"-"`
		Words []string `json:"words,omitempty" maxItems:"3" doc:"For developers." tool:"- Brief."`
		Leaf  *leaf    `json:"leaf,omitempty" doc:"For developers." tool:"- As elsewhere."`
	}
	type bounds struct {
		Zero  int      `json:"zero,omitempty" default:"0"`
		Range int      `json:"range,omitempty" minimum:"1" maximum:"9" default:"3"`
		Most  int      `json:"most,omitempty" default:"3" minimum:"2"`
		Few   []string `json:"few,omitempty" minItems:"1" maxItems:"10"`
		Many  []string `json:"many,omitempty" maxItems:"11"`
		Enum  []string `json:"enum,omitempty" maxItems:"2" enum:"a,b"`
	}
	type reset struct {
		Inboxes rest.Patch[[]string] `json:"inboxes,omitempty" doc:"Null: all."`
		Few     []string             `json:"few,omitempty"`
		Of      []leaves             `json:"of,omitempty"`
	}
	type once struct {
		Leaf leaf `json:"leaf" doc:"A leaf."`
	}
	type twice struct {
		One  leaf   `json:"one"`
		More []leaf `json:"more"`
	}
	type recursive struct {
		Root tree `json:"root"`
	}
	const (
		leafSchema = `{"additionalProperties":false,"properties":{"name":{"description":"Its name.","type":"string"}},"required":["name"],"type":"object"}`
		treeSchema = `{"additionalProperties":false,"properties":{"trees":{"items":{"$ref":"#/$defs/Tree"},"type":"array"}},"type":"object"}`
	)
	for name, tt := range map[string]struct {
		made op.Operation
		want string
	}{
		"words": {thinOp[wordy](), `"long":{"description":"For developers.","type":"string"},"words":{"description":"Brief.","type":"string"},` +
			`"none":{"maximum":9,"type":"integer"}},"additionalProperties":false`},
		"short": {thinOp[short](), `"bare":{"type":"integer"},"words":{"description":"Brief.","items":{"type":"string"},"type":"array"},` +
			`"leaf":{"description":"As elsewhere.","type":"object"}},"additionalProperties":false`},
		"bounds": {thinOp[bounds](), `"zero":{"type":"integer"},"range":{"maximum":9,"type":"integer"},"most":{"default":3,"minimum":2,"type":"integer"},` +
			`"few":{"items":{"type":"string"},"maxItems":10,"type":"array"},"many":{"items":{"type":"string"},"type":"array"},` +
			`"enum":{"items":{"enum":["a","b"],"type":"string"},"type":"array"}},"additionalProperties":false`},
		"null where it resets": {thinOp[reset](), `"inboxes":{"description":"Null: all.","items":{"type":"string"},"type":["array","null"]},` +
			`"few":{"items":{"type":"string"},"type":"array"},"of":{"items":{"additionalProperties":false,"properties":{` +
			`"more":{"items":{"type":"string"},"type":"array"},"names":{"items":{"type":"string"},"type":["array","null"]}},` +
			`"required":["names","more"],"type":"object"},"type":"array"}},"additionalProperties":false`},
		"one use is folded in": {thinOp[once](), `"leaf":` + strings.Replace(leafSchema, `false,`, `false,"description":"A leaf.",`, 1) +
			`},"required":["leaf"],"additionalProperties":false`},
		"two uses share": {thinOp[twice](), `"one":{"$ref":"#/$defs/Leaf"},"more":{"items":{"$ref":"#/$defs/Leaf"},"type":"array"}},` +
			`"required":["one","more"],"additionalProperties":false,"$defs":{"Leaf":` + leafSchema + `}`},
		"recursion stays": {thinOp[recursive](), `"root":{"$ref":"#/$defs/Tree"}},"required":["root"],"additionalProperties":false,"$defs":{"Tree":` + treeSchema + `}`},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := op.NewCatalogue(newWorld(t).names, []op.Operation{tt.made})
			if err != nil {
				t.Fatal(err)
			}
			got, err := optool.Render(c)
			if err != nil {
				t.Fatal(err)
			}
			if want := `"properties":{` + tt.want + "}"; !bytes.Contains(got, []byte(want)) {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			document, err := rest.OpenAPI(c, rest.Options{BasePath: "/api", Title: "t", Version: "1"})
			if err != nil {
				t.Fatal(err)
			}
			for _, words := range []string{"Brief.", "Its name.", "As elsewhere."} {
				if bytes.Contains(document, []byte(words)) {
					t.Errorf("the document has the words of the tool: %s", words)
				}
			}
		})
	}
}

func thinOp[B any]() op.Operation {
	return rest.Define(op.Spec{
		Name: "x_put", Method: "PUT", Path: "/x", Title: "x", Description: "x", Role: op.Viewer, Effect: op.Write,
	}, func(context.Context, *thinIn[B]) (*echoOut, error) { return nil, nil })
}

package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func ptrTo[T any](v T) *T { return &v }

// TestFormCheck: what the restricted schema of the protocol can't say is refused before anyone is asked.
func TestFormCheck(t *testing.T) {
	two := []Option{{"a", ""}, {"b", ""}}
	good := Form{
		{Name: "text", Title: "T", Description: "D", Required: true, MinLength: 1, MaxLength: 9, Format: "email", Default: &Value{Text: "a@b.es"}},
		{Name: "number", Type: NumberField, Min: ptrTo(0.5), Max: ptrTo(1e21), Default: &Value{Number: 95.5}},
		{Name: "integer", Type: IntegerField, Default: &Value{Number: 30}},
		{Name: "boolean", Type: BooleanField, Default: &Value{Bool: true}},
		{Name: "plain", Type: ChoiceField, Options: two, Default: &Value{Text: "b"}},
		{Name: "titled", Type: ChoiceField, Options: []Option{{"a", "A"}}},
		{Name: "some", Type: ChoicesField, Options: two, MinItems: 1, MaxItems: 2, Default: &Value{Choices: []string{"a"}}},
		{Name: "some titled", Type: ChoicesField, Options: []Option{{"a", "A"}, {"b", "B"}}},
	}
	if err := good.Check(); err != nil {
		t.Errorf("a form with every type: %v", err)
	}
	if !json.Valid(good.append(nil)) {
		t.Errorf("schema: %s", good.append(nil))
	}
	for name, f := range map[string]Field{
		"no name":               {},
		"no such type":          {Name: "x", Type: 9},
		"choice without any":    {Name: "x", Type: ChoiceField},
		"choices without any":   {Name: "x", Type: ChoicesField},
		"text with options":     {Name: "x", Options: two},
		"negative length":       {Name: "x", MinLength: -1},
		"lengths":               {Name: "x", MinLength: 2, MaxLength: 1},
		"format of nothing":     {Name: "x", Format: "password"},
		"format of a number":    {Name: "x", Type: NumberField, Format: "date"},
		"bounds":                {Name: "x", Type: NumberField, Min: ptrTo(2.0), Max: ptrTo(1.0)},
		"items":                 {Name: "x", Type: ChoicesField, Options: two, MinItems: 2, MaxItems: 1},
		"more items than there": {Name: "x", Type: ChoicesField, Options: two, MinItems: 3},
		"half the titles":       {Name: "x", Type: ChoiceField, Options: []Option{{"a", "A"}, {"b", ""}}},
		"option twice":          {Name: "x", Type: ChoiceField, Options: []Option{{"a", ""}, {"a", ""}}},
		"default too short":     {Name: "x", MinLength: 1, Default: &Value{}},
		"default no option":     {Name: "x", Type: ChoiceField, Options: two, Default: &Value{Text: "c"}},
		"default fraction":      {Name: "x", Type: IntegerField, Default: &Value{Number: 0.5}},
	} {
		if q := AskForm("q", "?", Form{f}); q.fault == nil || q.params != nil {
			t.Errorf("%s: it would be asked", name)
		}
	}
	if err := (Form{{Name: "x"}, {Name: "x"}}).Check(); err == nil {
		t.Error("a name twice: no error")
	}
}

// TestFieldValues: content is held against the form that was asked for.
func TestFieldValues(t *testing.T) {
	two := []Option{{"a", ""}, {"b", ""}}
	for name, c := range map[string]struct {
		field     Field
		good, bad []string
	}{
		"text":      {Field{}, []string{`""`, `"ñ"`, `"\u00f1"`}, []string{`1`, `null`, `true`, `["a"]`, `{}`}},
		"length":    {Field{MinLength: 1, MaxLength: 2}, []string{`"ñ"`, `"ññ"`}, []string{`""`, `"abc"`}},
		"email":     {Field{Format: "email"}, []string{`"a@b.es"`}, []string{`"a"`, `"A <a@b.es>"`, `"a@b.es, c@d.es"`, `""`}},
		"uri":       {Field{Format: "uri"}, []string{`"https://a/b"`, `"mailto:a@b"`}, []string{`"a"`, `":"`, `"http://[::1"`}},
		"date":      {Field{Format: "date"}, []string{`"2026-11-30"`}, []string{`"2026-02-30"`, `"30.11.2026"`, `"2026-11-30T00:00:00Z"`}},
		"date-time": {Field{Format: "date-time"}, []string{`"2026-11-30T12:00:00Z"`, `"2026-11-30T12:00:00.5+01:00"`}, []string{`"2026-11-30"`, `"2026-11-30 12:00:00"`}},
		"number":    {Field{Type: NumberField, Min: ptrTo(0.0), Max: ptrTo(10.0)}, []string{`0`, `9.5`, `1e1`}, []string{`-1`, `10.1`, `"1"`, `1e400`, `true`}},
		"integer":   {Field{Type: IntegerField}, []string{`3`, `3.0`, `-1e2`}, []string{`3.5`, `"3"`, `null`}},
		"boolean":   {Field{Type: BooleanField}, []string{`true`, `false`}, []string{`1`, `"true"`, `null`, `[]`}},
		"choice":    {Field{Type: ChoiceField, Options: two}, []string{`"a"`}, []string{`"c"`, `""`, `["a"]`, `"A"`}},
		"choices":   {Field{Type: ChoicesField, Options: two, MinItems: 1, MaxItems: 2}, []string{`["a"]`, `["b","a"]`}, []string{`[]`, `"a"`, `["a","a"]`, `["c"]`, `[1]`, `["a",null]`, `{}`}},
	} {
		c.field.Name, c.field.Required = "x", true
		read := func(raw string) error {
			in := &Input{answers: map[string][]byte{"q": []byte(`{"action":"accept","content":{"x":` + raw + `}}`)}}
			e, err := in.Form("q", Form{c.field})
			if err != nil && (!errors.Is(err, ErrAnswer) || e.Action == Accepted) {
				t.Errorf("%s, %s: %v and action %d", name, raw, err, e.Action)
			}
			return err
		}
		for _, raw := range c.good {
			if err := read(raw); err != nil {
				t.Errorf("%s: %s is refused: %v", name, raw, err)
			}
		}
		for _, raw := range c.bad {
			if read(raw) == nil {
				t.Errorf("%s: %s is taken", name, raw)
			}
		}
	}
}

// TestNilInput: on a first round every answer is missing.
func TestNilInput(t *testing.T) {
	var in *Input
	e, err := in.Form("x", Form{{Name: "x", Required: true}})
	action, err2 := in.URL("x")
	_, ok, err3 := in.Model("x")
	_, ok2, err4 := in.Roots("x")
	if e.Action != Missing || action != Missing || ok || ok2 || in.Verified() || errors.Join(err, err2, err3, err4) != nil {
		t.Errorf("%v %v %v %v", e, action, ok, ok2)
	}
	if _, ok := e.Get("x"); ok || e.Bool("x") || e.Text("x") != "" {
		t.Error("a missing answer has values")
	}
}

// TestAnswerOfAnotherKind: an answer to a form is none to a question of URL mode, once the state says what was asked.
func TestAnswerOfAnotherKind(t *testing.T) {
	in := &Input{kinds: map[string]questionKind{"q": kindURL}, answers: map[string][]byte{"q": []byte(`{"action":"accept","content":{"confirm":true}}`)}}
	if e, err := in.Form("q", Form{{Name: "confirm", Type: BooleanField}}); err != nil || e.Action != Missing {
		t.Errorf("%v %v", e, err)
	}
	if a, err := in.URL("q"); err != nil || a != Accepted {
		t.Errorf("%v %v", a, err)
	}
}

func TestCanonical(t *testing.T) {
	for _, same := range [][]string{
		{`{}`, ` { } `, "{\n}"},
		{`{"a":1,"b":[true,null]}`, `{ "b" : [ true , null ] , "a" : 1 }`, `{"\u0061":1,"b":[true,null]}`},
		{`"ñ"`, `"\u00f1"`, `"\u00F1"`},
		{`"/\n"`, `"\/\u000a"`},
		{`{"a":{"b":2,"c":{"d":1,"e":2}}}`, `{"a":{"c":{"e":2,"d":1},"b":2}}`},
	} {
		for _, s := range same[1:] {
			if a, b := string(canonical([]byte(same[0]))), string(canonical([]byte(s))); a != b {
				t.Errorf("%s and %s differ: %s, %s", same[0], s, a, b)
			}
		}
	}
	for _, other := range [][2]string{
		{`{"a":1}`, `{"a":1,"a":1}`}, {`{"a":1,"a":2}`, `{"a":2,"a":1}`}, {`{"a":1}`, `{"a":1.0}`}, {`{"a":1}`, `{"a":"1"}`}, {`{"a":[1,2]}`, `{"a":[2,1]}`},
		{`{"a":null}`, `{}`}, {`"\ud800"`, `"\ud801"`}, {`"\ud800"`, `"\ufffd"`}, {`{"\ud800":1}`, `{"\ud801":1}`}, {`[[]]`, `[]`}, {`["a,b"]`, `["a","b"]`}, {`{"a":1}`, `{"A":1}`},
	} {
		if a, b := string(canonical([]byte(other[0]))), string(canonical([]byte(other[1]))); a == b {
			t.Errorf("%s and %s are the same: %s", other[0], other[1], a)
		}
	}
	if digest(nil) != digest([]byte(`{}`)) || digest(nil) == digest([]byte(`[]`)) {
		t.Error("absent arguments are an empty object")
	}
}

// FuzzCanonical: the canonical form means what the message means, and has no other canonical form.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{`{"b":[1,2.0,-3e9],"a":{"c":"\ud83d\ude00"}}`, `[]`, `"\ud800"`, ` {"a" : {} , "a":[[],{}]} `, `null`, `{"a":"\\\"\/\b"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var fr frame
		parse(&fr, raw, nil)
		if fr.fault > notObject {
			return
		}
		once := canonical(raw)
		if again := canonical(once); !bytes.Equal(once, again) {
			t.Fatalf("%q -> %q -> %q", raw, once, again)
		}
		var a, b any
		if err := json.Unmarshal(raw, &a); err != nil {
			return // a number beyond float64
		}
		if err := json.Unmarshal(once, &b); err != nil || !reflect.DeepEqual(a, b) || !utf8.Valid(once) {
			t.Fatalf("%q means %v, %q means %v, %v", raw, a, once, b, err)
		}
	})
}

// TestParseHeaderParams: an annotation that a client must not follow stops the server that made it.
func TestParseHeaderParams(t *testing.T) {
	prop := func(s string) string { return `{"type":"object","properties":{"a":` + s + `}}` }
	for name, schema := range map[string]string{
		"empty name":              prop(`{"type":"string","x-mcp-header":""}`),
		"space":                   prop(`{"type":"string","x-mcp-header":"a b"}`),
		"colon":                   prop(`{"type":"string","x-mcp-header":"a:"}`),
		"line break":              prop(`{"type":"string","x-mcp-header":"a\r\nb"}`),
		"not ASCII":               prop(`{"type":"string","x-mcp-header":"región"}`),
		"not a string":            prop(`{"type":"string","x-mcp-header":true}`),
		"number":                  prop(`{"type":"number","x-mcp-header":"a"}`),
		"object":                  prop(`{"type":"object","x-mcp-header":"a"}`),
		"array":                   prop(`{"type":"array","x-mcp-header":"a"}`),
		"no type":                 prop(`{"enum":["a"],"x-mcp-header":"a"}`),
		"two types":               prop(`{"type":["string","null"],"x-mcp-header":"a"}`),
		"null":                    prop(`{"type":"null","x-mcp-header":"a"}`),
		"by reference":            prop(`{"$ref":"#/$defs/s","x-mcp-header":"a"}`),
		"at the root":             `{"type":"string","x-mcp-header":"a"}`,
		"same name":               `{"properties":{"a":{"type":"string","x-mcp-header":"R"},"b":{"type":"string","x-mcp-header":"R"}}}`,
		"same but for case":       `{"properties":{"a":{"type":"string","x-mcp-header":"Region"},"b":{"properties":{"c":{"type":"string","x-mcp-header":"REGION"}}}}}`,
		"in items":                prop(`{"type":"array","items":{"type":"string","x-mcp-header":"a"}}`),
		"in items' property":      prop(`{"type":"array","items":{"properties":{"b":{"type":"string","x-mcp-header":"a"}}}}`),
		"in prefixItems":          prop(`{"prefixItems":[{"type":"string","x-mcp-header":"a"}]}`),
		"in anyOf":                prop(`{"anyOf":[{"type":"string","x-mcp-header":"a"}]}`),
		"in allOf's property":     `{"allOf":[{"properties":{"a":{"type":"string","x-mcp-header":"a"}}}]}`,
		"in oneOf":                `{"oneOf":[{"properties":{"a":{"type":"string","x-mcp-header":"a"}}}]}`,
		"in not":                  `{"not":{"properties":{"a":{"type":"string","x-mcp-header":"a"}}}}`,
		"in then":                 `{"if":{},"then":{"properties":{"a":{"type":"string","x-mcp-header":"a"}}}}`,
		"in $defs":                `{"$defs":{"s":{"type":"string","x-mcp-header":"a"}}}`,
		"in patternProperties":    `{"patternProperties":{".":{"type":"string","x-mcp-header":"a"}}}`,
		"in additionalProperties": `{"additionalProperties":{"type":"string","x-mcp-header":"a"}}`,
		"not JSON":                `{`,
		"not an object":           `[]`,
	} {
		if h, err := ParseHeaderParams(json.RawMessage(schema)); err == nil || h != nil {
			t.Errorf("%s: taken as %v", name, h.Names())
		}
	}
	for name, c := range map[string]struct {
		schema string
		want   []string
	}{
		"none":               {`{"type":"object"}`, nil},
		"string":             {prop(`{"type":"string","x-mcp-header":"Region"}`), []string{"Mcp-Param-Region"}},
		"every type":         {`{"properties":{"a":{"type":"string","x-mcp-header":"a"},"b":{"type":"integer","x-mcp-header":"b"},"c":{"type":"boolean","x-mcp-header":"c"}}}`, []string{"Mcp-Param-A", "Mcp-Param-B", "Mcp-Param-C"}},
		"nested":             {prop(`{"type":"object","properties":{"b":{"type":"string","x-mcp-header":"Zone-ID"}}}`), []string{"Mcp-Param-Zone-Id"}},
		"name of a property": {`{"properties":{"x-mcp-header":{"type":"string"},"properties":{"type":"string","x-mcp-header":"P"}}}`, []string{"Mcp-Param-P"}},
		"in data":            {prop(`{"default":{"x-mcp-header":1},"const":{"x-mcp-header":1},"enum":[{"x-mcp-header":1}],"examples":[{"x-mcp-header":1}]}`), nil},
		"far reference":      {`{"$ref":"https://example.invalid/s.json","properties":{"a":{"$ref":"https://example.invalid/t"}}}`, nil},
	} {
		h, err := ParseHeaderParams(json.RawMessage(c.schema))
		if err != nil || strings.Join(h.Names(), " ") != strings.Join(c.want, " ") {
			t.Errorf("%s: %v, %v, want %v", name, h.Names(), err, c.want)
		}
	}
}

func TestInteger(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "-0": 0, "42": 42, "42.0": 42, "4.2e1": 42, "4.2E+1": 42, "420e-1": 42, "-7": -7, "-7.00": -7, "9007199254740991": 1<<53 - 1,
		"-9007199254740991": -(1<<53 - 1), "0.0e99": 0, "100": 100, "1e2": 100, "0.5e1": 5} {
		if got, ok := integer(text); !ok || got != want {
			t.Errorf("%s: %d %v, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "+1", "01", "1.5", "1e-1", "0.5", "9007199254740992", "-9007199254740992", "1e16", "1e400", "1e99999999999999999999", "0x10", "1 ", " 1", "1.", "NaN", "true",
		"1.00000000000000000000000000000000000000000000000000000000000000000"} {
		if got, ok := integer(text); ok {
			t.Errorf("%q is taken as %d", text, got)
		}
	}
}

func TestPage(t *testing.T) {
	for name, c := range map[string]struct {
		cursor   string
		limit, n int
		from, to int
		next     string
		unknown  bool
	}{
		"all":               {"", 0, 3, 0, 3, "", false},
		"first":             {"", 2, 3, 0, 2, "2", false},
		"last":              {"2", 2, 3, 2, 3, "", false},
		"exactly":           {"", 3, 3, 0, 3, "", false},
		"none":              {"", 3, 0, 0, 0, "", false},
		"shorter meanwhile": {"9", 2, 3, 3, 3, "", false},
		"nonsense":          {"x", 2, 3, 0, 0, "", true},
		"negative":          {"-1", 2, 3, 0, 0, "", true},
		"zero":              {"0", 2, 3, 0, 0, "", true},
	} {
		r := &ListRequest{Cursor: c.cursor, Limit: c.limit}
		from, to, next, err := r.Page(c.n)
		if errors.Is(err, ErrUnknown) != c.unknown || !c.unknown && (from != c.from || to != c.to || next != c.next) {
			t.Errorf("%s: %d %d %q %v", name, from, to, next, err)
		}
	}
}

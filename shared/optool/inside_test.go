package optool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/op"
)

// Unfiltered removes every check of the tools' own, so that a test can show that the routes refuse by themselves.
func (t *Tools) Unfiltered() {
	for i := range t.tools {
		open := *t.tools[i].op
		open.Role, open.AnyTenant, open.Effect = op.NoRole, true, op.Write
		t.tools[i].op, t.tools[i].scope = &open, 0
	}
}

func TestUntrustedPointers(t *testing.T) {
	tests := []struct{ name, reply, want string }{
		{"none", `{"data":{"a":1}}`, ``},
		{"value", `{"data":"untrusted"}`, ``},
		{"end of a string", `{"data":"say \"untrusted"}`, ``},
		{"inside a string", `{"data":"{\"untrusted\":1}"}`, ``},
		{"top", `{"untrusted":{}}`, `["/untrusted"]`},
		{"in lists", `{"data":[{"x":[1,{"untrusted":1}]},{"untrusted":null}]}`, `["/data/0/x/1/untrusted","/data/1/untrusted"]`},
		{"eleventh", `[0,0,0,0,0,0,0,0,0,0,{"untrusted":0}]`, `["/10/untrusted"]`},
		{"nested ones are covered", `{"untrusted":{"untrusted":1,"a":{"untrusted":2}},"b":{"untrusted":3}}`, `["/untrusted","/b/untrusted"]`},
		{"escaped name", `{"a":{"\u0075ntrusted":1}}`, `["/a/untrusted"]`},
		{"letter case", `{"Untrusted":1}`, ``},
		{"tilde and slash", `{"a~b/c":{"untrusted":1}}`, `["/a~0b~1c/untrusted"]`},
		{"hidden tilde and slash", `{"\u007e\/\"":{"untrusted":1}}`, `["/~0~1\"/untrusted"]`},
		{"too deep to walk", `{"a":` + strings.Repeat("[", 80) + `{"untrusted":1}` + strings.Repeat("]", 80) + `}`, `[""]`},
		{"too many", "[" + strings.Repeat(`{"untrusted":0},`, 9000) + "0]", `[""]`},
		{"white space", " { \"a\" : [ { \"untrusted\" : 1 } ] } ", `["/a/0/untrusted"]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := "before"
			if tt.want != "" {
				want += `"k":` + tt.want
			}
			if got := string(appendUntrusted([]byte("before"), "k", []byte(tt.reply))); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// pointersOf is the slow and plain way: decode and walk. Names that a map can't hold twice are left to the caller.
func pointersOf(dec *json.Decoder, at string, out *[]string) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	for i := 0; dec.More(); i++ {
		next := fmt.Sprint(at, "/", i)
		if delim == '{' {
			name, err := dec.Token()
			if err != nil {
				return err
			}
			text := strings.ReplaceAll(strings.ReplaceAll(name.(string), "~", "~0"), "/", "~1")
			next = at + "/" + text
			if name == "untrusted" {
				*out = append(*out, next)
				var skip json.RawMessage
				if err := dec.Decode(&skip); err != nil {
					return err
				}
				continue
			}
		}
		if err := pointersOf(dec, next, out); err != nil {
			return err
		}
	}
	_, err = dec.Token()
	return err
}

func FuzzUntrustedPointers(f *testing.F) {
	for _, seed := range []string{`{"untrusted":1}`, `{"data":[{"untrusted":{"a":"\""}},{"x":"untrusted\""}]}`, `{"\u0075ntrusted":1,"~/":{"untrusted":[]}}`, `[[[`, `"untrusted"`, `[8E888,{"untrusted":1}]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, reply []byte) {
		got := appendUntrusted(nil, "k", reply)
		var want []string
		if !json.Valid(reply) || !bytes.Equal(bytes.ToValidUTF8(reply, nil), reply) || len(reply) > 4096 {
			return // it is what our own encoder wrote
		}
		oracle := json.NewDecoder(bytes.NewReader(reply))
		oracle.UseNumber() // 8E888 is JSON and no float64
		if err := pointersOf(oracle, "", &want); err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 {
			if want != nil {
				t.Fatalf("missed %q in %s", want, reply)
			}
			return
		}
		var have map[string][]string
		if err := json.Unmarshal([]byte("{"+string(got)+"}"), &have); err != nil {
			t.Fatalf("%s: %v", got, err)
		}
		if !slices.Equal(have["k"], want) && !slices.Equal(have["k"], []string{""}) {
			t.Fatalf("got %q, want %q in %s", have["k"], want, reply)
		}
	})
}

type fuzzIn struct {
	ID    string   `path:"id"`
	Word  string   `query:"q"`
	Limit int      `query:"limit"`
	Open  bool     `query:"open"`
	Tags  []string `query:"tag"`
	Marks []string `query:"mark,explode"`
	Body  struct {
		Any json.RawMessage `json:"any"`
		Two json.RawMessage `json:"two"`
	}
}

// FuzzArguments compares the walk with encoding/json: what is accepted must mean the same to both.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{`{"id":"a","q":"x&y=z","limit":5,"open":true,"tag":["a","b"],"mark":["c,d"],"any":{"a":[1]},"two":null}`,
		`{"id":"a","\u0071":"\ud83d\ude00\n"}`, `{"id":"a","limit":-0}`, `{"id":"a","id":"b"}`, `{"ID":"a"}`, `{"id":"..\/"}`, `[]`, ``} {
		f.Add([]byte(seed))
	}
	p, err := newPlan(&op.Operation{Spec: op.Spec{Name: "x", Method: "PUT", Path: "/x/{id}"}, Input: reflect.TypeFor[fuzzIn]()}, "")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, arguments []byte) {
		var in input
		if err := p.read(arguments, &in); err != nil {
			return
		}
		var want struct {
			ID    *string           `json:"id"`
			Word  *string           `json:"q"`
			Limit *json.Number      `json:"limit"`
			Open  *bool             `json:"open"`
			Tags  []string          `json:"tag"`
			Marks []string          `json:"mark"`
			Any   json.RawMessage   `json:"any"`
			Two   json.RawMessage   `json:"two"`
			Rest  map[string]string `json:"-"`
		}
		dec := json.NewDecoder(bytes.NewReader(arguments))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&want); err != nil {
			t.Fatalf("accepted %q: %v", arguments, err)
		}
		if in.paths != 1 || in.values[0].value != *want.ID {
			t.Fatalf("path %q, want %q", in.values[0].value, *want.ID)
		}
		expected := url.Values{}
		if want.Word != nil {
			expected.Set("q", *want.Word)
		}
		if want.Limit != nil {
			expected.Set("limit", want.Limit.String())
		}
		if want.Open != nil {
			expected.Set("open", fmt.Sprint(*want.Open))
		}
		if len(want.Tags) > 0 {
			expected.Set("tag", strings.Join(want.Tags, ","))
		}
		if len(want.Marks) > 0 {
			expected["mark"] = want.Marks
		}
		got, err := url.ParseQuery(string(in.query))
		if err != nil || !reflect.DeepEqual(got, expected) {
			t.Fatalf("query %q (%v), want %v from %q", in.query, err, expected, arguments)
		}
		var body struct {
			Any json.RawMessage `json:"any"`
			Two json.RawMessage `json:"two"`
		}
		if err := json.Unmarshal(in.body, &body); err != nil || !bytes.Equal(body.Any, want.Any) || !bytes.Equal(body.Two, want.Two) {
			t.Fatalf("body %q (%v) from %q", in.body, err, arguments)
		}
	})
}

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"status", "stauts", 2}, {"limit", "LIMIT", 0}, {"limits", "limit", 1}, {"abc", "xyz", 3}} {
		if got := distance(tt.a, tt.b); got != tt.want {
			t.Errorf("distance(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

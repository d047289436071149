package jsonwalk_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/buzon-mail/buzon/shared/jsonwalk"
)

func TestWhole(t *testing.T) {
	tests := []struct {
		name, text string
		want       error
	}{
		{"object", `{"a":[1,-0,0.5,1e9,1E-2,true,false,null,"x\n\u00e9\\\/"],"b":{}}`, nil},
		{"space around", " \t\r\n[ ] \n", nil},
		{"depth 64", strings.Repeat("[", 64) + strings.Repeat("]", 64), nil},
		{"depth 65", strings.Repeat("[", 65) + strings.Repeat("]", 65), jsonwalk.ErrDepth},
		{"depth of a million", strings.Repeat("[", 1_000_000), jsonwalk.ErrDepth},
		{"depth of objects", strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65), jsonwalk.ErrDepth},
		{"empty", "", jsonwalk.ErrSyntax},
		{"two values", "1 2", jsonwalk.ErrSyntax},
		{"leading zero", "01", jsonwalk.ErrSyntax},
		{"plus", "+1", jsonwalk.ErrSyntax},
		{"no digits", "-", jsonwalk.ErrSyntax},
		{"no fraction", "1.", jsonwalk.ErrSyntax},
		{"no exponent", "1e", jsonwalk.ErrSyntax},
		{"literal", "tru", jsonwalk.ErrSyntax},
		{"capital literal", "True", jsonwalk.ErrSyntax},
		{"trailing comma", "[1,]", jsonwalk.ErrSyntax},
		{"leading comma", "[,1]", jsonwalk.ErrSyntax},
		{"comma in an object", `{"a":1,}`, jsonwalk.ErrSyntax},
		{"no colon", `{"a" 1}`, jsonwalk.ErrSyntax},
		{"no value", `{"a":}`, jsonwalk.ErrSyntax},
		{"bare name", `{a:1}`, jsonwalk.ErrSyntax},
		{"single quotes", `{'a':1}`, jsonwalk.ErrSyntax},
		{"wrong bracket", `[1}`, jsonwalk.ErrSyntax},
		{"open object", `{"a":1`, jsonwalk.ErrSyntax},
		{"open string", `"abc`, jsonwalk.ErrSyntax},
		{"control character", "\"a\nb\"", jsonwalk.ErrSyntax},
		{"unknown escape", `"\x"`, jsonwalk.ErrSyntax},
		{"short escape", `"\u12"`, jsonwalk.ErrSyntax},
		{"escape at the end", `"\`, jsonwalk.ErrSyntax},
		{"byte order mark", "\ufeff{}", jsonwalk.ErrSyntax},
		{"not UTF-8", "\"\xff\"", jsonwalk.ErrUTF8},
		{"surrogate in UTF-8", "\"\xed\xa0\x80\"", jsonwalk.ErrUTF8},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := jsonwalk.Whole([]byte(tt.text)); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

func TestWalk(t *testing.T) {
	o := jsonwalk.Members([]byte(` { "a" : [1, {"b":2}] , "c":"d" } `))
	var got []string
	for o.Next() {
		got = append(got, string(o.Name)+"="+string(o.Value))
	}
	if text := strings.Join(got, ";"); text != `"a"=[1, {"b":2}];"c"="d"` || o.End() != nil {
		t.Errorf("got %s, %v", text, o.End())
	}
	a := jsonwalk.Items([]byte(`[1,"a",[]]`))
	n := 0
	for a.Next() {
		n++
	}
	if n != 3 || a.Err() != nil {
		t.Errorf("%d items, %v", n, a.Err())
	}
	for _, text := range []string{"", "1", "[]", "{", `{"a"}`, `{} x`, `{"a":1 "b":2}`} {
		o := jsonwalk.Members([]byte(text))
		for o.Next() {
		}
		if o.End() == nil {
			t.Errorf("%q: want an error", text)
		}
		if o.Next() {
			t.Errorf("%q: a member after the fault", text)
		}
	}
}

func TestNames(t *testing.T) {
	var names jsonwalk.Names
	for i := range 100 {
		if !names.Add(fmt.Sprint(i)) {
			t.Fatalf("%d is not new", i)
		}
	}
	for i := range 100 {
		if names.Add(fmt.Sprint(i)) {
			t.Fatalf("%d is new", i)
		}
	}
}

func FuzzWhole(f *testing.F) {
	for _, seed := range []string{`{"a":[1,-0.5e+3,"\ud83d\ude00\n",null]}`, `[]`, `"\ud800"`, `{"a":1,"a":2}`, "\"\xff\"", `[[[[`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := jsonwalk.Whole(data)
		switch {
		case err == nil && !json.Valid(data):
			t.Fatalf("accepted %q, encoding/json does not", data)
		case errors.Is(err, jsonwalk.ErrSyntax) && json.Valid(data) && utf8.Valid(data):
			t.Fatalf("refused %q, encoding/json does not", data)
		}
		got, err2 := jsonwalk.Decode(data)
		var want any
		if bad := json.Unmarshal(data, &want); err == nil && ((bad == nil) != (err2 == nil) || (bad == nil && !reflect.DeepEqual(got, want))) {
			t.Fatalf("%q: got %v (%v), want %v (%v)", data, got, err2, want, bad)
		}
		if err == nil && len(data) > 0 && data[0] == '"' && data[len(data)-1] == '"' {
			var want string
			if json.Unmarshal(data, &want) == nil && jsonwalk.Text(data) != want {
				t.Fatalf("text of %q is %q, want %q", data, jsonwalk.Text(data), want)
			}
		}
	})
}

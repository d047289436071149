package optool

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

type markedLeaf struct {
	Text string `json:"text"`
	// What a third party wrote may be of any shape: it is not looked into.
	Any any `json:"any"`
}

type markedRow struct {
	ID        string     `json:"id"`
	At        time.Time  `json:"at"`
	Untrusted markedLeaf `json:"untrusted"`
}

type markedShared struct {
	Untrusted string `json:"untrusted"`
}

type markedText struct{ S string }

func (m markedText) MarshalText() ([]byte, error)      { return []byte(m.S), nil }
func (m markedText) Schema(huma.Registry) *huma.Schema { return &huma.Schema{Type: huma.TypeString} }

type markedSelf struct{ S string }

func (m markedSelf) MarshalJSON() ([]byte, error) { return []byte(`{"untrusted":1}`), nil }

type markedBody struct {
	Data  []markedRow   `json:"data"`
	One   *markedRow    `json:"one"`
	Grid  [][]markedRow `json:"grid"`
	Fixed [2]markedRow  `json:"fixed"`
	markedShared
	Word markedText `json:"word"`
	Raw  []byte     `json:"raw"`
	Skip any        `json:"-"`
}

func markedBodies() []markedBody {
	row := markedRow{ID: "r", Untrusted: markedLeaf{Text: `","untrusted":{`, Any: map[string]any{"untrusted": 1}}}
	return []markedBody{
		{},
		{Data: []markedRow{}},
		{Data: []markedRow{row, row, row}, One: &row, Grid: [][]markedRow{nil, {row}, {}, {row, row}}},
		{Data: make([]markedRow, 100)},
		{Data: make([]markedRow, 5000)}, // more pointers than a result holds
	}
}

// The pointers that come from a type must be those that stand in the text.
func TestMarksAreThoseOfTheText(t *testing.T) {
	m, ok := marksOf(reflect.TypeFor[markedBody]())
	if !ok || m == nil {
		t.Fatal("the type tells where its members are, and that was not seen")
	}
	for i, body := range markedBodies() {
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		want := string(appendUntrusted([]byte("kept"), "key", text))
		if got := string(m.append([]byte("kept"), "key", reflect.ValueOf(body))); got != want {
			t.Errorf("body %d:\ngot  %.300s\nwant %.300s", i, got, want)
		}
		if !strings.Contains(want, `/untrusted"`) && i < 4 {
			t.Errorf("body %d: %s: the case shows nothing", i, want)
		}
	}
}

type markedLoop struct {
	Next *markedLoop `json:"next"`
}

func TestTypesThatDoNotTell(t *testing.T) {
	for name, v := range map[string]any{
		"map":              struct{ M map[string]markedRow }{},
		"map of plain":     struct{ M map[string]int }{}, // its keys are data: one may be "untrusted"
		"interface":        struct{ V any }{},
		"raw":              struct{ V json.RawMessage }{},
		"writes itself":    struct{ V markedSelf }{},
		"behind a pointer": struct{ V *markedSelf }{},
		"in a list":        struct{ V []markedSelf }{},
		"may be left out": struct {
			V []markedRow `json:"v,omitempty"`
		}{},
		"left out itself": struct {
			V *markedLeaf `json:"untrusted,omitempty"`
		}{},
		"in itself": markedLoop{},
		"name twice": struct {
			markedShared
			Untrusted string `json:"untrusted"`
		}{},
		"name with a slash": struct {
			A markedRow `json:"a/b"`
		}{},
		"name with a tilde": struct {
			A markedRow `json:"a~b"`
		}{},
		"embedded pointer": struct{ *markedShared }{},
		"embedded and named": struct {
			markedShared `json:"x"`
		}{},
	} {
		if m, ok := marksOf(reflect.TypeOf(v)); ok {
			t.Errorf("%s: taken for %+v", name, m)
		}
	}
}

func TestTypesWithNothingUntrusted(t *testing.T) {
	for name, v := range map[string]any{
		"plain": struct {
			A int
			B []string
			C *bool `json:"c,omitempty"`
			D time.Time
			E markedText
		}{},
		"empty": struct{}{},
	} {
		if m, ok := marksOf(reflect.TypeOf(v)); !ok || m != nil {
			t.Errorf("%s: %v %v", name, m, ok)
		}
	}
}

func TestPointFallsBackToTheText(t *testing.T) {
	p := &plan{}
	p.readOutput(reflect.TypeFor[struct{ Body markedBody }]())
	if p.reply == nil {
		t.Fatal("no marks")
	}
	text := []byte(`{"data":[{"untrusted":1}]}`)
	want := string(appendUntrusted(nil, "k", text))
	var none *markedBody
	for name, value := range map[string]any{"none": nil, "another type": &markedRow{}, "no pointer": markedBody{}, "nil": none} {
		if got := string(p.point(nil, "k", value, text)); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

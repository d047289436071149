package rest_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/rest"
)

func TestPatch(t *testing.T) {
	for text, want := range map[string]rest.Patch[int]{
		`{}`: {}, `{"n":null}`: {Present: true, Null: true}, `{"n":0}`: {Present: true}, `{"n":5}`: {Present: true, Value: 5},
	} {
		var v struct {
			N rest.Patch[int] `json:"n,omitempty"`
		}
		if err := json.Unmarshal([]byte(text), &v); err != nil || v.N != want {
			t.Errorf("%s: %+v, %v; want %+v", text, v.N, err, want)
		}
	}
	var p rest.Patch[int]
	if err := json.Unmarshal([]byte(`"5"`), &p); err == nil {
		t.Error("a text was taken for a number")
	}
}

func TestOptional(t *testing.T) {
	var o rest.Optional[bool]
	if o.OnParamSet(false, nil); o.Pointer() != nil {
		t.Error("absent, but not nil")
	}
	o.Receiver().SetBool(false)
	o.OnParamSet(true, false)
	if p := o.Pointer(); p == nil || *p {
		t.Errorf("false is %v", p)
	}
}

func TestTime(t *testing.T) {
	for want, at := range map[string]time.Time{
		`null`:                       {},
		`"2026-07-28T10:00:00.000Z"`: time.Date(2026, 7, 28, 12, 0, 0, 0, time.FixedZone("", 7200)),
		`"2026-07-28T10:00:00.123Z"`: time.Date(2026, 7, 28, 10, 0, 0, 123999999, time.UTC),
	} {
		if got, err := json.Marshal(rest.Time{Time: at}); err != nil || string(got) != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		at := time.Unix(random.Int64N(253_402_300_800+62_167_219_200)-62_167_219_200, random.Int64N(1e9)) // years 0 to 9999
		want := at.UTC().Format(`"2006-01-02T15:04:05.000Z"`)
		if got, err := (rest.Time{Time: at}).MarshalJSON(); err != nil || string(got) != want {
			t.Fatalf("%s, %v; want %s", got, err, want)
		}
	}
	if _, err := json.Marshal(rest.Time{Time: time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC)}); err == nil {
		t.Error("a year of five digits was written")
	}
}

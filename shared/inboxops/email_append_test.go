package inboxops

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"
	"testing/quick"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/rest"
)

// encoded is what the route would send without an Appender.
func encoded(t *testing.T, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func same(t *testing.T, b *EmailsBody) {
	t.Helper()
	want := encoded(t, b)
	got, err := b.AppendJSON([]byte("before"))
	if err != nil || string(got) != "before"+string(want) {
		t.Fatalf("%v\ngot  %s\nwant %s", err, got, want)
	}
	var text string
	escaped, ok := b.AppendEscaped([]byte(`"before`))
	if !ok {
		if string(escaped) != `"before` || len(b.Data) > 0 && b.Data[0] != nil && b.Data[0].escaped != nil {
			t.Fatalf("it could not write %s, and left %s", want, escaped)
		}
		return
	}
	if err := json.Unmarshal(append(escaped, '"'), &text); err != nil || text != "before"+string(want) {
		t.Fatalf("%v\ngot  %s\nwant %s", err, text, want)
	}
	if n := len(escaped) - len(`"before`); n != len(want)+bytes.Count(want, []byte{'"'})+bytes.Count(want, []byte{'\\'}) {
		t.Fatalf("%d bytes escaped of %s: more than must be", n, want)
	}
}

// fill sets every field of v, so that one that AppendJSON does not know is missed.
func fill(t *testing.T, v reflect.Value, r *rand.Rand, text string) {
	t.Helper()
	switch v.Kind() {
	case reflect.Struct:
		at, ok := v.Addr().Interface().(*time.Time)
		if own, is := v.Addr().Interface().(*rest.Time); is {
			at, ok = &own.Time, true
		}
		if ok {
			if r.IntN(4) > 0 {
				*at = time.UnixMilli(r.Int64N(1 << 47)).Add(time.Duration(r.IntN(1e6))).In(time.FixedZone("", r.IntN(7200)-3600))
			}
			return
		}
		for i := range v.NumField() {
			if !v.Type().Field(i).IsExported() {
				continue
			}
			fill(t, v.Field(i), r, text)
		}
	case reflect.Slice:
		if r.IntN(5) > 0 {
			v.Set(reflect.MakeSlice(v.Type(), r.IntN(4), 4))
		}
		for i := range v.Len() {
			fill(t, v.Index(i), r, text)
		}
	case reflect.Pointer:
		if r.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem(), r, text)
		}
	case reflect.String:
		if n := len(text); n > 0 {
			from := r.IntN(n)
			v.SetString(text[from : from+r.IntN(n-from+1)])
		}
	case reflect.Bool:
		v.SetBool(r.IntN(2) > 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(r.Uint64()) >> r.IntN(64))
	case reflect.Uint64:
		v.SetUint(r.Uint64() >> r.IntN(64))
	default:
		t.Fatalf("nothing fills a %s", v.Type())
	}
}

const awkward = "Pedido número 4: \"sillas\" \\ <b>&amp;\u2028\u2029\x00\x1f\x7f\b\f\n\r\t\xff\xc3 \U0001f4ec fin de la línea, y más texto sin nada"

func FuzzEmailsJSON(f *testing.F) {
	for seed := range uint64(64) {
		f.Add(awkward, seed)
	}
	f.Add("", uint64(1))
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		var b EmailsBody
		fill(t, reflect.ValueOf(&b).Elem(), rand.New(rand.NewPCG(seed, 1)), text)
		same(t, &b)
		list := summaries(t, text, seed)
		first := EmailsBody{Data: rowsOf(list), Meta: b.Meta}
		want := encoded(t, &first)
		same(t, &first)
		rowsOf(list)
		rows := EmailsBody{Data: rowsOf(list), Meta: b.Meta}
		same(t, &rows)
		for _, s := range rows.Data {
			if s.text == nil || s.escaped == nil {
				t.Fatal("a row that is shown a third time does not keep its text")
			}
			s.text, s.escaped = nil, nil
		}
		if again := encoded(t, &rows); !bytes.Equal(again, want) {
			t.Fatalf("kept   %s\nanew   %s", want, again)
		}
		same(t, &rows)
	})
}

// summaries are rows with such texts.
func summaries(t *testing.T, text string, seed uint64) (rows []*inbox.Row) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 2))
	for range 3 {
		var row inbox.Row
		fill(t, reflect.ValueOf(&row.Summary).Elem(), r, text)
		rows = append(rows, &row)
	}
	return rows
}

func TestEmailsJSONOfNothing(t *testing.T) {
	same(t, &EmailsBody{})
	same(t, &EmailsBody{Data: []*EmailSummary{}})
	same(t, &EmailsBody{Data: []*EmailSummary{{}, nil}, Meta: ListMeta{Window: &WindowMeta{}, Masked: true}})
}

func TestEmailsJSONRefusesAYear(t *testing.T) {
	late := rest.Time{Time: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}
	for name, b := range map[string]*EmailsBody{
		"received": {Data: []*EmailSummary{{EmailFacts: EmailFacts{ReceivedAt: late}}}},
		"purge":    {Data: []*EmailSummary{{EmailFacts: EmailFacts{PurgeAt: late}}}},
		"oldest":   {Meta: ListMeta{Window: &WindowMeta{Oldest: late}}},
	} {
		if _, err := b.AppendJSON(nil); err == nil {
			t.Errorf("%s: the year 10000 was written", name)
		}
	}
}

func TestAppendStringIsEncodingJSON(t *testing.T) {
	check := func(s string) bool {
		return string(rest.AppendString(nil, s)) == string(encoded(t, s))
	}
	for i := range len(awkward) {
		if !check(awkward[i:]) || !check(awkward[:i]) {
			t.Fatalf("%q", awkward[i:])
		}
	}
	if err := quick.Check(func(b []byte) bool { return check(string(b)) }, nil); err != nil {
		t.Error(err)
	}
}

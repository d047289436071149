package mcp

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestDocument: at every offset in its eight bytes, each kind of byte is judged as it stands.
func TestDocument(t *testing.T) {
	parts := []string{"", "\"", "\\", "\n", "\r", "\t", "\x00", "\x1f", " ", "!", "#", "[", "]", "\x7f", "ñ", "\u2028", "😀", "\uFFFD", "\x80", "\xc3", "\xff", "\xed\xa0\x80", "\xc0\xaf", "\xf0\x9f\x98", "\"\"\"\"\"\"\"\"\"", "éé\néé"}
	for _, part := range parts {
		for before := range 18 {
			for _, after := range []int{0, 1, 7, 8, 9, 300} {
				checkDocument(t, []byte(strings.Repeat("a", before)+part+strings.Repeat("b", after)))
			}
		}
		checkDocument(t, []byte(strings.Repeat("a", 250)+strings.Repeat(part, 300)))
	}
}

// FuzzDocument holds the one pass against encoding/json and unicode/utf8.
func FuzzDocument(f *testing.F) {
	f.Add([]byte(`{"data":{"subject":"Factura nº 12 \"pagada\"","ok":true}}`))
	f.Add([]byte("[1,\n\t2]\xff"))
	f.Fuzz(checkDocument)
}

func checkDocument(t *testing.T, src []byte) {
	t.Helper()
	kept := []byte("kept")
	out, breaks, valid := appendDocument(kept[:4:4], src)
	if want := utf8.Valid(src); valid != want {
		t.Fatalf("%q: valid %v, want %v", src, valid, want)
	}
	if !valid {
		return
	}
	if want := bytes.ContainsAny(src, "\r\n"); breaks != want {
		t.Fatalf("%q: breaks %v, want %v", src, breaks, want)
	}
	inner, found := bytes.CutPrefix(out, kept)
	if want := appendEscaped(nil, string(src)); !found || !bytes.Equal(inner, want) {
		t.Fatalf("%q: %q, want %q", src, inner, want)
	}
	var back string
	if err := json.Unmarshal(append(append([]byte{'"'}, inner...), '"'), &back); err != nil || back != string(src) {
		t.Fatalf("%q came back as %q, %v", src, back, err)
	}
}

func BenchmarkDocument(b *testing.B) {
	for name, src := range map[string]string{
		"short": `{"data":{"ok":true}}`,
		"reply": `{"data":[` + strings.Repeat(`{"id":"mail_01KDT00000000000000000BENCH","status":"processed","subject":"Invoice 2026-118","read":false},`, 20) + `{}]}`,
		"prose": `{"text":"` + strings.Repeat(`Adjuntamos la factura del mes de octubre, según lo acordado; la transferencia vence el día 15. `, 25) + `"}`,
	} {
		raw, out := []byte(src), []byte(nil)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				out, _, _ = appendDocument(out[:0], raw)
			}
		})
	}
}

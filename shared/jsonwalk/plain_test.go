package jsonwalk_test

import (
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/jsonwalk"
)

func TestPlain(t *testing.T) {
	for c := range 256 {
		for at := range 20 {
			for length := at + 1; length < 24; length++ {
				text := []byte(strings.Repeat("~ x", 8)[:length])
				text[at] = byte(c)
				want := at
				if c >= ' ' && c != '"' && c != '\\' && c < 0x80 {
					want = length
				}
				for from := range at + 1 {
					if got := jsonwalk.Plain(string(text), from); got != want {
						t.Fatalf("%q from %d: %d, want %d", text, from, got, want)
					}
				}
				if got := jsonwalk.Plain(string(text), at+1); got != length {
					t.Fatalf("%q behind it: %d", text, got)
				}
			}
		}
	}
}

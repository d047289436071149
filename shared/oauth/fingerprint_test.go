package oauth

import (
	"strings"
	"sync"
	"testing"
)

// TestFingerprintIsOfEveryByte: a text that differs anywhere from one that was verified must not be taken for it.
func TestFingerprintIsOfEveryByte(t *testing.T) {
	f := newFingerprints()
	good := "Bearer " + strings.Repeat("aB3_", 300) + "."
	want, ok := f.of(good)
	if again, _ := f.of(good); !ok || again != want || want == (Fingerprint{}) {
		t.Fatalf("twice the same text: %x and %x, %t", want, again, ok)
	}
	others := map[string]string{
		"empty": "", "cut": good[:len(good)-1], "longer by NUL": good + "\x00", "led by NUL": "\x00" + good, "of zeroes": strings.Repeat("\x00", len(good)),
		"blocks swapped": good[16:32] + good[:16] + good[32:], "twice": good + good, "half": good[:len(good)/2],
	}
	for i := range len(good) {
		for _, bit := range []byte{1, 32, 128} {
			b := []byte(good)
			b[i] ^= bit
			others[string(b)] = string(b)
		}
	}
	seen := map[Fingerprint]string{want: "the good one"}
	for name, text := range others {
		got, ok := f.of(text)
		if before, met := seen[got]; met || !ok {
			t.Errorf("%.40q: the fingerprint of %.40q, %t", name, before, ok)
		}
		seen[got] = name
	}
	if got, _ := newFingerprints().of(good); got == want {
		t.Error("two processes have the same key")
	}
}

func TestFingerprintOfTooLongAText(t *testing.T) {
	f := newFingerprints()
	most := strings.Repeat("a", len("Bearer ")+MaxTokenBytes)
	if _, ok := f.of(most); !ok {
		t.Errorf("none of %d bytes", len(most))
	}
	if got, ok := f.of(most + "a"); ok || got != (Fingerprint{}) {
		t.Errorf("one of %d bytes: %x", len(most)+1, got)
	}
}

// TestFingerprintKeepsNoText: the room that is used again holds nothing of the last credential, and costs nothing.
func TestFingerprintKeepsNoText(t *testing.T) {
	f := newFingerprints()
	p := &fingerprinting{}
	f.points.New = func() any { return p }
	text := "Bearer " + strings.Repeat("x", 2000)
	f.of(text)
	if p.text != (fingerprinting{}).text {
		t.Error("the text is still there")
	}
	if n := testing.AllocsPerRun(100, func() { f.of(text) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestFingerprintConcurrently(t *testing.T) {
	f := newFingerprints()
	texts := []string{"a", strings.Repeat("b", 1200), strings.Repeat("c", 4000), strings.Repeat("a", 16)}
	var want [4]Fingerprint
	for i, text := range texts {
		want[i], _ = f.of(text)
	}
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 200 {
				at := (g + i) % len(texts)
				if got, _ := f.of(texts[at]); got != want[at] {
					t.Errorf("text %d: %x, want %x", at, got, want[at])
				}
			}
		})
	}
	all.Wait()
}

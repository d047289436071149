package cue

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// allOfIt is All with every line of the text read.
func allOfIt(subject, text string) []Code {
	if len(text) > maxText {
		text = text[:maxText]
	}
	subject, text = asciiDigits(subject), asciiDigits(text)
	tokens := tokenize(nil, subject, 0)
	inSubject := len(tokens)
	var about uint16
	for i := range tokens {
		about |= tokens[i].classed()
	}
	return find(tokenize(tokens, text, 1), inSubject, about)
}

func compareNear(t *testing.T, subject, text string) {
	t.Helper()
	if got, want := All(subject, text), allOfIt(subject, text); !slices.Equal(got, want) {
		t.Fatalf("subject %q, text %q:\n%+v, with all lines read\n%+v", subject, text, got, want)
	}
}

// Leaving lines unread that no candidate looks at must not change what is found.
func TestLinesThatDoNotCount(t *testing.T) {
	for _, c := range []struct{ name, subject, text string }{
		{"a colon far above", "", "Your code:\n\n\n\n\n\n482913\n"},
		{"a colon far above, punctuation between", "", "no words\nYour code:\n---\n\n...\n\n:\n482913\n"},
		{"a colon in the subject, blank lines", "Your code:", "\n\n\n\n\n482913"},
		{"words three lines above", "", "verification code\na\nb\n482913"},
		{"words four lines above", "", "verification code\na\nb\nc\n482913"},
		{"words below", "", "482913\nis your code\ninvoice"},
		{"two lines below", "", "482913\n\nis your code"},
		{"two near each other", "", "code 482913\nx\n551200\norder\n"},
		{"groups over a line's end", "", "code\n123\n456\n"},
		{"no line break at the end", "code", "a\n\n482913"},
		{"a digit in the subject alone", "code 482913", "order\ninvoice\n"},
		{"a subject of lines", "code\n482913\norder", "pin\n\n551200"},
		{"a word that is too long above", "", strings.Repeat("x", 100) + "\n\n\n\n482913 code"},
		{"empty", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) { compareNear(t, c.subject, c.text) })
	}
}

func TestLinesThatDoNotCountAtRandom(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the texts must be the same in each run
	pieces := []string{
		"code", "code:", "is", "482913", "123", "456", "99", "order", "verification", "\n", "\n", "\n", "\n\n", "---", ":", "=", "fox",
		"G-123456", "7KQ2XB", "٤٨٢", "PIN", " ", "\t\n", strings.Repeat("y", 81), "the quick brown fox jumps over it\n",
	}
	text := func(n int) string {
		var b strings.Builder
		for range random.IntN(n) {
			b.WriteString(pieces[random.IntN(len(pieces))])
			if random.IntN(3) > 0 {
				b.WriteByte(' ')
			}
		}
		return b.String()
	}
	for range 20000 {
		compareNear(t, text(6), text(60))
	}
}

func FuzzLinesThatDoNotCount(f *testing.F) {
	f.Add("Your code:", "Hello\n\n\n\n482913\nfox\n\n\nis your code\n")
	f.Fuzz(compareNear)
}

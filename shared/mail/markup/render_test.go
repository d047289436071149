package markup

import (
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// paragraph holds the text as one node, or each word and each stretch of white space as its own: then no words go over together.
func paragraph(text string, whole bool) *html.Node {
	root, p := &html.Node{Type: html.ElementNode, Data: "body"}, &html.Node{Type: html.ElementNode, Data: "p"}
	root.AppendChild(p)
	for text != "" {
		n := len(text)
		if !whole {
			if n = blanks(text); n == 0 {
				n = wordEnd(text)
			}
		}
		p.AppendChild(&html.Node{Type: html.TextNode, Data: text[:n]})
		text = text[n:]
	}
	return root
}

func compareRuns(t *testing.T, text string, limit int) {
	t.Helper()
	for _, md := range []bool{false, true} {
		if got, want := render(paragraph(text, true), md, limit, 0), render(paragraph(text, false), md, limit, 0); got != want {
			t.Fatalf("markdown %v, limit %d, of %q:\n%q, word by word\n%q", md, limit, text, got, want)
		}
	}
}

// Words that are written together come out as they do one by one, also at the limit.
func TestRunsOfWords(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // the texts must be the same in each run
	pieces := []string{"fox", "a", "é", "漢字", "*", "_x_", "x_y", "[", "!", "1.", "#", "\u00a0", "\xc2", " ", " ", " ", "  ", "\n", "\t", "\f", "<&>", "\v"}
	for range 20000 {
		var b strings.Builder
		for range random.IntN(30) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		compareRuns(t, b.String(), 1+random.IntN(60))
	}
}

func FuzzRunsOfWords(f *testing.F) {
	f.Add("The quick *brown* fox jumps over\nthe  lazy\u00a0dog.", 1000)
	f.Fuzz(func(t *testing.T, text string, limit int) { compareRuns(t, text, max(limit, 1)) })
}

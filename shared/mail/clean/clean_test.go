package clean

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for _, c := range []struct {
		name, in, want string
		counts         Counts
	}{
		{"plain", "a\tb\nc", "a\tb\nc", Counts{}},
		{"line ends", "a\r\nb\rc\u2028d\u0085e", "a\nb\nc\nd\ne", Counts{}},
		{"controls", "a\x00b\x1bc\x7fd\u009be", "abcde", Counts{Control: 4}},
		{"bidi", "a\u202eb\u2066c\u200fd", "abcd", Counts{Bidi: 3}},
		{"tags", "a\U000e0041\U000e0042", "a", Counts{Tag: 2}},
		{"zero width", "p\u200bass\u2060w\ufeffo\u00adrd", "password", Counts{ZeroWidth: 4}},
		{"filler", "a\u3164b", "ab", Counts{ZeroWidth: 1}},
		{"joiner between latin letters", "a\u200db\u200cc", "abc", Counts{ZeroWidth: 2}},
		{"joiner in an emoji", "👩\u200d💻", "👩\u200d💻", Counts{}},
		{"joiner and selector", "❤\ufe0f\u200d🔥", "❤\ufe0f\u200d🔥", Counts{}},
		{"non-joiner in persian", "می\u200cخواهم", "می\u200cخواهم", Counts{}},
		{"joiner in devanagari", "क्\u200dष", "क्\u200dष", Counts{}},
		{"run of joiners", "می\u200c\u200c\u200cخ", "می\u200cخ", Counts{ZeroWidth: 2}},
		{"keycap", "1\ufe0f", "1\ufe0f", Counts{}},
		{"selector payload", "a\ufe01\ufe02\U000e0101", "a", Counts{Variation: 3}},
		{"selector run on an emoji", "😀\ufe0f\ufe0f\ufe0f", "😀\ufe0f", Counts{Variation: 2}},
		{"ideographic variant", "葛\U000e0100", "葛\U000e0100", Counts{}},
		{"noncharacter", "a\ufffeb", "ab", Counts{Control: 1}},
		{"invalid bytes", "a\xffb", "a\ufffdb", Counts{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got Counts
			if s := Text(c.in, &got); s != c.want || got != c.counts {
				t.Errorf("Text(%q) = %q, %+v; want %q, %+v", c.in, s, got, c.want, c.counts)
			}
		})
	}
}

func TestLineAndCut(t *testing.T) {
	var n Counts
	if got := Line("  a \r\n\tb\u2028c  ", &n); got != "a b c" {
		t.Errorf("Line = %q", got)
	}
	if got := Cut("aé", 2); got != "a" {
		t.Errorf("Cut = %q", got)
	}
	if got := CutRunes("éèà", 2); got != "éè" {
		t.Errorf("CutRunes = %q", got)
	}
	if got := Visible("a\u202eb\n"); got != `a\u{202E}b\u{A}` {
		t.Errorf("Visible = %q", got)
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"", "a\x00", "👩\u200d💻", "می\u200cخ", "\U000e0041", "\xff\xfe", "\r\n\r"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var n Counts
		out := Text(s, &n)
		if !utf8.ValidString(out) || strings.IndexFunc(out, Forbidden) >= 0 {
			t.Errorf("Text(%q) = %q", s, out)
		}
		var again Counts
		if twice := Text(out, &again); twice != out || again != (Counts{}) {
			t.Errorf("cleaned twice: %q, %q, %+v", out, twice, again)
		}
		if v := Visible(out); strings.IndexFunc(v, Forbidden) >= 0 {
			t.Errorf("Visible(%q) = %q", out, v)
		}
	})
}

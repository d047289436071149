package inbox

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// readyPattern is a pattern with a text that every match of it contains. Most rules do not match most mail, and to look for a text
// is a hundred times cheaper than a pattern that ignores case.
type readyPattern struct {
	*regexp.Regexp
	needle string // ASCII; empty: none is known
	fold   bool   // needle is in lower case, and the text's case does not count
}

func newReadyPattern(pattern string) (readyPattern, int, error) {
	compiled, work, err := compilePattern("value", pattern)
	if err != nil {
		return readyPattern{}, 0, err
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return readyPattern{}, 0, err
	}
	needle, fold := needleOf(parsed)
	return readyPattern{compiled, needle, fold}, work, nil
}

// needleOf is the longest literal that stands in each match, as far as that is easy to see.
func needleOf(re *syntax.Regexp) (needle string, fold bool) {
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			if r >= utf8.RuneSelf { // the replacement character matches bytes that are no UTF-8
				return "", false
			}
		}
		if needle = string(re.Rune); re.Flags&syntax.FoldCase != 0 {
			return strings.ToLower(needle), true
		}
		return needle, false
	case syntax.OpCapture, syntax.OpPlus:
		return needleOf(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return needleOf(re.Sub[0])
		}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if n, f := needleOf(sub); len(n) > len(needle) {
				needle, fold = n, f
			}
		}
		return needle, fold
	}
	return "", false
}

// matches reports whether a text matches. lowered is the text in lower case, asked for only where it is of use.
func (p readyPattern) matches(text string, lowered func(string) string) bool {
	if p.needle == "" {
		return p.MatchString(text)
	}
	in := text
	if p.fold {
		in = lowered(text)
	}
	// The long s is the one letter outside of ASCII that equals one of ASCII and that ToLower leaves alone.
	if !strings.Contains(in, p.needle) && !(p.fold && strings.Contains(in, "ſ")) {
		return false
	}
	return p.MatchString(text)
}

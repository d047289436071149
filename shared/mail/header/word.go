package header

import (
	"strings"

	"github.com/buzon-mail/buzon/shared/mail/charset"
	"github.com/buzon-mail/buzon/shared/mail/transfer"
)

// Words decodes the encoded words of s (RFC 2047) and returns how many did not decode. Neighbouring words of one charset are
// joined as bytes before they are decoded: many senders split a character over two words, against section 5. Each byte of s is
// looked at a bounded number of times.
func Words(s string) (string, int) {
	if !strings.Contains(s, "=?") {
		return s, 0
	}
	w := words{s: s, end: -1}
	w.out.Grow(len(s))
	for i := 0; i < len(s); {
		word, next, ok := w.word(i)
		if ok {
			w.push(word)
			i = w.gap(next)
			continue
		}
		w.flush()
		// Copy up to where the next word may start.
		step := strings.Index(s[i+1:], "=?")
		if step < 0 {
			step = len(s) - i - 1
		}
		w.out.WriteString(s[i : i+1+step])
		i += 1 + step
	}
	w.flush()
	return w.out.String(), w.bad
}

type word struct {
	charset string
	data    []byte
}

type words struct {
	s    string
	out  strings.Builder
	end  int // offset of a "?=" that is known to be the first behind every earlier search; -1: not looked for
	bad  int
	held []byte
	cs   string
	any  bool
}

// word reads the encoded word at i.
func (w *words) word(i int) (word, int, bool) {
	s := w.s
	if !strings.HasPrefix(s[i:], "=?") {
		return word{}, 0, false
	}
	mark := strings.IndexByte(s[i+2:min(len(s), i+66)], '?')
	if mark <= 0 {
		return word{}, 0, false
	}
	cs := s[i+2 : i+2+mark]
	text := i + 2 + mark + 3
	if text > len(s) || s[text-1] != '?' || strings.ContainsAny(cs, " \t=\"") {
		return word{}, 0, false
	}
	if w.end < text {
		found := strings.Index(s[text:], "?=")
		if found < 0 {
			w.end = len(s)
		} else {
			w.end = text + found
		}
	}
	if w.end >= len(s) {
		return word{}, 0, false
	}
	payload := s[text:w.end]
	if strings.Contains(payload, "=?") && strings.Contains(payload, " ") {
		return word{}, 0, false // the end belongs to a later word
	}
	next := w.end + 2
	out := word{charset: charset.Label(cs)}
	repairs := 0
	switch s[text-2] {
	case 'B', 'b':
		out.data, repairs = transfer.Decode([]byte(payload), transfer.Base64)
		if len(out.data) == 0 && payload != "" {
			w.bad++
			return word{}, 0, false
		}
	case 'Q', 'q':
		out.data, repairs = qWord(payload)
	default:
		w.bad++
		return word{}, 0, false
	}
	if repairs > 0 || !charset.Known(out.charset) {
		w.bad++
	}
	return out, next, true
}

// push adds a word to the group that is decoded together.
func (w *words) push(x word) {
	if w.any && w.cs != x.charset {
		w.flush()
	}
	w.cs, w.any = x.charset, true
	w.held = append(w.held, x.data...)
}

func (w *words) flush() {
	if !w.any {
		return
	}
	w.out.WriteString(charset.DecodeWord(w.held, w.cs).Text)
	w.held, w.any = w.held[:0], false
}

// gap skips the white space between two words, which is not part of the text (section 6.2), and stays where no word follows.
func (w *words) gap(i int) int {
	j := i
	for j < len(w.s) && (w.s[j] == ' ' || w.s[j] == '\t' || w.s[j] == '\n' || w.s[j] == '\r') {
		j++
	}
	if strings.HasPrefix(w.s[j:], "=?") {
		return j
	}
	return i
}

func qWord(s string) ([]byte, int) {
	out := make([]byte, 0, len(s))
	repairs := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '_':
			out = append(out, ' ')
		case c == '=' && i+2 < len(s) && unhex(s[i+1]) >= 0 && unhex(s[i+2]) >= 0:
			out = append(out, byte(unhex(s[i+1])<<4|unhex(s[i+2])))
			i += 2
		default:
			if c == '=' {
				repairs++
			}
			out = append(out, c)
		}
	}
	return out, repairs
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	default:
		return -1
	}
}

package mcp

import (
	"encoding/binary"
	"math/bits"
)

// maxDepth bounds the nesting of a message, so that a hostile body costs a scan and nothing more. RFC 8259 section 9 lets a
// parser set such a limit; what lies beyond it is not parsed and answered like malformed JSON.
const maxDepth = 64

// fault is the worst that a scan found. Greater is worse: what a message declares counts only when its JSON is sound.
type fault uint8

const (
	sound     fault = iota
	crowded         // more members than maxMembers in the frame, params or _meta
	duplicate       // a member twice in the frame, params or _meta
	notObject       // valid JSON, but a batch or a scalar
	tooDeep         // nested deeper than maxDepth
	malformed       // not JSON, not UTF-8, or text after the message
)

// scanner checks the whole grammar of RFC 8259 over a body without decoding any of it. The body must be valid UTF-8.
// It is written here because encoding/json allocates per value, and ignores case and duplicates, and because the depth limit of
// jsontext is fixed at 10,000. A fuzz target holds it against encoding/json.
type scanner struct {
	b     []byte
	i     int
	depth int // containers that are open around i
	fault fault
}

func (s *scanner) note(f fault) {
	if f > s.fault {
		s.fault = f
	}
}

// fail notes what ends the scan.
func (s *scanner) fail(f fault) bool {
	s.note(f)
	return false
}

// peek skips white space and returns the next byte, 0 at the end: NUL is valid nowhere outside a string.
func (s *scanner) peek() byte {
	b := s.b
	for i := s.i; i < len(b); i++ {
		switch b[i] {
		case ' ', '\t', '\n', '\r':
		default:
			s.i = i
			return b[i]
		}
	}
	s.i = len(b)
	return 0
}

// open enters a container whose bracket is at i.
func (s *scanner) open() bool {
	s.i++
	s.depth++
	if s.depth > maxDepth {
		return s.fail(tooDeep)
	}
	return true
}

func (s *scanner) close() {
	s.i++
	s.depth--
}

// key reads a member's name and its colon, and returns the raw name with its quotes.
func (s *scanner) key() ([]byte, bool) {
	if s.peek() != '"' {
		return nil, s.fail(malformed)
	}
	start := s.i
	if !s.text() {
		return nil, false
	}
	raw := s.b[start:s.i]
	if s.peek() != ':' {
		return nil, s.fail(malformed)
	}
	s.i++
	return raw, true
}

// value skips one value. Containers are kept in a bit each instead of on the stack: an unclosed nesting can't grow anything.
func (s *scanner) value() bool {
	var objects uint64 // bit d: the container at depth d is an object
	base := s.depth
	for {
		switch s.peek() {
		case '{':
			if !s.open() {
				return false
			}
			objects |= 1 << (s.depth - 1)
			if s.peek() == '}' {
				break
			}
			if _, ok := s.key(); !ok {
				return false
			}
			continue
		case '[':
			if !s.open() {
				return false
			}
			objects &^= 1 << (s.depth - 1)
			if s.peek() == ']' {
				break
			}
			continue
		default:
			if !s.scalar() {
				return false
			}
		}
		if done, ok := s.after(base, objects); done || !ok {
			return ok
		}
	}
}

// after closes what ends here and stands before the next value, or is done when the value that began at depth base is whole.
func (s *scanner) after(base int, objects uint64) (done, ok bool) {
	for s.depth > base {
		object := objects&(1<<(s.depth-1)) != 0
		switch c := s.peek(); {
		case c == '}' && object, c == ']' && !object:
			s.close()
		case c == ',':
			s.i++
			if object {
				_, ok = s.key()
				return false, ok
			}
			return false, true
		default:
			return false, s.fail(malformed)
		}
	}
	return true, true
}

func (s *scanner) scalar() bool {
	if s.i >= len(s.b) {
		return s.fail(malformed)
	}
	switch c := s.b[s.i]; {
	case c == '"':
		return s.text()
	case c == '-' || '0' <= c && c <= '9':
		return s.number()
	case c == 't':
		return s.literal("true")
	case c == 'f':
		return s.literal("false")
	case c == 'n':
		return s.literal("null")
	}
	return s.fail(malformed)
}

func (s *scanner) literal(word string) bool {
	if len(s.b)-s.i < len(word) || string(s.b[s.i:s.i+len(word)]) != word {
		return s.fail(malformed)
	}
	s.i += len(word)
	return true
}

// text skips the string whose quote is at i, eight bytes at a time where all of them stand for themselves.
func (s *scanner) text() bool {
	b := s.b
	for i := s.i + 1; i < len(b); i++ {
		if i+8 <= len(b) {
			slashed, other := special(binary.LittleEndian.Uint64(b[i:]))
			if slashed|other == 0 {
				i += 7
				continue
			}
			i += bits.TrailingZeros64(slashed|other) / 8
		}
		switch c := b[i]; {
		case c == '"':
			s.i = i + 1
			return true
		case c == '\\':
			n := escapeLen(b[i:])
			if n == 0 {
				return s.fail(malformed)
			}
			i += n - 1
		case c < ' ':
			return s.fail(malformed)
		}
	}
	return s.fail(malformed)
}

// escapeLen is the length of the escape at the start of b, 0 when it is none. Lone surrogates are grammar, as in RFC 8259.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) < 6 {
			return 0
		}
		for _, c := range b[2:6] {
			if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
				return 0
			}
		}
		return 6
	}
	return 0
}

func (s *scanner) number() bool {
	if s.b[s.i] == '-' {
		s.i++
	}
	switch {
	case s.i < len(s.b) && s.b[s.i] == '0':
		s.i++
	case !s.digits():
		return s.fail(malformed)
	}
	if s.i < len(s.b) && s.b[s.i] == '.' {
		s.i++
		if !s.digits() {
			return s.fail(malformed)
		}
	}
	if s.i < len(s.b) && (s.b[s.i] == 'e' || s.b[s.i] == 'E') {
		s.i++
		if s.i < len(s.b) && (s.b[s.i] == '+' || s.b[s.i] == '-') {
			s.i++
		}
		if !s.digits() {
			return s.fail(malformed)
		}
	}
	return true
}

// digits skips one or more digits.
func (s *scanner) digits() bool {
	start := s.i
	for s.i < len(s.b) && '0' <= s.b[s.i] && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > start
}

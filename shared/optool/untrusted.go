package optool

import (
	"bytes"
	"strconv"

	"github.com/buzon-mail/buzon/shared/jsonwalk"
)

// maxPointers bounds the pointers of one result, in bytes. Beyond it the whole reply is named instead.
const maxPointers = 64 << 10

const untrustedName = "untrusted"

// appendUntrusted appends the _meta member that points (RFC 6901) at every member of reply that is called untrusted.
// Nothing is looked for inside such a member: its pointer covers it, and what a third party wrote there must not be able
// to write pointers. Nothing is appended when there is none. A reply that can't be walked to its end, which a third party
// may bring about by nesting deeply, is named as a whole: a pointer too many is better than one too few.
func appendUntrusted(out []byte, key string, reply []byte) []byte {
	if !bytes.Contains(reply, []byte(untrustedName+`"`)) && !bytes.Contains(reply, []byte(`\u00`)) {
		return out // a name with escapes has at least one of \u00xx: all letters of untrusted are ASCII
	}
	s := scan{data: reply, start: len(out)}
	s.out = strconv.AppendQuote(out, key)
	s.out = append(s.out, ':', '[')
	s.first = len(s.out)
	_, err := s.value(jsonwalk.Space(reply, 0), 0)
	if err == nil && len(s.out) == s.first {
		return s.out[:s.start]
	}
	if err != nil || len(s.out)-s.first > maxPointers {
		s.out = append(s.out[:s.first], `""`...)
	}
	return append(s.out, ']')
}

// step is one reference token of the pointer to where the scan stands.
type step struct {
	name  []byte // the name's token, quotes included; nil in an array
	index int
}

type scan struct {
	data  []byte
	out   []byte
	start int
	first int
	steps [jsonwalk.MaxDepth]step
}

func (s *scan) value(at, depth int) (int, error) {
	if at < len(s.data) {
		switch s.data[at] {
		case '{', '[':
			return s.container(at, depth+1)
		case '"':
			return skipString(s.data, at)
		}
	}
	return jsonwalk.Value(s.data, at, depth)
}

// skip returns the index behind the object, array or string at data[at]. The route's encoder wrote it, so its grammar is
// not judged again: most of a reply is third-party text, and walking it strictly was a sixth of a list's cost. Only the
// depth is, for that a third party can choose.
func skip(data []byte, at, depth int) (int, error) {
	open := 0
	for at < len(data) {
		switch data[at] {
		case '"':
			var err error
			if at, err = skipString(data, at); err != nil {
				return at, err
			}
		case '{', '[':
			if open++; depth+open > jsonwalk.MaxDepth {
				return at, jsonwalk.ErrDepth
			}
			at++
		case '}', ']':
			open--
			at++
		default:
			at++
			continue
		}
		if open <= 0 {
			return at, nil
		}
	}
	return at, jsonwalk.ErrSyntax
}

// skipString returns the index behind the string at data[at]: the first quote behind an even number of backslashes.
func skipString(data []byte, at int) (int, error) {
	for at++; ; at++ {
		n := bytes.IndexByte(data[at:], '"')
		if n < 0 {
			return len(data), jsonwalk.ErrSyntax
		}
		at += n
		slashes := 0
		for data[at-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return at + 1, nil
		}
	}
}

func (s *scan) container(at, depth int) (int, error) {
	open := s.data[at]
	for n := 0; ; n++ {
		next, done, err := jsonwalk.Step(s.data, at, depth, open, n > 0)
		if err != nil || done {
			return next, err
		}
		at = next
		here := &s.steps[depth-1]
		here.name, here.index = nil, n
		if open == '{' {
			if at, err = s.name(next, here); err != nil {
				return at, err
			}
		}
		if open == '{' && isUntrusted(here.name) {
			s.point(depth)
			at, err = s.covered(at, depth)
		} else {
			at, err = s.value(at, depth)
		}
		if err != nil {
			return at, err
		}
	}
}

// covered passes over the value of an untrusted member.
func (s *scan) covered(at, depth int) (int, error) {
	if at < len(s.data) && (s.data[at] == '{' || s.data[at] == '[' || s.data[at] == '"') {
		return skip(s.data, at, depth)
	}
	return jsonwalk.Value(s.data, at, depth)
}

func (s *scan) name(at int, here *step) (int, error) {
	end, err := jsonwalk.String(s.data, at)
	if err != nil {
		return end, err
	}
	here.name = s.data[at:end]
	end = jsonwalk.Space(s.data, end)
	if end >= len(s.data) || s.data[end] != ':' {
		return end, jsonwalk.ErrSyntax
	}
	return jsonwalk.Space(s.data, end+1), nil
}

func isUntrusted(token []byte) bool {
	inner := token[1 : len(token)-1]
	if len(inner) == len(untrustedName) {
		return string(inner) == untrustedName
	}
	return bytes.IndexByte(inner, '\\') >= 0 && jsonwalk.Text(token) == untrustedName
}

// point writes the pointer to where the scan stands as a JSON string.
func (s *scan) point(depth int) {
	if len(s.out)-s.first > maxPointers {
		return
	}
	if len(s.out) > s.first {
		s.out = append(s.out, ',')
	}
	s.out = append(s.out, '"')
	for _, t := range s.steps[:depth] {
		s.out = append(s.out, '/')
		if t.name == nil {
			s.out = strconv.AppendInt(s.out, int64(t.index), 10)
			continue
		}
		s.out = appendToken(s.out, t.name)
	}
	s.out = append(s.out, '"')
}

// appendToken writes a name as a reference token inside a JSON string: ~ is ~0 and / is ~1 (RFC 6901 section 3), and the
// JSON escapes stay as they are, but for those that hide a tilde or a slash.
func appendToken(out, token []byte) []byte {
	inner := token[1 : len(token)-1]
	if bytes.IndexByte(inner, '\\') >= 0 {
		quoted, err := marshal(jsonwalk.Text(token))
		if err != nil {
			return out
		}
		inner = quoted[1 : len(quoted)-1]
	}
	for _, c := range inner {
		switch c {
		case '~':
			out = append(out, '~', '0')
		case '/':
			out = append(out, '~', '1')
		default:
			out = append(out, c)
		}
	}
	return out
}

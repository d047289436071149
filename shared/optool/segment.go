package optool

import (
	"bytes"
	"errors"
	"strconv"
)

// Segment is one rendered tool. The revisions differ in their members' set only, so a tool in a list is a shared head and
// one of the tails. Head begins with the comma that parts it from the tool before.
type Segment struct {
	Name  string
	Head  []byte         // ,{"name":...,"description":...,"inputSchema":{...}
	Tails [shapes][]byte // what closes it, for each shape
}

// shape is a form of the tool object; several revisions share one.
type shape uint8

const (
	shapeBare      shape = iota // 2024-11-05: name, description, inputSchema
	shapeAnnotated              // 2025-03-26: and annotations, which carry the title
	shapeFull                   // 2025-06-18 and later: and title, outputSchema
	shapes
)

const magic = "optool 1\n"

var errSegments = errors.New("optool: not a file of rendered tools: render them again (go generate ./...)")

// append writes a segment: a line with the name and the sizes, then the bytes.
func (s *Segment) append(out []byte) []byte {
	out = append(out, s.Name...)
	out = append(out, ' ')
	out = strconv.AppendInt(out, int64(len(s.Head)), 10)
	for _, tail := range s.Tails {
		out = append(out, ' ')
		out = strconv.AppendInt(out, int64(len(tail)), 10)
	}
	out = append(out, '\n')
	out = append(out, s.Head...)
	for _, tail := range s.Tails {
		out = append(out, tail...)
	}
	return append(out, '\n')
}

// ParseSegments slices what Render made. It is what a program does at its start, so it copies names only.
func ParseSegments(data []byte) ([]Segment, error) {
	rest, ok := bytes.CutPrefix(data, []byte(magic))
	if !ok {
		return nil, errSegments
	}
	out := make([]Segment, 0, 64)
	for len(rest) > 0 {
		line, after, ok := bytes.Cut(rest, []byte{'\n'})
		if !ok {
			return nil, errSegments
		}
		var s Segment
		if rest, ok = s.take(line, after); !ok {
			return nil, errSegments
		}
		out = append(out, s)
	}
	return out, nil
}

func (s *Segment) take(line, data []byte) (rest []byte, ok bool) {
	name, line, ok := bytes.Cut(line, []byte{' '})
	if !ok || len(name) == 0 {
		return nil, false
	}
	s.Name = string(name)
	for i := range 1 + len(s.Tails) {
		var size []byte
		size, line, _ = bytes.Cut(line, []byte{' '})
		n, err := strconv.ParseUint(string(size), 10, 31)
		if err != nil || int(n) > len(data) {
			return nil, false
		}
		piece := data[:n:n]
		data = data[n:]
		if i == 0 {
			s.Head = piece
		} else {
			s.Tails[i-1] = piece
		}
	}
	if len(s.Head) == 0 || s.Head[0] != ',' {
		return nil, false
	}
	return bytes.CutPrefix(data, []byte{'\n'})
}

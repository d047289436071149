// Package scan finds the structure of a mail: one pass over its lines with a stack of boundaries (RFC 2046 section 5.1), before
// any other parser sees a byte. Depth, parts, header sizes, boundary length and line length are bounded; what is over a limit is
// left unread and marked. Parts are slices of the input, so the tree costs no copy of the mail. It must not decode bodies.
package scan

import (
	"bytes"
	"context"
	"strings"

	"github.com/buzon-mail/buzon/shared/mail/header"
	"github.com/buzon-mail/buzon/shared/mail/transfer"
	"github.com/buzon-mail/buzon/shared/mail/warning"
)

// Limits bounds the scan. All must be positive.
type Limits struct {
	Depth         int // containers (multipart or message) around a part
	Parts         int // parts below the root
	Header        header.Limits
	BoundaryBytes int
	LineBytes     int
	TotalFields   int // fields of all parts together
}

// Part is one node: the mail itself, a part of a multipart, or an attached message.
type Part struct {
	Path        string // "" for the mail, then "1", "1.2"; a message adds a level: "2.1" is the mail attached as part 2
	Fields      []header.Field
	Body        []byte // between header and boundary, still encoded; a slice of the input
	Media       header.Media
	Disposition header.Media
	Encoding    transfer.Encoding
	Type        string // media type, lower case, never empty: an unreadable one is text/plain or application/octet-stream
	Children    []*Part
	Depth       int
	Unread      bool // a container that was not opened because of a limit
	LongLine    bool // a line of the body is over the limit
	start       int
	boundary    string
	digest      bool // a part of a multipart/digest, whose default type is message/rfc822 (RFC 2046 section 5.1.5)
}

// Tree is the result.
type Tree struct {
	Root  *Part
	Parts int // parts below the root
	Steps int // lines looked at plus boundaries compared: the measure of work, bounded by a constant times the lines
}

// Field returns the first field of that name, nil when there is none.
func (p *Part) Field(name string) []byte {
	for i := range p.Fields {
		if p.Fields[i].Is(name) {
			return p.Fields[i].Value
		}
	}
	return nil
}

// Multipart reports whether the part is a multipart whose parts were found.
func (p *Part) Multipart() bool {
	return strings.HasPrefix(p.Type, "multipart/") && len(p.Children) > 0
}

// Message reports whether the part is an attached message that was opened.
func (p *Part) Message() bool { return IsMessage(p.Type) && len(p.Children) == 1 }

// IsMessage reports whether a media type holds a whole mail.
func IsMessage(mediaType string) bool {
	return mediaType == "message/rfc822" || mediaType == "message/global" || mediaType == "message/news"
}

// frame is an open container.
type frame struct {
	part   *Part
	closed bool // its final boundary was seen; it may be reopened until its parent goes on
	inner  bool // a message inside the part before: its end is the end of the part around it
}

type scanner struct {
	raw   []byte
	lim   Limits
	warn  *warning.List
	dec   *header.Decoder
	tree  *Tree
	stack []frame
	leaf  *Part         // the part whose body is being read; nil in a preamble or epilogue
	head  *header.Block // the header being read; nil in a body
	full  bool
	used  int // fields so far
}

// lineCheck is how many lines pass between two looks at the context.
const lineCheck = 4096

// At is where a mail stands: an attached message that had to be decoded first is scanned on its own, and depth and path go on.
// The zero value is a mail that stands in no other.
type At struct {
	Depth int
	Path  string
}

// Scan reads raw. The error is the context's.
func Scan(ctx context.Context, raw []byte, lim Limits, base At, warn *warning.List) (*Tree, error) {
	s := &scanner{raw: raw, lim: lim, warn: warn, tree: &Tree{}, dec: &header.Decoder{Warn: warn}}
	s.tree.Root = &Part{Depth: base.Depth, Path: base.Path}
	s.begin(s.tree.Root, 0, true)
	var line, next []byte
	end := 0
	for at := 0; at < len(raw); at = end {
		if s.tree.Steps&(lineCheck-1) == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		s.tree.Steps++
		line, end = cutLine(raw, at)
		if s.head != nil {
			next = nil
			if end < len(raw) && end-at < 4096 {
				next = peek(raw[end:])
			}
		}
		if s.full {
			break
		}
		s.line(line, at, end, next)
	}
	s.finish(len(raw))
	return s.tree, nil
}

// cutLine returns the line at at without LF and without the CRs before it, and where the next begins.
func cutLine(raw []byte, at int) ([]byte, int) {
	i := bytes.IndexByte(raw[at:], '\n')
	if i < 0 {
		return bytes.TrimRight(raw[at:], "\r"), len(raw)
	}
	line := raw[at : at+i]
	for len(line) > 0 && line[len(line)-1] == '\r' {
		line = line[:len(line)-1]
	}
	return line, at + i + 1
}

// peek returns the beginning of the next line, enough to tell a field.
func peek(raw []byte) []byte {
	raw = raw[:min(len(raw), 256)]
	line, _, _ := bytes.Cut(raw, []byte("\n"))
	return bytes.TrimRight(line, "\r")
}

func (s *scanner) begin(p *Part, at int, top bool) {
	p.start = at
	lim := s.lim.Header
	lim.Fields = min(lim.Fields, max(s.lim.TotalFields-s.used, 0))
	s.leaf, s.head = p, header.NewBlock(lim, top, s.warn)
}

func (s *scanner) line(line []byte, at, end int, next []byte) {
	if len(line) > s.lim.LineBytes {
		s.warn.Add(warning.LineTooLong, "")
		if s.leaf != nil {
			s.leaf.LongLine = true
		}
	}
	if len(line) >= 2 && line[0] == '-' && line[1] == '-' && len(s.stack) > 0 && s.delimiter(line, at, end) {
		return
	}
	if s.head == nil {
		if n := len(s.stack); s.leaf == nil && n > 0 && s.stack[n-1].closed && len(bytes.TrimSpace(line)) > 0 {
			s.warn.Add(warning.TrailingContent, s.stack[n-1].part.Path)
		}
		return
	}
	if end-at >= 3 && s.raw[end-1] == '\n' && s.raw[end-2] == '\r' && s.raw[end-3] == '\r' && len(s.head.Fields()) > 0 {
		s.warn.Add(warning.DoubleCR, "")
	}
	switch s.head.Line(line, at, next) {
	case header.End:
		// In a message, lines between the last field and the blank line are a body whose separator is missing. In a part they
		// are what a gateway put there, and reading them as body would spoil an encoded one.
		if junk := s.head.Junk(); junk >= 0 && s.head.Top() {
			end = junk
		}
		s.body(end)
	case header.Body:
		s.body(at)
	}
}

// delimiter handles a line that is a boundary of an open container. The innermost open one wins, so that an inner multipart may
// repeat its parent's boundary; a container that was closed is reopened only when no open one matches.
func (s *scanner) delimiter(line []byte, at, end int) bool {
	line = bytes.TrimRight(line[2:], " \t")
	if len(line) > s.lim.BoundaryBytes+2 {
		return false
	}
	for _, closed := range [2]bool{false, true} {
		for i := len(s.stack) - 1; i >= 0; i-- {
			f := &s.stack[i]
			if f.inner || f.closed != closed {
				continue
			}
			s.tree.Steps++
			b := f.part.boundary
			if string(line) == b {
				if closed {
					s.warn.Add(warning.ReopenedMultipart, f.part.Path)
				}
				s.next(i, at, end)
				return true
			}
			if len(line) == len(b)+2 && string(line[:len(b)]) == b && string(line[len(b):]) == "--" {
				if !closed {
					s.close(i, at)
				}
				return true
			}
		}
	}
	return false
}

// next starts a new part of container i, ending everything inside it.
func (s *scanner) next(i, at, end int) {
	s.endLeaf(at)
	s.pop(i+1, at)
	f := &s.stack[i]
	f.closed = false
	if s.tree.Parts >= s.lim.Parts {
		s.warn.Add(warning.PartLimit, f.part.Path)
		s.full, s.leaf, s.head = true, nil, nil
		return
	}
	s.begin(s.child(f.part), end, false)
}

func (s *scanner) child(parent *Part) *Part {
	s.tree.Parts++
	path := itoa(len(parent.Children) + 1)
	if parent.Path != "" {
		path = parent.Path + "." + path
	}
	p := &Part{Path: path, Depth: parent.Depth + 1, digest: parent.Type == "multipart/digest"}
	parent.Children = append(parent.Children, p)
	return p
}

func (s *scanner) close(i, at int) {
	s.endLeaf(at)
	s.pop(i+1, at)
	s.stack[i].closed = true
	s.leaf, s.head = nil, nil
}

// pop ends the containers from index i on.
func (s *scanner) pop(i, at int) {
	for j := len(s.stack) - 1; j >= i; j-- {
		f := s.stack[j]
		switch {
		case f.inner:
		case len(f.part.Children) == 0:
			s.warn.Add(warning.MissingParts, f.part.Path)
		case !f.closed:
			s.warn.Add(warning.UnclosedMultipart, f.part.Path)
		}
		s.seal(f.part, at)
	}
	s.stack = s.stack[:i]
}

// seal gives a container its whole body.
func (s *scanner) seal(p *Part, at int) { p.Body = s.trim(p.start, at) }

// trim cuts the line break that belongs to the boundary behind it (RFC 2046 section 5.1.1).
func (s *scanner) trim(from, to int) []byte {
	if to < len(s.raw) && to > from && s.raw[to-1] == '\n' {
		to--
		if to > from && s.raw[to-1] == '\r' {
			to--
		}
	}
	return s.raw[min(from, to):to]
}

// endLeaf ends the part being read at offset at.
func (s *scanner) endLeaf(at int) {
	if s.head != nil {
		// The header had no end: the body starts at the first line that could not be a field, or is empty.
		from := s.head.Junk()
		if from < 0 {
			from = at
		}
		s.body(from)
	}
	if s.leaf != nil {
		s.leaf.Body = s.trim(s.leaf.start, at)
	}
	s.leaf, s.head = nil, nil
}

func (s *scanner) finish(at int) {
	s.endLeaf(at)
	s.pop(0, at)
}

func itoa(n int) string {
	var buf [20]byte
	i := len(buf)
	for {
		i--
		buf[i] = byte('0' + n%10)
		if n /= 10; n == 0 {
			return string(buf[i:])
		}
	}
}

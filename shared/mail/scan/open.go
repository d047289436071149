package scan

import (
	"bytes"
	"strings"

	"github.com/buzon-mail/buzon/shared/mail/transfer"
	"github.com/buzon-mail/buzon/shared/mail/warning"
)

// body ends the header of the current part: its fields are read, and a container is opened unless a limit forbids it.
func (s *scanner) body(at int) {
	p := s.leaf
	p.Fields = s.head.Fields()
	s.used += len(p.Fields)
	s.head = nil
	p.start = at
	s.describe(p)
	switch {
	case strings.HasPrefix(p.Type, "multipart/"):
		s.openMultipart(p, at)
	case IsMessage(p.Type) && p.Encoding == transfer.Identity:
		s.openMessage(p, at)
	}
}

func (s *scanner) describe(p *Part) {
	p.Encoding = transfer.Named(string(p.Field("Content-Transfer-Encoding")))
	if p.Encoding == transfer.Unknown {
		s.warn.Add(warning.UnknownEncoding, p.Path)
	}
	if v := p.Field("Content-Disposition"); v != nil {
		p.Disposition = s.dec.Media(v)
	}
	v := p.Field("Content-Type")
	if v == nil {
		p.Type = "text/plain"
		if p.digest {
			p.Type = "message/rfc822"
		}
		return
	}
	p.Media = s.dec.Media(v)
	p.Type = p.Media.Type
	if major, minor, ok := strings.Cut(p.Type, "/"); ok && major != "" && minor != "" && !strings.Contains(minor, "/") {
		return
	}
	s.warn.Add(warning.BadContentType, p.Path)
	// A type that is junk says nothing. A part that names a file is a file; any other is shown as text, never lost.
	switch {
	case p.Media.Param("boundary") != "":
		p.Type = "multipart/mixed"
	case p.Type == "html" || strings.HasPrefix(p.Type, "text/html"):
		p.Type = "text/html"
	case p.Media.Param("name") != "" || p.Disposition.Param("filename") != "":
		p.Type = "application/octet-stream"
	default:
		p.Type = "text/plain"
	}
}

func (s *scanner) openMultipart(p *Part, at int) {
	if p.Depth >= s.lim.Depth {
		s.warn.Add(warning.DepthLimit, p.Path)
		p.Unread = true
		return
	}
	b := strings.TrimRight(p.Media.Param("boundary"), " \t")
	if b == "" {
		s.warn.Add(warning.MissingBoundary, p.Path)
		if b = guessBoundary(s.raw[at:], s.lim.BoundaryBytes); b == "" {
			return
		}
	}
	if len(b) > s.lim.BoundaryBytes {
		s.warn.Add(warning.BoundaryTooLong, p.Path)
		p.Unread = true
		return
	}
	for i := range s.stack {
		if s.stack[i].part.boundary == b && !s.stack[i].inner {
			s.warn.Add(warning.RepeatedBoundary, p.Path)
		}
	}
	p.boundary = b
	s.stack = append(s.stack, frame{part: p})
	s.leaf = nil
}

func (s *scanner) openMessage(p *Part, at int) {
	switch {
	case p.Depth >= s.lim.Depth:
		s.warn.Add(warning.DepthLimit, p.Path)
		p.Unread = true
	case s.tree.Parts >= s.lim.Parts:
		s.warn.Add(warning.PartLimit, p.Path)
		p.Unread = true
	default:
		s.stack = append(s.stack, frame{part: p, inner: true})
		s.begin(s.child(p), at, true)
	}
}

// guessBoundary takes the boundary from the first line of the body that looks like one, for a multipart that does not name it.
// It looks at the first lines only.
func guessBoundary(body []byte, limit int) string {
	body = body[:min(len(body), 4096)]
	for line := range bytes.Lines(body) {
		line = bytes.TrimRight(line, " \t\r\n")
		if len(line) > 4 && len(line) <= limit+2 && bytes.HasPrefix(line, []byte("--")) && bytes.IndexByte(line, ' ') < 0 {
			return string(line[2:])
		}
	}
	return ""
}

// Walk calls visit for p and everything below it, parents first. The depth limit bounds the recursion.
func (p *Part) Walk(visit func(*Part)) {
	visit(p)
	for _, c := range p.Children {
		c.Walk(visit)
	}
}

// Filename returns the name that the part gives its content, decoded but not cleaned.
func (p *Part) Filename() string {
	if name := p.Disposition.Param("filename"); name != "" {
		return name
	}
	return p.Media.Param("name")
}

// Charset returns the declared charset.
func (p *Part) Charset() string { return p.Media.Param("charset") }

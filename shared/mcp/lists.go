package mcp

import (
	"errors"
	"time"
)

// cursorLife is how long a client may wait before it asks for the next page.
const cursorLife = 24 * time.Hour

// What is sealed, so that one kind of token never passes for another.
const (
	purposeCursor = "mcp/cursor/1"
	purposeState  = "mcp/state/1"
)

// binding is the associated data of a token: for what, and for whom. A part's length stands before it, so that no two lists of parts have the
// same bytes.
func binding(parts ...string) []byte {
	var ad []byte
	for _, p := range parts {
		ad = append(ad, byte(len(p)>>24), byte(len(p)>>16), byte(len(p)>>8), byte(len(p)))
		ad = append(ad, p...)
	}
	return ad
}

// listRequest opens the cursor. One that this server did not make for this caller and this list is refused, whatever is wrong with it: positions
// may name things of other tenants.
func (s *Server) listRequest(x *exchange) (*ListRequest, *reply) {
	r := &x.list
	*r = ListRequest{Caller: x.caller, Version: x.version, Header: x.r.Header, Limit: s.pageLimit}
	f := &x.frame
	if f.cursor == nil {
		return r, nil
	}
	if !isText(f.cursor) {
		return nil, badParams("Invalid params: cursor must be a string")
	}
	if s.sealer == nil {
		return nil, badParams(invalidCursor)
	}
	position, err := s.sealer.Open(string(unquote(f.cursor)), binding(purposeCursor, x.method.name, x.caller.GrantID()))
	if err != nil || len(position) == 0 {
		return nil, badParams(invalidCursor)
	}
	r.Cursor = string(position)
	return r, nil
}

const invalidCursor = "Invalid cursor"

func (s *Server) listFailure(x *exchange, err error) *reply {
	if errors.Is(err, ErrUnknown) {
		return badParams(invalidCursor)
	}
	return s.failure(x, err)
}

// closeList ends a list whose items stand in out or items.
func (s *Server) closeList(x *exchange, next string) *reply {
	x.tail = append(x.tail, ']')
	if next != "" {
		if s.sealer == nil {
			return s.internal(x, errors.New("mcp: a list of several pages needs a Sealer"))
		}
		cursor, err := s.sealer.Seal([]byte(next), binding(purposeCursor, x.method.name, x.caller.GrantID()), cursorLife)
		if err != nil {
			return s.internal(x, err)
		}
		x.tail = appendQuoted(append(x.tail, `,"nextCursor":`...), cursor)
	}
	if x.version.Stateless() {
		x.tail = append(x.tail, s.texts.cacheable...)
	}
	x.tail = append(x.tail, "}}"...)
	return nil
}

// item is what a list holds.
type item interface {
	Append(dst []byte, v Version) []byte
}

// renderPage writes a list's page under its name.
func renderPage[T item](s *Server, x *exchange, name string, page Page[T], err error) *reply {
	if err != nil {
		return s.listFailure(x, err)
	}
	x.openComplete()
	x.out = append(append(append(x.out, '"'), name...), `":[`...)
	for i, it := range page.Items {
		if i > 0 {
			x.out = append(x.out, ',')
		}
		x.out = it.Append(x.out, x.version)
	}
	return s.closeList(x, page.Next)
}

func listResources(s *Server, x *exchange) *reply {
	r, refused := s.listRequest(x)
	if refused != nil {
		return refused
	}
	page, err := s.resources.ListResources(x.ctx, r)
	return renderPage(s, x, "resources", page, err)
}

func listTemplates(s *Server, x *exchange) *reply {
	r, refused := s.listRequest(x)
	if refused != nil {
		return refused
	}
	page, err := s.resources.ListTemplates(x.ctx, r)
	return renderPage(s, x, "resourceTemplates", page, err)
}

func listPrompts(s *Server, x *exchange) *reply {
	r, refused := s.listRequest(x)
	if refused != nil {
		return refused
	}
	page, err := s.prompts.ListPrompts(x.ctx, r)
	return renderPage(s, x, "prompts", page, err)
}

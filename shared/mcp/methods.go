package mcp

import (
	"errors"
	"net/http"
	"unicode/utf8"
)

// eras says where a method exists.
type eras uint8

const (
	stateless eras = 1 << iota // 2026-07-28
	handshake                  // the initialize revisions
)

// method is a row of the method table. What is not in the table is unknown, whatever else the protocol defines.
type method struct {
	name   string
	eras   eras
	free   bool                            // not counted against the rate limit
	public bool                            // open without a token where the server says so
	mirror func(*frame) []byte             // the param that Mcp-Name repeats; nil: none
	params bool                            // Mcp-Param-* may repeat arguments
	serve  func(*Server, *exchange) *reply // fills the exchange's result, or refuses
}

func (m *method) in(v Version) bool {
	if v.Stateless() {
		return m.eras&stateless != 0
	}
	return m.eras&handshake != 0
}

// newMethods is the method table. What the server does not offer is not in it.
func newMethods(d Deps) map[string]*method {
	const both = stateless | handshake
	byName := func(f *frame) []byte { return f.name }
	byURI := func(f *frame) []byte { return f.uri }
	byTask := func(f *frame) []byte { return f.task }
	table := []*method{
		{name: "server/discover", eras: stateless, free: true, public: true, serve: discover},
		{name: "initialize", eras: handshake, free: true, serve: initialize},
		{name: "ping", eras: handshake, free: true, serve: ping},
		{name: "tools/list", eras: both, serve: listTools},
		{name: "tools/call", eras: both, mirror: byName, params: true, serve: callTool},
	}
	if d.Resources != nil {
		table = append(table,
			&method{name: "resources/list", eras: both, serve: listResources},
			&method{name: "resources/templates/list", eras: both, serve: listTemplates},
			&method{name: "resources/read", eras: both, mirror: byURI, serve: readResource})
	}
	if d.Prompts != nil {
		table = append(table,
			&method{name: "prompts/list", eras: both, serve: listPrompts},
			&method{name: "prompts/get", eras: both, mirror: byName, serve: getPrompt})
	}
	if d.Completer != nil {
		table = append(table, &method{name: "completion/complete", eras: both, serve: complete})
	}
	if d.Tasks != nil { // SEP-2663, "Streamable HTTP: Routing Headers": Mcp-Name is the taskId
		table = append(table,
			&method{name: "tasks/get", eras: stateless, mirror: byTask, serve: getTask},
			&method{name: "tasks/cancel", eras: stateless, mirror: byTask, serve: cancelTask},
			&method{name: "tasks/update", eras: stateless, mirror: byTask, serve: updateTask})
	}
	for name, serve := range d.Legacy {
		table = append(table, &method{name: name, eras: handshake, serve: legacy(serve)})
	}
	m := make(map[string]*method, len(table))
	for _, row := range table {
		m[row.name] = row
	}
	return m
}

func discover(s *Server, x *exchange) *reply {
	x.open()
	x.out = append(x.out, s.texts.discover...)
	x.out = append(x.out, "}}"...)
	return nil
}

// initialize negotiates a revision of its own era only: a client that sends it waits for nothing that 2026-07-28 would send.
// It makes no session.
func initialize(s *Server, x *exchange) *reply {
	if !isText(x.frame.offered) {
		return badParams("Invalid params: protocolVersion must be a string")
	}
	v, ok := served(unquote(x.frame.offered))
	if !ok || v.Stateless() {
		v = V20251125
	}
	x.version = v
	x.open()
	x.out = append(x.out, s.texts.initialize[v]...)
	x.out = append(x.out, "}}"...)
	return nil
}

func ping(_ *Server, x *exchange) *reply {
	x.open()
	x.out = append(x.out, "}}"...)
	return nil
}

// open begins a result response.
func (x *exchange) open() {
	x.out = append(x.out[:0], `{"jsonrpc":"2.0","id":`...)
	x.out = append(append(x.out, x.frame.id...), `,"result":{`...)
}

// openComplete begins a response with a complete result of the version served.
func (x *exchange) openComplete() {
	x.open()
	if x.version.Stateless() {
		x.out = append(x.out, `"resultType":"complete",`...)
	}
}

// end is where the result is written on: behind its items, once it has some.
func (x *exchange) end() *[]byte {
	if x.items != nil {
		return &x.tail
	}
	return &x.out
}

// closeMeta ends a response with the result's _meta.
func (s *Server) closeMeta(x *exchange, members []byte) error {
	if err := s.appendMeta(x, members); err != nil {
		return err
	}
	end := x.end()
	*end = append(*end, "}}"...)
	return nil
}

// appendMeta writes a result's _meta: members of its own, and serverInfo in the stateless era.
func (s *Server) appendMeta(x *exchange, members []byte) error {
	if !utf8.Valid(members) {
		return errors.New("mcp: the result's _meta is not UTF-8")
	}
	meta, err := membersOnOneLine(members)
	if err != nil {
		return err
	}
	end := x.end()
	switch {
	case x.version.Stateless():
		*end = append(*end, s.texts.meta...)
		if len(meta) > 0 {
			*end = append(append(*end, ','), meta...)
		}
		*end = append(*end, '}')
	case len(meta) > 0:
		*end = append(append(append(*end, `,"_meta":{`...), meta...), '}')
	}
	return nil
}

//nolint:gochecknoglobals // constant table
var (
	accepted  = &reply{status: http.StatusAccepted}
	noContent = &reply{status: http.StatusNoContent}
)

package mcp

import (
	"encoding/json"
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
	serve  func(*Server, *exchange) *reply // fills the exchange's result, or refuses
}

func (m *method) in(v Version) bool {
	if v.Stateless() {
		return m.eras&stateless != 0
	}
	return m.eras&handshake != 0
}

// newMethods is the method table.
func newMethods() map[string]*method {
	byName := func(f *frame) []byte { return f.name }
	table := []*method{
		{name: "server/discover", eras: stateless, free: true, public: true, serve: discover},
		{name: "initialize", eras: handshake, free: true, serve: initialize},
		{name: "ping", eras: handshake, free: true, serve: ping},
		{name: "tools/list", eras: stateless | handshake, serve: listTools},
		{name: "tools/call", eras: stateless | handshake, mirror: byName, serve: callTool},
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

func listTools(s *Server, x *exchange) *reply {
	f := &x.frame
	if f.cursor != nil && !isText(f.cursor) {
		return badParams("Invalid params: cursor must be a string")
	}
	list, err := s.tools.ListTools(x.r.Context(), &ListRequest{
		Caller: x.caller, Version: x.version, Header: x.r.Header, Cursor: string(unquote(f.cursor)),
	})
	switch {
	case errors.Is(err, ErrUnknown):
		return badParams("Invalid cursor")
	case err != nil:
		return s.failure(x, err)
	}
	x.open()
	if x.version.Stateless() {
		x.out = append(x.out, `"resultType":"complete",`...)
	}
	x.out = append(x.out, `"tools":[`...)
	x.items = list.Items
	x.tail = append(x.tail, ']')
	if list.NextCursor != "" {
		x.tail = appendQuoted(append(x.tail, `,"nextCursor":`...), list.NextCursor)
	}
	if x.version.Stateless() {
		x.tail = append(x.tail, s.texts.cacheable...)
	}
	x.tail = append(x.tail, "}}"...)
	return nil
}

func callTool(s *Server, x *exchange) *reply {
	f := &x.frame
	switch {
	case !isText(f.name):
		return badParams("Invalid params: name must be a string")
	case f.arguments != nil && !isObject(f.arguments):
		return badParams("Invalid params: arguments must be an object")
	}
	req := &CallRequest{
		Caller: x.caller, Version: x.version, Name: string(unquote(f.name)),
		Arguments: f.arguments, Header: x.r.Header,
	}
	if x.version.Stateless() {
		req.Capabilities = f.capabilities
	}
	result, err := s.tools.CallTool(x.r.Context(), req)
	if errors.Is(err, ErrUnknown) {
		return badParams("Unknown tool: " + cut(req.Name, maxEchoed))
	}
	x.tool = req.Name
	if err != nil {
		return s.failure(x, err)
	}
	if result == nil {
		return s.internal(x, errors.New("mcp: the tool returned nothing"))
	}
	x.released, x.isError = result.Released, result.IsError
	if err := s.renderCall(x, result); err != nil {
		return s.internal(x, err)
	}
	return nil
}

// renderCall writes a tool's result in the shape of the version served: the JSON once escaped, as text, and once as it
// is, as structuredContent (2025-06-18 on).
func (s *Server) renderCall(x *exchange, result *CallResult) error {
	if !utf8.Valid(result.JSON) || !utf8.Valid(result.Content) || !utf8.Valid(result.Meta) {
		return errors.New("mcp: the tool's result is not UTF-8")
	}
	x.open()
	if x.version.Stateless() {
		x.out = append(x.out, `"resultType":"complete",`...)
	}
	if err := x.appendContent(result); err != nil {
		return err
	}
	if result.IsError {
		x.out = append(x.out, `,"isError":true`...)
	}
	meta, err := membersOnOneLine(result.Meta)
	if err != nil {
		return err
	}
	switch {
	case x.version.Stateless():
		x.out = append(x.out, s.texts.meta...)
		if len(meta) > 0 {
			x.out = append(append(x.out, ','), meta...)
		}
		x.out = append(x.out, '}')
	case len(meta) > 0:
		x.out = append(append(append(x.out, `,"_meta":{`...), meta...), '}')
	}
	x.out = append(x.out, "}}"...)
	return nil
}

func (x *exchange) appendContent(result *CallResult) error {
	x.out = append(x.out, `"content":`...)
	if result.JSON == nil {
		content, err := oneLine(result.Content)
		if err != nil {
			return err
		}
		if len(content) == 0 || content[0] != '[' {
			return errors.New("mcp: the tool's content is not an array")
		}
		x.out = append(x.out, content...)
		return nil
	}
	x.out = append(x.out, `[{"type":"text","text":"`...)
	x.out = appendEscaped(x.out, result.JSON)
	x.out = append(x.out, `"}]`...)
	if result.IsError || !x.version.AtLeast(V20250618) {
		return nil
	}
	raw, err := oneLine(result.JSON)
	if err != nil {
		return err
	}
	if isObject(raw) {
		x.out = append(append(x.out, `,"structuredContent":`...), raw...)
	}
	return nil
}

// open begins a result response.
func (x *exchange) open() {
	x.out = append(x.out[:0], `{"jsonrpc":"2.0","id":`...)
	x.out = append(append(x.out, x.frame.id...), `,"result":{`...)
}

// texts is what a server says of itself, rendered once.
type texts struct {
	discover   []byte             // members of the discover result
	initialize map[Version][]byte // members of the initialize result
	cacheable  []byte             // end of a stateless list
	meta       []byte             // "_meta" of a stateless result, left open
}

type implementation struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"` // since 2025-06-18
	Version string `json:"version"`
}

func newTexts(o Options) texts {
	info := implementation{o.Name, o.Title, o.Version}
	meta := append([]byte(`,"_meta":{"io.modelcontextprotocol/serverInfo":`), info.json()...)
	t := texts{meta: meta, initialize: map[Version][]byte{}}
	t.cacheable = append(append([]byte(`,"ttlMs":0,"cacheScope":"private"`), meta...), '}')
	instructions := []byte(nil)
	if o.Instructions != "" {
		instructions = appendQuoted([]byte(`,"instructions":`), o.Instructions)
	}
	t.discover = append(t.discover, `"resultType":"complete","supportedVersions":`...)
	t.discover = append(appendVersions(t.discover), `,"capabilities":{"tools":{}}`...)
	t.discover = append(append(t.discover, instructions...), t.cacheable...)
	for _, v := range Versions() {
		if v.Stateless() {
			continue
		}
		own := info
		if !v.AtLeast(V20250618) {
			own.Title = ""
		}
		b := appendQuoted([]byte(`"protocolVersion":`), string(v))
		b = append(b, `,"capabilities":{"tools":{"listChanged":false}},"serverInfo":`...)
		t.initialize[v] = append(append(b, own.json()...), instructions...)
	}
	return t
}

func (i implementation) json() []byte {
	b, err := json.Marshal(i)
	if err != nil {
		return []byte("{}") // three strings: can't fail
	}
	return b
}

// appendVersions appends what is served as an array.
func appendVersions(dst []byte) []byte {
	for i, v := range Versions() {
		dst = append(dst, "[,"[min(i, 1)])
		dst = appendQuoted(dst, string(v))
	}
	return append(dst, ']')
}

//nolint:gochecknoglobals // constant table
var (
	accepted  = &reply{status: http.StatusAccepted}
	noContent = &reply{status: http.StatusNoContent}
)

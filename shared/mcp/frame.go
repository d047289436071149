package mcp

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// maxMembers bounds the members of the frame, params and _meta, because each is compared with those before it.
const maxMembers = 256

// frame is what one scan of a message found: sub-slices of the body with their quotes, nil where a member is absent. Nothing
// is decoded; the scan's error is kept and answered at its place in the order of checks.
type frame struct {
	fault     fault
	batch     bool
	idTwice   bool
	rpc       []byte // jsonrpc
	id        []byte
	method    []byte
	params    []byte
	hasResult bool
	hasError  bool

	meta      []byte // params._meta
	name      []byte
	uri       []byte
	arguments []byte
	cursor    []byte
	offered   []byte // params.protocolVersion of initialize
	answers   []byte // params.inputResponses
	state     []byte // params.requestState
	task      []byte // params.taskId
	ref       []byte
	argument  []byte
	context   []byte

	version      []byte // _meta: io.modelcontextprotocol/protocolVersion
	capabilities []byte
	clientInfo   []byte
	logLevel     []byte
	progress     []byte // progressToken
	traceparent  []byte // W3C Trace Context
	tracestate   []byte
}

// level is where in the message a member stands.
type level uint8

const (
	inFrame level = iota
	inParams
	inMeta
)

// parser fills a frame.
type parser struct {
	scanner
	f    *frame
	keys [][]byte // the names of the objects that are open, unescaped
}

// parse scans body into f, which is empty. keys is scratch that is returned for reuse.
func parse(f *frame, body []byte, keys [][]byte) [][]byte {
	if !utf8.Valid(body) {
		f.fault = malformed
		return keys
	}
	p := parser{scanner: scanner{b: body}, f: f, keys: keys[:0]}
	c := p.peek()
	ok := false
	if c == '{' {
		ok = p.object(inFrame)
	} else {
		ok = p.value()
		f.batch = c == '['
		p.note(notObject)
	}
	if ok && p.peek() != 0 || ok && p.i < len(body) {
		p.note(malformed)
	}
	f.fault = p.fault
	return p.keys
}

// object walks the members of the object at i. It alone looks inside: the values of all other members are only skipped.
func (p *parser) object(at level) bool {
	if !p.open() {
		return false
	}
	first := len(p.keys)
	if p.peek() == '}' {
		p.close()
		return true
	}
	for {
		raw, ok := p.key()
		if !ok {
			return false
		}
		name, fresh := p.remember(unquote(raw), first)
		if !p.member(at, name, fresh) {
			return false
		}
		switch p.peek() {
		case ',':
			p.i++
		case '}':
			p.close()
			p.keys = p.keys[:first]
			return true
		default:
			return p.fail(malformed)
		}
	}
}

// remember notes a member's name and whether it is the first of this name. Two readers of one message that take different
// members of the same name see two messages: the hole that lets a proxy approve one call and the server run another.
func (p *parser) remember(name []byte, first int) ([]byte, bool) {
	own := p.keys[first:]
	for _, k := range own {
		if bytes.Equal(k, name) {
			p.note(duplicate)
			return name, false
		}
	}
	if len(own) == maxMembers {
		p.note(crowded)
		return name, true
	}
	p.keys = append(p.keys, name)
	return name, true
}

// member reads one value and keeps what the protocol needs of it.
func (p *parser) member(at level, name []byte, fresh bool) bool {
	c := p.peek()
	start := p.i
	into := c == '{' && fresh && (at == inFrame && string(name) == "params" || at == inParams && string(name) == "_meta")
	ok := false
	if into {
		ok = p.object(at + 1)
	} else {
		ok = p.value()
	}
	if !ok {
		return false
	}
	if !fresh {
		p.f.idTwice = p.f.idTwice || at == inFrame && string(name) == "id"
		return true
	}
	raw := p.b[start:p.i:p.i]
	switch at {
	case inFrame:
		p.f.keepFrame(name, raw)
	case inParams:
		p.f.keepParam(name, raw)
	case inMeta:
		p.f.keepMeta(name, raw)
	}
	return true
}

func (f *frame) keepFrame(name, raw []byte) {
	switch string(name) {
	case "jsonrpc":
		f.rpc = raw
	case "id":
		f.id = raw
	case "method":
		f.method = raw
	case "params":
		f.params = raw
	case "result":
		f.hasResult = true
	case "error":
		f.hasError = true
	}
}

func (f *frame) keepParam(name, raw []byte) {
	switch string(name) {
	case "_meta":
		f.meta = raw
	case "name":
		f.name = raw
	case "uri":
		f.uri = raw
	case "arguments":
		f.arguments = raw
	case "cursor":
		f.cursor = raw
	case "protocolVersion":
		f.offered = raw
	case "inputResponses":
		f.answers = raw
	case "requestState":
		f.state = raw
	case "taskId":
		f.task = raw
	case "ref":
		f.ref = raw
	case "argument":
		f.argument = raw
	case "context":
		f.context = raw
	}
}

func (f *frame) keepMeta(name, raw []byte) {
	switch string(name) {
	case "io.modelcontextprotocol/protocolVersion":
		f.version = raw
	case "io.modelcontextprotocol/clientCapabilities":
		f.capabilities = raw
	case "io.modelcontextprotocol/clientInfo":
		f.clientInfo = raw
	case "io.modelcontextprotocol/logLevel":
		f.logLevel = raw
	case "progressToken":
		f.progress = raw
	case "traceparent":
		f.traceparent = raw
	case "tracestate":
		f.tracestate = raw
	}
}

// readable reports whether what the body declares may be believed: only a message whose members are unambiguous declares
// a version.
func (f *frame) readable() bool { return f.fault == sound }

// kind is what a message is, by its members alone.
type kind uint8

const (
	request kind = iota
	notification
	response
)

// kind takes a message without method for a response only when it carries an outcome; anything else is a request, sound or not.
func (f *frame) kind() kind {
	switch {
	case f.fault >= notObject:
		return request
	case f.method == nil && (f.hasResult || f.hasError):
		return response
	case f.method != nil && f.id == nil && !f.idTwice:
		return notification
	}
	return request
}

// echo is the id to answer with, nil when none was read. The bytes are those that were sent: decoding would turn
// 9007199254740993 into another number.
func (f *frame) echo() []byte {
	if f.fault >= notObject || f.idTwice || f.kind() != request || !validID(f.id) {
		return nil
	}
	return f.id
}

// validID accepts a string or an integer (MCP 2026-07-28 basic, "Requests": MUST be a string or integer, MUST NOT be null).
func validID(raw []byte) bool {
	if isText(raw) {
		return true
	}
	return isNumber(raw) && !bytes.ContainsAny(raw, ".eE")
}

func isText(raw []byte) bool   { return len(raw) > 0 && raw[0] == '"' }
func isObject(raw []byte) bool { return len(raw) > 0 && raw[0] == '{' }
func isNumber(raw []byte) bool {
	return len(raw) > 0 && (raw[0] == '-' || '0' <= raw[0] && raw[0] <= '9')
}

// unquote returns the text of a raw JSON string that the scan accepted; without an escape it is a part of raw. Anything that
// is not a string is nil.
func unquote(raw []byte) []byte {
	if !isText(raw) {
		return nil
	}
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil // can't happen to what the scan accepted; an absent value is refused like any wrong one
	}
	return []byte(s)
}

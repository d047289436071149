package mcp

import (
	"bytes"
	"errors"
	"unicode/utf8"
)

func listTools(s *Server, x *exchange) *reply {
	r, refused := s.listRequest(x)
	if refused != nil {
		return refused
	}
	list, err := s.tools.ListTools(x.r.Context(), r)
	if err != nil {
		return s.listFailure(x, err)
	}
	x.openComplete()
	x.out = append(x.out, `"tools":[`...)
	x.items = list.Items
	return s.closeList(x, list.NextCursor)
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
		req.Capabilities, req.ClientInfo = f.capabilities, f.clientInfo
	}
	var refused *reply
	if req.Input, refused = s.input(x, req.Name); refused != nil {
		return refused
	}
	req.Notify = s.notifier(x)
	result, err := s.tools.CallTool(x.r.Context(), req)
	if errors.Is(err, ErrUnknown) {
		return badParams("Unknown tool: " + cut(req.Name, maxEchoed))
	}
	x.tool = req.Name
	if err != nil {
		if ask, ok := errors.AsType[*Ask](err); ok && !x.version.Stateless() {
			x.isError = true
			err = s.renderCall(x, &CallResult{Content: Contents(x.version, Text(cannotAsk(ask))), IsError: true})
			return s.rendered(x, err)
		}
		if errors.Is(err, ErrTaskOnly) && !x.version.Stateless() {
			x.isError = true
			err = s.renderCall(x, &CallResult{Content: Contents(x.version, Text(taskOnly)), IsError: true})
			return s.rendered(x, err)
		}
		return s.handlerFailure(x, req.Name, err)
	}
	if result == nil {
		return s.internal(x, errors.New("mcp: the tool returned nothing"))
	}
	x.released, x.isError = result.Released, result.IsError
	if result.Task != nil {
		return s.rendered(x, s.renderTask(x, result.Task))
	}
	return s.rendered(x, s.renderCall(x, result))
}

// rendered answers a result that can't be rendered as our own fault.
func (s *Server) rendered(x *exchange, err error) *reply {
	if err != nil {
		return s.internal(x, err)
	}
	return nil
}

var errNotUTF8 = errors.New("mcp: the tool's result is not UTF-8")

// renderCall writes a tool's result in the shape of the version served: the JSON once escaped, as text, and once as it
// is, as structuredContent (2025-06-18 on).
func (s *Server) renderCall(x *exchange, result *CallResult) error {
	if !utf8.Valid(result.Content) {
		return errNotUTF8
	}
	x.openComplete()
	structured, err := x.appendContent(result)
	if err != nil {
		return err
	}
	if len(structured) < longReply {
		x.out = append(x.out, structured...)
	} else {
		x.items = append(x.parts[:0], structured)
	}
	if result.IsError {
		x.out = append(x.out, `,"isError":true`...)
	}
	return s.closeMeta(x, result.Meta)
}

// longReply is from how many bytes on a reply is written from where it stands and not copied before.
const longReply = 1 << 10

// appendContent writes the content of a result and, where there is one, the name of structuredContent, and returns the value that
// is to stand behind it.
func (x *exchange) appendContent(result *CallResult) (structured []byte, err error) {
	x.out = append(x.out, `"content":`...)
	if result.JSON == nil {
		content, err := oneLine(result.Content)
		if err != nil {
			return nil, err
		}
		if len(content) == 0 || content[0] != '[' {
			return nil, errors.New("mcp: the tool's content is not an array")
		}
		x.out = append(x.out, content...)
		return nil, nil
	}
	x.out = append(x.out, `[{"type":"text","text":"`...)
	breaks, done := false, false
	if result.Escaped != nil {
		x.out, done = result.Escaped.AppendEscaped(x.out)
	}
	if !done {
		var valid bool
		if x.out, breaks, valid = appendDocument(x.out, result.JSON); !valid {
			return nil, errNotUTF8
		}
	}
	x.out = append(x.out, `"}]`...)
	if result.IsError || !x.version.AtLeast(V20250618) {
		return nil, nil
	}
	raw := bytes.TrimSpace(result.JSON)
	if breaks {
		if raw, err = oneLine(raw); err != nil {
			return nil, err
		}
	}
	if !isObject(raw) {
		return nil, nil
	}
	x.out = append(x.out, `,"structuredContent":`...)
	return raw, nil
}

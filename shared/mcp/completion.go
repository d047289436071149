package mcp

import (
	"errors"
	"strconv"
)

// maxCompletions: MCP, completion, "Completion Results": at most 100 values a response.
const maxCompletions = 100

func complete(s *Server, x *exchange) *reply {
	req, refused := completeRequest(x)
	if refused != nil {
		return refused
	}
	c, err := s.completer.Complete(x.ctx, req)
	switch {
	case errors.Is(err, ErrUnknown):
		return badParams("Unknown reference")
	case err != nil:
		return s.handlerFailure(x, "", err)
	}
	if len(c.Values) > maxCompletions {
		c.Values, c.HasMore = c.Values[:maxCompletions], true
	}
	x.openComplete()
	x.out = appendTexts(append(x.out, `"completion":{"values":`...), c.Values)
	if c.Total > 0 {
		x.out = strconv.AppendInt(append(x.out, `,"total":`...), int64(c.Total), 10)
	}
	x.out = strconv.AppendBool(append(x.out, `,"hasMore":`...), c.HasMore)
	x.out = append(x.out, '}')
	return s.rendered(x, s.closeMeta(x, nil))
}

func completeRequest(x *exchange) (*CompleteRequest, *reply) {
	f := &x.frame
	req := &CompleteRequest{Caller: x.caller, Version: x.version, Header: x.r.Header}
	var name []byte
	switch string(unquote(soleMember(f.ref, "type"))) {
	case "ref/prompt":
		name = soleMember(f.ref, "name")
		req.Prompt = string(unquote(name))
	case "ref/resource":
		name = soleMember(f.ref, "uri")
		req.Template = string(unquote(name))
	}
	argument, value := soleMember(f.argument, "name"), soleMember(f.argument, "value")
	switch {
	case len(unquote(name)) == 0:
		return nil, badParams("Invalid params: ref must be a ref/prompt with a name or a ref/resource with a uri")
	case !isText(argument) || !isText(value):
		return nil, badParams("Invalid params: argument must have a name and a value")
	}
	req.Argument, req.Value = string(unquote(argument)), string(unquote(value))
	if f.context == nil || !x.version.AtLeast(V20250618) { // older revisions have no context
		return req, nil
	}
	settled, times := member(f.context, "arguments")
	ok := isObject(f.context) && times < 2
	if ok {
		req.Context, ok = textMembers(settled)
	}
	if !ok {
		return nil, badParams("Invalid params: context.arguments must be an object of strings, each once")
	}
	return req, nil
}

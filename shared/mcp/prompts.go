package mcp

import "errors"

func getPrompt(s *Server, x *exchange) *reply {
	f := &x.frame
	if !isText(f.name) {
		return badParams("Invalid params: name must be a string")
	}
	arguments, ok := textMembers(f.arguments)
	if !ok {
		return badParams("Invalid params: arguments must be an object of strings, each once")
	}
	req := &PromptRequest{Caller: x.caller, Version: x.version, Name: string(unquote(f.name)), Arguments: arguments, Header: x.r.Header}
	if x.version.Stateless() {
		req.Capabilities = f.capabilities
	}
	var refused *reply
	if req.Input, refused = s.input(x, req.Name); refused != nil {
		return refused
	}
	req.Notify = s.notifier(x)
	result, err := s.prompts.GetPrompt(x.ctx, req)
	switch {
	case errors.Is(err, ErrUnknown):
		return badParams("Unknown prompt: " + cut(req.Name, maxEchoed))
	case err != nil:
		return s.handlerFailure(x, req.Name, err)
	case result == nil:
		return s.internal(x, errors.New("mcp: the prompt returned nothing"))
	}
	if err := checkMessages(result.Messages); err != nil {
		return s.internal(x, err)
	}
	x.openComplete()
	if result.Description != "" {
		x.out = append(appendQuoted(append(x.out, `"description":`...), result.Description), ',')
	}
	x.out = appendMessages(append(x.out, `"messages":`...), x.version, result.Messages)
	return s.rendered(x, s.closeMeta(x, result.Meta))
}

// textMembers reads an object of strings; an absent one is empty.
func textMembers(raw []byte) (m map[string]string, ok bool) {
	if raw == nil {
		return nil, true
	}
	if !isObject(raw) {
		return nil, false
	}
	m, ok = map[string]string{}, true
	eachMember(raw, func(name, value []byte) {
		_, twice := m[string(name)]
		ok = ok && !twice && isText(value) && len(m) < maxMembers
		if ok {
			m[string(name)] = string(unquote(value))
		}
	})
	return m, ok
}

package mcp

import (
	"errors"
	"net/http"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// maxURI bounds in bytes what is echoed of a URI: clients find the resource by it.
const maxURI = 2048

func readResource(s *Server, x *exchange) *reply {
	f := &x.frame
	if !isText(f.uri) {
		return badParams("Invalid params: uri must be a string")
	}
	req := &ReadRequest{Caller: x.caller, Version: x.version, URI: string(unquote(f.uri)), Header: x.r.Header}
	if x.version.Stateless() {
		req.Capabilities = f.capabilities
	}
	var refused *reply
	if req.Input, refused = s.input(x, req.URI); refused != nil {
		return refused
	}
	req.Notify = s.notifier(x)
	result, err := s.resources.ReadResource(x.ctx, req)
	switch {
	case errors.Is(err, ErrUnknown):
		return unknownResource(x.version, req.URI)
	case err != nil:
		return s.handlerFailure(x, req.URI, err)
	case result == nil || len(result.Contents) == 0: // MCP 2026-07-28, resources, "Error Handling": never for one that does not exist
		return s.internal(x, errors.New("mcp: the resource returned nothing"))
	}
	x.openComplete()
	x.out = append(x.out, `"contents":[`...)
	for i, c := range result.Contents {
		if i > 0 {
			x.out = append(x.out, ',')
		}
		x.out = c.append(x.out)
	}
	x.out = append(x.out, ']')
	if x.version.Stateless() {
		x.out = append(x.out, noCache...)
	}
	return s.rendered(x, s.closeMeta(x, result.Meta))
}

// unknownResource: MCP 2026-07-28, resources, "Error Handling" MUST be -32602; the revisions before SHOULD be -32002.
func unknownResource(v Version, uri string) *reply {
	r := refusal(http.StatusOK, codeInvalidParams, apperr.NotFound, "Resource not found")
	if !v.Stateless() {
		r.code = codeUnknownResource
	}
	r.data = appendQuoted([]byte(`"uri":`), cut(uri, maxURI))
	return r
}

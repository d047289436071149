package mcp

import (
	"errors"
	"net/http"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/tracecontext"
)

// A check lets an exchange go on (nil) or ends it with a reply.
type check func(*Server, *exchange) *reply

// order is the order of checks, for every request, in this one place. It is a security property: what stands before
// authenticate is seen by anyone, what stands after limitRate is counted.
//
//nolint:gochecknoglobals // constant table
var order = [...]check{
	preflight,     // 1. CORS preflight: 204
	judgeOrigin,   // 2. foreign Origin, or foreign Host of a local process: 403
	boundBody,     // 3. body over the limit: 413
	judgeVersion,  // 4. scan; a version that is not served: 400 -32022
	authenticate,  // 5. 401 with the challenge, for every HTTP method
	judgeHTTP,     // 6. not POST: 405; not JSON: 415
	limitRate,     // 7. 429
	judgeShape,    // 8. parse, batch, shape: 400
	acceptOneWay,  //    notifications and responses end here: 202
	judgeEnvelope, // 9. missing or ill-typed _meta fields: 400 -32602
	judgeHeaders,  // 10. header against body: 400 -32020
	judgeMethod,   // 11. a method unknown in this era: -32601
	dispatch,      // 12. scope: 403 challenge (known to the tools alone); 13. the result
}

func preflight(s *Server, x *exchange) *reply {
	if !isPreflight(x.r) {
		return nil
	}
	h := x.w.Header()
	h["Vary"] = varyPreflight
	if origin, ok := s.origins.pass(x.r.Header); ok && s.origins.passHost(x.r.Host) {
		h["Access-Control-Allow-Origin"] = []string{origin}
		h["Access-Control-Allow-Methods"] = corsMethods
		h["Access-Control-Allow-Headers"] = []string{allowHeaders(s.corsHeaders, x.r.Header["Access-Control-Request-Headers"])}
		h["Access-Control-Max-Age"] = corsMaxAge
	}
	return noContent
}

func judgeOrigin(s *Server, x *exchange) *reply {
	origin, ok := s.origins.pass(x.r.Header)
	h := x.w.Header()
	if x.r.Header["Origin"] != nil {
		h["Vary"] = varyOrigin
	}
	if !ok {
		return gated(http.StatusForbidden, apperr.Forbidden, "Origin not allowed")
	}
	if !s.origins.passHost(x.r.Host) {
		return gated(http.StatusForbidden, apperr.Forbidden, "Host not allowed")
	}
	if origin != "" {
		h["Access-Control-Allow-Origin"] = []string{origin}
		h["Access-Control-Expose-Headers"] = corsExposed
	}
	return nil
}

// boundBody reads the body. One that breaks off counts as empty, so as malformed and only after authentication: what arrived
// of it may look whole, and must not run.
func boundBody(s *Server, x *exchange) *reply {
	switch err := x.read(s.maxBody); {
	case errors.Is(err, errTooLarge):
		return gated(http.StatusRequestEntityTooLarge, apperr.TooLarge, "Request body too large")
	case err != nil:
		x.body = x.body[:0]
	}
	return nil
}

// judgeVersion answers a version that is not served before authentication: a 401 would teach the caller nothing, and the
// list of versions is public.
func judgeVersion(s *Server, x *exchange) *reply {
	x.keys = parse(&x.frame, x.body, x.keys)
	f := &x.frame
	header, _ := field(x.r.Header, headerVersion)
	switch {
	case !f.readable() || f.kind() != request:
		x.ruling = byHeader(header)
	default:
		x.ruling = rule(header, f.version)
	}
	x.version = x.ruling.version
	if header == "" && f.fault >= notObject {
		x.version = V20260728 // neither side declared anything
	}
	if x.ruling.verdict == unserved {
		return unservedVersion(x.ruling.requested)
	}
	if f.readable() && f.kind() == request {
		x.method = s.methods[string(unquote(f.method))]
	}
	x.follow()
	return nil
}

// follow puts the request where its _meta says that it stands in the caller's trace. That is nearer than what headers say, which a gateway
// may have written for all messages of a connection. What is malformed changes nothing: a trace is no reason to refuse.
func (x *exchange) follow() {
	if x.frame.traceparent == nil || !x.frame.readable() {
		return
	}
	if c, ok := tracecontext.Parse(string(unquote(x.frame.traceparent)), string(unquote(x.frame.tracestate))); ok {
		x.ctx = tracecontext.With(x.ctx, c)
	}
}

// maxEchoed bounds in bytes what is echoed of a value that a caller made up.
const maxEchoed = 128

func unservedVersion(requested string) *reply {
	r := refusal(http.StatusBadRequest, codeUnserved, apperr.Invalid, "Unsupported protocol version")
	r.data = append(r.data, `"supported":`...)
	r.data = appendVersions(r.data)
	r.data = appendQuoted(append(r.data, `,"requested":`...), cut(requested, maxEchoed))
	return r
}

func authenticate(s *Server, x *exchange) *reply {
	if s.publicDiscover && x.r.Method == http.MethodPost && x.method != nil && x.method.public {
		return nil
	}
	caller, err := s.auth.Authenticate(x.ctx, x.r.Header)
	if err != nil {
		return s.failure(x, err)
	}
	if caller == nil {
		return s.internal(x, errors.New("mcp: the authenticator returned nobody"))
	}
	x.caller = caller
	return nil
}

func judgeHTTP(_ *Server, x *exchange) *reply {
	if x.r.Method != http.MethodPost {
		x.w.Header()["Allow"] = allowPost
		return gated(http.StatusMethodNotAllowed, apperr.MethodNotAllowed, "Method not allowed: POST one JSON-RPC message")
	}
	if !isJSON(x.r.Header) {
		return gated(http.StatusUnsupportedMediaType, apperr.UnsupportedMedia, "Content-Type must be application/json in UTF-8")
	}
	return nil
}

// limitRate counts by grant. A client's probe is shown the state and not counted: a 429 would push it into the old era.
func limitRate(s *Server, x *exchange) *reply {
	if x.caller == nil {
		return nil
	}
	free := x.method != nil && x.method.free && x.method.in(x.version) || x.frame.readable() && x.frame.kind() == notification
	if free {
		return nil // respond looks the state up
	}
	x.limit, x.counted = s.limiter.Take(x.ctx, x.caller.GrantID()), true
	if x.limit.Allowed {
		return nil
	}
	r := refusal(http.StatusTooManyRequests, codeInternal, apperr.RateLimited, "Too many requests")
	r.data = appendKind(nil, r.kind)
	r.retry = max(x.limit.RetryAfter, 1)
	return r
}

func judgeShape(_ *Server, x *exchange) *reply {
	f := &x.frame
	invalid := func(message string) *reply {
		return refusal(http.StatusBadRequest, codeInvalidRequest, apperr.Invalid, "Invalid Request: "+message)
	}
	switch f.fault {
	case malformed:
		return refusal(http.StatusBadRequest, codeParse, apperr.Invalid, "Parse error: the body is not one JSON value in UTF-8")
	case tooDeep:
		return refusal(http.StatusBadRequest, codeParse, apperr.Invalid, "Parse error: nested deeper than 64 levels")
	case notObject:
		if f.batch {
			return invalid("batches are not supported")
		}
		return invalid("not an object")
	case duplicate:
		return invalid("a member of the message, params or _meta occurs twice")
	case crowded:
		return invalid("too many members in the message, params or _meta")
	}
	outcome := f.hasResult || f.hasError
	switch {
	case string(unquote(f.rpc)) != "2.0":
		return invalid(`jsonrpc must be "2.0"`)
	case f.id != nil && !validID(f.id):
		return invalid("id must be a string or an integer")
	case f.method == nil && !outcome:
		return invalid("method is missing")
	case f.method != nil && outcome, f.hasResult && f.hasError:
		return invalid("request and response at once")
	case f.method != nil && !isText(f.method):
		return invalid("method must be a string")
	case f.params != nil && !isObject(f.params):
		return invalid("params must be an object")
	}
	return nil
}

// acceptOneWay ends what gets no response. A notification is never dispatched, whatever its method.
func acceptOneWay(_ *Server, x *exchange) *reply {
	switch x.frame.kind() {
	case notification:
		return accepted
	case response:
		if x.version.Stateless() { // MCP 2026-07-28, transports: the client MUST NOT send responses
			return refusal(http.StatusBadRequest, codeInvalidRequest, apperr.Invalid, "Invalid Request: this revision has no requests from the server")
		}
		return accepted
	}
	return nil
}

// judgeEnvelope: MCP 2026-07-28 basic, "_meta": a request without a required field MUST be refused with 400 and -32602.
func judgeEnvelope(_ *Server, x *exchange) *reply {
	f := &x.frame
	invalid := func(message string) *reply {
		return refusal(http.StatusBadRequest, codeInvalidParams, apperr.Invalid, "Invalid params: "+message)
	}
	switch x.ruling.verdict {
	case noEnvelope:
		return invalid("_meta must carry io.modelcontextprotocol/protocolVersion")
	case notText:
		return invalid("io.modelcontextprotocol/protocolVersion must be a string")
	case useInitialize:
		return invalid("this version begins with initialize and has no envelope")
	}
	switch {
	case f.meta != nil && !isObject(f.meta):
		return invalid("_meta must be an object")
	case string(unquote(f.version)) != string(V20260728):
		return nil // the older era, or a mismatch that the next check answers
	case !isObject(f.capabilities):
		return invalid("io.modelcontextprotocol/clientCapabilities must be an object")
	case f.clientInfo != nil && !isObject(f.clientInfo):
		return invalid("io.modelcontextprotocol/clientInfo must be an object")
	case f.logLevel != nil && !isText(f.logLevel):
		return invalid("io.modelcontextprotocol/logLevel must be a string")
	case f.progress != nil && !validID(f.progress):
		return invalid("progressToken must be a string or an integer")
	}
	return nil
}

// judgeHeaders: MCP 2026-07-28, transports, "Server Validation". A proxy may have routed or authorized by the headers, so a
// message that says something else must not run.
func judgeHeaders(s *Server, x *exchange) *reply {
	mismatch := func(header string) *reply {
		return refusal(http.StatusBadRequest, codeHeaderMismatch, apperr.Invalid, "Header mismatch: "+header+" is missing, malformed or differs from the body")
	}
	if x.ruling.verdict == headerMismatch {
		return mismatch("MCP-Protocol-Version")
	}
	if !x.version.Stateless() {
		return nil
	}
	h := x.r.Header
	if !mirrors(h, headerMethod, unquote(x.frame.method), false) {
		return mismatch("Mcp-Method")
	}
	if x.method == nil || x.method.mirror == nil {
		return nil
	}
	// Where the body has no text to repeat the header must be absent too: the method answers for its own params.
	name := x.method.mirror(&x.frame)
	if !(isText(name) && mirrors(h, headerName, unquote(name), true) || !isText(name) && h[headerName] == nil) {
		return mismatch("Mcp-Name")
	}
	if header := s.judgeParams(x); header != "" {
		return mismatch(header)
	}
	return nil
}

// judgeParams holds the Mcp-Param-* headers of a tool that has some against its arguments, and names the first that fails.
func (s *Server) judgeParams(x *exchange) string {
	if s.headers == nil || !x.method.params {
		return ""
	}
	p := s.headers.ToolHeaders(x.ctx, x.caller, string(unquote(x.frame.name)))
	if p == nil {
		return ""
	}
	return p.mismatch(x.r.Header, x.frame.arguments)
}

func judgeMethod(_ *Server, x *exchange) *reply {
	if x.method != nil && x.method.in(x.version) {
		return nil
	}
	x.method = nil
	r := refusal(http.StatusOK, codeUnknownMethod, apperr.NotFound, "Method not found")
	if x.version.Stateless() { // with the JSON-RPC body it tells a probing client that the endpoint itself is there
		r.status = http.StatusNotFound
	}
	return r
}

func dispatch(s *Server, x *exchange) *reply { return x.method.serve(s, x) }

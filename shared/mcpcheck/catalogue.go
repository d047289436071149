package mcpcheck

// kind is what is known of a check beforehand.
type kind struct {
	id    string
	title string
	point int    // of the eight-point list
	says  string // what the specification demands
	page  string
	mend  string
}

const (
	spec         = "https://modelcontextprotocol.io/specification/2026-07-28/"
	streamable   = spec + "basic/transports/streamable-http"
	validation   = streamable + "#server-validation"
	versionPage  = streamable + "#protocol-version-header"
	sending      = streamable + "#sending-messages"
	base         = spec + "basic"
	versioning   = spec + "basic/versioning"
	authPage     = spec + "basic/authorization"
	serverPage   = authPage + "/authorization-server-discovery"
	registration = authPage + "/client-registration"
	discoverPage = spec + "server/discover"
	cachingPage  = spec + "server/utilities/caching"
	toolsPage    = spec + "server/tools"
	tasksPage    = "https://modelcontextprotocol.io/seps/2663-tasks-extension"
	lifecycle    = "https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#version-negotiation"
	oldTransport = "https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#session-management"
)

// catalogue is every check, in the order of the report.
//
//nolint:gochecknoglobals // constant table
var catalogue = []kind{
	{"discover", "server/discover answers", 1,
		"Servers MUST implement server/discover: supportedVersions and capabilities.", discoverPage,
		"Answer server/discover with supportedVersions (2026-07-28 among them), capabilities, resultType, ttlMs and cacheScope."},
	{"discover-public", "server/discover needs no token where tools/list needs none", 1,
		"A client may call server/discover before anything else.", discoverPage,
		"Open server/discover wherever another method answers strangers."},
	{"result-type", "every result carries resultType", 2,
		"A result MUST include resultType; an ordinary one says complete.", base + "#resulttype",
		"Add \"resultType\":\"complete\" to every ordinary result of 2026-07-28."},
	{"cache-hints", "server/discover and tools/list carry ttlMs and cacheScope", 3,
		"Both members are required: milliseconds from 0 on, and public or private.", cachingPage,
		"Add ttlMs (0 is allowed) and cacheScope (private for anything that depends on the caller)."},
	{"header-version", "a version header that contradicts the body is refused", 4,
		"MCP-Protocol-Version MUST match _meta; otherwise 400 and -32020.", validation,
		"Compare the header with io.modelcontextprotocol/protocolVersion and answer 400 with -32020 when they differ."},
	{"header-method", "an Mcp-Method that contradicts the body is refused", 4,
		"Headers that do not match the body MUST be refused with 400 and -32020.", validation,
		"Compare Mcp-Method with method before anything runs. A gateway may have routed or authorized by it."},
	{"header-method-missing", "a request without Mcp-Method is refused", 4,
		"A required header that is missing is a mismatch: 400 and -32020.", validation,
		"Refuse requests of 2026-07-28 that lack Mcp-Method."},
	{"header-name", "an Mcp-Name that contradicts the body is refused", 4,
		"Mcp-Name MUST repeat params.name or params.uri; otherwise 400 and -32020.", validation,
		"Compare Mcp-Name with params.name (tools/call, prompts/get) or params.uri (resources/read) before looking the name up."},
	{"version-error", "an unserved version is told which ones are served", 5,
		"400 with -32022, data.supported and data.requested.", versionPage,
		"Answer every version that you do not serve with 400, -32022 and the list: a client retries from it."},
	{"version-before-token", "the version error comes before the token is asked for", 5,
		"The version is judged for each request; a 401 would teach the caller nothing, and the list is public.", versioning,
		"Judge the version before authentication."},
	{"unknown-method", "an unknown method is 404 with -32601", 6,
		"An RPC method that is not implemented MUST be answered 404 with -32601.", versionPage,
		"Set status 404 and keep the JSON-RPC error in the body: the pair tells a client that the endpoint itself is there."},
	{"initialize", "initialize still answers older clients", 7,
		"A server of both eras answers initialize by the older revisions' rules.", versioning,
		"Answer initialize with an older revision, or expect that older clients can't connect."},
	{"initialize-never-stateless", "initialize never hands out 2026-07-28", 7,
		"That revision has no handshake; initialize selects an older one.", versioning,
		"Keep two lists: what is served, and what initialize may negotiate."},
	{"client-metadata-documents", "the authorization server takes client id metadata documents", 8,
		"Authorization servers SHOULD support them and say so in client_id_metadata_document_supported; dynamic registration is deprecated.", registration,
		"Support client id metadata documents and set client_id_metadata_document_supported to true."},
	{"address-pinning", "the authorization server pins the address of a client's document", 8,
		"It reads an address that the caller chose: resolve, refuse what is not public, and dial the very address that was checked.", registration,
		""},
	{"get", "GET without a token is 401, or 405 where no token is needed", 0,
		"A client learns from a 401 where to get a token; 2026-07-28 has no GET, so 405 comes after it.", streamable,
		"Authenticate before judging the HTTP method, then answer 405 with Allow: POST."},
	{"challenge", "401 carries the challenge in WWW-Authenticate", 0,
		"WWW-Authenticate with resource_metadata, or the well-known addresses as a fallback (RFC 9728 section 5.1).", serverPage,
		"Send WWW-Authenticate: Bearer resource_metadata=\"…\". Where a gateway renames it, serve both well-known documents and map the header back if the gateway can."},
	{"invalid-token", "a token that nobody issued is refused with invalid_token", 0,
		"Invalid or expired tokens MUST be answered 401 (RFC 6750 section 3.1: error=\"invalid_token\").", authPage,
		"Verify tokens, and name the reason in the challenge so that clients renew theirs."},
	{"resource-metadata-path", "resource metadata stands at the address with the path", 0,
		"The well-known part goes between host and path: /.well-known/oauth-protected-resource/mcp.", "https://www.rfc-editor.org/rfc/rfc9728#section-3.1",
		"Serve the document there too, as application/json, without asking for a token."},
	{"resource-metadata-root", "resource metadata stands at the root", 0,
		"Clients try the root when the address with the path has nothing.", serverPage,
		"Serve the same document at /.well-known/oauth-protected-resource."},
	{"resource-equality", "resource is the address that the client typed", 0,
		"The value MUST be identical to the resource that the document was asked for, or clients drop it.", "https://www.rfc-editor.org/rfc/rfc9728#section-3.3",
		"Set resource to the public address of the endpoint, from configuration, not from a Host header."},
	{"authorization-server", "the authorization server describes itself", 0,
		"At least one of RFC 8414 metadata and OpenID discovery, with its endpoints.", serverPage,
		"Serve /.well-known/oauth-authorization-server at the issuer that authorization_servers names."},
	{"issuer", "issuer is what the resource metadata names", 0,
		"The issuer MUST be identical to the identifier that the address was made of, to the slash.", "https://www.rfc-editor.org/rfc/rfc8414#section-3.3",
		"Write the issuer the same way in both documents."},
	{"pkce", "the authorization server announces S256", 0,
		"A client MUST refuse to go on when code_challenge_methods_supported is missing.", authPage,
		"Support PKCE with S256 and announce it."},
	{"origin", "a foreign Origin is refused with 403", 0,
		"Servers MUST validate Origin and answer 403 when it is not valid.", streamable,
		"Refuse any Origin that is not on a list: without it a web page can drive the server through its visitor's browser."},
	{"envelope-missing", "a request without _meta is refused", 0,
		"A request that lacks a required field of _meta MUST be refused with 400 and -32602.", base + "#meta",
		"Refuse requests that say 2026-07-28 in the header and nothing in _meta."},
	{"envelope-capabilities", "a request without clientCapabilities is refused", 0,
		"A request that lacks a required field of _meta MUST be refused with 400 and -32602.", base + "#meta",
		"Demand io.modelcontextprotocol/clientCapabilities, an object."},
	{"tasks-undeclared", "tasks are for clients that declare them", 0,
		"tasks/* from a client that did not declare the extension MUST be answered -32021.", tasksPage,
		"Look for io.modelcontextprotocol/tasks in the request's clientCapabilities.extensions before the task; answer 400 with -32021."},
	{"tasks-unknown", "a task that nobody has is -32602", 0,
		"An invalid or nonexistent taskId MUST be answered -32602.", tasksPage,
		"Answer another caller's task like one that never was."},
	{"tasks-header", "an Mcp-Name that contradicts the taskId is refused", 0,
		"The client MUST set Mcp-Name to params.taskId; one that differs is 400 and -32020.", tasksPage,
		"Compare Mcp-Name with params.taskId on tasks/get, tasks/cancel and tasks/update."},
	{"name-base64", "Mcp-Name is taken in its base64 form", 0,
		"Servers MUST decode =?base64?…?= before they compare.", validation,
		"Decode the value, strictly, and compare the result with the body."},
	{"name-comma", "an Mcp-Name with a comma arrives whole", 0,
		"A comma is an ordinary character of the value.", validation,
		"Look at the adapter before the server: several split header values at commas."},
	{"malformed", "half a JSON text is refused", 0,
		"What can't be accepted MUST get an HTTP error; the body may be a JSON-RPC error without id.", sending,
		"Answer 400 with -32700."},
	{"batch", "a batch is refused", 0,
		"The body MUST be one request or notification.", sending,
		"Answer 400 with -32600."},
	{"id-null", "the id null is refused", 0,
		"The id MUST NOT be null.", base + "#requests",
		"Answer 400 with -32600; a 202 leaves the caller waiting."},
	{"notification", "a notification is answered 202 without a body", 0,
		"202 Accepted, no body.", sending,
		"Answer 202 before anything looks for an id."},
	{"id-exact", "a big integer id comes back exactly", 0,
		"The response MUST carry the same id as the request.", base + "#result-responses",
		"Keep the id as text: decoded as floating point, 9007199254740993 becomes …992 and the client waits for ever."},
	{"content-type", "answers are JSON or an event stream", 0,
		"A request MUST be answered with application/json (one object) or text/event-stream.", sending,
		"Set Content-Type on every answer and send one response."},
	{"one-line", "JSON is written on one line", 0,
		"Not demanded; tools that read line by line, the conformance suite among them, see no message in indented JSON.", sending,
		"Write compact JSON."},
	{"server-info", "results name the server", 0,
		"Servers SHOULD put io.modelcontextprotocol/serverInfo in a result's _meta.", base + "#meta",
		"Add serverInfo with name and version to _meta."},
	{"tools", "tools/list is well formed", 0,
		"Each tool has a name and an inputSchema whose type is object.", toolsPage,
		"Mend the tools that are named above; one of them makes strict clients drop the whole list."},
	{"no-session", "no session is needed, and none is made", 0,
		"2026-07-28 has no sessions: ignore Mcp-Session-Id and do not mint it.", streamable,
		"Serve each request by itself."},
	{"redirects", "nothing is redirected", 0,
		"Clients do not follow a redirect of a POST, and must not carry a token along.", streamable,
		"Give out the final address, without a slash too many."},
	{"initialize-unknown", "initialize offers a version to who asks for an unknown one", 0,
		"The server MUST answer with another version that it supports.", lifecycle,
		"Offer your newest older revision instead of an error."},
	{"legacy-list", "an older client is served without a session", 0,
		"Sessions are the server's choice in the older revisions; one that has none can be replicated.", oldTransport,
		"Serve older clients without a session, or keep each of theirs on one instance."},
	{"legacy-results", "older clients get the older shape", 0,
		"resultType, ttlMs and cacheScope are of 2026-07-28.", versioning,
		"Write results by the revision that was negotiated."},
	{"legacy-unknown-method", "an older client gets -32601 for an unknown method", 0,
		"JSON-RPC 2.0: method not found is an error response with the request's id.", "https://www.jsonrpc.org/specification#error_object",
		"Answer with the JSON-RPC error, not with text."},
	{"call", "the named tool answers", 0,
		"A complete result carries content; what the tool refuses is a result with isError.", toolsPage,
		"Look at what the tool says."},
}

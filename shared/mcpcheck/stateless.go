package mcpcheck

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// The error codes that MCP 2026-07-28 and JSON-RPC 2.0 fix.
const (
	codeParse         = -32700
	codeInvalid       = -32600
	codeUnknownMethod = -32601
	codeParams        = -32602
	codeHeader        = -32020
	codeVersion       = -32022
)

// stateless checks what only 2026-07-28 demands: headers against body, the envelope, method and name.
func (r *run) stateless(ctx context.Context) {
	ids := []string{
		"unknown-method", "header-version", "header-method", "header-method-missing", "header-name",
		"envelope-missing", "envelope-capabilities", "name-base64", "name-comma",
	}
	if why := r.unspoken(); why != "" {
		for _, id := range ids {
			r.skip(id, why)
		}
		return
	}
	r.try(ctx, "unknown-method", r.request(nowhere, ""), wants(http.StatusNotFound, codeUnknownMethod))
	mismatch := wants(http.StatusBadRequest, codeHeader)
	list := func() ask { return r.request("tools/list", "") }
	r.try(ctx, "header-version", list().with(versionHeader, handshaken).says("tools/list as "+revision+", the header says "+handshaken), mismatch)
	r.try(ctx, "header-method", list().with(methodHeader, "prompts/list").says("tools/list, Mcp-Method says prompts/list"), mismatch)
	r.try(ctx, "header-method-missing", list().with(methodHeader, "").says("tools/list without Mcp-Method"), mismatch)
	bare := post("tools/list with headers of "+revision+", no _meta", `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}`).
		with(versionHeader, revision).with(methodHeader, "tools/list")
	r.try(ctx, "envelope-missing", bare, wants(http.StatusBadRequest, codeParams))
	r.try(ctx, "envelope-capabilities", r.message("3", "tools/list", r.envelope(revision, false)).says("tools/list, no clientCapabilities in _meta"),
		wants(http.StatusBadRequest, codeParams))
	r.names(ctx, mismatch)
}

// namedRequest is the request whose Mcp-Name can be tried without doing anything: what it names does not exist.
func (r *run) namedRequest(name string) (q ask, ok bool) {
	quoted, _ := json.Marshal(name)
	for _, m := range []struct{ capability, method, member string }{
		{"tools", "tools/call", "name"}, {"prompts", "prompts/get", "name"}, {"resources", "resources/read", "uri"},
	} {
		if r.offers[m.capability] {
			return r.request(m.method, `"`+m.member+`":`+string(quoted)+`,`), true
		}
	}
	return ask{}, false
}

func (r *run) names(ctx context.Context, mismatch func(answer) (Status, string)) {
	q, ok := r.namedRequest("mcpcheck-no-such")
	if !ok {
		for _, id := range []string{"header-name", "name-base64", "name-comma"} {
			r.skip(id, "the server offers nothing that has a name")
		}
		return
	}
	r.try(ctx, "header-name", q.with(nameHeader, "another-name").says(q.header[methodHeader]+" of a name that nobody has, Mcp-Name says another"), mismatch)
	accepted := func(a answer) (Status, string) {
		if a.code() == codeHeader || a.response() == nil || a.status >= 500 {
			return Fail, ""
		}
		return Pass, a.words() + ": the name arrived"
	}
	name := "mcpcheck no such ñandú"
	q, _ = r.namedRequest(name)
	r.try(ctx, "name-base64", q.with(nameHeader, headerValue(name)).
		says(q.header[methodHeader]+", a name outside ASCII in the base64 form"), accepted)
	name = "mcpcheck, no such"
	q, _ = r.namedRequest(name)
	r.try(ctx, "name-comma", q.with(nameHeader, name).says(q.header[methodHeader]+", a name with a comma"), accepted)
}

// shapes checks the door with what is no proper message, in the newest era that the server speaks.
func (r *run) shapes(ctx context.Context) {
	ids := []string{"origin", "malformed", "batch", "id-null"}
	if why := r.closed(); why != "" {
		for _, id := range ids {
			r.skip(id, why)
		}
		return
	}
	r.try(ctx, "origin", r.own("tools/list").with("Origin", "https://mcpcheck.invalid").says("tools/list from Origin https://mcpcheck.invalid"),
		func(a answer) (Status, string) { return either(a.status == http.StatusForbidden, Fail), "" })
	version := handshaken
	if r.modern {
		version = revision
	}
	raw := func(sent, body string) ask {
		return post(sent, body).with(versionHeader, version).with(methodHeader, "tools/list")
	}
	message := func(id string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/list","params":{` + r.envelope(revision, true) + `}}`
	}
	r.try(ctx, "malformed", raw("half a JSON text", `{"jsonrpc":"2.0","id":1,"method":`), refusal(codeParse))
	r.try(ctx, "batch", raw("a batch of two", "["+message("1")+","+message("2")+"]"), refusal(codeInvalid))
	r.try(ctx, "id-null", raw("tools/list, id null", message("null")), refusal(codeInvalid))
}

// refusal expects a 4xx; a JSON-RPC error in its body is what the specification leaves open and clients hope for.
func refusal(code int64) func(answer) (Status, string) {
	return func(a answer) (Status, string) {
		switch {
		case a.status < 400 || a.status >= 500:
			return Fail, ""
		case a.code() != code:
			return Warn, ""
		}
		return Pass, ""
	}
}

// observed judges what all answers have in common.
func (r *run) observed() {
	r.redirected()
	if why := r.unspoken(); why != "" {
		for _, id := range []string{"result-type", "cache-hints", "server-info", "tools", "id-exact", "content-type", "one-line", "no-session"} {
			r.skip(id, why)
		}
		return
	}
	const sent = "server/discover, tools/list"
	r.results2026(sent)
	r.toolList()
	r.ids()
	r.frames()
	switch minted := first(r.posts, func(a *answer) bool { return a.header.Get(sessionHeader) != "" }); {
	case r.offers["tools"] && r.list.result() == nil:
		r.note("no-session", Fail, "tools/list without a session", r.list.words())
	case minted != nil:
		r.note("no-session", Warn, sent, "an answer carries Mcp-Session-Id")
	default:
		r.note("no-session", Pass, sent, "answered without a session, none was made")
	}
}

func (r *run) redirected() {
	switch {
	case len(r.redirects) > 0:
		r.note("redirects", Fail, "POST", r.redirects[0])
	case len(r.moved) > 0:
		r.note("redirects", Warn, "GET of a document", r.moved[0])
	default:
		r.note("redirects", Pass, "every request", "none")
	}
}

func first(list []answer, is func(*answer) bool) *answer {
	for i := range list {
		if is(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

// results2026 is the second and the third point of the list.
func (r *run) results2026(sent string) {
	var untyped, unhinted, nameless []string
	for _, q := range []struct {
		name string
		a    *answer
	}{{"server/discover", r.discover}, {"tools/list", r.list}} {
		found := q.a.result()
		if found == nil {
			continue
		}
		if str(found["resultType"]) != "complete" {
			untyped = append(untyped, q.name+" has resultType "+string(found["resultType"]))
		}
		var ttl int64
		scope := str(found["cacheScope"])
		if json.Unmarshal(found["ttlMs"], &ttl) != nil || ttl < 0 || scope != "public" && scope != "private" {
			unhinted = append(unhinted, q.name+" has ttlMs "+string(found["ttlMs"])+", cacheScope "+string(found["cacheScope"]))
		}
		if str(object(object(found["_meta"])["io.modelcontextprotocol/serverInfo"])["name"]) == "" {
			nameless = append(nameless, q.name+" has no serverInfo in _meta")
		}
	}
	r.all("result-type", sent, Fail, untyped, "complete")
	r.all("cache-hints", sent, Fail, unhinted, "both are there")
	r.all("server-info", sent, Warn, nameless, r.server)
}

func (r *run) all(id, sent string, otherwise Status, wrong []string, right string) {
	if len(wrong) > 0 {
		r.note(id, otherwise, sent, strings.Join(wrong, "; "))
		return
	}
	r.note(id, Pass, sent, right)
}

func (r *run) toolList() {
	if !r.offers["tools"] && r.list.result() == nil {
		r.skip("tools", "the server offers no tools")
		return
	}
	var list []tool
	err := json.Unmarshal(r.list.result()["tools"], &list)
	var wrong []string
	for i, t := range list {
		if t.Name == "" || len(t.Name) > 128 || str(t.InputSchema["type"]) != "object" {
			wrong = append(wrong, fmt.Sprintf("tool %d %q lacks a name of at most 128 bytes or an inputSchema of type object", i+1, t.Name))
		}
	}
	if err != nil || r.list.result() == nil {
		wrong = []string{r.list.words() + ", no list of tools in it"}
	}
	r.all("tools", "tools/list", Fail, wrong, "well formed")
}

// ids: the id of tools/list is 2^53+1.
func (r *run) ids() {
	m := r.list.response()
	switch {
	case m == nil:
		r.note("id-exact", Fail, "tools/list with id "+bigID, r.list.words())
	case string(m.id) != bigID:
		r.note("id-exact", Fail, "tools/list with id "+bigID, "id "+string(m.id))
	default:
		r.note("id-exact", Pass, "tools/list with id "+bigID, "the same")
	}
}

func (r *run) frames() {
	ok := func(a *answer) bool { return a.err == nil && a.status == http.StatusOK }
	typed := first(r.posts, func(a *answer) bool {
		return ok(a) && (a.media != jsonType && a.media != eventStream || a.response() == nil)
	})
	if typed == nil {
		r.note("content-type", Pass, "every request", "JSON or an event stream, with one response each")
	} else {
		r.note("content-type", Fail, "every request", "a 200 of type "+typed.header.Get("Content-Type")+", "+typed.words())
	}
	lines := first(r.posts, func(a *answer) bool { return ok(a) && strings.ContainsAny(strings.TrimSpace(string(a.body)), "\r\n") })
	r.note("one-line", either(lines == nil, Warn), "every request", map[bool]string{true: "JSON on one line", false: "JSON over several lines"}[lines == nil])
}

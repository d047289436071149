package mcpcheck

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

const (
	revision   = "2026-07-28" // checked against
	handshaken = "2025-06-18" // asked for in the initialize era
	unknown    = "1999-01-01" // served by nobody
	nowhere    = "mcpcheck/no-such-method"
	// bigID is 2^53+1: a server that reads numbers as floating point gives another one back.
	bigID = "9007199254740993"
	// nobody is a token that no issuer signed.
	nobody = "mcpcheck.not.a-token"
)

const (
	versionHeader = "MCP-Protocol-Version"
	methodHeader  = "Mcp-Method"
	nameHeader    = "Mcp-Name"
	sessionHeader = "Mcp-Session-Id"
)

// tool is what a client needs of one.
type tool struct {
	Name        string                     `json:"name"`
	InputSchema map[string]json.RawMessage `json:"inputSchema"`
	Annotations struct {
		ReadOnly bool `json:"readOnlyHint"`
	} `json:"annotations"`
}

// post is a message to the endpoint, as every client sends it.
func post(sent, body string) ask {
	return ask{sent: sent, method: http.MethodPost, body: body, token: true, header: map[string]string{
		"Content-Type": jsonType, "Accept": jsonType + ", " + eventStream,
	}}
}

// envelope is the _meta of a request of 2026-07-28; what is empty is left out.
func (a *asker) envelope(version string, capabilities bool) string {
	info, _ := json.Marshal(map[string]string{"name": "buzon-check", "version": strings.TrimPrefix(a.agent, "buzon-check/")})
	out := `"_meta":{"io.modelcontextprotocol/clientInfo":` + string(info)
	if version != "" {
		out += `,"io.modelcontextprotocol/protocolVersion":"` + version + `"`
	}
	if capabilities {
		out += `,"io.modelcontextprotocol/clientCapabilities":{}`
	}
	return out + "}"
}

// declaring is a request of a client that takes tasks.
func (a *asker) declaring(method, params string) ask {
	a.nextID++
	meta := strings.TrimSuffix(a.envelope(revision, false), "}") +
		`,"io.modelcontextprotocol/clientCapabilities":{"extensions":{"` + tasksExtension + `":{}}}}`
	return a.message(strconv.Itoa(a.nextID), method, params+meta)
}

// request is one of 2026-07-28. params are members, each followed by a comma.
func (a *asker) request(method, params string) ask {
	a.nextID++
	return a.message(strconv.Itoa(a.nextID), method, params+a.envelope(revision, true))
}

func (a *asker) message(id, method, params string) ask {
	q := post(method+" as "+revision, `{"jsonrpc":"2.0","id":`+id+`,"method":"`+method+`","params":{`+params+`}}`)
	q.modern = true
	q.header[versionHeader], q.header[methodHeader] = revision, method
	return q
}

// older is a request of the handshake era.
func (a *asker) older(method, params string) ask {
	a.nextID++
	q := post(method+" as "+handshaken, `{"jsonrpc":"2.0","id":`+strconv.Itoa(a.nextID)+`,"method":"`+method+`","params":{`+params+`}}`)
	if q.opens = method == "initialize"; q.opens {
		return q
	}
	return q.with(versionHeader, handshaken)
}

// own is a request of the newest era that the server speaks.
func (r *run) own(method string) ask {
	if r.modern {
		return r.request(method, "")
	}
	return r.older(method, "").with(sessionHeader, r.session)
}

// arrive finds out what the server is: whether it answers, which eras it speaks, whether it asks for a token.
func (r *run) arrive(ctx context.Context) error {
	r.nextID++
	old := r.message(strconv.Itoa(r.nextID), "server/discover", r.envelope(unknown, true)).
		with(versionHeader, unknown).says("server/discover as " + unknown + ", no token")
	old.token, old.modern = false, false
	version := r.send(ctx, old)
	if version.err != nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		return fmt.Errorf("%w: %w", ErrUnreachable, version.err)
	}
	r.meet(ctx)
	r.versionError(ctx, old, version)
	return nil
}

// meet asks what any client asks first, as a stranger and then with the token.
func (r *run) meet(ctx context.Context) {
	discover := r.send(ctx, r.request("server/discover", "").stranger())
	list := r.send(ctx, r.bigList().stranger())
	r.protected = refused(&discover) || refused(&list)
	r.stranger = list
	if !refused(&list) {
		r.stranger = discover
	}
	public := [2]answer{discover, list}
	if r.protected && r.options.Token != "" {
		if refused(&discover) {
			discover = r.send(ctx, r.request("server/discover", ""))
		}
		if refused(&list) {
			list = r.send(ctx, r.bigList())
		}
	}
	r.discover, r.list = &discover, &list
	r.learn()
	r.discovered(public)
}

// bigList is tools/list with an id that floating point can't hold.
func (a *asker) bigList() ask {
	return a.message(bigID, "tools/list", a.envelope(revision, true))
}

func refused(a *answer) bool {
	return a.err == nil && (a.status == http.StatusUnauthorized || a.status == http.StatusForbidden)
}

// learn reads what the first answers say of the server.
func (r *run) learn() {
	found := r.discover.result()
	r.versions = texts(found["supportedVersions"])
	r.offers = map[string]bool{}
	for name := range object(found["capabilities"]) {
		r.offers[name] = true
	}
	r.hasTasks = object(object(object(found["capabilities"])["extensions"])[tasksExtension]) != nil
	info := object(object(found["_meta"])["io.modelcontextprotocol/serverInfo"])
	r.server = strings.TrimSpace(str(info["name"]) + " " + str(info["version"]))
	r.modern = slices.Contains(r.versions, revision) || r.list.result()["resultType"] != nil
	r.keep(r.list.result())
}

func (r *run) keep(result map[string]json.RawMessage) {
	if json.Unmarshal(result["tools"], &r.tools) != nil {
		r.tools = nil
	}
	r.cursor = str(result["nextCursor"])
}

// discovered is the first point of the list.
func (r *run) discovered(public [2]answer) {
	sent := "server/discover as " + revision
	if r.protected && r.options.Token == "" && r.discover.result() == nil {
		r.skip("discover", r.closed())
	} else {
		r.judge("discover", sent, *r.discover, func(a answer) (Status, string) {
			if slices.Contains(r.versions, revision) && object(a.result()["capabilities"]) != nil {
				return Pass, "serves " + strings.Join(r.versions, ", ")
			}
			if a.result() != nil {
				return Fail, a.words() + ", supportedVersions: " + strings.Join(texts(a.result()["supportedVersions"]), ", ")
			}
			return Fail, ""
		})
	}
	answered := func(i int) bool { return public[i].result() != nil }
	both := "both without a token"
	switch {
	case answered(1) && !answered(0):
		r.note("discover-public", Fail, both, "tools/list answers strangers, server/discover "+public[0].words())
	case answered(0):
		r.note("discover-public", Pass, both, "server/discover answers strangers")
	case refused(&public[0]) && refused(&public[1]):
		r.note("discover-public", Pass, both, "both ask for a token")
	default:
		r.skip("discover-public", "neither answers")
	}
}

// versionError is the fifth point of the list, and that the error comes before the token is asked for.
func (r *run) versionError(ctx context.Context, q ask, a answer) {
	first := "version-before-token"
	switch {
	case refused(&a):
		r.note(first, Fail, q.sent, a.words())
		if r.options.Token == "" {
			r.skip("version-error", r.closed())
			return
		}
		q.token = true
		q = q.says("server/discover as " + unknown)
		a = r.send(ctx, q)
	case r.protected:
		r.note(first, Pass, q.sent, a.words())
	default:
		r.skip(first, "the server asks for no token")
	}
	supported := texts(a.data()["supported"])
	if len(r.versions) == 0 {
		r.versions = supported
	}
	r.modern = r.modern || a.code() == codeVersion && slices.Contains(supported, revision)
	r.judge("version-error", q.sent, a, func(a answer) (Status, string) {
		switch {
		case a.status != http.StatusBadRequest || a.code() != codeVersion:
			return Fail, ""
		case len(supported) == 0 || slices.Contains(supported, unknown):
			return Fail, a.words() + ", data.supported does not list what is served"
		case str(a.data()["requested"]) != unknown:
			return Fail, a.words() + ", data.requested is not what was asked for"
		}
		return Pass, "400, -32022, supported: " + strings.Join(supported, ", ")
	})
}

// headerValue is a value as a header carries it: plain where that is possible, else in the base64 form.
func headerValue(s string) string {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
		}
	}
	if strings.TrimSpace(s) != s || strings.HasPrefix(s, "=?base64?") {
		return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
	}
	return s
}

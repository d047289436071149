package mcpcheck

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// handshake checks the initialize era: it is there for older clients, and never hands out the revision that has no handshake.
func (r *run) handshake(ctx context.Context) {
	ids := []string{
		"initialize", "initialize-never-stateless", "initialize-unknown", "notification", "legacy-list", "legacy-results", "legacy-unknown-method",
	}
	if why := r.closed(); why != "" {
		for _, id := range ids {
			r.skip(id, why)
		}
		return
	}
	r.initialize(ctx)
	r.notification(ctx)
	if !r.legacy {
		for _, id := range []string{"initialize-unknown", "legacy-list", "legacy-results", "legacy-unknown-method"} {
			r.skip(id, "the server does not answer initialize")
		}
		return
	}
	r.try(ctx, "initialize-unknown", r.opening(unknown), func(a answer) (Status, string) {
		got := str(a.result()["protocolVersion"])
		switch {
		case a.status >= 500, got == unknown, got >= revision:
			return Fail, a.words() + ", protocolVersion " + got
		case got == "":
			return Warn, ""
		}
		return Pass, "offers " + got
	})
	r.afterwards(ctx)
}

func (r *run) opening(version string) ask {
	return r.older("initialize", `"protocolVersion":"`+version+`","capabilities":{},"clientInfo":{"name":"buzon-check","version":"1"}`).
		says("initialize, asking for " + version)
}

// initialize is the seventh point of the list.
func (r *run) initialize(ctx context.Context) {
	a := r.send(ctx, r.opening(handshaken))
	got := str(a.result()["protocolVersion"])
	r.legacy = got != ""
	r.session = a.header.Get(sessionHeader)
	r.judge("initialize", "initialize, asking for "+handshaken, a, func(a answer) (Status, string) {
		switch {
		case got >= revision:
			return Fail, "negotiates " + got
		case got != "" && object(a.result()["capabilities"]) != nil:
			return Pass, "negotiates " + got
		case got == "" && a.code() != 0 && r.modern:
			return Warn, a.words()
		}
		return Fail, ""
	})
	r.try(ctx, "initialize-never-stateless", r.opening(revision), func(a answer) (Status, string) {
		switch got := str(a.result()["protocolVersion"]); {
		case got >= revision:
			return Fail, "negotiates " + got
		case got != "":
			return Pass, "offers " + got
		}
		return Pass, ""
	})
}

// leave ends the sessions that the server made for us. What it answers is its own business.
func (r *run) leave(ctx context.Context) {
	for _, s := range r.sessions {
		r.send(ctx, ask{method: http.MethodDelete, token: true, header: map[string]string{sessionHeader: s, versionHeader: handshaken}})
	}
}

func (r *run) notification(ctx context.Context) {
	q := post("notifications/cancelled as "+revision, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"mcpcheck-none",`+
		r.envelope(revision, true)+`}}`).with(versionHeader, revision).with(methodHeader, "notifications/cancelled")
	if r.legacy {
		q = post("notifications/initialized", `{"jsonrpc":"2.0","method":"notifications/initialized"}`).
			with(versionHeader, handshaken).with(sessionHeader, r.session)
	}
	r.try(ctx, "notification", q, func(a answer) (Status, string) {
		return either(a.status == http.StatusAccepted && len(a.body) == 0 && len(a.messages) == 0, Fail), ""
	})
}

// afterwards is what a client of the handshake era sends after it.
func (r *run) afterwards(ctx context.Context) {
	a := r.try(ctx, "legacy-list", r.older("tools/list", "").says("tools/list as "+handshaken+", no session"), func(a answer) (Status, string) {
		switch {
		case a.result() != nil:
			return Pass, ""
		case a.code() == codeUnknownMethod && !r.offers["tools"]:
			return Pass, ""
		case r.session != "" && a.status < 500:
			return Warn, a.words() + ": it wants a session"
		}
		return Fail, ""
	})
	if found := a.result(); found == nil {
		r.skip("legacy-results", "tools/list was not answered")
	} else {
		var newer []string
		for _, name := range []string{"resultType", "ttlMs", "cacheScope"} {
			if found[name] != nil {
				newer = append(newer, name)
			}
		}
		r.note("legacy-results", either(newer == nil, Warn), "tools/list as "+handshaken, map[bool]string{
			true: "nothing of " + revision, false: "carries " + strings.Join(newer, ", ")}[newer == nil])
	}
	r.try(ctx, "legacy-unknown-method", r.older(nowhere, "").with(sessionHeader, r.session), func(a answer) (Status, string) {
		return either(a.code() == codeUnknownMethod, Fail), ""
	})
}

// call calls the one tool that the caller named, without arguments, and only when the server says that it changes nothing.
func (r *run) call(ctx context.Context) {
	name := r.options.Call
	switch {
	case name == "":
		r.skip("call", "no tool was named")
		return
	case r.closed() != "":
		r.skip("call", r.closed())
		return
	}
	t := r.find(ctx, name)
	switch {
	case t == nil:
		r.note("call", Fail, "tools/list", "there is no tool "+name)
		return
	case !t.Annotations.ReadOnly:
		r.skip("call", "the tool "+name+" is not marked readOnlyHint: it is not called")
		return
	}
	quoted, _ := json.Marshal(name)
	params := `"name":` + string(quoted) + `,"arguments":{}`
	q := r.older("tools/call", params).with(sessionHeader, r.session)
	if r.modern {
		q = r.message(strconv.Itoa(r.nextID), "tools/call", params+","+r.envelope(revision, true)).with(nameHeader, headerValue(name))
	}
	r.try(ctx, "call", q.says("tools/call "+name+" without arguments"), func(a answer) (Status, string) {
		found := a.result()
		var content []json.RawMessage
		complete := json.Unmarshal(found["content"], &content) == nil && (!r.modern || str(found["resultType"]) == "complete")
		switch {
		case complete && string(found["isError"]) == "true":
			return Pass, "a complete result that says isError"
		case complete:
			return Pass, "a complete result"
		case str(found["resultType"]) == "input_required", a.code() == codeParams:
			return Warn, a.words() + ": it wants more than nothing"
		}
		return Fail, ""
	})
}

// find looks through at most three pages of tools.
func (r *run) find(ctx context.Context, name string) *tool {
	if len(r.tools) == 0 && !r.modern {
		a := r.send(ctx, r.own("tools/list"))
		r.keep(a.result())
	}
	for range 3 {
		for i := range r.tools {
			if r.tools[i].Name == name {
				return &r.tools[i]
			}
		}
		if r.cursor == "" {
			return nil
		}
		cursor, _ := json.Marshal(r.cursor)
		q := r.older("tools/list", `"cursor":`+string(cursor)).with(sessionHeader, r.session)
		if r.modern {
			q = r.request("tools/list", `"cursor":`+string(cursor)+`,`)
		}
		a := r.send(ctx, q)
		r.keep(a.result())
	}
	return nil
}

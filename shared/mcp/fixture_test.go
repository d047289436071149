package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/mcp"
	"github.com/buzon-mail/buzon/shared/tracecontext"
)

// caller is a grant.
type caller string

func (c caller) GrantID() string { return string(c) }

// door knows three tokens: good, limited (its limit is used up) and broken (the verifier has a bug), and reports an outage
// for "down".
type door struct{}

func (door) Authenticate(_ context.Context, h http.Header) (mcp.Caller, error) {
	token, ok := strings.CutPrefix(h.Get("Authorization"), "Bearer ")
	switch {
	case !ok:
		return nil, apperr.New(apperr.Unauthenticated, "missing_token", "A token is needed.", "Sign in.")
	case token == "good", token == "other", token == "limited", token == "unlimited":
		return caller("grant_" + token), nil
	case token == "down":
		return nil, apperr.New(apperr.Unavailable, "", "The key set can't be read.").Because(errCanary)
	case token == "broken":
		return nil, errCanary
	case token == "nobody":
		return nil, nil //nolint:nilnil // the fault under test
	}
	return nil, apperr.New(apperr.Unauthenticated, "invalid_token", "The token does not verify.")
}

func (door) Challenge(code string, scopes []string) (string, map[string]any) {
	header := `Bearer resource_metadata="https://buzon.test/.well-known/oauth-protected-resource/mcp"`
	facts := map[string]any{"resourceMetadata": "https://buzon.test/.well-known/oauth-protected-resource/mcp", "kind": "forged"}
	if code != "" {
		header += `, error="` + code + `"`
		facts["error"] = code
	}
	if scopes != nil {
		header += `, scope="` + strings.Join(scopes, " ") + `"`
		facts["scope"] = strings.Join(scopes, " ")
	}
	return header, facts
}

// meter is a limiter whose state follows from the key.
type meter struct{ taken, peeked int }

func (m *meter) Take(_ context.Context, key string) mcp.Limit {
	m.taken++
	l := m.state(key)
	if l.Allowed && l.Limit > 0 {
		l.Remaining--
	}
	return l
}

func (m *meter) Peek(_ context.Context, key string) mcp.Limit {
	m.peeked++
	return m.state(key)
}

func (m *meter) state(key string) mcp.Limit {
	switch key {
	case "grant_limited":
		return mcp.Limit{Limit: 600, Reset: 12300 * time.Millisecond, RetryAfter: 1001 * time.Millisecond}
	case "grant_unlimited":
		return mcp.Limit{Allowed: true}
	}
	return mcp.Limit{Allowed: true, Limit: 600, Remaining: 600, Reset: 59001 * time.Millisecond}
}

var errCanary = errors.New("canary-7f3a: password=hunter2")

// toolbox has a tool for each way to answer.
type toolbox struct {
	calls    []mcp.CallRequest
	lists    []mcp.ListRequest
	released int
	started  chan struct{}        // wait: closed when it runs
	trace    tracecontext.Context // of the last call
}

const oneTool = `{"name":"echo","description":"Says what it was told.","inputSchema":{"type":"object"}}`

func (b *toolbox) ListTools(_ context.Context, r *mcp.ListRequest) (mcp.ListResult, error) {
	b.lists = append(b.lists, *r)
	switch r.Cursor {
	case "":
		return mcp.ListResult{Items: [][]byte{[]byte(oneTool), []byte("," + strings.Replace(oneTool, "echo", "fail", 1))}, NextCursor: `page "2"`}, nil
	case `page "2"`:
		return mcp.ListResult{Items: [][]byte{[]byte(strings.Replace(oneTool, "echo", "last", 1))}, NextCursor: "broken"}, nil
	case "broken":
		return mcp.ListResult{}, errCanary
	}
	return mcp.ListResult{}, mcp.ErrUnknown
}

func (b *toolbox) CallTool(ctx context.Context, r *mcp.CallRequest) (*mcp.CallResult, error) {
	b.trace = tracecontext.From(ctx)
	kept := *r
	kept.Arguments = slices.Clone(r.Arguments)
	kept.Capabilities = slices.Clone(r.Capabilities)
	b.calls = append(b.calls, kept)
	result := func(text string) (*mcp.CallResult, error) {
		return &mcp.CallResult{JSON: []byte(text), Released: func() { b.released++ }}, nil
	}
	switch r.Name {
	case "echo":
		if r.Arguments == nil {
			return result(`{"said":null}`)
		}
		return result(`{"said":` + string(r.Arguments) + `}`)
	case "lines":
		return result("{\n  \"data\": [\"\\u00f1\", \"ñ \\\\ \u2028 😀\"]\n}\n")
	case "array":
		return result(`[1,2]`)
	case "meta":
		return &mcp.CallResult{JSON: []byte(`{}`), Meta: []byte("\"io.github.buzon-mail/untrusted\":[\"/data\"],\n \"a\":1")}, nil
	case "fail":
		return &mcp.CallResult{JSON: []byte(`{"kind":"invalid"}`), IsError: true}, nil
	case "image":
		return &mcp.CallResult{Content: json.RawMessage("[{\"type\":\"image\",\n\"data\":\"AA==\",\"mimeType\":\"image/png\"}]")}, nil
	case "scoped":
		return nil, &mcp.ScopeError{Scopes: []string{"emails:read", "emails:write"}}
	case "panics":
		panic(errCanary)
	case "internal":
		return nil, errCanary
	case "nothing":
		return nil, nil //nolint:nilnil // the fault under test
	case "latin1":
		return result("{\"a\":\"\xf1\"}")
	case "scalar_content":
		return &mcp.CallResult{Content: json.RawMessage(`{}`)}, nil
	case "down":
		return nil, apperr.New(apperr.Unavailable, "", "The store is down.").Because(errCanary)
	case "wait":
		close(b.started)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if tool := askers()[r.Name]; tool != nil {
		return tool(ctx, r)
	}
	return nil, mcp.ErrUnknown
}

// rig is a server with all its parts at hand.
type rig struct {
	*mcp.Server
	tools *toolbox
	meter *meter
	log   *bytes.Buffer
}

func newRig(tb testing.TB, change func(*mcp.Deps, *mcp.Options)) *rig {
	tb.Helper()
	r := &rig{tools: &toolbox{}, meter: &meter{}, log: &bytes.Buffer{}}
	d := mcp.Deps{
		Authenticator: door{}, Challenger: door{}, Limiter: r.meter, Tools: r.tools,
		Resources: shelf{}, Prompts: book{}, Completer: guesser{}, Sealer: sealer{}, Rand: &counter{},
		Logger:    slog.New(slog.NewJSONHandler(r.log, nil)),
		RequestID: func(context.Context) string { return "req_1" },
		Now:       func() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) },
	}
	o := mcp.Options{
		Name: "buzon", Title: "Buzón", Version: "0.1.0", Instructions: "Values in results are \"data\".",
		PublicOrigin: "https://buzon.test", AllowedOrigins: []string{"https://APP.example:443/"}, AllowedHeaders: []string{"X-Workspace-Id"},
	}
	if change != nil {
		change(&d, &o)
	}
	var err error
	if r.Server, err = mcp.New(d, o); err != nil {
		tb.Fatal(err)
	}
	return r
}

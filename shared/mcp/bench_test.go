package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/mcp"
	"github.com/buzon-mail/buzon/shared/ratelimit"
)

// sink is a ResponseWriter that keeps nothing but counts the bytes.
type sink struct {
	h http.Header
	n int
}

func (s *sink) Header() http.Header         { return s.h }
func (s *sink) WriteHeader(int)             {}
func (s *sink) Write(b []byte) (int, error) { s.n += len(b); return len(b), nil }

// fixed answers like an operation that costs nothing.
type fixed struct {
	call *mcp.CallResult
	list mcp.ListResult
}

func (f fixed) CallTool(context.Context, *mcp.CallRequest) (*mcp.CallResult, error) {
	return f.call, nil
}
func (f fixed) ListTools(context.Context, *mcp.ListRequest) (mcp.ListResult, error) {
	return f.list, nil
}

const (
	benchCall = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"emails_list","arguments":{"status":"processed","limit":10},` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0.0"},` +
		`"io.modelcontextprotocol/clientCapabilities":{}}}}`
	benchList = `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0.0"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	benchReply = `{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","content":[{"type":"text","text":"{\"data\":{\"ok\":true}}"}]}}`
)

type benchBody struct{ bytes.Reader }

func (*benchBody) Close() error { return nil }

// run posts body again and again with the headers of method and name.
func run(b *testing.B, h http.Handler, body, method, name string) {
	b.Helper()
	header := http.Header{}
	for k, v := range map[string]string{
		"Authorization": "Bearer good", "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, "User-Agent": "bench",
	} {
		header.Set(k, v)
	}
	if name != "" {
		header.Set("Mcp-Name", name)
	}
	r := (&http.Request{Method: http.MethodPost, Header: header, Host: "buzon.test", ContentLength: int64(len(body))}).WithContext(b.Context())
	w := &sink{h: http.Header{}}
	reader := &benchBody{}
	r.Body = reader
	raw := []byte(body)
	b.ReportAllocs()
	for b.Loop() {
		clear(w.h)
		w.n = 0
		reader.Reset(raw)
		h.ServeHTTP(w, r)
	}
	if w.n == 0 {
		b.Fatal("nothing was written")
	}
	b.ReportMetric(float64(w.n), "reply-B")
}

// floor decodes the request with encoding/json and writes a fixed reply: no checks, no token, no headers beyond two.
func floor(reply []byte) http.Handler {
	length := strconv.Itoa(len(reply))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Name      string          `json:"name"`
				Arguments json.RawMessage `json:"arguments"`
				Meta      json.RawMessage `json:"_meta"`
			} `json:"params"`
		}
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", length)
		_, _ = w.Write(reply)
	})
}

func bigList() mcp.ListResult {
	var l mcp.ListResult
	for i := range 60 {
		tool := `{"name":"tool_` + strconv.Itoa(i) + `","description":"` + strings.Repeat("x", 950) + `","inputSchema":{"type":"object"}}`
		if i > 0 {
			tool = "," + tool
		}
		l.Items = append(l.Items, []byte(tool))
	}
	return l
}

// benchServer is complete but for the cost of verifying a token: real limiter, all checks.
func benchServer(b *testing.B, log *slog.Logger) http.Handler {
	b.Helper()
	limiter, err := ratelimit.New(ratelimit.Options{PerMinute: 65535, Now: countingClock()})
	if err != nil {
		b.Fatal(err)
	}
	s, err := mcp.New(mcp.Deps{
		Authenticator: door{}, Challenger: door{}, Limiter: limiter, Logger: log,
		Tools: fixed{&mcp.CallResult{JSON: []byte(`{"data":{"ok":true}}`)}, bigList()},
	}, mcp.Options{Name: "buzon", Title: "Buzón", Version: "0.1.0", PublicOrigin: "https://buzon.test"})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// countingClock runs a millisecond a look, so that the limit is never reached.
func countingClock() func() time.Time {
	t := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	return func() time.Time {
		t = t.Add(time.Millisecond)
		return t
	}
}

// BenchmarkCall: budget of tools/call, 0.7 of the floor.
func BenchmarkCall(b *testing.B) {
	b.Run("floor", func(b *testing.B) { run(b, floor([]byte(benchReply)), benchCall, "tools/call", "emails_list") })
	b.Run("mcp", func(b *testing.B) { run(b, benchServer(b, nil), benchCall, "tools/call", "emails_list") })
	b.Run("mcp-logged", func(b *testing.B) {
		run(b, benchServer(b, slog.New(slog.NewJSONHandler(io.Discard, nil))), benchCall, "tools/call", "emails_list")
	})
}

// BenchmarkList: budget of tools/list, once the decoding of the request and the writing of the same bytes.
func BenchmarkList(b *testing.B) {
	s := benchServer(b, nil)
	var reply []byte
	for _, item := range bigList().Items {
		reply = append(reply, item...)
	}
	b.Run("floor", func(b *testing.B) { run(b, floor(reply), benchList, "tools/list", "") })
	b.Run("mcp", func(b *testing.B) { run(b, s, benchList, "tools/list", "") })
}

package optool_test

import (
	"encoding/json"
	"testing"

	"github.com/buzon-mail/buzon/shared/mcp"
	"github.com/buzon-mail/buzon/shared/op"
)

const echoRequest = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}},"name":"echo_send","arguments":{"text":"hello there, how are you"}}}`

// BenchmarkFloor is what the budgets are multiples of: decode the whole request with encoding/json, write a fixed reply.
func BenchmarkFloor(b *testing.B) {
	type frame struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  string          `json:"method"`
		Params  struct {
			Meta      map[string]any `json:"_meta"`
			Name      string         `json:"name"`
			Arguments map[string]any `json:"arguments"`
		} `json:"params"`
	}
	reply := make([]byte, 300)
	out := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		var f frame
		if err := json.Unmarshal([]byte(echoRequest), &f); err != nil {
			b.Fatal(err)
		}
		out = append(out[:0], reply...)
	}
}

func benchmarkCall(b *testing.B, name, arguments string) {
	w := newWorld(b)
	w.raw = json.RawMessage(`{"id":"rule_01J00000000000000000000000","slug":"s"}`)
	r := &mcp.CallRequest{Caller: w.caller("notes:write rules:write", op.Admin), Version: mcp.V20260728, Name: name, Arguments: json.RawMessage(arguments)}
	b.ReportAllocs()
	for b.Loop() {
		got, err := w.tools.CallTool(b.Context(), r)
		if err != nil || got.IsError {
			b.Fatalf("%s %v", got.JSON, err)
		}
		got.Released()
	}
}

func BenchmarkEcho(b *testing.B) {
	benchmarkCall(b, "echo_send", `{"text":"hello there, how are you"}`)
}

func BenchmarkGet(b *testing.B) {
	benchmarkCall(b, "notes_get", `{"id":"`+noteID+`","include":"text"}`)
}

func BenchmarkListFilters(b *testing.B) {
	benchmarkCall(b, "notes_list", `{"limit":20,"status":["open","closed"],"q":"invoice","open":true}`)
}

func BenchmarkNestedBody(b *testing.B) {
	benchmarkCall(b, "rules_upsert", `{"slug":"invoices","conditions":[{"field":"from","words":["a","b"],"inner":{"depth":3}},{"field":"to","words":["c"]}],"enabled":true}`)
}

func BenchmarkToolsList(b *testing.B) {
	w := newWorld(b)
	r := &mcp.ListRequest{Caller: w.caller("notes:write rules:write", op.Admin), Version: mcp.V20260728}
	out := make([]byte, 0, 64<<10)
	b.ReportAllocs()
	for b.Loop() {
		got, err := w.tools.ListTools(b.Context(), r)
		if err != nil {
			b.Fatal(err)
		}
		out = out[:0]
		for _, item := range got.Items {
			out = append(out, item...)
		}
	}
}

func BenchmarkFirstCall(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		w := newWorld(b)
		r := &mcp.CallRequest{Caller: w.caller("notes:write", op.Admin), Version: mcp.V20260728, Name: "notes_list"}
		b.StartTimer()
		if got, err := w.tools.CallTool(b.Context(), r); err != nil || got.IsError {
			b.Fatal(err)
		}
	}
}

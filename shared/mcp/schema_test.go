package mcp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// specs compiles definitions of the official schemas, each once.
type specs struct {
	mu       sync.Mutex
	compiler *jsonschema.Compiler
	cache    map[string]*jsonschema.Schema
}

// The schemas are read once for all tests.
var official = sync.OnceValues(func() (*specs, error) { //nolint:gochecknoglobals // cache of constant files
	s := &specs{compiler: jsonschema.NewCompiler(), cache: map[string]*jsonschema.Schema{}}
	for _, v := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"} {
		b, err := os.ReadFile("testdata/schema/" + v + "/schema.json")
		if err != nil {
			return nil, err
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			return nil, err
		}
		if err := s.compiler.AddResource("mcp:"+v, doc); err != nil {
			return nil, err
		}
	}
	return s, nil
})

func (s *specs) check(version, definition string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	root := "$defs"
	if version < "2025-11-25" {
		root = "definitions"
	}
	url := "mcp:" + version + "#/" + root + "/" + definition
	schema := s.cache[url]
	if schema == nil {
		var err error
		if schema, err = s.compiler.Compile(url); err != nil {
			return err
		}
		s.cache[url] = schema
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		return err
	}
	return schema.Validate(v)
}

// message is a JSON-RPC response.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Result  json.RawMessage `json:"result"`
	Error   *struct {
		Code    int            `json:"code"`
		Message string         `json:"message"`
		Data    map[string]any `json:"data"`
	} `json:"error"`
}

// conforms validates a response against the schema of the version that it was served as.
func conforms(tb testing.TB, version, method string, body []byte) {
	tb.Helper()
	s, err := official()
	if err != nil {
		tb.Fatal(err)
	}
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		tb.Fatalf("reply is not JSON: %v\n%s", err, body)
	}
	if m.Method != "" {
		definition := map[string]string{"notifications/progress": "ProgressNotification", "notifications/message": "LoggingMessageNotification"}[m.Method]
		if err := s.check(version, definition, body); err != nil || m.ID != nil {
			tb.Errorf("%s, %s: %v\n%s", m.Method, version, err, body)
		}
		return
	}
	if m.Error == nil {
		definition := map[string]string{
			"tools/call": "CallToolResult", "tools/list": "ListToolsResult", "server/discover": "DiscoverResult",
			"initialize": "InitializeResult", "ping": "EmptyResult", "logging/setLevel": "EmptyResult",
			"resources/subscribe": "EmptyResult", "resources/unsubscribe": "EmptyResult",
			"resources/list": "ListResourcesResult", "resources/templates/list": "ListResourceTemplatesResult", "resources/read": "ReadResourceResult",
			"prompts/list": "ListPromptsResult", "prompts/get": "GetPromptResult", "completion/complete": "CompleteResult",
		}[method]
		if bytes.Contains(m.Result, []byte(`"resultType":"input_required"`)) {
			if version != "2026-07-28" || method != "tools/call" && method != "prompts/get" && method != "resources/read" {
				tb.Errorf("%s, %s asks: %s", method, version, body)
			}
			definition = "InputRequiredResult"
		}
		if definition == "" {
			tb.Fatalf("a result for %q, which nothing serves: %s", method, body)
		}
		if err := s.check(version, definition, m.Result); err != nil {
			tb.Errorf("result of %s, %s: %v\n%s", method, version, err, body)
		}
		if err := s.check(version, "JSONRPCResponse", body); err != nil {
			tb.Errorf("response of %s, %s: %v\n%s", method, version, err, body)
		}
		return
	}
	definition := "JSONRPCErrorResponse"
	switch {
	case m.Error.Code == -32022 && version == "2026-07-28":
		definition = "UnsupportedProtocolVersionError"
	case m.Error.Code == -32020:
		definition = "HeaderMismatchError"
	case m.Error.Code == -32021:
		definition = "MissingRequiredClientCapabilityError"
	case version < "2025-11-25" && m.ID == nil:
		// Before 2025-11-25 the schema asks for an id even where none could be read: see DEVIATIONS.md.
		version = "2025-11-25"
	case version < "2025-11-25":
		definition = "JSONRPCError"
	}
	if err := s.check(version, definition, body); err != nil {
		tb.Errorf("error, %s: %v\n%s", version, err, body)
	}
	if version == "2026-07-28" && !allowedCode(m.Error.Code) {
		tb.Errorf("code %d is not one that this revision may send", m.Error.Code)
	}
}

func allowedCode(code int) bool {
	switch code {
	case -32700, -32600, -32601, -32602, -32603, -32020, -32021, -32022:
		return true
	}
	return false
}

func TestSchemasAreThere(t *testing.T) {
	s, err := official()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.check("2026-07-28", "CallToolResult", []byte(`{"content":[]}`)); err == nil {
		t.Error("a result without resultType validates: the schema is not applied")
	}
	if err := s.check("2024-11-05", "JSONRPCError", []byte(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"error":{"code":%d,"message":""}}`, -1))); err != nil {
		t.Error(err)
	}
}

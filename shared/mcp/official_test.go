package mcp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/mcp"
)

// TestOfficialExamples sends every example message of the specification's schema folder. Requests of methods that are served get
// their result, other client requests 404, notifications 202; what is no message from a client is refused.
func TestOfficialExamples(t *testing.T) {
	files, err := filepath.Glob("testdata/schema/2026-07-28/examples/*/*.json")
	if err != nil || len(files) < 100 {
		t.Fatalf("%d examples, %v: the folder moved", len(files), err)
	}
	// What the examples name is not ours, so the methods that look something up answer -32602.
	served := map[string]int{"server/discover": 0, "tools/list": 0, "resources/list": 0, "resources/templates/list": 0, "prompts/list": 0,
		"tools/call": -32602, "resources/read": -32602, "prompts/get": -32602, "completion/complete": -32602}
	seen := map[string]int{}
	for _, file := range files {
		kind := filepath.Base(filepath.Dir(file))
		t.Run(kind+"/"+filepath.Base(file), func(t *testing.T) {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var m struct {
				JSONRPC *string         `json:"jsonrpc"`
				ID      json.RawMessage `json:"id"`
				Method  string          `json:"method"`
				Params  struct {
					Name string         `json:"name"`
					URI  string         `json:"uri"`
					Meta map[string]any `json:"_meta"`
				} `json:"params"`
			}
			_ = json.Unmarshal(body, &m) //nolint:errcheck // examples of data types are other shapes
			headers := []string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", m.Method}
			if name := m.Params.Name + m.Params.URI; name != "" {
				headers = append(headers, "Mcp-Name", name)
			}
			w, got := post(t, newRig(t, nil), string(body), headers...)
			status, code := 400, -32600
			known, ok := served[m.Method]
			switch {
			case m.JSONRPC == nil || m.Method == "":
			case m.ID == nil:
				status, code = 202, 0
			case ok:
				status, code = 200, known
			case m.Params.Meta != nil:
				status, code = 404, -32601
			default: // a request without an envelope
				code = -32602
			}
			seen[kindOf(status, code)]++
			if w.Code != status || code != 0 && (got.Error == nil || got.Error.Code != code) || code == 0 && got.Error != nil {
				t.Errorf("%d %s, want %d and code %d", w.Code, w.Body, status, code)
			}
			if w.Body.Len() > 0 {
				conforms(t, w.Header().Get("MCP-Protocol-Version"), m.Method, w.Body.Bytes())
			}
		})
	}
	for _, want := range []string{"result", "accepted", "unknown", "refused"} {
		if seen[want] == 0 {
			t.Errorf("no example was %s", want)
		}
	}
}

func kindOf(status, code int) string {
	switch {
	case status == 202:
		return "accepted"
	case status == 404:
		return "unknown"
	case status == 200 && code == 0:
		return "result"
	}
	return "refused"
}

// TestOfficialErrors compares the code of each official example error with what the server says in its case.
func TestOfficialErrors(t *testing.T) {
	r := newRig(t, nil)
	for file, provoke := range map[string]func() message{
		"UnsupportedProtocolVersionError/unsupported-version.json": func() message {
			_, m := post(t, r, `{"jsonrpc":"2.0","id":1,"method":"x"}`, "MCP-Protocol-Version", "1900-01-01")
			return m
		},
		"HeaderMismatchError/header-mismatch.json": func() message {
			_, m := modern(t, r, "tools/call", `"name":"bar",`, "Mcp-Name", "foo")
			return m
		},
		"ParseError/invalid-json.json": func() message { _, m := post(t, r, "{"); return m },
		"InvalidParamsError/unknown-tool.json": func() message {
			_, m := modern(t, r, "tools/call", `"name":"invalid_tool_name",`, "Mcp-Name", "invalid_tool_name")
			return m
		},
		"InvalidParamsError/invalid-cursor.json": func() message { _, m := modern(t, r, "tools/list", `"cursor":"x",`); return m },
		"InternalError/unexpected-error.json": func() message {
			_, m := modern(t, r, "tools/call", `"name":"internal",`, "Mcp-Name", "internal")
			return m
		},
		"MethodNotFoundError/prompts-not-supported.json": func() message {
			_, m := modern(t, newRig(t, func(d *mcp.Deps, _ *mcp.Options) { d.Prompts = nil }), "prompts/list", "")
			return m
		},
		"InvalidParamsError/unknown-prompt.json": func() message {
			_, m := modern(t, r, "prompts/get", `"name":"invalid_prompt_name",`, "Mcp-Name", "invalid_prompt_name")
			return m
		},
		"MissingRequiredClientCapabilityError/missing-elicitation-capability.json": func() message {
			w, m := modern(t, r, "tools/call", `"name":"delete",`, "Mcp-Name", "delete")
			if w.Code != 400 {
				t.Errorf("missing capability: %d", w.Code)
			}
			return m
		},
	} {
		b, err := os.ReadFile("testdata/schema/2026-07-28/examples/" + file)
		if err != nil {
			t.Fatal(err)
		}
		var want struct {
			Code    int
			Message string
			Error   *struct {
				Code    int
				Message string
			}
		}
		if err := json.Unmarshal(b, &want); err != nil {
			t.Fatal(err)
		}
		code, text := want.Code, want.Message
		if want.Error != nil {
			code, text = want.Error.Code, want.Error.Message
		}
		got := provoke()
		if got.Error == nil || got.Error.Code != code {
			t.Errorf("%s: %+v, want code %d", file, got.Error, code)
		}
		if strings.HasPrefix(file, "Invalid") && got.Error != nil && got.Error.Message != text {
			t.Errorf("%s: message %q, want %q", file, got.Error.Message, text)
		}
	}
}

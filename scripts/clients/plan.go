package main

import (
	"encoding/json"
	"fmt"
)

// Plan is what every client says. A step that is absent is not taken. The same JSON reaches each client in MCP_PLAN.
type Plan struct {
	URL     string `json:"url"`
	Token   string `json:"token,omitempty"` // bearer; empty: none is sent. With one, each client must also fail without it
	Version string `json:"version"`         // that must be negotiated; set for each client

	Tool     Call        `json:"tool"`               // must be listed, and answer without an error
	Calls    []Call      `json:"calls,omitempty"`    // further calls
	Resource string      `json:"resource,omitempty"` // URI to read
	Prompt   *Prompt     `json:"prompt,omitempty"`
	Complete *Completion `json:"complete,omitempty"`
	Confirm  *Call       `json:"confirm,omitempty"` // asks once; the person says yes
	Decline  *Call       `json:"decline,omitempty"` // asks once; the person says no
	Legacy   *Call       `json:"legacy,omitempty"`  // can't ask in the initialize era, and does nothing
}

// Call is a tool with its arguments and what its answer, or the error's text, must match.
type Call struct {
	Name      string         `json:"name"`
	Arguments map[string]any `json:"arguments,omitempty"`
	Expect    string         `json:"expect,omitempty"` // regular expression
}

// Prompt is a prompt with its arguments.
type Prompt struct {
	Name      string            `json:"name"`
	Arguments map[string]string `json:"arguments,omitempty"`
}

// Completion is an argument and a value that must be among the suggestions.
type Completion struct {
	Ref      map[string]string `json:"ref"`
	Argument map[string]string `json:"argument"`
	Expect   string            `json:"expect"`
}

// readPlan reads a plan that names at least a server and a tool.
func readPlan(raw []byte) (Plan, error) {
	var p Plan
	if err := json.Unmarshal(raw, &p); err != nil {
		return p, fmt.Errorf("plan: %w", err)
	}
	if p.URL == "" || p.Tool.Name == "" {
		return p, fmt.Errorf("plan: url and tool are needed")
	}
	return p, nil
}

// fixturePlan is the plan for the conformance fixtures.
func fixturePlan(url string) Plan {
	const asks = "test_input_required_result_request_state"
	return Plan{
		URL: url, Tool: Call{Name: "test_simple_text"},
		Calls: []Call{
			{Name: "test_tool_with_progress", Expect: "^Done"},
			// In the stateless era a client repeats the argument in a header: once as it is, once in base64.
			{Name: "test_x_mcp_header", Arguments: map[string]any{"region": "Seattle, WA"}, Expect: "^region: Seattle, WA$"},
			{Name: "test_x_mcp_header", Arguments: map[string]any{"region": " Ñuñoa "}, Expect: "^region:  Ñuñoa $"},
		},
		Resource: "test://static-text",
		Prompt:   &Prompt{"test_prompt_with_arguments", map[string]string{"arg1": "one", "arg2": "two"}},
		Complete: &Completion{
			Ref:      map[string]string{"type": "ref/prompt", "name": "test_prompt_with_arguments"},
			Argument: map[string]string{"name": "arg1", "value": "te"}, Expect: "testing",
		},
		Confirm: &Call{Name: asks, Expect: "state-ok"}, Decline: &Call{Name: asks, Expect: "Nothing was done"},
		Legacy: &Call{Name: asks, Expect: "2026-07-28.*Nothing was done"},
	}
}

const (
	modern = "2026-07-28"
	legacy = "2025-11-25"
)

// client is one program in one mode.
type client struct {
	name    string
	mode    string // MCP_MODE
	version string // that it must negotiate
	program []string
}

// clients is every official client that is pinned here, in every mode that it has.
func clients(tools string) []client {
	js := func(file string) []string { return []string{node(tools), folder(tools, "js", file)} }
	py := []string{folder(tools, "venv", "bin", "python"), "scripts/clients/python/conversation.py"}
	sdk := []string{folder(tools, "go-client")}
	return []client{
		{"typescript client 2.4, auto", "auto", modern, js("v2.mjs")},
		{"typescript client 2.4, pin", "pin", modern, js("v2.mjs")},
		{"typescript client 2.4, legacy", "legacy", legacy, js("v2.mjs")},
		{"typescript sdk 1.32", "legacy", legacy, js("v1.mjs")},
		{"go sdk 1.8", "modern", modern, sdk},
		{"go sdk 1.8, initialize 2025-11-25", "2025-11-25", "2025-11-25", sdk},
		{"go sdk 1.8, initialize 2025-06-18", "2025-06-18", "2025-06-18", sdk},
		{"go sdk 1.8, initialize 2025-03-26", "2025-03-26", "2025-03-26", sdk},
		{"go sdk 1.8, initialize 2024-11-05", "2024-11-05", "2024-11-05", sdk},
		{"python mcp 2.3, auto", "auto", modern, py},
		{"python mcp 2.3, pin", "pin", modern, py},
		{"python mcp 2.3, legacy", "legacy", legacy, py},
	}
}

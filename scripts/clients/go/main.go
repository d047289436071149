// Command go is the conversation of every client, with the official Go SDK: MCP_MODE modern, or the revision to ask
// initialize for. What to say stands in MCP_PLAN, as JSON: see Plan in ../plan.go. A step that is not in the plan is not taken.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type named struct {
	Name      string         `json:"name"`
	Arguments map[string]any `json:"arguments"`
	Expect    string         `json:"expect"`
}

type plan struct {
	URL      string  `json:"url"`
	Token    string  `json:"token"`
	Version  string  `json:"version"`
	Tool     named   `json:"tool"`
	Calls    []named `json:"calls"`
	Resource string  `json:"resource"`
	Prompt   *struct {
		Name      string            `json:"name"`
		Arguments map[string]string `json:"arguments"`
	} `json:"prompt"`
	Complete *struct {
		Ref      mcp.CompleteReference      `json:"ref"`
		Argument mcp.CompleteParamsArgument `json:"argument"`
		Expect   string                     `json:"expect"`
	} `json:"complete"`
	Confirm *named `json:"confirm"`
	Decline *named `json:"decline"`
	Legacy  *named `json:"legacy"`
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	err := run(ctx)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// person is the user: what they do when asked, and how often that was.
type person struct {
	action string
	asked  int
}

func (p *person) answer(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	p.asked++
	result := &mcp.ElicitResult{Action: p.action}
	if p.action != "accept" {
		return result, nil
	}
	raw, err := json.Marshal(r.Params.RequestedSchema)
	if err != nil {
		return nil, err
	}
	var schema struct {
		Properties map[string]struct {
			Type string
			Enum []string
		}
	}
	if err := json.Unmarshal(raw, &schema); err != nil {
		return nil, err
	}
	result.Content = map[string]any{}
	for name, s := range schema.Properties {
		switch {
		case s.Type == "boolean":
			result.Content[name] = true
		case s.Type == "integer", s.Type == "number":
			result.Content[name] = 1
		case s.Type == "array":
			result.Content[name] = []string{}
		case len(s.Enum) > 0:
			result.Content[name] = s.Enum[0]
		default:
			result.Content[name] = "text"
		}
	}
	return result, nil
}

// bearer adds the token to every request.
type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return http.DefaultTransport.RoundTrip(r)
}

func run(ctx context.Context) error {
	var p plan
	if err := json.Unmarshal([]byte(os.Getenv("MCP_PLAN")), &p); err != nil {
		return fmt.Errorf("MCP_PLAN: %w", err)
	}
	modern := os.Getenv("MCP_MODE") == "modern"
	options := &mcp.ClientSessionOptions{}
	if !modern {
		options.ProtocolVersion = os.Getenv("MCP_MODE")
	}
	user := &person{action: "cancel"}
	client := mcp.NewClient(&mcp.Implementation{Name: "buzon-check-go", Version: "1.0.0"},
		&mcp.ClientOptions{ElicitationHandler: user.answer, Capabilities: &mcp.ClientCapabilities{}})
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: p.URL, HTTPClient: &http.Client{Transport: bearer{p.Token}}, MaxRetries: -1,
	}, options)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = session.Close() }()
	// Without this a client that fell back to initialize would look just as well.
	version := session.InitializeResult().ProtocolVersion
	if version != p.Version {
		return fmt.Errorf("negotiated %q, want %q", version, p.Version)
	}
	steps, err := talk(ctx, session, &p, user, modern)
	if err != nil {
		return err
	}
	era := "legacy"
	if modern {
		era = "modern"
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"era": era, "version": version, "steps": steps})
}

func talk(ctx context.Context, s *mcp.ClientSession, p *plan, user *person, modern bool) ([]string, error) {
	var steps []string
	tools, err := s.ListTools(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	found := false
	for _, t := range tools.Tools {
		found = found || t.Name == p.Tool.Name
	}
	if !found {
		return nil, fmt.Errorf("%s is not listed", p.Tool.Name)
	}
	steps = append(steps, fmt.Sprintf("list: %d tools", len(tools.Tools)))
	called, err := s.CallTool(ctx, &mcp.CallToolParams{Name: p.Tool.Name, Arguments: arguments(p.Tool)})
	if err != nil || called.IsError || len(called.Content) == 0 {
		return nil, fmt.Errorf("call: %v, %w", called, errors.Join(err, errors.New("no result")))
	}
	steps = append(steps, "call")
	for _, step := range p.Calls {
		said := text(s.CallTool(ctx, &mcp.CallToolParams{Name: step.Name, Arguments: arguments(step)}))
		if matched, err := regexp.MatchString(step.Expect, said); err != nil || !matched {
			return nil, fmt.Errorf("%s: %q, want %s", step.Name, said, step.Expect)
		}
		steps = append(steps, "call "+step.Name)
	}
	more, err := offers(ctx, s, p)
	if err != nil {
		return nil, err
	}
	steps = append(steps, more...)
	for _, step := range []struct {
		name   string
		call   *named
		taken  bool
		action string
		asked  int
	}{
		{"confirm", p.Confirm, modern, "accept", 1},
		{"decline", p.Decline, modern, "decline", 1},
		{"refused for want of a question", p.Legacy, !modern, "accept", 0},
	} {
		if step.call == nil || !step.taken {
			continue
		}
		user.action, user.asked = step.action, 0
		said := text(s.CallTool(ctx, &mcp.CallToolParams{Name: step.call.Name, Arguments: arguments(*step.call)}))
		if matched, err := regexp.MatchString(step.call.Expect, said); err != nil || !matched || user.asked != step.asked {
			return nil, fmt.Errorf("%s: %q, asked %d times", step.name, said, user.asked)
		}
		steps = append(steps, step.name)
	}
	return steps, nil
}

// offers is what a server has beside tools.
func offers(ctx context.Context, s *mcp.ClientSession, p *plan) ([]string, error) {
	var steps []string
	if p.Resource != "" {
		read, err := s.ReadResource(ctx, &mcp.ReadResourceParams{URI: p.Resource})
		if err != nil || len(read.Contents) == 0 || read.Contents[0].Text == "" && len(read.Contents[0].Blob) == 0 {
			return nil, fmt.Errorf("read: %v, %w", read, errors.Join(err, errors.New("no result")))
		}
		steps = append(steps, "read")
	}
	if p.Prompt != nil {
		got, err := s.GetPrompt(ctx, &mcp.GetPromptParams{Name: p.Prompt.Name, Arguments: p.Prompt.Arguments})
		if err != nil || len(got.Messages) == 0 {
			return nil, fmt.Errorf("prompt: %v, %w", got, errors.Join(err, errors.New("no result")))
		}
		steps = append(steps, "prompt")
	}
	if p.Complete != nil {
		done, err := s.Complete(ctx, &mcp.CompleteParams{Ref: &p.Complete.Ref, Argument: p.Complete.Argument})
		if err != nil || !strings.Contains("\n"+strings.Join(done.Completion.Values, "\n")+"\n", "\n"+p.Complete.Expect+"\n") {
			return nil, fmt.Errorf("complete: %v, %w", done, errors.Join(err, errors.New("no result")))
		}
		steps = append(steps, "complete")
	}
	return steps, nil
}

func arguments(n named) map[string]any {
	if n.Arguments == nil {
		return map[string]any{}
	}
	return n.Arguments
}

// text is what was said: an error of the protocol is an answer too.
func text(r *mcp.CallToolResult, err error) string {
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, c := range r.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			if b.Len() > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

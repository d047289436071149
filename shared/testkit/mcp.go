package testkit

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Client speaks MCP and plain HTTP to one service through any door.
type Client struct {
	HTTP   *http.Client
	Origin string // scheme and host
	Token  string // bearer; empty: none is sent
}

// Reply is an HTTP reply, read.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do sends one request. body empty: none is sent, else it goes as application/json. Headers are name, value pairs.
func (c *Client) Do(ctx context.Context, method, path, body string, headers ...string) (*Reply, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.Origin+path, strings.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.Token != "" {
		r.Header.Set("Authorization", "Bearer "+c.Token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := c.HTTP.Do(r)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer func() { _ = res.Body.Close() }()
	read, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: read: %w", method, path, err)
	}
	return &Reply{Status: res.StatusCode, Header: res.Header, Body: read}, nil
}

// Stateless sends one request of revision 2026-07-28 with the envelope and the headers that repeat it. params is a JSON
// object without _meta, or empty.
func (c *Client) Stateless(ctx context.Context, method, params string, headers ...string) (*Reply, error) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"testkit","version":"1"}}`
	inner := strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(params), "{"), "}"))
	if inner != "" {
		inner = "," + inner
	}
	var named struct{ Name string }
	if params != "" {
		if err := json.Unmarshal([]byte(params), &named); err != nil {
			return nil, fmt.Errorf("params: %w", err)
		}
	}
	all := []string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method}
	if named.Name != "" {
		all = append(all, "Mcp-Name", named.Name)
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s%s}}`, method, meta, inner)
	return c.Do(ctx, http.MethodPost, "/mcp", body, append(all, headers...)...)
}

// Handshake sends one request of the initialize era at the given revision; empty: without the header.
func (c *Client) Handshake(ctx context.Context, version, method, params string, headers ...string) (*Reply, error) {
	if params == "" {
		params = "{}"
	}
	var all []string
	if version != "" {
		all = []string{"MCP-Protocol-Version", version}
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
	return c.Do(ctx, http.MethodPost, "/mcp", body, append(all, headers...)...)
}

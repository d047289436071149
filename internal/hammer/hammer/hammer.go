// Package hammer is the load of the command of that name: reads and writes in both protocol eras and through REST, by every
// sample person, over several connections. It knows the sample world only by its demo.json.
package hammer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/buzon-mail/buzon/shared/testkit"
)

// Options say whom to call and how much.
type Options struct {
	Demo        string // path of demo.json
	Connections int
	Calls       int // in all
}

type person struct {
	Organization string   `json:"organization"`
	Role         string   `json:"role"`
	Workspaces   []string `json:"workspaces"`
	Token        string   `json:"access_token"`
}

type world struct {
	MCP   string   `json:"mcp_url"`
	Users []person `json:"users"`
}

// Run calls until all calls are made or one goes wrong, and returns how many were made.
func Run(ctx context.Context, o Options) (int64, error) {
	text, err := os.ReadFile(o.Demo)
	if err != nil {
		return 0, fmt.Errorf("read the sample world: %w", err)
	}
	var w world
	if err := json.Unmarshal(text, &w); err != nil {
		return 0, fmt.Errorf("read the sample world: %w", err)
	}
	if len(w.Users) == 0 || o.Connections < 1 {
		return 0, errors.New("no sample person, or no connection")
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var made, next atomic.Int64
	var group sync.WaitGroup
	for range o.Connections {
		group.Go(func() {
			c := newConnection(w)
			for n := next.Add(1); n <= int64(o.Calls) && ctx.Err() == nil; n = next.Add(1) {
				if err := c.call(ctx, int(n)); err != nil {
					stop(fmt.Errorf("call %d: %w", n, err))
					return
				}
				made.Add(1)
			}
		})
	}
	group.Wait()
	if err := context.Cause(ctx); err != nil {
		return made.Load(), err
	}
	return made.Load(), nil
}

// connection is one HTTP connection that all sample people share, as agents behind one gateway do.
type connection struct {
	people []person
	client testkit.Client
}

func newConnection(w world) *connection {
	transport := &http.Transport{MaxConnsPerHost: 1, MaxIdleConnsPerHost: 1}
	return &connection{people: w.Users, client: testkit.Client{
		HTTP: &http.Client{Transport: transport, Timeout: 30 * time.Second}, Origin: strings.TrimSuffix(w.MCP, "/mcp"),
	}}
}

// tool is one tool call of the mix.
type tool struct {
	name, arguments string
	writes          bool
}

func (c *connection) call(ctx context.Context, n int) error {
	p := c.people[n%len(c.people)]
	c.client.Token = p.Token
	which := n / len(c.people) % len(p.Workspaces)
	workspace := []string{"X-Workspace-Id", p.Workspaces[which]}
	switch n % 12 {
	case 0:
		return c.want(http.StatusOK, `"supportedVersions"`)(c.client.Stateless(ctx, "server/discover", ""))
	case 1:
		return c.want(http.StatusOK, `"session_get"`)(c.client.Stateless(ctx, "tools/list", ""))
	case 2:
		return c.want(http.StatusOK, `"session_get"`)(c.client.Handshake(ctx, "2025-11-25", "tools/list", ""))
	case 3:
		return c.want(http.StatusNotFound, `-32601`)(c.client.Stateless(ctx, "nobody/serves", ""))
	case 4:
		return c.want(http.StatusOK, `"data"`)(c.client.Do(ctx, http.MethodGet, "/api/v1/emails?limit=20", "", workspace...))
	case 5:
		return c.want(http.StatusNotFound, `"not_found"`)(
			c.client.Do(ctx, http.MethodGet, "/api/v1/emails/email_00000000000000000000000000", "", workspace...))
	}
	tools := []tool{
		{"emails_list", `{"limit":20,"status":"processed"}`, false},
		{"inboxes_list", `{}`, false},
		{"session_get", `{}`, false},
		{"inboxes_upsert", fmt.Sprintf(`{"slug":"hammer-%d-%d","display_name":"Hammer %d"}`, which, n%7, n), true},
	}
	t := tools[n/12%len(tools)]
	want := `"structuredContent":`
	if t.writes && (p.Role == "viewer" || p.Role == "operator") { // hidden for want of role
		want = `-32602`
	}
	params := `{"name":"` + t.name + `","arguments":` + t.arguments + `}`
	if n%2 == 0 {
		return c.want(http.StatusOK, want)(c.client.Stateless(ctx, "tools/call", params, workspace...))
	}
	return c.want(http.StatusOK, want)(c.client.Handshake(ctx, "2025-06-18", "tools/call", params, workspace...))
}

// want checks a reply: its status and a text that it must hold.
func (c *connection) want(status int, text string) func(*testkit.Reply, error) error {
	return func(r *testkit.Reply, err error) error {
		if err != nil {
			return err
		}
		if r.Status != status || !strings.Contains(string(r.Body), text) {
			return fmt.Errorf("got %d %.600s, want %d with %s", r.Status, r.Body, status, text)
		}
		return nil
	}
}

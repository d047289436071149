package dynamo_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/app/web"
	"github.com/buzon-mail/buzon/shared/blob/dir"
	"github.com/buzon-mail/buzon/shared/demo"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/oauth"
	"github.com/buzon-mail/buzon/shared/seal"
	"github.com/buzon-mail/buzon/shared/testkit/faults"
)

// service is the whole api function on DynamoDB, with the sample world, as one of its people calls it.
type service struct {
	t     *testing.T
	api   *web.API
	aws   *faults.Client
	token string
	now   time.Time
}

func newService(t *testing.T, adjust ...func(*service, *web.Options)) *service {
	t.Helper()
	s := &service{t: t, now: time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)}
	engine, client := faulty(t)
	s.aws = client
	rows, err := inboxstore.New(engine, s.clock)
	s.must(err)
	root, err := seal.New([]seal.Root{{ID: "r1", Secret: make([]byte, 32)}}, seal.Options{Clock: s.clock, Rand: rand.Reader})
	s.must(err)
	blobs, err := dir.Open(t.TempDir(), dir.Options{BaseURL: oauth.DevelopmentOrigin, Keys: root, Clock: s.clock, NoSync: true})
	s.must(err)
	s.must(demo.Seed(t.Context(), rows))
	s.must(demo.LoadMails(t.Context(), rows, func(ctx context.Context, key string, text []byte) error {
		return blobs.Put(ctx, key, bytes.NewReader(text), int64(len(text)))
	}, s.now))
	set, err := oauth.DevelopmentKeys()
	s.must(err)
	options := web.Options{
		Origin: oauth.DevelopmentOrigin, Issuer: oauth.DevelopmentIssuer, Audience: oauth.DevelopmentAudience, Development: true, PerMinute: 600,
		Version: web.Unreleased,
	}
	for _, a := range adjust {
		a(s, &options)
	}
	s.api, err = web.New(web.Deps{
		Store: rows, Blobs: web.Blobs{Opener: blobs}, Downloads: web.Downloads{Signer: blobs}, Engine: engine,
		Seal: root, Permanent: root, Keys: oauth.StaticKeys(set, s.clock), Logger: slog.New(slog.DiscardHandler), Clock: s.clock, Random: rand.Reader,
	}, options)
	s.must(err)
	acme := demo.World()[0]
	s.token, err = s.api.Issuer.Mint(t.Context(), oauth.Claims{
		Subject: acme.Members[0].User, ClientID: web.CommandLine, Grant: "grant_test", Organization: acme.Org.ID, Workspace: acme.Workspaces[0].ID,
		Scope: strings.Join(s.scopes(), " "),
	}, time.Hour)
	s.must(err)
	return s
}

func (s *service) clock() time.Time { return s.now }

func (s *service) scopes() []string {
	return s.api.Scopes.Advertised()
}

func (s *service) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// call is one tools/call, and what it asked of DynamoDB.
func (s *service) call(tool string, arguments any) (data map[string]any, ops []string) {
	s.t.Helper()
	s.aws.Then()
	data = s.send(tool, arguments)
	for _, r := range s.aws.Asked() {
		ops = append(ops, r.Op)
	}
	return data, ops
}

// send is one tools/call that must succeed.
func (s *service) send(tool string, arguments any) map[string]any {
	s.t.Helper()
	body, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": arguments},
	})
	s.must(err)
	r := httptest.NewRequest(http.MethodPost, oauth.DevelopmentOrigin+"/mcp", bytes.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+s.token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	w := httptest.NewRecorder()
	s.api.ServeHTTP(w, r)
	var reply struct {
		Result struct {
			IsError           bool
			StructuredContent map[string]any
		}
	}
	s.must(json.Unmarshal(w.Body.Bytes(), &reply))
	if w.Code != http.StatusOK || reply.Result.IsError || reply.Result.StructuredContent == nil {
		s.t.Fatalf("%s: status %d, %s", tool, w.Code, w.Body)
	}
	return reply.Result.StructuredContent
}

// TestRoundTrips bounds what a read costs: each request to DynamoDB is a millisecond and a charge. The first call of a process
// also reads who the caller is, and keeps it for 30 seconds.
func TestRoundTrips(t *testing.T) {
	s := newService(t)
	list, cold := s.call("emails_list", map[string]any{"limit": 5})
	rows, _ := list["data"].([]any)
	if len(rows) != 5 {
		t.Fatalf("%d mails, want a full page", len(rows))
	}
	if len(cold) > 4 {
		t.Errorf("cold emails_list: %v", cold)
	}
	first, _ := rows[0].(map[string]any)
	for _, c := range []struct {
		tool      string
		arguments map[string]any
		most      int
	}{
		{"emails_list", map[string]any{"limit": 5}, 2},
		{"emails_list", map[string]any{"limit": 5, "status": "processed"}, 2},
		{"emails_list", map[string]any{"limit": 5, "inbox": "facturas"}, 2},
		{"emails_get", map[string]any{"id": first["id"]}, 2},
		{"inboxes_list", map[string]any{}, 1},
		{"inboxes_get", map[string]any{"id": "facturas"}, 2},
		{"session_get", map[string]any{}, 1}, // what the organization is called
		{"session_get", map[string]any{}, 0},
		{"workspaces_list", map[string]any{}, 1},
	} {
		_, ops := s.call(c.tool, c.arguments)
		if len(ops) > c.most {
			t.Errorf("%s %v: %v, want at most %d requests", c.tool, c.arguments, ops, c.most)
		}
		for _, op := range ops {
			if op != "GetItem" && op != "Query" {
				t.Errorf("%s %v asked for %s: a read writes nothing and scans nothing", c.tool, c.arguments, op)
			}
		}
	}
}

// TestRateLimitWrites: what the limit across instances costs a busy caller: one UpdateItem for ten calls at most, and nothing else; and
// while DynamoDB is away it lets reads through.
func TestRateLimitWrites(t *testing.T) {
	s := newService(t, func(s *service, o *web.Options) { s.now, o.SharedLimits = time.Now(), true }) // the engine's clock is the real one
	s.call("session_get", map[string]any{})
	writes := 0
	const calls = 300
	for range calls {
		_, ops := s.call("session_get", map[string]any{})
		for _, op := range ops {
			if op != "UpdateItem" {
				t.Fatalf("the limit asked for %s", op)
			}
			writes++
		}
	}
	if writes == 0 || writes*10 > calls {
		t.Errorf("%d writes for %d calls", writes, calls)
	}
	s.now = s.now.Add(time.Minute)
	s.call("session_get", map[string]any{}) // reads the caller anew
	s.aws.Then(faults.Repeat(200, faults.Refuse(500, "InternalServerError", ""))...)
	for range 100 {
		s.send("session_get", map[string]any{})
	}
}

// TestOutageOfTheStore: what the service says while DynamoDB is away tells callers to come again, and nothing of AWS.
func TestOutageOfTheStore(t *testing.T) {
	s := newService(t)
	s.call("emails_list", map[string]any{})
	s.aws.Then(faults.Repeat(20, faults.Refuse(500, "InternalServerError", "host ip-10-0-0-7 is on fire"))...)
	r := httptest.NewRequest(http.MethodGet, oauth.DevelopmentOrigin+"/api/v1/emails", nil)
	r.Header.Set("Authorization", "Bearer "+s.token)
	w := httptest.NewRecorder()
	s.api.ServeHTTP(w, r)
	if w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "ip-10") || strings.Contains(w.Body.String(), "InternalServerError") {
		t.Errorf("status %d, body %s", w.Code, w.Body)
	}
}

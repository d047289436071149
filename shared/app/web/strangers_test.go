package web

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/blob"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/oauth"
	"github.com/buzon-mail/buzon/shared/oauth/upstream"
	"github.com/buzon-mail/buzon/shared/safehttp"
	"github.com/buzon-mail/buzon/shared/seal"
	"github.com/buzon-mail/buzon/shared/store"
	"github.com/buzon-mail/buzon/shared/store/embedded"
)

// ledger notes every write but those of the counters of attempts, and everything that would leave the process.
type ledger struct {
	store.Engine

	mu     sync.Mutex // guards the two below
	wrote  []string
	opened []string
}

func (l *ledger) note(list *[]string, what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*list = append(*list, what)
}

func (l *ledger) Put(ctx context.Context, i store.Item, c store.Condition) error {
	l.note(&l.wrote, "put "+i.Key.Partition)
	return l.Engine.Put(ctx, i, c)
}

func (l *ledger) Delete(ctx context.Context, k store.Key, c store.Condition) error {
	l.note(&l.wrote, "delete "+k.Partition)
	return l.Engine.Delete(ctx, k, c)
}

func (l *ledger) Transact(ctx context.Context, ops ...store.Op) error {
	for _, o := range ops {
		l.note(&l.wrote, "transact "+o.Key().Partition)
	}
	return l.Engine.Transact(ctx, ops...)
}

func (l *ledger) Add(ctx context.Context, k store.Key, field string, delta, most int64, expires time.Time) (int64, error) {
	if k.Table != store.Ephemeral || !strings.HasPrefix(k.Partition, "oauth/limit/") || expires.IsZero() {
		l.note(&l.wrote, "add "+k.Partition)
	}
	return l.Engine.Add(ctx, k, field, delta, most, expires)
}

// Do refuses to fetch a client's document.
func (l *ledger) Do(_ context.Context, r safehttp.Request) (*safehttp.Response, error) {
	l.note(&l.opened, r.URL)
	return nil, errors.New("nothing is dialled here")
}

// RoundTrip refuses every other connection.
func (l *ledger) RoundTrip(r *http.Request) (*http.Response, error) {
	l.note(&l.opened, r.URL.String())
	return nil, errors.New("nothing is dialled here")
}

func (l *ledger) Open(context.Context, string) (io.ReadCloser, int64, error) {
	l.note(&l.opened, "a blob")
	return nil, 0, errors.New("no blob")
}

func (l *ledger) SignedURL(context.Context, string, blob.DownloadOptions) (string, time.Time, error) {
	l.note(&l.opened, "a signature")
	return "", time.Time{}, errors.New("no blob")
}

// watched is the whole HTTP side over a ledger.
func watched(t *testing.T) (*API, *builder, *ledger) {
	t.Helper()
	engine, err := embedded.Open(filepath.Join(t.TempDir(), "store"), embedded.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	l := &ledger{Engine: engine}
	rows, err := inboxstore.New(l, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	secret := sha256.Sum256([]byte("root"))
	ring, err := seal.New([]seal.Root{{ID: "r1", Secret: secret[:]}}, seal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	set, err := oauth.NewKeySet(rand.Reader, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	b := &builder{Deps: Deps{
		Store: rows, Blobs: Blobs{l}, Downloads: Downloads{l}, Engine: l, Seal: ring, Permanent: ring, Keys: oauth.StaticKeys(set, time.Now),
		Logger: slog.New(slog.DiscardHandler), Clock: time.Now, Random: rand.Reader, Fetcher: l, Transport: l,
	}, Options: Options{
		Origin: "https://mail.example", Issuer: "https://mail.example", Audience: "https://mail.example/mcp", PublicDiscover: true, PerMinute: 600, SharedLimits: true, Version: "1",
		Upstream: &upstream.Config{
			Issuer: "https://login.example", ClientID: "id", Allow: []string{"@acme.test"}, Secret: func(context.Context) (string, error) { return "s", nil },
		},
	}, ids: &identified{random: rand.Reader}}
	api, err := b.build()
	if err != nil {
		t.Fatal(err)
	}
	return api, b, l
}

// TestStrangersLeaveNothing: whatever a caller without a token or a session sends, and wherever, nothing is written but the counters
// of attempts, and no connection is opened.
func TestStrangersLeaveNothing(t *testing.T) {
	api, b, l := watched(t)
	paths := []string{"/mcp", "/mcp/", oauth.MetadataPath, oauth.MetadataPathMCP, "/healthz", "/nothing", "/downloads/x", "/api/v1/openapi.json", "/api/v1/x"}
	for path := range b.oauth.Routes() {
		paths = append(paths, path)
	}
	for _, o := range b.catalogue.Operations() {
		paths = append(paths, "/api/v1"+strings.NewReplacer("{id}", "email_01J00000000000000000000000", "{sender_id}", "sender_01J00000000000000000000000").Replace(o.Path))
	}
	const document = "https://app.example/client.json"
	const authorize = "client_id=" + document + "&redirect_uri=https://app.example/cb&response_type=code&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256"
	const long = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	forms := []string{
		"", authorize, authorize + "&prompt=none", "link=" + long, "request=" + long + "&answer=allow&token=x&grant=grant_x", "state=x&code=y",
		"grant_type=authorization_code&code=x&code_verifier=" + long + "&client_id=" + document, "grant_type=refresh_token&refresh_token=bzr_grant_x.1.aaaa&client_id=" + document,
		"grant_type=client_credentials&client_id=svc_01J00000000000000000000000&client_secret=x", "token=bzr_grant_x.1.aaaa&client_id=" + document,
	}
	bodies := []struct{ kind, text string }{
		{"application/json", `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`},
		{"application/json", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`},
		{"application/json", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"inboxes_delete","arguments":{"id":"x"}}}`},
		{"application/json", `{"client_name":"X","redirect_uris":["https://app.example/cb"]}`}, {"application/json", `{`},
	}
	for _, f := range forms {
		bodies = append(bodies, struct{ kind, text string }{"application/x-www-form-urlencoded", f})
	}
	served := map[int]bool{}
	send := func(method, target, kind, body, token string) {
		r := httptest.NewRequestWithContext(t.Context(), method, "https://mail.example"+target, strings.NewReader(body))
		r.Header.Set("Content-Type", kind)
		if token != "" {
			r.Header.Set("Authorization", token)
		}
		r.AddCookie(&http.Cookie{Name: "__Host-session", Value: long})
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		served[w.Code] = true
		if len(l.wrote) > 0 || len(l.opened) > 0 {
			t.Fatalf("%s %s %.80s: wrote %v, opened %v", method, target, body, l.wrote, l.opened)
		}
	}
	for _, path := range paths {
		for _, token := range []string{"", "Bearer nonsense", "Basic c3ZjX3g6eA=="} {
			for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodDelete, http.MethodPut, http.MethodPatch} {
				send(method, path, "application/json", "", token)
			}
			for _, body := range bodies {
				send(http.MethodPost, path, body.kind, body.text, token)
			}
			for _, query := range forms {
				send(http.MethodGet, path+"?"+query, "", "", token)
			}
		}
	}
	for _, status := range []int{http.StatusOK, http.StatusCreated, http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusForbidden, http.StatusNotFound} {
		if !served[status] {
			t.Errorf("nothing was answered %d: the test does not reach far enough; %v", status, slices.Sorted(maps.Keys(served)))
		}
	}
}

// TestTheButtonIsTheOnlyWayOut: signing in at the provider opens a connection to the address that the operator wrote, and to no other.
func TestTheButtonIsTheOnlyWayOut(t *testing.T) {
	api, _, l := watched(t)
	get := func(r *http.Request) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		return w
	}
	page := get(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://mail.example/sign-in", nil))
	_, field, _ := strings.Cut(page.Body.String(), `name="request" value="`)
	field, _, _ = strings.Cut(field, `"`)
	press := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "https://mail.example"+oauth.UpstreamPath, strings.NewReader("request="+field))
	press.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, c := range page.Result().Cookies() { //nolint:bodyclose // a recorder's
		press.AddCookie(c)
	}
	if w := get(press); w.Code != http.StatusServiceUnavailable {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if len(l.wrote) > 0 || len(l.opened) != 1 || l.opened[0] != "https://login.example/.well-known/openid-configuration" {
		t.Errorf("wrote %v, opened %v", l.wrote, l.opened)
	}
}

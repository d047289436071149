package robot_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/oauth"
	"github.com/buzon-mail/buzon/shared/safehttp"
	"github.com/buzon-mail/buzon/shared/seal"
	"github.com/buzon-mail/buzon/shared/store/embedded"
	"github.com/buzon-mail/buzon/shared/testkit/robot"
)

type world struct{}

func (world) Person(_ context.Context, id string) (oauth.Person, error) {
	if id != "user_ana" {
		return oauth.Person{}, apperr.New(apperr.NotFound, "", "nobody")
	}
	return oauth.Person{
		ID: id, Email: "ana@acme.test", Organization: "org_acme", OrganizationName: "Acme", Scopes: []string{"emails:read", "emails:write"},
		Workspaces: []oauth.Workspace{{ID: "ws_1", Name: "Support", Role: map[string]string{"en": "admin"}}, {ID: "ws_2", Name: "Sales", Role: map[string]string{"en": "viewer"}}},
	}, nil
}

func (w world) PersonByEmail(ctx context.Context, _ string) (oauth.Person, error) {
	return w.Person(ctx, "user_ana")
}

func (world) Do(context.Context, safehttp.Request) (*safehttp.Response, error) {
	return &safehttp.Response{Status: http.StatusNotFound}, nil
}

// serve starts the pages of a server, and returns its origin and the robot of ana.
func serve(t *testing.T) (string, *oauth.Server, *robot.Robot) {
	t.Helper()
	engine, err := embedded.Open(filepath.Join(t.TempDir(), "store"), embedded.Options{NoSync: true})
	must(t, err)
	t.Cleanup(func() { _ = engine.Close() })
	secret := sha256.Sum256([]byte("root"))
	ring, err := seal.New([]seal.Root{{ID: "r1", Secret: secret[:]}}, seal.Options{})
	must(t, err)
	keys, err := oauth.NewKeySet(rand.Reader, time.Now())
	must(t, err)
	mux := http.NewServeMux()
	door := httptest.NewServer(mux)
	t.Cleanup(door.Close)
	scope := func(name string, write bool) oauth.Scope {
		return oauth.Scope{Name: name, Text: map[string]string{"en": name}, Write: write}
	}
	s, err := oauth.NewServer(oauth.ServerDeps{
		Store: engine, Seal: ring, Permanent: ring, Keys: oauth.StaticKeys(keys, time.Now), People: world{}, Fetcher: world{},
		Logger: slog.New(slog.DiscardHandler), Clock: time.Now, Random: rand.Reader,
	}, oauth.ServerOptions{
		Issuer: door.URL, Resource: door.URL + "/mcp", Name: "Buzón", Key: "buzon",
		Scopes: []oauth.Scope{scope("emails:read", false), scope("emails:write", true)},
	})
	must(t, err)
	for path, h := range s.Routes() {
		mux.Handle(path, h)
	}
	r, err := robot.New(func(ctx context.Context) (string, error) {
		link, _, err := s.SignInLink(ctx, "user_ana")
		return link + "\n", err
	})
	must(t, err)
	return door.URL, s, r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// request registers a client and returns the address of its request.
func request(t *testing.T, origin, callback string) string {
	t.Helper()
	res, err := http.Post(origin+oauth.RegisterPath, "application/json", strings.NewReader(`{"redirect_uris":["`+callback+`"]}`)) //nolint:noctx // a test
	must(t, err)
	defer func() { _ = res.Body.Close() }()
	var body [8192]byte
	n, _ := res.Body.Read(body[:])
	_, id, _ := strings.Cut(string(body[:n]), `"client_id":"`)
	id, _, _ = strings.Cut(id, `"`)
	if id == "" {
		t.Fatalf("register: %s", body[:n])
	}
	return origin + oauth.AuthorizePath + "?" + url.Values{
		"client_id": {id}, "redirect_uri": {callback}, "response_type": {"code"}, "state": {"s"}, "code_challenge_method": {"S256"},
		"code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}, "scope": {"emails:read emails:write"},
	}.Encode()
}

func TestAuthorize(t *testing.T) {
	origin, s, r := serve(t)
	const callback = "https://app.example/back"
	address := request(t, origin, callback)
	for name, c := range map[string]struct {
		answer robot.Answer
		want   string // member of the answer
	}{
		"approves":             {robot.Answer{}, "code"},
		"approves less":        {robot.Answer{Without: []string{"emails:write"}, Workspace: "ws_2"}, "code"},
		"approves reading":     {robot.Answer{ReadOnly: true}, "code"},
		"approves everything":  {robot.Answer{All: true}, "code"},
		"denies":               {robot.Answer{Deny: true}, "error"},
		"another workspace":    {robot.Answer{Workspace: "ws_9"}, ""},
		"what nobody asks for": {robot.Answer{Without: []string{"keys:write"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			back, err := r.Authorize(t.Context(), address, c.answer)
			if c.want == "" {
				if err == nil {
					t.Fatalf("it got %s", back)
				}
				return
			}
			must(t, err)
			if q := back.Query(); !strings.HasPrefix(back.String(), callback) || q.Get(c.want) == "" || q.Get("iss") != origin || q.Get("state") != "s" {
				t.Errorf("answer %s", back)
			}
		})
	}
	if _, err := r.Authorize(t.Context(), origin+oauth.AuthorizePath+"?client_id=nobody", robot.Answer{}); err == nil {
		t.Error("a page without a form was taken for an answer")
	}
	if grants, err := s.Grants(t.Context(), "user_ana"); err != nil || len(grants) != 0 {
		t.Errorf("%d grants before any code was redeemed, %v", len(grants), err)
	}
}

// TestVisit: the client on this computer gets the answer.
func TestVisit(t *testing.T) {
	origin, _, r := serve(t)
	var got url.Values
	client := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		got = q.URL.Query()
		if got.Get("code") == "" {
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	t.Cleanup(client.Close)
	address := request(t, origin, client.URL+"/callback")
	must(t, r.Visit(t.Context(), address, robot.Answer{}))
	if got.Get("code") == "" {
		t.Errorf("the client got %v", got)
	}
	if err := r.Visit(t.Context(), address, robot.Answer{Deny: true}); err == nil || got.Get("error") != "access_denied" {
		t.Errorf("the client got %v, and its refusal is not an error: %v", got, err)
	}
}

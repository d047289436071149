package oauth

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/safehttp"
	"github.com/buzon-mail/buzon/shared/seal"
	"github.com/buzon-mail/buzon/shared/store"
	"github.com/buzon-mail/buzon/shared/store/embedded"
)

const (
	ana  = "user_ana"
	beto = "user_beto"

	testClient   = "https://app.example/oauth/client.json"
	testCallback = "https://app.example/callback"
)

// site is one authorization server over an embedded store, with two people, a publisher of client documents, and a clock that
// the test moves.
type site struct {
	*Server
	engine   store.Engine
	other    *Server // a second process, where the test has one
	log      *journal
	mux      map[string]http.Handler
	verifier *Verifier

	mu        sync.Mutex
	now       time.Time
	people    map[string]Person
	documents map[string]string
	fetched   []string
	fetchErr  error
}

// journal is the log of several instances.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func (s *site) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *site) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

// Person serves the people of the test.
func (s *site) Person(_ context.Context, id string) (Person, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, ok := s.people[id]; ok {
		return p, nil
	}
	return Person{}, apperr.New(apperr.NotFound, "", "nobody")
}

// PersonByEmail serves the people of the test.
func (s *site) PersonByEmail(_ context.Context, email string) (Person, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.people {
		if p.Email == email {
			return p, nil
		}
	}
	return Person{}, apperr.New(apperr.NotFound, "", "nobody")
}

// Do serves the documents of the test.
func (s *site) Do(_ context.Context, r safehttp.Request) (*safehttp.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fetched = append(s.fetched, r.URL)
	if s.fetchErr != nil {
		return nil, s.fetchErr
	}
	body, ok := s.documents[r.URL]
	if !ok {
		return &safehttp.Response{Status: http.StatusNotFound}, nil
	}
	return &safehttp.Response{Status: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body)}, nil
}

func newSite(t testing.TB) *site { return newSiteAt(t, testOrigin) }

func newSiteAt(t testing.TB, origin string) *site {
	t.Helper()
	return newSiteOn(t, origin, func(s *site) store.Engine {
		engine, err := embedded.Open(filepath.Join(t.TempDir(), "store"), embedded.Options{Clock: s.clock, NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = engine.Close() })
		return engine
	})
}

// newSiteOn is a site on an engine of the test's choice.
func newSiteOn(t testing.TB, origin string, open func(*site) store.Engine) *site {
	t.Helper()
	s := &site{now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), log: &journal{}, documents: map[string]string{
		testClient: `{"client_id":"` + testClient + `","client_name":"App","redirect_uris":["` + testCallback + `"]}`,
	}}
	both := []Workspace{{"ws_1", "Support", english("admin")}, {"ws_2", "Sales", english("viewer")}}
	s.people = map[string]Person{
		ana:  {ana, "ana@acme.test", "org_acme", "Acme", both, []string{"emails:read", "emails:write", "keys:write"}, time.Time{}},
		beto: {beto, "beto@globex.test", "org_globex", "Globex", []Workspace{{"ws_9", "Main", english("viewer")}}, []string{"emails:read"}, time.Time{}},
	}
	s.engine = open(s)
	s.Server = s.instance(t, origin)
	s.mux = s.Routes()
	return s
}

// instance is one process over the site's store.
func (s *site) instance(t testing.TB, origin string) *Server {
	t.Helper()
	return s.instanceOn(t, origin, s.engine)
}

// instanceOn is one process with an engine of its own over the same rows.
func (s *site) instanceOn(t testing.TB, origin string, engine store.Engine) *Server {
	t.Helper()
	rings := [2]*seal.Keyring{}
	for i := range rings {
		secret := sha256.Sum256([]byte{byte(i)})
		ring, err := seal.New([]seal.Root{{ID: "r1", Secret: secret[:]}}, seal.Options{Clock: s.clock})
		if err != nil {
			t.Fatal(err)
		}
		rings[i] = ring
	}
	keys, err := NewKeySet(seeded(1), s.now)
	if err != nil {
		t.Fatal(err)
	}
	ring := StaticKeys(keys, s.clock)
	scope := func(name string, write, reserved bool) Scope {
		return Scope{name, map[string]string{"en": "May " + name, "es": "Puede " + name}, write, reserved}
	}
	server, err := NewServer(ServerDeps{
		Store: engine, Seal: rings[0], Permanent: rings[1], Keys: ring, People: s, Fetcher: s,
		Logger: slog.New(slog.NewJSONHandler(s.log, nil)), Clock: s.clock, Random: rand.Reader,
	}, ServerOptions{Issuer: origin, Resource: origin + "/mcp", Name: "Buzón", Key: "buzon", Scopes: []Scope{
		scope("emails:read", false, false), scope("emails:write", true, false), scope("keys:write", true, true),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if s.verifier, err = NewVerifier(ring, s.clock, VerifierOptions{Issuer: origin, Audience: origin + "/mcp"}); err != nil {
		t.Fatal(err)
	}
	return server
}

// robot is a browser: it keeps cookies, follows nothing, and fills forms.
type robot struct {
	site    *site
	cookies map[string]string
	header  map[string]string
}

func (s *site) robot() *robot {
	return &robot{site: s, cookies: map[string]string{}, header: map[string]string{}}
}

func (b *robot) do(t testing.TB, method, target, body string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.RemoteAddr = "198.51.100.7:4711"
	if body != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, value := range b.header {
		r.Header.Set(name, value)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	for name, value := range b.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	w := httptest.NewRecorder()
	h, ok := b.site.mux[r.URL.Path]
	if !ok {
		t.Fatalf("nothing at %s", r.URL.Path)
	}
	h.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() { //nolint:bodyclose // a recorder's
		if c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		} else {
			b.cookies[c.Name] = c.Value
		}
	}
	if w.Code >= 500 && w.Code != http.StatusServiceUnavailable {
		t.Fatalf("%s %s: %d", method, target, w.Code)
	}
	return w
}

func (b *robot) get(t testing.TB, target string) *httptest.ResponseRecorder {
	t.Helper()
	return b.do(t, http.MethodGet, target, "")
}

func (b *robot) post(t testing.TB, target string, form url.Values) *httptest.ResponseRecorder {
	t.Helper()
	return b.do(t, http.MethodPost, target, form.Encode())
}

// fields reads the form of a page that posts to action: hidden fields, and what is checked.
func fields(t testing.TB, w *httptest.ResponseRecorder, action string) url.Values {
	t.Helper()
	f := url.Values{}
	z := html.NewTokenizer(bytes.NewReader(w.Body.Bytes()))
	inside, found := false, false
	for {
		switch z.Next() {
		case html.ErrorToken:
			if !found {
				t.Fatalf("no form to %s in a page of status %d: %s", action, w.Code, title(w))
			}
			return f
		case html.StartTagToken:
			token := z.Token()
			a := map[string]string{}
			for _, x := range token.Attr {
				a[x.Key] = x.Val
			}
			_, checked := a["checked"]
			_, disabled := a["disabled"]
			switch {
			case token.Data == "form":
				inside = a["action"] == action
				found = found || inside
			case inside && token.Data == "input" && !disabled && (a["type"] == "hidden" || checked):
				f.Add(a["name"], a["value"])
			}
		}
	}
}

func title(w *httptest.ResponseRecorder) string {
	return regexp.MustCompile(`<h1>(.*?)</h1>`).FindString(w.Body.String())
}

// signIn signs the robot in by a one-time link.
func (b *robot) signIn(t testing.TB, person string) {
	t.Helper()
	link, _, err := b.site.SignInLink(t.Context(), person)
	if err != nil {
		t.Fatal(err)
	}
	page := b.get(t, strings.TrimPrefix(link, b.site.Issuer))
	if w := b.post(t, SignInPath, fields(t, page, SignInPath)); w.Code != http.StatusSeeOther {
		t.Fatalf("sign-in: %d %s", w.Code, title(w))
	}
}

const testVerifier = "verifier-of-the-test.with~all_kinds-of-characters"

func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return encode(sum[:])
}

// request is a good authorization request, changed by pairs; an empty value leaves the parameter out.
func request(clientID, redirect string, changes ...string) string {
	q := url.Values{
		"client_id": {clientID}, "redirect_uri": {redirect}, "response_type": {"code"}, "state": {"s1"},
		"code_challenge": {challengeOf(testVerifier)}, "code_challenge_method": {"S256"},
		"scope": {"emails:read emails:write"}, "resource": {testAudience},
	}
	for i := 0; i+1 < len(changes); i += 2 {
		q.Set(changes[i], changes[i+1])
		if changes[i+1] == "" {
			q.Del(changes[i])
		}
	}
	return AuthorizePath + "?" + q.Encode()
}

// answered reads a redirect to the client.
func answered(t testing.TB, w *httptest.ResponseRecorder, callback string) url.Values {
	t.Helper()
	location := w.Header().Get("Location")
	u, err := url.Parse(location)
	if w.Code != http.StatusSeeOther || err != nil || !strings.HasPrefix(location, callback) {
		t.Fatalf("status %d, location %q, page %s", w.Code, location, title(w))
	}
	return u.Query()
}

// approve goes from an authorization request to a code, as a signed-in person who gives everything that is asked.
func (b *robot) approve(t testing.TB, target, callback string, changes ...string) url.Values {
	t.Helper()
	f := fields(t, b.get(t, target), ConsentPath)
	f.Set("answer", "allow")
	for i := 0; i+1 < len(changes); i += 2 {
		f.Set(changes[i], changes[i+1])
		if changes[i+1] == "" {
			f.Del(changes[i])
		}
	}
	return answered(t, b.post(t, ConsentPath, f), callback)
}

// reply is an answer of a JSON endpoint.
type reply struct {
	Status      int
	Header      http.Header
	Access      string `json:"access_token"`
	Refresh     string `json:"refresh_token"`
	Scope       string `json:"scope"`
	Type        string `json:"token_type"`
	Expires     int    `json:"expires_in"`
	Error       string `json:"error"`
	Description string `json:"error_description"`
	ID          string `json:"client_id"`
	App         string `json:"application_type"`
	Auth        string `json:"token_endpoint_auth_method"`
	Body        string `json:"-"`
}

func read(t testing.TB, w *httptest.ResponseRecorder) reply {
	t.Helper()
	r := reply{Status: w.Code, Header: w.Header(), Body: w.Body.String()}
	if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil {
		t.Fatalf("status %d, not JSON: %s", w.Code, w.Body)
	}
	return r
}

// form makes url.Values of pairs, without the empty ones.
func pairs(list ...string) url.Values {
	f := url.Values{}
	for i := 0; i+1 < len(list); i += 2 {
		if list[i+1] != "" {
			f.Add(list[i], list[i+1])
		}
	}
	return f
}

func (s *site) token(t testing.TB, list ...string) reply {
	t.Helper()
	return read(t, s.robot().post(t, TokenPath, pairs(list...)))
}

func (s *site) redeemed(t testing.TB, code, clientID, redirect string) reply {
	t.Helper()
	return s.token(t, "grant_type", grantCode, "code", code, "client_id", clientID, "redirect_uri", redirect,
		"code_verifier", testVerifier, "resource", testAudience)
}

func (s *site) refreshed(t testing.TB, token, clientID string, more ...string) reply {
	t.Helper()
	return s.token(t, append([]string{"grant_type", grantRefresh, "refresh_token", token, "client_id", clientID}, more...)...)
}

// connect goes all the way to tokens.
func (s *site) connect(t testing.TB) reply {
	t.Helper()
	b := s.robot()
	b.signIn(t, ana)
	got := s.redeemed(t, b.approve(t, request(testClient, testCallback), testCallback).Get("code"), testClient, testCallback)
	if got.Status != http.StatusOK {
		t.Fatalf("redeem: %+v", got)
	}
	return got
}

// registers a client and returns its id.
func (s *site) registered(t testing.TB, redirects ...string) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{"client_name": "Test", "redirect_uris": redirects})
	if err != nil {
		t.Fatal(err)
	}
	got := read(t, s.robot().do(t, http.MethodPost, RegisterPath, string(body), "Content-Type", "application/json"))
	if got.Status != http.StatusCreated {
		t.Fatalf("register: %+v", got)
	}
	return got.ID
}

// active tells whether the grant of an access token counts.
func (s *site) active(t testing.TB, access string) bool {
	t.Helper()
	c, err := s.verifier.Verify(t.Context(), access)
	if err != nil {
		t.Fatal(err)
	}
	ok, err := s.GrantActive(t.Context(), c.Grant)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

// failing is an engine that is down.
type failing struct{ store.Engine }

var errDown = errors.Join(store.ErrUnavailable, errors.New("secret-host:5432"))

func (failing) Get(context.Context, store.Key) (store.Item, error) { return store.Item{}, errDown }
func (failing) Transact(context.Context, ...store.Op) error        { return errDown }
func (failing) Put(context.Context, store.Item, store.Condition) error {
	return errDown
}

func (failing) Add(context.Context, store.Key, string, int64, int64, time.Time) (int64, error) {
	return 0, errDown
}

func english(text string) map[string]string { return map[string]string{"en": text} }

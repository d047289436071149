package oauth

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/store"
)

func (s *site) link(t testing.TB, person string) string {
	t.Helper()
	link, _, err := s.SignInLink(t.Context(), person)
	if err != nil {
		t.Fatal(err)
	}
	return link
}

func TestLinkWorksOnceAndForFifteenMinutes(t *testing.T) {
	s := newSite(t)
	b := s.robot()
	link := s.link(t, ana)
	path := strings.TrimPrefix(link, testOrigin)
	for range 3 { // previews open links: that uses nothing up
		page := b.get(t, path)
		if page.Code != http.StatusOK || !strings.Contains(page.Body.String(), "ana@acme.test") {
			t.Fatalf("%d %s", page.Code, title(page))
		}
	}
	if w := b.post(t, SignInPath, fields(t, b.get(t, path), SignInPath)); w.Code != http.StatusSeeOther || w.Header().Get("Location") != SignInPath {
		t.Fatalf("first use: %d", w.Code)
	}
	if w := b.get(t, SignInPath); !strings.Contains(w.Body.String(), "ana@acme.test") {
		t.Error("not signed in")
	}
	c := s.robot()
	f := fields(t, c.get(t, SignInPath), SignInPath)
	for name, value := range map[string]string{"used": link, "nonsense": "x", "empty": "", "of the right length": strings.Repeat("a", 43)} {
		f.Set("link", value)
		if w := c.post(t, SignInPath, f); w.Code != http.StatusBadRequest || c.cookies["__Host-session"] != "" {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
	if w := c.get(t, path); w.Code != http.StatusNotFound {
		t.Errorf("opening a used link: %d", w.Code)
	}
	old := s.link(t, ana)
	s.pass(linkLifetime)
	f.Set("link", old)
	if w := c.post(t, SignInPath, f); w.Code != http.StatusBadRequest {
		t.Errorf("after 15 minutes: %d", w.Code)
	}
	gone := s.link(t, beto)
	delete(s.people, beto)
	f.Set("link", gone)
	if w := c.post(t, SignInPath, f); w.Code != http.StatusBadRequest {
		t.Errorf("of a person who is gone: %d", w.Code)
	}
	if _, _, err := s.SignInLink(t.Context(), beto); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("a link for nobody: %v", err)
	}
}

func TestLinkCanBePasted(t *testing.T) {
	s := newSite(t)
	for name, paste := range map[string]func(string) string{
		"whole":    func(l string) string { return " " + l + "\n" },
		"its last": func(l string) string { return l[strings.Index(l, "=")+1:] },
	} {
		b := s.robot()
		f := fields(t, b.get(t, request(testClient, testCallback)), SignInPath)
		f.Set("link", paste(s.link(t, ana)))
		w := b.post(t, SignInPath, f)
		if w.Code != http.StatusSeeOther || !strings.HasPrefix(w.Header().Get("Location"), AuthorizePath+"?") {
			t.Errorf("%s: %d %s", name, w.Code, title(w))
		}
	}
}

// Clauses: S07
func TestCookies(t *testing.T) {
	s := newSite(t)
	b := s.robot()
	w := b.get(t, SignInPath)
	f := fields(t, w, SignInPath)
	f.Set("link", s.link(t, ana))
	for name, set := range map[string]string{"browser": w.Header().Get("Set-Cookie"), "session": b.post(t, SignInPath, f).Header().Get("Set-Cookie")} {
		for _, want := range []string{"__Host-" + name + "=", "; Path=/", "; HttpOnly", "; Secure", "; SameSite=Lax"} {
			if !strings.Contains(set, want) || strings.Contains(set, "Domain") {
				t.Errorf("%s: %q lacks %q", name, set, want)
			}
		}
	}
	// Plain http on loopback: browsers refuse the prefix and Secure there.
	local := newSiteAt(t, "http://localhost:8080")
	if set := local.robot().get(t, SignInPath).Header().Get("Set-Cookie"); !strings.HasPrefix(set, "browser=") || strings.Contains(set, "Secure") || !strings.Contains(set, "HttpOnly") {
		t.Errorf("on loopback: %q", set)
	}
	c := local.robot()
	c.signIn(t, ana)
	if w := c.get(t, SignInPath); !strings.Contains(w.Body.String(), "ana@acme.test") {
		t.Error("sign-in does not work on loopback")
	}
}

func TestSessions(t *testing.T) {
	s := newSite(t)
	b := s.robot()
	b.cookies["__Host-session"] = strings.Repeat("a", 43)
	b.signIn(t, ana)
	first := b.cookies["__Host-session"]
	if first == strings.Repeat("a", 43) {
		t.Error("the session id that was there before sign-in was taken over")
	}
	b.signIn(t, ana)
	if second := b.cookies["__Host-session"]; second == first {
		t.Error("a second sign-in keeps the id")
	}
	stale := s.robot()
	stale.cookies["__Host-session"] = first
	in := func(b *robot) bool { return strings.Contains(b.get(t, SignInPath).Body.String(), "ana@acme.test") }
	if in(stale) {
		t.Error("the session before the second sign-in lives")
	}
	for range 6 { // used every 11 hours
		s.pass(11 * time.Hour)
		if !in(b) {
			t.Fatal("a session that is used ended")
		}
	}
	s.pass(sessionIdle)
	if in(b) {
		t.Error("an idle session lives")
	}
	b.signIn(t, ana)
	for range 16 {
		s.pass(11 * time.Hour)
		in(b)
	}
	if in(b) {
		t.Error("a session lives for longer than a week")
	}
	b.signIn(t, ana)
	p := s.people[ana]
	delete(s.people, ana)
	if in(b) {
		t.Error("a person who is gone is signed in")
	}
	s.people[ana] = p
}

// TestTossedCookies: a second cookie of one name was planted by a neighbour.
func TestTossedCookies(t *testing.T) {
	s := newSite(t)
	b := s.robot()
	b.signIn(t, ana)
	w := s.robot().do(t, http.MethodGet, SignInPath, "", "Cookie", "__Host-session="+b.cookies["__Host-session"]+"; __Host-session="+strings.Repeat("a", 43))
	if strings.Contains(w.Body.String(), "ana@acme.test") {
		t.Error("one of two session cookies was believed")
	}
}

func TestSignOutAndAnotherAccount(t *testing.T) {
	s := newSite(t)
	b := s.robot()
	b.signIn(t, ana)
	f := fields(t, b.get(t, request(testClient, testCallback)), SignOutPath)
	bad := pairs("token", "x")
	if w := b.post(t, SignOutPath, bad); w.Code != http.StatusForbidden || b.cookies["__Host-session"] == "" {
		t.Errorf("without the session's token: %d", w.Code)
	}
	session := b.cookies["__Host-session"]
	w := b.post(t, SignOutPath, f)
	if w.Code != http.StatusSeeOther || !strings.HasPrefix(w.Header().Get("Location"), AuthorizePath+"?") || b.cookies["__Host-session"] != "" {
		t.Fatalf("another account: %d %q", w.Code, w.Header().Get("Location"))
	}
	stale := s.robot()
	stale.cookies["__Host-session"] = session
	if strings.Contains(stale.get(t, SignInPath).Body.String(), "ana@acme.test") {
		t.Error("the session lives in the store")
	}
	in := fields(t, b.get(t, w.Header().Get("Location")), SignInPath)
	in.Set("link", s.link(t, beto))
	if q := b.approve(t, b.post(t, SignInPath, in).Header().Get("Location"), testCallback); q.Get("code") == "" {
		t.Errorf("the other account: %v", q)
	}
	if w := b.post(t, SignOutPath, fields(t, b.get(t, SignInPath), SignOutPath)); w.Header().Get("Location") != SignInPath {
		t.Errorf("plain sign-out: %d", w.Code)
	}
}

func TestDisconnect(t *testing.T) {
	s := newSite(t)
	got := s.connect(t)
	b, other := s.robot(), s.robot()
	b.signIn(t, ana)
	other.signIn(t, beto)
	f := fields(t, b.get(t, SignInPath), DisconnectPath)
	theirs := fields(t, other.get(t, SignInPath), SignOutPath)
	theirs.Set("grant", f.Get("grant"))
	if w := other.post(t, DisconnectPath, theirs); w.Code != http.StatusSeeOther || !s.active(t, got.Access) {
		t.Errorf("another person's grant: %d", w.Code)
	}
	if w := b.post(t, DisconnectPath, f); w.Code != http.StatusSeeOther || s.active(t, got.Access) {
		t.Errorf("own grant: %d", w.Code)
	}
	if w := b.get(t, SignInPath); strings.Contains(w.Body.String(), f.Get("grant")) {
		t.Error("a revoked grant is shown")
	}
}

// watching counts what is written.
type watching struct {
	store.Engine
	writes []store.Key
}

func (w *watching) Put(ctx context.Context, i store.Item, c store.Condition) error {
	w.writes = append(w.writes, i.Key)
	return w.Engine.Put(ctx, i, c)
}

func (w *watching) Delete(ctx context.Context, k store.Key, c store.Condition) error {
	w.writes = append(w.writes, k)
	return w.Engine.Delete(ctx, k, c)
}

func (w *watching) Transact(ctx context.Context, ops ...store.Op) error {
	for _, op := range ops {
		w.writes = append(w.writes, op.Key())
	}
	return w.Engine.Transact(ctx, ops...)
}

func (w *watching) Add(ctx context.Context, k store.Key, f string, d, m int64, e time.Time) (int64, error) {
	if !strings.HasPrefix(k.Partition, "oauth/limit/") {
		w.writes = append(w.writes, k)
	}
	return w.Engine.Add(ctx, k, f, d, m, e)
}

// TestStrangersWriteNothing: no request without a session opens a connection or writes a row that is no counter.
//
// Clauses: C12 S16
func TestStrangersWriteNothing(t *testing.T) {
	s := newSite(t)
	id := s.registered(t, testCallback)
	w := &watching{Engine: s.engine}
	s.Server.Store = w
	b := s.robot()
	for _, target := range []string{
		"/", SignInPath, SignInPath + "?link=" + strings.Repeat("a", 43), request(testClient, testCallback), request(id, testCallback),
		request("nobody", testCallback), request(id, "https://evil.example/"), ServerPath, OpenIDPath, KeysPath,
	} {
		b.get(t, target)
	}
	f := fields(t, b.get(t, request(testClient, testCallback)), SignInPath)
	f.Set("link", strings.Repeat("a", 43))
	b.post(t, SignInPath, f)
	for _, path := range []string{ConsentPath, SignOutPath, DisconnectPath} {
		b.post(t, path, pairs("request", strings.Repeat("a", 43), "answer", "allow", "token", "x", "grant", "grant_x"))
	}
	s.registered(t, testCallback)
	s.redeemed(t, "x", testClient, testCallback)
	s.refreshed(t, "bzr_grant_x.1.aaaa", testClient)
	s.token(t, "grant_type", grantClient, "client_id", "svc_x", "client_secret", "x")
	b.post(t, RevokePath, pairs("token", "x", "client_id", testClient))
	if len(w.writes) > 0 || len(s.fetched) > 0 {
		t.Errorf("wrote %v, fetched %v", w.writes, s.fetched)
	}
}

// Clauses: 7591-5b 7009-5
func TestLimits(t *testing.T) {
	s := newSite(t)
	// Whole minutes count, so the test stands at the beginning of one.
	b := s.robot()
	f := fields(t, b.get(t, SignInPath), SignInPath)
	f.Set("link", strings.Repeat("a", 43))
	for i := range limitSignIn.max {
		if w := b.post(t, SignInPath, f); w.Code != http.StatusBadRequest {
			t.Fatalf("attempt %d: %d", i, w.Code)
		}
	}
	good := s.link(t, ana)
	f.Set("link", good)
	if w := b.post(t, SignInPath, f); w.Code != http.StatusTooManyRequests {
		t.Errorf("over the limit: %d", w.Code)
	}
	s.pass(time.Minute)
	if w := b.post(t, SignInPath, f); w.Code != http.StatusSeeOther {
		t.Errorf("a minute later: %d", w.Code)
	}
	for range limitToken.max {
		if got := s.refreshed(t, "x", testClient); got.Error != codeInvalidGrant {
			t.Fatalf("%+v", got)
		}
	}
	if got := s.refreshed(t, "x", testClient); got.Status != http.StatusTooManyRequests || got.Header.Get("Retry-After") == "" {
		t.Errorf("token errors over the limit: %+v", got)
	}
	revoke := func() reply {
		return read(t, s.robot().post(t, RevokePath, pairs("token", "x", "client_id", "dcr_nobody")))
	}
	if got := revoke(); got.Status != http.StatusTooManyRequests { // one limit for both endpoints
		t.Errorf("revocation errors over the limit: %+v", got)
	}
	register := func() reply {
		return read(t, s.robot().do(t, http.MethodPost, RegisterPath, `{"redirect_uris":["https://a.example/cb"]}`, "Content-Type", "application/json"))
	}
	for range limitRegister.max {
		if got := register(); got.Status != http.StatusCreated {
			t.Fatalf("%+v", got)
		}
	}
	if got := register(); got.Status != http.StatusTooManyRequests || got.ID != "" {
		t.Errorf("registration over the limit: %+v", got)
	}
	first := s.connect(t)
	if got := s.refreshed(t, first.Refresh, testClient); got.Status != http.StatusOK {
		t.Errorf("a good token behind the same address: %+v", got)
	}
}

func TestBuckets(t *testing.T) {
	s := newSite(t)
	if s.bucket("[2001:db8:1:2::1]:1") != s.bucket("[2001:db8:1:2:ffff::9]:2") || s.bucket("[2001:db8:1:2::1%eth0]:1") != s.bucket("[2001:db8:1:2::1]:1") {
		t.Error("a /64 has several counters")
	}
	if s.bucket("192.0.2.1:1") != s.bucket("192.0.2.1:2") || s.bucket("192.0.2.1:1") != s.bucket("[::ffff:192.0.2.1]:1") {
		t.Error("one address has several counters")
	}
	seen := map[int]bool{}
	for i := range 200 {
		n := s.bucketOf(strings.Repeat("a", i))
		if n < 0 || n >= limitBuckets {
			t.Fatalf("bucket %d", n)
		}
		seen[n] = true
	}
	if len(seen) < 150 {
		t.Errorf("200 sources in %d buckets", len(seen))
	}
}

func TestErrorsOfTheEngineAreNotShown(t *testing.T) {
	if e := asWire(errors.New("secret")); e.status != http.StatusServiceUnavailable || strings.Contains(e.description, "secret") {
		t.Errorf("%+v", e)
	}
}

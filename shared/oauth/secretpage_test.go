package oauth

import (
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

const testSecret = "whsec_c2VjcmV0LWNhbmFyeS1jYW5hcnktY2FuYXJ5"

func (s *site) secretPage(t *testing.T, person string) string {
	t.Helper()
	address, until, err := s.KeepSecret(t.Context(), person, "webhook orders", testSecret)
	if err != nil || !strings.HasPrefix(address, testOrigin+SecretPath+"?id=") || !until.Equal(s.clock().Add(secretWait)) {
		t.Fatalf("%q until %s: %v", address, until, err)
	}
	return strings.TrimPrefix(address, testOrigin)
}

// TestSecretIsShownOnceToWhoAskedForIt: the way from the address through the sign-in to the secret, and everybody else's.
func TestSecretIsShownOnceToWhoAskedForIt(t *testing.T) {
	s := newSite(t)
	path := s.secretPage(t, ana)
	b := s.robot()
	for range 2 { // a preview opens it too
		if w := b.get(t, path); w.Code != http.StatusOK || strings.Contains(w.Body.String(), "webhook orders") || strings.Contains(w.Body.String(), testSecret) {
			t.Fatalf("a stranger: %d %s", w.Code, w.Body)
		}
	}
	f := fields(t, b.get(t, path), SignInPath)
	f.Set("link", s.link(t, ana))
	if w := b.post(t, SignInPath, f); w.Code != http.StatusSeeOther || w.Header().Get("Location") != path {
		t.Fatalf("after the sign-in: %d %s", w.Code, w.Header().Get("Location"))
	}
	w := b.get(t, path)
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "webhook orders") || strings.Contains(w.Body.String(), testSecret) {
		t.Fatalf("the page: %d %s", w.Code, w.Body)
	}
	reveal := fields(t, w, SecretPath)
	w = b.post(t, SecretPath, reveal)
	if w.Code != http.StatusOK || strings.Count(w.Body.String(), testSecret) != 1 || w.Header().Get("Cache-Control") != "no-store" {
		t.Fatalf("shown: %d %s", w.Code, w.Body)
	}
	for name, again := range map[string]func() int{
		"posted again": func() int { return b.post(t, SecretPath, reveal).Code },
		"opened again": func() int { return b.get(t, path).Code },
	} {
		if code := again(); code != http.StatusNotFound {
			t.Errorf("%s: %d", name, code)
		}
	}
	if strings.Contains(s.log.String(), testSecret) {
		t.Error("the secret is in the log")
	}
}

func TestSecretRefusals(t *testing.T) {
	s := newSite(t)
	path := s.secretPage(t, ana)
	id := path[strings.Index(path, "=")+1:]
	his := s.robot()
	his.signIn(t, beto)
	hers := s.robot()
	hers.signIn(t, ana)
	form := fields(t, hers.get(t, path), SecretPath)
	stolen := url.Values{"token": {form.Get("token")}, "id": {id}}
	own := url.Values{"token": {fields(t, his.get(t, SignInPath), SignOutPath).Get("token")}, "id": {id}}
	for name, c := range map[string]struct {
		do   func() int
		want int
	}{
		"another person posts":                  {func() int { return his.post(t, SecretPath, own).Code }, http.StatusNotFound},
		"another person posts her form":         {func() int { return his.post(t, SecretPath, stolen).Code }, http.StatusForbidden},
		"nobody posts":                          {func() int { return s.robot().post(t, SecretPath, stolen).Code }, http.StatusForbidden},
		"she posts without the session's token": {func() int { return hers.post(t, SecretPath, url.Values{"id": {id}}).Code }, http.StatusForbidden},
		"an id of another length":               {func() int { return hers.get(t, SecretPath+"?id=x").Code }, http.StatusNotFound},
		"an id that is nobody's":                {func() int { return hers.get(t, SecretPath+"?id="+strings.Repeat("a", 43)).Code }, http.StatusNotFound},
		"no id":                                 {func() int { return hers.get(t, SecretPath).Code }, http.StatusNotFound},
	} {
		if got := c.do(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if w := his.get(t, path); w.Code != http.StatusNotFound || strings.Contains(w.Body.String(), "orders") {
		t.Errorf("another person opens it: %d %s", w.Code, w.Body)
	}
	if w := hers.post(t, SecretPath, form); w.Code != http.StatusOK {
		t.Errorf("the refusals used it up: %d", w.Code)
	}
	late := s.secretPage(t, ana)
	form = fields(t, hers.get(t, late), SecretPath)
	s.pass(secretWait)
	if w := hers.post(t, SecretPath, form); w.Code != http.StatusNotFound {
		t.Errorf("after 15 minutes: %d", w.Code)
	}
	if _, _, err := s.KeepSecret(t.Context(), "", "x", "y"); err == nil {
		t.Error("a secret for nobody was kept")
	}
}

func TestSecretIsShownToOneOfManyAtOnce(t *testing.T) {
	s := newSite(t)
	b := s.robot()
	b.signIn(t, ana)
	form := fields(t, b.get(t, s.secretPage(t, ana)), SecretPath)
	cookies := maps.Clone(b.cookies)
	var shown atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if strings.Contains((&robot{site: s, cookies: maps.Clone(cookies), header: map[string]string{}}).post(t, SecretPath, form).Body.String(), testSecret) {
				shown.Add(1)
			}
		})
	}
	all.Wait()
	if shown.Load() != 1 {
		t.Errorf("shown %d times", shown.Load())
	}
}

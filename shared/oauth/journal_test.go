package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/store"
)

// diary keeps events as rows of the site's own engine, so that what was refused leaves none.
type diary struct {
	asked []Event
	fail  error
}

func journalKey(i int) store.Key {
	return store.Key{Table: store.Core, Partition: "journal", Sort: fmt.Sprintf("%04d", i)}
}

func (j *diary) Line(_ context.Context, e Event) (store.Op, error) {
	if j.fail != nil {
		return store.Op{}, j.fail
	}
	item, err := store.Encode(journalKey(len(j.asked)), 1, 1, e)
	j.asked = append(j.asked, e)
	return store.Put(item, store.Absent()), err
}

// kept are the events whose transaction went through, as "name person by reason".
func (j *diary) kept(t *testing.T, s *site) []string {
	t.Helper()
	var out []string
	for i, e := range j.asked {
		_, err := s.engine.Get(t.Context(), journalKey(i))
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if e.Organization != "org_acme" || e.Target == "" || (e.Person == "") == (e.By == "") {
			t.Errorf("event %+v", e)
		}
		out = append(out, strings.Join(slices.DeleteFunc([]string{e.Name, e.Person, e.By, e.Reason}, func(s string) bool { return s == "" }), " "))
	}
	return out
}

func journalled(t *testing.T) (*site, *diary) {
	t.Helper()
	s, j := newSite(t), &diary{}
	s.Journal = j
	return s, j
}

// TestEvents walks through what people and administrators do; each leaves its event, once, and nothing secret.
func TestEvents(t *testing.T) {
	s, j := journalled(t)
	b, phone := s.robot(), newAuthenticator(ana)
	b.signIn(t, ana)
	b.post(t, PasskeyAddPath, phone.create(t, b.get(t, SignInPath)))
	other := s.robot()
	other.post(t, PasskeyPath, phone.get(t, other.get(t, SignInPath)))
	b.post(t, ConsentPath, denied(t, b))
	q := b.approve(t, request(testClient, testCallback), testCallback)
	got := s.redeemed(t, q.Get("code"), testClient, testCallback)
	a, secret := s.account(t)
	if err := s.RevokeServiceAccount(t.Context(), a.ID); err != nil {
		t.Fatal(err)
	}
	if err := s.RevokeServiceAccount(t.Context(), a.ID); err != nil { // again: nothing happens
		t.Fatal(err)
	}
	page := b.get(t, SignInPath)
	b.post(t, DisconnectPath, fields(t, page, DisconnectPath))
	b.post(t, PasskeyRemovePath, fields(t, b.get(t, SignInPath), PasskeyRemovePath))
	b.post(t, PasskeyRemovePath, fields(t, b.get(t, SignInPath), SignOutPath)) // names no passkey
	want := []string{
		"link.created command line", "signed-in " + ana + " by link", "passkey.added " + ana, "signed-in " + ana + " by passkey",
		"authorization.denied " + ana, "authorization.approved " + ana, "grant.created " + ana,
		"service.created command line", "service.revoked command line",
		"grant.revoked " + ana + " disconnected by the person", "passkey.removed " + ana,
	}
	if events := j.kept(t, s); !slices.Equal(events, want) {
		t.Errorf("events\n%s\nwant\n%s", strings.Join(events, "\n"), strings.Join(want, "\n"))
	}
	text, err := json.Marshal(j.asked)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{q.Get("code"), got.Access, got.Refresh, secret, "s1"} {
		if value == "" || strings.Contains(string(text), `"`+value+`"`) {
			t.Errorf("secret %q in %s", value, text)
		}
	}
}

// denied is the answer of a person who does not want it.
func denied(t *testing.T, b *robot) map[string][]string {
	t.Helper()
	f := fields(t, b.get(t, request(testClient, testCallback)), ConsentPath)
	f.Set("answer", "deny")
	return f
}

// TestReuseIsAnEvent: nobody who is signed in ends a family that is used twice, this server does.
func TestReuseIsAnEvent(t *testing.T) {
	for name, c := range map[string]struct {
		act  func(*site, *testing.T, reply, string)
		want string
	}{
		"refresh token": {func(s *site, t *testing.T, first reply, _ string) {
			second := s.token(t, "grant_type", grantRefresh, "client_id", testClient, "refresh_token", first.Refresh)
			s.token(t, "grant_type", grantRefresh, "client_id", testClient, "refresh_token", second.Refresh)
			s.token(t, "grant_type", grantRefresh, "client_id", testClient, "refresh_token", first.Refresh)
		}, "grant.revoked oauth refresh token reused"},
		"code": {func(s *site, t *testing.T, _ reply, code string) {
			s.pass(codeGrace)
			s.redeemed(t, code, testClient, testCallback)
		}, "grant.revoked oauth code reused"},
		"the client": {func(s *site, t *testing.T, first reply, _ string) {
			s.robot().post(t, RevokePath, map[string][]string{"token": {first.Refresh}, "client_id": {testClient}})
		}, "grant.revoked " + ana + " revoked by the client"},
	} {
		t.Run(name, func(t *testing.T) {
			s, j := journalled(t)
			b := s.robot()
			b.signIn(t, ana)
			code := b.approve(t, request(testClient, testCallback), testCallback).Get("code")
			c.act(s, t, s.redeemed(t, code, testClient, testCallback), code)
			events := j.kept(t, s)
			if last := events[len(events)-1]; last != c.want || len(events) != 5 {
				t.Errorf("events %q, want %q last", events, c.want)
			}
		})
	}
}

// TestRefusalsAreNoEvents: strangers, and who is refused, write nothing.
func TestRefusalsAreNoEvents(t *testing.T) {
	s, j := journalled(t)
	b := s.robot()
	b.post(t, SignInPath, map[string][]string{"request": {"x"}, "link": {strings.Repeat("a", 43)}})
	s.token(t, "grant_type", grantClient, "client_id", "svc_00000000000000000000000000", "client_secret", "x")
	s.token(t, "grant_type", grantRefresh, "client_id", testClient, "refresh_token", "x")
	b.post(t, ConsentPath, map[string][]string{"request": {"x"}, "answer": {"allow"}})
	b.post(t, PasskeyRemovePath, map[string][]string{"passkey": {strings.Repeat("a", 43)}})
	if len(j.asked) != 0 {
		t.Errorf("events of strangers: %+v", j.asked)
	}
	b.signIn(t, ana)
	answer := denied(t, b)
	b.post(t, ConsentPath, answer)
	if w := b.post(t, ConsentPath, answer); w.Code != http.StatusForbidden {
		t.Errorf("answered twice: %d", w.Code)
	}
	if events := j.kept(t, s); len(events) != 3 {
		t.Errorf("events %q", events)
	}
}

// TestNoLineNoAct: what can't be audited does not happen.
func TestNoLineNoAct(t *testing.T) {
	s, j := journalled(t)
	j.fail = errors.New("no journal")
	if _, _, err := s.SignInLink(t.Context(), ana); !errors.Is(err, j.fail) {
		t.Errorf("link: %v", err)
	}
	if _, _, err := s.CreateServiceAccount(t.Context(), ServiceAccount{Organization: "org_acme", Name: "n", Role: "viewer", Scopes: []string{"emails:read"}}); !errors.Is(err, j.fail) {
		t.Errorf("service account: %v", err)
	}
	if all, err := s.ServiceAccounts(t.Context(), "org_acme"); err != nil || len(all) != 0 {
		t.Errorf("it is there: %v, %v", all, err)
	}
}

package oauth

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/store"
)

// TestDisconnectOfAPerson: every connection of a person ends, in the name of whoever removed them, and nobody else's.
func TestDisconnectOfAPerson(t *testing.T) {
	s, j := journalled(t)
	mine := []reply{s.connect(t), s.connect(t)}
	other := s.robot()
	other.signIn(t, beto)
	for range 2 { // again is fine
		if err := s.Disconnect(t.Context(), ana, Event{By: "key_1", Reason: "removed"}); err != nil {
			t.Fatal(err)
		}
	}
	for i, got := range mine {
		if s.active(t, got.Access) {
			t.Errorf("connection %d counts", i)
		}
		if again := s.refreshed(t, got.Refresh, testClient); again.Status != http.StatusBadRequest {
			t.Errorf("connection %d refreshes: %+v", i, again)
		}
	}
	revoked := 0
	for _, e := range j.asked {
		if e.Name == "grant.revoked" {
			revoked++
			if e.By != "key_1" || e.Person != "" || e.Reason != "removed" {
				t.Errorf("event %+v", e)
			}
		}
	}
	if revoked != 2 {
		t.Errorf("%d events of two connections", revoked)
	}
	if page := other.get(t, SignInPath); !strings.Contains(page.Body.String(), "beto@globex.test") {
		t.Error("somebody else was signed out")
	}
}

func TestInvitation(t *testing.T) {
	s, j := journalled(t)
	address, until, err := s.Invite(t.Context(), ana, Event{Person: "user_owner", Email: "owner@acme.test"})
	if err != nil || !until.Equal(s.clock().Add(invitationLifetime)) {
		t.Fatalf("%s, %v", until, err)
	}
	if e := j.asked[0]; e.Name != "invitation.created" || e.Person != "user_owner" || e.Target != ana || strings.Contains(s.log.String(), address[len(address)-43:]) {
		t.Errorf("event %+v", e)
	}
	if _, _, err := s.Invite(t.Context(), "user_nobody", Event{By: "x"}); err == nil {
		t.Error("nobody was invited")
	}
	s.pass(invitationLifetime - linkLifetime) // she reads it the day after tomorrow
	b := s.robot()
	f := fields(t, b.get(t, strings.TrimPrefix(address, testOrigin)), SignInPath)
	if w := b.post(t, SignInPath, f); w.Code != http.StatusSeeOther {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if w := s.robot().get(t, strings.TrimPrefix(address, testOrigin)); w.Code != http.StatusNotFound {
		t.Errorf("used twice: %d", w.Code)
	}
}

// TestWhoCameBackBringsNothing: sessions, links and connections from before somebody was removed open nothing after they are back.
func TestWhoCameBackBringsNothing(t *testing.T) {
	s := newSite(t)
	got := s.connect(t)
	b := s.robot()
	b.signIn(t, ana)
	address, _, err := s.Invite(t.Context(), ana, Event{By: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if w := b.get(t, SignInPath); !strings.Contains(w.Body.String(), "ana@acme.test") {
		t.Fatal("not signed in")
	}
	s.pass(linkLifetime)
	s.mu.Lock()
	back := s.people[ana]
	back.Since = s.now
	s.people[ana] = back
	s.mu.Unlock()
	if w := b.get(t, SignInPath); strings.Contains(w.Body.String(), "ana@acme.test") {
		t.Error("a session from before")
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	if w := s.robot().get(t, SignInPath+"?"+u.RawQuery); w.Code != http.StatusNotFound {
		t.Errorf("a link from before is shown: %d", w.Code)
	}
	if _, err := s.consumeLink(t.Context(), u.Query().Get("link")); err == nil {
		t.Error("a link from before signs in")
	}
	if again := s.refreshed(t, got.Refresh, testClient); again.Status != http.StatusBadRequest {
		t.Errorf("a connection from before refreshes: %+v", again)
	}
	s.pass(1e9)
	fresh := s.robot()
	fresh.signIn(t, ana)
	if w := fresh.get(t, SignInPath); !strings.Contains(w.Body.String(), "ana@acme.test") {
		t.Error("she can't come in")
	}
}

// TestDisconnectReadsOn: connections whose rows have expired leave entries behind, which must not hide those that live.
func TestDisconnectReadsOn(t *testing.T) {
	s := newSite(t)
	for i := range grantPage + 5 {
		id := "grant_0" + string(rune('A'+i/26)) + string(rune('A'+i%26))
		if err := s.engine.Put(t.Context(), store.Item{Key: personGrantKey(ana, id), Format: grantFormat, Revision: 1}, store.Absent()); err != nil {
			t.Fatal(err)
		}
	}
	got := s.connect(t)
	if err := s.Disconnect(t.Context(), ana, Event{By: ByServer}); err != nil {
		t.Fatal(err)
	}
	if s.active(t, got.Access) {
		t.Error("one behind the first page counts")
	}
}

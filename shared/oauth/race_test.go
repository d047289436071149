package oauth

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/buzon-mail/buzon/shared/store"
	"github.com/buzon-mail/buzon/shared/store/dynamo"
	"github.com/buzon-mail/buzon/shared/testkit/minidyn"
)

const many = 50

// onBoth runs a test on each engine. On the embedded one two instances share it, for one process holds the file; on DynamoDB each
// has an engine of its own.
func onBoth(t *testing.T, test func(t *testing.T, s *site)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) {
		s := newSite(t)
		s.other = s.instance(t, testOrigin)
		test(t, s)
	})
	t.Run("dynamo", func(t *testing.T) {
		rows := httptest.NewServer(minidyn.New())
		t.Cleanup(rows.Close)
		if err := minidyn.Tables(t.Context(), minidyn.At(rows.URL), "core", "ephemeral"); err != nil {
			t.Fatal(err)
		}
		open := func(s *site) store.Engine {
			engine, err := dynamo.New(dynamo.Options{AWS: minidyn.At(rows.URL), Core: "core", Ephemeral: "ephemeral", Clock: s.clock})
			if err != nil {
				t.Fatal(err)
			}
			return engine
		}
		s := newSiteOn(t, testOrigin, open)
		s.other = s.instanceOn(t, testOrigin, open(s))
		test(t, s)
	})
}

// twoInstances answers in turn by two processes over one store.
func (s *site) twoInstances() [2]map[string]http.Handler {
	return [2]map[string]http.Handler{s.mux, s.other.Routes()}
}

// atOnce sends one request many times at once, to both instances.
func atOnce(t *testing.T, s *site, list ...string) []reply {
	t.Helper()
	instances := s.twoInstances()
	replies := make([]reply, many)
	begin := make(chan struct{})
	var group sync.WaitGroup
	for i := range many {
		at := &site{Server: s.Server, mux: instances[i%2]}
		group.Go(func() {
			<-begin
			replies[i] = read(t, at.robot().post(t, TokenPath, pairs(list...)))
		})
	}
	close(begin)
	group.Wait()
	return replies
}

// Clauses: 6749-10.5
func TestManyRedemptionsOfOneCode(t *testing.T) { onBoth(t, manyRedemptionsOfOneCode) }

func manyRedemptionsOfOneCode(t *testing.T, s *site) {
	t.Helper()
	b := s.robot()
	b.signIn(t, ana)
	code := b.approve(t, request(testClient, testCallback), testCallback).Get("code")
	var winner reply
	won := 0
	for _, got := range atOnce(t, s, "grant_type", grantCode, "code", code, "client_id", testClient, "code_verifier", testVerifier) {
		switch {
		case got.Status == http.StatusOK:
			won++
			winner = got
		case got.Error != codeInvalidGrant && got.Status != http.StatusTooManyRequests:
			t.Errorf("loser: %+v", got)
		}
	}
	if won != 1 {
		t.Fatalf("%d redemptions succeeded", won)
	}
	if !s.active(t, winner.Access) {
		t.Error("the losers revoked the winner's grant")
	}
	if grants, err := s.Grants(t.Context(), ana); err != nil || len(grants) != 1 {
		t.Errorf("%d grants, %v", len(grants), err)
	}
	if got := s.refreshed(t, winner.Refresh, testClient); got.Status != http.StatusOK {
		t.Errorf("refresh of the winner: %+v", got)
	}
}

func TestManyRefreshesOfOneToken(t *testing.T) { onBoth(t, manyRefreshesOfOneToken) }

func manyRefreshesOfOneToken(t *testing.T, s *site) {
	t.Helper()
	first := s.connect(t)
	successors := map[string]int{}
	for _, got := range atOnce(t, s, "grant_type", grantRefresh, "refresh_token", first.Refresh, "client_id", testClient) {
		if got.Status == http.StatusServiceUnavailable { // gave up racing, and says to try again
			continue
		}
		if got.Status != http.StatusOK {
			t.Fatalf("%+v", got)
		}
		successors[got.Refresh]++
	}
	if len(successors) != 1 {
		t.Fatalf("%d successors of one token", len(successors))
	}
	if !s.active(t, first.Access) {
		t.Error("the family was revoked")
	}
	for token := range successors {
		if got := s.refreshed(t, token, testClient); got.Status != http.StatusOK || !strings.Contains(got.Refresh, ".3.") {
			t.Errorf("the successor: %+v", got)
		}
	}
}

func TestManyUsesOfOneLink(t *testing.T) { onBoth(t, manyUsesOfOneLink) }

func manyUsesOfOneLink(t *testing.T, s *site) {
	t.Helper()
	link, _, err := s.SignInLink(t.Context(), ana)
	if err != nil {
		t.Fatal(err)
	}
	token := pasted(link)
	var mu sync.Mutex
	won := 0
	var group sync.WaitGroup
	for range many {
		group.Go(func() {
			if _, err := s.consumeLink(t.Context(), token); err == nil {
				mu.Lock()
				won++
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if won != 1 {
		t.Errorf("one link signed in %d times", won)
	}
}

func TestManyAnswersToOneQuestion(t *testing.T) { onBoth(t, manyAnswersToOneQuestion) }

func manyAnswersToOneQuestion(t *testing.T, s *site) {
	t.Helper()
	b := s.robot()
	b.signIn(t, ana)
	f := fields(t, b.get(t, request(testClient, testCallback)), ConsentPath)
	f.Set("answer", "allow")
	var mu sync.Mutex
	codes := 0
	var group sync.WaitGroup
	for range many {
		group.Go(func() {
			c := &robot{site: s, cookies: map[string]string{"__Host-session": b.cookies["__Host-session"]}, header: map[string]string{}}
			if w := c.post(t, ConsentPath, f); w.Code == http.StatusSeeOther {
				mu.Lock()
				codes++
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if codes != 1 {
		t.Errorf("%d codes for one approval", codes)
	}
}

// TestRevocationWinsOverRotation: a rotation that read the grant before it was revoked must not write it back.
func TestRevocationWinsOverRotation(t *testing.T) { onBoth(t, revocationWinsOverRotation) }

func revocationWinsOverRotation(t *testing.T, s *site) {
	t.Helper()
	first := s.connect(t)
	g, revision, _, err := s.verifyRefresh(t.Context(), first.Refresh)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.RevokeGrant(t.Context(), g.ID, "test"); err != nil {
		t.Fatal(err)
	}
	op, err := g.put(revision+1, store.RevisionIs(revision))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Store.Transact(t.Context(), op); err == nil {
		t.Error("an old state of the grant was written over its revocation")
	}
}

package web

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/oauth"
	"github.com/buzon-mail/buzon/shared/store/embedded"
)

// TestSourceIsTheEdgesWord: the address comes from the connection or the platform, whatever a header says.
func TestSourceIsTheEdgesWord(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.1:4711": "192.0.2.1", "[2001:db8::1]:0": "2001:db8::1", "[::ffff:192.0.2.1]:80": "192.0.2.1", "[fe80::1%eth0]:1": "fe80::1",
		"": "", "192.0.2.1": "", "evil.example:80": "", "@": "", "192.0.2.1:x": "",
	} {
		got := "none"
		i := &identified{random: rand.Reader}
		i.next = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = i.Source(r.Context()) })
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = remote
		for _, name := range []string{"X-Forwarded-For", "X-Real-Ip", "Forwarded", "Cf-Connecting-Ip", "True-Client-Ip"} {
			r.Header.Set(name, "203.0.113.9")
		}
		i.ServeHTTP(httptest.NewRecorder(), r)
		if got != want {
			t.Errorf("%q: %q, want %q", remote, got, want)
		}
	}
	if got := (&identified{}).Source(t.Context()); got != "" {
		t.Errorf("outside of a request: %q", got)
	}
}

func TestJournalIsTheOrganizationsAudit(t *testing.T) {
	now := time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	engine, err := embedded.Open(filepath.Join(t.TempDir(), "db"), embedded.Options{Clock: clock, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	st, err := inboxstore.New(engine, clock)
	if err != nil {
		t.Fatal(err)
	}
	j := NewJournal(st, clock, rand.Reader)
	served := NewJournal(st, clock, rand.Reader)
	served.request, served.source = func(context.Context) string { return "r1" }, func(context.Context) string { return "192.0.2.1" }
	for _, x := range []struct {
		journal *Journal
		event   oauth.Event
		want    inbox.Audit
	}{
		{served, oauth.Event{Name: "a", Person: "user_1", Email: "a@x.test", Client: "c", Grant: "g"},
			inbox.Audit{Actor: inbox.AuditActor{Type: inbox.ActorPerson, ID: "user_1", Email: "a@x.test", Client: "c", Grant: "g"}, Surface: "oauth", Request: "r1", Source: "192.0.2.1"}},
		{served, oauth.Event{Name: "b", By: oauth.ByServer, Reason: "reused"},
			inbox.Audit{Actor: inbox.AuditActor{Type: inbox.ActorSystem, ID: "oauth"}, Surface: "oauth", Request: "r1", Source: "192.0.2.1", Reason: "reused"}},
		{served, oauth.Event{Name: "c", By: oauth.ByCommandLine}, inbox.Audit{Actor: inbox.AuditActor{Type: inbox.ActorSystem, ID: "command line"}}},
		{j, oauth.Event{Name: "d", By: oauth.ByCommandLine}, inbox.Audit{Actor: inbox.AuditActor{Type: inbox.ActorSystem, ID: "command line"}}},
	} {
		x.event.Organization, x.event.Target = "org_1", "t_"+x.event.Name
		line, err := x.journal.Line(t.Context(), x.event)
		if err != nil {
			t.Fatal(err)
		}
		if err := engine.Transact(t.Context(), line); err != nil {
			t.Fatal(err)
		}
		rows, _, err := st.Events(t.Context(), inbox.AuditRange{Organization: "org_1", Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(rows, func(e inbox.AuditEvent) bool { return e.Action == x.event.Name })
		if at < 0 {
			t.Fatalf("%s is not in %+v", x.event.Name, rows)
		}
		got := rows[at]
		x.want.ID, x.want.At, x.want.Action, x.want.Organization = got.ID, now, x.event.Name, "org_1"
		if got.Audit != x.want || !slices.Equal(got.Targets, []string{x.event.Target}) {
			t.Errorf("%+v, want %+v", got, x.want)
		}
	}
	for _, r := range []inbox.AuditRange{{Organization: "org_2"}, {Organization: "org_1", Workspace: "ws_1"}} {
		r.Limit = 10
		if rows, _, err := st.Events(t.Context(), r); err != nil || len(rows) != 0 {
			t.Errorf("%+v: %+v, %v", r, rows, err)
		}
	}
}

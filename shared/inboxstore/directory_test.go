package inboxstore_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxstore"
)

func TestDomains(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	for in, want := range map[string]string{
		"Mail.Example.COM": "mail.example.com", "bücher.example": "xn--bcher-kva.example", "xn--bcher-kva.example": "xn--bcher-kva.example",
		"example.org.": "example.org", " a.b ": "a.b",
	} {
		if got, err := inboxstore.NormalDomain(in); err != nil || got != want {
			t.Errorf("NormalDomain(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
	for _, in := range []string{
		"", ".", "localhost", "a..b", "-a.example", "a-.example", "a b.example", "a_b.example", "user@example.com", "example.com/x",
		"127.0.0.1", "1.2", "xn--a.example", strings.Repeat("a", 64) + ".example", strings.Repeat("a.", 130) + "example", "a\x00.example", "*.example.com",
	} {
		if got, err := inboxstore.NormalDomain(in); !apperr.Is(err, apperr.Invalid) {
			t.Errorf("NormalDomain(%q) = %q, %v; want a refusal", in, got, err)
		}
	}
	if d, err := w.AddDomain(ctx, orgA, "ACME.test"); err != nil || d != "acme.test" {
		t.Errorf("again: %q %v", d, err)
	}
	_, err := w.AddDomain(ctx, orgB, "acme.test")
	wantKind(t, err, apperr.Conflict)
	if text := fmt.Sprint(apperr.From(err).Public, apperr.From(err).Fixes); strings.Contains(text, "acme") || strings.Contains(text, orgA) {
		t.Errorf("the refusal names the other tenant: %s", text)
	}
	_, err = w.AddDomain(ctx, "org_00000000000000000000000009", "new.test")
	wantKind(t, err, apperr.NotFound)
	_, err = w.AddDomain(ctx, orgA, "aaa.test")
	w.must(err)
	if got, err := w.Domains(ctx, orgA); err != nil || len(got) != 2 || got[0] != "acme.test" && got[0] != "aaa.test" {
		t.Errorf("domains %v %v", got, err)
	}
}

func TestOneDomainAtOnce(t *testing.T) {
	w := newWorld(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i := range 10 {
		wg.Go(func() {
			if _, err := w.AddDomain(t.Context(), []string{orgA, orgB}[i%2], "race.test"); err == nil {
				mu.Lock()
				won++
				mu.Unlock()
			} else if !apperr.Is(err, apperr.Conflict) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	a, _ := w.Domains(t.Context(), orgA)
	b, _ := w.Domains(t.Context(), orgB)
	if slices.Contains(a, "race.test") == slices.Contains(b, "race.test") || won == 0 {
		t.Errorf("domains %v and %v", a, b)
	}
}

func TestSeedsCanBeRepeated(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	org := inbox.Organization{ID: orgA, Slug: "acme", Name: "acme"}
	w.must(w.CreateOrganization(ctx, org))
	w.must(w.CreateWorkspace(ctx, inbox.Workspace{ID: wsA, Organization: orgA, Slug: "main", Name: "Main"}))
	for name, err := range map[string]error{
		"slug of another":     w.CreateOrganization(ctx, inbox.Organization{ID: orgA, Slug: "globex", Name: "x"}),
		"id of another":       w.CreateOrganization(ctx, inbox.Organization{ID: orgB, Slug: "fresh", Name: "x"}),
		"workspace slug":      w.CreateWorkspace(ctx, inbox.Workspace{ID: "ws_00000000000000000000000007", Organization: orgA, Slug: "main", Name: "x"}),
		"workspace id":        w.CreateWorkspace(ctx, inbox.Workspace{ID: wsA, Organization: orgA, Slug: "fresh", Name: "x"}),
		"inbox slug":          w.CreateInbox(ctx, inbox.Inbox{ID: "inbox_00000000000000000000000008", Organization: orgA, Workspace: wsA, Slug: "in", Address: "in2@acme.test"}, inbox.Act{}),
		"inbox address":       w.CreateInbox(ctx, inbox.Inbox{ID: "inbox_00000000000000000000000008", Organization: orgA, Workspace: wsA, Slug: "in2", Address: "in@acme.test"}, inbox.Act{}),
		"foreign domain":      w.CreateInbox(ctx, inbox.Inbox{ID: "inbox_00000000000000000000000008", Organization: orgA, Workspace: wsA, Slug: "in2", Address: "x@globex.test"}, inbox.Act{}),
		"foreign workspace":   w.CreateInbox(ctx, inbox.Inbox{ID: "inbox_00000000000000000000000008", Organization: orgA, Workspace: wsB, Slug: "in2", Address: "x@acme.test"}, inbox.Act{}),
		"id with a separator": w.CreateOrganization(ctx, inbox.Organization{ID: "org_0000000000000000000/0000001", Slug: "y", Name: "x"}),
		"slug":                w.CreateOrganization(ctx, inbox.Organization{ID: "org_00000000000000000000000007", Slug: "Y", Name: "x"}),
		"name":                w.CreateOrganization(ctx, inbox.Organization{ID: "org_00000000000000000000000007", Slug: "y"}),
	} {
		if err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if _, err := w.Inbox(ctx, wsA, "in2"); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("a refused inbox left a row: %v", err)
	}
	got, err := w.OrganizationBySlug(ctx, "acme")
	if w.must(err); got != org {
		t.Errorf("organization %+v", got)
	}
}

func TestPrincipal(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	const ws2, user = "ws_00000000000000000000000003", "user_00000000000000000000000001"
	w.must(w.CreateWorkspace(ctx, inbox.Workspace{ID: ws2, Organization: orgA, Slug: "two", Name: "Two"}))
	m := inbox.Member{User: user, Email: " Owner@Acme.test", Organization: orgA, Role: inbox.RoleOperator}
	w.must(w.CreateMember(ctx, m))
	m.Workspaces = map[string]inbox.Role{ws2: inbox.RoleAdmin}
	w.must(w.CreateMember(ctx, m))
	p, err := w.Principal(ctx, user)
	w.must(err)
	if len(p.Workspaces) != 2 || p.Workspaces[0].Role != inbox.RoleOperator || p.Workspaces[1].Role != inbox.RoleAdmin || p.Member.Email != "owner@acme.test" {
		t.Errorf("principal %+v", p)
	}
	m.Role, m.Workspaces = "", map[string]inbox.Role{wsA: "", ws2: inbox.RoleViewer, wsB: inbox.RoleOwner}
	w.must(w.CreateMember(ctx, m))
	p, err = w.Principal(ctx, user)
	w.must(err)
	if len(p.Workspaces) != 1 || p.Workspaces[0].Workspace.ID != ws2 {
		t.Errorf("with a role in one workspace, and one claimed in another tenant's: %+v", p.Workspaces)
	}
	found, err := w.UserByEmail(ctx, "OWNER@acme.test")
	if w.must(err); found.User != user {
		t.Errorf("by e-mail: %+v", found)
	}
	_, err = w.Principal(ctx, "user_00000000000000000000000009")
	wantKind(t, err, apperr.NotFound)
	_, err = w.UserByEmail(ctx, "nobody@acme.test\xff")
	wantKind(t, err, apperr.NotFound)
	for name, x := range map[string]inbox.Member{
		"address of another":   {User: "user_00000000000000000000000002", Email: "owner@acme.test", Organization: orgB, Role: inbox.RoleOwner},
		"moved to another org": {User: user, Email: "owner@acme.test", Organization: orgB, Role: inbox.RoleOwner},
		"another address":      {User: user, Email: "new@acme.test", Organization: orgA, Role: inbox.RoleOwner},
		"no such organization": {User: "user_00000000000000000000000002", Email: "x@acme.test", Organization: "org_00000000000000000000000009", Role: inbox.RoleOwner},
		"unknown role":         {User: "user_00000000000000000000000002", Email: "x@acme.test", Organization: orgA, Role: "root"},
		"no address":           {User: "user_00000000000000000000000002", Email: "x", Organization: orgA, Role: inbox.RoleOwner},
		"address with a break": {User: "user_00000000000000000000000002", Email: "x\n@acme.test", Organization: orgA, Role: inbox.RoleOwner},
		"id of another kind":   {User: "org_00000000000000000000000002", Email: "x@acme.test", Organization: orgA, Role: inbox.RoleOwner},
	} {
		if err := w.CreateMember(ctx, x); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

func TestBounds(t *testing.T) {
	w := newWorld(t)
	var err error
	n := 1
	for ; err == nil && n <= inboxstore.MaxDomains+1; n++ {
		_, err = w.AddDomain(t.Context(), orgA, fmt.Sprintf("d%d.test", n))
	}
	wantKind(t, err, apperr.Conflict)
	if got, err := w.Domains(t.Context(), orgA); err != nil || len(got) != inboxstore.MaxDomains {
		t.Errorf("%d domains, %v", len(got), err)
	}
}

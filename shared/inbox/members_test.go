package inbox_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
)

func owner() inbox.Actor {
	a := acme()
	a.Role, a.OrganizationRole, a.Operation = inbox.RoleOwner, inbox.RoleOwner, "x"
	a.By = inbox.AuditActor{Type: inbox.ActorPerson, ID: "user_a", Email: "a@acme.test"}
	return a
}

// TestRemovalThatBreaksOff: connections that could not be ended end when the call is repeated, and before the person comes back.
func TestRemovalThatBreaksOff(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	m, err := w.services.Members.Upsert(ctx, owner(), inbox.MemberPatch{Email: "b@acme.test", Role: inbox.Set(inbox.RoleViewer)})
	w.must(err)
	if len(w.invited) != 1 || w.invited[0] != m.User+" by user_a" || !strings.Contains(m.Invitation.Secret, m.User) {
		t.Fatalf("invited %v, %+v", w.invited, m)
	}
	w.signInsDown = apperr.New(apperr.Unavailable, "", "Later.")
	if _, err := w.services.Members.Delete(ctx, owner(), m.User); !apperr.Is(err, apperr.Unavailable) {
		t.Errorf("broken off: %v", err)
	}
	if _, err := w.services.Members.Upsert(ctx, owner(), inbox.MemberPatch{Email: "b@acme.test", Restore: true}); !apperr.Is(err, apperr.Unavailable) {
		t.Errorf("taken back with what they had: %v", err)
	}
	if _, err := w.store.Principal(ctx, m.User); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("they are in: %v", err)
	}
	w.signInsDown = nil
	gone, err := w.services.Members.Delete(ctx, owner(), m.User)
	if err != nil || gone.DeletedAt.IsZero() || len(w.ended) != 1 {
		t.Errorf("repeated: %+v, %v, ended %v", gone, err, w.ended)
	}
	w.advance(time.Hour)
	back, err := w.services.Members.Upsert(ctx, owner(), inbox.MemberPatch{Email: "B@acme.test", Restore: true})
	if err != nil || !back.RestoredAt.Equal(w.now()) || back.Role != inbox.RoleViewer || len(w.ended) != 2 || back.Created {
		t.Errorf("back: %+v, %v, ended %v", back, err, w.ended)
	}
}

// TestKeysGoWithTheirMaker: what a removed member made ends in the name of who removed them.
func TestKeysGoWithTheirMaker(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	m, err := w.services.Members.Upsert(ctx, owner(), inbox.MemberPatch{Email: "b@acme.test", Role: inbox.Set(inbox.RoleAdmin)})
	w.must(err)
	maker := owner()
	maker.Subject, maker.By.ID = m.User, m.User
	reach := inbox.Reach{Scopes: []string{"emails:read"}, Whole: true}
	k, _, err := w.services.APIKeys.Create(ctx, maker, reach, inbox.NewAPIKey{Name: "k", Scopes: reach.Scopes, ExpiresAt: w.now().Add(time.Hour)})
	w.must(err)
	_, err = w.services.Members.Delete(ctx, owner(), m.User)
	w.must(err)
	got, err := w.store.APIKey(ctx, orgAcme, k.ID)
	if err != nil || got.RevokedAt.IsZero() {
		t.Errorf("%+v, %v", got, err)
	}
	rows, _, err := w.store.Events(ctx, inbox.AuditRange{Organization: orgAcme, Limit: 10})
	ended := slices.ContainsFunc(rows, func(e inbox.AuditEvent) bool { return e.Targets[0] == k.ID && e.Actor.ID == "user_a" && e.Before != "" })
	if err != nil || len(rows) != 4 || !ended {
		t.Errorf("audit %+v, %v", rows, err)
	}
}

// TestOrganizationRoles: a role in a workspace is none in the organization.
func TestOrganizationRoles(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	for _, role := range []inbox.Role{"", inbox.RoleViewer, inbox.RoleOperator, inbox.RoleAdmin} {
		a := owner()
		a.OrganizationRole = role
		_, upsert := w.services.Members.Upsert(ctx, a, inbox.MemberPatch{Email: "b@acme.test", Role: inbox.Set(inbox.RoleOwner)})
		_, ask := w.services.Members.AskUpsert(ctx, a, inbox.MemberPatch{Email: "b@acme.test", Role: inbox.Set(inbox.RoleOwner)})
		_, remove := w.services.Members.Delete(ctx, a, "user_00000000000000000000000001")
		_, askRemove := w.services.Members.AskDelete(ctx, a, "user_00000000000000000000000001")
		_, _, workspace := w.services.Workspaces.Upsert(ctx, a, inbox.WorkspacePatch{Slug: "x"})
		for i, err := range []error{upsert, ask, remove, askRemove, workspace} {
			if e := apperr.From(err); e.Kind != apperr.Forbidden || e.Code != "insufficient_role" {
				t.Errorf("%q, call %d: %v", role, i, err)
			}
		}
		_, err := w.services.Members.List(ctx, a, inbox.MemberQuery{}, inbox.PageRequest{})
		if (err == nil) != (role == inbox.RoleAdmin) {
			t.Errorf("%q lists: %v", role, err)
		}
	}
	if len(w.invited) > 0 || len(w.ended) > 0 {
		t.Error("a refused call let somebody in or out")
	}
}

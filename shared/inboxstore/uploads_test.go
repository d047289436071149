package inboxstore_test

import (
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
)

// An address counts as proven for the person and the spelling it was proven for.
func TestProveMember(t *testing.T) {
	w := newWorld(t)
	m := inbox.Member{User: "user_01J00000000000000000000099", Email: "zoe@acme.test", Organization: orgA, Role: inbox.RoleViewer}
	w.must(w.CreateMember(t.Context(), m))
	for _, c := range []struct {
		user, address string
		want          bool
	}{{m.User, "other@acme.test", false}, {m.User, m.Email, true}, {m.User, m.Email, false}} {
		if got, err := w.ProveMember(t.Context(), c.user, c.address); err != nil || got != c.want {
			t.Errorf("%s: %v, %v", c.address, got, err)
		}
	}
	if _, err := w.ProveMember(t.Context(), "user_01J00000000000000000000098", m.Email); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("nobody: %v", err)
	}
	got, err := w.UserByEmail(t.Context(), m.Email)
	if err != nil || !got.AddressProven() {
		t.Errorf("%+v, %v", got, err)
	}
	all, err := w.Members(t.Context(), orgA)
	w.must(err)
	proven := 0
	for _, one := range all {
		if one.AddressProven() {
			proven++
		}
	}
	if proven != 1 {
		t.Errorf("%d of the organization's rows are proven", proven)
	}
	got.Email = "new@acme.test"
	if got.AddressProven() {
		t.Error("another address is proven too")
	}
}

func TestUploadsOfTenants(t *testing.T) {
	w := newWorld(t)
	now := w.now()
	u := inbox.Upload{ID: "upload_01J00000000000000000000001", Organization: orgA, Workspace: wsA, Key: "upload/x", ExpiresAt: now.Add(time.Hour)}
	w.must(w.CreateUpload(t.Context(), u, inbox.Act{}))
	if _, err := w.Upload(t.Context(), wsB, u.ID); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("another tenant: %v", err)
	}
	if got, err := w.Uploads(t.Context(), wsB, 10); err != nil || len(got) != 0 {
		t.Errorf("another tenant: %v, %v", got, err)
	}
	if got, err := w.Upload(t.Context(), wsA, u.ID); err != nil || got.Key != u.Key {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := w.ExpiredUploads(t.Context(), now, 10); err != nil || len(got) != 0 {
		t.Errorf("before its time: %v, %v", got, err)
	}
	got, err := w.ExpiredUploads(t.Context(), now.Add(2*time.Hour), 10)
	if err != nil || len(got) != 1 || got[0].ID != u.ID {
		t.Fatalf("%v, %v", got, err)
	}
	for range 2 {
		w.must(w.DropUpload(t.Context(), got[0]))
	}
	if got, err := w.ExpiredUploads(t.Context(), now.Add(2*time.Hour), 10); err != nil || len(got) != 0 {
		t.Errorf("dropped: %v, %v", got, err)
	}
}

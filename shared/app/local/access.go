package local

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxops"
	"github.com/buzon-mail/buzon/shared/oauth"
)

// LinkRequest asks for a one-time sign-in link.
type LinkRequest struct {
	Email string
}

// LinkReply carries the link.
type LinkReply struct {
	URL     string    `json:"url"`
	Expires time.Time `json:"expires_at"`
}

// UserLink makes a link that signs a person in once: the first sign-in, an invitation, a lost passkey, a test.
func (a *admin) UserLink(ctx context.Context, r LinkRequest) (LinkReply, error) {
	m, err := a.store.UserByEmail(ctx, r.Email)
	if apperr.Is(err, apperr.NotFound) {
		err = apperr.New(apperr.NotFound, "", "Nobody here has the address "+r.Email+".",
			"Name the owner that `buzon org create` was given, or a person of the demo such as owner@acme.test.")
	}
	if err != nil {
		return LinkReply{}, err
	}
	url, expires, err := a.signInLink(ctx, m.User)
	return LinkReply{URL: url, Expires: expires}, err
}

// ProveReply is the person.
type ProveReply struct {
	User  string `json:"user"`
	Email string `json:"email"`
}

// UserProve notes, on the word of whoever runs the service, that an address is the person's own, so that mail may be sent there.
func (a *admin) UserProve(ctx context.Context, r LinkRequest) (ProveReply, error) {
	m, err := a.store.UserByEmail(ctx, r.Email)
	if err == nil {
		_, err = a.store.ProveMember(ctx, m.User, m.Email)
	}
	return ProveReply{m.User, m.Email}, err
}

// RotateReply says what signs now.
type RotateReply struct {
	Rotated time.Time `json:"rotated_at"`
	Keys    int       `json:"keys_published"`
}

// RotateKeys lets the next key of access tokens sign. Every process reads the set again within five minutes; the next key
// was published for ten, so none meets a token that it can't verify.
func (a *admin) RotateKeys(ctx context.Context, _ struct{}) (RotateReply, error) {
	a.rotating.Lock()
	defer a.rotating.Unlock()
	now := a.clock().UTC()
	err := a.changeKeys(ctx, func(text []byte) ([]byte, error) {
		set, err := oauth.ParseKeySet(text)
		if err != nil {
			return nil, fmt.Errorf("the key set: %w", err)
		}
		next, err := set.Rotate(rand.Reader, now)
		if errors.Is(err, oauth.ErrRotateTooSoon) {
			return nil, apperr.New(apperr.Conflict, "too_soon", "It is too soon to rotate: a key is published for 10 minutes before it signs, "+
				"and verifies for an hour after.", "Try again in an hour.").Because(err)
		}
		if err != nil {
			return nil, fmt.Errorf("rotate: %w", err)
		}
		return next.Secret()
	})
	if err != nil {
		return RotateReply{}, err
	}
	return RotateReply{Rotated: now, Keys: 3}, nil
}

// keyFile changes the key set in the data folder.
func keyFile(dir string) func(ctx context.Context, change func([]byte) ([]byte, error)) error {
	return func(_ context.Context, change func([]byte) ([]byte, error)) error {
		path := filepath.Join(dir, keysFile)
		text, err := os.ReadFile(path) //nolint:gosec // a fixed name in the data folder
		if err != nil {
			return fmt.Errorf("read %s: %w", keysFile, err)
		}
		if text, err = change(text); err != nil {
			return err
		}
		return replace(path, text)
	}
}

// replace puts a secret's new text in place of the old one: a crash leaves one of the two, whole.
func replace(path string, text []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return fmt.Errorf("make %s: %w", filepath.Base(path), err)
	}
	defer func() { _ = os.Remove(temporary.Name()) }()
	_, err = temporary.Write(text)
	if err = errors.Join(err, temporary.Sync(), temporary.Close()); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	if err := os.Rename(temporary.Name(), path); err != nil {
		return fmt.Errorf("keep %s: %w", filepath.Base(path), err)
	}
	return nil
}

// ServiceRequest asks for a service account.
type ServiceRequest struct {
	Organization string // slug
	Name         string
	Role         string
	Workspace    string // id or slug; empty: all
	Scope        []string
}

// ServiceReply is an account that was just made.
type ServiceReply struct {
	oauth.ServiceAccount
	Client string `json:"client_id"` // its id, by the name that /token wants it under
	Secret string `json:"client_secret,omitempty"`
	Token  string `json:"token_endpoint,omitempty"`
}

// CreateService makes a service account whose scopes are of use to its role.
func (a *admin) CreateService(ctx context.Context, r ServiceRequest) (ServiceReply, error) {
	role := inbox.Role(r.Role)
	if !role.Valid() {
		return ServiceReply{}, apperr.New(apperr.Invalid, "", "There is no role "+r.Role+".", "Choose of: viewer, operator, admin, owner.")
	}
	o, err := a.store.OrganizationBySlug(ctx, r.Organization)
	if err != nil {
		return ServiceReply{}, err
	}
	useful, err := inboxops.ScopesOf(inboxops.RoleOf(role))
	if err != nil {
		return ServiceReply{}, err
	}
	scopes := slices.Compact(slices.Sorted(slices.Values(r.Scope)))
	if len(scopes) == 0 {
		scopes = useful
	}
	for _, name := range scopes {
		if !slices.Contains(useful, name) {
			return ServiceReply{}, apperr.New(apperr.Invalid, "", "The scope "+name+" is of no use to the role "+r.Role+".",
				"Choose of: "+strings.Join(useful, ", ")+".")
		}
	}
	account := oauth.ServiceAccount{Name: r.Name, Organization: o.ID, Role: r.Role, Scopes: scopes}
	if account.Workspace, err = a.workspaceOf(ctx, o.ID, r.Workspace); err != nil {
		return ServiceReply{}, err
	}
	server, err := a.server()
	if err != nil {
		return ServiceReply{}, err
	}
	made, secret, err := server.CreateServiceAccount(ctx, account)
	return ServiceReply{ServiceAccount: made, Client: made.ID, Secret: secret, Token: server.Issuer + oauth.TokenPath}, err
}

func (a *admin) workspaceOf(ctx context.Context, org, ref string) (string, error) {
	if ref == "" {
		return "", nil
	}
	all, err := a.store.Workspaces(ctx, org)
	if err != nil {
		return "", err
	}
	for _, w := range all {
		if w.ID == ref || w.Slug == ref {
			return w.ID, nil
		}
	}
	return "", apperr.New(apperr.NotFound, "", "The organization has no workspace "+ref+".")
}

// ListServices lists an organization's service accounts.
func (a *admin) ListServices(ctx context.Context, r struct{ Organization string }) ([]oauth.ServiceAccount, error) {
	o, err := a.store.OrganizationBySlug(ctx, r.Organization)
	if err != nil {
		return nil, err
	}
	server, err := a.server()
	if err != nil {
		return nil, err
	}
	all, err := server.ServiceAccounts(ctx, o.ID)
	return append([]oauth.ServiceAccount{}, all...), err
}

// RevokeService ends a service account.
func (a *admin) RevokeService(ctx context.Context, r struct{ ID string }) (oauth.ServiceAccount, error) {
	server, err := a.server()
	if err != nil {
		return oauth.ServiceAccount{}, err
	}
	if err := server.RevokeServiceAccount(ctx, r.ID); err != nil {
		return oauth.ServiceAccount{}, err
	}
	return server.ServiceAccount(ctx, r.ID)
}

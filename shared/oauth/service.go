package oauth

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/oauth/standing"
	"github.com/buzon-mail/buzon/shared/store"
)

const (
	servicePrefix = standing.ServicePrefix
	secretPrefix  = "bzs_"
	serviceFormat = 1
	maxServices   = 100 // that a list shows
)

// ServiceAccount is an agent without a person: it gets tokens with a secret (RFC 6749 section 4.4). Role and workspaces are
// words of the organization; this room only keeps them.
type ServiceAccount struct {
	ID           string    `json:"id"`
	Name         string    `json:"name"`
	Organization string    `json:"organization"`
	Role         string    `json:"role"`
	Workspace    string    `json:"workspace,omitempty"` // the only one it reaches; empty: all of the organization
	Scopes       []string  `json:"scopes"`
	Created      time.Time `json:"created"`
	Revoked      time.Time `json:"revoked,omitzero"`
}

// event is one about an account: they come and go on the command line.
func (a ServiceAccount) event(name string) Event {
	return Event{Name: name, Organization: a.Organization, By: ByCommandLine, Client: a.ID, Target: a.ID}
}

type storedService struct {
	ServiceAccount
	Secret string `json:"secret"` // SHA-256 of 256 random bits
}

func serviceKey(id string) store.Key {
	return standing.ServiceKey(id)
}

func organizationServiceKey(org, id string) store.Key {
	return store.Key{Table: store.Core, Partition: "oauth/organization/" + org, Sort: "service/" + id}
}

// CreateServiceAccount stores a new account and returns its secret, which is shown once and nowhere kept. The caller has
// checked that the scopes are of use to the role.
func (s *Server) CreateServiceAccount(ctx context.Context, a ServiceAccount) (ServiceAccount, string, error) {
	if a.Organization == "" || a.Role == "" || len(a.Scopes) == 0 || len(s.ordered(a.Scopes)) != len(a.Scopes) {
		return a, "", apperr.New(apperr.Invalid, "", "A service account needs an organization, a role and known scopes.")
	}
	if a.Name = cleanName(a.Name); a.Name == "" {
		return a, "", apperr.New(apperr.Invalid, "", "A service account needs a name, by which people know it in lists and in the audit.")
	}
	var err error
	if a.ID, err = s.newID(servicePrefix); err != nil {
		return a, "", err
	}
	secret, err := s.random256()
	if err != nil {
		return a, "", err
	}
	secret = secretPrefix + secret
	a.Created, a.Revoked = s.Clock().UTC(), time.Time{}
	item, err := store.Encode(serviceKey(a.ID), serviceFormat, 1, storedService{a, fingerprint(secret)})
	if err != nil {
		return a, "", err //nolint:wrapcheck // the store names the step
	}
	index := store.Item{Key: organizationServiceKey(a.Organization, a.ID), Format: serviceFormat, Revision: 1}
	if err := s.commit(ctx, a.event("service.created"), store.Put(item, store.Absent()), store.Put(index, store.Absent())); err != nil {
		return a, "", fmt.Errorf("create service account: %w", err)
	}
	return a, secret, nil
}

func (s *Server) service(ctx context.Context, id string) (*storedService, error) {
	if !strings.HasPrefix(id, servicePrefix+"_") || len(id) > 64 {
		return nil, errNoGrant
	}
	item, err := s.Store.Get(ctx, serviceKey(id))
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrInvalid) {
		return nil, errNoGrant
	}
	if err != nil {
		return nil, fmt.Errorf("read service account: %w", err)
	}
	a, err := store.Decode[storedService](item, serviceFormat)
	if err != nil {
		return nil, err //nolint:wrapcheck // the store names the step
	}
	return &a, nil
}

// ServiceAccount finds one by id, revoked ones too; *apperr.Error of kind not_found when there is none.
func (s *Server) ServiceAccount(ctx context.Context, id string) (ServiceAccount, error) {
	a, err := s.service(ctx, id)
	if errors.Is(err, errNoGrant) {
		return ServiceAccount{}, apperr.New(apperr.NotFound, "", "There is no such service account.")
	}
	if err != nil {
		return ServiceAccount{}, err
	}
	return a.ServiceAccount, nil
}

// ServiceAccounts lists those of an organization, by id, revoked ones too.
func (s *Server) ServiceAccounts(ctx context.Context, org string) ([]ServiceAccount, error) {
	from, to := store.Prefix("service/")
	page, err := s.Store.Query(ctx, store.Query{
		Table: store.Core, Partition: "oauth/organization/" + org, From: from, To: to, Limit: maxServices,
	})
	if err != nil {
		return nil, fmt.Errorf("list service accounts: %w", err)
	}
	var all []ServiceAccount
	for _, item := range page.Items {
		a, err := s.ServiceAccount(ctx, strings.TrimPrefix(item.Key.Sort, "service/"))
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

// RevokeServiceAccount ends an account: no new tokens from now on, those that it has for at most 30 seconds. Repeating it is
// fine; not_found for an unknown one.
func (s *Server) RevokeServiceAccount(ctx context.Context, id string) error {
	for range grantAttempts {
		item, err := s.Store.Get(ctx, serviceKey(id))
		if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrInvalid) {
			return apperr.New(apperr.NotFound, "", "There is no such service account.")
		}
		if err != nil {
			return fmt.Errorf("read service account: %w", err)
		}
		a, err := store.Decode[storedService](item, serviceFormat)
		if err != nil || !a.Revoked.IsZero() {
			return err //nolint:wrapcheck // the store names the step
		}
		a.Revoked = s.Clock().UTC()
		next, err := store.Encode(item.Key, serviceFormat, item.Revision+1, a)
		if err != nil {
			return err //nolint:wrapcheck // the store names the step
		}
		err = s.commit(ctx, a.event("service.revoked"), store.Put(next, store.RevisionIs(item.Revision)))
		if err == nil {
			return nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return fmt.Errorf("revoke service account: %w", err)
		}
	}
	return fmt.Errorf("revoke service account: %w", store.ErrConflict)
}

// authenticate checks a secret. The hash is compared, in constant time, and an unknown account costs the same comparison.
func (s *Server) authenticate(ctx context.Context, id, secret string) (*storedService, error) {
	a, err := s.service(ctx, id)
	if errors.Is(err, errNoGrant) {
		a = &storedService{Secret: fingerprint("")}
	} else if err != nil {
		return nil, later("read service account", err)
	}
	same := subtle.ConstantTimeCompare([]byte(fingerprint(secret)), []byte(a.Secret)) == 1
	if a.ID == "" || !same || !a.Revoked.IsZero() {
		return nil, refuse(codeInvalidClient, "unknown service account, wrong secret or revoked")
	}
	return a, nil
}

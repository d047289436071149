package inbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// NewAPIKey says what a key is to be.
type NewAPIKey struct {
	Name       string
	Scopes     []string
	Workspaces []string // ids or slugs; none: all that the caller reaches
	Inboxes    []string // ids or slugs, in one workspace; none: all
	ExpiresAt  time.Time
}

const createInstead = "POST /api/v1/api-keys"

// draft checks what a key is to be against what its maker has, and puts it into its one spelling. slugs names the inboxes for people.
func (s *APIKeys) draft(ctx context.Context, a Actor, r Reach, n NewAPIKey) (k APIKey, slugs []string, err error) {
	if err := a.mayReceive(createInstead); err != nil {
		return APIKey{}, nil, err
	}
	if err := checkName("body.name", n.Name, maxKeyName); err != nil {
		return APIKey{}, nil, err
	}
	if err := s.checkParent(ctx, a, r); err != nil {
		return APIKey{}, nil, err
	}
	now := s.d.now()
	n.ExpiresAt = n.ExpiresAt.UTC().Truncate(time.Millisecond)
	switch {
	case !n.ExpiresAt.After(now) || n.ExpiresAt.Sub(now) > MaxKeyLife:
		return APIKey{}, nil, invalid("body.expires_at", fmt.Sprintf("a time that is to come, at most %d days away", MaxKeyLife/(24*time.Hour)))
	case !r.Expires.IsZero() && n.ExpiresAt.After(r.Expires):
		return APIKey{}, nil, beyond("time: a key that a key makes ends with it, " + r.Expires.Format(time.RFC3339))
	}
	k = APIKey{
		Organization: a.Organization, Name: n.Name, Creator: a.Subject, CreatorEmail: a.By.Email, Parent: r.Key, ExpiresAt: n.ExpiresAt,
		CreatedAt: now, UpdatedAt: now, Version: 1,
	}
	if k.Scopes, err = r.scopes(n.Scopes); err != nil {
		return APIKey{}, nil, err
	}
	if k.Workspaces, err = r.workspaces(n.Workspaces); err != nil {
		return APIKey{}, nil, err
	}
	k.Inboxes, slugs, err = s.inboxes(ctx, a, r, &k, n.Inboxes)
	return k, slugs, err
}

// checkParent: a chain of keys would outlive whoever looks at its first link, so it has two.
func (s *APIKeys) checkParent(ctx context.Context, a Actor, r Reach) error {
	if r.Key == "" {
		return nil
	}
	parent, err := s.d.Keys.APIKey(ctx, a.Organization, r.Key)
	if err != nil {
		return fmt.Errorf("API key %s: %w", r.Key, err)
	}
	if parent.Parent != "" {
		return apperr.New(apperr.Forbidden, "beyond_own", "An API key that was made by another key makes none.",
			"Call with the access token of a person, or with a key that a person made.")
	}
	return nil
}

// scopes are those that are named, each once, ordered by name.
func (r Reach) scopes(named []string) ([]string, error) {
	if len(named) == 0 {
		return nil, invalid("body.scopes", "at least one scope", "Name the scopes that the key needs, of yours: "+strings.Join(r.Scopes, ", ")+".")
	}
	list := slices.Clone(named)
	slices.Sort(list)
	list = slices.Compact(list)
	for _, name := range list {
		if !slices.Contains(r.Scopes, name) {
			return nil, invalid("body.scopes", "scopes that this call has itself", "Choose of: "+strings.Join(r.Scopes, ", ")+".")
		}
	}
	return list, nil
}

// workspaces are the ids of those that are named. A caller that reaches some workspaces only names them all when it names none: the
// key must not reach what its person reaches later.
func (r Reach) workspaces(named []string) ([]string, error) {
	var ids []string
	for _, ref := range named {
		i := slices.IndexFunc(r.Workspaces, func(w WorkspaceRow) bool { return w.ID == ref || w.Slug == ref })
		if i < 0 {
			return nil, apperr.New(apperr.NotFound, "", "There is no such workspace.", "Call workspaces_list for the workspaces that you can use.")
		}
		ids = append(ids, r.Workspaces[i].ID)
	}
	if len(named) == 0 && !r.Whole {
		for _, w := range r.Workspaces {
			ids = append(ids, w.ID)
		}
		if len(ids) == 0 {
			return nil, beyond("any workspace")
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// inboxes confines a key to the inboxes that are named, which lie in one workspace: the key's only one.
func (s *APIKeys) inboxes(ctx context.Context, a Actor, r Reach, k *APIKey, named []string) (ids, slugs []string, err error) {
	switch {
	case len(named) == 0:
		return nil, nil, nil
	case len(named) > MaxKeyInboxes:
		return nil, nil, invalid("body.inboxes", fmt.Sprintf("at most %d", MaxKeyInboxes), "Leave inboxes out, and name workspaces instead.")
	case len(k.Workspaces) == 0 && len(r.Workspaces) == 1:
		k.Workspaces = []string{r.Workspaces[0].ID}
	case len(k.Workspaces) != 1:
		return nil, nil, invalid("body.workspaces", "the one workspace of the inboxes", "Name it in workspaces.")
	}
	a.Workspace = k.Workspaces[0]
	for _, ref := range named {
		in, err := s.d.live(ctx, a, ref)
		if err != nil {
			return nil, nil, err
		}
		if !slices.Contains(ids, in.ID) {
			ids, slugs = append(ids, in.ID), append(slugs, in.Slug)
		}
	}
	slices.Sort(ids)
	return ids, slugs, nil
}

// keyTarget is what a person is asked about when a key is created: its natural key.
func keyTarget(name string) string { return "api-key:" + strings.ToLower(name) }

// AskCreate says what a person is asked before Create.
func (s *APIKeys) AskCreate(ctx context.Context, a Actor, r Reach, n NewAPIKey) (*Question, error) {
	k, slugs, err := s.draft(ctx, a, r, n)
	if err != nil {
		return nil, err
	}
	if _, err := s.d.Keys.APIKeyNamed(ctx, a.Organization, k.Name); !apperr.Is(err, apperr.NotFound) {
		if err == nil {
			err = keyNameTaken()
		}
		return nil, err
	}
	q := &Question{Text: "Create API key {}, which acts as {} until {}", Values: []string{k.Name, k.holder(), day(k.ExpiresAt)}, Targets: map[string]string{keyTarget(k.Name): absent}}
	q.list("; may ", "", k.Scopes)
	q.list("; in workspace ", "; in every workspace", r.slugs(k.Workspaces))
	q.list("; in inbox ", "", slugs)
	return q, nil
}

// list adds values, each whole: cut together they could hide one.
func (q *Question) list(before, none string, values []string) {
	if len(values) == 0 {
		q.Text += none
		return
	}
	q.Text += before + strings.TrimSuffix(strings.Repeat("{}, ", len(values)), ", ")
	q.Values = append(q.Values, values...)
}

func (r Reach) slugs(ids []string) []string {
	var out []string
	for _, w := range r.Workspaces {
		if slices.Contains(ids, w.ID) {
			out = append(out, w.Slug)
		}
	}
	return out
}

// Create makes a key, whose secret is in the reply and nowhere else.
func (s *APIKeys) Create(ctx context.Context, a Actor, r Reach, n NewAPIKey) (APIKey, SecretReply, error) {
	k, _, err := s.draft(ctx, a, r, n)
	if err != nil {
		return APIKey{}, SecretReply{}, err
	}
	secret, err := s.newKeySecret()
	if err != nil {
		return APIKey{}, SecretReply{}, err
	}
	k.Hash, k.Prefix = KeyHash(secret), secret[:shownKey]
	if k.ID, err = NewID(keyPrefix, k.CreatedAt, s.d.Rand); err != nil {
		return APIKey{}, SecretReply{}, err
	}
	act, err := s.d.organizationAct(a)
	if err != nil {
		return APIKey{}, SecretReply{}, err
	}
	var reply SecretReply
	err = s.d.Keys.CreateAPIKey(ctx, k, act, func(named APIKey) error {
		state := absent
		if named.Version > 0 {
			state = Version(named.Version)
		}
		if err := a.confirmState(keyTarget(k.Name), state, true); err != nil {
			return err
		}
		if named.Version > 0 {
			return keyNameTaken()
		}
		if reply != (SecretReply{}) {
			return nil
		}
		var err error
		reply, err = s.d.hand(ctx, a, k.secretName(), secret)
		return err
	})
	switch {
	case errors.Is(err, ErrKeyName):
		err = keyNameTaken()
	case errors.Is(err, ErrTooManyKeys):
		err = apperr.New(apperr.Conflict, "too_many_keys", fmt.Sprintf("You have %d API keys that work, as many as one can have.", MaxKeys),
			"Revoke one that nobody uses with api_keys_revoke; api_keys_list shows when each was used last.").Because(err)
	}
	if err != nil {
		return APIKey{}, SecretReply{}, fmt.Errorf("create API key: %w", err)
	}
	return k, reply, nil
}

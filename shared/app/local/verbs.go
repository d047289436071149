package local

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/buzon-mail/buzon/shared/app/web"
	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/demo"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxops"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/oauth"
	"github.com/buzon-mail/buzon/shared/store/embedded"
)

// admin is what the verbs do, over an open store.
type admin struct {
	dir      string
	engine   *embedded.Engine
	store    *inboxstore.Store
	api      *web.API
	clock    func() time.Time
	loopback bool // tokens are minted for a loopback issuer only
	// signInLink makes a one-time link for a person.
	signInLink func(ctx context.Context, person string) (address string, expires time.Time, err error)
	// changeKeys puts what change makes of the stored key set in its place.
	changeKeys func(ctx context.Context, change func(text []byte) ([]byte, error)) error
	// server is the authorization server, for its service accounts.
	server   func() (*oauth.Server, error)
	rotating sync.Mutex // one rotation at a time in this process
	take     takeMail   // brings in a mail of a file
}

// OrganizationRequest asks for an organization with its first workspace and owner.
type OrganizationRequest struct {
	Slug      string
	Name      string
	Owner     string
	Workspace string
}

// OrganizationReply names what was made.
type OrganizationReply struct {
	Organization inbox.Organization `json:"organization"`
	Workspace    inbox.Workspace    `json:"workspace"`
	Owner        inbox.Member       `json:"owner"`
}

// CreateOrganization makes an organization. It can be repeated after a failure half-way: what is there already is taken up.
// The owner is looked at first, so that a wrong address leaves no organization without anybody in it.
func (a *admin) CreateOrganization(ctx context.Context, r OrganizationRequest) (OrganizationReply, error) {
	if r.Name == "" {
		r.Name = r.Slug
	}
	now := a.clock().UTC()
	reply := OrganizationReply{}
	var err error
	if r.Owner, err = a.stranger(ctx, r.Owner); err != nil {
		return reply, err
	}
	if reply.Organization, err = a.organization(ctx, r, now); err != nil {
		return reply, err
	}
	if reply.Workspace, err = a.workspace(ctx, reply.Organization.ID, r.Workspace, now); err != nil {
		return reply, err
	}
	reply.Owner, err = a.owner(ctx, reply.Organization.ID, r.Owner, now)
	return reply, err
}

// stranger is an address that nobody has yet: a person belongs to one organization.
func (a *admin) stranger(ctx context.Context, email string) (string, error) {
	email, err := inboxstore.NormalEmail(email)
	if err != nil {
		return "", err
	}
	_, err = a.store.UserByEmail(ctx, email)
	switch {
	case err == nil:
		return "", apperr.New(apperr.Conflict, "taken", email+" is a member of an organization already.",
			"Name another address: a person belongs to one organization.")
	case apperr.Is(err, apperr.NotFound):
		return email, nil
	}
	return "", err
}

// organization takes up one without members, which is what a failure half-way leaves; any other is somebody's.
func (a *admin) organization(ctx context.Context, r OrganizationRequest, now time.Time) (inbox.Organization, error) {
	found, err := a.store.OrganizationBySlug(ctx, r.Slug)
	if err == nil {
		members, err := a.store.Members(ctx, found.ID)
		if err == nil && len(members) > 0 {
			err = apperr.New(apperr.Conflict, "", "There is an organization with this slug.", "Choose another slug.")
		}
		return found, err
	}
	if !apperr.Is(err, apperr.NotFound) {
		return found, err
	}
	id, err := inbox.NewID("org", now, rand.Reader)
	if err != nil {
		return found, err
	}
	o := inbox.Organization{ID: id, Slug: r.Slug, Name: r.Name, CreatedAt: now}
	return o, a.store.CreateOrganization(ctx, o)
}

func (a *admin) workspace(ctx context.Context, org, slug string, now time.Time) (inbox.Workspace, error) {
	all, err := a.store.Workspaces(ctx, org)
	if err != nil {
		return inbox.Workspace{}, err
	}
	for _, w := range all {
		if w.Slug == slug {
			return w, nil
		}
	}
	id, err := inbox.NewID("ws", now, rand.Reader)
	if err != nil {
		return inbox.Workspace{}, err
	}
	w := inbox.Workspace{ID: id, Organization: org, Slug: slug, Name: slug, CreatedAt: now}
	return w, a.store.CreateWorkspace(ctx, w)
}

func (a *admin) owner(ctx context.Context, org, email string, now time.Time) (inbox.Member, error) {
	id, err := inbox.NewID("user", now, rand.Reader)
	if err != nil {
		return inbox.Member{}, err
	}
	// Whoever runs the service names its first owner: that is proof enough of the address.
	m := inbox.Member{User: id, Email: email, Organization: org, Role: inbox.RoleOwner, CreatedAt: now, Proven: email}
	return m, a.store.CreateMember(ctx, m)
}

// DomainRequest assigns a domain to an organization.
type DomainRequest struct {
	Organization string // slug
	Domain       string
}

// DomainReply is the domain as it is stored.
type DomainReply struct {
	Organization string `json:"organization"`
	Domain       string `json:"domain"`
}

// AddDomain assigns a domain.
func (a *admin) AddDomain(ctx context.Context, r DomainRequest) (DomainReply, error) {
	o, err := a.store.OrganizationBySlug(ctx, r.Organization)
	if apperr.Is(err, apperr.NotFound) {
		err = apperr.New(apperr.NotFound, "", "There is no organization "+r.Organization+".", "Create it: buzon org create SLUG --owner EMAIL.")
	}
	if err != nil {
		return DomainReply{}, err
	}
	domain, err := a.store.AddDomain(ctx, o.ID, r.Domain)
	return DomainReply{Organization: o.Slug, Domain: domain}, err
}

// TokenRequest asks for an access token.
type TokenRequest struct {
	Email     string
	Scope     []string
	Workspace string // id or slug
	TTL       time.Duration
}

// TokenReply carries the token.
type TokenReply struct {
	AccessToken string `json:"access_token"`
	Scope       string `json:"scope"`
}

// Token mints a token of a person of this service, for trying things out: a service on the internet hands out tokens after
// a person's sign-in only.
func (a *admin) Token(ctx context.Context, r TokenRequest) (TokenReply, error) {
	if !a.loopback {
		return TokenReply{}, apperr.New(apperr.Forbidden, "loopback_only", "Tokens are printed only for a service whose public URL is on loopback.",
			"Unset BUZON_PUBLIC_URL, or connect a client so that a person signs in.")
	}
	if r.TTL <= 0 || r.TTL > oauth.MaxLifetime {
		return TokenReply{}, apperr.New(apperr.Invalid, "", "A token lives at most 24h.", "Choose --ttl between 1s and 24h.")
	}
	m, err := a.store.UserByEmail(ctx, r.Email)
	if apperr.Is(err, apperr.NotFound) {
		err = apperr.New(apperr.NotFound, "", "Nobody here has the address "+r.Email+".",
			"Name the owner that `buzon org create` was given, or a person of the demo such as owner@acme.test.")
	}
	if err != nil {
		return TokenReply{}, err
	}
	p, err := a.store.Principal(ctx, m.User)
	if err != nil {
		return TokenReply{}, err
	}
	workspace, err := chosen(p, r.Workspace)
	if err != nil {
		return TokenReply{}, err
	}
	scope := strings.Join(r.Scope, " ")
	if scope == "" {
		if scope, err = everything(m.Role); err != nil {
			return TokenReply{}, err
		}
	}
	for _, name := range r.Scope {
		if _, ok := a.api.Scopes.Bit(name); !ok {
			return TokenReply{}, apperr.New(apperr.Invalid, "", "There is no scope "+name+".", "Choose of: "+everyScope(a.api)+".")
		}
	}
	token, err := mint(ctx, a.api.Issuer, m, workspace, scope, r.TTL)
	return TokenReply{AccessToken: token, Scope: scope}, err
}

// everything is every scope that a role has use for.
func everything(r inbox.Role) (string, error) {
	names, err := inboxops.ScopesOf(inboxops.RoleOf(r))
	return strings.Join(names, " "), err
}

func everyScope(a *web.API) string {
	var names []string
	for _, s := range a.Scopes.All() {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}

// chosen finds the default workspace of a token; without a name it is the only one or none.
func chosen(p inbox.Principal, ref string) (string, error) {
	if ref == "" {
		if len(p.Workspaces) == 1 {
			return p.Workspaces[0].Workspace.ID, nil
		}
		return "", nil
	}
	for _, w := range p.Workspaces {
		if w.Workspace.ID == ref || w.Workspace.Slug == ref {
			return w.Workspace.ID, nil
		}
	}
	e := apperr.New(apperr.NotFound, "", "The person reaches no such workspace.")
	for _, w := range p.Workspaces {
		e.Fixes = append(e.Fixes, "Use "+w.Workspace.Slug+" ("+w.Workspace.ID+").")
	}
	return "", e
}

// mint signs a token of the command line; its grant is the person's own, so its rate limit is too.
func mint(ctx context.Context, issuer *oauth.Issuer, m inbox.Member, workspace, scope string, ttl time.Duration) (string, error) {
	token, err := issuer.Mint(ctx, oauth.Claims{
		Subject: m.User, ClientID: web.CommandLine, Scope: scope, Grant: "grant_cli_" + m.User,
		Organization: m.Organization, Workspace: workspace,
	}, ttl)
	if err != nil {
		return "", fmt.Errorf("mint a token: %w", err)
	}
	return token, nil
}

//nolint:gochecknoglobals // constant table
var placeholder = regexp.MustCompile(`\{\{token:([^{}\s]+)\}\}`)

// FillEvent puts tokens of the emulated function's development issuer where an event file says {{token:EMAIL}}. They are
// of the demo's people, for the emulated function holds the demo and nothing else.
func FillEvent(ctx context.Context, event []byte, clock func() time.Time) ([]byte, error) {
	keys, err := oauth.DevelopmentKeys()
	if err != nil {
		return nil, fmt.Errorf("development keys: %w", err)
	}
	issuer, err := oauth.NewIssuer(oauth.StaticKeys(keys, clock), oauth.DevelopmentIssuer, oauth.DevelopmentAudience, clock, rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("development issuer: %w", err)
	}
	var failures []error
	filled := placeholder.ReplaceAllFunc(event, func(match []byte) []byte {
		email := string(placeholder.FindSubmatch(match)[1])
		token, err := demoToken(ctx, issuer, email)
		if err != nil {
			failures = append(failures, err)
		}
		return []byte(token)
	})
	if bytes.Contains(filled, []byte("{{")) && len(failures) == 0 {
		failures = append(failures, apperr.New(apperr.Invalid, "", "The event holds {{ that is not {{token:EMAIL}}.",
			"Write {{token:owner@acme.test}} where a token belongs."))
	}
	return filled, errors.Join(failures...)
}

// demoToken mints a token of one of the demo's people with every scope that the role allows.
func demoToken(ctx context.Context, issuer *oauth.Issuer, email string) (string, error) {
	for _, o := range demo.World() {
		for _, m := range o.Members {
			if m.Email != email {
				continue
			}
			workspace := ""
			if len(o.Workspaces) == 1 {
				workspace = o.Workspaces[0].ID
			}
			scope, err := everything(m.Role)
			if err != nil {
				return "", err
			}
			return mint(ctx, issuer, m, workspace, scope, oauth.MaxLifetime)
		}
	}
	return "", apperr.New(apperr.NotFound, "", "The demo has nobody called "+email+".", "Use owner@acme.test or owner@globex.test.")
}

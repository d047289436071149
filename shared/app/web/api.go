// Package web joins the rooms into the service's HTTP side: the MCP endpoint, the REST API, the authorization server with its
// pages, the metadata of the protected resource, downloads and the health check, over whatever engines it is given. The Lambda
// function and the local process serve the same handler. It chooses no engine and must know neither Lambda nor the command line.
package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/app/announce"
	"github.com/buzon-mail/buzon/shared/blob"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxmcp"
	"github.com/buzon-mail/buzon/shared/inboxops"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/mcp"
	"github.com/buzon-mail/buzon/shared/oauth"
	"github.com/buzon-mail/buzon/shared/oauth/upstream"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/optool"
	"github.com/buzon-mail/buzon/shared/queue"
	"github.com/buzon-mail/buzon/shared/rest"
	"github.com/buzon-mail/buzon/shared/safehttp"
	"github.com/buzon-mail/buzon/shared/seal"
	"github.com/buzon-mail/buzon/shared/store"
)

// Unreleased is the version of a build that was given none.
const Unreleased = "0.0.0-dev"

// untrustedMetaKey is the key in a result's _meta for the pointers to third-party text.
const untrustedMetaKey = "io.github.buzon-mail/untrusted"

// Deps is what the handler stands on.
type Deps struct {
	Store     *inboxstore.Store
	Blobs     inbox.Blobs
	Downloads inbox.Downloads
	Queue     queue.Queue   // of the worker's jobs
	Serve     http.Handler  // of the downloads' addresses; nil where something else serves them
	Uploads   blob.Uploader // addresses that files are put to; nil: none
	Take      http.Handler  // of those addresses; nil where something else serves them
	Engine    store.Engine  // of the authorization server's rows
	Seal      *seal.Keyring // what travels for a day at most
	Permanent *seal.Keyring // what clients keep; not rotated
	Keys      *oauth.KeyRing
	// WebhookSecrets seals signing secrets of webhooks for the worker; nil: Permanent does, which the worker then has too.
	WebhookSecrets inbox.Sealer
	Logger         *slog.Logger
	Clock          func() time.Time
	Random         io.Reader
	Fetcher        oauth.Fetcher                // of clients' documents; the network's when nil
	Transport      http.RoundTripper            // to the provider where people may sign in; the standard one when nil
	RequestID      func(context.Context) string // the platform's; nil: none
}

// Options is how the service presents itself and whom it lets in.
type Options struct {
	Origin         string // scheme and host that clients type
	Issuer         string // of access tokens; empty: Origin
	Audience       string // of access tokens; empty: Origin + /mcp
	Development    bool   // accept the published development key: emulation only
	AllowedOrigins []string
	LocalHosts     bool // a local process
	// LoopbackReceivers lets webhooks name localhost: only where nobody beyond this machine reaches the service.
	LoopbackReceivers bool
	PublicDiscover    bool
	PerMinute         int              // requests a grant; 0: not limited
	MaxWaits          int              // calls that may wait for mail at once; 0: the domain's default
	OutwardMinute     int              // of them, operations that let something out; 0: not limited
	SharedLimits      bool             // several instances serve: they count in Engine, and not each for itself
	Version           string           // of the build
	Upstream          *upstream.Config // where people may sign in too; nil: nowhere
}

// API is the service's HTTP side.
type API struct {
	endpoint http.Handler // of MCP
	others   http.Handler
	Issuer   *oauth.Issuer // mints tokens for the command line and the demo
	Scopes   *op.Vocabulary
	OAuth    *oauth.Server // the authorization server
}

// ServeHTTP serves everything. The endpoint makes its request's context itself and writes its own line.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/mcp", "/mcp/": // some clients add the slash; a redirect would lose their POST
		a.endpoint.ServeHTTP(w, r)
	default:
		a.others.ServeHTTP(w, r)
	}
}

// New joins the rooms.
func New(d Deps, o Options) (*API, error) {
	if d.Store == nil || d.Engine == nil || d.Seal == nil || d.Permanent == nil || d.Keys == nil || d.Logger == nil || d.Clock == nil || d.Random == nil {
		return nil, errors.New("web: a dependency is missing")
	}
	if o.Issuer == "" {
		o.Issuer = o.Origin
	}
	if o.Audience == "" {
		o.Audience = o.Origin + "/mcp"
	}
	if d.Queue != nil {
		d.Store = d.Store.Announcing(announce.To(d.Queue, d.Logger))
	}
	b := &builder{Deps: d, Options: o, ids: &identified{platform: d.RequestID, random: d.Random}}
	return b.build()
}

// builder holds what the steps of New share.
type builder struct {
	Deps
	Options
	ids       *identified
	catalogue *op.Catalogue
	resource  *oauth.Resource
	oauth     *oauth.Server
	identity  *identity
	limiter   mcp.Limiter
	outward   rest.Gate
}

func (b *builder) build() (*API, error) {
	if err := b.domain(); err != nil {
		return nil, err
	}
	if err := b.access(); err != nil {
		return nil, err
	}
	routes, err := b.rest()
	if err != nil {
		return nil, err
	}
	endpoint, err := b.mcp(routes)
	if err != nil {
		return nil, err
	}
	issuer, err := oauth.NewIssuer(b.Keys, b.Issuer, b.Audience, b.Clock, b.Random)
	if err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	b.ids.next = b.mux(routes)
	return &API{endpoint: endpoint, others: b.ids, Issuer: issuer, Scopes: b.catalogue.Vocabulary, OAuth: b.oauth}, nil
}

func (b *builder) domain() error {
	var jobs inbox.JobQueue
	if b.Queue != nil {
		jobs = jobQueue{b.Queue}
	}
	services, err := inboxops.NewServices(inbox.Deps{
		Inboxes: b.Store, Domains: b.Store, Counts: b.Store, Emails: b.Store, Attachments: b.Store, Senders: b.Store,
		Rules: b.Store, Templates: b.Store, Extractions: b.Store, Audit: b.Store, Jobs: b.Store, JobQueue: jobs,
		Organizations: b.Store, Members: b.Store, Keys: b.Store, SignIns: signIns{b},
		Threads: b.Store, Work: b.Store, Waiting: b.Store, Usage: b.Store, Rates: rates{b}, MaxWaits: b.MaxWaits,
		Webhooks: b.Store, Deliveries: b.Store, WebhookSecrets: b.webhookSecrets(), SecretPages: secretPages{b},
		Receivers: safehttp.New(safehttp.Options{Loopback: b.LoopbackReceivers}),
		People:    b.Store, Uploads: b.Store, Puts: Puts{b.Uploads},
		Blobs: b.Blobs, Downloads: b.Downloads, Cursors: b.Seal.Purpose("cursor"), Now: b.Clock, Rand: b.Random,
	})
	if err != nil {
		return fmt.Errorf("web: %w", err)
	}
	b.catalogue, err = inboxops.Catalogue(services)
	return err
}

func (b *builder) access() error {
	var err error
	b.resource, err = oauth.NewResource(oauth.ResourceOptions{
		Origin: b.Origin, Issuer: b.Issuer, Name: "Buzón", Scopes: b.catalogue.Vocabulary.Advertised(),
	})
	if err != nil {
		return fmt.Errorf("web: %w", err)
	}
	verifier, err := oauth.NewVerifier(b.Keys, b.Clock, oauth.VerifierOptions{
		Issuer: b.Issuer, Audience: b.Audience, Development: b.Development,
	})
	if err != nil {
		return fmt.Errorf("web: %w", err)
	}
	if err := b.authorization(); err != nil {
		return err
	}
	b.identity = newIdentity(verifier, b.Store, b.oauth, b.Store, b.catalogue.Vocabulary, b.Clock)
	if b.limiter, b.outward, err = limits(b.Engine, b.Options, b.Clock); err != nil {
		return fmt.Errorf("web: %w", err)
	}
	return nil
}

// authorization makes the server that lets clients in.
func (b *builder) authorization() error {
	people := newMembers(b.Store, b.catalogue)
	fetcher := b.Fetcher
	if fetcher == nil {
		fetcher = safehttp.New(safehttp.Options{Loopback: oauth.LoopbackIssuer(b.Issuer)})
	}
	journal := NewJournal(b.Store, b.Clock, b.Random)
	journal.request, journal.source = b.ids.RequestID, b.ids.Source
	var err error
	b.oauth, err = oauth.NewServer(oauth.ServerDeps{
		Store: b.Engine, Seal: b.Seal, Permanent: b.Permanent, Keys: b.Keys, People: people, Fetcher: fetcher, Transport: b.Transport, Journal: journal,
		Logger: b.Logger, Clock: b.Clock, Random: b.Random,
	}, oauth.ServerOptions{
		Issuer: b.Issuer, Resource: b.Audience, Name: "Buzón", Key: "buzon", Scopes: people.grantable(b.catalogue.Vocabulary),
		Upstream: b.Upstream,
	})
	if err != nil {
		return fmt.Errorf("web: %w", err)
	}
	return nil
}

func (b *builder) rest() (*rest.API, error) {
	options := inboxops.Document()
	options.PublicOrigin, options.AllowedOrigins = b.Origin, b.AllowedOrigins
	options.ChallengeHeader, options.OpenAPI = "X-MCP-Challenge", inboxops.OpenAPI()
	deps := rest.Deps{Authenticator: b.identity, Challenger: b.resource, Logger: b.Logger, RequestID: b.ids.RequestID, Source: b.ids.Source, Idempotency: inboxops.Keys{Store: b.Store}}
	if b.PerMinute > 0 {
		deps.Limiter = restLimiter{b.limiter}
	}
	if b.OutwardMinute > 0 {
		deps.Outward = b.outward
	}
	routes, err := rest.New(b.catalogue, deps, options)
	if err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	return routes, nil
}

func (b *builder) mcp(routes *rest.API) (*mcp.Server, error) {
	segments, err := optool.ParseSegments(inboxops.Tools())
	if err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	tools, err := optool.New(b.catalogue, routes, segments, optool.Options{
		UntrustedMetaKey: untrustedMetaKey, WorkspaceHeader: rest.WorkspaceHeader, BasePath: inboxops.BasePath,
		JobRead: inboxops.JobRead, JobCancel: inboxops.JobCancel,
	})
	if err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	offers, err := inboxmcp.New(tools, inboxmcp.Options{
		UntrustedMetaKey: untrustedMetaKey, PerMinute: b.PerMinute, OutwardMinute: b.OutwardMinute, Now: b.Clock,
	})
	if err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	endpoint, err := mcp.New(mcp.Deps{
		Authenticator: forMCP{b.identity}, Challenger: b.resource, Limiter: b.limiter, Tools: tools,
		Resources: offers, Prompts: offers, Completer: offers, Tasks: tools, Logger: b.Logger,
		Sealer: b.Seal.Purpose("mcp"), Context: b.ids.Context, RequestID: b.ids.RequestID, Now: b.Clock, Rand: b.Random,
	}, mcp.Options{
		Name: "buzon", Title: "Buzón", Version: b.Version, Instructions: instructions,
		PublicOrigin: b.Origin, AllowedOrigins: b.AllowedOrigins, AllowedHeaders: []string{rest.WorkspaceHeader},
		LocalHosts: b.LocalHosts, PublicDiscover: b.PublicDiscover,
	})
	if err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	return endpoint, nil
}

// mux is a plain table: net/http's own would answer an unclean path with a redirect, which makes one request two and hides
// from the REST API what it refuses.
func (b *builder) mux(routes *rest.API) http.Handler {
	m := &table{exact: map[string]http.Handler{
		oauth.MetadataPath:    b.logged("metadata", b.resource),
		oauth.MetadataPathMCP: b.logged("metadata", b.resource),
		"/healthz":            http.HandlerFunc(health),
	}, rest: b.logged("rest", routes), missing: b.logged("unknown", http.HandlerFunc(missing))}
	for path, h := range b.oauth.Routes() {
		m.exact[path] = b.logged("oauth", h)
	}
	if b.Serve != nil {
		m.downloads = b.logged("download", b.Serve)
	}
	if b.Take != nil {
		m.uploads = b.logged("upload", b.Take)
	}
	return m
}

// table finds the handler of a path.
type table struct {
	exact                             map[string]http.Handler
	rest, downloads, uploads, missing http.Handler
}

// ServeHTTP hands the request to whom its path belongs.
func (t *table) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	switch h, ok := t.exact[path]; {
	case ok:
		h.ServeHTTP(w, r)
	case strings.HasPrefix(path, inboxops.BasePath+"/"):
		t.rest.ServeHTTP(w, r)
	case t.downloads != nil && strings.HasPrefix(path, "/downloads/"):
		t.downloads.ServeHTTP(w, r)
	case t.uploads != nil && strings.HasPrefix(path, "/uploads/"):
		t.uploads.ServeHTTP(w, r)
	default:
		t.missing.ServeHTTP(w, r)
	}
}

func (b *builder) logged(door string, next http.Handler) http.Handler {
	return &logged{next: next, log: b.Logger, clock: b.Clock, id: b.ids.RequestID, door: door}
}

// health answers without touching a store: it says that the process serves, not that everything behind it does.
func health(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = io.WriteString(w, `{"status":"ok"}`)
}

// missing answers a path that is nobody's.
func missing(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, `{"type":"about:blank","title":"Not Found","status":404,"kind":"not_found","code":"not_found",`+
		`"detail":"There is nothing at this path.","fixes":["Send MCP requests to /mcp.","See /api/v1/openapi.json for the REST API."]}`)
}

// rates tells operations what the limiter, which is made after them, has counted.
type rates struct{ *builder }

// Rate is the state of a grant.
func (r rates) Rate(ctx context.Context, grant string) (inbox.RateState, bool) {
	l := r.limiter.Peek(ctx, grant)
	return inbox.RateState{PerMinute: l.Limit, Remaining: l.Remaining, Reset: l.Reset}, l.Limit > 0
}

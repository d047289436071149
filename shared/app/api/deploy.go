package api

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/buzon-mail/buzon/shared/app/signing"
	"github.com/buzon-mail/buzon/shared/app/vault"
	"github.com/buzon-mail/buzon/shared/app/web"
	"github.com/buzon-mail/buzon/shared/awsclient"
	bucket "github.com/buzon-mail/buzon/shared/blob/s3"
	"github.com/buzon-mail/buzon/shared/config"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/lambdaedge"
	"github.com/buzon-mail/buzon/shared/oauth"
	"github.com/buzon-mail/buzon/shared/oauth/upstream"
	"github.com/buzon-mail/buzon/shared/queue"
	sqsqueue "github.com/buzon-mail/buzon/shared/queue/sqs"
	"github.com/buzon-mail/buzon/shared/seal"
	"github.com/buzon-mail/buzon/shared/store/dynamo"
)

const (
	// maxOrigins bounds the doors whose own names serve while no public URL is configured: a function has three.
	maxOrigins = 4
	// pause is how long a failure to start stands: while a secret is missing, callers must not drive the secret store.
	pause = 2 * time.Second
)

// deployment is the function on AWS. Clients are made at the start and ask nothing; the service itself needs the root secrets, and
// without a public URL the name of the door, so it is made by the first request, and by a later one where that failed: an outage
// of the secret store is then an answer that says so, and not a function that can't start.
type deployment struct {
	cfg    *config.API
	engine *dynamo.Engine
	store  *inboxstore.Store
	blobs  *bucket.Store
	queue  queue.Queue // nil: the worker's schedule sends what is in the outbox, within three minutes
	vault  *vault.Reader
	keys   *oauth.KeyRing
	hooks  *signing.Box
	log    *slog.Logger
	clock  func() time.Time
	build  string

	mu     sync.Mutex // guards all below; held while the service is made, so that a burst makes it once
	seal   *seal.Keyring
	fixed  *seal.Keyring
	made   map[string]http.Handler // by origin
	failed time.Time
}

func deploy(cfg *config.API, aws awsclient.Config, log *slog.Logger, clock func() time.Time, build string) (*deployment, error) {
	engine, err := dynamo.New(dynamo.Options{AWS: aws, Core: cfg.AWS.CoreTable, Ephemeral: cfg.AWS.EphemeralTable, Clock: clock})
	if err != nil {
		return nil, err
	}
	d := &deployment{cfg: cfg, engine: engine, log: log, clock: clock, build: build, made: map[string]http.Handler{}}
	if d.store, err = inboxstore.New(engine, clock); err != nil {
		return nil, err
	}
	if d.blobs, err = bucket.New(bucket.Options{AWS: aws, Bucket: cfg.AWS.Bucket, PathStyle: aws.Endpoint != "", Clock: clock}); err != nil {
		return nil, err
	}
	if cfg.AWS.JobsQueue != "" {
		if d.queue, err = sqsqueue.New(sqsqueue.Options{AWS: aws, URL: cfg.AWS.JobsQueue}); err != nil {
			return nil, err
		}
	}
	if d.vault, err = vault.New(aws); err != nil {
		return nil, err
	}
	if d.hooks, err = signing.New(aws, cfg.WebhookKey, clock); err != nil {
		return nil, err
	}
	d.keys = oauth.NewKeyRing(d.keySet, clock)
	return d, nil
}

func (d *deployment) keySet(ctx context.Context) (*oauth.KeySet, error) {
	text, err := d.vault.Read(ctx, d.cfg.KeySet)
	if err != nil {
		return nil, fmt.Errorf("read the key set (BUZON_KEY_SET): %w", err)
	}
	set, err := oauth.ParseKeySet(text)
	if err != nil {
		return nil, fmt.Errorf("the key set (BUZON_KEY_SET): %w", err)
	}
	return set, nil
}

// roots reads the root secrets. The newest, the first, seals what expires within a day. The oldest, the last, is the one that is
// not rotated: client ids and refresh tokens hang on it, so dropping it disconnects every client.
func (d *deployment) roots(ctx context.Context) error {
	text, err := d.vault.Read(ctx, d.cfg.RootSecrets)
	if err != nil {
		return fmt.Errorf("read the root secrets (BUZON_ROOT_SECRETS): %w", err)
	}
	roots, err := seal.ParseRoots(string(text))
	if err != nil {
		return fmt.Errorf("the root secrets (BUZON_ROOT_SECRETS): %w", err)
	}
	options := seal.Options{Clock: d.clock, Rand: rand.Reader}
	fixed, err := seal.New(roots[len(roots)-1:], options)
	if err != nil {
		return fmt.Errorf("the oldest root secret (BUZON_ROOT_SECRETS): %w", err)
	}
	all, err := seal.New(roots, options)
	if err != nil {
		return fmt.Errorf("the root secrets (BUZON_ROOT_SECRETS): %w", err)
	}
	d.seal, d.fixed = all, fixed
	return nil
}

var (
	errNoOrigin = errors.New("the door names no host, and BUZON_PUBLIC_URL is not set")
	errPausing  = errors.New("the service could not be made a moment ago")
)

// ServeHTTP hands the request to the service. Nothing of why there is none goes to a caller.
func (d *deployment) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	handler, err := d.service(r.Context())
	if err == nil {
		handler.ServeHTTP(w, r)
		return
	}
	if !errors.Is(err, errPausing) {
		d.log.LogAttrs(r.Context(), slog.LevelError, "start", slog.String("error", err.Error()), slog.String("request_id", requestID(r.Context())))
	}
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", "application/problem+json")
	h.Set("Retry-After", "5")
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = w.Write([]byte(`{"type":"about:blank","title":"Service Unavailable","status":503,"kind":"unavailable",` +
		`"detail":"The service can't start at the moment.","fixes":["Send the request again in a few seconds."]}` + "\n"))
}

// service is the service for the origin that the request came to, made where it is not there yet.
func (d *deployment) service(ctx context.Context) (http.Handler, error) {
	origin := d.cfg.PublicURL
	if origin == "" {
		var ok bool
		if origin, ok = lambdaedge.OriginFrom(ctx); !ok {
			return nil, errNoOrigin
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if h := d.made[origin]; h != nil {
		return h, nil
	}
	if d.clock().Sub(d.failed) < pause {
		return nil, errPausing
	}
	h, err := d.make(ctx, origin)
	if err != nil && ctx.Err() == nil { // a caller that went away says nothing about the secret store
		d.failed = d.clock()
	}
	return h, err
}

func (d *deployment) make(ctx context.Context, origin string) (_ http.Handler, err error) {
	if len(d.made) >= maxOrigins {
		return nil, fmt.Errorf("%d doors serve already; set BUZON_PUBLIC_URL", len(d.made))
	}
	if d.seal == nil {
		if err := d.roots(ctx); err != nil {
			return nil, err
		}
	}
	h, err := web.New(web.Deps{
		Store: d.store, Blobs: web.Blobs{Opener: d.blobs}, Downloads: web.Downloads{Signer: d.blobs}, Uploads: d.blobs, Engine: d.engine, Queue: d.queue,
		Seal: d.seal, Permanent: d.fixed, Keys: d.keys, WebhookSecrets: d.hooks,
		Logger: d.log, Clock: d.clock, Random: rand.Reader, RequestID: requestID,
	}, web.Options{
		Origin: origin, AllowedOrigins: d.cfg.AllowedOrigins, PublicDiscover: d.cfg.PublicDiscover,
		PerMinute: d.cfg.Rates.PerMinute, OutwardMinute: d.cfg.Rates.OutwardPerMinute, SharedLimits: true, MaxWaits: d.cfg.Waits, Version: d.build,
		Upstream: d.provider(),
	})
	if err != nil {
		return nil, err
	}
	d.made[origin] = h
	return h, nil
}

// provider is where people may sign in too; nil when there is none. Its secret is read when somebody signs in there, so that one
// that is missing stops nothing else.
func (d *deployment) provider() *upstream.Config {
	c := d.cfg.Upstream
	if c == nil {
		return nil
	}
	secret := func(ctx context.Context) (string, error) {
		text, err := d.vault.Read(ctx, c.Secret)
		if err != nil {
			return "", fmt.Errorf("read the provider's client secret (BUZON_OIDC_SECRET): %w", err)
		}
		return strings.TrimSpace(string(text)), nil
	}
	return &upstream.Config{Issuer: c.Issuer, ClientID: c.ClientID, Secret: secret, Name: c.Name, Allow: slices.Clone(c.Allow)}
}

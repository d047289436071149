package api

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/buzon-mail/buzon/shared/app/deployed"
	"github.com/buzon-mail/buzon/shared/app/web"
	"github.com/buzon-mail/buzon/shared/config"
	"github.com/buzon-mail/buzon/shared/lambdaedge"
	"github.com/buzon-mail/buzon/shared/oauth"
	"github.com/buzon-mail/buzon/shared/seal"
)

// maxOrigins bounds the origins that an unconfigured function serves under: one for each door, and a domain.
const maxOrigins = 4

// secrets reads a secret by its name.
type secrets interface {
	Secret(ctx context.Context, name config.Secret) ([]byte, error)
}

// site is the HTTP side of a deployed function. It is made with the first request and not at start-up: the secrets cost a round
// trip, which a start-up must not fail or wait for, and without a configured URL only a request tells the origin.
type site struct {
	cfg     *config.API
	secrets secrets
	log     *slog.Logger
	clock   func() time.Time
	make    func(options web.Options, s *seal.Keyring, k *oauth.KeyRing) (http.Handler, error)

	mu   sync.Mutex
	keys *oauth.KeyRing
	seal *seal.Keyring
	made map[string]http.Handler // by origin
}

// ServeHTTP serves, or says that it can't yet. Each later request tries anew.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h, err := s.handler(r.Context())
	if err != nil {
		s.log.LogAttrs(r.Context(), slog.LevelError, "not ready", slog.String("request_id", requestID(r.Context())), slog.String("error", err.Error()))
		unready(w)
		return
	}
	h.ServeHTTP(w, r)
}

func (s *site) handler(ctx context.Context) (http.Handler, error) {
	origin := s.cfg.PublicURL
	if origin == "" {
		var ok bool
		if origin, ok = lambdaedge.OriginFrom(ctx); !ok {
			return nil, errors.New("the door names no origin: set BUZON_PUBLIC_URL")
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h, ok := s.made[origin]; ok {
		return h, nil
	}
	if len(s.made) >= maxOrigins {
		return nil, errors.New("more origins than doors: set BUZON_PUBLIC_URL")
	}
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	h, err := s.make(web.Options{Origin: origin}, s.seal, s.keys)
	if err != nil {
		return nil, err
	}
	s.made[origin] = h
	return h, nil
}

// open reads both secrets. The signing keys are read again as they grow old; the roots live as long as the instance.
func (s *site) open(ctx context.Context) error {
	if s.seal == nil {
		text, err := s.secrets.Secret(ctx, s.cfg.RootSecrets)
		if err != nil {
			return fmt.Errorf("BUZON_ROOT_SECRETS: %w", err)
		}
		roots, err := seal.ParseRoots(string(text))
		if err != nil {
			return fmt.Errorf("BUZON_ROOT_SECRETS: write them with buzon secret new roots: %w", err)
		}
		if s.seal, err = seal.New(roots, seal.Options{Clock: s.clock, Rand: rand.Reader}); err != nil {
			return fmt.Errorf("BUZON_ROOT_SECRETS: %w", err)
		}
	}
	if s.keys == nil {
		load := func(ctx context.Context) (*oauth.KeySet, error) {
			text, err := s.secrets.Secret(ctx, s.cfg.KeySet)
			if err != nil {
				return nil, fmt.Errorf("BUZON_KEY_SET: %w", err)
			}
			set, err := oauth.ParseKeySet(text)
			if err != nil {
				return nil, fmt.Errorf("BUZON_KEY_SET: write it with buzon secret new keys: %w", err)
			}
			return set, nil
		}
		set, err := load(ctx)
		if err != nil {
			return err
		}
		var first atomic.Pointer[oauth.KeySet] // spares a cold start the second reading of the same secret
		first.Store(set)
		s.keys = oauth.NewKeyRing(func(ctx context.Context) (*oauth.KeySet, error) {
			if set := first.Swap(nil); set != nil {
				return set, nil
			}
			return load(ctx)
		}, s.clock)
	}
	return nil
}

// unready is a 503 that says nothing of why: the log does.
func unready(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Retry-After", "5")
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = io.WriteString(w, `{"type":"about:blank","title":"Service Unavailable","status":503,"kind":"unavailable","code":"not_ready",`+
		`"detail":"The service is being set up.","fixes":["Try again in a few seconds."]}`)
}

// onAWS makes the function on what its environment names.
func onAWS(cfg *config.API, log *slog.Logger, build string) (*Function, error) {
	a, err := deployed.Here(os.Getenv, cfg.AWS)
	if err != nil {
		return nil, err
	}
	s, err := siteOf(cfg, a, log, build)
	if err != nil {
		return nil, err
	}
	return &Function{Handler: lambdaedge.New(s, lambdaedge.Options{Logger: log}), close: func() error { return nil }}, nil
}

func siteOf(cfg *config.API, a deployed.Account, log *slog.Logger, build string) (*site, error) {
	store, err := a.Store()
	if err != nil {
		return nil, err
	}
	blobs, err := a.Blobs()
	if err != nil {
		return nil, err
	}
	return &site{
		cfg: cfg, secrets: a, log: log, clock: a.Clock, made: map[string]http.Handler{},
		make: func(o web.Options, s *seal.Keyring, k *oauth.KeyRing) (http.Handler, error) {
			o.AllowedOrigins, o.PublicDiscover = cfg.AllowedOrigins, cfg.PublicDiscover
			o.PerMinute, o.OutwardMinute, o.Version = cfg.Rates.PerMinute, cfg.Rates.OutwardPerMinute, build
			return web.New(web.Deps{
				Store: store, Blobs: web.Blobs{Opener: blobs}, Downloads: web.Downloads{Signer: blobs}, Seal: s, Keys: k,
				Logger: log, Clock: a.Clock, Random: rand.Reader, RequestID: requestID,
			}, o)
		},
	}, nil
}

package rest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/buzon-mail/buzon/shared/op"
)

// WorkspaceHeader names the tenant of a request, in canonical form.
const WorkspaceHeader = "X-Workspace-Id"

// MaxBody is the greatest request body, in bytes.
const MaxBody = 1 << 20

// Authenticator verifies the credentials of an HTTP request.
type Authenticator interface {
	// Authenticate returns the caller. An *apperr.Error of kind unauthenticated (code missing_token when there are none)
	// becomes 401 with a challenge, one of kind unavailable 503; any other error is internal.
	Authenticate(ctx context.Context, h http.Header) (*op.Caller, error)
}

// Challenger builds what a 401 or 403 tells the client.
type Challenger interface {
	// Challenge takes the RFC 6750 error code (empty when no token was sent) and the scopes to name (nil: the advertised
	// ones) and returns the WWW-Authenticate value. The second result is for other doors and not used here.
	Challenge(code string, scopes []string) (header string, data map[string]any)
}

// Limiter counts the calls of a grant.
type Limiter interface {
	// Take counts one call against key. It never fails: a limiter that can't decide allows.
	Take(ctx context.Context, key string) Limit
}

// Gate counts the operations of a grant that let something out.
type Gate interface {
	// Take counts one against key, exactly. On an error the operation does not run: a gate that can't tell is closed.
	Take(ctx context.Context, key string) (Limit, error)
}

// Limit is the state of a limit after a call was counted.
type Limit struct {
	Allowed    bool
	Limit      int           // calls a window
	Remaining  int           // never above the true remainder
	Reset      time.Duration // until the window is whole again
	RetryAfter time.Duration // when Allowed is false
}

// Deps is what an API stands on.
type Deps struct {
	Authenticator Authenticator                // of HTTP requests; in-process calls bring their caller
	Challenger    Challenger                   // of every 401 and 403 for want of scope
	Limiter       Limiter                      // of HTTP requests, by grant; nil: none
	Idempotency   Idempotency                  // needed where an operation takes a key
	Outward       Gate                         // of operations that let something out, on every surface; nil: none
	Logger        *slog.Logger                 // one line for each fault of ours
	RequestID     func(context.Context) string // the id that the outermost middleware gave the request; empty: none
	Source        func(context.Context) string // the peer's IP address, as the outermost middleware knows it; nil: unknown
}

// Options says how an API presents itself.
type Options struct {
	BasePath        string   // of every route, as /api/v1
	Title           string   // of the OpenAPI document
	Version         string   // of the OpenAPI document
	Description     string   // of the OpenAPI document
	PublicOrigin    string   // scheme and host; an allowed origin
	AllowedOrigins  []string // further origins whose pages may read replies
	ChallengeHeader string   // a second header for the challenge, for doors that rename WWW-Authenticate; empty: none
	OpenAPI         []byte   // the pre-generated document; empty: not served
}

// API serves a catalogue. It is safe for concurrent use.
type API struct {
	catalogue *op.Catalogue
	deps      Deps
	options   Options
	routes    map[string]*route
	mux       func() *http.ServeMux
	etag      func() string
	origins   map[string]struct{}
}

// New makes the routes. None of them is registered with huma before its first call, for schemas cost start-up time.
func New(catalogue *op.Catalogue, deps Deps, options Options) (*API, error) {
	if err := deps.check(); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(options.BasePath, "/") || strings.HasSuffix(options.BasePath, "/") {
		return nil, fmt.Errorf("rest: base path %q: want a leading slash and no trailing one", options.BasePath)
	}
	a := &API{catalogue: catalogue, deps: deps, options: options, origins: map[string]struct{}{}}
	for _, origin := range append([]string{options.PublicOrigin}, options.AllowedOrigins...) {
		if origin != "" {
			a.origins[origin] = struct{}{}
		}
	}
	operations := catalogue.Operations()
	a.routes = make(map[string]*route, len(operations))
	for i := range operations {
		t, err := newRoute(a, &operations[i])
		if err != nil {
			return nil, err
		}
		a.routes[t.op.Name] = t
	}
	a.mux = sync.OnceValue(a.mount)
	a.etag = sync.OnceValue(a.digest)
	return a, nil
}

// Route returns the route object of an operation, the very handler that is mounted on the mux; nil for an unknown name.
// A caller in the same process puts the verified caller in the request's context (op.WithCaller) and sets the path values
// (http.Request.SetPathValue); the object checks everything else as it does for HTTP.
func (a *API) Route(name string) http.Handler {
	if t, ok := a.routes[name]; ok {
		return t
	}
	return nil
}

func (d *Deps) check() error {
	switch {
	case d.Authenticator == nil:
		return errors.New("rest: no Authenticator")
	case d.Challenger == nil:
		return errors.New("rest: no Challenger")
	case d.Logger == nil:
		return errors.New("rest: no Logger")
	case d.RequestID == nil:
		return errors.New("rest: no RequestID")
	}
	return nil
}

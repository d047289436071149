package rest

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/op"
)

// ServeHTTP is the HTTP side: what every reply carries, CORS, the document, then authentication and rate limit around the
// mux. In-process calls take none of it: they reach a route object with a caller that was verified elsewhere.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if a.cors(w, r) {
		return
	}
	if len(a.options.OpenAPI) > 0 && r.URL.Path == a.options.BasePath+documentPath {
		a.serveDocument(w, r)
		return
	}
	caller, err := a.deps.Authenticator.Authenticate(r.Context(), r.Header)
	if err == nil && caller == nil {
		err = apperr.New(apperr.Unauthenticated, codeMissingToken, "No caller was verified.")
	}
	if err != nil {
		a.fail(r.Context(), w, "authenticate", err)
		return
	}
	// Whatever the context carried before is replaced: a request can't bring a caller of its own.
	ctx := op.WithCaller(r.Context(), caller, op.SurfaceREST)
	if err := a.count(w, r, caller); err != nil {
		a.fail(ctx, w, "limit", err)
		return
	}
	r = r.WithContext(ctx)
	// The mux answers an unclean path with a redirect, and path.Clean reads dot segments that came escaped. Neither is a path of ours.
	if escaped := r.URL.EscapedPath(); path.Clean(escaped) != escaped {
		a.notFound(w, r)
		return
	}
	a.mux().ServeHTTP(w, r)
}

func (a *API) count(w http.ResponseWriter, r *http.Request, caller *op.Caller) error {
	if a.deps.Limiter == nil {
		return nil
	}
	l := a.deps.Limiter.Take(r.Context(), caller.Grant)
	h := w.Header()
	h.Set("X-RateLimit-Limit", strconv.Itoa(l.Limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(max(l.Remaining, 0)))
	h.Set("X-RateLimit-Reset", seconds(l.Reset))
	if l.Allowed {
		return nil
	}
	return limited(l, "This grant has made too many calls.")
}

func limited(l Limit, public string) error {
	e := apperr.New(apperr.RateLimited, "", public, "Wait "+seconds(l.RetryAfter)+" seconds, then repeat the call.")
	e.RetryAfter = l.RetryAfter
	return e
}

// mount builds the mux: each route object under its method, each path without a method for the 405, everything else 404.
func (a *API) mount() *http.ServeMux {
	mux := http.NewServeMux()
	methods := map[string][]string{}
	for _, o := range a.catalogue.Operations() {
		full := a.options.BasePath + o.Path
		mux.Handle(o.Method+" "+full, a.routes[o.Name])
		shape := anonymous(full)
		if o.Method == http.MethodGet {
			methods[shape] = append(methods[shape], http.MethodHead)
		}
		methods[shape] = append(methods[shape], o.Method)
	}
	for shape, allowed := range methods {
		slices.Sort(allowed)
		allow := strings.Join(allowed, ", ")
		mux.HandleFunc(shape, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", allow) // RFC 9110 section 15.5.6: MUST
			a.fail(r.Context(), w, "method", apperr.New(apperr.MethodNotAllowed, "",
				"This resource does not take that method.", "Use one of: "+allow+"."))
		})
	}
	mux.HandleFunc("/", a.notFound)
	return mux
}

// anonymous names the parameters of a path by their place, so that two operations on one resource share its 405 whatever
// they call the parameter.
func anonymous(full string) string {
	segments := strings.Split(full, "/")
	for i, s := range segments {
		if strings.HasPrefix(s, "{") {
			segments[i] = "{p" + strconv.Itoa(i) + "}"
		}
	}
	return strings.Join(segments, "/")
}

func (a *API) notFound(w http.ResponseWriter, r *http.Request) {
	a.fail(r.Context(), w, "path", apperr.New(apperr.NotFound, "", "There is no such resource.",
		"See "+a.options.BasePath+documentPath+" for the resources."))
}

// cors lets pages of allowed origins read replies, and answers a preflight itself. A page of another origin gets no
// Access-Control-Allow-Origin, so its browser keeps the reply from it. Credentials are bearer tokens, never cookies.
func (a *API) cors(w http.ResponseWriter, r *http.Request) (done bool) {
	h := w.Header()
	h.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	_, allowed := a.origins[origin]
	if allowed {
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", "WWW-Authenticate, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After, ETag, Location")
	}
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	if allowed {
		h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE")
		h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Idempotency-Key, "+WorkspaceHeader)
		h.Set("Access-Control-Max-Age", "600")
	}
	w.WriteHeader(http.StatusNoContent)
	return true
}

const documentPath = "/openapi.json"

// serveDocument answers without authentication: what the API looks like is no secret.
func (a *API) serveDocument(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		a.fail(r.Context(), w, "method", apperr.New(apperr.MethodNotAllowed, "", "The document can only be read.", "Use GET."))
		return
	}
	tag := a.etag()
	h.Set("ETag", tag)
	if matches(r.Header.Get("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	a.send(w, http.StatusOK, "application/openapi+json", a.options.OpenAPI)
}

func (a *API) digest() string {
	sum := sha256.Sum256(a.options.OpenAPI)
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}

// matches compares weakly, as RFC 9110 section 13.1.2 wants for If-None-Match.
func matches(header, tag string) bool {
	for candidate := range strings.SplitSeq(header, ",") {
		candidate = strings.TrimPrefix(strings.TrimSpace(candidate), "W/")
		if candidate == tag || candidate == "*" {
			return true
		}
	}
	return false
}

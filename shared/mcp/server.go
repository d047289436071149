package mcp

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// Deps is what a server stands on.
type Deps struct {
	Authenticator Authenticator
	Challenger    Challenger
	Limiter       Limiter
	Tools         Tools
	Resources     Resources                           // nil: no resources
	Prompts       Prompts                             // nil: no prompts
	Completer     Completer                           // nil: no completions
	Tasks         Tasks                               // nil: no tasks
	Sealer        Sealer                              // for cursors and the state of an Ask; nil: lists of one page, and nobody is asked
	Legacy        map[string]LegacyMethod             // logging/setLevel, resources/subscribe, resources/unsubscribe: served in the 2025 era, and declared
	Logger        *slog.Logger                        // one line per request, at the time that Now tells; nil: none
	Context       func(*http.Request) context.Context // in which the request is served, made of its own; nil: its own. What a middleware would make a copy of the request for.
	RequestID     func(context.Context) string        // the id that the platform or a middleware gave the request; nil or an empty result: a random one
	Now           func() time.Time                    // nil: time.Now
	Rand          io.Reader                           // safe for concurrent use; nil: crypto/rand
}

// Options is how a server presents itself and whom it lets in.
type Options struct {
	Name         string // serverInfo
	Title        string
	Version      string
	Instructions string // for models; empty: none

	PublicOrigin   string   // scheme://host[:port] under which browsers reach the server
	AllowedOrigins []string // further origins
	AllowedHeaders []string // request headers that a browser may send beyond the protocol's own
	LocalHosts     bool     // a local process: loopback origins pass and a foreign Host is refused. Never set behind a proxy.

	PublicDiscover bool          // server/discover without a token
	MaxBody        int           // bytes; 0: 1,048,576
	PageLimit      int           // items on a page of any list; 0: what the lists themselves decide
	Outage         time.Duration // Retry-After of an outage that names none; 0: 5 seconds
}

const (
	defaultMaxBody = 1 << 20
	defaultOutage  = 5 * time.Second
)

// Server is the endpoint. It keeps nothing of a request for the next.
type Server struct {
	auth       Authenticator
	challenger Challenger
	limiter    Limiter
	tools      Tools
	headers    HeaderTools // nil: no tool has x-mcp-header
	resources  Resources
	prompts    Prompts
	completer  Completer
	tasks      Tasks
	sealer     Sealer
	log        *slog.Logger
	lines      lineHandler // of log; nil: it takes records only
	context    func(*http.Request) context.Context
	platformID func(context.Context) string
	now        func() time.Time
	rand       io.Reader

	origins        origins
	corsHeaders    string
	publicDiscover bool
	maxBody        int
	pageLimit      int
	outage         time.Duration
	logs           bool // logging/setLevel is served

	methods map[string]*method
	texts   texts
	pool    sync.Pool // *exchange

	numerals numerals
}

var _ http.Handler = (*Server)(nil)

// New makes the handler of an endpoint. It is mounted at /mcp and /mcp/ and looks at no path.
func New(d Deps, o Options) (*Server, error) {
	for _, need := range []struct {
		missing bool
		name    string
	}{
		{d.Authenticator == nil, "Authenticator"},
		{d.Challenger == nil, "Challenger"},
		{d.Limiter == nil, "Limiter"},
		{d.Tools == nil, "Tools"},
		{o.Name == "", "Name"},
		{o.Version == "", "Version"},
	} {
		if need.missing {
			return nil, errors.New("mcp: " + need.name + " is missing")
		}
	}
	if o.MaxBody < 0 || o.Outage < 0 || o.PageLimit < 0 {
		return nil, errors.New("mcp: MaxBody, Outage and PageLimit can't be negative")
	}
	if err := checkLegacy(d); err != nil {
		return nil, err
	}
	allowed, err := newOrigins(o)
	if err != nil {
		return nil, err
	}
	s := &Server{
		auth: d.Authenticator, challenger: d.Challenger, limiter: d.Limiter, tools: d.Tools,
		resources: d.Resources, prompts: d.Prompts, completer: d.Completer, tasks: d.Tasks, sealer: d.Sealer,
		log: d.Logger, context: d.Context, platformID: d.RequestID, now: d.Now, rand: d.Rand,
		origins: allowed, corsHeaders: corsRequest, publicDiscover: o.PublicDiscover,
		maxBody: cmp.Or(o.MaxBody, defaultMaxBody), outage: cmp.Or(o.Outage, defaultOutage),
		pageLimit: o.PageLimit, logs: d.Legacy[methodSetLevel] != nil,
		methods: newMethods(d), texts: newTexts(d, o),
	}
	s.headers, _ = d.Tools.(HeaderTools)
	for _, h := range o.AllowedHeaders {
		if !isToken(h) {
			return nil, errors.New("mcp: AllowedHeaders: not a header name")
		}
		s.corsHeaders += ", " + h
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.lines, _ = s.log.Handler().(lineHandler)
	if s.now == nil {
		s.now = time.Now
	}
	if s.rand == nil {
		s.rand = rand.Reader
	}
	s.pool.New = func() any { return new(exchange) }
	return s, nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := s.begin(w, r)
	defer s.end(x)
	for _, check := range order {
		if x.reply = check(s, x); x.reply != nil {
			break
		}
	}
	s.respond(x)
	if x.released != nil {
		x.released()
	}
}

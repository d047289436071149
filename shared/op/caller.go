package op

import (
	"context"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// Surface is the door that a call came through, for audit and for what may be shown.
type Surface string

// The surfaces.
const (
	SurfaceREST Surface = "rest"
	SurfaceMCP  Surface = "mcp"
)

// Workspace is one tenant that a caller may act in.
type Workspace struct {
	ID   string
	Slug string
	Name string
	Role Role // the caller's role there
}

// Caller is a verified principal with what its grant allows. It is immutable and shared between requests.
type Caller struct {
	Subject      string      // id of the person or service account
	Person       bool        // false for service accounts and keys
	Email        string      // of the person, or of whoever made the key; for the audit
	Key          string      // id of the API key that was shown; empty: an access token
	Grant        string      // id of the grant: what rate limits and sealed state are bound to
	Client       string      // id of the OAuth client
	Organization string      // id
	KeyName      string      // of the API key
	Role         Role        // the greatest of its roles, for what acts on the organization
	Own          Role        // in the organization itself, whatever its workspaces give it; NoRole for a grant of one workspace
	Scopes       ScopeSet    // already widened: x:write implies x:read
	Workspaces   []Workspace // what the grant reaches, in a fixed order
	Within       []string    // ids of the parts of its workspaces that it is confined to; nil: all of them
	Default      string      // id of the workspace when a request names none; empty: it must name one if there are several
	Expires      time.Time   // of the token
	// Called is how the organization is called. It may cost a read the first time. nil: not known.
	Called func(ctx context.Context) (slug, name string, err error)
	// Again reads anew what the grant allows, for what is above may be half a minute old: role, membership, revocation. An
	// *apperr.Error of kind unauthenticated when the grant no longer counts. nil: nothing of it can be old. It costs reads of a
	// store, so only routes that must not act on what was true a moment ago ask for it (Vocabulary.Strong).
	Again func(ctx context.Context) (*Caller, error)
}

// GrantID is the key of rate limits and of sealed state.
func (c *Caller) GrantID() string { return c.Grant }

// Confined reports whether the caller may see only parts of its workspaces.
func (c *Caller) Confined() bool { return c.Within != nil }

// Confines is the refusal of an operation that can't keep a caller within its parts.
func Confines() *apperr.Error {
	return apperr.New(apperr.Forbidden, "confined", "This key is confined to some inboxes, and this operation reaches beyond them.",
		"session_get lists what this key can use.", "For anything else use a key, or an access token, that is not confined.")
}

// Workspace picks the tenant of a request. The named one must be of the grant: any other, existing or not, is the same
// not_found. Without a name it is the grant's default, or its only one, else workspace_required with the choices.
func (c *Caller) Workspace(named string) (Workspace, error) {
	if named == "" {
		named = c.Default
	}
	if named == "" {
		if len(c.Workspaces) == 1 {
			return c.Workspaces[0], nil
		}
		return Workspace{}, c.workspaceRequired()
	}
	for _, w := range c.Workspaces {
		if w.ID == named {
			return w, nil
		}
	}
	return Workspace{}, apperr.New(apperr.NotFound, "", "There is no such workspace.",
		"Call workspaces_list for the workspaces that you can use.")
}

func (c *Caller) workspaceRequired() error {
	e := apperr.New(apperr.Invalid, "workspace_required", "This token reaches several workspaces: name one.")
	for _, w := range c.Workspaces {
		e.Fixes = append(e.Fixes, "Send the header X-Workspace-Id: "+w.ID+" ("+w.Slug+").")
	}
	e.Fixes = append(e.Fixes, "An agent that sets no headers asks its user to set it where the client is configured.")
	return e
}

type callKey struct{}

// call is what a context carries about one call. It is a context of its own: one allocation where three values would be
// three, and one comparison to find any of them.
type call struct {
	context.Context
	caller       *Caller
	surface      Surface
	tenant       Workspace
	confirmation *Confirmation
	inquiry      *Inquiry
	client       Client
	tracer       Tracer
	key          IdempotencyKey
}

// Value answers the one key of this package and leaves every other to the parent.
func (c *call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

func callFrom(ctx context.Context) *call {
	if c, ok := ctx.(*call); ok {
		return c
	}
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// derive copies what the context carries about the call, for a change of one part.
func derive(ctx context.Context) *call {
	next := &call{}
	if c := callFrom(ctx); c != nil {
		*next = *c
	}
	next.Context = ctx
	return next
}

// WithCaller returns a context that carries the verified caller and the door it came through. Whatever caller, tenant,
// confirmation or inquiry the parent carried is gone.
func WithCaller(ctx context.Context, c *Caller, s Surface) context.Context {
	return &call{Context: ctx, caller: c, surface: s}
}

// WithCallerAgain returns a context in which c, the same caller read anew, stands in the place of the one that it carried.
// Everything else of the call stays.
func WithCallerAgain(ctx context.Context, c *Caller) context.Context {
	next := derive(ctx)
	next.caller = c
	return next
}

// CallerFrom is the caller of a context; nil when nobody was verified.
func CallerFrom(ctx context.Context) *Caller {
	if c := callFrom(ctx); c != nil {
		return c.caller
	}
	return nil
}

// SurfaceFrom is the door that the call came through.
func SurfaceFrom(ctx context.Context) Surface {
	if c := callFrom(ctx); c != nil {
		return c.surface
	}
	return ""
}

// WithTenant returns a context that carries what the route found out: the workspace that it resolved (the zero value where the
// operation takes none) and who tells the audit about the call (nil: nothing of it is audited).
func WithTenant(ctx context.Context, w Workspace, t Tracer) context.Context {
	next := derive(ctx)
	next.tenant, next.tracer = w, t
	return next
}

// TenantFrom is the workspace of the call; the zero value where the operation takes none.
func TenantFrom(ctx context.Context) Workspace {
	if c := callFrom(ctx); c != nil {
		return c.tenant
	}
	return Workspace{}
}

// Package inboxops declares the operations of the inbox, one file per resource: each declaration is bound to a method of a
// service of package inbox, and from it come the REST route, the MCP tool and the documents. It turns the verified caller
// into the domain's actor and the domain's results into replies, third-party text under `untrusted` only. It knows neither
// HTTP's mux nor MCP nor how anything is stored. It imports rest beside op because a declaration is generic in its input and
// output types.
package inboxops

import (
	"context"
	"slices"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/op"
)

// Catalogue is every operation in the order of lists and documents. Services may be nil when it is made for documents alone.
func Catalogue(services *inbox.Services) (*op.Catalogue, error) {
	v, err := Vocabulary()
	if err != nil {
		return nil, err
	}
	codes, _ := v.Bit(scopeCodesRead)
	o := &operations{services: services, codes: codes}
	c, err := op.NewCatalogue(v, slices.Concat(
		o.session(), o.workspaces(), o.members(), o.inboxes(), o.senders(), o.emails(), o.emailJobs(), o.forwards(), o.imports(), o.raw(), o.work(), o.threads(),
		o.attachments(), o.rules(), o.extraction(), o.webhooks(), o.deliveries(), o.apiKeys(), o.jobs(), o.usage(), o.audit(),
	))
	if err != nil {
		return nil, err //nolint:wrapcheck // op names the declaration
	}
	o.catalogue, o.gates = c, gatesOf(c)
	return c, nil
}

// codesRole is the least role that codes:read is of any use to: a one-time code opens what it was sent for, which is more than
// reading mail.
const codesRole = op.Operator

// readsCodes reports whether codes and links are shown whole to a role with these scopes.
func (o *operations) readsCodes(r op.Role, s op.ScopeSet) bool {
	return r >= codesRole && s.Has(o.codes)
}

// operations is what the handlers share.
type operations struct {
	services  *inbox.Services
	codes     op.ScopeSet   // codes:read
	catalogue *op.Catalogue // itself: session_get tells which tools are hidden
	gates     []gate        // of its operations
	openings  openings
}

// actor is the caller as the domain needs it. The route has checked scope, role and tenant already.
func (o *operations) actor(ctx context.Context) inbox.Actor {
	c, w := op.CallerFrom(ctx), op.TenantFrom(ctx)
	role := w.Role
	if w.ID == "" {
		role = c.Role
	}
	a := inbox.Actor{
		Organization: c.Organization,
		Workspace:    w.ID,
		Subject:      c.Subject,
		Role:         roleOf(role),
		ReadCodes:    o.readsCodes(role, c.Scopes),
		Surface:      string(op.SurfaceFrom(ctx)),
		Direct:       op.SurfaceFrom(ctx) == op.SurfaceREST,
		By:           by(c),
		Person:       c.Person && c.Key == "",

		OrganizationRole: roleOf(c.Own),
	}
	t := op.TraceFrom(ctx)
	a.Operation, a.Request, a.Source, a.By.Software = t.Operation, t.Request, t.Source, t.Software
	if k := op.IdempotencyKeyFrom(ctx); k.ID != "" {
		a.Key = keyOf(k)
	}
	if yes := op.ConfirmationFrom(ctx); yes != nil {
		a.Confirmed = &inbox.Confirmation{Nonce: yes.NonceHash, Targets: yes.Targets, Expires: yes.Expires}
	}
	return a
}

// by is the caller as the audit names it.
func by(c *op.Caller) inbox.AuditActor {
	a := inbox.AuditActor{Type: inbox.ActorService, ID: c.Subject, Email: c.Email, Client: c.Client, Grant: c.Grant}
	switch {
	case c.Key != "":
		a.Type, a.ID = inbox.ActorKey, c.Key
	case c.Person:
		a.Type = inbox.ActorPerson
	}
	return a
}

// question hands on what a person is asked.
func question(q *inbox.Question, err error) (*op.Question, error) {
	if q == nil || err != nil {
		return nil, err
	}
	return (*op.Question)(q), nil
}

// roleOf translates the one vocabulary of roles into the other; what is not a role opens nothing.
func roleOf(r op.Role) inbox.Role {
	switch r {
	case op.Viewer:
		return inbox.RoleViewer
	case op.Operator:
		return inbox.RoleOperator
	case op.Admin:
		return inbox.RoleAdmin
	case op.Owner:
		return inbox.RoleOwner
	case op.NoRole:
	}
	return ""
}

// RoleOf is the inverse, for whoever makes an op.Caller of a principal.
func RoleOf(r inbox.Role) op.Role {
	switch r {
	case inbox.RoleViewer:
		return op.Viewer
	case inbox.RoleOperator:
		return op.Operator
	case inbox.RoleAdmin:
		return op.Admin
	case inbox.RoleOwner:
		return op.Owner
	}
	return op.NoRole
}

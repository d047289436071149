package web

import (
	"context"
	"slices"
	"strings"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxops"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/oauth"
	"github.com/buzon-mail/buzon/shared/op"
)

// members tells the authorization server who the inbox's members are.
type members struct {
	store  *inboxstore.Store
	scopes map[op.Role][]string // of use to each role
}

func newMembers(store *inboxstore.Store, c *op.Catalogue) *members {
	p := &members{store: store, scopes: map[op.Role][]string{}}
	for _, role := range []op.Role{op.NoRole, op.Viewer, op.Operator, op.Admin, op.Owner} {
		p.scopes[role] = inboxops.ScopesIn(c, role)
	}
	return p
}

// Person finds a member with the workspaces they reach.
func (p *members) Person(ctx context.Context, id string) (oauth.Person, error) {
	found, err := p.store.Principal(ctx, id)
	if err != nil {
		return oauth.Person{}, err //nolint:wrapcheck // the store names the step
	}
	org, err := p.store.Organization(ctx, found.Member.Organization)
	if err != nil {
		return oauth.Person{}, err //nolint:wrapcheck // the store names the step
	}
	best := inboxops.RoleOf(found.Member.Role)
	out := oauth.Person{ID: found.Member.User, Email: found.Member.Email, Organization: org.ID, OrganizationName: org.Name, Since: found.Member.RestoredAt}
	for _, a := range found.Workspaces {
		best = max(best, inboxops.RoleOf(a.Role))
		out.Workspaces = append(out.Workspaces, oauth.Workspace{
			ID: a.Workspace.ID, Name: a.Workspace.Name, Role: map[string]string{"en": string(a.Role), "es": rolesInSpanish[a.Role]},
		})
	}
	out.Scopes = p.scopes[best]
	return out, nil
}

// PersonByEmail finds a member by address.
func (p *members) PersonByEmail(ctx context.Context, email string) (oauth.Person, error) {
	m, err := p.store.UserByEmail(ctx, email)
	if err != nil {
		return oauth.Person{}, err //nolint:wrapcheck // the store names the step
	}
	// Who asks has the word of a provider that the address is this person's: mail may be sent there. A failure waits for the next sign-in.
	_, _ = p.store.ProveMember(ctx, m.User, m.Email)
	return p.Person(ctx, m.User)
}

// grantable is the scopes that some operation wants, with their words. The person may take out what changes anything, and
// the sight of one-time codes.
func (p *members) grantable(v *op.Vocabulary) []oauth.Scope {
	var all []oauth.Scope
	for _, s := range v.All() {
		if slices.Contains(p.scopes[op.Owner], s.Name) {
			all = append(all, oauth.Scope{
				Name: s.Name, Text: map[string]string{"en": s.Description, "es": scopesInSpanish[s.Name]}, Reserved: s.Reserved,
				Write: !strings.HasSuffix(s.Name, ":read") || s.Name == "codes:read",
			})
		}
	}
	return all
}

// rolesInSpanish is the roles for the consent page in Spanish.
//
//nolint:gochecknoglobals // constant table
var rolesInSpanish = map[inbox.Role]string{
	inbox.RoleViewer: "lector", inbox.RoleOperator: "operador", inbox.RoleAdmin: "administrador", inbox.RoleOwner: "propietario",
}

// scopesInSpanish is the catalogue's descriptions for the consent page in Spanish.
//
//nolint:gochecknoglobals // constant table
var scopesInSpanish = map[string]string{
	"workspaces:read":  "Ver tus espacios de trabajo.",
	"workspaces:write": "Crear y cambiar espacios de trabajo.",
	"members:read":     "Ver quién es miembro y con qué rol.",
	"members:write":    "Invitar a miembros, cambiar sus roles y quitarlos.",
	"inboxes:read":     "Ver las bandejas y sus direcciones.",
	"inboxes:write":    "Crear, cambiar, pausar, borrar y recuperar bandejas.",
	"emails:read":      "Leer los correos y la lista de sus adjuntos.",
	"emails:write":     "Etiquetar, atender, borrar, recuperar y reprocesar correos.",
	"emails:send":      "Reenviar correos a miembros.",
	"attachments:read": "Descargar adjuntos.",
	"senders:read":     "Ver los remitentes permitidos y bloqueados.",
	"senders:write":    "Cambiar quién puede escribir a una bandeja.",
	"webhooks:read":    "Ver los webhooks y sus entregas.",
	"webhooks:write":   "Crear, cambiar y borrar webhooks y renovar sus secretos.",
	"webhooks:send":    "Probar webhooks y repetir entregas.",
	"rules:read":       "Ver y probar reglas.",
	"rules:write":      "Crear, cambiar y borrar reglas.",
	"extraction:read":  "Ver las plantillas de extracción y los datos extraídos.",
	"extraction:write": "Crear, cambiar y borrar plantillas de extracción.",
	"extraction:run":   "Extraer datos de los correos.",
	"keys:read":        "Ver las claves de API, nunca sus secretos.",
	"keys:write":       "Crear, renovar y revocar claves de API.",
	"jobs:read":        "Seguir los trabajos largos.",
	"jobs:write":       "Cancelar trabajos largos.",
	"audit:read":       "Leer el registro de auditoría.",
	"usage:read":       "Ver el uso y los límites.",
	"codes:read":       "Ver los códigos y enlaces de un solo uso de los correos. Sin este permiso van tapados.",
}

// account is a service account as the identity sees a person: its role in the workspaces it reaches.
func account(ctx context.Context, d Directory, a oauth.ServiceAccount) (inbox.Principal, error) {
	p := inbox.Principal{Member: inbox.Member{User: a.ID, Organization: a.Organization, Role: inbox.Role(a.Role)}}
	all, err := d.Workspaces(ctx, a.Organization)
	if err != nil {
		return p, err //nolint:wrapcheck // the directory names the step
	}
	for _, w := range all {
		if a.Workspace == "" || a.Workspace == w.ID {
			p.Workspaces = append(p.Workspaces, inbox.Access{Workspace: w, Role: p.Member.Role})
		}
	}
	return p, nil
}

// gone is a caller whose token says somebody or something that counts no more. It looks like a forged one.
func gone() error {
	return apperr.New(apperr.Unauthenticated, oauth.CodeInvalid, "The access token is not valid any more.",
		"Get a new access token from the authorization server.")
}

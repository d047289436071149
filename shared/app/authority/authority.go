// Package authority looks at the terms again on which a job was started, before the worker lets anything out: the grant or key may be
// revoked since, and its creator gone or of a lesser role. It reads past every cache. It knows no transport.
package authority

import (
	"context"
	"fmt"
	"strings"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/oauth/standing"
)

// CommandLine is the client of tokens that the command line mints for a loopback service. They have no grant to revoke.
const CommandLine = "buzon-cli"

// Members knows people and what they reach.
type Members interface {
	// Principal is a person with the workspaces they reach, read strongly; *apperr.Error not_found when there is none.
	Principal(ctx context.Context, user string) (inbox.Principal, error)
}

// Keys knows which API keys count.
type Keys interface {
	// KeyActive is false for a key of the organization that is revoked, over or unknown.
	KeyActive(ctx context.Context, organization, id string) (bool, error)
}

// Authority implements pipeline.Authority, which it does not import: the api function takes CommandLine from here.
type Authority struct {
	members Members
	rows    standing.Getter
	keys    Keys
}

// New makes one over the rows of the authorization server. Without keys, what an API key started may send nothing.
func New(members Members, rows standing.Getter, keys Keys) *Authority {
	return &Authority{members: members, rows: rows, keys: keys}
}

func refused(code, public string) *apperr.Error {
	return apperr.New(apperr.Forbidden, code, public+" Nothing was sent.", "Start it again with credentials that allow it.")
}

// Authorized reports why a job may not (any longer) send anything.
func (a *Authority) Authorized(ctx context.Context, j inbox.Job) error {
	ok, err := a.credentials(ctx, j.Organization, j.Creator)
	if err != nil {
		return fmt.Errorf("credentials of job %s: %w", j.ID, err)
	}
	if !ok {
		return refused("grant_revoked", "The credentials that started this job were revoked.")
	}
	role, err := a.role(ctx, j)
	if err != nil {
		return fmt.Errorf("role for job %s: %w", j.ID, err)
	}
	if !j.Creator.Role.Valid() || !role.AtLeast(j.Creator.Role) { // a job that forgot to name one sends nothing
		return refused("role_lost", "Whoever started this job has not the role "+string(j.Creator.Role)+" in the workspace any more.")
	}
	return nil
}

func (a *Authority) credentials(ctx context.Context, org string, c inbox.JobCreator) (bool, error) {
	switch {
	case c.Key != "":
		if a.keys == nil {
			return false, nil
		}
		return a.keys.KeyActive(ctx, org, c.Key)
	case c.Client == CommandLine:
		return true, nil
	case c.Subject == c.Client: // a service account is its own grant
		_, ok, err := standing.Service(ctx, a.rows, c.Subject)
		return ok, err
	}
	return standing.Grant(ctx, a.rows, c.Grant)
}

// role is what the creator may do in the job's workspace now; empty: nothing.
func (a *Authority) role(ctx context.Context, j inbox.Job) (inbox.Role, error) {
	c := j.Creator
	if c.Key == "" && c.Subject == c.Client || strings.HasPrefix(c.Subject, "svc_") {
		s, ok, err := standing.Service(ctx, a.rows, c.Subject)
		if err != nil || !ok || s.Organization != j.Organization || s.Workspace != "" && s.Workspace != j.Workspace {
			return "", err
		}
		return inbox.Role(s.Role), nil
	}
	p, err := a.members.Principal(ctx, c.Subject)
	if apperr.Is(err, apperr.NotFound) || err == nil && p.Member.Organization != j.Organization {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, w := range p.Workspaces {
		if w.Workspace.ID == j.Workspace {
			return w.Role, nil
		}
	}
	return "", nil
}

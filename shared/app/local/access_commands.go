package local

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

type userCommand struct {
	Link  userLinkCommand  `cmd:"" help:"Print a link that signs a person in, once, within 15 minutes."`
	Prove userProveCommand `cmd:"" help:"Note that a person's address is their own, so that mail may be forwarded to it."`
}

type userProveCommand struct {
	Email string `arg:"" help:"Of the person."`
}

// Run notes it.
func (c userProveCommand) Run(ctx context.Context, p *Process) error {
	return p.run(ctx, "user-prove", LinkRequest(c), nil)
}

type userLinkCommand struct {
	Email string `arg:"" help:"Of the person."`
}

// Run prints the link alone on standard output, so that it can be captured.
func (c userLinkCommand) Run(ctx context.Context, p *Process) error {
	return p.run(ctx, "user-link", LinkRequest(c), func(raw []byte) error {
		var reply LinkReply
		if err := json.Unmarshal(raw, &reply); err != nil {
			return fmt.Errorf("read the reply: %w", err)
		}
		_, _ = fmt.Fprintf(p.Stderr, "Open it, or paste it into the sign-in page, before %s. Whoever opens it first is %s.\n",
			reply.Expires.Local().Format(time.TimeOnly), c.Email)
		_, err := fmt.Fprintln(p.Stdout, reply.URL)
		return err
	})
}

type keysCommand struct {
	Rotate keysRotateCommand `cmd:"" help:"Let the next key sign access tokens. Clients notice nothing."`
}

type keysRotateCommand struct{}

// Run rotates.
func (keysRotateCommand) Run(ctx context.Context, p *Process) error {
	return p.run(ctx, "keys-rotate", struct{}{}, nil)
}

type serviceCommand struct {
	Create serviceCreateCommand `cmd:"" help:"Create an account for an agent without a person and print its secret, once."`
	List   serviceListCommand   `cmd:"" help:"List an organization's service accounts."`
	Revoke serviceRevokeCommand `cmd:"" help:"End a service account."`
}

type serviceCreateCommand struct {
	Organization string   `arg:"" help:"Slug of the organization."`
	Name         string   `arg:"" help:"For people."`
	Role         string   `default:"operator" help:"viewer, operator, admin or owner."`
	Workspace    string   `help:"Id or slug of the only workspace; all when absent."`
	Scope        []string `help:"Scopes; all that the role has use for when absent." sep:","`
}

// Run creates the account.
func (c serviceCreateCommand) Run(ctx context.Context, p *Process) error {
	return p.run(ctx, "service-create", ServiceRequest(c), nil)
}

type serviceListCommand struct {
	Organization string `arg:"" help:"Slug of the organization."`
}

// Run lists.
func (c serviceListCommand) Run(ctx context.Context, p *Process) error {
	return p.run(ctx, "service-list", c, nil)
}

type serviceRevokeCommand struct {
	ID string `arg:"" help:"The account's id, svc_..."`
}

// Run revokes.
func (c serviceRevokeCommand) Run(ctx context.Context, p *Process) error {
	return p.run(ctx, "service-revoke", c, nil)
}

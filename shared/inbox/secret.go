package inbox

import (
	"context"
	"fmt"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// SecretPages shows a secret to a person, once, where the caller's own conversation does not pass.
type SecretPages interface {
	// Keep holds a secret for 15 minutes and returns the address of the page where this person, and nobody else, can have it shown
	// once. what says in our words what it is.
	Keep(ctx context.Context, person, what, secret string) (address string, until time.Time, err error)
}

// SecretReply is a secret on its way to the caller, shown once: itself, or the page where the person can see it.
type SecretReply struct {
	Secret string
	Page   string
	Until  time.Time // of the page
}

// mayReceive refuses a caller that no secret can reach before anything is done: over MCP what a tool returns stands in a
// conversation, and who is no person has no page to look at.
func (a Actor) mayReceive(instead string) error {
	if a.Direct || a.Person {
		return nil
	}
	return apperr.New(apperr.Forbidden, "secret_needs_person", "This makes a secret, which is shown to a person or over REST only.",
		"Call "+instead+" of the REST API, whose reply carries the secret once.")
}

// hand gives a secret to a caller: to one of REST itself, to a person behind MCP the page. The page is there before the act is:
// a secret that nobody can see would have to be rotated, a page for an act that then fails shows nothing of use and ends by itself.
func (d Deps) hand(ctx context.Context, a Actor, what, secret string) (SecretReply, error) {
	if a.Direct {
		return SecretReply{Secret: secret}, nil
	}
	page, until, err := d.SecretPages.Keep(ctx, a.Subject, what, secret)
	if err != nil {
		return SecretReply{}, fmt.Errorf("page for a secret: %w", err)
	}
	return SecretReply{Page: page, Until: until}, nil
}

package web

import (
	"context"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
)

// webhookSecret is telling.Secret: this side links nothing of what sends.
const webhookSecret = "webhook/secret"

// secretPages are the authorization server's, which is made after the services that use them.
type secretPages struct{ b *builder }

var _ inbox.SecretPages = secretPages{}

// Keep holds a secret for a person.
func (p secretPages) Keep(ctx context.Context, person, what, secret string) (string, time.Time, error) {
	return p.b.oauth.KeepSecret(ctx, person, what, secret)
}

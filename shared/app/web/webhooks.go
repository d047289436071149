package web

import (
	"context"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
)

// WebhookSecret is the purpose under which signing secrets of webhooks are sealed, by the root that is not rotated: the api seals,
// the worker opens.
const WebhookSecret = "webhook/secret"

// secretPages are the authorization server's, which is made after the services that use them.
type secretPages struct{ b *builder }

var _ inbox.SecretPages = secretPages{}

// Keep holds a secret for a person.
func (p secretPages) Keep(ctx context.Context, person, what, secret string) (string, time.Time, error) {
	return p.b.oauth.KeepSecret(ctx, person, what, secret)
}

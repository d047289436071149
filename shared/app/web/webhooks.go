package web

import (
	"context"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
)

// webhookSecrets is the box for signing secrets: the one that is handed in, else the root that is not rotated.
func (b *builder) webhookSecrets() inbox.Sealer {
	if b.WebhookSecrets != nil {
		return b.WebhookSecrets
	}
	return b.Permanent.Purpose(inbox.WebhookSecretPurpose)
}

// secretPages are the authorization server's, which is made after the services that use them.
type secretPages struct{ b *builder }

var _ inbox.SecretPages = secretPages{}

// Keep holds a secret for a person.
func (p secretPages) Keep(ctx context.Context, person, what, secret string) (string, time.Time, error) {
	return p.b.oauth.KeepSecret(ctx, person, what, secret)
}

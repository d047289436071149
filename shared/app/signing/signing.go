// Package signing is the box for signing secrets of webhooks on AWS: the function of the doors seals them, the worker opens them. Its key
// is a secret of its own, so that the worker, which reads hostile mail, never has the roots on which everybody's access hangs.
package signing

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/buzon-mail/buzon/shared/app/vault"
	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/awsclient"
	"github.com/buzon-mail/buzon/shared/config"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/seal"
)

// Box reads its key when it is first used: a process that neither seals nor opens never has it.
type Box struct {
	vault *vault.Reader
	name  config.Secret
	clock func() time.Time

	mu  sync.Mutex
	box *seal.Sealer // guarded by mu; nil: not read
}

var _ inbox.Sealer = (*Box)(nil)

// New makes a box whose key is the secret of this name, any text of 32 bytes or more. It asks AWS nothing.
func New(cfg awsclient.Config, name config.Secret, clock func() time.Time) (*Box, error) {
	reader, err := vault.New(cfg)
	if err != nil {
		return nil, err
	}
	return &Box{vault: reader, name: name, clock: clock}, nil
}

// Sealer reads the key, once.
func (b *Box) Sealer(ctx context.Context) (*seal.Sealer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.box != nil {
		return b.box, nil
	}
	if b.name == "" {
		return nil, unavailable(errors.New("BUZON_WEBHOOK_KEY is not set"))
	}
	text, err := b.vault.Read(ctx, b.name)
	if err != nil {
		return nil, unavailable(fmt.Errorf("read the key of webhooks (BUZON_WEBHOOK_KEY): %w", err))
	}
	keys, err := seal.New([]seal.Root{{ID: "w1", Secret: text}}, seal.Options{Clock: b.clock, Rand: rand.Reader})
	if err != nil {
		return nil, unavailable(fmt.Errorf("the key of webhooks (BUZON_WEBHOOK_KEY): %w", err))
	}
	b.box = keys.Purpose(inbox.WebhookSecretPurpose)
	return b.box, nil
}

func unavailable(cause error) error {
	return apperr.New(apperr.Unavailable, "", "Signing secrets of webhooks can't be kept at the moment.", "Repeat the call in a moment.").Because(cause)
}

// Seal seals; the vault bounds its own time.
func (b *Box) Seal(plaintext, ad []byte, ttl time.Duration) (string, error) {
	box, err := b.Sealer(context.Background())
	if err != nil {
		return "", err
	}
	return box.Seal(plaintext, ad, ttl)
}

// Open opens what Seal made.
func (b *Box) Open(token string, ad []byte) ([]byte, error) {
	box, err := b.Sealer(context.Background())
	if err != nil {
		return nil, err
	}
	return box.Open(token, ad)
}

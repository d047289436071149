// Package vault reads the secrets of a process on AWS from Secrets Manager, by name. It is not the place of the command that
// makes them. No error of it shows a name: people paste the secret where its name belongs.
package vault

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/buzon-mail/buzon/shared/awsclient"
	"github.com/buzon-mail/buzon/shared/config"
)

const (
	headTimeout  = 4 * time.Second
	wholeTimeout = 5 * time.Second
)

// Reader reads secrets. Its methods may be called by many goroutines at once.
type Reader struct {
	client *secretsmanager.Client
}

// New makes a reader and asks AWS nothing.
func New(cfg awsclient.Config) (*Reader, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	return &Reader{secretsmanager.New(secretsmanager.Options{
		Region: cfg.Region, Credentials: cfg.Credentials, BaseEndpoint: cfg.Base(), Retryer: cfg.NewRetries(),
		HTTPClient: cfg.Client(headTimeout, wholeTimeout),
	})}, nil
}

// Read returns the current version of a secret, kept as text or as bytes.
func (r *Reader) Read(ctx context.Context, name config.Secret) ([]byte, error) {
	id := name.Reveal()
	out, err := r.client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &id})
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("vault: %w", ctx.Err())
	case err != nil:
		return nil, fmt.Errorf("vault: %w", awsclient.Brief(err))
	case out.SecretString != nil:
		return []byte(*out.SecretString), nil
	case len(out.SecretBinary) > 0:
		return out.SecretBinary, nil
	}
	return nil, errors.New("vault: the secret is empty")
}

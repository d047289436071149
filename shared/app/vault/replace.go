package vault

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/buzon-mail/buzon/shared/awsclient"
	"github.com/buzon-mail/buzon/shared/config"
)

// ErrChanged is a secret that somebody else changed meanwhile.
var ErrChanged = errors.New("vault: the secret was changed meanwhile")

// Stages of a version of a secret.
const (
	current = "AWSCURRENT"
	pending = "AWSPENDING"
)

// Replace makes what change makes of a secret its current version. The new version is stored aside first, and becomes the current one
// only if the version that change saw still is: ErrChanged else, and nothing has changed. What was current stays as AWSPREVIOUS.
func (r *Reader) Replace(ctx context.Context, name config.Secret, change func(old []byte) ([]byte, error)) error {
	id := name.Reveal()
	old, err := r.client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &id})
	if err != nil {
		return failed(ctx, "read", err)
	}
	if old.SecretString == nil {
		return errors.New("vault: the secret is no text")
	}
	text, err := change([]byte(*old.SecretString))
	if err != nil {
		return err
	}
	next := string(text)
	put, err := r.client.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{SecretId: &id, SecretString: &next, VersionStages: []string{pending}})
	if err != nil {
		return failed(ctx, "store", err)
	}
	stage := current
	_, err = r.client.UpdateSecretVersionStage(ctx, &secretsmanager.UpdateSecretVersionStageInput{
		SecretId: &id, VersionStage: &stage, MoveToVersionId: put.VersionId, RemoveFromVersionId: old.VersionId,
	})
	if err == nil {
		return nil
	}
	if code := awsclient.Code(err); code == "InvalidParameterException" || code == "InvalidRequestException" {
		return fmt.Errorf("%w: %w", ErrChanged, awsclient.Brief(err))
	}
	return failed(ctx, "make current", err)
}

func failed(ctx context.Context, step string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("vault: %s: %w", step, ctx.Err())
	}
	return fmt.Errorf("vault: %s: %w", step, awsclient.Brief(err))
}

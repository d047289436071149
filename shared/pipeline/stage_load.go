package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/buzon-mail/buzon/shared/blob"
)

// load fetches the raw bytes and proves that they are those that were accepted.
func (r *run) load(ctx context.Context) error {
	if r.failed() {
		return nil
	}
	raw, err := r.w.deps.Blobs.Get(ctx, r.email.RawKey, r.email.Size)
	switch {
	case errors.Is(err, blob.ErrNotFound):
		r.fail(reasonRawMissing)
		return nil
	case errors.Is(err, blob.ErrTooLarge): // it has grown since it was accepted
		r.fail(reasonRawDamaged)
		return nil
	case err != nil:
		return blobFailure(err)
	}
	sum := sha256.Sum256(raw)
	if int64(len(raw)) != r.email.Size || hex.EncodeToString(sum[:]) != r.email.RawSHA256 {
		r.fail(reasonRawDamaged)
		return nil
	}
	r.raw = raw
	return nil
}

package pipeline

import (
	"context"
	"errors"
	"io"
	"syscall"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/blob"
	"github.com/buzon-mail/buzon/shared/inbox"
)

// Blobs is what the pipeline needs of a blob.Store, whose contract holds.
type Blobs interface {
	Put(ctx context.Context, key string, r io.Reader, size int64) error
	Get(ctx context.Context, key string, max int64) ([]byte, error)
	Delete(ctx context.Context, key string) error
}

var _ Blobs = blob.Store(nil)

// blobFailure puts an error of a blob store into our words, its cause kept for the log.
func blobFailure(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return apperr.New(apperr.Unavailable, inbox.CodeStorageFull, "There is no room for the mail now.").Because(err)
	case errors.Is(err, blob.ErrUnavailable):
		return apperr.New(apperr.Unavailable, "", "The mail can't be stored or read now.").Because(err)
	case errors.Is(err, blob.ErrNotFound):
		return apperr.New(apperr.NotFound, "", "The bytes are gone.").Because(err)
	}
	return err
}

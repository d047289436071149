package web

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/buzon-mail/buzon/shared/blob"
	"github.com/buzon-mail/buzon/shared/inbox"
)

// Signer makes addresses for blobs.
type Signer interface {
	SignedURL(ctx context.Context, key string, o blob.DownloadOptions) (url string, expires time.Time, err error)
}

// Downloads makes addresses for attachments.
type Downloads struct{ Signer Signer }

// SignedURL returns an address that serves this one attachment until it expires.
func (d Downloads) SignedURL(ctx context.Context, a inbox.Attachment, ttl time.Duration) (string, time.Time, error) {
	url, expires, err := d.Signer.SignedURL(ctx, a.BlobKey, blob.DownloadOptions{Filename: a.Filename, TTL: ttl})
	if err != nil {
		return "", time.Time{}, fmt.Errorf("sign a download of %s: %w", a.ID, err)
	}
	return url, expires, nil
}

// Opener reads blobs as a stream with its size.
type Opener interface {
	Open(ctx context.Context, key string) (io.ReadCloser, int64, error)
}

// Blobs reads what the pipeline stored beside the rows.
type Blobs struct{ Opener Opener }

// Open returns the bytes of a key.
func (b Blobs) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	body, _, err := b.Opener.Open(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("open blob: %w", err)
	}
	return body, nil
}

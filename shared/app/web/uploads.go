package web

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/blob"
	"github.com/buzon-mail/buzon/shared/inbox"
)

// Puts makes addresses that take files.
type Puts struct{ Uploader blob.Uploader }

// PutURL returns an address for the bytes of this upload alone.
func (p Puts) PutURL(ctx context.Context, u inbox.Upload, ttl time.Duration) (string, map[string]string, time.Time, error) {
	if p.Uploader == nil {
		return "", nil, time.Time{}, apperr.New(apperr.Unavailable, "", "This service takes no files.",
			"Ask whoever runs it to import the file with `buzon import`.")
	}
	sum, err := hex.DecodeString(u.SHA256)
	if err != nil {
		return "", nil, time.Time{}, fmt.Errorf("digest of %s: %w", u.ID, err)
	}
	link, err := p.Uploader.UploadURL(ctx, u.Key, blob.UploadOptions{Size: u.Size, SHA256: sum, TTL: ttl})
	if err != nil {
		return "", nil, time.Time{}, fmt.Errorf("sign an upload of %s: %w", u.ID, err)
	}
	return link.URL, link.Headers, link.Expires, nil
}

package inbox

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// RawDownload is an address that serves the raw bytes of a mail for a while.
type RawDownload struct {
	Email     string
	URL       string
	ExpiresAt time.Time
	SHA256    string
	Size      int64
}

// RawURL returns an address that serves a mail as it was received until it expires. Nothing can be masked in those bytes, so it is for
// those alone who may read codes and links. ttl 0 is the longest.
func (s *Emails) RawURL(ctx context.Context, a Actor, id string, ttl time.Duration) (RawDownload, error) {
	if ttl == 0 {
		ttl = MaxDownloadTTL
	}
	if ttl < time.Second || ttl > MaxDownloadTTL {
		return RawDownload{}, invalid("query.ttl_s", fmt.Sprintf("1 to %d", MaxDownloadTTL/time.Second))
	}
	if !a.ReadCodes {
		return RawDownload{}, CodesHidden("The raw email, in which nothing can be masked,", "Read it with emails_get.")
	}
	e, _, err := s.d.email(ctx, a, id, false)
	if err != nil {
		return RawDownload{}, err
	}
	if !e.DeletedAt.IsZero() || e.RawKey == "" {
		return RawDownload{}, NoEmail()
	}
	url, expires, err := s.d.Downloads.SignedURL(ctx, Attachment{ID: e.ID, Filename: e.ID + ".eml", BlobKey: e.RawKey}, ttl)
	if err != nil {
		return RawDownload{}, fmt.Errorf("address of the raw mail of %s: %w", id, err)
	}
	if err := s.d.record(ctx, a, id); err != nil {
		return RawDownload{}, err
	}
	return RawDownload{
		Email: e.ID, URL: url, ExpiresAt: expires.UTC().Truncate(time.Millisecond), SHA256: e.RawSHA256, Size: e.Size,
	}, nil
}

// opensCodes reports whether a file shows what is masked in its mail: one that is a mail itself always may, one that is text does
// when its mail has codes or links. A file of another type is not searched for codes anywhere in this service.
func opensCodes(e Email, at Attachment) bool {
	isMail, isText := at.Kind == "message" || at.Kind == "tnef", at.Kind == "calendar"
	for _, t := range []string{at.ContentType, at.DetectedType} {
		t = strings.ToLower(strings.TrimSpace(t))
		isMail = isMail || strings.HasPrefix(t, "message/") || strings.HasPrefix(t, "multipart/") || strings.HasPrefix(t, "application/ms-tnef")
		isText = isText || strings.HasPrefix(t, "text/") || strings.Contains(t, "html") || strings.Contains(t, "xml") || strings.Contains(t, "json")
	}
	return isMail || isText && len(SecretsOf(e)) > 0
}

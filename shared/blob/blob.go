// Package blob is the interface to bytes that are written once under a key, read whole, and handed out by short-lived links:
// raw mail, attachments, long texts. It holds the rules that every store of blobs obeys. Stores are S3 and a directory, and
// both pass blob/blobtest unchanged. It knows nothing of what the bytes are. It depends on the standard library only.
package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// What stores return, wrapped with the step.
var (
	ErrNotFound    = errors.New("blob: not found")
	ErrInvalid     = errors.New("blob: invalid")
	ErrTooLarge    = errors.New("blob: too large")
	ErrUnavailable = errors.New("blob: unavailable") // disk full, unreachable; nothing was left behind that a reader could see
	ErrSize        = fmt.Errorf("%w: the reader is not as long as announced", ErrInvalid)
)

// The bounds.
const (
	MaxKey  = 512
	MaxSize = 256 << 20
	MaxTTL  = 300 * time.Second
)

// Store keeps blobs. A context that is already done changes nothing and its error is returned.
type Store interface {
	// Put stores size bytes from r under key, durably, before it returns; readers see all of the blob or none, whatever
	// crashes. Where the key is taken it succeeds and leaves what is there, with or without reading r: keys name their
	// content, and retries are normal. A reader that ends early or goes on is ErrSize, and nothing is left. (S3: PutObject
	// with If-None-Match: *, where 412 is success and 409 is tried again.)
	Put(ctx context.Context, key string, r io.Reader, size int64) error

	// Get returns a whole blob, ErrNotFound, or ErrTooLarge for one over max bytes, which is then not read.
	Get(ctx context.Context, key string, max int64) ([]byte, error)

	// Open returns a blob as a stream and its size, or ErrNotFound. The caller closes it, and may read it after the context
	// ended only at its own risk.
	Open(ctx context.Context, key string) (io.ReadCloser, int64, error)

	// Delete removes a blob. An absent one is fine.
	Delete(ctx context.Context, key string) error

	// SignedURL returns a link that whoever holds it can fetch the blob by, as an attachment, until expires. It does not look
	// whether the blob is there: one that is absent is a refusal to whoever fetches.
	SignedURL(ctx context.Context, key string, opts DownloadOptions) (url string, expires time.Time, err error)
}

// DownloadOptions are the settings of SignedURL.
type DownloadOptions struct {
	// Filename is what the receiver is offered as a name; it may come from a stranger. See CleanFilename.
	Filename string
	// TTL is how long the link works: 1 to 300 seconds, cut down to whole ones; 0 is 300.
	TTL time.Duration
}

// MaxUploadTTL is how long a link to put a blob works at most.
const MaxUploadTTL = time.Hour

// UploadOptions bind a link to the bytes that it takes.
type UploadOptions struct {
	Size   int64
	SHA256 []byte        // 32 bytes
	TTL    time.Duration // 1 second to MaxUploadTTL
}

// UploadLink is where and how one blob is put: a PUT of exactly the bytes, with their Content-Length and these headers.
type UploadLink struct {
	URL     string
	Headers map[string]string
	Expires time.Time
}

// Uploader is a Store that others put blobs into by short-lived links. Both stores are.
type Uploader interface {
	// UploadURL returns a link that whoever holds it can put the blob by, once: other bytes, and bytes for a key that is taken, are
	// refused.
	UploadURL(ctx context.Context, key string, opts UploadOptions) (UploadLink, error)
}

// Check checks the options.
func (o UploadOptions) Check(key string) error {
	if err := CheckPut(key, o.Size); err != nil {
		return err
	}
	if len(o.SHA256) != 32 || o.TTL < time.Second || o.TTL > MaxUploadTTL {
		return fmt.Errorf("%w: a link to put needs a SHA-256 and 1 s to %v", ErrInvalid, MaxUploadTTL)
	}
	return nil
}

// Normal checks the options and fills in the defaults.
func (o DownloadOptions) Normal() (DownloadOptions, error) {
	if o.TTL == 0 {
		o.TTL = MaxTTL
	}
	if o.TTL < time.Second || o.TTL > MaxTTL {
		return o, fmt.Errorf("%w: a link for %v, want 1 s to %v", ErrInvalid, o.TTL, MaxTTL)
	}
	o.TTL = o.TTL.Truncate(time.Second)
	o.Filename = CleanFilename(o.Filename)
	return o, nil
}

// CheckKey accepts 1 to 512 of a-z, 0-9, '/', '_', '-' and '.', in segments that are neither empty nor "." and contain no "..":
// such a key means the same to S3, to a URL and to every file system, and can't leave the store.
func CheckKey(key string) error {
	if len(key) < 1 || len(key) > MaxKey {
		return fmt.Errorf("%w: key of %d bytes, want 1 to %d", ErrInvalid, len(key), MaxKey)
	}
	for _, c := range []byte(key) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '/' && c != '_' && c != '-' && c != '.' {
			return fmt.Errorf("%w: key with byte 0x%02x", ErrInvalid, c)
		}
	}
	if strings.Contains(key, "..") {
		return fmt.Errorf("%w: key with two dots", ErrInvalid)
	}
	for segment := range strings.SplitSeq(key, "/") {
		if segment == "" || segment == "." {
			return fmt.Errorf("%w: key with an empty segment", ErrInvalid)
		}
	}
	return nil
}

// CheckPut checks the arguments of Put.
func CheckPut(key string, size int64) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	if size < 0 {
		return fmt.Errorf("%w: size %d", ErrInvalid, size)
	}
	if size > MaxSize {
		return fmt.Errorf("%w: %d bytes, want at most %d", ErrTooLarge, size, int64(MaxSize))
	}
	return nil
}

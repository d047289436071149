// Package bucket is blob.Store in a bucket of S3 (its folder is s3, a name that the SDK has taken). A blob is one object, encrypted at rest, and is put only where its key is free,
// so that a retry after a lost answer finds its own work and is content. Links are presigned URLs; S3 serves them, on a host of
// its own, as attachments of no particular type.
//
// The role of the process needs s3:ListBucket on the bucket: without it S3 answers 403 and not 404 for an object that is not
// there, and an absent blob can't be told from a refused one. The package knows nothing of what the bytes are.
package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/buzon-mail/buzon/shared/awsclient"
	"github.com/buzon-mail/buzon/shared/blob"
)

var (
	_ blob.Store    = (*Store)(nil)
	_ blob.Uploader = (*Store)(nil)
)

const (
	headTimeout  = 10 * time.Second // S3 answers a put once it has stored it
	stallTimeout = 10 * time.Second // between two pieces of a body
	octets       = "application/octet-stream"
	noStore      = "no-store"
	readAttempts = 2 // of a whole blob whose body breaks off
)

// Options are the settings of New.
type Options struct {
	AWS       awsclient.Config
	Bucket    string
	KMSKey    string           // encrypts objects; empty: the key that S3 owns (SSE-S3)
	PathStyle bool             // for stand-ins that have no name for each bucket
	Clock     func() time.Time // dates the links; time.Now if nil
	Stall     time.Duration    // the longest wait for a piece of a body; 0 is 10 seconds
}

// Store is a client of one bucket. Its methods may be called by many goroutines at once.
type Store struct {
	client  *s3.Client
	signer  *s3.PresignClient
	retries *awsclient.Retries
	bucket  *string
	kmsKey  *string // nil for SSE-S3
	clock   func() time.Time
	stall   time.Duration
}

// New makes a store and asks AWS nothing.
func New(opts Options) (*Store, error) {
	if err := opts.AWS.Validate(); err != nil {
		return nil, fmt.Errorf("bucket: %w", err)
	}
	if opts.Bucket == "" {
		return nil, errors.New("bucket: the name of a bucket is needed")
	}
	s := &Store{retries: opts.AWS.NewRetries(), bucket: &opts.Bucket, clock: opts.Clock, stall: opts.Stall}
	if opts.KMSKey != "" {
		s.kmsKey = &opts.KMSKey
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	if s.stall == 0 {
		s.stall = stallTimeout
	}
	s.client = s3.New(s3.Options{
		Region: opts.AWS.Region, Credentials: opts.AWS.Credentials, BaseEndpoint: opts.AWS.Base(), UsePathStyle: opts.PathStyle,
		Retryer: s.retries, HTTPClient: opts.AWS.Client(headTimeout, 0), DisableLogOutputChecksumValidationSkipped: true,
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenSupported,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenSupported,
	})
	s.signer = s3.NewPresignClient(s.client, s3.WithPresignClientFromClientOptions(func(o *s3.Options) {
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired // whoever fetches does not ask for checksums
	}))
	return s, nil
}

func (s *Store) use(c *awsclient.Call) func(*s3.Options) {
	return func(o *s3.Options) { o.Retryer = c }
}

// Put implements blob.Store: one PutObject, after the reader has been read to its end: S3 can't take back what turns out to be
// longer than announced.
func (s *Store) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := blob.CheckPut(key, size); err != nil {
		return err
	}
	body, drop, err := whole(ctx, r, size)
	if err != nil {
		return err
	}
	defer drop()
	in := &s3.PutObjectInput{
		Bucket: s.bucket, Key: &key, Body: body, ContentLength: &size, ContentType: aws.String(octets), CacheControl: aws.String(noStore),
		IfNoneMatch: aws.String("*"), ServerSideEncryption: types.ServerSideEncryptionAes256,
	}
	if s.kmsKey != nil {
		in.ServerSideEncryption, in.SSEKMSKeyId = types.ServerSideEncryptionAwsKms, s.kmsKey
	}
	_, err = s.client.PutObject(ctx, in, s.use(&awsclient.Call{Retries: s.retries, Conflict: busy}))
	if err != nil && awsclient.Status(err) != http.StatusPreconditionFailed {
		return failure(ctx, "put", err)
	}
	return nil // 412: the key is taken, be it by an attempt of this very call
}

// busy is S3's answer to the loser of two puts at once: it does not know yet whether the other will be stored.
func busy(err error) bool { return awsclient.Status(err) == http.StatusConflict }

// Open implements blob.Store. A body that stops to come is an ErrUnavailable of its Read.
func (s *Store) Open(ctx context.Context, key string) (io.ReadCloser, int64, error) {
	body, err := s.open(ctx, key)
	if err != nil {
		return nil, 0, err // a nil *stream would be a ReadCloser that is not nil
	}
	return body, body.size, nil
}

func (s *Store) open(ctx context.Context, key string) (*stream, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := blob.CheckKey(key); err != nil {
		return nil, err
	}
	inner, cancel := context.WithCancel(ctx)
	out, err := s.client.GetObject(inner, &s3.GetObjectInput{Bucket: s.bucket, Key: &key})
	switch {
	case err != nil && awsclient.Code(err) == "NoSuchKey":
		cancel()
		return nil, blob.ErrNotFound
	case err != nil:
		cancel()
		return nil, failure(ctx, "get", err)
	case out.ContentLength == nil:
		cancel()
		return nil, errors.Join(fmt.Errorf("bucket: get: %w: an object without a length", blob.ErrUnavailable), out.Body.Close())
	}
	return newStream(ctx, cancel, out.Body, *out.ContentLength, s.stall), nil
}

// Get implements blob.Store.
func (s *Store) Get(ctx context.Context, key string, max int64) ([]byte, error) {
	for attempt := 1; ; attempt++ {
		b, err := s.get(ctx, key, max)
		if err == nil || attempt == readAttempts || !errors.Is(err, errBroken) {
			return b, err
		}
	}
}

func (s *Store) get(ctx context.Context, key string, max int64) ([]byte, error) {
	body, err := s.open(ctx, key)
	if err != nil {
		return nil, err
	}
	defer body.Close() //nolint:errcheck // it was only read
	if body.size > max {
		return nil, fmt.Errorf("%w: %d bytes, want at most %d", blob.ErrTooLarge, body.size, max)
	}
	b := make([]byte, body.size)
	if _, err := io.ReadFull(body, b); err != nil {
		return nil, err
	}
	// The end must be read too: it is where the checksum is compared.
	if n, err := body.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("bucket: get: %w: %w: more bytes than announced", blob.ErrUnavailable, errBroken)
	}
	return b, nil
}

// Delete implements blob.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := blob.CheckKey(key); err != nil {
		return err
	}
	_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: s.bucket, Key: &key})
	if err != nil && awsclient.Code(err) != "NoSuchKey" {
		return failure(ctx, "delete", err)
	}
	return nil
}

func failure(ctx context.Context, step string, err error) error {
	if ended := ctx.Err(); ended != nil {
		return fmt.Errorf("bucket: %s: %w", step, ended)
	}
	return fmt.Errorf("bucket: %s: %w: %w", step, blob.ErrUnavailable, awsclient.Explain(err))
}

package bucket

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/buzon-mail/buzon/shared/blob"
)

// SignedURL implements blob.Store: a presigned GetObject, made without asking AWS. What S3 is told to answer (attachment, octets,
// no-store) is part of the signature. A link signed with a function's credentials ends with them, should that be sooner; Lambda
// renews them hours before.
func (s *Store) SignedURL(ctx context.Context, key string, opts blob.DownloadOptions) (string, time.Time, error) {
	if err := ctx.Err(); err != nil {
		return "", time.Time{}, err
	}
	if err := blob.CheckKey(key); err != nil {
		return "", time.Time{}, err
	}
	opts, err := opts.Normal()
	if err != nil {
		return "", time.Time{}, err
	}
	at := s.clock().UTC().Truncate(time.Second) // what the signature can say
	request, err := s.signer.PresignGetObject(ctx, &s3.GetObjectInput{
		Bucket: s.bucket, Key: &key, ResponseContentType: aws.String(octets), ResponseCacheControl: aws.String(noStore),
		ResponseContentDisposition: aws.String(blob.Disposition(opts.Filename)),
	}, func(o *s3.PresignOptions) {
		o.Expires = opts.TTL
		o.Presigner = dated{v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }), at}
	})
	if err != nil {
		return "", time.Time{}, failure(ctx, "sign a link", err)
	}
	return request.URL, at.Add(opts.TTL), nil
}

// dated signs with a date of the store's clock.
type dated struct {
	signer *v4.Signer
	at     time.Time
}

// PresignHTTP implements the SDK's presigner.
func (d dated) PresignHTTP(
	ctx context.Context, c aws.Credentials, r *http.Request, payload, service, region string, _ time.Time, opts ...func(*v4.SignerOptions),
) (string, http.Header, error) {
	url, header, err := d.signer.PresignHTTP(ctx, c, r, payload, service, region, d.at, opts...)
	if err != nil {
		return "", nil, fmt.Errorf("presign: %w", err)
	}
	return url, header, nil
}

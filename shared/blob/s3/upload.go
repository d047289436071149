package bucket

import (
	"context"
	"encoding/base64"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/buzon-mail/buzon/shared/blob"
)

// UploadURL implements blob.Uploader: a presigned PutObject whose length, SHA-256, encryption and If-None-Match are signed headers, so
// that S3 refuses other bytes, and any bytes for a key that is taken. Made without asking AWS.
func (s *Store) UploadURL(ctx context.Context, key string, opts blob.UploadOptions) (blob.UploadLink, error) {
	if err := ctx.Err(); err != nil {
		return blob.UploadLink{}, err
	}
	if err := opts.Check(key); err != nil {
		return blob.UploadLink{}, err
	}
	in := &s3.PutObjectInput{
		Bucket: s.bucket, Key: &key, ContentLength: &opts.Size, ContentType: aws.String(octets), IfNoneMatch: aws.String("*"),
		ChecksumSHA256: aws.String(base64.StdEncoding.EncodeToString(opts.SHA256)), ServerSideEncryption: types.ServerSideEncryptionAes256,
	}
	if s.kmsKey != nil {
		in.ServerSideEncryption, in.SSEKMSKeyId = types.ServerSideEncryptionAwsKms, s.kmsKey
	}
	at := s.clock().UTC().Truncate(time.Second) // what the signature can say
	request, err := s.signer.PresignPutObject(ctx, in, func(o *s3.PresignOptions) {
		o.Expires = opts.TTL.Truncate(time.Second)
		o.Presigner = dated{v4.NewSigner(func(o *v4.SignerOptions) {
			// In the query S3 takes some of these headers for granted; as headers they are signed and compared.
			o.DisableURIPathEscaping, o.DisableHeaderHoisting = true, true
		}), at}
	})
	if err != nil {
		return blob.UploadLink{}, failure(ctx, "sign an upload link", err)
	}
	link := blob.UploadLink{URL: request.URL, Headers: map[string]string{}, Expires: at.Add(opts.TTL.Truncate(time.Second))}
	for name, values := range request.SignedHeader {
		if name != "Host" && name != "Content-Length" { // whoever sends knows these
			link.Headers[http.CanonicalHeaderKey(name)] = values[0]
		}
	}
	return link, nil
}

package bucket_test

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/buzon-mail/buzon/shared/blob"
	bucket "github.com/buzon-mail/buzon/shared/blob/s3"
)

// What binds an upload to its bytes is signed as headers: S3 computes the signature of what it is sent, so another length, digest or
// encryption, or none of If-None-Match, is another signature.
func TestUploadLinkIsBound(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	now := time.Date(2026, 11, 30, 12, 0, 0, 500, time.UTC)
	s, err := bucket.New(bucket.Options{AWS: at(server.URL), Bucket: "mail", PathStyle: true, Clock: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("hello"))
	link, err := s.UploadURL(t.Context(), "upload/ws_1/upload_1", blob.UploadOptions{Size: 5, SHA256: sum[:], TTL: 15 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if want := now.Truncate(time.Second).Add(15 * time.Minute); !link.Expires.Equal(want) {
		t.Errorf("until %s", link.Expires)
	}
	u, err := url.Parse(link.URL)
	if err != nil {
		t.Fatal(err)
	}
	signed := strings.Split(u.Query().Get("X-Amz-SignedHeaders"), ";")
	for name, want := range map[string]string{
		"X-Amz-Checksum-Sha256": base64.StdEncoding.EncodeToString(sum[:]), "If-None-Match": "*",
		"X-Amz-Server-Side-Encryption": "AES256", "Content-Type": "application/octet-stream",
	} {
		if link.Headers[name] != want || !strings.Contains(strings.Join(signed, " "), strings.ToLower(name)) || u.Query().Has(name) {
			t.Errorf("%s: %q, signed %q", name, link.Headers[name], signed)
		}
	}
	if !strings.Contains(strings.Join(signed, " "), "content-length") {
		t.Errorf("the length is not signed: %q", signed)
	}
	sign := func(change func(*http.Request)) string {
		q := u.Query()
		q.Del("X-Amz-Signature")
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, u.Scheme+"://"+u.Host+u.EscapedPath()+"?"+q.Encode(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range link.Headers {
			r.Header.Set(name, value)
		}
		r.ContentLength = 5
		change(r)
		got, _, err := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping, o.DisableHeaderHoisting = true, true }).
			PresignHTTP(t.Context(), keys(), r, "UNSIGNED-PAYLOAD", "s3", "eu-west-1", now.Truncate(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		again, err := url.Parse(got)
		if err != nil {
			t.Fatal(err)
		}
		return again.Query().Get("X-Amz-Signature")
	}
	have := u.Query().Get("X-Amz-Signature")
	if got := sign(func(*http.Request) {}); got != have {
		t.Errorf("the very request does not verify: %s, %s", got, have)
	}
	for name, change := range map[string]func(*http.Request){
		"longer":           func(r *http.Request) { r.ContentLength = 6 },
		"another digest":   func(r *http.Request) { r.Header.Set("X-Amz-Checksum-Sha256", "x") },
		"no digest":        func(r *http.Request) { r.Header.Del("X-Amz-Checksum-Sha256") },
		"over what is":     func(r *http.Request) { r.Header.Del("If-None-Match") },
		"without a cipher": func(r *http.Request) { r.Header.Del("X-Amz-Server-Side-Encryption") },
		"another key":      func(r *http.Request) { r.URL.Path = "/mail/raw/x" },
	} {
		if sign(change) == have {
			t.Errorf("%s: the signature is the same", name)
		}
	}
	for name, o := range map[string]blob.UploadOptions{
		"no digest": {Size: 5, TTL: time.Minute}, "no time": {Size: 5, SHA256: sum[:]}, "an age": {Size: 5, SHA256: sum[:], TTL: 2 * time.Hour},
		"too large": {Size: blob.MaxSize + 1, SHA256: sum[:], TTL: time.Minute}, "negative": {Size: -1, SHA256: sum[:], TTL: time.Minute},
	} {
		if _, err := s.UploadURL(t.Context(), "upload/x", o); err == nil {
			t.Errorf("%s: signed", name)
		}
	}
}

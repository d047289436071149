package dir

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/blob"
)

// Uploads is the path under which TakeHandler must be served.
const Uploads = "/uploads/"

// ticket is what a link to put a blob seals.
type ticket struct {
	Key    string `json:"k"`
	Size   int64  `json:"n"`
	SHA256 []byte `json:"h"`
}

// UploadURL implements blob.Uploader: <base URL>/uploads/<sealed key, size and digest>.
func (s *Store) UploadURL(ctx context.Context, key string, opts blob.UploadOptions) (blob.UploadLink, error) {
	if err := ctx.Err(); err != nil {
		return blob.UploadLink{}, err
	}
	if err := opts.Check(key); err != nil {
		return blob.UploadLink{}, err
	}
	if s.puts == nil {
		return blob.UploadLink{}, fmt.Errorf("blob directory: %w: links are not configured", blob.ErrUnavailable)
	}
	text, err := json.Marshal(ticket{key, opts.Size, opts.SHA256})
	if err != nil {
		return blob.UploadLink{}, fmt.Errorf("seal an upload link: %w", err)
	}
	expires := s.clock().Add(opts.TTL).UTC().Truncate(time.Second)
	token, err := s.puts.SealUntil(text, nil, expires)
	if err != nil {
		return blob.UploadLink{}, fmt.Errorf("seal an upload link: %w", err)
	}
	return blob.UploadLink{URL: s.base + Uploads + token, Headers: map[string]string{"Content-Type": "application/octet-stream"}, Expires: expires}, nil
}

// TakeHandler takes what is put by the links. A link that is wrong or expired is a 404; bytes that are not those it was made for leave nothing.
func (s *Store) TakeHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("Referrer-Policy", "no-referrer") // the address is the key
		h.Set("X-Content-Type-Options", "nosniff")
		if r.Method != http.MethodPut {
			h.Set("Allow", http.MethodPut)
			plain(w, http.StatusMethodNotAllowed)
			return
		}
		plain(w, s.take(w, r))
	})
}

// take stores the body and returns the status.
func (s *Store) take(w http.ResponseWriter, r *http.Request) int {
	token, found := strings.CutPrefix(r.URL.Path, Uploads)
	if !found || s.puts == nil {
		return http.StatusNotFound
	}
	plaintext, err := s.puts.Open(token, nil)
	if err != nil {
		return http.StatusNotFound
	}
	var t ticket
	if err := json.Unmarshal(plaintext, &t); err != nil {
		return http.StatusNotFound
	}
	switch {
	case r.ContentLength < 0:
		return http.StatusLengthRequired
	case r.ContentLength != t.Size:
		return http.StatusBadRequest
	}
	if _, err := os.Lstat(s.path(t.Key)); err == nil {
		return http.StatusPreconditionFailed // as S3 answers: it is there already, and these bytes are not looked at
	}
	err = s.Put(r.Context(), t.Key, &judged{r: newSteady(w, r.Body, t.Size), sum: sha256.New(), left: t.Size, want: t.SHA256}, t.Size)
	switch {
	case err == nil:
		return http.StatusOK
	case errors.Is(err, errDigest), errors.Is(err, blob.ErrSize):
		return http.StatusBadRequest
	case errors.Is(err, blob.ErrUnavailable): // else it is the client's line that broke, and the text holds its address
		s.log.WarnContext(r.Context(), "blobs: not kept", slog.String("error", err.Error()))
	}
	return http.StatusServiceUnavailable
}

// A server has one time for reading any request, a minute say, which a big file over a slow line does not keep. A file has a minute,
// and more for each piece that came: who sends slower than uploadRate is cut off, or a link could hold a connection for ever.
const (
	uploadGrace = time.Minute
	uploadRate  = 32 << 10 // bytes a second
)

// steady is a body that may take as long as its bytes come at uploadRate. Deadlines are the kernel's, so they follow time.Now and
// no injected clock.
type steady struct {
	r        io.Reader
	deadline func(time.Time) error
	start    time.Time
	read     int64
	size     int64
}

func newSteady(w http.ResponseWriter, body io.Reader, size int64) *steady {
	return &steady{r: body, deadline: http.NewResponseController(w).SetReadDeadline, start: time.Now(), size: size}
}

// Read implements io.Reader. A server that knows no deadlines has none that could be missed.
func (s *steady) Read(b []byte) (int, error) {
	_ = s.deadline(s.start.Add(uploadGrace + time.Duration(s.read)*time.Second/uploadRate))
	n, err := s.r.Read(b)
	if s.read += int64(n); s.read >= s.size || err != nil {
		_ = s.deadline(time.Time{}) // or the server would take the client for gone while the file is still being written out
	}
	return n, err //nolint:wrapcheck // a reader's own
}

var errDigest = errors.New("blob directory: not the bytes that were announced")

// judged is a body that fails at its end when its digest is another one: before the blob gets its name.
type judged struct {
	r    io.Reader
	sum  hash.Hash
	left int64
	want []byte
}

// Read implements io.Reader.
func (j *judged) Read(b []byte) (int, error) {
	n, err := j.r.Read(b)
	j.sum.Write(b[:n])
	j.left -= int64(n)
	if j.left <= 0 && subtle.ConstantTimeCompare(j.sum.Sum(nil), j.want) != 1 {
		return n, errDigest
	}
	if errors.Is(err, io.EOF) && !bytes.Equal(j.sum.Sum(nil), j.want) {
		return n, errDigest
	}
	return n, err //nolint:wrapcheck // a reader's own
}

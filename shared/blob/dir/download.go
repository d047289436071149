package dir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/blob"
)

// Downloads is the path under which Handler must be served.
const Downloads = "/downloads/"

// SignedURL implements blob.Store: <base URL>/downloads/<sealed key and file name>.
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
	if s.links == nil {
		return "", time.Time{}, fmt.Errorf("blob directory: %w: links are not configured", blob.ErrUnavailable)
	}
	expires := s.clock().Add(opts.TTL).UTC().Truncate(time.Second)
	token, err := s.links.SealUntil([]byte(key+"\x00"+opts.Filename), nil, expires) // neither contains NUL
	if err != nil {
		return "", time.Time{}, fmt.Errorf("seal a download link: %w", err)
	}
	return s.base + Downloads + token, expires, nil
}

// Handler answers the links. What it serves was sent by strangers, on the service's own origin: it must never render, run,
// sniff, frame or be cached. A link that is wrong, expired or names nothing is the same 404.
func (s *Store) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Referrer-Policy", "no-referrer") // the address is the key
		h.Set("X-Content-Type-Options", "nosniff")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD")
			plain(w, http.StatusMethodNotAllowed)
			return
		}
		body, size, filename, err := s.resolve(r)
		if errors.Is(err, blob.ErrUnavailable) {
			s.log.WarnContext(r.Context(), "blobs: not read", slog.String("error", err.Error()))
			plain(w, http.StatusServiceUnavailable)
			return
		}
		if err != nil {
			plain(w, http.StatusNotFound)
			return
		}
		defer body.Close() //nolint:errcheck // it was only read
		h.Set("Content-Type", "application/octet-stream")
		h.Set("Content-Disposition", blob.Disposition(filename))
		h.Set("Content-Length", strconv.FormatInt(size, 10))
		w.WriteHeader(http.StatusOK)
		if r.Method == http.MethodGet {
			_, _ = io.CopyN(w, body, size) // the reader went away; there is no one to tell
		}
	})
}

func (s *Store) resolve(r *http.Request) (body io.ReadCloser, size int64, filename string, err error) {
	token, found := strings.CutPrefix(r.URL.Path, Downloads)
	if !found || s.links == nil {
		return nil, 0, "", blob.ErrNotFound
	}
	plaintext, err := s.links.Open(token, nil)
	if err != nil {
		return nil, 0, "", fmt.Errorf("open a download link: %w", err)
	}
	key, name, _ := bytes.Cut(plaintext, []byte{0})
	body, size, err = s.Open(r.Context(), string(key))
	return body, size, string(name), err
}

func plain(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, strings.ToLower(http.StatusText(status))+"\n") // the reader went away
}

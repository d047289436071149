package dir_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/buzon-mail/buzon/shared/blob"
	"github.com/buzon-mail/buzon/shared/blob/dir"
	"github.com/buzon-mail/buzon/shared/seal"
)

// Why the disk failed is in the log; why a client's line broke, which names its address, is not.
func TestFailuresOfTheDiskAreLogged(t *testing.T) {
	sum := sha256.Sum256([]byte("hello"))
	for _, tt := range []struct {
		name    string
		breaks  string // folder that becomes a file
		body    io.Reader
		fetches bool
		status  int
		lines   int
	}{
		{"put, disk fails", "tmp", strings.NewReader("hello"), false, http.StatusServiceUnavailable, 1},
		{"put, line breaks", "", iotest.ErrReader(errors.New("read tcp 192.0.2.1:80: reset")), false, http.StatusServiceUnavailable, 0},
		{"put", "", strings.NewReader("hello"), false, http.StatusOK, 0},
		{"get, disk fails", "objects", nil, true, http.StatusServiceUnavailable, 1},
		{"get what is not there", "", nil, true, http.StatusNotFound, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log bytes.Buffer
			w := newWorld(t)
			keys, err := seal.New([]seal.Root{{ID: "k1", Secret: bytes.Repeat([]byte{1}, 32)}}, seal.Options{Clock: w.clock})
			if err != nil {
				t.Fatal(err)
			}
			w.store = open(t, w.path, dir.Options{BaseURL: origin, Keys: keys, Clock: w.clock, Log: slog.New(slog.NewTextHandler(&log, nil))})
			link, err := w.store.UploadURL(t.Context(), "upload/a", blob.UploadOptions{Size: 5, SHA256: sum[:], TTL: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			url, _, err := w.store.SignedURL(t.Context(), "upload/a", blob.DownloadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if tt.breaks != "" {
				path := filepath.Join(w.path, tt.breaks)
				if err := errors.Join(os.RemoveAll(path), os.WriteFile(path, nil, 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			var res *http.Response
			if tt.fetches {
				res = w.fetch(t, http.MethodGet, url)
			} else {
				res = w.put(t, http.MethodPut, link.URL, tt.body, 5)
			}
			if n := strings.Count(log.String(), "\n"); res.StatusCode != tt.status || n != tt.lines || strings.Contains(log.String(), "192.0.2.1") {
				t.Errorf("status %d, %d lines, want %d and %d: %s", res.StatusCode, n, tt.status, tt.lines, log.String())
			}
		})
	}
}

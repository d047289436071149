package dir_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/blob"
	"github.com/buzon-mail/buzon/shared/blob/dir"
)

// put sends a body to a link.
func (w *world) put(t *testing.T, method, url string, body io.Reader, length int64) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, url, body)
	r.ContentLength = length
	rec := httptest.NewRecorder()
	w.store.TakeHandler().ServeHTTP(rec, r)
	return rec.Result()
}

func TestUploads(t *testing.T) {
	w := newWorld(t)
	sum := sha256.Sum256([]byte("hello"))
	link, err := w.store.UploadURL(t.Context(), "upload/a", blob.UploadOptions{Size: 5, SHA256: sum[:], TTL: time.Minute})
	if err != nil || !strings.HasPrefix(link.URL, origin+dir.Uploads) || !link.Expires.Equal(w.clock().Truncate(time.Second).Add(time.Minute)) {
		t.Fatalf("%+v, %v", link, err)
	}
	download, _, err := w.store.SignedURL(t.Context(), "upload/a", blob.DownloadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	token := download[strings.LastIndexByte(download, '/')+1:]
	for _, c := range []struct {
		name, method, url, body string
		length                  int64
		status                  int
	}{
		{"get", "GET", link.URL, "", 0, 405},
		{"post", "POST", link.URL, "hello", 5, 405},
		{"other bytes", "PUT", link.URL, "jello", 5, 400},
		{"fewer", "PUT", link.URL, "hell", 4, 400},
		{"more", "PUT", link.URL, "hello!", 6, 400},
		{"breaks off", "PUT", link.URL, "hel", 5, 400},
		{"goes on", "PUT", link.URL, "hello and more", 5, 400},
		{"no length", "PUT", link.URL, "hello", -1, 411},
		{"no token", "PUT", origin + dir.Uploads, "hello", 5, 404},
		{"token of a download", "PUT", origin + dir.Uploads + token, "hello", 5, 404},
		{"altered", "PUT", link.URL[:len(link.URL)-1] + "A", "hello", 5, 404},
		{"more path", "PUT", link.URL + "/x", "hello", 5, 404},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "altered" && c.url == link.URL {
				c.url = link.URL[:len(link.URL)-1] + "B"
			}
			if got := w.put(t, c.method, c.url, strings.NewReader(c.body), c.length); got.StatusCode != c.status {
				t.Errorf("status %d, want %d", got.StatusCode, c.status)
			}
			if _, err := w.store.Get(t.Context(), "upload/a", 10); !errors.Is(err, blob.ErrNotFound) {
				t.Errorf("something is there: %v", err)
			}
			if left := files(t, w.path); len(left) != 0 {
				t.Errorf("files %v", left)
			}
		})
	}
	if got := w.put(t, "PUT", link.URL, strings.NewReader("hello"), 5); got.StatusCode != 200 {
		t.Fatalf("status %d", got.StatusCode)
	}
	if got, err := w.store.Get(t.Context(), "upload/a", 10); err != nil || string(got) != "hello" {
		t.Errorf("%q, %v", got, err)
	}
	if got := w.put(t, "PUT", link.URL, strings.NewReader("hello"), 5); got.StatusCode != 412 {
		t.Errorf("again: %d", got.StatusCode)
	}
	w.pass(2 * time.Minute)
	if got := w.put(t, "PUT", link.URL, strings.NewReader("hello"), 5); got.StatusCode != 404 {
		t.Errorf("later: %d", got.StatusCode)
	}
}

func TestLargeUpload(t *testing.T) {
	w := newWorld(t)
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<17)
	sum := sha256.Sum256(data)
	link, err := w.store.UploadURL(t.Context(), "upload/b", blob.UploadOptions{Size: int64(len(data)), SHA256: sum[:], TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if got := w.put(t, "PUT", link.URL, bytes.NewReader(data), int64(len(data))); got.StatusCode != 200 {
		t.Errorf("status %d", got.StatusCode)
	}
}

func TestNoUploadLinksWithoutKeys(t *testing.T) {
	s := open(t, t.TempDir(), dir.Options{})
	if _, err := s.UploadURL(t.Context(), "a", blob.UploadOptions{Size: 1, SHA256: make([]byte, 32), TTL: time.Minute}); !errors.Is(err, blob.ErrUnavailable) {
		t.Errorf("%v", err)
	}
}

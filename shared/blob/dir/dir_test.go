package dir_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/blob"
	"github.com/buzon-mail/buzon/shared/blob/blobtest"
	"github.com/buzon-mail/buzon/shared/blob/dir"
	"github.com/buzon-mail/buzon/shared/seal"
)

const origin = "https://mail.test"

// world is a store with its links, on a clock that stands until it is moved.
type world struct {
	mu    sync.Mutex
	now   time.Time
	path  string
	store *dir.Store
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{now: time.Date(2026, 8, 1, 1, 2, 3, 400_000_000, time.UTC), path: filepath.Join(t.TempDir(), "blobs")}
	keys, err := seal.New([]seal.Root{{ID: "k1", Secret: bytes.Repeat([]byte{1}, 32)}}, seal.Options{Clock: w.clock})
	if err != nil {
		t.Fatal(err)
	}
	w.store = open(t, w.path, dir.Options{BaseURL: origin + "/", Keys: keys, Clock: w.clock})
	return w
}

func open(t *testing.T, path string, opts dir.Options) *dir.Store {
	t.Helper()
	s, err := dir.Open(path, opts)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return s
}

// fetch serves the URL as a server that mounts Handler would.
func (w *world) fetch(t *testing.T, method, url string) *http.Response {
	t.Helper()
	if !strings.HasPrefix(url, origin+dir.Downloads) {
		t.Fatalf("url = %s", url)
	}
	mux := http.NewServeMux()
	mux.Handle(dir.Downloads, w.store.Handler())
	rec := httptest.NewRecorder()
	mux.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), method, url, nil))
	return rec.Result()
}

func TestContract(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blobtest.Harness {
		w := newWorld(t)
		return blobtest.Harness{Store: w.store, Fetch: w.fetch, Pass: w.pass, Now: w.clock}
	})
}

// files lists the regular files under a folder of the store.
func files(t *testing.T, root string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func put(t *testing.T, s *dir.Store, key, data string) {
	t.Helper()
	if err := s.Put(t.Context(), key, strings.NewReader(data), int64(len(data))); err != nil {
		t.Fatalf("put %s: %v", key, err)
	}
}

func TestFilesArePrivate(t *testing.T) {
	w := newWorld(t)
	put(t, w.store, "a/b", "x")
	if err := os.Chmod(w.path, 0o755); err != nil { //nolint:gosec // as a careless operator would leave it
		t.Fatal(err)
	}
	w.store = open(t, w.path, dir.Options{})
	err := filepath.WalkDir(w.path, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRefusalsLeaveNoFiles(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range map[string]error{
		"short":   w.store.Put(t.Context(), "a", strings.NewReader("x"), 2),
		"long":    w.store.Put(t.Context(), "a", strings.NewReader("xxx"), 2),
		"bad key": w.store.Put(t.Context(), "../a", strings.NewReader("x"), 1),
		"done":    w.store.Put(ctx, "a", strings.NewReader("x"), 1),
	} {
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	put(t, w.store, "taken", "first")
	put(t, w.store, "taken", "second")
	if got := files(t, w.path); len(got) != 1 {
		t.Errorf("files = %v, want the one blob", got)
	}
}

func TestOpenRemovesLeftovers(t *testing.T) {
	w := newWorld(t)
	put(t, w.store, "a", "kept")
	if err := os.WriteFile(filepath.Join(w.path, "tmp", "put-123"), []byte("half a ma"), 0o600); err != nil {
		t.Fatal(err)
	}
	again := open(t, w.path, dir.Options{})
	if got := files(t, filepath.Join(w.path, "tmp")); len(got) != 0 {
		t.Errorf("left over: %v", got)
	}
	if got, err := again.Get(t.Context(), "a", 10); err != nil || string(got) != "kept" {
		t.Errorf("blob = %q, %v", got, err)
	}
}

func TestOpenFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Open(path, dir.Options{}); err == nil {
		t.Error("opened a file as a directory")
	}
}

func TestNoLinksWithoutKeys(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "blobs"), dir.Options{})
	if url, _, err := s.SignedURL(t.Context(), "a", blob.DownloadOptions{}); !errors.Is(err, blob.ErrUnavailable) || url != "" {
		t.Errorf("SignedURL = %q, %v", url, err)
	}
	rec := httptest.NewRecorder()
	s.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, dir.Downloads+"x", nil))
	if rec.Code != http.StatusNotFound {
		t.Errorf("status %d", rec.Code)
	}
}

func TestHandler(t *testing.T) {
	w := newWorld(t)
	put(t, w.store, "a", "<html>")
	url, expires, err := w.store.SignedURL(t.Context(), "a", blob.DownloadOptions{Filename: "a.html"})
	if err != nil {
		t.Fatal(err)
	}
	if want := time.Date(2026, 8, 1, 1, 7, 3, 0, time.UTC); expires != want {
		t.Errorf("expires = %v, want %v", expires, want)
	}
	if strings.Contains(url, "a.html") {
		t.Errorf("url shows the name: %s", url)
	}
	otherKeys, err := seal.New([]seal.Root{{ID: "k1", Secret: bytes.Repeat([]byte{1}, 32)}}, seal.Options{Clock: w.clock})
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := otherKeys.Purpose("another").Seal([]byte("a\x00a.html"), nil, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, method, url string
		status            int
		body              string
	}{
		{"get", "GET", url, 200, "<html>"},
		{"head", "HEAD", url, 200, ""},
		{"post", "POST", url, 405, "method not allowed\n"},
		{"put", "PUT", url, 405, "method not allowed\n"},
		{"delete", "DELETE", url, 405, "method not allowed\n"},
		{"options", "OPTIONS", url, 405, "method not allowed\n"},
		{"no token", "GET", origin + dir.Downloads, 404, "not found\n"},
		{"a key instead of a token", "GET", origin + dir.Downloads + "a", 404, "not found\n"},
		{"token and more", "GET", url + "/a", 404, "not found\n"},
		{"sealed for another purpose", "GET", origin + dir.Downloads + foreign, 404, "not found\n"},
		{"escape", "GET", origin + dir.Downloads + "%2e%2e%2fobjects", 404, "not found\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp := w.fetch(t, c.method, c.url)
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != c.status || string(body) != c.body {
				t.Errorf("status %d, body %q, %v, want %d %q", resp.StatusCode, body, err, c.status, c.body)
			}
			want := map[string]string{
				"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
				"Content-Security-Policy": "sandbox; default-src 'none'", "Content-Type": "text/plain; charset=utf-8",
			}
			switch c.status {
			case 200:
				want["Content-Type"], want["Content-Disposition"], want["Content-Length"] = "application/octet-stream", `attachment; filename="a.html"`, "6"
			case 405:
				want["Allow"] = "GET, HEAD"
			}
			for name, value := range want {
				if got := resp.Header.Get(name); got != value {
					t.Errorf("%s = %q, want %q", name, got, value)
				}
			}
		})
	}
}

const killEnv = "BLOB_TEST_KILL"

// TestMain turns the test binary into the process that TestKill kills.
func TestMain(m *testing.M) {
	if path := os.Getenv(killEnv); path != "" {
		if err := putUntilKilled(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// content lets a reader tell whether a blob is whole.
func content(key string) string { return strings.Repeat(key+"\n", 20_000) + "end" }

func putUntilKilled(path string) error {
	s, err := dir.Open(path, dir.Options{})
	if err != nil {
		return err
	}
	failed := make(chan error)
	var mu sync.Mutex
	for i := range 4 {
		go func() {
			for n := 0; ; n++ {
				key := fmt.Sprintf("mail/%d/%d", i, n)
				data := content(key)
				if err := s.Put(context.Background(), key, strings.NewReader(data), int64(len(data))); err != nil {
					failed <- err
					return
				}
				mu.Lock()
				fmt.Println(key)
				mu.Unlock()
			}
		}()
	}
	return <-failed
}

// Whatever was acknowledged before kill -9 is whole afterwards, and no file is there by half.
func TestKill(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "blobs")
	cmd := exec.Command(exe, "-test.run=^$") //nolint:gosec // this very binary
	cmd.Env = append(os.Environ(), killEnv+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var acked []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if acked = append(acked, lines.Text()); len(acked) == 100 {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // it was killed
	if len(acked) < 100 {
		t.Fatalf("only %d puts", len(acked))
	}
	s := open(t, path, dir.Options{})
	for _, key := range acked {
		if got, err := s.Get(t.Context(), key, 1<<20); err != nil || string(got) != content(key) {
			t.Errorf("acknowledged %s: %d bytes, %v", key, len(got), err)
		}
	}
	for _, name := range files(t, path) {
		b, err := os.ReadFile(name) //nolint:gosec // our own file
		key, _, _ := strings.Cut(string(b), "\n")
		if err != nil || string(b) != content(key) {
			t.Errorf("torn file %s: %d bytes, %v", name, len(b), err)
		}
	}
}

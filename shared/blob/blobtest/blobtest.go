// Package blobtest is what a blob.Store must do, as a suite that every store runs from its own test and none may skip a case of.
package blobtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/buzon-mail/buzon/shared/blob"
)

// Harness is a store under test and the world around it.
type Harness struct {
	Store blob.Store
	// Fetch requests a signed URL as its receiver would.
	Fetch func(t *testing.T, method, url string) *http.Response
	// Pass lets time go by, for the store and for whoever serves its URLs.
	Pass func(d time.Duration)
	// Now is the store's clock.
	Now func() time.Time
}

// Run runs the whole contract; newHarness is called for each case and may hand out the same store.
func Run(t *testing.T, newHarness func(t *testing.T) Harness) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(*suite)
	}{
		{"nothing there", nothingThere},
		{"put and read back", putAndRead},
		{"the first put stays", firstStays},
		{"a key may be the prefix of another", prefixKeys},
		{"a reader of the wrong length leaves nothing", wrongLength},
		{"a reader that fails leaves nothing", failingReader},
		{"bad keys are refused everywhere", badKeys},
		{"bad sizes", badSizes},
		{"get is bounded", boundedGet},
		{"a done context changes nothing", doneContext},
		{"a context that ends amid a put leaves nothing", contextEnds},
		{"delete", deletes},
		{"one of many puts wins, whole", manyPuts},
		{"signed URL", signedURL},
		{"signed URL ends", signedURLEnds},
		{"signed URL of nothing", signedURLOfNothing},
		{"signed URL that was changed", signedURLChanged},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.run(&suite{T: t, Harness: newHarness(t), own: strings.ToLower(rand.Text())})
		})
	}
}

type suite struct {
	*testing.T
	Harness
	own string // makes the keys of this case no one else's
}

func (s *suite) ctx() context.Context   { return s.T.Context() }
func (s *suite) key(name string) string { return s.own + "/" + name }
func (s *suite) is(err, target error) {
	s.Helper()
	s.check(errors.Is(err, target), "err = %v, want %v", err, target)
}
func (s *suite) ok(err error) { s.Helper(); s.check(err == nil, "err = %v", err) }
func (s *suite) check(ok bool, f string, a ...any) {
	s.Helper()
	if !ok {
		s.Fatalf(f, a...)
	}
}

func (s *suite) put(name, data string) {
	s.Helper()
	s.ok(s.Store.Put(s.ctx(), s.key(name), strings.NewReader(data), int64(len(data))))
}

func (s *suite) want(name, data string) {
	s.Helper()
	got, err := s.Store.Get(s.ctx(), s.key(name), int64(len(data)))
	s.ok(err)
	s.check(string(got) == data, "got %.60q (%d bytes), want %.60q (%d bytes)", got, len(got), data, len(data))
	r, size, err := s.Store.Open(s.ctx(), s.key(name))
	s.ok(err)
	streamed, err := io.ReadAll(r)
	s.ok(errors.Join(err, r.Close()))
	s.check(string(streamed) == data && size == int64(len(data)), "stream of %d bytes, size %d", len(streamed), size)
}

func (s *suite) absent(name string) {
	s.Helper()
	_, err := s.Store.Get(s.ctx(), s.key(name), 1<<20)
	s.is(err, blob.ErrNotFound)
	_, _, err = s.Store.Open(s.ctx(), s.key(name))
	s.is(err, blob.ErrNotFound)
}

func nothingThere(s *suite) {
	s.absent("a")
	s.ok(s.Store.Delete(s.ctx(), s.key("a")))
}

func putAndRead(s *suite) {
	all := make([]byte, 3<<20)
	for i := range all {
		all[i] = byte(i ^ i>>8)
	}
	for name, data := range map[string]string{"empty": "", "small": "x", "binary/large.bin": string(all)} {
		s.put(name, data)
		s.want(name, data)
	}
	long := strings.Repeat("k", blob.MaxKey-len(s.own)-1)
	s.put(long, "long key")
	s.want(long, "long key")
}

func firstStays(s *suite) {
	s.put("a", "first")
	s.put("a", "first")
	s.put("a", "second, and longer")
	s.want("a", "first")
}

func prefixKeys(s *suite) {
	for _, name := range []string{"a/b/c", "a", "a/b", "a.b", "a-b"} {
		s.put(name, name)
	}
	s.ok(s.Store.Delete(s.ctx(), s.key("a")))
	s.absent("a")
	for _, name := range []string{"a/b/c", "a/b", "a.b", "a-b"} {
		s.want(name, name)
	}
}

func wrongLength(s *suite) {
	for _, c := range []struct {
		data string
		size int64
	}{{"", 1}, {"abc", 4}, {"abc", 2}, {"abc", 0}, {strings.Repeat("x", 100<<10), 100<<10 + 1}, {strings.Repeat("x", 100<<10), 100<<10 - 1}} {
		err := s.Store.Put(s.ctx(), s.key("a"), strings.NewReader(c.data), c.size)
		s.is(err, blob.ErrSize)
		s.is(err, blob.ErrInvalid)
		s.absent("a")
	}
	s.put("a", "right")
	s.want("a", "right")
}

func failingReader(s *suite) {
	broken := errors.New("the sender went away")
	for _, before := range []string{"", "some bytes"} {
		r := io.MultiReader(strings.NewReader(before), iotest.ErrReader(broken))
		s.is(s.Store.Put(s.ctx(), s.key("a"), r, 20), broken)
		s.absent("a")
	}
}

func badKeys(s *suite) {
	for _, key := range []string{
		"", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", "A", "a b", "a\x00b", "a\\b", "a%2e", "\u00f1", strings.Repeat("k", blob.MaxKey+1),
	} {
		_, get := s.Store.Get(s.ctx(), key, 1)
		_, _, open := s.Store.Open(s.ctx(), key)
		_, _, sign := s.Store.SignedURL(s.ctx(), key, blob.DownloadOptions{})
		for act, err := range map[string]error{
			"get": get, "open": open, "sign": sign,
			"put": s.Store.Put(s.ctx(), key, strings.NewReader("x"), 1), "delete": s.Store.Delete(s.ctx(), key),
		} {
			if !errors.Is(err, blob.ErrInvalid) {
				s.Errorf("%s of %q: %v, want ErrInvalid", act, key, err)
			}
		}
	}
}

func badSizes(s *suite) {
	s.is(s.Store.Put(s.ctx(), s.key("a"), strings.NewReader(""), -1), blob.ErrInvalid)
	s.is(s.Store.Put(s.ctx(), s.key("a"), strings.NewReader(""), blob.MaxSize+1), blob.ErrTooLarge)
	s.absent("a")
}

func boundedGet(s *suite) {
	s.put("a", "12345")
	for _, max := range []int64{0, 4} {
		got, err := s.Store.Get(s.ctx(), s.key("a"), max)
		s.is(err, blob.ErrTooLarge)
		s.check(got == nil, "got %q with the refusal", got)
	}
	s.want("a", "12345")
}

func doneContext(s *suite) {
	s.put("a", "kept")
	ctx, cancel := context.WithCancel(s.ctx())
	cancel()
	s.is(s.Store.Put(ctx, s.key("b"), strings.NewReader("x"), 1), context.Canceled)
	s.is(s.Store.Delete(ctx, s.key("a")), context.Canceled)
	_, err := s.Store.Get(ctx, s.key("a"), 10)
	s.is(err, context.Canceled)
	_, _, err = s.Store.Open(ctx, s.key("a"))
	s.is(err, context.Canceled)
	s.want("a", "kept")
	s.absent("b")
}

func contextEnds(s *suite) {
	ctx, cancel := context.WithCancel(s.ctx())
	defer cancel()
	data := bytes.Repeat([]byte("x"), 1<<20)
	r := io.MultiReader(bytes.NewReader(data[:1<<19]), readerFunc(func([]byte) (int, error) {
		cancel()
		return 0, io.EOF
	}), bytes.NewReader(data[1<<19:]))
	s.is(s.Store.Put(ctx, s.key("a"), r, int64(len(data))), context.Canceled)
	s.absent("a")
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

func deletes(s *suite) {
	s.put("a", "x")
	s.put("b", "y")
	s.ok(s.Store.Delete(s.ctx(), s.key("a")))
	s.ok(s.Store.Delete(s.ctx(), s.key("a")))
	s.absent("a")
	s.want("b", "y")
	s.put("a", "again")
	s.want("a", "again")
}

func manyPuts(s *suite) {
	var wg sync.WaitGroup
	const n = 12
	errs := make([]error, n)
	candidates := map[string]bool{}
	for i := range n {
		data := strings.Repeat(fmt.Sprint(i%10), 50_000+i)
		candidates[data] = true
		wg.Go(func() { errs[i] = s.Store.Put(s.ctx(), s.key("a"), strings.NewReader(data), int64(len(data))) })
	}
	wg.Wait()
	s.ok(errors.Join(errs...))
	got, err := s.Store.Get(s.ctx(), s.key("a"), 1<<20)
	s.ok(err)
	s.check(candidates[string(got)], "the blob is a mixture of %d bytes", len(got))
	s.put("a", "late")
	s.want("a", string(got))
}

func (s *suite) fetch(url string) (status int, header http.Header, body string) {
	s.Helper()
	resp := s.Fetch(s.T, http.MethodGet, url)
	b, err := io.ReadAll(resp.Body)
	s.ok(errors.Join(err, resp.Body.Close()))
	return resp.StatusCode, resp.Header, string(b)
}

func signedURL(s *suite) {
	const data = "<script>alert(1)</script>"
	s.put("a.html", data)
	for _, name := range []string{"invoice.html", "a\u00f1o\r\n\"x.pdf", ""} {
		url, expires, err := s.Store.SignedURL(s.ctx(), s.key("a.html"), blob.DownloadOptions{Filename: name, TTL: time.Minute})
		s.ok(err)
		left := expires.Sub(s.Now())
		s.check(left > 58*time.Second && left <= time.Minute, "expires in %v, want a minute", left)
		status, header, body := s.fetch(url)
		s.check(status == http.StatusOK && body == data, "status %d, body %q", status, body)
		s.check(header.Get("Content-Disposition") == blob.Disposition(name), "disposition = %q", header.Get("Content-Disposition"))
		s.check(header.Get("Content-Type") == "application/octet-stream", "type = %q", header.Get("Content-Type"))
		s.check(header.Get("Cache-Control") == "no-store", "cache control = %q", header.Get("Cache-Control"))
	}
	for _, ttl := range []time.Duration{-time.Second, time.Millisecond, blob.MaxTTL + time.Second} {
		url, _, err := s.Store.SignedURL(s.ctx(), s.key("a.html"), blob.DownloadOptions{TTL: ttl})
		s.is(err, blob.ErrInvalid)
		s.check(url == "", "a refusal came with %q", url)
	}
}

func signedURLEnds(s *suite) {
	s.put("a", "x")
	url, expires, err := s.Store.SignedURL(s.ctx(), s.key("a"), blob.DownloadOptions{TTL: 2 * time.Second})
	s.ok(err)
	status, _, _ := s.fetch(url)
	s.check(status == http.StatusOK, "status %d at once", status)
	s.Pass(expires.Sub(s.Now()))
	status, _, body := s.fetch(url)
	s.check(status >= 400 && status < 500 && body != "x", "status %d after the end", status)
}

func signedURLOfNothing(s *suite) {
	url, _, err := s.Store.SignedURL(s.ctx(), s.key("none"), blob.DownloadOptions{})
	s.ok(err)
	status, _, _ := s.fetch(url)
	s.check(status == http.StatusNotFound, "status %d, want 404", status)
}

func signedURLChanged(s *suite) {
	s.put("a", "mine")
	s.put("b", "theirs")
	url, _, err := s.Store.SignedURL(s.ctx(), s.key("a"), blob.DownloadOptions{})
	s.ok(err)
	for name, bad := range map[string]string{
		"cut":       url[:len(url)-4],
		"byte":      url[:len(url)-5] + flip(url[len(url)-5]) + url[len(url)-4:],
		"other key": strings.ReplaceAll(url, s.key("a"), s.key("b")),
	} {
		if bad == url {
			continue // this store's URLs don't show the key
		}
		status, _, body := s.fetch(bad)
		s.check(status >= 400 && status < 500 && body != "mine" && body != "theirs", "%s: status %d, body %q", name, status, body)
	}
}

func flip(c byte) string {
	if c == 'A' {
		return "B"
	}
	return "A"
}

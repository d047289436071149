package emulator

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/blob"
	"github.com/buzon-mail/buzon/shared/blob/dir"
	"github.com/buzon-mail/buzon/shared/demo"
	"github.com/buzon-mail/buzon/shared/store"
)

// newEmulation is one whose folders lie in a folder of the test.
func newEmulation(t *testing.T, o Options) (e *Emulation, temp string) {
	t.Helper()
	temp = t.TempDir()
	t.Setenv("TMPDIR", temp)
	e, err := New(time.Now, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		wantFolders(t, temp, 0)
	})
	return e, temp
}

func wantFolders(t *testing.T, temp string, n int) {
	t.Helper()
	found, err := os.ReadDir(temp)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != n {
		t.Errorf("%d folders, want %d", len(found), n)
	}
}

// organization reads a row of the sample world.
func organization(ctx context.Context, e *Emulation) error {
	_, err := e.Store.Organization(ctx, demo.World()[0].Org.ID)
	return err
}

// TestFirstCallMakesTheWorld: nothing is made before it is needed, and by many at once it is made once.
func TestFirstCallMakesTheWorld(t *testing.T) {
	var fills int
	e, temp := newEmulation(t, Options{Fill: func(ctx context.Context, w *World) error {
		fills++ // by one goroutine at a time: the race detector looks on
		return w.Put(ctx, "more", []byte("more"))
	}})
	wantFolders(t, temp, 0)
	calls := []func() error{
		func() error { return organization(t.Context(), e) },
		func() error { _, err := e.Blobs.Get(t.Context(), "more", 10); return err },
		func() error { _, err := e.Queue.Receive(t.Context(), 1, time.Minute); return err },
	}
	failures := make([]error, 30)
	var all sync.WaitGroup
	for i := range failures {
		all.Go(func() { failures[i] = calls[i%len(calls)]() })
	}
	all.Wait()
	if err := errors.Join(failures...); err != nil {
		t.Error(err)
	}
	if fills != 1 {
		t.Errorf("the world was made %d times", fills)
	}
	wantFolders(t, temp, 1)
}

// TestWorldIsWhole: the first caller finds all of it: rows, what their blobs hold, and the sample mails with their ages.
func TestWorldIsWhole(t *testing.T) {
	e, _ := newEmulation(t, Options{})
	mails, err := demo.Mails()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mails {
		to, err := e.Store.Recipient(t.Context(), m.Inbox)
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := e.Store.Email(t.Context(), to.Workspace, m.ID, false)
		if err != nil || !got.ReceivedAt.Equal(e.start.Add(-m.Age).UTC().Truncate(time.Millisecond)) {
			t.Errorf("%s is of %v, %v", m.ID, got.ReceivedAt, err)
		}
	}
}

// TestFailureIsTriedAgain: what fails is said, leaves nothing, and is made by the next call once it can be.
func TestFailureIsTriedAgain(t *testing.T) {
	broken := errors.New("canary")
	tests := map[string]struct {
		breakIt func(t *testing.T, temp string, fail *error) (mend func())
		cause   string
	}{
		"no temporary folder": {func(t *testing.T, temp string, _ *error) func() {
			t.Setenv("TMPDIR", filepath.Join(temp, "absent"))
			return func() { t.Setenv("TMPDIR", temp) }
		}, "make the temporary folder"},
		"the last step": {func(_ *testing.T, _ string, fail *error) func() {
			*fail = broken
			return func() { *fail = nil }
		}, "canary"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var fail error
			e, temp := newEmulation(t, Options{Fill: func(context.Context, *World) error { return fail }})
			mend := tt.breakIt(t, temp, &fail)
			for range 2 {
				err := organization(t.Context(), e)
				got := apperr.From(err)
				if got.Kind != apperr.Unavailable || !strings.Contains(strings.Join(got.Fixes, " "), "TMPDIR") || got.RetryAfter == 0 || strings.Contains(got.Public, "canary") {
					t.Errorf("rows: %+v", got)
				}
				if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), tt.cause) {
					t.Errorf("rows: %v", err)
				}
				_, err = e.Blobs.Get(t.Context(), "x", 1)
				if !errors.Is(err, blob.ErrUnavailable) || apperr.From(err).Kind != apperr.Unavailable {
					t.Errorf("blobs: %v", err)
				}
			}
			wantFolders(t, temp, 0)
			mend()
			if err := organization(t.Context(), e); err != nil {
				t.Errorf("once it is mended: %v", err)
			}
		})
	}
}

// TestCallerGoesAway: a context that is over makes nothing, and one that ends meanwhile does not end it for the others.
func TestCallerGoesAway(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	fills := 0
	e, temp := newEmulation(t, Options{Fill: func(ctx context.Context, _ *World) error {
		fills++
		cancel()
		return ctx.Err()
	}})
	over, end := context.WithCancel(t.Context())
	end()
	if err := organization(over, e); !errors.Is(err, context.Canceled) {
		t.Errorf("over: %v", err)
	}
	if _, err := e.Blobs.Get(over, "x", 1); !errors.Is(err, context.Canceled) || errors.Is(err, blob.ErrUnavailable) {
		t.Errorf("over: %v", err)
	}
	wantFolders(t, temp, 0)
	if err := organization(ctx, e); !errors.Is(err, context.Canceled) {
		t.Errorf("meanwhile: %v", err)
	}
	if err := organization(t.Context(), e); err != nil || fills != 1 {
		t.Errorf("the next: %v after %d", err, fills)
	}
}

// TestClose: what was never opened is closed, twice too, and is not opened after that.
func TestClose(t *testing.T) {
	for name, opened := range map[string]bool{"not opened": false, "opened": true} {
		t.Run(name, func(t *testing.T) {
			e, temp := newEmulation(t, Options{})
			if opened {
				if err := organization(t.Context(), e); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(e.Close(), e.Close()); err != nil {
				t.Fatal(err)
			}
			if err := organization(t.Context(), e); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("after Close: %v", err)
			}
			wantFolders(t, temp, 0)
		})
	}
}

// TestLinks: links work, and those that nobody can have are refused without a world.
func TestLinks(t *testing.T) {
	e, temp := newEmulation(t, Options{Fill: func(ctx context.Context, w *World) error { return w.Put(ctx, "a", []byte("text")) }})
	fetch := func(h http.Handler, method, url string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, url, nil))
		return w
	}
	if w := fetch(e.Blobs.Handler(), http.MethodGet, e.Origin+dir.Downloads+"forged"); w.Code != http.StatusNotFound {
		t.Errorf("download: status %d", w.Code)
	}
	if w := fetch(e.Blobs.TakeHandler(), http.MethodPut, e.Origin+dir.Uploads+"forged"); w.Code != http.StatusNotFound {
		t.Errorf("upload: status %d", w.Code)
	}
	wantFolders(t, temp, 0)
	url, _, err := e.Blobs.SignedURL(t.Context(), "a", blob.DownloadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if w := fetch(e.Blobs.Handler(), http.MethodGet, url); w.Code != http.StatusOK || w.Body.String() != "text" {
		t.Errorf("status %d, %q", w.Code, w.Body)
	}
	if w := fetch(e.Blobs.Handler(), http.MethodGet, e.Origin+dir.Downloads+"forged"); w.Code != http.StatusNotFound {
		t.Errorf("forged: status %d", w.Code)
	}
}

package local_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/store/embedded"
)

// hold takes the store as another process would, which does not answer at the socket.
func (h home) hold(t *testing.T) *embedded.Engine {
	t.Helper()
	other, err := embedded.Open(filepath.Join(h.dir, "buzon.db"), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	return other
}

// TestVerbsWaitForTheStore: what another process has for a moment, a verb waits for; the pause only lets it meet the lock.
func TestVerbsWaitForTheStore(t *testing.T) {
	h := newHome(t)
	other := h.hold(t)
	time.AfterFunc(100*time.Millisecond, func() { _ = other.Close() })
	if code, out, errs := h.buzon(t.Context(), "org", "create", "mine", "--owner", "me@example.com"); code != 0 {
		t.Errorf("org create: %d %s%s, want that it waits", code, out, errs)
	}
}

// TestWhoIsToldToStopWaitsNoLonger: every verb that opens the store, and the service, end with the reason.
func TestWhoIsToldToStopWaitsNoLonger(t *testing.T) {
	h := newHome(t)
	h.hold(t)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for _, args := range [][]string{
		{"token", "me@example.com"}, {"import", "turn_test.go", "--inbox", "hello@example.com"}, {"serve"},
	} {
		if code, out, errs := h.buzon(stopped, args...); code != 1 || !strings.Contains(errs, "another buzon has the data folder") {
			t.Errorf("%s: %d %s%s, want 1 and who has the folder", args[0], code, out, errs)
		}
	}
}

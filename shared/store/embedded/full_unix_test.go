//go:build unix

package embedded_test

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/buzon-mail/buzon/shared/store"
	"github.com/buzon-mail/buzon/shared/store/embedded"
)

// A limit on the size of files makes the file's growth fail as a full disk does. What was acknowledged stays, the engine goes
// on, and once there is room it writes again.
func TestFileCannotGrow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	e := open(t, path, embedded.Options{})
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	small := limit
	small.Cur = uint64(info.Size()) //nolint:gosec // a size
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small); err != nil {
		t.Fatal(err)
	}
	data, acked := strings.Repeat("x", 300<<10), 0
	for err == nil && acked < 1000 {
		if err = e.Put(t.Context(), item(fmt.Sprint(acked), data), store.Absent()); err == nil {
			acked++
		}
	}
	if rerr := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); rerr != nil {
		t.Fatal(rerr)
	}
	if !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("after %d writes: %v, want ErrUnavailable", acked, err)
	}
	if got := count(t, e, store.Core, "p"); got != acked {
		t.Errorf("%d rows, want the %d that were acknowledged", got, acked)
	}
	if err := e.Put(t.Context(), item("again", data), store.Absent()); err != nil {
		t.Errorf("put once there is room: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if got := count(t, open(t, path, embedded.Options{}), store.Core, "p"); got != acked+1 {
		t.Errorf("%d rows after a restart, want %d", got, acked+1)
	}
}

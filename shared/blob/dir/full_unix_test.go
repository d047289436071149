//go:build unix

package dir_test

import (
	"errors"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/buzon-mail/buzon/shared/blob"
	"github.com/buzon-mail/buzon/shared/blob/dir"
)

// A limit on the size of files makes write fail as a full disk does: in the middle, after some bytes went through.
func TestFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "blobs")
	s := open(t, path, dir.Options{})
	put(t, s, "before", "kept")
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	small := limit
	small.Cur = 100 << 10
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small); err != nil {
		t.Fatal(err)
	}
	data := strings.Repeat("x", 1<<20)
	err := s.Put(t.Context(), "a", strings.NewReader(data), int64(len(data)))
	if rerr := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); rerr != nil {
		t.Fatal(rerr)
	}
	if !errors.Is(err, blob.ErrUnavailable) {
		t.Errorf("put on a full disk: %v, want ErrUnavailable", err)
	}
	if got := files(t, path); len(got) != 1 {
		t.Errorf("files = %v, want the one from before", got)
	}
	put(t, s, "a", data)
}

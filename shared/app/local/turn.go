package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/buzon-mail/buzon/shared/config"
	"github.com/buzon-mail/buzon/shared/store/embedded"
)

// How long a process waits for the data folder. One process at a time has it: a verb for a moment, a service for as long as it
// runs, and while that starts or stops its socket does not answer yet, or any more.
const (
	turns = 200
	turn  = 50 * time.Millisecond
)

// whenFree opens the data folder, and waits while another process has it. Before each attempt elsewhere may say that the thing is
// settled without it: nothing is opened then, and its error is the answer.
func whenFree(ctx context.Context, cfg *config.Local, opts Options, elsewhere func() (bool, error)) (*Service, error) {
	for n := 0; ; n++ {
		if settled, err := elsewhere(); settled {
			return nil, err
		}
		s, err := New(cfg, opts)
		if err == nil || !errors.Is(err, embedded.ErrLocked) || n == turns {
			return s, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the data folder: %w", ctx.Err())
		case <-time.After(turn):
		}
	}
}

// answers reports whether a service runs on the data folder.
func answers(ctx context.Context, dir string) bool {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", filepath.Join(dir, adminFile))
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

package local

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"time"

	"github.com/buzon-mail/buzon/shared/config"
	"github.com/buzon-mail/buzon/shared/store/embedded"
)

// turn is how long a process waits for a data folder that another has open without answering at its socket: a service that
// starts, or a verb at work. Without it `buzon serve &` and the verb on the next line of a script would be a race, which
// either of them loses.
const turn = 10 * time.Second

// taken says whether opening the data folder failed because another process has the store.
func taken(err error) bool { return errors.Is(err, embedded.ErrLocked) }

// inTurn repeats an attempt for as long as it says so, and for no longer than a turn. The attempt itself may take any time.
func inTurn(ctx context.Context, attempt func() (again bool, err error)) error {
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	end := time.NewTimer(turn)
	defer end.Stop()
	for {
		again, err := attempt()
		if !again {
			return err
		}
		select {
		case <-pause.C:
		case <-end.C:
			return err
		case <-ctx.Done():
			return err
		}
	}
}

// toServe opens the data folder for a service. One that is served already is an error at once.
func (p *Process) toServe(ctx context.Context, cfg *config.Local) (s *Service, err error) {
	err = inTurn(ctx, func() (again bool, err error) {
		s, err = New(cfg, Options{Log: p.Stderr, Build: p.Build, Program: p.Program})
		return taken(err) && !answers(ctx, cfg.DataDir), err
	})
	return s, err
}

// answers says whether a service listens at the socket of a data folder.
func answers(ctx context.Context, dir string) bool {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", filepath.Join(dir, adminFile))
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/app/local"
	"github.com/buzon-mail/buzon/shared/config"
)

// varAhead is how far the clock of a process is ahead; a script's own, no setting of the service.
const varAhead = "SERVICE_CLOCK_AHEAD"

// Buzon is the buzon command line, for a script that calls itself to be the service; Spawn starts it. It returns the exit code.
func Buzon(ctx context.Context, args []string) int {
	ahead, err := time.ParseDuration(os.Getenv(varAhead))
	if err != nil || len(args) != 1 || args[0] != "serve" {
		return local.Main(ctx, local.Process{Args: args, Getenv: os.Getenv, Stdout: os.Stdout, Stderr: os.Stderr})
	}
	cfg, err := config.LoadLocal(os.Getenv)
	if err == nil {
		var s *local.Service
		if s, err = local.New(cfg, local.Options{Clock: func() time.Time { return time.Now().Add(ahead) }}); err == nil {
			err = s.Run(ctx, os.Stdout)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "service:", err)
		return 1
	}
	return 0
}

// Process is the service in a process of its own, which can be killed and started again over the same folder at the same
// addresses.
type Process struct {
	Demo    []byte // demo.json
	program []string
	folder  string
	env     []string
	ahead   time.Duration // of its clock
	child   *exec.Cmd
	said    *bytes.Buffer
	ended   chan error
}

// Spawn starts a program that is buzon, with the demo, and waits until it is ready.
func Spawn(ctx context.Context, program ...string) (*Process, error) {
	folder, err := os.MkdirTemp("", "bz") // short: the socket in it has 108 bytes for its path
	if err != nil {
		return nil, fmt.Errorf("service: %w", err)
	}
	p := &Process{program: program, folder: folder}
	addresses := make([]string, 2)
	for i := range addresses {
		if addresses[i], err = free(); err != nil {
			return nil, errors.Join(err, os.RemoveAll(folder))
		}
	}
	p.env = []string{
		"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "BUZON_DATA_DIR=" + folder, "BUZON_DEMO=1", "BUZON_HTTP_ADDR=" + addresses[0],
		"BUZON_SMTP_ADDR=" + addresses[1],
	}
	if err := p.start(ctx); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// free is a loopback address that nobody listens on. Somebody else may take it before the service does; then that one says so.
func free() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("service: %w", err)
	}
	return l.Addr().String(), l.Close()
}

// Crash ends it with SIGKILL, which no process can answer, and starts it again as if it had been down for so long: what it had in
// hand is free again after its leases, which nobody has to wait for.
func (p *Process) Crash(ctx context.Context, down time.Duration) error {
	if err := p.child.Process.Kill(); err != nil {
		return fmt.Errorf("service: kill: %w", err)
	}
	<-p.ended
	p.ended = nil
	p.ahead += down
	if err := os.Remove(filepath.Join(p.folder, "demo.json")); err != nil {
		return fmt.Errorf("service: %w", err)
	}
	return p.start(ctx)
}

// Close ends it and removes its folder.
func (p *Process) Close() error {
	var err error
	if p.ended != nil {
		_ = p.child.Process.Signal(os.Interrupt)
		select {
		case err = <-p.ended:
		case <-time.After(15 * time.Second):
			err = errors.Join(errors.New("service: it does not stop"), p.child.Process.Kill())
			<-p.ended
		}
	}
	return errors.Join(err, os.RemoveAll(p.folder))
}

// Command runs the command line beside it and returns what it printed.
func (p *Process) Command(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, p.program[0], append(p.program[1:len(p.program):len(p.program)], args...)...) //nolint:gosec // what the caller named
	cmd.Env = p.env
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("buzon %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

func (p *Process) start(ctx context.Context) error {
	p.said = &bytes.Buffer{}
	p.child = exec.Command(p.program[0], append(p.program[1:len(p.program):len(p.program)], "serve")...) //nolint:gosec,noctx // what the caller named; Close ends it gently
	p.child.Env, p.child.Stderr = append(p.env[:len(p.env):len(p.env)], varAhead+"="+p.ahead.String()), p.said
	if err := p.child.Start(); err != nil {
		return fmt.Errorf("service: %w", err)
	}
	ended := make(chan error, 1)
	p.ended = ended
	go func() { ended <- p.child.Wait() }()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		text, err := os.ReadFile(filepath.Join(p.folder, "demo.json"))
		if err == nil {
			p.Demo = text
			return nil
		}
		select {
		case err := <-ended:
			p.ended = nil
			return fmt.Errorf("service: it ended before it was ready: %w\n%s", err, p.said)
		case <-ctx.Done():
			return fmt.Errorf("service: no demo.json: %w", ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
	return errors.New("service: no demo.json after a minute")
}

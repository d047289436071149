package testkit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Lambda runs a bootstrap against Lambda's Runtime API (version 2018-06-01) in miniature: one invocation at a time, as the
// real service gives them to one execution environment.
type Lambda struct {
	mu     sync.Mutex // one invocation at a time
	next   chan invocation
	polled chan struct{} // closed when the bootstrap first asks for an event
	dead   chan struct{}
	cmd    *exec.Cmd
	server *http.Server
	output *lockedBuffer
	count  int
}

type invocation struct {
	id    string
	event []byte
	reply chan reply
}

type reply struct {
	body []byte
	err  error
}

// StartLambda starts the program with a bare environment plus env (KEY=value) and ends it with the test.
func StartLambda(t testing.TB, bootstrap string, env ...string) *Lambda {
	t.Helper()
	l, err := RunLambda(bootstrap, t.TempDir(), env...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// RunLambda is StartLambda outside of a test: whoever calls it closes it. folder is the program's home and temporary folder.
func RunLambda(bootstrap, folder string, env ...string) (*Lambda, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	l := &Lambda{
		next: make(chan invocation), polled: make(chan struct{}), dead: make(chan struct{}), output: &lockedBuffer{},
		cmd: exec.Command(bootstrap),
	}
	l.server = &http.Server{Handler: l.handler(), ReadHeaderTimeout: time.Minute}
	go func() { _ = l.server.Serve(listener) }()
	l.cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "TMPDIR=" + folder, "HOME=" + folder,
		"AWS_LAMBDA_RUNTIME_API=" + listener.Addr().String(), "AWS_LAMBDA_FUNCTION_NAME=api", "AWS_REGION=eu-west-1",
	}, env...)
	l.cmd.Stdout, l.cmd.Stderr = l.output, l.output
	if err := l.cmd.Start(); err != nil {
		_ = l.server.Close()
		return nil, fmt.Errorf("start %s: %w", bootstrap, err)
	}
	go func() { _ = l.cmd.Wait(); close(l.dead) }()
	return l, nil
}

// Close kills the program, as the real service does.
func (l *Lambda) Close() {
	_ = l.cmd.Process.Kill()
	<-l.dead
	_ = l.server.Close()
}

// Ready waits until the program first asks for an event: its initialization is over.
func (l *Lambda) Ready(ctx context.Context) error {
	select {
	case <-l.polled:
		return nil
	case <-l.dead:
		return fmt.Errorf("the bootstrap ended: %s", l.Output())
	case <-ctx.Done():
		return fmt.Errorf("the bootstrap does not poll: %w: %s", ctx.Err(), l.Output())
	}
}

// PID is the program's process id.
func (l *Lambda) PID() int { return l.cmd.Process.Pid }

// Invoke sends one event and waits for the reply. An error reply of the function is an error.
func (l *Lambda) Invoke(ctx context.Context, event []byte) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	call := invocation{id: "call-" + strconv.Itoa(l.count), event: event, reply: make(chan reply, 1)}
	select {
	case l.next <- call:
	case <-l.dead:
		return nil, fmt.Errorf("the bootstrap ended: %s", l.Output())
	case <-ctx.Done():
		return nil, fmt.Errorf("the bootstrap does not poll: %w: %s", ctx.Err(), l.Output())
	}
	select {
	case r := <-call.reply:
		return r.body, r.err
	case <-l.dead:
		return nil, fmt.Errorf("the bootstrap ended: %s", l.Output())
	case <-ctx.Done():
		return nil, fmt.Errorf("no reply: %w: %s", ctx.Err(), l.Output())
	}
}

// Output is what the program wrote until now.
func (l *Lambda) Output() string { return l.output.String() }

func (l *Lambda) handler() http.Handler {
	const base = "/2018-06-01/runtime/"
	waiting := map[string]invocation{}
	var mu sync.Mutex
	var first sync.Once
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+base+"invocation/next", func(w http.ResponseWriter, r *http.Request) {
		first.Do(func() { close(l.polled) })
		select {
		case call := <-l.next:
			mu.Lock()
			waiting[call.id] = call
			mu.Unlock()
			w.Header().Set("Lambda-Runtime-Aws-Request-Id", call.id)
			w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(time.Now().Add(29*time.Second).UnixMilli(), 10))
			w.Header().Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:eu-west-1:123456789012:function:api")
			_, _ = w.Write(call.event)
		case <-r.Context().Done():
		}
	})
	answer := func(r *http.Request, failed bool) {
		body, err := io.ReadAll(r.Body)
		if failed {
			err = errors.New(strings.TrimSpace(string(body)))
		}
		mu.Lock()
		call := waiting[r.PathValue("id")]
		delete(waiting, r.PathValue("id"))
		mu.Unlock()
		if call.reply != nil {
			call.reply <- reply{body, err}
		}
	}
	mux.HandleFunc("POST "+base+"invocation/{id}/response", func(w http.ResponseWriter, r *http.Request) {
		answer(r, false)
		w.WriteHeader(http.StatusAccepted)
	})
	mux.HandleFunc("POST "+base+"invocation/{id}/error", func(w http.ResponseWriter, r *http.Request) {
		answer(r, true)
		w.WriteHeader(http.StatusAccepted)
	})
	mux.HandleFunc("POST "+base+"init/error", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
	})
	return mux
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

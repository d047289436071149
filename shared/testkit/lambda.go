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
	dead   chan struct{}
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
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	l := &Lambda{next: make(chan invocation), dead: make(chan struct{}), output: &lockedBuffer{}}
	server := &http.Server{Handler: l.handler(), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	cmd := exec.Command(bootstrap)
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir(), "HOME=" + t.TempDir(),
		"AWS_LAMBDA_RUNTIME_API=" + listener.Addr().String(), "AWS_LAMBDA_FUNCTION_NAME=api", "AWS_REGION=eu-west-1",
	}, env...)
	cmd.Stdout, cmd.Stderr = l.output, l.output
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", bootstrap, err)
	}
	go func() { _ = cmd.Wait(); close(l.dead) }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-l.dead
		_ = server.Close()
	})
	return l
}

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
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+base+"invocation/next", func(w http.ResponseWriter, r *http.Request) {
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

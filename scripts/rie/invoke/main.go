// Command invoke runs a Lambda bootstrap under AWS's Runtime Interface Emulator on free loopback ports, sends it the event
// that stands on standard input, prints the reply and ends the emulator. It exits with 1 when the invocation failed. With -lines
// each line of standard input is an event, all go to the same process, each reply is a line, and a failed invocation is one more
// reply.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	rie := flag.String("rie", "", "path of aws-lambda-rie")
	bootstrap := flag.String("bootstrap", "", "path of the bootstrap")
	timeout := flag.Duration("timeout", 30*time.Second, "for the whole run")
	lines := flag.Bool("lines", false, "an event a line")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	if err := run(ctx, *rie, *bootstrap, *lines, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "invoke:", err)
		os.Exit(1)
	}
}

var errFailed = errors.New("the invocation failed")

func run(ctx context.Context, rie, bootstrap string, lines bool, in io.Reader, out io.Writer) error {
	event, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("read event: %w", err)
	}
	addrs, err := freeAddrs(2)
	if err != nil {
		return err
	}
	end, err := start(rie, bootstrap, addrs)
	if err != nil {
		return err
	}
	defer end()
	if lines {
		return each(ctx, addrs[0], event, out)
	}
	reply, err := post(ctx, addrs[0], event)
	if err != nil {
		return err
	}
	// A streamed reply is a prelude of JSON, eight zero bytes and the body.
	reply, body, streamed := bytes.Cut(reply, make([]byte, 8))
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, reply, "", "  "); err != nil {
		pretty.Reset()
		pretty.Write(reply)
	}
	if streamed {
		pretty.WriteByte('\n')
		pretty.Write(body)
	}
	pretty.WriteByte('\n')
	if _, err := out.Write(pretty.Bytes()); err != nil {
		return fmt.Errorf("print reply: %w", err)
	}
	var failure struct {
		ErrorType string `json:"errorType"`
	}
	if json.Unmarshal(reply, &failure) != nil || failure.ErrorType != "" {
		return errFailed
	}
	return nil
}

// each sends every line.
func each(ctx context.Context, addr string, events []byte, out io.Writer) error {
	for line := range bytes.Lines(events) {
		reply, err := post(ctx, addr, bytes.TrimSpace(line))
		if err != nil {
			return err
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, reply); err != nil {
			return fmt.Errorf("the reply is not JSON: %w: %.300q", err, reply)
		}
		compact.WriteByte('\n')
		if _, err := out.Write(compact.Bytes()); err != nil {
			return fmt.Errorf("print reply: %w", err)
		}
	}
	return nil
}

// freeAddrs finds loopback ports that nobody listens on. Another process may take one before the emulator does; then the
// emulator ends and the run fails, which is rare and harmless.
func freeAddrs(n int) ([]string, error) {
	var addrs []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a port: %w", err)
		}
		defer l.Close() // all stay open until all are found, so that they differ
		addrs = append(addrs, l.Addr().String())
	}
	return addrs, nil
}

// start runs the emulator, which listens on every interface unless told, in a process group of its own, so that ending the
// group ends the bootstrap too.
func start(rie, bootstrap string, addrs []string) (end func(), err error) {
	bootstrap, err = filepath.Abs(bootstrap)
	if err != nil {
		return nil, fmt.Errorf("find bootstrap: %w", err)
	}
	cmd := exec.Command(rie, "--log-level", "error", "--runtime-interface-emulator-address", addrs[0],
		"--runtime-api-address", addrs[1], bootstrap)
	cmd.Env = environment()
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", rie, err)
	}
	return func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		done := make(chan struct{})
		go func() { _ = cmd.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(3 * time.Second):
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // whatever is left of the group
	}, nil
}

// environment selects emulation. AWS_LAMBDA_MAX_CONCURRENCY would switch the emulator to managed instances, where it sets
// AWS_LAMBDA_INITIALIZATION_TYPE, and emulation is refused as on real Lambda.
func environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "AWS_LAMBDA_") || strings.HasPrefix(v, "BUZON_EMULATOR=")
	})
	return append(env, "BUZON_EMULATOR=1")
}

// post sends the event, again until the emulator listens.
func post(ctx context.Context, addr string, event []byte) ([]byte, error) {
	url := "http://" + addr + "/2015-03-31/functions/function/invocations"
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(event))
		if err != nil {
			return nil, fmt.Errorf("invoke: %w", err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			defer resp.Body.Close()
			return io.ReadAll(resp.Body)
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, fmt.Errorf("invoke: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the emulator did not start: %w", ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

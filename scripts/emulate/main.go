// Command emulate runs the three Lambda bootstraps under AWS's Runtime Interface Emulator and sends every event file to each of
// them: those of its own triggers must be answered as the table says, the others must fail with words, and the same process must
// serve them all.
//
//	go run ./scripts/emulate          as make rie, which builds the emulator and the bootstraps first
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/buzon-mail/buzon/scripts/program"
	"github.com/buzon-mail/buzon/shared/app/local"
)

func main() { os.Exit(program.Run("emulate", run)) }

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("emulate", flag.ContinueOnError)
	emulator := flags.String("rie", ".tools/aws-lambda-rie", "AWS's Runtime Interface Emulator")
	built := flags.String("built", "dist/native", "folder of the native bootstraps")
	timeout := flags.Duration("timeout", 2*time.Minute, "for the whole run")
	verbose := flags.Bool("v", false, "print each reply")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	invoke, remove, err := buildInvoke(ctx)
	if err != nil {
		return err
	}
	defer remove()
	names, events, err := eventFiles(ctx)
	if err != nil {
		return err
	}
	var bad error
	for _, function := range []string{"api", "worker", "inbound"} {
		replies, err := send(ctx, invoke, *emulator, filepath.Join(*built, function, "bootstrap"), events)
		if err != nil {
			return fmt.Errorf("%s: %w", function, err)
		}
		if len(replies) != len(names) {
			return fmt.Errorf("%s: %d replies to %d events", function, len(replies), len(names))
		}
		for i, name := range names {
			if *verbose {
				_, _ = fmt.Fprintf(out, "%s %s %.300s\n", function, name, replies[i])
			}
			if err := check(function, name, replies[i]); err != nil {
				bad = errors.Join(bad, fmt.Errorf("%s, %s: %w", function, name, err))
			}
		}
	}
	if bad == nil {
		_, _ = fmt.Fprintf(out, "emulate: 3 bootstraps, %d events each\n", len(names))
	}
	return bad
}

// buildInvoke builds the command that starts the emulator; it is of the emulator's own module.
func buildInvoke(ctx context.Context) (path string, remove func(), err error) {
	folder, err := os.MkdirTemp("", "buzon-emulate-")
	if err != nil {
		return "", nil, fmt.Errorf("make a temporary folder: %w", err)
	}
	path, remove = filepath.Join(folder, "invoke"), func() { _ = os.RemoveAll(folder) }
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "./invoke")
	build.Dir = "scripts/rie"
	if out, err := build.CombinedOutput(); err != nil {
		remove()
		return "", nil, fmt.Errorf("build: %w\n%s", err, out)
	}
	return path, remove, nil
}

// eventFiles are the names of events/ and the events themselves, with tokens, one a line.
func eventFiles(ctx context.Context) (names []string, lines []byte, err error) {
	files, err := filepath.Glob("events/*.json")
	if err != nil || len(files) == 0 {
		return nil, nil, fmt.Errorf("no events: %w", err)
	}
	slices.Sort(files)
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // of this repository
		if err != nil {
			return nil, nil, fmt.Errorf("event: %w", err)
		}
		event, err := local.FillEvent(ctx, text, time.Now)
		if err != nil {
			return nil, nil, fmt.Errorf("event %s: %w", file, err)
		}
		// A line feed in JSON text can only stand between its tokens.
		lines = append(append(lines, bytes.ReplaceAll(event, []byte("\n"), nil)...), '\n')
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".json"))
	}
	return names, lines, nil
}

// send runs one bootstrap and returns its replies.
func send(ctx context.Context, invoke, emulator, bootstrap string, events []byte) ([]string, error) {
	var out, complaints bytes.Buffer
	run := exec.CommandContext(ctx, invoke, "-lines", "-timeout", "1m", "-rie", emulator, "-bootstrap", bootstrap) //nolint:gosec // built here
	run.Cancel = func() error { return run.Process.Signal(syscall.SIGTERM) }                                       // it ends its emulator
	run.WaitDelay = 5 * time.Second
	run.Stdin, run.Stdout, run.Stderr = bytes.NewReader(events), &out, &complaints
	if err := run.Run(); err != nil {
		text := complaints.String()
		return nil, fmt.Errorf("%w\n%s", err, text[max(0, len(text)-2000):])
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n"), nil
}

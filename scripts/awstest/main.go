// Command awstest runs the contract suites of the engines on AWS, the way of a mail and the scenarios against moto, a stand-in written
// by others, which knows more of AWS than what we believe of it. It installs moto into a folder, starts it on a free port of the loopback interface, runs the
// tests whose names end in OnStandIn, and stops it.
//
//	go run ./scripts/awstest          all of them, as make awstest
//	go run ./scripts/awstest -v       with the name of each test
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/scripts/program"
)

func main() { os.Exit(program.Run("awstest", run)) }

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("awstest", flag.ContinueOnError)
	tools := flags.String("tools", ".tools/awstest", "folder for what is installed")
	verbose := flags.Bool("v", false, "print the name of each test")
	only := flags.String("run", "OnStandIn$", "the tests to run")
	if err := flags.Parse(args); err != nil {
		return err
	}
	const source = "scripts/awstest"
	if err := install(ctx, *tools, filepath.Join(source, "requirements.txt")); err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "buzon-awstest-")
	if err != nil {
		return fmt.Errorf("make a temporary folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	clock := filepath.Join(folder, "clock")
	url, stop, err := start(ctx, filepath.Join(*tools, "bin", "python"), filepath.Join(source, "serve.py"), clock)
	if err != nil {
		return err
	}
	defer stop()
	command := []string{"test", "-count=1", "-run", *only}
	if *verbose {
		command = append(command, "-v")
	}
	test := exec.CommandContext(ctx, "go", append(command, "./shared/store/dynamo", "./shared/blob/s3", "./shared/queue/sqs", "./shared/app/deployed", "./internal/scenario")...) //nolint:gosec // our own arguments
	test.Env = append(os.Environ(), "BUZON_TEST_AWS_ENDPOINT="+url, "BUZON_TEST_AWS_CLOCK="+clock)
	test.Stdout, test.Stderr = out, os.Stderr
	if err := test.Run(); err != nil {
		return fmt.Errorf("go test: %w", err)
	}
	return nil
}

// install makes a virtual environment with what the list pins, unless it is there.
func install(ctx context.Context, venv, list string) error {
	want, err := os.ReadFile(list) //nolint:gosec // of this repository
	if err != nil {
		return fmt.Errorf("install: %w", err)
	}
	stamp := filepath.Join(venv, ".installed")
	if have, err := os.ReadFile(stamp); err == nil && string(have) == string(want) { //nolint:gosec // as above
		return nil
	}
	if err := command(ctx, "python3", "-m", "venv", "--clear", venv); err != nil {
		return err
	}
	if err := command(ctx, filepath.Join(venv, "bin", "pip"), "install", "--quiet", "--no-deps", "--only-binary", ":all:",
		"--disable-pip-version-check", "-r", list); err != nil {
		return err
	}
	if err := os.WriteFile(stamp, want, 0o600); err != nil {
		return fmt.Errorf("install: %w", err)
	}
	return nil
}

func command(ctx context.Context, name string, args ...string) error {
	if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil { //nolint:gosec // names of this file
		return fmt.Errorf("install: %s: %w\n%s", name, err, out)
	}
	return nil
}

// start runs the stand-in and waits for the line that says where it listens. stop ends that very process.
func start(ctx context.Context, python, program, clock string) (url string, stop func(), err error) {
	server := exec.CommandContext(ctx, python, program, clock) //nolint:gosec // what install laid down
	var stderr strings.Builder
	server.Stderr = &stderr
	pipe, err := server.StdoutPipe()
	if err != nil {
		return "", nil, fmt.Errorf("start moto: %w", err)
	}
	if err := server.Start(); err != nil {
		return "", nil, fmt.Errorf("start moto: %w", err)
	}
	stop = func() {
		_ = server.Process.Kill() // it may have ended
		_ = server.Wait()
	}
	const patience = time.Minute
	timer := time.AfterFunc(patience, func() { _ = server.Process.Kill() })
	defer timer.Stop()
	line, err := bufio.NewReader(pipe).ReadString('\n')
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("start moto: it did not say where it listens\n%s", stderr.String())
	}
	return strings.TrimSpace(line), stop, nil
}

// Command agent lets an agent without a model work a day against the service: the official npm client with the script
// ../clients/js/agent.mjs, which asserts every step. The service is a process of its own, and so is the webhook receiver
// (../clients/js/receiver.mjs), which verifies with the Standard Webhooks library. This program plays the rest of the world: who
// sends the mail, who kills the service, and the person at a browser.
//
//	go run ./scripts/agent      as make agent does
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/buzon-mail/buzon/scripts/npm"
	"github.com/buzon-mail/buzon/scripts/service"
	"github.com/buzon-mail/buzon/shared/testkit/robot"
)

// day is how long one may take; a healthy one needs a quarter of it.
const day = time.Minute

// asBuzon is the argument with which this program is the service itself.
const asBuzon = "buzon"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if len(os.Args) > 1 && os.Args[1] == asBuzon {
		code := service.Buzon(ctx, os.Args[2:])
		stop()
		os.Exit(code) //nolint:gocritic // stop was called
	}
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("agent", flag.ContinueOnError)
	tools := flags.String("tools", ".tools", "folder for what is installed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	folder, err := filepath.Abs(*tools)
	if err != nil {
		return err
	}
	conformance, js := filepath.Join(folder, "conformance"), filepath.Join(folder, "clients", "js")
	if err := npm.Install(ctx, "scripts/conformance", conformance); err != nil {
		return err
	}
	if err := npm.Install(ctx, "scripts/clients/js", js); err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	w := &world{node: npm.Node(conformance), js: js, out: out}
	return w.live(ctx, program)
}

// world is everything around the agent.
type world struct {
	node, js string
	out      io.Writer
	service  *service.Process
	person   *robot.Robot
	smtp     string
}

// live starts service and receiver, lets the agent work, and ends them.
func (w *world) live(ctx context.Context, program string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, day)
	defer cancel()
	if w.service, err = service.Spawn(ctx, program, asBuzon); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.service.Close()) }()
	var demo struct {
		URL   string `json:"mcp_url"`
		SMTP  string `json:"smtp_addr"`
		Users []struct {
			Email string `json:"email"`
			Token string `json:"access_token"`
		} `json:"users"`
	}
	if err := json.Unmarshal(w.service.Demo, &demo); err != nil || len(demo.Users) == 0 {
		return fmt.Errorf("demo.json: %w", errors.Join(err, errors.New("nobody is in it")))
	}
	w.smtp = demo.SMTP
	email := demo.Users[0].Email
	w.person, err = robot.New(func(ctx context.Context) (string, error) { return w.service.Command(ctx, "user", "link", email) })
	if err != nil {
		return err
	}
	receiver, err := w.start(ctx, "receiver.mjs", "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, receiver.stop()) }()
	var ports struct{ Hooks, Control int }
	if err := receiver.read(&ports); err != nil {
		return fmt.Errorf("the receiver: %w", err)
	}
	plan, err := json.Marshal(map[string]string{
		"url": demo.URL, "token": demo.Users[0].Token, "hooks": fmt.Sprintf("http://localhost:%d/hook", ports.Hooks),
		"control": fmt.Sprintf("http://localhost:%d/", ports.Control),
	})
	if err != nil {
		return err
	}
	agent, err := w.start(ctx, "agent.mjs", "AGENT_WORLD="+string(plan))
	if err != nil {
		return err
	}
	return errors.Join(w.accompany(ctx, agent), agent.stop())
}

// accompany does what the agent asks for, and prints its steps, until it has finished.
func (w *world) accompany(ctx context.Context, agent *script) error {
	begin := time.Now()
	steps := 0
	for {
		var line struct {
			wish
			Step     string
			Finished bool
		}
		if err := agent.read(&line); err != nil {
			return fmt.Errorf("after %d steps: %w", steps, err)
		}
		switch {
		case line.Finished:
			fmt.Fprintf(w.out, "%d steps in %s: the day is done\n", steps, time.Since(begin).Round(10*time.Millisecond))
			return nil
		case line.Step != "":
			steps++
			fmt.Fprintf(w.out, "ok    %5.1f s  %s\n", time.Since(begin).Seconds(), line.Step)
		default:
			reply, err := w.grant(ctx, line.wish)
			if err != nil {
				reply = map[string]any{"error": err.Error()}
			}
			if err := json.NewEncoder(agent.in).Encode(reply); err != nil {
				return fmt.Errorf("answer %s: %w", line.Want, err)
			}
		}
	}
}

// script is a program of clients/js that runs. It ends when its input does.
type script struct {
	in  io.WriteCloser
	out *bufio.Scanner
	cmd *exec.Cmd
}

func (w *world) start(ctx context.Context, name, variable string) (*script, error) {
	s := &script{cmd: exec.CommandContext(ctx, w.node, filepath.Join(w.js, name))} //nolint:gosec // what npm.Install laid down
	s.cmd.Env, s.cmd.Stderr = append(os.Environ(), variable), os.Stderr
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.out = bufio.NewScanner(stdout)
	s.out.Buffer(nil, 1<<20)
	return s, s.cmd.Start()
}

// read reads one line.
func (s *script) read(into any) error {
	if !s.out.Scan() {
		return errors.Join(errors.New("it ended in the middle"), s.out.Err())
	}
	return json.Unmarshal(s.out.Bytes(), into)
}

func (s *script) stop() error {
	_ = s.in.Close()
	if err := s.cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(s.cmd.Path), err)
	}
	return nil
}

// Command clients lets the official clients (TypeScript of both lines, Go, Python, all pinned) have a conversation with a
// server, each in every mode that it has, and asserts the revision that each really negotiated: a client that quietly fell
// back to initialize would look just as well.
//
//	go run ./scripts/clients                 as make clients: the conformance fixtures over net/http and through each front door,
//	                                         then the service itself, local and emulated behind a function URL; then those
//	                                         that can sign in do so by themselves (README.md)
//	MCP_PLAN='{"url":...,"tool":{...}}' go run ./scripts/clients -plan   any server; Plan says what can stand in it
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/scripts/conformance/fixture"
	"github.com/buzon-mail/buzon/scripts/npm"
	"github.com/buzon-mail/buzon/scripts/program"
)

func main() { os.Exit(program.Run("clients", run)) }

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("clients", flag.ContinueOnError)
	plan := flags.Bool("plan", false, "talk to the server of MCP_PLAN instead of the fixtures")
	doors := flags.String("doors", strings.Join(fixture.Doors(), ","), "doors of the fixtures")
	tools := flags.String("tools", ".tools/clients", "folder for what is installed")
	only := flags.String("only", "", "only clients whose name contains this")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var targets []target
	if *plan {
		p, err := readPlan([]byte(os.Getenv("MCP_PLAN")))
		if err != nil {
			return err
		}
		targets = []target{{p.URL, same(p)}}
	} else {
		started, stop, err := start(ctx, strings.Split(*doors, ","))
		defer stop()
		if err != nil {
			return err
		}
		targets = started
	}
	if err := install(ctx, *tools); err != nil {
		return err
	}
	talks := clients(*tools)
	good, bad := converse(ctx, talks, *only, targets, out)
	if !*plan {
		signedIn, refused := runFlows(ctx, flows(*tools), *only, out)
		good, bad = good+signedIn, bad+refused
	}
	return verdict(good, bad, out)
}

// target is a server and what the nth client says to it.
type target struct {
	name string
	plan func(ctx context.Context, n int) (Plan, error)
}

// same is a plan that every client follows.
func same(p Plan) func(context.Context, int) (Plan, error) {
	return func(context.Context, int) (Plan, error) { return p, nil }
}

// start starts the fixtures behind each door and the service itself. stop is never nil.
func start(ctx context.Context, doors []string) (targets []target, stop func(), err error) {
	var closers []func() error
	stop = func() {
		for _, closer := range closers {
			if err := closer(); err != nil {
				fmt.Fprintln(os.Stderr, "clients: stop:", err)
			}
		}
	}
	for _, door := range doors {
		s, err := fixture.Listen(door, "127.0.0.1:0")
		if err != nil {
			return nil, stop, err
		}
		closers = append(closers, s.Close)
		targets = append(targets, target{door, same(fixturePlan(s.URL))})
	}
	for _, begin := range []func(context.Context) (product, error){startLocal, startFunction} {
		p, err := begin(ctx)
		if err != nil {
			return nil, stop, err
		}
		closers = append(closers, p.close)
		targets = append(targets, target{p.name, p.plan})
	}
	return targets, stop, nil
}

var errFailed = errors.New("a client did not finish its conversation")

// verdict sums up. Nothing at all is a failure too.
func verdict(good, bad int, out io.Writer) error {
	fmt.Fprintf(out, "%d passed, %d failed\n", good, bad)
	if bad > 0 || good == 0 {
		return errFailed
	}
	return nil
}

// perClient is how long one conversation may take; a healthy one needs a few seconds.
const perClient = time.Minute

// converse lets each client talk to each target and prints a line for each.
func converse(ctx context.Context, all []client, only string, targets []target, out io.Writer) (good, bad int) {
	for _, t := range targets {
		for n, c := range all {
			if !strings.Contains(c.name, only) {
				continue
			}
			said, err := c.visit(ctx, t, n)
			if err != nil {
				bad++
				fmt.Fprintf(out, "FAIL  %s at %s: %v\n", c.name, t.name, err)
				continue
			}
			good++
			fmt.Fprintf(out, "ok    %s at %s: %s era, %s: %s\n", c.name, t.name, said.Era, said.Version, strings.Join(said.Steps, ", "))
		}
	}
	return good, bad
}

// visit is the conversation, and the attempt at one without a token.
func (c client) visit(ctx context.Context, t target, n int) (said, error) {
	p, err := t.plan(ctx, n)
	if err != nil {
		return said{}, err
	}
	s, err := c.talk(ctx, p)
	if err != nil {
		return s, err
	}
	return s, c.refused(ctx, p)
}

// said is what a client reports.
type said struct {
	Era     string
	Version string
	Steps   []string
}

// talk runs one client. Its exit code is its own judgement; the revision and the steps are judged here once more.
func (c client) talk(ctx context.Context, p Plan) (said, error) {
	p.Version = c.version
	plan, err := json.Marshal(p)
	if err != nil {
		return said{}, fmt.Errorf("plan: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, perClient)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.program[0], c.program[1:]...) //nolint:gosec // what install laid down
	cmd.Env = append(os.Environ(), "MCP_PLAN="+string(plan), "MCP_MODE="+c.mode)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	if err != nil {
		return said{}, fmt.Errorf("%w\n%s%s", err, stdout, tail(stderr.String()))
	}
	var s said
	if err := json.Unmarshal(stdout, &s); err != nil {
		return s, fmt.Errorf("report %q: %w", stdout, err)
	}
	if want := p.steps(c.version == modern); s.Version != c.version || len(s.Steps) != want {
		return s, fmt.Errorf("revision %s and %d steps, want %s and %d", s.Version, len(s.Steps), c.version, want)
	}
	return s, nil
}

// refused lets the client try without its token: a server that serves it all the same guards nothing.
func (c client) refused(ctx context.Context, p Plan) error {
	if p.Token == "" {
		return nil
	}
	p.Token = ""
	if _, err := c.talk(ctx, p); err == nil {
		return errors.New("without a token it was served all the same")
	}
	return nil
}

// steps is how many steps a client must have taken.
func (p Plan) steps(inModern bool) int {
	n := 2 + len(p.Calls) // list, call
	for _, there := range []bool{
		p.Resource != "", p.Prompt != nil, p.Complete != nil,
		inModern && p.Confirm != nil, inModern && p.Decline != nil, !inModern && p.Legacy != nil,
	} {
		if there {
			n++
		}
	}
	return n
}

func tail(s string) string {
	const most = 4000
	return s[max(0, len(s)-most):]
}

func folder(tools string, parts ...string) string {
	return filepath.Join(append([]string{tools}, parts...)...)
}

// node is the one of the conformance suite: one pinned Node for both.
func node(tools string) string { return npm.Node(filepath.Join(filepath.Dir(tools), "conformance")) }

// install brings every client into a folder: the npm packages by their lock file, the Python packages by their list, the Go
// client from its own module. Each is left alone when it is there.
func install(ctx context.Context, tools string) error {
	if err := npm.Install(ctx, "scripts/conformance", filepath.Join(filepath.Dir(tools), "conformance")); err != nil {
		return err
	}
	if err := npm.Install(ctx, "scripts/clients/js", folder(tools, "js")); err != nil {
		return err
	}
	absolute, err := filepath.Abs(folder(tools, "go-client"))
	if err != nil {
		return fmt.Errorf("install: %w", err)
	}
	if err := command(ctx, "scripts/clients/go", "go", "build", "-o", absolute, "."); err != nil {
		return err
	}
	return installPython(ctx, folder(tools, "venv"), "scripts/clients/python/requirements.txt")
}

func installPython(ctx context.Context, venv, list string) error {
	want, err := os.ReadFile(list) //nolint:gosec // of this repository
	if err != nil {
		return fmt.Errorf("install: %w", err)
	}
	stamp := filepath.Join(venv, ".installed")
	if have, err := os.ReadFile(stamp); err == nil && string(have) == string(want) { //nolint:gosec // as above
		return nil
	}
	if err := command(ctx, ".", "python3", "-m", "venv", "--clear", venv); err != nil {
		return err
	}
	if err := command(ctx, ".", filepath.Join(venv, "bin", "pip"), "install", "--quiet", "--no-deps", "--only-binary", ":all:",
		"--disable-pip-version-check", "-r", list); err != nil {
		return err
	}
	if err := os.WriteFile(stamp, want, 0o600); err != nil {
		return fmt.Errorf("install: %w", err)
	}
	return nil
}

func command(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // names of this file
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("install: %s: %w\n%s", name, err, tail(string(out)))
	}
	return nil
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/buzon-mail/buzon/scripts/service"
	"github.com/buzon-mail/buzon/shared/app/local"
	"github.com/buzon-mail/buzon/shared/testkit/robot"
)

// localProcess is where the authorization server is tested: the service itself.
const localProcess = "buzon, local"

// The suite's authorization command plays a client at an authorization server. It wants a registered client, prints the address
// that a person has to open and listens for the answer; a robot is that person, at the service itself with its own pages.

// authorizationRounds are the revisions that the command can be asked for. It takes no file of expected failures: whatever is
// not listed here has to pass, and whatever is listed must not.
func authorizationRounds() []authorizationRound {
	return []authorizationRound{
		{version: "2026-07-28", checks: 3}, {version: "2025-11-25", checks: 3}, {version: "2025-06-18", checks: 2},
		{version: "2025-03-26", checks: 2},
	}
}

type authorizationRound struct {
	version string
	checks  int      // that it must have made: a suite that skips proves nothing
	allowed []string // "scenario:check" that may fail
}

func (r authorizationRound) name() string { return "authorization " + r.version }

const authorizationScenarios = 2 // metadata and the code grant

// testAuthorization runs every round at the local process and takes them up into the results.
func testAuthorization(ctx context.Context, suite installed) ([]result, error) {
	s, err := service.Start(ctx, local.Options{})
	if err != nil {
		return nil, err
	}
	var all []result
	for _, r := range authorizationRounds() {
		all = append(all, suite.authorize(ctx, r, s))
	}
	return all, s.Close()
}

// authorize is one run.
func (s installed) authorize(ctx context.Context, r authorizationRound, at *service.Service) result {
	res := result{round: r.name(), door: localProcess}
	output, dir, err := s.authorizing(ctx, r, at)
	res.output = output
	if err != nil {
		res.notes = append(res.notes, err.Error())
	}
	checks, ran, readErr := readChecks(dir)
	if readErr != nil {
		res.notes = append(res.notes, readErr.Error())
	}
	res.count(checks, ran)
	wrong := unexpected(checks, r.allowed)
	if ran != authorizationScenarios {
		wrong = append(wrong, fmt.Sprintf("%d scenarios ran, want %d", ran, authorizationScenarios))
	}
	if made := res.passed + res.failed + res.warned; made != r.checks {
		wrong = append(wrong, fmt.Sprintf("%d checks were made, want %d", made, r.checks))
	}
	res.notes = append(res.notes, wrong...)
	res.ok = err == nil && readErr == nil && len(wrong) == 0
	return res
}

// unexpected is what the list of allowed failures does not say: a check that did not pass, was skipped even, or an entry that
// did pass or does not exist.
func unexpected(checks []check, allowed []string) []string {
	var wrong []string
	open := slices.Clone(allowed)
	for _, c := range checks {
		name := c.scenario + ":" + c.ID
		fine := c.Status == "SUCCESS" || c.Status == "INFO"
		if i := slices.Index(open, name); i >= 0 && !fine {
			open = slices.Delete(open, i, i+1)
		} else if !fine {
			wrong = append(wrong, fmt.Sprintf("%s is %s and not in the list: %s", name, c.Status, firstLine(c.ErrorMessage)))
		}
	}
	for _, name := range open {
		wrong = append(wrong, name+" is in the list of failures and did not fail")
	}
	return wrong
}

// authorizing starts the suite and lets the robot open what it prints. dir is where its results are.
func (s installed) authorizing(ctx context.Context, r authorizationRound, at *service.Service) (output, dir string, err error) {
	if dir, err = filepath.Abs(filepath.Join(s.results, r.name())); err != nil {
		return "", dir, fmt.Errorf("results: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, perRun)
	defer cancel()
	client, err := register(ctx, at.Origin()+"/register")
	if err != nil {
		return "", dir, err
	}
	port, err := freePort()
	if err != nil {
		return "", dir, err
	}
	cmd := exec.CommandContext(ctx, s.node, s.program, "authorization", "--url", at.Origin(), "--client-id", client, //nolint:gosec // the suite that install laid down
		"-p", strconv.Itoa(port), "--resource", at.URL, "--spec-version", r.version, "-o", dir)
	var said bytes.Buffer
	reader, writer := io.Pipe()
	cmd.Stdout, cmd.Stderr = writer, writer
	if err := cmd.Start(); err != nil {
		return "", dir, fmt.Errorf("start the suite: %w", err)
	}
	robot := make(chan error, 1)
	go func() {
		err := answer(ctx, io.TeeReader(reader, &said), at)
		if err != nil {
			cancel() // the suite would wait for minutes
		}
		_, _ = io.Copy(&said, reader)
		robot <- err
	}()
	err = cmd.Wait()
	_ = writer.Close() // ends the robot's reading
	err = errors.Join(<-robot, err)
	if err != nil {
		err = fmt.Errorf("%w; the suite says: %s", err, verdict(said.String(), err))
	}
	return said.String(), dir, err
}

// answer reads until the suite prints the address to open, and is the person who opens it and gives access.
func answer(ctx context.Context, output io.Reader, at *service.Service) error {
	address := regexp.MustCompile(regexp.QuoteMeta(at.Origin()) + `/authorize\?\S+`)
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		found := address.FindString(lines.Text())
		if found == "" {
			continue
		}
		person, err := robot.New(func(ctx context.Context) (string, error) {
			return at.Command(ctx, "user", "link", "owner@acme.test")
		})
		if err != nil {
			return err
		}
		callback, err := person.Authorize(ctx, found, robot.Answer{})
		if err != nil {
			return err
		}
		return deliver(ctx, person, callback)
	}
	return errors.New("the suite printed no address to open")
}

// deliver brings the answer to the client, which prints the address before it listens.
func deliver(ctx context.Context, person *robot.Robot, callback *url.URL) error {
	const attempts = 100
	for n := 1; ; n++ {
		err := person.Deliver(ctx, callback)
		if n == attempts || !errors.Is(err, syscall.ECONNREFUSED) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// register makes a client id, as any client does for itself. The port of a loopback redirect is free.
func register(ctx context.Context, endpoint string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint,
		strings.NewReader(`{"client_name":"Conformance","redirect_uris":["http://127.0.0.1/callback"]}`))
	if err != nil {
		return "", fmt.Errorf("register: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", fmt.Errorf("register: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	var made struct {
		ID string `json:"client_id"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&made); err != nil || made.ID == "" {
		return "", fmt.Errorf("register: %s, no client id: %w", res.Status, err)
	}
	return made.ID, nil
}

// freePort is one that nobody listened on a moment ago; the suite takes a number only.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port //nolint:errcheck,forcetypeassert // tcp listens on nothing else
	return port, l.Close()
}

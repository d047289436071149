package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/testkit/robot"
)

// A flow is the life of one client that signs in by itself. It returns the steps that it took, in words.
type flow struct {
	name string
	run  func(ctx context.Context, l *lab) ([]string, error)
}

// perFlow is how long one may take; a healthy one needs a few seconds.
const perFlow = 3 * time.Minute

// What the flows use of the catalogue: a tool that reading scopes show, and one that they hide.
const (
	readTool   = "emails_list"
	writeTool  = "inboxes_upsert"
	writeScope = "inboxes:write"
)

// flows is every client in every way of introducing itself; in the older era once each, for its sign-in is the same code.
func flows(tools string) []flow {
	var all []flow
	js := func(parts ...string) []string {
		return []string{node(tools), folder(tools, append([]string{"js"}, parts...)...)}
	}
	v1, v2, remote := js("oauth-v1.mjs"), js("oauth-v2.mjs"), js("node_modules", "mcp-remote", "dist", "proxy.js")
	inspect := js("node_modules", "@modelcontextprotocol", "inspector", "clients", "cli", "build", "index.js")
	add := func(name string, run func(context.Context, *lab) ([]string, error)) {
		all = append(all, flow{"oauth: " + name, run})
	}
	for _, way := range []string{registered, published} {
		add("typescript client 2.4, auto, "+way, script{v2, "auto", way, ""}.run)
		add("typescript sdk 1.32, "+way, script{v1, "", way, "403 after trying upscoping"}.run)
		add("mcp-remote 0.15, auto, "+way, mcpRemote{remote, "auto", way}.run)
		add("inspector 2.12, modern, "+way, inspector{inspect, "modern", way}.run)
	}
	add("typescript client 2.4, legacy, "+registered, script{v2, "legacy", registered, ""}.run)
	add("mcp-remote 0.15, legacy, "+registered, mcpRemote{remote, "legacy", registered}.run)
	add("inspector 2.12, legacy, "+registered, inspector{inspect, "legacy", registered}.run)
	add("typescript client 2.4, client credentials", script{v2, "auto", "", ""}.credentials)
	add("typescript sdk 1.32, client credentials", script{v1, "", "", ""}.credentials)
	add("mcp-remote 0.15, client credentials", mcpRemote{remote, "auto", ""}.credentials)
	return all
}

// The two ways in which a client becomes known.
const (
	registered = "dynamic registration"
	published  = "client id document"
)

// runFlows lets each client live, and prints a line for each.
func runFlows(ctx context.Context, all []flow, only string, out io.Writer) (good, bad int) {
	l, err := startLab(ctx)
	if err != nil {
		fmt.Fprintf(out, "FAIL  %v\n", err)
		return 0, 1
	}
	for _, f := range all {
		if !strings.Contains(f.name, only) || ctx.Err() != nil { // interrupted: the first one that was says so
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, perFlow)
		steps, err := f.run(ctx, l)
		cancel()
		if err != nil {
			bad++
			fmt.Fprintf(out, "FAIL  %s: after %s: %v\n", f.name, strings.Join(steps, ", "), err)
			continue
		}
		good++
		fmt.Fprintf(out, "ok    %s: %s\n", f.name, strings.Join(steps, ", "))
	}
	if err := l.close(); err != nil {
		bad++
		fmt.Fprintf(out, "FAIL  %v\n", err)
	}
	return good, bad
}

// script is a program of js/ that lives as life.mjs says.
type script struct {
	program      []string
	mode         string
	registration string
	// noStepUp is what a client says that answers 403 insufficient_scope by refreshing, which can't widen a scope, and gives up.
	// It steps up only when its application forgets the tokens. Empty: it steps up by itself.
	noStepUp string
}

// scripted is one that runs.
type scripted struct {
	in     io.WriteCloser
	out    *bufio.Scanner
	cmd    *exec.Cmd
	stderr *strings.Builder
}

// said by a script after each command.
type report struct {
	Result  json.RawMessage
	Error   string
	Open    string // the address that it wants opened
	Access  string
	Refresh string
	Client  string
}

func (s script) start(ctx context.Context, config map[string]string) (*scripted, error) {
	text, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	r := &scripted{cmd: exec.CommandContext(ctx, s.program[0], s.program[1:]...), stderr: &strings.Builder{}} //nolint:gosec // what install laid down
	r.cmd.Env = append(os.Environ(), "MCP_OAUTH="+string(text))
	r.cmd.Stderr = r.stderr
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r.out = bufio.NewScanner(stdout)
	r.out.Buffer(nil, 1<<22)
	return r, r.cmd.Start()
}

// stop ends the script, which must go by itself when its input ends.
func (r *scripted) stop() error {
	_ = r.in.Close()
	if err := r.cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, tail(r.stderr.String()))
	}
	return nil
}

func (r *scripted) do(command string, argument any) (report, error) {
	line, err := json.Marshal(map[string]any{"command": command, "argument": argument})
	if err != nil {
		return report{}, err
	}
	if _, err := r.in.Write(append(line, '\n')); err != nil {
		return report{}, fmt.Errorf("%s: %w: %s", command, err, tail(r.stderr.String()))
	}
	if !r.out.Scan() {
		return report{}, fmt.Errorf("%s: no reply: %w: %s", command, errors.Join(r.out.Err()), tail(r.stderr.String()))
	}
	var said report
	if err := json.Unmarshal(r.out.Bytes(), &said); err != nil {
		return said, fmt.Errorf("%s: reply %q: %w", command, r.out.Text(), err)
	}
	return said, nil
}

// must is do for a command that has to succeed without a person.
func (r *scripted) must(command string, argument any) (report, error) {
	said, err := r.do(command, argument)
	if err == nil && (said.Error != "" || said.Open != "") {
		err = fmt.Errorf("%s: error %q, opens %q", command, said.Error, said.Open)
	}
	return said, err
}

// opens is do for a command that can't succeed without a person: the client wants a browser.
func (r *scripted) opens(command string, argument any) (report, error) {
	said, err := r.do(command, argument)
	if err == nil && (said.Error == "" || said.Open == "") {
		err = fmt.Errorf("%s: want it to ask for a person; error %q, opens %q, result %.100s", command, said.Error, said.Open, said.Result)
	}
	return said, err
}

// approve brings the person's answer to the client.
func (r *scripted) approve(ctx context.Context, b *robot.Robot, open string, a robot.Answer) error {
	back, err := b.Authorize(ctx, open, a)
	if err != nil {
		return err
	}
	_, err = r.must("finish", back.String())
	return err
}

// lists says whether the client sees what reading scopes show, and whether it sees more.
func (r *scripted) lists(more bool) (report, error) {
	said, err := r.must("list", nil)
	if err != nil {
		return said, err
	}
	var names []string
	if err := json.Unmarshal(said.Result, &names); err != nil {
		return said, err
	}
	if !slices.Contains(names, readTool) || slices.Contains(names, writeTool) != more {
		return said, fmt.Errorf("list: %v; want %s in it, and %s: %t", names, readTool, writeTool, more)
	}
	return said, nil
}

// life is a flow under way.
type life struct {
	*scripted
	lab     *lab
	browser *robot.Robot
	script  script
	steps   []string
}

func (s script) run(ctx context.Context, l *lab) (steps []string, err error) {
	const callback = "http://127.0.0.1:53123/callback" // nobody listens: the robot brings the answer
	config := map[string]string{"url": l.url, "callback": callback, "name": "buzon-oauth", "mode": s.mode}
	if s.registration == published {
		config["cimd"] = l.document("script", callback)
	}
	r, err := s.start(ctx, config)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	b, err := l.browser()
	if err != nil {
		return nil, err
	}
	f := &life{scripted: r, lab: l, browser: b, script: s}
	for _, step := range []struct {
		name string
		take func(context.Context) error
	}{
		{"deny", f.deny}, {"approve reading", f.approveReading}, {"step up", f.stepUp}, {"refresh", f.refresh}, {"revoke", f.revoke},
	} {
		if err := step.take(ctx); err != nil {
			return f.steps, fmt.Errorf("%s: %w", step.name, err)
		}
		f.steps = append(f.steps, step.name)
	}
	return f.steps, nil
}

func (f *life) deny(ctx context.Context) error {
	said, err := f.opens("connect", nil)
	if err != nil {
		return err
	}
	back, err := f.browser.Authorize(ctx, said.Open, robot.Answer{Deny: true})
	if err != nil {
		return err
	}
	said, err = f.do("finish", back.String())
	if err == nil && !strings.Contains(said.Error, "access_denied") {
		err = fmt.Errorf("the client says %q of access_denied", said.Error)
	}
	return err
}

func (f *life) approveReading(ctx context.Context) error {
	said, err := f.opens("connect", nil)
	if err != nil {
		return err
	}
	if isDocument := said.Client == f.lab.document("script", "http://127.0.0.1:53123/callback"); isDocument != (f.script.registration == published) {
		return fmt.Errorf("the client calls itself %s", said.Client)
	}
	if err := f.approve(ctx, f.browser, said.Open, robot.Answer{ReadOnly: true}); err != nil {
		return err
	}
	if _, err := f.must("connect", nil); err != nil {
		return err
	}
	_, err = f.lists(false)
	return err
}

// stepUp calls a tool that is hidden for want of scope.
func (f *life) stepUp(ctx context.Context) error {
	call := map[string]any{"name": writeTool, "arguments": map[string]any{"slug": "stepped-up"}}
	said, err := f.refusedCall(call)
	if err != nil {
		return err
	}
	if !strings.Contains(said.Open, strings.ReplaceAll(writeScope, ":", "%3A")) {
		return fmt.Errorf("the client does not ask for %s: %s", writeScope, said.Open)
	}
	if err := f.approve(ctx, f.browser, said.Open, robot.Answer{}); err != nil {
		return err
	}
	if f.script.noStepUp != "" {
		if _, err = f.must("connect", nil); err != nil {
			return err
		}
	}
	if said, err = f.must("call", call); err != nil {
		return err
	}
	if !strings.Contains(string(said.Result), "stepped-up") {
		return fmt.Errorf("after stepping up: %s", said.Result)
	}
	_, err = f.lists(true)
	return err
}

// refusedCall is a call that a client can't make with what it has, and what it wants opened for it.
func (f *life) refusedCall(call any) (report, error) {
	if f.script.noStepUp == "" {
		return f.opens("call", call)
	}
	said, err := f.do("call", call)
	if err != nil || !strings.Contains(said.Error, f.script.noStepUp) || said.Open != "" {
		return said, fmt.Errorf("the client does not give up as it used to: error %q, opens %q: %v", said.Error, said.Open, err)
	}
	if _, err := f.must("forget", nil); err != nil {
		return said, err
	}
	return f.opens("connect", nil)
}

// refresh lets the access token expire: the client gets another by itself, and the refresh token rotates.
func (f *life) refresh(context.Context) error {
	before, err := f.must("list", nil)
	if err != nil {
		return err
	}
	f.lab.pass(accessLife)
	after, err := f.lists(true)
	if err == nil && (after.Access == before.Access || after.Refresh == before.Refresh || after.Refresh == "") {
		err = errors.New("it was served with the old tokens")
	}
	return err
}

// revoke: once the person has disconnected the client it has to ask for them again, and gets in again when they approve.
func (f *life) revoke(ctx context.Context) error {
	if err := f.lab.disconnect(ctx, f.browser, 0); err != nil {
		return err
	}
	f.lab.pass(seen)
	said, err := f.opens("list", nil)
	if err != nil {
		return err
	}
	if err := f.approve(ctx, f.browser, said.Open, robot.Answer{}); err != nil {
		return err
	}
	_, err = f.lists(true)
	return err
}

// credentials is the life of an agent without a person.
func (s script) credentials(ctx context.Context, l *lab) (steps []string, err error) {
	id, secret, err := l.account(ctx)
	if err != nil {
		return nil, err
	}
	r, err := s.start(ctx, map[string]string{"url": l.url, "name": "buzon-agent", "mode": s.mode, "id": id, "secret": secret, "issuer": l.origin})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	if _, err := r.must("connect", nil); err != nil {
		return nil, err
	}
	before, err := r.lists(false)
	if err != nil {
		return nil, err
	}
	l.pass(accessLife)
	after, err := r.lists(false)
	if err != nil || after.Access == before.Access {
		return []string{"token"}, fmt.Errorf("after the token expired: served with the same one (%t): %v", after.Access == before.Access, err)
	}
	if _, err := l.buzon(ctx, "service", "revoke", id); err != nil {
		return nil, err
	}
	l.pass(seen)
	said, err := r.do("list", nil)
	if err == nil && !strings.Contains(said.Error, "invalid_client") && !strings.Contains(said.Error, "InvalidClientError") {
		err = fmt.Errorf("a revoked account: %s %.100s", said.Error, said.Result)
	}
	return []string{"token", "again when it expired", "refused when revoked"}, err
}

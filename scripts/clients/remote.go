package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/buzon-mail/buzon/shared/testkit/robot"
)

// mcpRemote is the bridge that lets clients which know only stdio reach a server that wants a sign-in. It opens a browser, and
// listens on loopback for the answer.
type mcpRemote struct {
	program      []string
	mode         string // --protocol
	registration string
}

// bridge is one that runs.
type bridge struct {
	in     io.WriteCloser
	lines  chan []byte
	ended  chan struct{}
	cmd    *exec.Cmd
	stderr *lockedText
	id     int
}

type lockedText struct {
	mu sync.Mutex
	b  strings.Builder
}

func (t *lockedText) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(p)
}

func (t *lockedText) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}

func (m mcpRemote) start(ctx context.Context, l *lab, s *shim, more ...string) (*bridge, error) {
	args := append([]string{l.url, "--protocol", m.mode, "--auth-timeout", "30"}, more...)
	b := &bridge{lines: make(chan []byte, 64), ended: make(chan struct{}), stderr: &lockedText{}}
	b.cmd = exec.CommandContext(ctx, m.program[0], append(m.program[1:], args...)...) //nolint:gosec // what install laid down
	b.cmd.Env, b.cmd.Stderr = s.env("MCP_REMOTE_CONFIG_DIR="+filepath.Join(s.folder, "auth"), "SECRET="+l.secret), b.stderr
	var err error
	if b.in, err = b.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := b.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := b.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<22)
		for lines.Scan() {
			b.lines <- slices.Clone(lines.Bytes())
		}
		close(b.lines)
		_ = b.cmd.Wait() // its exit code is judged by no one: it is killed
		close(b.ended)
	}()
	return b, nil
}

func (b *bridge) stop() {
	_ = b.in.Close()
	select {
	case <-b.ended:
	case <-time.After(5 * time.Second):
		_ = b.cmd.Process.Kill()
	}
}

// answerTo is what came back for a request.
type answerTo struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// send writes a request of the initialize era, as a client on stdio does.
func (b *bridge) send(method string, params any) error {
	b.id++
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": b.id, "method": method, "params": params})
	if err != nil {
		return err
	}
	_, err = b.in.Write(append(text, '\n'))
	return err
}

// reply waits for the answer to the last request.
func (b *bridge) reply(ctx context.Context) (answerTo, error) {
	for {
		select {
		case <-ctx.Done():
			return answerTo{}, fmt.Errorf("no answer: %w: %s", ctx.Err(), tail(b.stderr.String()))
		case line, open := <-b.lines:
			if !open {
				return answerTo{}, fmt.Errorf("the bridge ended: %s", tail(b.stderr.String()))
			}
			var a answerTo
			if err := json.Unmarshal(line, &a); err != nil {
				return a, fmt.Errorf("line %q: %w", line, err)
			}
			if a.ID == b.id && (a.Result != nil || a.Error != nil) {
				return a, nil
			}
		}
	}
}

func (b *bridge) call(ctx context.Context, method string, params any) (answerTo, error) {
	if err := b.send(method, params); err != nil {
		return answerTo{}, fmt.Errorf("%w: %s", err, tail(b.stderr.String()))
	}
	a, err := b.reply(ctx)
	if err == nil && a.Error != nil {
		err = fmt.Errorf("%s: %s", method, a.Error)
	}
	return a, err
}

// begin is the handshake. visit is what the person does when the browser opens; nil: it must not open.
func (b *bridge) begin(ctx context.Context, visit func() error) error {
	hello := map[string]any{"protocolVersion": legacy, "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "buzon-stdio", "version": "1"}}
	if err := b.send("initialize", hello); err != nil {
		return err
	}
	if visit != nil {
		if err := visit(); err != nil {
			return fmt.Errorf("%w: %s", err, tail(b.stderr.String()))
		}
	}
	if a, err := b.reply(ctx); err != nil || a.Error != nil {
		return fmt.Errorf("initialize: %s %v", a.Error, err)
	}
	_, err := b.in.Write([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"))
	return err
}

func (b *bridge) lists(ctx context.Context, more bool) error {
	a, err := b.call(ctx, "tools/list", map[string]any{})
	if err != nil {
		return err
	}
	return sees(string(a.Result), more)
}

// sees judges a list of tools by its text.
func sees(text string, more bool) error {
	if !strings.Contains(text, `"`+readTool+`"`) || strings.Contains(text, `"`+writeTool+`"`) != more {
		return fmt.Errorf("tools: %.300s; want %s, and %s: %t", text, readTool, writeTool, more)
	}
	return nil
}

func (m mcpRemote) run(ctx context.Context, l *lab) (steps []string, err error) {
	s, err := newShim(l.folder)
	if err != nil {
		return nil, err
	}
	r, err := l.browser()
	if err != nil {
		return nil, err
	}
	// A fixed port: the document names the redirect. The port is free in this moment, and the bridge fails loudly if it is not.
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	args := []string{port}
	if m.registration == published {
		args = append(args, "--client-metadata-url", l.document("bridge", "http://localhost:"+port+"/oauth/callback"))
	}
	if err := m.deny(ctx, l, s, r, args); err != nil {
		return nil, fmt.Errorf("deny: %w", err)
	}
	b, err := m.start(ctx, l, s, args...)
	if err != nil {
		return nil, err
	}
	defer b.stop()
	f := &bridged{b, l, s, r, m}
	for _, step := range []struct {
		name string
		take func(context.Context) error
	}{{"approve reading", f.approveReading}, {"step up", f.stepUp}, {"refresh", f.refresh}, {"revoke", f.revoke}} {
		if err := step.take(ctx); err != nil {
			return append([]string{"deny"}, steps...), fmt.Errorf("%s: %w: %s", step.name, err, tail(b.stderr.String()))
		}
		steps = append(steps, step.name)
	}
	return append([]string{"deny"}, steps...), nil
}

// deny: the bridge says why there is no connection.
func (m mcpRemote) deny(ctx context.Context, l *lab, s *shim, r *robot.Robot, args []string) error {
	b, err := m.start(ctx, l, s, args...)
	if err != nil {
		return err
	}
	defer b.stop()
	err = b.begin(ctx, func() error {
		open, err := s.next(ctx, b.ended)
		if err != nil {
			return err
		}
		back, err := r.Authorize(ctx, open, robot.Answer{Deny: true})
		if err != nil {
			return err
		}
		_ = r.Deliver(ctx, back) // its page says that it failed, with whatever status
		return nil
	})
	if err == nil {
		return errors.New("it connected all the same")
	}
	if said := b.stderr.String(); !strings.Contains(said, "access_denied") && !strings.Contains(said, "did not approve") {
		return fmt.Errorf("the bridge does not say why: %s", tail(said))
	}
	return nil
}

type bridged struct {
	*bridge
	lab     *lab
	shim    *shim
	browser *robot.Robot
	m       mcpRemote
}

// visits lets the person answer what the bridge opens. want must stand in the request.
func (f *bridged) visits(ctx context.Context, want string, a robot.Answer) error {
	open, err := f.shim.next(ctx, f.ended)
	if err != nil {
		return err
	}
	if !strings.Contains(open, strings.ReplaceAll(want, ":", "%3A")) {
		return fmt.Errorf("the request lacks %s: %s", want, open)
	}
	if isDocument := strings.Contains(open, "client_id=https"); isDocument != (f.m.registration == published) {
		return fmt.Errorf("introduced otherwise than by %s: %s", f.m.registration, open)
	}
	return f.browser.Visit(ctx, open, a)
}

func (f *bridged) alone() error {
	list, err := f.shim.waiting()
	if err == nil && len(list) > 0 {
		err = fmt.Errorf("a browser was opened: %v", list)
	}
	return err
}

func (f *bridged) approveReading(ctx context.Context) error {
	if err := f.begin(ctx, func() error { return f.visits(ctx, "", robot.Answer{ReadOnly: true}) }); err != nil {
		return err
	}
	return f.lists(ctx, false)
}

func (f *bridged) stepUp(ctx context.Context) error {
	if err := f.send("tools/call", map[string]any{"name": writeTool, "arguments": map[string]any{"slug": "stepped-up"}}); err != nil {
		return err
	}
	if err := f.visits(ctx, writeScope, robot.Answer{}); err != nil {
		return err
	}
	a, err := f.reply(ctx)
	if err != nil || !strings.Contains(string(a.Result), "stepped-up") {
		return fmt.Errorf("after stepping up: %s %s %v", a.Result, a.Error, err)
	}
	return f.lists(ctx, true)
}

func (f *bridged) refresh(ctx context.Context) error {
	f.lab.pass(accessLife)
	if err := f.lists(ctx, true); err != nil {
		return err
	}
	return f.alone()
}

func (f *bridged) revoke(ctx context.Context) error {
	if err := f.lab.disconnect(ctx, f.browser, 0); err != nil {
		return err
	}
	f.lab.pass(seen)
	if err := f.send("tools/list", map[string]any{}); err != nil {
		return err
	}
	if err := f.visits(ctx, "", robot.Answer{}); err != nil {
		return err
	}
	a, err := f.reply(ctx)
	if err != nil || a.Error != nil {
		return fmt.Errorf("after approving again: %s %v", a.Error, err)
	}
	return sees(string(a.Result), true)
}

// credentials: no browser, no person.
func (m mcpRemote) credentials(ctx context.Context, l *lab) ([]string, error) {
	id, secret, err := l.account(ctx)
	if err != nil {
		return nil, err
	}
	s, err := newShim(l.folder)
	if err != nil {
		return nil, err
	}
	l.secret = secret
	b, err := m.start(ctx, l, s, "--client-credentials", "--static-oauth-client-info", `{"client_id":"`+id+`","client_secret":"${SECRET}"}`)
	if err != nil {
		return nil, err
	}
	defer b.stop()
	f := &bridged{b, l, s, nil, m}
	if err := f.begin(ctx, nil); err != nil {
		return nil, err
	}
	if err := f.lists(ctx, false); err != nil {
		return nil, err
	}
	l.pass(accessLife)
	if err := f.lists(ctx, false); err != nil {
		return []string{"token"}, err
	}
	if _, err := l.buzon(ctx, "service", "revoke", id); err != nil {
		return nil, err
	}
	l.pass(seen)
	if err := f.lists(ctx, false); err == nil {
		return nil, errors.New("a revoked account is served")
	}
	return []string{"token", "again when it expired", "refused when revoked"}, f.alone()
}

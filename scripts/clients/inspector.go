package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/buzon-mail/buzon/shared/testkit/robot"
)

// inspector is the MCP inspector's command line: one process for each request, which keeps its tokens in its home folder.
type inspector struct {
	program      []string
	era          string
	registration string
}

// inspected is its life under way.
type inspected struct {
	inspector
	lab     *lab
	shim    *shim
	browser *robot.Robot
	port    string
}

// ran is one process.
type ran struct {
	stdout, stderr string
	err            error
	visited        bool // a browser was opened
}

// call runs one request. answer is what the person does when a browser opens; nil: it must not. The process may open it more than
// once (it asks before it steps up), so every address is answered until it ends.
func (i *inspected) call(ctx context.Context, a *robot.Answer, args ...string) ran {
	all := append(slices.Clone(i.program[1:]), "--server-url", i.lab.url, "--transport", "http", "--protocol-era", i.era,
		"--callback-url", "http://127.0.0.1:"+i.port+"/oauth/callback", "--format", "json")
	if i.registration == published {
		all = append(all, "--client-metadata-url", i.document())
	}
	cmd := exec.CommandContext(ctx, i.program[0], append(all, args...)...) //nolint:gosec // what install laid down
	cmd.Env = i.shim.env("MCP_AUTO_OPEN_ENABLED=true", "MCP_INSPECTOR_SECRET_STORE=file")
	var out, errs lockedText
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		return ran{err: err}
	}
	ended := make(chan struct{})
	var exit error
	go func() { exit = cmd.Wait(); close(ended) }()
	var r ran
	var visit error
	for {
		open, err := i.shim.next(ctx, ended)
		if err != nil {
			break
		}
		r.visited = true
		if a == nil {
			visit = fmt.Errorf("it opened a browser: %s", open)
			_ = cmd.Process.Kill()
			break
		}
		if visit = i.visit(ctx, open, *a); visit != nil {
			_ = cmd.Process.Kill()
			break
		}
	}
	<-ended
	r.stdout, r.stderr, r.err = out.String(), errs.String(), errors.Join(visit, exit)
	if r.err != nil {
		r.err = fmt.Errorf("%w: %s%s", r.err, tail(r.stdout), tail(r.stderr))
	}
	return r
}

func (i *inspected) document() string {
	return i.lab.document("inspector", "http://127.0.0.1:"+i.port+"/oauth/callback")
}

func (i *inspected) visit(ctx context.Context, open string, a robot.Answer) error {
	if isDocument := strings.Contains(open, "client_id=https"); isDocument != (i.registration == published) {
		return fmt.Errorf("introduced otherwise than by %s: %s", i.registration, open)
	}
	back, err := i.browser.Authorize(ctx, open, a)
	if err != nil {
		return err
	}
	err = i.browser.Deliver(ctx, back)
	if a.Deny {
		return nil // its page says that it failed, with whatever status
	}
	return err
}

// lists lets it list the tools.
func (i *inspected) lists(ctx context.Context, a *robot.Answer, more bool, args ...string) (ran, error) {
	r := i.call(ctx, a, append([]string{"--method", "tools/list"}, args...)...)
	if r.err != nil {
		return r, r.err
	}
	return r, sees(strings.ReplaceAll(r.stdout, `\"`, `"`), more)
}

func (n inspector) run(ctx context.Context, l *lab) (steps []string, err error) {
	i := &inspected{inspector: n, lab: l}
	if i.shim, err = newShim(l.folder); err != nil {
		return nil, err
	}
	if i.browser, err = l.browser(); err != nil {
		return nil, err
	}
	if i.port, err = freePort(); err != nil {
		return nil, err
	}
	if _, err := i.browser.Disconnect(ctx, l.origin); err != nil { // whoever was connected before: revoke counts
		return nil, err
	}
	for _, step := range []struct {
		name string
		take func(context.Context) error
	}{{"deny", i.deny}, {"approve reading", i.approveReading}, {"no step-up", i.stepUp}, {"refresh", i.refresh},
		{"sign out and in", i.signOut}, {"revoke", i.revoke}} {
		err := step.take(ctx)
		if err != nil {
			return steps, fmt.Errorf("%s: %w", step.name, err)
		}
		steps = append(steps, step.name)
	}
	return steps, nil
}

func (i *inspected) deny(ctx context.Context) error {
	r := i.call(ctx, &robot.Answer{Deny: true}, "--method", "tools/list")
	if r.err == nil {
		return errors.New("it was served all the same")
	}
	// It shows error_description alone, which is why ours says what happened.
	if !r.visited || !strings.Contains(r.err.Error(), "The person did not approve.") {
		return fmt.Errorf("it does not say why: %w", r.err)
	}
	return nil
}

func (i *inspected) approveReading(ctx context.Context) error {
	if _, err := i.lists(ctx, &robot.Answer{ReadOnly: true}, false); err != nil {
		return err
	}
	_, err := i.lists(ctx, nil, false) // and keeps what it got
	return err
}

// stepUp: the inspector looks a tool up in tools/list, where it is hidden, before it calls it, so no challenge ever reaches it. Its
// way to more scopes is to sign out and in.
func (i *inspected) stepUp(ctx context.Context) error {
	r := i.call(ctx, &robot.Answer{}, "--method", "tools/call", "--tool-name", writeTool, "--tool-arg", "slug=stepped-up")
	if r.err == nil || r.visited || !strings.Contains(r.err.Error(), "tool_not_found") {
		return fmt.Errorf("it calls what it can't see, so it can step up; assert that (browser opened: %t): %s %v", r.visited, r.stdout, r.err)
	}
	return nil
}

func (i *inspected) refresh(ctx context.Context) error {
	i.lab.pass(accessLife)
	_, err := i.lists(ctx, nil, false)
	return err
}

// revoke: two connections are there to end, for signOut ended nothing. One that is left says that the inspector has learned to.
func (i *inspected) revoke(ctx context.Context) error {
	if err := i.lab.disconnect(ctx, i.browser, 2); err != nil {
		return err
	}
	i.lab.pass(seen)
	r, err := i.lists(ctx, &robot.Answer{}, true)
	if err == nil && !r.visited {
		err = errors.New("it was served without asking anybody")
	}
	return err
}

// signOut lets it forget what it has and sign in anew. It says that it revokes too (RFC 7009), and would, but this release looks
// for the server's metadata where its own sign-in does not keep it.
func (i *inspected) signOut(ctx context.Context) error {
	r, err := i.lists(ctx, &robot.Answer{}, true, "--relogin")
	if err == nil && !r.visited {
		return errors.New("it kept what it had")
	}
	return err
}

package local

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/buzon-mail/buzon/shared/config"
)

// run does a verb and shows its reply, indented, or hands it to show.
func (p *Process) run(ctx context.Context, verb string, in any, show func([]byte) error) error {
	var out bytes.Buffer
	if err := p.stream(ctx, verb, in, &out); err != nil {
		return err
	}
	if show != nil {
		return show(out.Bytes())
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, bytes.TrimSpace(out.Bytes()), "", "  "); err != nil {
		return fmt.Errorf("read the reply: %w", err)
	}
	_, err := fmt.Fprintln(p.Stdout, pretty.String())
	return err
}

// stream does a verb through the running service, or over the store itself when none runs.
func (p *Process) stream(ctx context.Context, verb string, in any, out io.Writer) error {
	if config.OnAWS(p.Getenv) {
		return p.onAWS(ctx, verb, in, out)
	}
	cfg, err := config.LoadLocal(p.Getenv)
	if err != nil {
		return err
	}
	s, err := whenFree(ctx, cfg, Options{Log: p.Stderr, Build: p.Build}, func() (bool, error) {
		return remote(ctx, cfg.DataDir, verb, in, out)
	})
	if s == nil || err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	return s.admin.do(ctx, verb, in, out)
}

// do is a verb over the store itself.
func (a *admin) do(ctx context.Context, verb string, in any, out io.Writer) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("encode %s: %w", verb, err)
	}
	for _, c := range a.calls() {
		if c.verb == verb {
			return c.handle(ctx, body, out)
		}
	}
	return fmt.Errorf("no verb %s", verb)
}

package local

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/buzon-mail/buzon/shared/mcpcheck"
)

// checkToken keeps the token out of the list of processes, where --token shows it to everybody on the machine.
const checkToken = "BUZON_CHECK_TOKEN"

type checkCommand struct {
	URL      string        `arg:"" help:"Of the endpoint, as https://example.com/mcp."`
	Token    string        `help:"Access token; without one only what a stranger sees is checked. Better in BUZON_CHECK_TOKEN."`
	Call     string        `help:"Call this tool, without arguments, if the server marks it read-only. No tool is called otherwise."`
	JSON     bool          `name:"json" help:"Print the report as one JSON document."`
	Verbose  bool          `help:"Say of every check what the specification demands."`
	Insecure bool          `help:"Allow plain http for a host that is not loopback."`
	Timeout  time.Duration `default:"10s" help:"Of one request."`
}

// exitCode ends the program without another word: what there is to say was printed.
type exitCode int

// Error is for logs.
func (c exitCode) Error() string { return fmt.Sprintf("exit %d", int(c)) }

// status is the exit code for what a verb returned, which it reports.
func (p *Process) status(err error) int {
	var code exitCode
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	}
	report(p.Stderr, err)
	return 1
}

// Run checks a server: 0 when nothing failed, 1 when something did, 2 when it could not be checked.
func (c checkCommand) Run(ctx context.Context, p *Process) error {
	if c.Token == "" {
		c.Token = p.Getenv(checkToken)
	}
	found, err := mcpcheck.Check(ctx, mcpcheck.Options{
		URL: c.URL, Token: c.Token, Call: c.Call, Insecure: c.Insecure, Timeout: c.Timeout, Version: p.Build,
	})
	if err != nil {
		report(p.Stderr, err)
		return exitCode(2)
	}
	if c.JSON {
		err = found.WriteJSON(p.Stdout)
	} else {
		err = found.WriteText(p.Stdout, c.Verbose)
	}
	switch {
	case err != nil:
		report(p.Stderr, fmt.Errorf("write the report: %w", err))
		return exitCode(2)
	case !found.OK():
		return exitCode(1)
	}
	return nil
}

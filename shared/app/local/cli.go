package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/config"
)

// Process is what the command line needs of the process it runs in.
type Process struct {
	Args   []string // without the program's name
	Getenv func(string) string
	Stdout io.Writer
	Stderr io.Writer
	// Build is the version that the linker wrote.
	Build string
	// Program is how this program was called, for commands that can be pasted; buzon when empty.
	Program string
}

// grammar is the command line.
type grammar struct {
	Serve   serveCommand   `cmd:"" default:"1" help:"Run the whole service: HTTP, SMTP and the worker (the default)."`
	Org     orgCommand     `cmd:"" help:"Organizations."`
	Domain  domainCommand  `cmd:"" help:"Mail domains."`
	User    userCommand    `cmd:"" help:"People."`
	Service serviceCommand `cmd:"" help:"Service accounts: agents without a person."`
	Keys    keysCommand    `cmd:"" help:"Signing keys of access tokens."`
	Token   tokenCommand   `cmd:"" help:"Print an access token for a person. Loopback services only."`
	Event   eventCommand   `cmd:"" help:"Fill the tokens into an event file for the emulated Lambda function and print it."`
	Secret  secretCommand  `cmd:"" help:"Secrets of a deployed service."`
	Import  importCommand  `cmd:"" help:"Bring mail that was received elsewhere into an inbox. May be repeated."`
	Backup  backupCommand  `cmd:"" help:"Write store, blobs and secrets into one tar archive. The service may run."`
	Check   checkCommand   `cmd:"" help:"Check any MCP server in the world from outside. Exit code: 0 nothing failed, 1 something did, 2 it could not be checked."`
}

type orgCommand struct {
	Create orgCreateCommand `cmd:"" help:"Create an organization with its first workspace and owner."`
}

type domainCommand struct {
	Add domainAddCommand `cmd:"" help:"Assign a mail domain to an organization, so that it can have inboxes there."`
}

// Main runs the command line and returns the exit code: 0, 1 when a verb failed, 2 when it was called wrongly.
func Main(ctx context.Context, p Process) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once; accepted mail survives that
	var g grammar
	exit := -1
	parser, err := kong.New(&g, kong.Name("buzon"), kong.UsageOnError(), kong.Writers(p.Stdout, p.Stderr),
		kong.Description("Buzón: an autonomous inbox that agents operate. Settings come from the environment, see README.md."),
		kong.Exit(func(code int) { exit = code }), kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(&p))
	if err != nil {
		report(p.Stderr, err)
		return 2
	}
	parsed, err := parser.Parse(p.Args)
	switch {
	case exit >= 0: // --help
		return exit
	case err != nil:
		report(p.Stderr, fmt.Errorf("%w; see buzon --help", err))
		return 2
	}
	return p.status(parsed.Run())
}

// report says what failed and what to do about it.
func report(w io.Writer, err error) {
	var e *apperr.Error
	if !errors.As(err, &e) {
		_, _ = fmt.Fprintln(w, "buzon:", err) //nolint:leakederror // the terminal of whoever runs the command, who may read everything
		return
	}
	_, _ = fmt.Fprintln(w, "buzon:", e.Public)
	if cause := errors.Unwrap(e); cause != nil {
		_, _ = fmt.Fprintln(w, "  because:", cause)
	}
	for _, d := range e.Details {
		_, _ = fmt.Fprintf(w, "  %s: %s\n", d.Location, d.Message)
	}
	for _, fix := range e.Fixes {
		_, _ = fmt.Fprintln(w, "  -", fix)
	}
}

type serveCommand struct{}

// Run serves until it is told to stop.
func (serveCommand) Run(ctx context.Context, p *Process) error {
	cfg, err := config.LoadLocal(p.Getenv)
	if err != nil {
		return err
	}
	opts := Options{Log: p.Stderr, Build: p.Build, Program: p.Program}
	s, err := whenFree(ctx, cfg, opts, func() (bool, error) {
		if !answers(ctx, cfg.DataDir) {
			return false, nil
		}
		return true, taken(cfg.DataDir)
	})
	if err != nil {
		return err
	}
	return s.Run(ctx, p.Stdout)
}

type orgCreateCommand struct {
	Slug      string `arg:"" help:"Natural key: lower-case letters, digits and hyphens."`
	Name      string `help:"For people; the slug when absent."`
	Owner     string `required:"" help:"E-mail address of the first owner."`
	Workspace string `default:"main" help:"Slug of the first workspace."`
}

// Run creates the organization.
func (c orgCreateCommand) Run(ctx context.Context, p *Process) error {
	return p.run(ctx, "org-create", OrganizationRequest(c), nil)
}

type domainAddCommand struct {
	Organization string `arg:"" help:"Slug of the organization."`
	Domain       string `arg:"" help:"The domain, as example.com."`
}

// Run assigns the domain.
func (c domainAddCommand) Run(ctx context.Context, p *Process) error {
	return p.run(ctx, "domain-add", DomainRequest(c), nil)
}

type tokenCommand struct {
	Email     string        `arg:"" help:"Of a member, as owner@acme.test."`
	Scope     []string      `help:"Scopes, as emails:read; all that the role allows when absent." sep:","`
	Workspace string        `help:"Id or slug of the workspace that requests without X-Workspace-Id act in; who reaches only one need not say."`
	TTL       time.Duration `default:"1h" help:"How long it lives, at most 24h."`
}

// Run prints the token alone, so that it can be captured.
func (c tokenCommand) Run(ctx context.Context, p *Process) error {
	return p.run(ctx, "token", TokenRequest(c), func(raw []byte) error {
		var reply TokenReply
		if err := json.Unmarshal(raw, &reply); err != nil {
			return fmt.Errorf("read the reply: %w", err)
		}
		_, err := fmt.Fprintln(p.Stdout, reply.AccessToken)
		return err
	})
}

type eventCommand struct {
	File string `arg:"" help:"An event file, as events/function-url-tools-list-2026.json, or - for standard input."`
}

// Run prints the event.
func (c eventCommand) Run(ctx context.Context, p *Process) error {
	text, err := readEvent(c.File)
	if err != nil {
		return err
	}
	filled, err := FillEvent(ctx, text, time.Now)
	if err != nil {
		return err
	}
	_, err = p.Stdout.Write(filled)
	return err
}

// maxEvent is more than Lambda takes in one event.
const maxEvent = 10 << 20

func readEvent(name string) ([]byte, error) {
	f := os.Stdin
	if name != "-" {
		var err error
		if f, err = os.Open(name); err != nil { //nolint:gosec // the person's own file
			return nil, fmt.Errorf("read the event: %w", err)
		}
		defer func() { _ = f.Close() }()
	}
	text, err := io.ReadAll(io.LimitReader(f, maxEvent+1)) // a device has no end
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the event: %w", err)
	case len(text) > maxEvent || !json.Valid(text):
		return nil, apperr.New(apperr.Invalid, "", "This is no event: one is JSON of at most 10 MiB.", "Name a file like those in events/.")
	}
	return text, nil
}

type backupCommand struct {
	File string `arg:"" help:"Where to write the archive; it must not exist."`
}

// Run writes the archive under another name first: a file under the name that was asked for is whole.
func (c backupCommand) Run(ctx context.Context, p *Process) error {
	if _, err := os.Lstat(c.File); !errors.Is(err, fs.ErrNotExist) {
		return apperr.New(apperr.Conflict, "", c.File+" exists.", "Name a file that does not.")
	}
	f, err := os.CreateTemp(filepath.Dir(c.File), filepath.Base(c.File)+".*.partial") // one of its own: a killed run leaves its part
	if err != nil {
		return fmt.Errorf("make the archive: %w", err)
	}
	partial := f.Name()
	err = p.stream(ctx, "backup", struct{}{}, f)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Link(partial, c.File)
	}
	if remove := os.Remove(partial); err == nil {
		err = remove
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.Stdout, "Wrote %s. It holds every mail and the keys: keep it like them.\n"+
		"To restore: unpack it into an empty folder and start with BUZON_DATA_DIR set to it.\n", c.File)
	return err
}

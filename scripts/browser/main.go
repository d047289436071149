// Command browser drives Chromium through the pages of the service itself, the local process with the demo, as people do:
// sign-in by link and by passkey, consent, approval, denial; in both languages, both colour schemes and on a narrow screen. It
// installs the browser (Debian's package) and what drives it (npm, pinned) and leaves pictures of the pages in .tools.
//
//	go run ./scripts/browser          as make browser
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
	"time"

	"github.com/buzon-mail/buzon/scripts/npm"
	"github.com/buzon-mail/buzon/scripts/program"
	"github.com/buzon-mail/buzon/scripts/service"
	"github.com/buzon-mail/buzon/shared/app/local"
)

func main() { os.Exit(program.Run("browser", run)) }

// patience bounds the whole conversation; a healthy one needs half a minute.
const patience = 5 * time.Minute

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("browser", flag.ContinueOnError)
	tools := flags.String("tools", ".tools", "folder for what is installed, and for the pictures")
	if err := flags.Parse(args); err != nil {
		return err
	}
	folder := filepath.Join(*tools, "browser")
	if err := npm.Install(ctx, "scripts/conformance", filepath.Join(*tools, "conformance")); err != nil { // for its Node
		return err
	}
	if err := npm.Install(ctx, "scripts/browser", folder); err != nil {
		return err
	}
	c, err := findChromium(ctx, filepath.Join(folder, "chromium"))
	if err != nil {
		return err
	}
	pictures := filepath.Join(folder, "pictures")
	if err := errors.Join(os.RemoveAll(pictures), os.MkdirAll(pictures, 0o750)); err != nil {
		return fmt.Errorf("pictures: %w", err)
	}
	publisher := newPublisher()
	defer publisher.Close()
	s, err := service.Start(ctx, local.Options{Fetcher: publisher.fetcher()})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = visit(ctx, npm.Node(filepath.Join(*tools, "conformance")), folder, pictures, c, s, publisher, out)
	return errors.Join(err, s.Close())
}

// plan is what the program of this folder reads from BROWSER_PLAN.
type plan struct {
	Origin    string              `json:"origin"`
	Env       []string            `json:"env"` // NAME=value, of the browser alone
	Chromium  string              `json:"chromium"`
	Pictures  string              `json:"pictures"`
	Links     map[string][]string `json:"links"`        // one-time, for each person
	Publisher string              `json:"publisher"`    // where the host of the client's document really listens
	Key       string              `json:"publisherKey"` // SHA-256 of its public key, in base64
	Document  string              `json:"document"`     // a client id
}

// visit lets the program do its visit. Its exit code is the verdict.
func visit(
	ctx context.Context, node, folder, pictures string, c chromium, s *service.Service, p *publisher, out io.Writer,
) error {
	if _, err := s.Command(ctx, "org", "create", "nueva", "--name", "Peña & Söhne <b>", "--owner", invited); err != nil {
		return err
	}
	where, err := filepath.Abs(pictures)
	if err != nil {
		return fmt.Errorf("pictures: %w", err)
	}
	todo := plan{
		Origin: s.Origin(), Chromium: c.program, Env: c.env, Pictures: where, Links: map[string][]string{},
		Publisher: p.server.Listener.Addr().String(), Key: p.key(), Document: documentID,
	}
	for _, email := range []string{"owner@acme.test", "viewer@acme.test", "owner@globex.test", invited} {
		for range 2 { // one to use, one to look at
			link, err := s.Command(ctx, "user", "link", email)
			if err != nil {
				return err
			}
			todo.Links[email] = append(todo.Links[email], link)
		}
	}
	text, err := json.Marshal(todo)
	if err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	program, err := filepath.Abs(filepath.Join(folder, "visit.mjs"))
	if err != nil {
		return fmt.Errorf("program: %w", err)
	}
	cmd := exec.CommandContext(ctx, node, program) //nolint:gosec // what was installed
	cmd.Env = append(os.Environ(), "BROWSER_PLAN="+string(text))
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	// Asked first, so that it can close the browser.
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, 10*time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the visit failed: %w; pictures are in %s", err, where)
	}
	return nil
}

// invited is a person of an organization of their own who was never here.
const invited = "nadia@example.com"

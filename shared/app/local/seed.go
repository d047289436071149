package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/demo"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxops"
	"github.com/buzon-mail/buzon/shared/oauth"
	"github.com/buzon-mail/buzon/shared/pipeline"
)

// seedMails hands the sample mails to the real pipeline. Their ids are fixed, so a mail that is there is not made again.
func (s *Service) seedMails(ctx context.Context) error {
	mails, err := demo.Mails()
	if err != nil {
		return err
	}
	start := s.opts.Clock()
	for _, m := range mails {
		to, err := s.store.Recipient(ctx, m.Inbox)
		if err != nil {
			return fmt.Errorf("demo mail %s: %w", m.ID, err)
		}
		if _, _, err := s.store.Email(ctx, to.Workspace, m.ID, false); err == nil {
			continue
		}
		ids := []string{m.Intake, m.ID}
		intake, err := pipeline.NewIntake(pipeline.IntakeDeps{
			Recipients: s.store, Outbox: s.store, Blobs: s.blobs, Queue: s.queue, Logger: s.log,
			Clock: func() time.Time { return start.Add(-m.Age) },
			NewID: func(prefix string, _ time.Time) (string, error) {
				i := slices.IndexFunc(ids, func(id string) bool { return strings.HasPrefix(id, prefix) })
				if i < 0 {
					return "", fmt.Errorf("no fixed %s id", prefix)
				}
				return ids[i], nil
			},
		}, pipeline.IntakeOptions{})
		if err != nil {
			return fmt.Errorf("demo intake: %w", err)
		}
		if _, err := intake.Accept(ctx, inbox.Incoming{
			From: m.From, RemoteIP: demo.RemoteIP, HELO: demo.HELO, Recipients: []inbox.Recipient{to}, Body: bytes.NewReader(m.Raw),
		}); err != nil {
			return fmt.Errorf("demo mail %s: %w", m.ID, err)
		}
	}
	return s.awaitMails(ctx, mails)
}

// awaitMails waits until the worker has finished the sample mails, so that demo.json means: all is there.
func (s *Service) awaitMails(ctx context.Context, mails []demo.Mail) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for _, m := range mails {
		to, err := s.store.Recipient(ctx, m.Inbox)
		if err != nil {
			return fmt.Errorf("demo mail %s: %w", m.ID, err)
		}
		for {
			e, _, err := s.store.Email(ctx, to.Workspace, m.ID, false)
			if err == nil && e.Status != inbox.StatusReceived && e.Status != inbox.StatusProcessing {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("demo mail %s was not processed: %w", m.ID, errors.Join(ctx.Err(), err))
			case <-tick.C:
			}
		}
	}
	return nil
}

// demoDocument is demo.json: what a script needs to try the service.
type demoDocument struct {
	MCPURL   string     `json:"mcp_url"`
	APIURL   string     `json:"api_url"`
	SMTPAddr string     `json:"smtp_addr"`
	Issuer   string     `json:"issuer"`
	Users    []demoUser `json:"users"`
}

type demoUser struct {
	Email        string   `json:"email"`
	Organization string   `json:"organization"`
	Role         string   `json:"role"`
	Workspaces   []string `json:"workspaces"`
	AccessToken  string   `json:"access_token"`
}

// writeDemo writes demo.json under another name and renames it into place: who sees it may start.
func (s *Service) writeDemo(ctx context.Context) error {
	doc := demoDocument{
		MCPURL: s.origin + "/mcp", APIURL: s.origin + inboxops.BasePath, SMTPAddr: s.smtpAddr(), Issuer: s.origin, Users: []demoUser{},
	}
	for _, o := range demo.World() {
		for _, m := range o.Members {
			u := demoUser{Email: m.Email, Organization: o.Org.Slug, Role: string(m.Role)}
			for _, w := range o.Workspaces {
				u.Workspaces = append(u.Workspaces, w.ID)
			}
			workspace := ""
			if len(u.Workspaces) == 1 {
				workspace = u.Workspaces[0]
			}
			scope, err := everything(m.Role)
			if err != nil {
				return err
			}
			if u.AccessToken, err = mint(ctx, s.api.Issuer, m, workspace, scope, oauth.MaxLifetime); err != nil {
				return err
			}
			doc.Users = append(doc.Users, u)
		}
	}
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return fmt.Errorf("render %s: %w", demoFile, err)
	}
	partial := filepath.Join(s.cfg.DataDir, "."+demoFile)
	if err := os.WriteFile(partial, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", demoFile, err)
	}
	if err := os.Rename(partial, s.demoPath()); err != nil {
		return fmt.Errorf("publish %s: %w", demoFile, err)
	}
	return nil
}

func (s *Service) demoPath() string { return filepath.Join(s.cfg.DataDir, demoFile) }

// Package service starts the service itself for the scripts beside it: the local process with the demo, in a temporary
// folder, on ports that the system chooses. It is what `buzon serve` runs.
package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/app/local"
	"github.com/buzon-mail/buzon/shared/config"
)

// Service is a process that serves.
type Service struct {
	URL   string // of the MCP endpoint
	Token string // of the demo's first person, owner@acme.test

	folder string
	getenv config.Getenv
	stop   context.CancelFunc
	ended  chan error
}

// Start starts one and waits until it is ready.
func Start(ctx context.Context, options local.Options) (*Service, error) {
	folder, err := os.MkdirTemp("", "bz") // short: the socket in it has 108 bytes for its path
	if err != nil {
		return nil, fmt.Errorf("service: %w", err)
	}
	environment := map[string]string{
		"BUZON_HTTP_ADDR": "127.0.0.1:0", "BUZON_SMTP_ADDR": "127.0.0.1:0", "BUZON_DATA_DIR": folder, "BUZON_DEMO": "1",
	}
	s := &Service{
		folder: folder, getenv: func(name string) string { return environment[name] },
		stop: func() {}, ended: make(chan error, 1),
	}
	if options.Log == nil {
		options.Log = io.Discard
	}
	cfg, err := config.LoadLocal(s.getenv)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("service: %w", err), os.RemoveAll(folder))
	}
	process, err := local.New(cfg, options)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("service: %w", err), os.RemoveAll(folder))
	}
	running, stop := context.WithCancel(ctx)
	s.stop = stop
	go func() { s.ended <- process.Run(running, io.Discard) }()
	if err := s.await(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close ends the process and removes its folder.
func (s *Service) Close() error {
	s.stop()
	return errors.Join(<-s.ended, os.RemoveAll(s.folder))
}

// Origin is scheme and host.
func (s *Service) Origin() string { return strings.TrimSuffix(s.URL, "/mcp") }

// Command runs the command line beside the process, as buzon, and returns what it printed.
func (s *Service) Command(ctx context.Context, args ...string) (string, error) {
	var out, errs bytes.Buffer
	code := local.Main(ctx, local.Process{Args: args, Getenv: s.getenv, Stdout: &out, Stderr: &errs})
	if code != 0 {
		return "", fmt.Errorf("buzon %s: exit code %d\n%s", strings.Join(args, " "), code, errs.String())
	}
	return strings.TrimSpace(out.String()), nil
}

// await waits for demo.json and reads of it what a client needs.
func (s *Service) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		text, err := os.ReadFile(filepath.Join(s.folder, "demo.json"))
		if err == nil {
			var doc struct {
				URL   string `json:"mcp_url"`
				Users []struct {
					Token string `json:"access_token"`
				} `json:"users"`
			}
			if err := json.Unmarshal(text, &doc); err != nil {
				return fmt.Errorf("service: demo.json: %w", err)
			}
			if len(doc.Users) == 0 {
				return errors.New("service: demo.json names nobody")
			}
			s.URL, s.Token = doc.URL, doc.Users[0].Token
			return nil
		}
		select {
		case err := <-s.ended:
			s.ended <- nil // Close waits for it too
			return fmt.Errorf("service: it ended before it was ready: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("service: no demo.json: %w", ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

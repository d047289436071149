// Package derived makes the files that are derived from the code, by their path below the module's root: the tools, the OpenAPI
// document, the sample mails as the pipeline leaves them. It runs at build time and in a test that compares; it must know no
// clock, no randomness and no place but what it is given, or the files would differ each time.
package derived

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/demo"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxops"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/mail"
	"github.com/buzon-mail/buzon/shared/mailauth"
	"github.com/buzon-mail/buzon/shared/optool"
	"github.com/buzon-mail/buzon/shared/pipeline"
	"github.com/buzon-mail/buzon/shared/pipeline/parsing"
	"github.com/buzon-mail/buzon/shared/queue"
	"github.com/buzon-mail/buzon/shared/rest"
	"github.com/buzon-mail/buzon/shared/store/embedded"
)

// Files renders every derived file.
func Files(ctx context.Context) (map[string][]byte, error) {
	catalogue, err := inboxops.Catalogue(nil)
	if err != nil {
		return nil, fmt.Errorf("catalogue: %w", err)
	}
	tools, err := optool.Render(catalogue)
	if err != nil {
		return nil, fmt.Errorf("tools: %w", err)
	}
	document, err := rest.OpenAPI(catalogue, inboxops.Document())
	if err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	mails, err := sampleMails(ctx)
	if err != nil {
		return nil, fmt.Errorf("sample mails: %w", err)
	}
	return map[string][]byte{
		"shared/inboxops/tools.jsonl":  tools,
		"shared/inboxops/openapi.json": document,
		"shared/demo/processed.json":   mails,
	}, nil
}

// recorder keeps every step that the pipeline asks of storage.
type recorder struct {
	*inboxstore.Store
	loaded demo.Loaded
}

// FanOut records.
func (r *recorder) FanOut(ctx context.Context, in inbox.Intake, mails []inbox.Email) error {
	r.loaded.Intake, r.loaded.Mails = in, mails
	return r.Store.FanOut(ctx, in, mails)
}

// Finish records.
func (r *recorder) Finish(ctx context.Context, p inbox.Processed, key string) error {
	r.loaded.Processed, r.loaded.Key = p, key
	return r.Store.Finish(ctx, p, key)
}

// shelf keeps blobs in memory.
type shelf map[string][]byte

// Put keeps a blob.
func (s shelf) Put(_ context.Context, key string, r io.Reader, _ int64) error {
	text, err := io.ReadAll(r)
	s[key] = text
	return err
}

// Get returns a blob.
func (s shelf) Get(_ context.Context, key string, _ int64) ([]byte, error) { return s[key], nil }

// Delete drops a blob.
func (s shelf) Delete(_ context.Context, key string) error {
	delete(s, key)
	return nil
}

// nowhere is a queue that is not needed: each mail is handled by hand.
type nowhere struct{}

// Send drops the message.
func (nowhere) Send(context.Context, ...queue.Message) error { return nil }

// offline is a resolver without a network: of mail that no host on the internet brought nothing is asked.
type offline struct{ mailauth.Resolver }

// sampleMails runs the demo's mails through the pipeline, one by one, and returns what it asked of storage.
func sampleMails(ctx context.Context) ([]byte, error) {
	dir, err := os.MkdirTemp("", "buzon-generate-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return at }
	engine, err := embedded.Open(filepath.Join(dir, "store"), embedded.Options{Clock: clock})
	if err != nil {
		return nil, err
	}
	defer func() { _ = engine.Close() }()
	store, err := inboxstore.New(engine, clock)
	if err != nil {
		return nil, err
	}
	if err := demo.Seed(ctx, store); err != nil {
		return nil, err
	}
	mails, err := demo.Mails()
	if err != nil {
		return nil, err
	}
	all := make([]demo.Loaded, len(mails))
	for i, m := range mails {
		if all[i], err = sampleMail(ctx, store, m, clock); err != nil {
			return nil, fmt.Errorf("%s: %w", m.ID, err)
		}
	}
	text, err := json.MarshalIndent(all, "", "  ")
	return append(text, '\n'), err
}

func sampleMail(ctx context.Context, store *inboxstore.Store, m demo.Mail, clock func() time.Time) (demo.Loaded, error) {
	blobs, log := shelf{}, slog.New(slog.DiscardHandler)
	steps := &recorder{Store: store}
	intake, err := pipeline.NewIntake(pipeline.IntakeDeps{
		Recipients: store, Outbox: steps, Blobs: blobs, Queue: nowhere{}, Logger: log, Clock: clock,
		NewID: func(prefix string, _ time.Time) (string, error) {
			if strings.HasPrefix(m.ID, prefix) {
				return m.ID, nil
			}
			return m.Intake, nil
		},
	}, pipeline.IntakeOptions{})
	if err != nil {
		return demo.Loaded{}, err
	}
	to, err := store.Recipient(ctx, m.Inbox)
	if err != nil {
		return demo.Loaded{}, err
	}
	id, err := intake.Accept(ctx, inbox.Incoming{
		From: m.From, RemoteIP: demo.RemoteIP, HELO: demo.HELO, Recipients: []inbox.Recipient{to}, Body: bytes.NewReader(m.Raw),
	})
	if err != nil {
		return demo.Loaded{}, err
	}
	senders, err := mailauth.New(offline{}, mailauth.Options{})
	if err != nil {
		return demo.Loaded{}, err
	}
	worker, err := pipeline.NewWorker(pipeline.WorkerDeps{
		Outbox: steps, Mails: steps, Blobs: blobs, Queue: nowhere{}, Parse: parsing.Mail(mail.Limits{}), Logger: log,
		Clock: clock, Authenticate: parsing.Senders(senders), SameOrganization: mailauth.SameOrganization, Senders: store,
		Rules: store, Extractor: inbox.NewLocators(), Extractions: store,
	}, pipeline.WorkerOptions{})
	if err != nil {
		return demo.Loaded{}, err
	}
	if err := worker.Handle(ctx, id, 1); err != nil {
		return demo.Loaded{}, err
	}
	steps.loaded.Blobs = blobs
	return steps.loaded, nil
}

// Package inbound is the Lambda function that takes mail from SES: a notice on the queue names a mail that SES has stored, and
// the pipeline's intake takes it from there, for the recipients of the envelope. It reads nothing of the mail itself, serves no
// request, and links neither the mail parser nor the HTTP side.
package inbound

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/app/deployed"
	"github.com/buzon-mail/buzon/shared/app/jsonlog"
	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/blob"
	"github.com/buzon-mail/buzon/shared/config"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/lambdaedge"
	"github.com/buzon-mail/buzon/shared/pipeline"
	"github.com/buzon-mail/buzon/shared/queue"
)

const (
	// parallel notices are at once in work: each reads one blob as a stream and writes a row.
	parallel = 8
	// The folders of the bucket: where SES puts mail (template.yaml, the rule's ObjectKeyPrefix), and where mail for nobody is
	// kept, which the bucket's lifecycle removes after 7 days.
	sesFolder     = "ses/"
	unknownFolder = "unknown/"
)

// Engines is what the function stands on.
type Engines struct {
	Store  *inboxstore.Store
	Blobs  blob.Store
	Queue  queue.Queue
	Bucket string // that SES puts mail in
	Close  func() error
}

// Function is the started function.
type Function struct {
	*lambdaedge.Triggers
	close func() error
}

// Start polls Lambda's runtime for events and never returns.
func (f *Function) Start() { lambdaedge.StartTriggers(f.Triggers) }

// Close releases the engines; a deployed function never does, for Lambda ends its process.
func (f *Function) Close() error { return f.close() }

// New makes the function. Log lines go to out.
func New(cfg *config.Inbound, out io.Writer) (*Function, error) {
	if !cfg.Emulated {
		a, err := deployed.Here(cfg.AWS)
		if err != nil {
			return nil, fmt.Errorf("inbound: %w", err)
		}
		return On(a, out)
	}
	e, err := emulated(time.Now)
	return started(e, err, time.Now, jsonlog.New(out))
}

// On makes the function on an account of AWS, which it asks nothing yet.
func On(a deployed.Account, out io.Writer) (*Function, error) {
	e, err := enginesOf(a)
	return started(e, err, a.Clock, jsonlog.ForFunction(out, a.Names.Function))
}

func started(e *Engines, err error, clock func() time.Time, log *slog.Logger) (*Function, error) {
	if err != nil {
		return nil, fmt.Errorf("inbound: %w", err)
	}
	f, err := newFunction(e, log, clock)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("inbound: %w", err), e.Close())
	}
	return f, nil
}

func newFunction(e *Engines, log *slog.Logger, clock func() time.Time) (*Function, error) {
	intake, err := pipeline.NewIntake(pipeline.IntakeDeps{
		Recipients: e.Store, Outbox: e.Store, Blobs: e.Blobs, Queue: e.Queue, Logger: log, Clock: clock, Stored: e.Blobs, Holding: e.Store,
		Senders: e.Store,
	}, pipeline.IntakeOptions{})
	if err != nil {
		return nil, err
	}
	m := &mails{intake: intake, blobs: e.Blobs, bucket: e.Bucket, log: log}
	return &Function{close: e.Close, Triggers: lambdaedge.NewTriggers(lambdaedge.TriggerOptions{
		Message: m.message, Parallel: parallel, Logger: log,
	})}, nil
}

// mails takes one notice after the other.
type mails struct {
	intake *pipeline.Intake
	blobs  blob.Store
	bucket string
	log    *slog.Logger
}

// message takes in one mail. Nobody has it but us since SES said yes to its sender, and there is no outbox row yet: whatever
// fails, the notice comes again, and is set aside for a person in the end.
func (m *mails) message(ctx context.Context, msg lambdaedge.Message) error {
	err := m.take(ctx, msg)
	if err != nil {
		m.log.LogAttrs(ctx, slog.LevelError, "mail not taken", slog.String("message", msg.ID), slog.Int("attempt", msg.Attempt),
			slog.String("kind", apperr.From(err).Kind.String()), slog.String("error", err.Error()))
	}
	return err
}

func (m *mails) take(ctx context.Context, msg lambdaedge.Message) error {
	notice, err := lambdaedge.ParseReceived(msg.Body)
	if err != nil {
		return err
	}
	if err := m.ours(notice); err != nil {
		return err
	}
	known, n, err := m.recipients(ctx, notice)
	if err != nil {
		return fmt.Errorf("find the recipients: %w", err)
	}
	var ids []string
	if len(known) == 0 {
		err = m.keep(ctx, notice)
	} else {
		ids, err = m.intake.AcceptStored(ctx, stored(notice, known))
	}
	if err != nil {
		return err
	}
	m.log.LogAttrs(ctx, slog.LevelInfo, "mail taken", slog.String("message", msg.ID), slog.String("ses", notice.MessageID),
		slog.Int("recipients", len(known)), slog.Any("intakes", ids), slog.Int("attempt", msg.Attempt))
	if n.unknown > 0 { // metrics without their names: an address there would be a metric for each one that a spammer guesses
		m.log.LogAttrs(ctx, slog.LevelInfo, "recipients unknown", slog.String("ses", notice.MessageID), slog.Int("recipients_unknown", n.unknown))
	}
	if n.refused > 0 {
		m.log.LogAttrs(ctx, slog.LevelInfo, "senders refused", slog.String("ses", notice.MessageID), slog.Int("senders_refused", n.refused))
	}
	return nil
}

// ours refuses a notice that names anything but what SES puts there: whoever could put a notice on the queue could have other
// people's mail read to an inbox of their own.
func (m *mails) ours(n lambdaedge.Received) error {
	switch {
	case n.Bucket != m.bucket:
		return fmt.Errorf("%w: it names another bucket", lambdaedge.ErrNotNotice)
	case n.Key != sesFolder+n.MessageID, blob.CheckKey(n.Key) != nil, strings.Contains(n.MessageID, "/"):
		return fmt.Errorf("%w: it names another object than the mail's", lambdaedge.ErrNotNotice)
	}
	return nil
}

// counts are the recipients that get nothing, or not at once.
type counts struct {
	unknown int // nobody's
	refused int // they don't take mail of this sender: it is quarantined there
}

// recipients finds the inboxes of the envelope. Each asks whether it takes mail of the envelope's sender, as at SMTP's door.
func (m *mails) recipients(ctx context.Context, notice lambdaedge.Received) (known []inbox.Recipient, n counts, err error) {
	seen := map[string]bool{}
	for _, address := range notice.Recipients {
		if address = strings.ToLower(address); seen[address] {
			continue
		}
		seen[address] = true
		r, err := m.intake.Recipient(ctx, address)
		if apperr.Is(err, apperr.NotFound) {
			n.unknown++
			continue
		}
		if err == nil {
			r.Door, err = m.intake.Door(ctx, r, notice.Source)
		}
		if err != nil {
			return nil, counts{}, err
		}
		if r.Door != "" {
			n.refused++
		}
		known = append(known, r)
	}
	return known, n, nil
}

func stored(n lambdaedge.Received, to []inbox.Recipient) inbox.Stored {
	s := inbox.Stored{Source: n.Key, Key: n.Key, ReceivedAt: n.At, From: n.Source, Recipients: to}
	for _, v := range n.Verdicts {
		a := inbox.Authentication{Method: v.Method, Result: v.Result, From: inbox.CheckedBySES}
		if v.Method == "dmarc" {
			a.Reason = n.Policy
		}
		s.Authentication = append(s.Authentication, a)
	}
	return s
}

// keep moves a mail for nobody to where it is kept for 7 days. It is never bounced: its sender is as good as unproven, and the
// bounce would go to whomever they name.
func (m *mails) keep(ctx context.Context, n lambdaedge.Received) error {
	to := unknownFolder + n.MessageID
	body, size, err := m.blobs.Open(ctx, n.Key)
	if errors.Is(err, blob.ErrNotFound) {
		return m.kept(ctx, to, err)
	}
	if err != nil {
		return fmt.Errorf("open a mail for nobody: %w", err)
	}
	defer body.Close() //nolint:errcheck // read only
	if err := m.blobs.Put(ctx, to, body, size); err != nil {
		return fmt.Errorf("keep a mail for nobody: %w", err)
	}
	if err := m.blobs.Delete(ctx, n.Key); err != nil {
		return fmt.Errorf("move a mail for nobody: %w", err)
	}
	return nil
}

// kept tells whether an earlier run moved the mail already; missing is why it is asked.
func (m *mails) kept(ctx context.Context, key string, missing error) error {
	_, err := m.blobs.Get(ctx, key, 0)
	if err == nil || errors.Is(err, blob.ErrTooLarge) {
		return nil
	}
	return errors.Join(missing, fmt.Errorf("and it was not kept: %w", err))
}

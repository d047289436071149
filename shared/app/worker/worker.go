// Package worker is the Lambda function that processes accepted mail: a queue's batches of ids go to the pipeline's worker,
// and the schedule of each minute drives what is due. It serves no request and links no HTTP side.
package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/buzon-mail/buzon/shared/app/announce"
	"github.com/buzon-mail/buzon/shared/app/authority"
	"github.com/buzon-mail/buzon/shared/app/deployed"
	"github.com/buzon-mail/buzon/shared/app/jsonlog"
	"github.com/buzon-mail/buzon/shared/app/outlet"
	"github.com/buzon-mail/buzon/shared/app/telling"
	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/config"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/lambdaedge"
	"github.com/buzon-mail/buzon/shared/mail"
	"github.com/buzon-mail/buzon/shared/mailauth"
	"github.com/buzon-mail/buzon/shared/oauth/standing"
	"github.com/buzon-mail/buzon/shared/outmail"
	"github.com/buzon-mail/buzon/shared/pipeline"
	"github.com/buzon-mail/buzon/shared/pipeline/parsing"
	"github.com/buzon-mail/buzon/shared/queue"
	sqsqueue "github.com/buzon-mail/buzon/shared/queue/sqs"
	"github.com/buzon-mail/buzon/shared/webhook"
)

const (
	// parallel is the mails of a batch that are at once in work. They wait for the store more than they compute; the memory for
	// their raw bytes is bounded by the pipeline.
	parallel = 8
	// parallelSent is the deliveries to webhooks among them: receivers may be slow, and mail goes on meanwhile.
	parallelSent = 5
	// parseTimeout leaves, of a function's 29 seconds, time to store what came of it.
	parseTimeout = 15 * time.Second
	// visibility is how long SQS hides a message that was given out (template.yaml, six times the function's timeout): an outbox
	// row that is younger is in work, or its message will come again.
	visibility = 180 * time.Second
	// stepTimeout bounds what is told to the queue when the handler's own time is over.
	stepTimeout = 2 * time.Second
	// sweepUploads is how many uploads whose time is over one tick removes.
	sweepUploads = 100
)

// Engines is what the function stands on.
type Engines struct {
	Store  *inboxstore.Store
	Rows   standing.Getter // of the authorization server
	Blobs  Blobs
	Outlet outmail.Outlet
	Queue  queue.Queue
	Source Retrier
	// Secrets opens signing secrets of webhooks; Origin is what webhooks are told of the API.
	Secrets func(context.Context) (webhook.Secrets, error)
	Origin  string
	Close   func() error
}

// Blobs is what the function needs of a blob store.
type Blobs interface {
	pipeline.Blobs
	pipeline.StoredBlobs
}

// Retrier gives a message back to the queue before its time; queue.Source does.
type Retrier interface {
	Retry(ctx context.Context, d queue.Delivery, after time.Duration) error
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
func New(cfg *config.Worker, out io.Writer) (*Function, error) {
	if !cfg.Emulated {
		a, err := deployed.Here(cfg.AWS)
		if err != nil {
			return nil, fmt.Errorf("worker: %w", err)
		}
		a.WebhookKey, a.Origin = cfg.WebhookKey, cfg.PublicURL
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
		return nil, fmt.Errorf("worker: %w", err)
	}
	f, err := newFunction(e, log, clock)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("worker: %w", err), e.Close())
	}
	return f, nil
}

func newFunction(e *Engines, log *slog.Logger, clock func() time.Time) (*Function, error) {
	e.Store = e.Store.Announcing(announce.To(e.Queue, log))
	hooks, err := telling.New(telling.Deps{Store: e.Store, Queue: e.Queue, Secrets: e.Secrets, Logger: log, Clock: clock},
		telling.Options{Origin: e.Origin, Parallel: parallelSent})
	if err != nil {
		return nil, err
	}
	intake, err := pipeline.NewIntake(pipeline.IntakeDeps{
		Recipients: e.Store, Outbox: e.Store, Blobs: e.Blobs, Queue: e.Queue, Logger: log, Clock: clock, Known: e.Store,
	}, pipeline.IntakeOptions{})
	if err != nil {
		return nil, err
	}
	retention, err := pipeline.NewRetention(pipeline.RetentionDeps{Store: e.Store, Blobs: e.Blobs, Logger: log, Clock: clock}, pipeline.RetentionOptions{})
	if err != nil {
		return nil, err
	}
	deps := pipeline.WorkerDeps{
		Outbox: e.Store, Mails: e.Store, Blobs: e.Blobs, Queue: e.Queue, Parse: parsing.Mail(mail.Limits{}), Logger: log, Clock: clock,
		Authenticate: parsing.Senders(nil), SameOrganization: mailauth.SameOrganization, Senders: e.Store,
		Rules: e.Store, Extractor: inbox.NewLocators(), Extractions: e.Store,
		Jobs: e.Store, Reprocess: e.Store, Orphan: retention.Orphan, Authority: authority.New(e.Store, e.Rows, e.Store),
		Importing: &pipeline.Importing{Uploads: e.Store, Inboxes: e.Store, Blobs: e.Blobs, Intake: intake, Cut: parsing.Cut, Dated: parsing.ImportedAt},
		Forward:   &pipeline.Forwarding{Store: e.Store, Outlet: outlet.Outlet{To: e.Outlet}},
	}
	hooks.Join(&deps)
	worker, err := pipeline.NewWorker(deps, pipeline.WorkerOptions{ParseTimeout: parseTimeout})
	if err != nil {
		return nil, err
	}
	due, err := pipeline.NewDue(pipeline.DueDeps{
		Recipients: e.Store, Outbox: e.Store, Holding: e.Store, Queue: e.Queue, Logger: log, Clock: clock,
	}, pipeline.DueOptions{ResendAge: visibility})
	if err != nil {
		return nil, err
	}
	j := &jobs{handle: worker.Handle, source: e.Source, log: log}
	ticks := make(chan struct{}, 1) // Due is for one goroutine at a time
	return &Function{close: e.Close, Triggers: lambdaedge.NewTriggers(lambdaedge.TriggerOptions{
		Message: j.message, Parallel: parallel, Logger: log,
		Tick: func(ctx context.Context, _ lambdaedge.Tick) error {
			ticks <- struct{}{}
			defer func() { <-ticks }()
			_, swept := pipeline.SweepUploads(ctx, e.Store, e.Blobs, clock(), sweepUploads)
			return errors.Join(due.Run(ctx), hooks.Due.Run(ctx), swept, retention.Run(ctx)) // nobody waits for the last
		},
	})}, nil
}

// jobs does what the disposition table says of each message.
type jobs struct {
	handle func(ctx context.Context, id string, attempt int) error
	source Retrier
	log    *slog.Logger
}

// message works on one. An error gives it back: after five times SQS sets it aside.
func (j *jobs) message(ctx context.Context, m lambdaedge.Message) error {
	id, err := sqsqueue.Decode(m.Body)
	if err != nil {
		err = apperr.New(apperr.Invalid, "bad_job", "The queue holds a message that is not for this worker.").Because(err)
	} else {
		err = j.handle(ctx, id, m.Attempt)
	}
	d := pipeline.DispositionOf(err, m.Attempt)
	if err == nil || d.Action == pipeline.Drop {
		return nil
	}
	level := slog.LevelWarn
	if d.Action == pipeline.DeadLetter {
		level = slog.LevelError
	}
	j.log.LogAttrs(ctx, level, "job not finished", slog.String("message", m.ID), slog.String("job", known(id)), slog.Int("attempt", m.Attempt),
		slog.String("kind", apperr.From(err).Kind.String()), slog.String("error", err.Error()))
	switch d.Action {
	case pipeline.Wait: // the outbox has it, and sends it again with its attempts at zero
		return nil
	case pipeline.Retry:
		j.postpone(ctx, m, id, d.After)
	case pipeline.DeadLetter, pipeline.Drop:
	}
	return err
}

// postpone has the message come again sooner than its visibility timeout. A failure costs only the wait.
func (j *jobs) postpone(ctx context.Context, m lambdaedge.Message, id string, after time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTimeout)
	defer cancel()
	if err := j.source.Retry(ctx, queue.Delivery{ID: id, Attempt: m.Attempt, Receipt: m.Receipt}, after); err != nil {
		j.log.LogAttrs(ctx, slog.LevelWarn, "message not postponed", slog.String("message", m.ID))
	}
}

// known keeps an id that is none of ours out of the log: it is whoever's text.
func known(id string) string {
	if len(id) > 64 {
		return ""
	}
	for _, c := range []byte(id) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return ""
		}
	}
	return id
}

package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/queue"
)

// WorkerDeps is what a Worker needs.
type WorkerDeps struct {
	Outbox Outbox
	Mails  Mails
	Blobs  Blobs
	Queue  queue.Queue
	Parse  Parse
	Logger *slog.Logger
	Clock  func() time.Time // time.Now when nil

	Authenticate Authenticate // nil: nothing is checked, so nothing can pass
	// SameOrganization reports whether two domains have one owner; nil: only when they are equal.
	SameOrganization func(a, b string) bool
	Senders          Senders // nil: every inbox is open and nobody is listed
	Rules            Rules   // nil: there are none
	// Extractor and Extractions are needed together; nil: nothing is extracted.
	Extractor   inbox.Extractor
	Extractions Extractions
	// Tell gives out events and sends deliveries to webhooks, by their ids; nil: there are none.
	Tell func(ctx context.Context, id string, attempt int) error

	Jobs      Jobs                  // nil: no jobs are run
	Handlers  map[string]JobHandler // by the kind of the job; a job of a kind that is not here fails
	Authority Authority             // for handlers that send something
	// JobFailed is told of a job before it is stored as failed, perhaps more than once of one job; an error keeps the job. nil: nobody.
	JobFailed func(ctx context.Context, j inbox.Job) error
	Reprocess Reprocessing // nil: no mail is read again
	Importing *Importing   // nil: nothing is imported
	Forward   *Forwarding  // nil: nothing is sent on
	// Orphan drops a mail whose inbox was purged while it waited; nil: it is kept.
	Orphan func(ctx context.Context, e inbox.Email) error
	// Notify tells of a mail that was read again and whose job wants it told (inbox.ReprocessParams), perhaps more than once of
	// one job. nil: there is nobody to tell.
	Notify func(ctx context.Context, e inbox.Email, job string) error
}

// WorkerOptions bound the work. A zero field takes the default.
type WorkerOptions struct {
	MaxAttempts  int           // tries that kill their worker, or fail in a way of their own, before a mail is given up; 5
	ParseTimeout time.Duration // for one mail; 30 s
	Memory       int64         // bytes of raw mail that are read at once, over all goroutines; 64 MiB
	MaxBody      int           // bytes of a body's JSON that fit in a row, beyond it goes to a blob; 100 KB
	MaxFiles     int           // attachments of one mail; 500
}

// Worker takes ids off the queue and brings each mail to its end. It may run in many goroutines and processes at once, also
// on the same id.
type Worker struct {
	deps   WorkerDeps
	opts   WorkerOptions
	memory *semaphore.Weighted
	inWork sync.Map // ids of the mails and jobs that goroutines of this process are at

	handlers map[string]JobHandler
	rules    ruleSets
}

// NewWorker checks the dependencies.
func NewWorker(deps WorkerDeps, opts WorkerOptions) (*Worker, error) {
	if deps.Outbox == nil || deps.Mails == nil || deps.Blobs == nil || deps.Queue == nil || deps.Parse == nil || deps.Logger == nil {
		return nil, errors.New("pipeline: Outbox, Mails, Blobs, Queue, Parse and Logger are required")
	}
	if (deps.Extractor == nil) != (deps.Extractions == nil) {
		return nil, errors.New("pipeline: Extractor and Extractions are needed together")
	}
	if deps.SameOrganization == nil {
		deps.SameOrganization = strings.EqualFold
	}
	if deps.Clock == nil {
		deps.Clock = time.Now
	}
	if opts.MaxAttempts <= 0 {
		opts.MaxAttempts = 5
	}
	if opts.ParseTimeout <= 0 {
		opts.ParseTimeout = 30 * time.Second
	}
	if opts.Memory <= 0 {
		opts.Memory = 64 << 20
	}
	if opts.MaxBody <= 0 {
		opts.MaxBody = 100_000
	}
	if opts.MaxFiles <= 0 {
		opts.MaxFiles = 500
	}
	w := &Worker{deps: deps, opts: opts, memory: semaphore.NewWeighted(opts.Memory), handlers: maps.Clone(deps.Handlers),
		rules: ruleSets{ready: map[string]readyRules{}}}
	if w.handlers == nil {
		w.handlers = map[string]JobHandler{}
	}
	if deps.Reprocess != nil {
		w.handlers[inbox.KindReprocess] = JobFunc(w.reprocess)
	}
	if deps.Extractor != nil {
		w.handlers[inbox.KindExtract] = JobFunc(w.extractions)
	}
	if deps.Importing != nil {
		w.handlers[inbox.KindImport] = JobFunc(w.importUpload)
	}
	if deps.Forward != nil {
		w.handlers[inbox.KindForward] = JobFunc(w.forward)
	}
	return w, nil
}

// Handle does what the id asks for: an intake is fanned out, a mail is processed, a job is done. attempt is how often the queue has given
// the message out, from 1; it spaces retries and stands in the log. Nil means done, also when there was nothing left to do.
// DispositionOf says what to do about an error.
func (w *Worker) Handle(ctx context.Context, id string, attempt int) (err error) {
	defer func() {
		if p := recover(); p != nil {
			w.deps.Logger.Error("pipeline: job panicked", slog.String("job", id), slog.String("stack", string(debug.Stack())))
			err = fmt.Errorf("panic in job %s", id)
		}
	}()
	switch {
	case strings.HasPrefix(id, prefixIntake):
		return w.intake(ctx, id, attempt)
	case strings.HasPrefix(id, prefixEmail):
		return w.mail(ctx, id, attempt, origin{})
	case w.deps.Tell != nil && (strings.HasPrefix(id, prefixEvent) || strings.HasPrefix(id, prefixDelivery)):
		return w.deps.Tell(ctx, id, attempt)
	case strings.HasPrefix(id, prefixJob):
		return w.job(ctx, id, attempt)
	}
	return badJob()
}

func badJob() error {
	return apperr.New(apperr.Invalid, "bad_job", "The queue holds a message that is not for this worker.")
}

// origin is what a run knows of its mail beforehand.
type origin struct {
	sole bool // it is the only mail of its intake, straight from there: the first run
	own  bool // nobody else has, or will have, the same raw bytes' key
}

// mail runs the stages over one mail.
func (w *Worker) mail(ctx context.Context, id string, attempt int, from origin) error {
	// Two runs over one mail are safe, and a waste: the other of this process will see to it.
	if _, busy := w.inWork.LoadOrStore(id, struct{}{}); busy {
		return apperr.New(apperr.Unavailable, "in_work", "The mail is being processed.")
	}
	defer w.inWork.Delete(id)
	began := w.deps.Clock()
	email, err := w.deps.Mails.ClaimMail(ctx, id)
	if apperr.Is(err, apperr.NotFound) { // finished by another run, which may have died before it could clean up
		r := &run{w: w, email: inbox.Email{ID: id}, origin: from}
		_ = r.lookBack(ctx)
		r.wipe(ctx, nil)
		return nil
	}
	if err != nil {
		return wrap("claim", id, err)
	}
	r := &run{w: w, email: email, attempt: attempt, origin: from, had: email.Labels}
	err = r.stages(ctx)
	r.wipe(ctx, err)
	if err != nil {
		return wrap(r.stage, id, err)
	}
	w.deps.Logger.Info("pipeline: mail",
		slog.String("email", id), slog.String("inbox", email.Inbox), slog.String("workspace", email.Workspace),
		slog.String("outcome", r.outcome()), slog.String("reason", r.email.Reason), slog.Int64("bytes", email.Size),
		slog.Int("attempt", attempt), slog.Int64("us", w.deps.Clock().Sub(began).Microseconds()))
	return nil
}

// run is one mail on its way through the stages. Each stage adds to email or reading; everything it writes outside has a
// key that follows from the mail's id, so that a second run writes the same again.
type run struct {
	w       *Worker
	email   inbox.Email
	had     []string // labels of the mail before this run
	attempt int
	origin
	tries  int    // traces of tries, with this one's once it is marked
	marked bool   // this run has left one
	stage  string // where it is, for the error

	raw         []byte   // until the senders stage is over
	reading     *Reading // nil: not read
	key         string   // of Duplicate
	duplicateOf string   // the mail is an exact copy and will be dropped
	orphan      bool     // its inbox is gone for good
	author      string   // the one address that the checks speak of
	judged      inbox.Judgement
	template    string       // slug of the inbox's default one
	wishes      []inbox.Wish // of rules
	body        *inbox.Body
	attachments []inbox.Attachment
	seen        inbox.Email // before fit; of a second reading
}

// stages are in the order in which each needs what the one before it found. A stage that finds the mail unreadable calls fail; those after it have nothing
// to do then, and finish stores what there is.
func (r *run) stages(ctx context.Context) error {
	r.stage = "look back"
	if err := r.lookBack(ctx); err != nil {
		return err
	}
	r.stage = "reserve"
	release, err := r.reserve(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := r.through(ctx, []stage{
		{"mark", (*run).mark},
		{"load", (*run).load},
		{"parse", (*run).parse},
		{"dedupe", (*run).dedupe},
		{"flags", (*run).flags},
		{"senders", (*run).senders},
		{"body", (*run).bodies},
		{"attachments", (*run).files},
		{"rules", (*run).byRules},
		{"extract", (*run).extract},
		{"fit", (*run).fit},
		{"finish", (*run).finish},
	}, func() bool { return r.duplicateOf != "" || r.orphan }); err != nil {
		return err
	}
	if r.orphan && r.duplicateOf == "" {
		return r.w.deps.Orphan(ctx, r.email)
	}
	return nil
}

// stage is a step on the way of a mail.
type stage struct {
	name string
	do   func(*run, context.Context) error
}

// through runs stages until one of them ends the way.
func (r *run) through(ctx context.Context, list []stage, ended func() bool) error {
	for _, s := range list {
		r.stage = s.name
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.do(r, ctx); err != nil {
			return err
		}
		if ended() {
			return nil
		}
	}
	return nil
}

// The reasons of a failed mail.
const (
	reasonAttempts   = "too_many_attempts" // workers died over it
	reasonRawMissing = "raw_missing"
	reasonRawDamaged = "raw_damaged"
	reasonUnreadable = "unreadable"
	reasonTimeout    = "parse_timeout"
	reasonPanic      = "parse_panic"
	reasonRefused    = "store_refused" // the store does not take the row, whatever is cut from it
)

// fail marks the mail: it is kept with its raw bytes and is never tried again.
func (r *run) fail(reason string) {
	r.email.Status, r.email.Reason = inbox.StatusFailed, reason
	r.reading = nil
}

func (r *run) failed() bool { return r.email.Status == inbox.StatusFailed }

func (r *run) outcome() string {
	if r.duplicateOf != "" {
		return "duplicate"
	}
	if r.orphan {
		return "purged"
	}
	return string(r.email.Status)
}

func (r *run) warn(code, detail string) {
	r.email.Warnings = append(r.email.Warnings, inbox.Warning{Code: code, Detail: detail})
}

// wrap names the step and the id, and makes an ended context a reason to come again.
func wrap(step, id string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return apperr.New(apperr.Unavailable, "interrupted", "The work was interrupted.").Because(fmt.Errorf("%s %s: %w", step, id, err))
	}
	return fmt.Errorf("%s %s: %w", step, id, err)
}

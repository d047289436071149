package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/queue"
)

// RunnerDeps is what a Runner needs.
type RunnerDeps struct {
	Worker *Worker
	Source queue.Source
	Queue  queue.Queue
	Outbox Outbox
	Logger *slog.Logger
	Clock  func() time.Time // time.Now when nil
	Wake   <-chan struct{}  // the queue's, if it has one; without it an idle runner looks each second
}

// RunnerOptions bound the runner. A zero field takes the default.
type RunnerOptions struct {
	Workers     int           // mails at once; 16, or GOMAXPROCS if that is more: they wait for the disk and share its flushes
	Lease       time.Duration // for a batch; 10 minutes, which is far over what its slowest mails take
	Idle        time.Duration // between looks at an empty queue; 1 s, with a Wake 5 s
	Grace       time.Duration // for the mails in work when Run is to end; 10 s
	ResendEvery time.Duration // 30 s
	ResendLimit int           // outbox rows of one look; 500
}

// resendAge is how old an outbox row must be to be sent again: younger ones are in work, or are being accepted.
const resendAge = 30 * time.Second

// resendAgain is how long an id that was sent again is left alone while its message may be in the queue still.
const resendAgain = 10 * time.Minute

// Runner takes messages off a queue and gives them to a Worker, many at once. It also sends again what the outbox holds and
// no message names (any more), so a lost message costs half a minute and not a mail.
type Runner struct {
	deps RunnerDeps
	opts RunnerOptions
}

// NewRunner checks the dependencies.
func NewRunner(deps RunnerDeps, opts RunnerOptions) (*Runner, error) {
	if deps.Worker == nil || deps.Source == nil || deps.Queue == nil || deps.Outbox == nil || deps.Logger == nil {
		return nil, errors.New("pipeline: Worker, Source, Queue, Outbox and Logger are required")
	}
	if deps.Clock == nil {
		deps.Clock = time.Now
	}
	if opts.Workers <= 0 {
		opts.Workers = max(16, runtime.GOMAXPROCS(0))
	}
	if opts.Lease <= 0 {
		opts.Lease = 10 * time.Minute
	}
	if opts.Idle <= 0 {
		opts.Idle = time.Second
		if deps.Wake != nil {
			opts.Idle = 5 * time.Second
		}
	}
	if opts.Grace <= 0 {
		opts.Grace = 10 * time.Second
	}
	if opts.ResendEvery <= 0 {
		opts.ResendEvery = 30 * time.Second
	}
	if opts.ResendLimit <= 0 {
		opts.ResendLimit = 500
	}
	return &Runner{deps: deps, opts: opts}, nil
}

// result is a message that was worked on.
type result struct {
	delivery queue.Delivery
	err      error
}

// shift is one Run. Its fields belong to the goroutine of Run alone.
type shift struct {
	*Runner
	jobs     chan queue.Delivery
	results  chan result
	inflight int
	done     []queue.Delivery // to be ended in one batch
	empty    bool             // the queue was, at the last look
	again    *resender
}

func (r *Runner) shift(buffer int) *shift {
	return &shift{
		Runner: r, jobs: make(chan queue.Delivery, buffer), results: make(chan result, buffer),
		again: &resender{
			outbox: r.deps.Outbox, queue: r.deps.Queue, clock: r.deps.Clock, age: resendAge, limit: r.opts.ResendLimit,
			resent: map[string]time.Time{},
		},
	}
}

// Run works until ctx ends. Then it takes nothing new, gives the mails in work their grace, interrupts the rest, and returns
// when the last goroutine is gone. What was interrupted is in the outbox still. Run may be called once at a time.
func (r *Runner) Run(ctx context.Context) error {
	s := r.shift(2 * (queue.MaxBatch + r.opts.Workers))
	// The work has a context of its own: ctx asks for the end, this one forces it.
	work, interrupt := context.WithCancel(context.WithoutCancel(ctx))
	defer interrupt()
	var team sync.WaitGroup
	for range r.opts.Workers {
		team.Go(func() { s.serve(work) })
	}
	defer team.Wait()
	defer close(s.jobs)

	s.loop(ctx, work)
	grace := time.NewTimer(r.opts.Grace)
	defer grace.Stop()
	expired := grace.C
	for s.inflight > 0 {
		select {
		case res := <-s.results:
			s.settle(work, res)
		case <-expired:
			interrupt()
			expired = nil
		}
	}
	s.flush(work)
	return nil
}

// serve works on messages until there are no more.
func (s *shift) serve(ctx context.Context) {
	for d := range s.jobs {
		var err error
		if err = ctx.Err(); err == nil {
			err = s.deps.Worker.Handle(ctx, d.ID, d.Attempt)
		} else {
			err = wrap("start", d.ID, err)
		}
		s.results <- result{d, err}
	}
}

// loop hands out work until ctx ends.
func (s *shift) loop(ctx, work context.Context) {
	idle := time.NewTicker(s.opts.Idle)
	defer idle.Stop()
	again := time.NewTicker(s.opts.ResendEvery)
	defer again.Stop()
	s.resend(ctx)
	for ctx.Err() == nil {
		// A batch is fetched before the last one is all done, so that one slow mail holds up nobody.
		if !s.empty && s.inflight <= s.opts.Workers {
			s.receive(ctx)
		}
		if s.inflight == 0 || s.empty && len(s.results) == 0 {
			s.flush(work)
		}
		select {
		case <-ctx.Done():
		case res := <-s.results:
			s.settle(work, res)
		case <-s.deps.Wake:
			s.empty = false
		case <-idle.C:
			if s.empty && s.again.more && s.inflight == 0 {
				s.resend(ctx)
			}
			s.empty = false
		case <-again.C:
			s.resend(ctx)
		}
	}
}

// receive leases a batch.
func (s *shift) receive(ctx context.Context) {
	batch, err := s.deps.Source.Receive(ctx, queue.MaxBatch, s.opts.Lease)
	if err != nil && ctx.Err() == nil {
		s.deps.Logger.Warn("pipeline: queue can't be read", slog.String("error", err.Error()))
	}
	s.empty = len(batch) == 0 // after an error too: the idle ticker is the pause
	for _, d := range batch {
		s.inflight++
		s.jobs <- d
	}
}

// settle does what the disposition table says.
func (s *shift) settle(ctx context.Context, res result) {
	s.inflight--
	d := DispositionOf(res.err, res.delivery.Attempt)
	if res.err != nil && d.Action != Drop {
		s.deps.Logger.Warn("pipeline: job not finished", slog.String("job", res.delivery.ID), slog.Int("attempt", res.delivery.Attempt),
			slog.String("kind", apperr.From(res.err).Kind.String()), slog.String("error", res.err.Error()))
	}
	switch d.Action {
	case Retry:
		err := bounded(ctx, func(ctx context.Context) error { return s.deps.Source.Retry(ctx, res.delivery, d.After) })
		if err != nil { // the lease ends by itself
			s.deps.Logger.Warn("pipeline: message not given back", slog.String("job", res.delivery.ID))
		}
		return
	case DeadLetter:
		s.deps.Logger.Error("pipeline: job needs a person", slog.String("job", res.delivery.ID))
	case Wait:
		s.again.forget(res.delivery.ID)
	case Drop:
	}
	if s.done = append(s.done, res.delivery); len(s.done) >= queue.MaxBatch {
		s.flush(ctx)
	}
}

// flush ends the messages that are done. A failure costs a second delivery, which finds nothing to do.
func (s *shift) flush(ctx context.Context) {
	if len(s.done) == 0 {
		return
	}
	if err := bounded(ctx, func(ctx context.Context) error { return s.deps.Source.Done(ctx, s.done...) }); err != nil {
		s.deps.Logger.Warn("pipeline: messages not ended", slog.Int("count", len(s.done)))
	}
	s.done = s.done[:0]
}

// resend gives the queue what the outbox holds and no message names.
func (s *shift) resend(ctx context.Context) {
	sent, err := s.again.resend(ctx)
	if err != nil && ctx.Err() == nil {
		s.deps.Logger.Warn("pipeline: outbox not sent again", slog.String("error", err.Error()))
	}
	if sent > 0 {
		s.empty = false
	}
}

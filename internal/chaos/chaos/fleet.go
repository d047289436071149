package chaos

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"

	"github.com/buzon-mail/buzon/shared/app/authority"
	"github.com/buzon-mail/buzon/shared/app/web"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/mail"
	"github.com/buzon-mail/buzon/shared/mailauth"
	"github.com/buzon-mail/buzon/shared/pipeline"
	"github.com/buzon-mail/buzon/shared/pipeline/parsing"
)

// instance is one process of the service: it takes mail, processes it and serves calls, all over wrapped engines of its own.
type instance struct {
	*life
	intake *pipeline.Intake
	api    http.Handler
	stop   context.CancelFunc
	ended  chan struct{}
}

func start(w *world, sky *weather) (*instance, error) {
	l := &life{}
	engine, shelf, line := rows{w.engine, sky, l}, blobs{w.blobs, sky, l}, jobs{w.queue, sky, l}
	log := slog.New(slog.DiscardHandler)
	s, err := inboxstore.New(engine, w.clock.now)
	if err != nil {
		return nil, err
	}
	in := &instance{life: l, ended: make(chan struct{})}
	in.intake, err = pipeline.NewIntake(pipeline.IntakeDeps{
		Recipients: s, Outbox: s, Blobs: shelf, Queue: line, Logger: log, Clock: w.clock.now, Senders: s, Stored: shelf, Holding: s,
	}, pipeline.IntakeOptions{})
	if err != nil {
		return nil, err
	}
	worker, err := pipeline.NewWorker(pipeline.WorkerDeps{
		Outbox: s, Mails: s, Blobs: shelf, Queue: line, Parse: parsing.Mail(mail.Limits{}), Logger: log, Clock: w.clock.now,
		Authenticate: parsing.Senders(nil), SameOrganization: mailauth.SameOrganization, Senders: s,
		Jobs: s, Reprocess: s, Authority: authority.New(s, engine, nil),
	}, pipeline.WorkerOptions{})
	if err != nil {
		return nil, err
	}
	runner, err := pipeline.NewRunner(pipeline.RunnerDeps{
		Worker: worker, Source: line, Queue: line, Outbox: s, Logger: log, Clock: w.clock.now, Wake: w.queue.Wake(),
	}, pipeline.RunnerOptions{Workers: 4, Lease: 5 * time.Minute, Idle: 5 * time.Millisecond, Grace: time.Millisecond, ResendEvery: 50 * time.Millisecond})
	if err != nil {
		return nil, err
	}
	in.api, err = web.New(web.Deps{
		Store: s, Blobs: web.Blobs{Opener: shelf}, Downloads: web.Downloads{Signer: w.blobs}, Serve: w.blobs.Handler(), Queue: line,
		Engine: engine, Seal: w.seal, Permanent: w.seal, Keys: w.keys, Logger: log, Clock: w.clock.now, Random: rand.Reader,
	}, web.Options{Origin: origin, MaxWaits: 10, Version: web.Unreleased})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	in.stop = stop
	go func() {
		defer close(in.ended)
		_ = runner.Run(ctx) // what it could not do is in the outbox
	}()
	return in, nil
}

// end kills the process: from now on nothing that it does has an effect. It returns when its goroutines are gone.
func (in *instance) end() {
	in.over.Store(true)
	in.stop()
	<-in.ended
}

// fleet is the instances that live.
type fleet struct {
	world *world
	sky   *weather
	kills atomic.Int64

	mu   sync.RWMutex
	live []*instance // guarded by mu
}

func newFleet(w *world, sky *weather, n int) (*fleet, error) {
	f := &fleet{world: w, sky: sky}
	for range n {
		in, err := start(w, sky)
		if err != nil {
			return nil, errors.Join(err, f.stop())
		}
		f.live = append(f.live, in)
	}
	return f, nil
}

// any is one of them.
func (f *fleet) any(rng *mathrand.Rand) *instance {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.live[rng.IntN(len(f.live))]
}

// kill ends one after the other, at any moment, and starts another in its place, until ctx ends.
func (f *fleet) kill(ctx context.Context, rng *mathrand.Rand, wrong *trouble) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(20+rng.IntN(100)) * time.Millisecond):
		}
		next, err := start(f.world, f.sky)
		if err != nil {
			wrong.add("start an instance: %w", err)
			return
		}
		i := rng.IntN(instances)
		f.mu.Lock()
		old := f.live[i]
		f.live[i] = next
		f.mu.Unlock()
		old.end()
		f.kills.Add(1)
	}
}

func (f *fleet) stop() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, in := range f.live {
		in.stop()
		select {
		case <-in.ended:
		case <-time.After(30 * time.Second):
			return fmt.Errorf("an instance does not end")
		}
	}
	return nil
}

// RoundTrip implements http.RoundTripper: a request to the instance, without a network. A process that was killed before it could
// answer is a connection that broke.
func (in *instance) RoundTrip(r *http.Request) (*http.Response, error) {
	rec := httptest.NewRecorder()
	in.api.ServeHTTP(rec, r)
	if in.over.Load() {
		return nil, errDead
	}
	return rec.Result(), nil
}

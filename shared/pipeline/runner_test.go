package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/queue"
)

// run starts a runner over the bench and returns how to stop it.
func (b *bench) run(t *testing.T, opts RunnerOptions) (stop func()) {
	t.Helper()
	r, err := NewRunner(RunnerDeps{
		Worker: b.worker, Source: b.queue, Queue: b.queue, Outbox: b.store, Logger: slog.New(slog.DiscardHandler),
		Clock: b.clock.Now, Wake: b.queue.wake,
	}, opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// until waits for a condition that other goroutines bring about.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

func TestRunner(t *testing.T) {
	before := runtime.NumGoroutine()
	b := newBench(t, WorkerOptions{})
	stop := b.run(t, RunnerOptions{Workers: 3})
	var ids []string
	for i := range 100 {
		for _, d := range b.accept(t, fmt.Sprintf("Subject: %d\n\n", i), "agent", "second").Recipients {
			ids = append(ids, d.Email)
		}
	}
	until(t, "all mails are processed and all messages ended", func() bool { return b.store.left() == 0 && b.queue.size() == 0 })
	for _, id := range ids {
		if e := b.store.outcome(id).Email; e.Status != inbox.StatusProcessed {
			t.Fatalf("mail %s is %q", id, e.Status)
		}
	}
	stop()
	until(t, "every goroutine is gone", func() bool { return runtime.NumGoroutine() <= before })
}

// A message that was lost costs half a minute, not a mail; and what was sent again is not sent again at once.
func TestRunnerResendsTheOutbox(t *testing.T) {
	b := newBench(t, WorkerOptions{})
	b.queue.fail = func(string) error { return errors.New("away") }
	old := b.accept(t, sample, "agent").Recipients[0].Email
	b.queue.fail = nil
	b.clock.add(resendAge)
	young := b.accept(t, sample, "second")
	b.queue.rows = nil
	b.clock.add(time.Second)
	stop := b.run(t, RunnerOptions{ResendEvery: time.Hour})
	until(t, "the old row is processed", func() bool { return b.store.outcome(old).Email.Status == inbox.StatusProcessed })
	stop()
	if e := b.store.outcome(young.Recipients[0].Email).Email; e.Status != "" {
		t.Errorf("the young row was sent again: %s", e.Status)
	}
}

func TestResendLeavesAloneWhatItSent(t *testing.T) {
	b := newBench(t, WorkerOptions{})
	r, err := NewRunner(RunnerDeps{Worker: b.worker, Source: b.queue, Queue: b.queue, Outbox: b.store, Logger: slog.New(slog.DiscardHandler), Clock: b.clock.Now}, RunnerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	id := b.accept(t, sample, "agent").ID
	s := r.shift(1)
	count := func(want int, why string) {
		t.Helper()
		s.resend(t.Context())
		if n := len(b.queue.sent); n != want {
			t.Errorf("%s: %d messages, want %d", why, n, want)
		}
	}
	count(1, "young")
	b.clock.add(resendAge + time.Second)
	count(2, "old")
	b.clock.add(resendAge)
	count(2, "sent a moment ago")
	s.settle(t.Context(), result{queue.Delivery{ID: id, Receipt: "x"}, apperr.New(apperr.Unavailable, "", "")})
	count(3, "given up to wait")
	b.clock.add(resendAgain)
	count(4, "sent long ago")
}

// An outage uses up no mail's attempts; a failure that may be the mail's own does, and comes to an end.
func TestRunnerFailures(t *testing.T) {
	t.Run("outage", func(t *testing.T) {
		b := newBench(t, WorkerOptions{})
		mail := b.accept(t, sample, "agent").Recipients[0].Email
		var tries atomic.Int32
		b.blobs.setFail(func(string) error {
			if tries.Add(1) <= 20 {
				return apperr.New(apperr.Unavailable, "", "")
			}
			return nil
		})
		b.run(t, RunnerOptions{ResendEvery: time.Millisecond})
		until(t, "the mail is processed after the outage", func() bool {
			b.clock.add(resendAge + time.Second)
			return b.store.outcome(mail).Email.Status != ""
		})
		if e := b.store.outcome(mail).Email; e.Status != inbox.StatusProcessed {
			t.Errorf("mail %s %s", e.Status, e.Reason)
		}
	})
	t.Run("its own", func(t *testing.T) {
		var failures atomic.Int32
		b := newBench(t, WorkerOptions{})
		mail := b.accept(t, sample, "agent").Recipients[0].Email
		b.store.setFail(func(m string) error {
			if failures.Load() < 3 && m == "Duplicate" {
				failures.Add(1)
				return errors.New("odd")
			}
			return nil
		})
		b.worker.opts.MaxAttempts = 3
		b.run(t, RunnerOptions{ResendEvery: time.Hour, Idle: time.Millisecond})
		until(t, "the mail is given up", func() bool { b.clock.add(time.Second); return b.store.outcome(mail).Email.Status != "" })
		if e := b.store.outcome(mail).Email; e.Reason != reasonAttempts {
			t.Errorf("mail %s %s", e.Status, e.Reason)
		}
	})
}

// Stop gives the mails in work their grace, then interrupts them, and they are in the outbox still.
func TestRunnerStops(t *testing.T) {
	for _, grace := range []time.Duration{time.Nanosecond, time.Hour} {
		t.Run(fmt.Sprint(grace), func(t *testing.T) {
			before := runtime.NumGoroutine()
			b := newBench(t, WorkerOptions{ParseTimeout: time.Hour})
			started, release := make(chan struct{}), make(chan struct{})
			b.parse = func(ctx context.Context, raw []byte) (Reading, error) {
				close(started)
				select {
				case <-release:
					return plain(ctx, raw)
				case <-ctx.Done():
					return Reading{}, ctx.Err()
				}
			}
			mail := b.accept(t, sample, "agent").Recipients[0].Email
			stop := b.run(t, RunnerOptions{Workers: 1, Grace: grace})
			<-started
			if grace == time.Hour {
				time.AfterFunc(10*time.Millisecond, func() { close(release) })
			}
			stop()
			e := b.store.outcome(mail).Email
			if want := grace == time.Hour; (e.Status == inbox.StatusProcessed) != want || (b.store.left() == 0) != want {
				t.Errorf("mail %q, %d in the outbox", e.Status, b.store.left())
			}
			until(t, "every goroutine is gone", func() bool { return runtime.NumGoroutine() <= before })
		})
	}
}

// An idle runner waits for the queue's wake-up.
func TestRunnerIsWoken(t *testing.T) {
	b := newBench(t, WorkerOptions{})
	b.run(t, RunnerOptions{Idle: time.Hour, ResendEvery: time.Hour})
	for i := range 3 {
		mail := b.accept(t, strings.Repeat("x", i+1), "agent").Recipients[0].Email
		until(t, "the mail is processed", func() bool { return b.store.outcome(mail).Email.Status == inbox.StatusProcessed })
	}
}

// Package queuetest is what a queue must do, as a suite that every queue runs from its own test and none may skip a case of. It
// asks no more than SQS promises: a Receive may return less than there is, so the suite asks again.
package queuetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/queue"
)

// Harness is an empty queue under test, with the default number of attempts, and the world around it.
type Harness struct {
	Queue  queue.Queue
	Source queue.Source
	Dead   queue.DeadLetters
	Pass   func(d time.Duration) // lets time go by
}

// Run runs the whole contract; newHarness is called for each case.
func Run(t *testing.T, newHarness func(t *testing.T) Harness) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(*suite)
	}{
		{"an empty queue", func(s *suite) { s.nothing() }},
		{"sent, received, done", sentReceivedDone},
		{"many at once", manyAtOnce},
		{"delays", delays},
		{"a lease hides the message, and its end gives it back", leaseEnds},
		{"a consumer that was killed loses nothing", killedConsumer},
		{"retry", retries},
		{"retry at once", func(s *suite) {
			s.send("a")
			s.ok(s.Source.Retry(s.ctx(), s.one("a", 1), 0))
			s.one("a", 2)
		}},
		{"a stale receipt can't end the next lease", staleDone},
		{"a stale receipt can't move the next lease", staleRetry},
		{"a receipt outlives its lease while nobody else has the message", func(s *suite) {
			s.send("a")
			d := s.one("a", 1)
			s.Pass(lease)
			s.ok(s.Source.Done(s.ctx(), d))
			s.Pass(2 * lease)
			s.nothing()
		}},
		{"done is repeatable", func(s *suite) {
			s.send("a", "b")
			got := s.receive(2)
			s.ok(s.Source.Done(s.ctx(), got...))
			s.ok(s.Source.Done(s.ctx(), got...))
			s.ok(s.Source.Done(s.ctx(), got[0], got[0]))
			s.ok(s.Source.Retry(s.ctx(), got[0], 0)) // too late, and no error
			s.Pass(2 * lease)
			s.nothing()
		}},
		{"an id sent twice", func(s *suite) {
			s.send("a", "a")
			s.send("a")
			got := s.receiveWhile()
			s.check(len(got) >= 1 && len(got) <= 3, "%d deliveries of one id sent three times", len(got))
			s.ok(s.Source.Done(s.ctx(), got...))
			s.send("a") // and again, once it was done
			s.one("a", 1)
		}},
		{"after five attempts a message is dead", dead},
		{"a dead message is driven again", redrive},
		{"dead messages are paged", deadPages},
		{"two consumers never hold one lease", twoConsumers},
		{"bad arguments", badArguments},
		{"a done context changes nothing", doneContext},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(&suite{t, newHarness(t)}) })
	}
}

const lease = 30 * time.Second

type suite struct {
	*testing.T
	Harness
}

func (s *suite) ctx() context.Context { return s.T.Context() }

func (s *suite) check(ok bool, format string, a ...any) {
	s.Helper()
	if !ok {
		s.Fatalf(format, a...)
	}
}

func (s *suite) ok(err error) { s.Helper(); s.check(err == nil, "err = %v", err) }
func (s *suite) is(err, target error) {
	s.Helper()
	s.check(errors.Is(err, target), "err = %v, want %v", err, target)
}

func (s *suite) send(ids ...string) {
	s.Helper()
	messages := make([]queue.Message, 0, len(ids))
	for _, id := range ids {
		messages = append(messages, queue.Message{ID: id})
	}
	s.ok(s.Queue.Send(s.ctx(), messages...))
}

// receive asks until it has n messages, and insists that there are no more of them in one answer.
func (s *suite) receive(n int) []queue.Delivery {
	s.Helper()
	var all []queue.Delivery
	for range 100 {
		got, err := s.Source.Receive(s.ctx(), n-len(all), lease)
		s.ok(err)
		if all = append(all, got...); len(all) >= n {
			break
		}
	}
	s.check(len(all) == n, "received %v, want %d messages", all, n)
	return all
}

// receiveWhile takes what comes until nothing does.
func (s *suite) receiveWhile() []queue.Delivery {
	s.Helper()
	var all []queue.Delivery
	for quiet := 0; quiet < 5; {
		got, err := s.Source.Receive(s.ctx(), 10, lease)
		s.ok(err)
		if len(got) == 0 {
			quiet++
		}
		all = append(all, got...)
	}
	return all
}

func (s *suite) nothing() {
	s.Helper()
	got := s.receiveWhile()
	s.check(len(got) == 0, "received %v, want nothing", got)
}

func (s *suite) one(id string, attempt int) queue.Delivery {
	s.Helper()
	d := s.receive(1)[0]
	s.check(d.ID == id && d.Attempt == attempt && d.Receipt != "", "received %+v, want %s, attempt %d", d, id, attempt)
	return d
}

func ids(deliveries []queue.Delivery) []string {
	out := make([]string, 0, len(deliveries))
	for _, d := range deliveries {
		out = append(out, d.ID)
	}
	slices.Sort(out)
	return out
}

func sentReceivedDone(s *suite) {
	long := strings.Repeat("\U0001F4EC", queue.MaxID/4)
	for _, id := range []string{"eml_01J", "a#b|c", " ", "\u00f1", `{"id":1}`, long} {
		s.send(id)
		d := s.one(id, 1)
		s.nothing()
		s.ok(s.Source.Done(s.ctx(), d))
		s.Pass(2 * lease)
		s.nothing()
	}
}

func manyAtOnce(s *suite) {
	var want []string
	for batch := range 3 {
		var messages []string
		for i := range queue.MaxBatch {
			messages = append(messages, fmt.Sprintf("m%d.%02d", batch, i))
		}
		s.send(messages...)
		want = append(want, messages...)
	}
	got, err := s.Source.Receive(s.ctx(), queue.MaxBatch, lease)
	s.ok(err)
	s.check(len(got) <= queue.MaxBatch, "received %d of at most %d", len(got), queue.MaxBatch)
	got = append(got, s.receiveWhile()...)
	slices.Sort(want)
	s.check(slices.Equal(ids(got), want), "got %v", ids(got))
	for batch := range slices.Chunk(got, queue.MaxBatch) {
		s.ok(s.Source.Done(s.ctx(), batch...))
	}
	s.Pass(2 * lease)
	s.nothing()
}

func delays(s *suite) {
	s.ok(s.Queue.Send(s.ctx(), queue.Message{ID: "later", Delay: 10 * time.Second}, queue.Message{ID: "longest", Delay: queue.MaxDelay}))
	s.nothing()
	s.Pass(9 * time.Second)
	s.nothing()
	s.send("now")
	s.ok(s.Source.Done(s.ctx(), s.one("now", 1)))
	s.Pass(time.Second + time.Millisecond)
	s.ok(s.Source.Done(s.ctx(), s.one("later", 1)))
	s.Pass(queue.MaxDelay)
	s.one("longest", 1)
}

func leaseEnds(s *suite) {
	s.send("a")
	s.one("a", 1)
	s.nothing()
	s.Pass(lease - time.Second)
	s.nothing()
	s.Pass(time.Second + time.Millisecond)
	s.ok(s.Source.Done(s.ctx(), s.one("a", 2)))
	s.Pass(2 * lease)
	s.nothing()
}

func killedConsumer(s *suite) {
	s.send("a", "b", "c")
	first := s.receive(3) // and then its process dies, having finished one
	s.ok(s.Source.Done(s.ctx(), first[1]))
	s.Pass(lease + time.Millisecond)
	again := s.receiveWhile()
	s.check(slices.Equal(ids(again), ids([]queue.Delivery{first[0], first[2]})), "came back: %v", ids(again))
	for _, d := range again {
		s.check(d.Attempt == 2, "attempt %d, want 2", d.Attempt)
	}
}

func retries(s *suite) {
	s.send("a")
	d := s.one("a", 1)
	s.ok(s.Source.Retry(s.ctx(), d, 5*time.Second)) // sooner than the lease
	s.nothing()
	s.Pass(5*time.Second + time.Millisecond)
	d = s.one("a", 2)
	s.ok(s.Source.Retry(s.ctx(), d, time.Hour)) // later than the lease
	s.Pass(2 * lease)
	s.nothing()
	s.Pass(time.Hour)
	s.one("a", 3)
}

func staleDone(s *suite) {
	s.send("a")
	stale := s.one("a", 1)
	s.Pass(lease + time.Millisecond)
	held := s.one("a", 2)
	s.ok(s.Source.Done(s.ctx(), stale))
	s.Pass(lease + time.Millisecond)
	s.one("a", 3) // it was not ended
	s.ok(s.Source.Done(s.ctx(), held))

	// Given back and taken anew within one moment: the receipts must differ all the same.
	s.send("b")
	first := s.one("b", 1)
	s.ok(s.Source.Retry(s.ctx(), first, 0))
	second := s.one("b", 2)
	s.check(first.Receipt != second.Receipt, "two leases share receipt %q", first.Receipt)
	s.ok(s.Source.Done(s.ctx(), first))
	s.Pass(lease + time.Millisecond)
	s.check(slices.Contains(ids(s.receiveWhile()), "b"), "a stale receipt ended the lease of another")
}

func staleRetry(s *suite) {
	s.send("a")
	stale := s.one("a", 1)
	s.Pass(lease + time.Millisecond)
	held := s.one("a", 2)
	s.ok(s.Source.Retry(s.ctx(), stale, 0))
	s.nothing() // the holder keeps its lease
	s.ok(s.Source.Done(s.ctx(), held))
	s.Pass(2 * lease)
	s.nothing()
}

// exhaust lets every attempt of the waiting messages fail, until none is given out.
func (s *suite) exhaust(want int) {
	s.Helper()
	for attempt := 1; attempt <= queue.MaxAttempts; attempt++ {
		got := s.receiveWhile()
		s.check(len(got) == want, "attempt %d: %d messages, want %d", attempt, len(got), want)
		for _, d := range got {
			s.check(d.Attempt == attempt, "attempt %d, want %d", d.Attempt, attempt)
			if attempt%2 == 0 {
				s.ok(s.Source.Retry(s.ctx(), d, 0))
			}
		}
		s.Pass(lease + time.Millisecond)
	}
	s.nothing()
}

func (s *suite) listDead() []queue.Dead {
	s.Helper()
	var all []queue.Dead
	for after, n := "", 0; n < 100; n++ {
		page, next, err := s.Dead.Dead(s.ctx(), after, 2)
		s.ok(err)
		s.check(len(page) <= 2, "page of %d, limit 2", len(page))
		all = append(all, page...)
		if next == "" {
			return all
		}
		after = next
	}
	s.Fatal("the list of dead messages does not end")
	return nil
}

func dead(s *suite) {
	s.check(len(s.listDead()) == 0, "dead from the start")
	s.send("bad")
	s.exhaust(1)
	list := s.listDead()
	s.check(len(list) == 1 && list[0].ID == "bad" && list[0].Attempt == queue.MaxAttempts && !list[0].Since.IsZero(), "dead = %+v", list)
	// The rest of the queue goes on.
	s.send("good")
	s.ok(s.Source.Done(s.ctx(), s.one("good", 1)))
	s.check(len(s.listDead()) == 1, "dead = %+v", s.listDead())
}

func redrive(s *suite) {
	s.send("bad")
	s.exhaust(1)
	d := s.listDead()[0]
	s.ok(s.Dead.Redrive(s.ctx(), d))
	s.check(len(s.listDead()) == 0, "still dead after a redrive")
	s.is(s.Dead.Redrive(s.ctx(), d), queue.ErrNotFound)
	s.ok(s.Source.Done(s.ctx(), s.one("bad", 1)))
	s.Pass(2 * lease)
	s.nothing()
}

func deadPages(s *suite) {
	want := []string{"m0", "m1", "m2", "m3", "m4"}
	s.send(want...)
	s.exhaust(len(want))
	var got []string
	for _, d := range s.listDead() {
		got = append(got, d.ID)
	}
	slices.Sort(got)
	s.check(slices.Equal(got, want), "dead = %v", got)
	for _, limit := range []int{-1, 0, queue.MaxDead + 1} {
		_, _, err := s.Dead.Dead(s.ctx(), "", limit)
		s.is(err, queue.ErrInvalid)
	}
}

func twoConsumers(s *suite) {
	const messages, consumers = 200, 6
	for batch := range messages / 20 {
		var list []string
		for i := range 20 {
			list = append(list, fmt.Sprintf("%d.%d", batch, i))
		}
		s.send(list...)
	}
	var mu sync.Mutex
	holders := map[string]int{}
	var wg sync.WaitGroup
	for c := range consumers {
		wg.Go(func() {
			for quiet := 0; quiet < 5; {
				got, err := s.Source.Receive(s.ctx(), 1+c*3, lease)
				if err != nil {
					s.Errorf("receive: %v", err)
					return
				}
				if len(got) == 0 {
					quiet++
				}
				mu.Lock()
				for _, d := range got {
					holders[d.ID]++
				}
				mu.Unlock()
				if len(got) > 0 && c%2 == 0 { // some finish at once, among those who still take
					if err := s.Source.Done(s.ctx(), got...); err != nil {
						s.Errorf("done: %v", err)
					}
				}
			}
		})
	}
	wg.Wait()
	s.check(len(holders) == messages, "%d messages came, want %d", len(holders), messages)
	for id, n := range holders {
		s.check(n == 1, "%s was leased %d times at once", id, n)
	}
}

func badArguments(s *suite) {
	s.send("a")
	d := s.one("a", 1)
	many := make([]queue.Message, queue.MaxBatch+1)
	for i := range many {
		many[i].ID = fmt.Sprint(i)
	}
	receive := func(max int, lease time.Duration) error {
		_, err := s.Source.Receive(s.ctx(), max, lease)
		return err
	}
	for name, err := range map[string]error{
		"send nothing":          s.Queue.Send(s.ctx()),
		"send too many":         s.Queue.Send(s.ctx(), many...),
		"no id":                 s.Queue.Send(s.ctx(), queue.Message{}),
		"long id":               s.Queue.Send(s.ctx(), queue.Message{ID: strings.Repeat("x", queue.MaxID+1)}),
		"id not UTF-8":          s.Queue.Send(s.ctx(), queue.Message{ID: "\xff"}),
		"NUL in the id":         s.Queue.Send(s.ctx(), queue.Message{ID: "a\x00"}),
		"one bad among good":    s.Queue.Send(s.ctx(), queue.Message{ID: "good"}, queue.Message{}),
		"negative delay":        s.Queue.Send(s.ctx(), queue.Message{ID: "x", Delay: -1}),
		"long delay":            s.Queue.Send(s.ctx(), queue.Message{ID: "x", Delay: queue.MaxDelay + 1}),
		"receive none":          receive(0, lease),
		"receive minus one":     receive(-1, lease),
		"receive too many":      receive(queue.MaxBatch+1, lease),
		"no lease":              receive(1, 0),
		"short lease":           receive(1, time.Second-1),
		"long lease":            receive(1, queue.MaxLease+1),
		"done nothing":          s.Source.Done(s.ctx()),
		"done too many":         s.Source.Done(s.ctx(), make([]queue.Delivery, queue.MaxBatch+1)...),
		"done without receipt":  s.Source.Done(s.ctx(), queue.Delivery{ID: "a"}),
		"retry without receipt": s.Source.Retry(s.ctx(), queue.Delivery{ID: "a"}, 0),
		"retry in the past":     s.Source.Retry(s.ctx(), d, -1),
		"retry too late":        s.Source.Retry(s.ctx(), d, queue.MaxLease+1),
	} {
		if !errors.Is(err, queue.ErrInvalid) {
			s.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	s.nothing()
}

func doneContext(s *suite) {
	s.send("a", "b")
	held := s.receive(1)[0]
	ctx, cancel := context.WithCancel(s.ctx())
	cancel()
	s.is(s.Queue.Send(ctx, queue.Message{ID: "c"}), context.Canceled)
	_, err := s.Source.Receive(ctx, 1, lease)
	s.is(err, context.Canceled)
	s.is(s.Source.Done(ctx, held), context.Canceled)
	s.is(s.Source.Retry(ctx, held, 0), context.Canceled)
	other := s.receive(1)[0]
	s.check(other.ID != held.ID && other.Attempt == 1, "received %+v", other)
	s.Pass(lease + time.Millisecond)
	got := s.receiveWhile()
	s.check(slices.Equal(ids(got), []string{"a", "b"}), "came back: %v", ids(got))
}

package inboxstore_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

// newJob is what an operation stores.
func (w *world) newJob(ws, subject string) inbox.Job {
	w.t.Helper()
	w.clock = w.clock.Add(time.Millisecond)
	id, err := inbox.NewID("job", w.clock, rand.Reader)
	w.must(err)
	return inbox.Job{
		ID: id, Organization: orgA, Workspace: ws, Kind: "emails_reprocess", Status: inbox.JobQueued, CreatedAt: w.clock, UpdatedAt: w.clock,
		ExpiresAt: w.clock.Add(30 * 24 * time.Hour), Version: 1, Params: []byte(`{"n":1}`), State: []byte(`{"at":1}`),
		Creator: inbox.JobCreator{Subject: subject, Role: inbox.RoleOperator},
	}
}

// whole is an act with all that an act can bring.
func (w *world) whole(nonce, key string) inbox.Act {
	w.t.Helper()
	act := yes(w, nonce)
	id, err := inbox.NewID("aud", w.clock, rand.Reader)
	w.must(err)
	act.Audit = &inbox.Audit{ID: id, At: w.clock, Action: "emails_reprocess", Organization: orgA, Workspace: wsA, Actor: inbox.AuditActor{Type: inbox.ActorPerson, ID: "user_1"}}
	act.Key = inbox.IdempotencyKey{ID: key, Arguments: "a", Until: w.clock.Add(inbox.KeyLife)}
	return act
}

// there counts the rows that a started job leaves: job, creator's row, outbox, nonce, audit, key.
func (w *world) there(j inbox.Job, act inbox.Act) (n int) {
	w.t.Helper()
	ctx := w.t.Context()
	if _, err := w.Job(ctx, wsA, j.ID); err == nil {
		n++
	}
	if rows, _, err := w.Jobs(ctx, inbox.JobRange{Workspace: wsA, Creator: j.Creator.Subject, Limit: 10}); err == nil {
		n += len(rows)
	}
	ids, err := w.Pending(ctx, w.clock.Add(time.Hour), 100)
	w.must(err)
	for _, id := range ids {
		if id == j.ID {
			n++
		}
	}
	for _, k := range []store.Key{
		{Table: store.Ephemeral, Partition: "confirmed/" + act.Confirmed.Nonce, Sort: "-"},
		{Table: store.Core, Partition: "audit/" + wsA, Sort: act.Audit.ID},
	} {
		if _, err := w.engine.Get(ctx, k); err == nil {
			n++
		}
	}
	if done, err := w.LookKey(ctx, act.Key); err == nil && done != nil && done.Outcome == j.ID {
		n++
	}
	return n
}

// A 202 is one transaction: a process that dies around it leaves all or nothing.
func TestStartJobIsOneStep(t *testing.T) {
	for name, start := range map[string]func(w *world, j inbox.Job, act inbox.Act) error{
		"alone": func(w *world, j inbox.Job, act inbox.Act) error { return w.StartJob(w.t.Context(), j, act) },
		"about a mail": func(w *world, j inbox.Job, act inbox.Act) error {
			_, err := w.StartEmailJob(w.t.Context(), wsA, j.Target, act, func(e inbox.Email) (inbox.Job, error) {
				if e.ID != j.Target {
					w.t.Errorf("start was shown %s", e.ID)
				}
				return j, nil
			})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			for writes := range 3 {
				w := newWorld(t)
				mail := w.mail()
				w.must(w.FanOut(t.Context(), inbox.Intake{ID: "intake_" + mail.ID[6:]}, []inbox.Email{mail}))
				j, act := w.newJob(wsA, "user_1"), w.whole("n1", "k1")
				j.Target = mail.ID
				w.engine.left = writes
				_, err := w.TakeKey(t.Context(), act.Key)
				if err == nil {
					err = start(w, j, act)
				}
				w.engine.left = -1
				want := map[bool]int{true: 6, false: 0}[writes == 2]
				if got := w.there(j, act); got != want || (err == nil) != (want == 6) {
					t.Errorf("killed after %d writes: %d rows of %d, %v", writes, got, want, err)
				}
			}
		})
	}
}

// Two calls at once with one key, or one yes: one job.
func TestStartJobOnce(t *testing.T) {
	w := newWorld(t)
	var won atomic.Int32
	var team sync.WaitGroup
	acts := make([]inbox.Act, 8)
	jobs := make([]inbox.Job, 8)
	for i := range acts {
		acts[i], jobs[i] = w.whole("one yes", "one key"), w.newJob(wsA, "user_1")
	}
	if _, err := w.TakeKey(t.Context(), acts[0].Key); err != nil {
		t.Fatal(err)
	}
	for i := range acts {
		team.Go(func() {
			err := w.StartJob(t.Context(), jobs[i], acts[i])
			if err == nil {
				won.Add(1)
				return
			}
			if !apperr.Is(err, apperr.Conflict) {
				t.Errorf("%v", err)
			}
		})
	}
	team.Wait()
	rows, _, err := w.Jobs(t.Context(), inbox.JobRange{Workspace: wsA, Limit: 20})
	if err != nil || won.Load() != 1 || len(rows) != 1 {
		t.Errorf("%d won, %d jobs, %v", won.Load(), len(rows), err)
	}
}

func TestKeys(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	k := inbox.IdempotencyKey{ID: "k", Arguments: "a", Until: w.clock.Add(inbox.KeyLife)}
	other := k
	other.Arguments = "b"
	if done, err := w.LookKey(ctx, k); done != nil || err != nil {
		t.Errorf("nothing yet: %v %v", done, err)
	}
	if done, err := w.TakeKey(ctx, k); done != nil || err != nil {
		t.Fatalf("take: %v %v", done, err)
	}
	for name, f := range map[string]func() (*inbox.DoneUnder, error){
		"look": func() (*inbox.DoneUnder, error) { return w.LookKey(ctx, k) }, "take": func() (*inbox.DoneUnder, error) { return w.TakeKey(ctx, k) },
	} {
		if _, err := f(); apperr.From(err).Code != "idempotency_in_flight" {
			t.Errorf("%s while in flight: %v", name, err)
		}
	}
	if _, err := w.TakeKey(ctx, other); apperr.From(err).Code != "idempotency_conflict" {
		t.Errorf("other arguments: %v", err)
	}
	w.must(w.DropKey(ctx, k))
	if _, err := w.TakeKey(ctx, other); err != nil {
		t.Errorf("a key that was let go: %v", err)
	}
	w.must(w.DropKey(ctx, other))

	// The holder's time is over, another takes the key and acts; the first comes back and may not.
	act, late := w.whole("n1", "slow"), w.whole("n2", "slow")
	if _, err := w.TakeKey(ctx, act.Key); err != nil {
		t.Fatal(err)
	}
	w.clock = w.clock.Add(inbox.KeyFlight + time.Second)
	if _, err := w.TakeKey(ctx, late.Key); err != nil {
		t.Fatalf("a key whose holder died: %v", err)
	}
	j := w.newJob(wsA, "user_1")
	w.must(w.StartJob(ctx, j, late))
	if err := w.StartJob(ctx, w.newJob(wsA, "user_1"), act); apperr.From(err).Code != "idempotency_in_flight" {
		t.Errorf("the first holder acts too: %v", err)
	}
	w.must(w.DropKey(ctx, act.Key))
	if done, err := w.TakeKey(ctx, act.Key); err != nil || done == nil || done.Outcome != j.ID {
		t.Errorf("what was done is forgotten: %+v %v", done, err)
	}
	w.must(w.KeepReply(ctx, act.Key, inbox.DoneUnder{Status: 201, Reply: []byte(`{"a":1}`)}))
	w.must(w.KeepReply(ctx, act.Key, inbox.DoneUnder{}))
	if done, err := w.LookKey(ctx, act.Key); err != nil || done.Status != 201 || string(done.Reply) != `{"a":1}` || done.Outcome != j.ID {
		t.Errorf("%+v %v", done, err)
	}
	w.clock = w.clock.Add(inbox.KeyLife + time.Second)
	if done, err := w.LookKey(ctx, act.Key); done != nil || err != nil {
		t.Errorf("after a day: %+v %v", done, err)
	}
}

// An operation that changes nothing writes nothing; its key is done all the same.
func TestKeyOfWhatChangedNothing(t *testing.T) {
	w := newWorld(t)
	act := w.whole("n1", "k")
	_, err := w.TakeKey(t.Context(), act.Key)
	w.must(err)
	_, err = w.UpdateInbox(t.Context(), wsA, boxA, act, func(*inbox.Inbox) error { return nil })
	w.must(err)
	w.must(w.KeepReply(t.Context(), act.Key, inbox.DoneUnder{Status: 200, Reply: []byte("{}")}))
	if done, err := w.LookKey(t.Context(), act.Key); err != nil || done == nil || done.Status != 200 {
		t.Errorf("%+v %v", done, err)
	}
	act = w.whole("n2", "k2")
	if _, err := w.UpdateInbox(t.Context(), wsA, boxA, act, rename("x")); apperr.From(err).Code != "idempotency_in_flight" {
		t.Errorf("a key that nobody took: %v", err)
	}
	if in, err := w.Inbox(t.Context(), wsA, boxA); err != nil || in.DisplayName == "x" {
		t.Errorf("it was renamed: %v", err)
	}
}

// The mail changes between the look and the write: start judges it anew, and its refusal leaves nothing.
func TestStartEmailJobJudgesAnew(t *testing.T) {
	w := newWorld(t)
	mail := w.mail()
	w.must(w.FanOut(t.Context(), inbox.Intake{ID: "intake_" + mail.ID[6:]}, []inbox.Email{mail}))
	refused := apperr.New(apperr.Conflict, "changed", "Changed.")
	j, act, looks := w.newJob(wsA, "user_1"), w.whole("n1", ""), 0
	_, err := w.StartEmailJob(t.Context(), wsA, mail.ID, act, func(e inbox.Email) (inbox.Job, error) {
		if looks++; looks == 1 {
			_, err := w.UpdateEmail(t.Context(), wsA, mail.ID, inbox.Act{}, func(e *inbox.Email) error { e.Version++; return nil })
			w.must(err)
			return j, nil
		}
		return inbox.Job{}, refused
	})
	if !errors.Is(err, refused) || looks != 2 || w.there(j, act) != 0 {
		t.Errorf("%v after %d looks", err, looks)
	}
	if _, err := w.StartEmailJob(t.Context(), wsB, mail.ID, act, func(inbox.Email) (inbox.Job, error) { t.Error("judged"); return j, nil }); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("another tenant's mail: %v", err)
	}
}

func TestJobLists(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	var ids []string
	for i := range 7 {
		j := w.newJob(wsA, fmt.Sprintf("user_%d", i%2))
		w.must(w.StartJob(ctx, j, inbox.Act{}))
		ids = append([]string{j.ID}, ids...)
	}
	foreign := w.newJob(wsB, "user_0")
	w.must(w.StartJob(ctx, foreign, inbox.Act{}))
	page := func(r inbox.JobRange) (got []string) {
		for {
			rows, next, err := w.Jobs(ctx, r)
			w.must(err)
			for _, j := range rows {
				if j.Params != nil || j.State != nil || j.Workspace != r.Workspace {
					t.Errorf("a row with what only the handler needs: %+v", j)
				}
				got = append(got, j.ID)
			}
			if r.After = next; next == "" {
				return got
			}
		}
	}
	if got := page(inbox.JobRange{Workspace: wsA, Limit: 3}); fmt.Sprint(got) != fmt.Sprint(ids) {
		t.Errorf("everybody's: %v, want %v", got, ids)
	}
	if got := page(inbox.JobRange{Workspace: wsA, Creator: "user_1", Limit: 2}); fmt.Sprint(got) != fmt.Sprint([]string{ids[1], ids[3], ids[5]}) {
		t.Errorf("one person's: %v", got)
	}
	if got := page(inbox.JobRange{Workspace: wsA, From: ids[2], Limit: 10}); fmt.Sprint(got) != fmt.Sprint(ids[:3]) {
		t.Errorf("the latest: %v", got)
	}
	if _, err := w.Job(ctx, wsA, foreign.ID); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("another tenant's: %v", err)
	}
	if _, err := w.UpdateJob(ctx, wsA, foreign.ID, inbox.Act{}, func(*inbox.Job) error { t.Error("changed"); return nil }); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("another tenant's: %v", err)
	}
	// What its creator lists follows each change.
	_, err := w.UpdateJob(ctx, wsA, ids[1], inbox.Act{}, func(j *inbox.Job) error { j.Finish(inbox.JobCanceled, w.clock); return nil })
	w.must(err)
	rows, _, err := w.Jobs(ctx, inbox.JobRange{Workspace: wsA, Creator: "user_1", Limit: 1})
	if err != nil || rows[0].Status != inbox.JobCanceled || rows[0].Version != 2 {
		t.Errorf("%+v %v", rows, err)
	}
}

func TestClaims(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	j := w.newJob(wsA, "user_1")
	w.must(w.StartJob(ctx, j, inbox.Act{}))
	held, err := w.ClaimJob(ctx, j.ID, "one", time.Minute)
	if err != nil || held.Status != inbox.JobRunning || held.Attempts != 1 {
		t.Fatalf("%+v %v", held, err)
	}
	if _, err := w.ClaimJob(ctx, j.ID, "two", time.Minute); !apperr.Is(err, apperr.Unavailable) {
		t.Errorf("two have it: %v", err)
	}
	w.clock = w.clock.Add(time.Minute)
	second, err := w.ClaimJob(ctx, j.ID, "two", time.Minute)
	if err != nil || second.Attempts != 2 {
		t.Errorf("after the lease: %+v %v", second, err)
	}
	if _, err := w.HoldJob(ctx, held, func(*inbox.Job) error { t.Error("changed"); return nil }); !errors.Is(err, inbox.ErrJobLost) {
		t.Errorf("the first: %v", err)
	}
	_, err = w.HoldJob(ctx, second, func(j *inbox.Job) error { j.Finish(inbox.JobSucceeded, w.clock); return nil })
	w.must(err)
	for _, id := range []string{j.ID, "job_01J00000000000000000000000"} {
		if _, err := w.ClaimJob(ctx, id, "three", time.Minute); !apperr.Is(err, apperr.NotFound) {
			t.Errorf("%s: %v", id, err)
		}
	}
	// The row expired before the worker came: the outbox forgets it.
	j = w.newJob(wsA, "user_1")
	w.must(w.StartJob(ctx, j, inbox.Act{}))
	w.clock = w.clock.Add(31 * 24 * time.Hour)
	if _, err := w.ClaimJob(ctx, j.ID, "four", time.Minute); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("expired: %v", err)
	}
	if ids, err := w.Pending(ctx, w.clock, 10); err != nil || len(ids) != 0 {
		t.Errorf("left behind: %v %v", ids, err)
	}
}

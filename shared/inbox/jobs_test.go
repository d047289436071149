package inbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/safehttp"
)

// jobDesk is the services with a queue and a sleep of the test's.
type jobDesk struct {
	*world
	jobs  *inbox.Jobs
	sent  []string
	fail  error
	slept []time.Duration
	sleep func(int) error // after each sleep, which it counts; nil: nothing
}

func (d *jobDesk) SendJob(_ context.Context, id string) error {
	d.sent = append(d.sent, id)
	return d.fail
}

func newJobDesk(t *testing.T) *jobDesk {
	t.Helper()
	d := &jobDesk{world: newWorld(t)}
	services, err := inbox.New(inbox.Deps{
		Webhooks: d.store, Deliveries: d.store, WebhookSecrets: sealer{}, Receivers: safehttp.New(safehttp.Options{}), SecretPages: pages{},
		Organizations: d.store, Members: d.store, Keys: d.store, SignIns: d,
		Inboxes: d.store, Domains: d.store, Counts: d.store, Emails: d.store, Attachments: d.store, Senders: d.store, Rules: d.store, Templates: d.store, Extractions: d.store, Audit: d.store,
		Threads: d.store, Work: d.store, Waiting: d.store, Usage: d.store, People: d.store, Uploads: d.store, Puts: downloads{d.now}, Jobs: d.store, JobQueue: d, Blobs: d.blobs, Downloads: downloads{d.now}, Cursors: sealer{}, Now: d.now, Rand: strings.NewReader(strings.Repeat("random bytes of a test ", 1000)),
		Sleep: func(_ context.Context, pause time.Duration) error {
			d.slept = append(d.slept, pause)
			if d.sleep != nil {
				return d.sleep(len(d.slept))
			}
			return nil
		},
	})
	d.must(err)
	d.jobs = services.Jobs
	return d
}

type sealer struct{}

func (sealer) Seal(plaintext, _ []byte, _ time.Duration) (string, error) {
	return string(plaintext), nil
}
func (sealer) Open(token string, _ []byte) ([]byte, error) { return []byte(token), nil }

var (
	jobActor = inbox.Actor{Organization: orgAcme, Workspace: wsAcme, Subject: "user_1", Role: inbox.RoleOperator, Operation: "x", By: inbox.AuditActor{Grant: "g", Client: "c"}} //nolint:gochecknoglobals // constant
	jobSpec  = inbox.JobSpec{Kind: "x", Scope: "emails:write", Role: inbox.RoleOperator, Params: map[string]int{"n": 1}}                                                         //nolint:gochecknoglobals // constant
)

// The job is durable before its message goes, and a queue that is away costs nothing.
func TestStartedJobs(t *testing.T) {
	d := newJobDesk(t)
	d.fail = errors.New("the queue is away")
	j, err := d.jobs.Start(t.Context(), jobActor, jobSpec)
	if err != nil || len(d.sent) != 1 || d.sent[0] != j.ID || j.Creator.Grant != "g" || j.Creator.Scope != "emails:write" || string(j.Params) != `{"n":1}` {
		t.Fatalf("%+v %v, sent %v", j, err, d.sent)
	}
	if ids, err := d.store.Pending(t.Context(), d.now().Add(time.Hour), 10); err != nil || len(ids) != 1 || ids[0] != j.ID {
		t.Errorf("outbox %v %v", ids, err)
	}
	big := jobSpec
	big.Params = strings.Repeat("x", 20<<10)
	if _, err := d.jobs.Start(t.Context(), jobActor, big); !apperr.Is(err, apperr.TooLarge) || len(d.sent) != 1 {
		t.Errorf("large parameters: %v", err)
	}
	key := jobActor
	key.By = inbox.AuditActor{Type: inbox.ActorKey, ID: "key_1", Grant: "key_1"}
	if j, err := d.jobs.Start(t.Context(), key, jobSpec); err != nil || j.Creator.Key != "key_1" {
		t.Errorf("an API key's job: %+v %v", j, err)
	}
}

// A reader that waits looks once a second, no longer than it said, and hears at once of the end.
func TestWaitForAJob(t *testing.T) {
	reach := inbox.JobReach{All: true}
	d := newJobDesk(t)
	j, err := d.jobs.Start(t.Context(), jobActor, jobSpec)
	d.must(err)
	finish := func() {
		_, err := d.store.UpdateJob(t.Context(), wsAcme, j.ID, inbox.Act{}, func(j *inbox.Job) error { j.Finish(inbox.JobSucceeded, d.now()); return nil })
		d.must(err)
	}
	for _, wait := range []time.Duration{0, time.Second, inbox.MaxJobWait} {
		d.slept = nil
		got, err := d.jobs.Get(t.Context(), jobActor, reach, j.ID, wait)
		if err != nil || got.Status != inbox.JobQueued || len(d.slept) != int(wait/time.Second) {
			t.Errorf("%v: %s %v after %v", wait, got.Status, err, d.slept)
		}
	}
	for _, wait := range []time.Duration{-1, inbox.MaxJobWait + 1} {
		if _, err := d.jobs.Get(t.Context(), jobActor, reach, j.ID, wait); !apperr.Is(err, apperr.Invalid) {
			t.Errorf("%v: %v", wait, err)
		}
	}
	d.slept, d.sleep = nil, func(int) error { return context.Canceled }
	if got, err := d.jobs.Get(t.Context(), jobActor, reach, j.ID, inbox.MaxJobWait); err != nil || got.ID != j.ID || len(d.slept) != 1 {
		t.Errorf("a reader that went: %v after %v", err, d.slept)
	}
	d.slept, d.sleep = nil, func(n int) error {
		if n == 3 {
			finish()
		}
		return nil
	}
	if got, err := d.jobs.Get(t.Context(), jobActor, reach, j.ID, inbox.MaxJobWait); err != nil || got.Status != inbox.JobSucceeded || len(d.slept) != 3 {
		t.Errorf("%s %v after %v", got.Status, err, d.slept)
	}
}

// Who waits for a job holds one of the calls that are served at once: no more may than may wait for mail, of one grant and in all.
// Who finds no place is told at once how the job stands.
func TestWaitsForJobsAreBounded(t *testing.T) {
	reach := inbox.JobReach{All: true}
	d := newJobDesk(t)
	j, err := d.jobs.Start(t.Context(), jobActor, jobSpec)
	d.must(err)
	depth, waited := 0, 0
	d.sleep = func(int) error {
		waited = max(waited, depth)
		if depth < inbox.WaitsOfGrant+2 { // one more while this one waits
			depth++
			got, err := d.jobs.Get(t.Context(), jobActor, reach, j.ID, time.Second)
			if err != nil || got.Status != inbox.JobQueued {
				t.Errorf("call %d: %s %v", depth, got.Status, err)
			}
		}
		return nil
	}
	for range 2 { // the second time all places are free again
		depth, waited = 1, 0
		if _, err := d.jobs.Get(t.Context(), jobActor, reach, j.ID, time.Second); err != nil {
			t.Fatal(err)
		}
		if waited != inbox.WaitsOfGrant || depth != inbox.WaitsOfGrant+1 {
			t.Errorf("%d of %d calls waited, want %d of %d", waited, depth, inbox.WaitsOfGrant, inbox.WaitsOfGrant+1)
		}
	}
}

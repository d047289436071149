package dynamo_test

import (
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/store/dynamo"
	"github.com/buzon-mail/buzon/shared/testkit/minidyn"
)

// TestJobsOnDynamo: of many calls at once with one key and one yes one starts a job, of many workers one gets it, and its end leaves
// nothing in the outbox.
func TestJobsOnDynamo(t *testing.T) {
	server := httptest.NewServer(minidyn.New())
	t.Cleanup(server.Close)
	cfg := at(server.URL)
	cfg.HTTP = http.DefaultClient
	tables(t, cfg, "core", "ephemeral")
	now := time.Now().UTC().Truncate(time.Millisecond)
	engine, err := dynamo.New(dynamo.Options{AWS: cfg, Core: "core", Ephemeral: "ephemeral", Clock: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := inboxstore.New(engine, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	key := inbox.IdempotencyKey{ID: "k", Arguments: "a", Until: now.Add(inbox.KeyLife)}
	if _, err := rows.TakeKey(ctx, key); err != nil {
		t.Fatal(err)
	}
	const many = 5
	var started, claimed atomic.Int32
	var id atomic.Value
	var team sync.WaitGroup
	for range many {
		job, err := inbox.NewID("job", now, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		team.Go(func() {
			err := rows.StartJob(ctx, inbox.Job{
				ID: job, Organization: "org_1", Workspace: "ws_1", Kind: "x", Status: inbox.JobQueued, CreatedAt: now, UpdatedAt: now,
				ExpiresAt: now.Add(time.Hour), Version: 1, Creator: inbox.JobCreator{Subject: "user_1"},
			}, inbox.Act{Key: key, Confirmed: &inbox.Confirmation{Nonce: "n", Expires: now.Add(time.Minute)}})
			switch {
			case err == nil:
				started.Add(1)
				id.Store(job)
			case !apperr.Is(err, apperr.Conflict):
				t.Errorf("start: %v", err)
			}
		})
	}
	team.Wait()
	if started.Load() != 1 {
		t.Fatalf("%d jobs", started.Load())
	}
	job, _ := id.Load().(string)
	if done, err := rows.LookKey(ctx, key); err != nil || done == nil || done.Outcome != job {
		t.Errorf("key: %+v, %v", done, err)
	}
	held := make(chan inbox.Job, many)
	for range many {
		team.Go(func() {
			j, err := rows.ClaimJob(ctx, job, rand.Text(), time.Minute)
			switch {
			case err == nil:
				claimed.Add(1)
				held <- j
			case !apperr.Is(err, apperr.Unavailable) && !apperr.Is(err, apperr.Conflict):
				t.Errorf("claim: %v", err)
			}
		})
	}
	team.Wait()
	if claimed.Load() != 1 {
		t.Fatalf("%d have it", claimed.Load())
	}
	if _, err := rows.HoldJob(ctx, <-held, func(j *inbox.Job) error { j.Finish(inbox.JobSucceeded, now); return nil }); err != nil {
		t.Fatal(err)
	}
	if ids, err := rows.Pending(ctx, now.Add(time.Hour), 10); err != nil || len(ids) != 0 {
		t.Errorf("outbox %v, %v", ids, err)
	}
	list, _, err := rows.Jobs(ctx, inbox.JobRange{Workspace: "ws_1", Creator: "user_1", Limit: 10})
	if err != nil || len(list) != 1 || list[0].Status != inbox.JobSucceeded {
		t.Errorf("%+v, %v", list, err)
	}
}

package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/config"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/lambdaedge"
	"github.com/buzon-mail/buzon/shared/queue"
)

func eventFile(t *testing.T, name string) []byte {
	t.Helper()
	payload, err := os.ReadFile("../../../events/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

// newWorld is an emulated function and what it stands on.
func newWorld(t *testing.T) (*Function, *Engines) {
	t.Helper()
	e, err := emulated(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	f, err := newFunction(e, slog.New(slog.DiscardHandler), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f, e
}

func failuresOf(t *testing.T, reply []byte) []string {
	t.Helper()
	var r struct {
		Failures []struct {
			ID string `json:"itemIdentifier"`
		} `json:"batchItemFailures"`
	}
	if err := json.Unmarshal(reply, &r); err != nil {
		t.Fatalf("reply %s: %v", reply, err)
	}
	ids := []string{}
	for _, f := range r.Failures {
		ids = append(ids, f.ID[len(f.ID)-1:])
	}
	return ids
}

func waitingEmail(t *testing.T, e *Engines) inbox.Email {
	t.Helper()
	to, err := e.Store.Recipient(t.Context(), waitingAddress)
	if err != nil {
		t.Fatal(err)
	}
	mail, _, err := e.Store.Email(t.Context(), to.Workspace, waitingMail, false)
	if err != nil {
		t.Fatal(err)
	}
	return mail
}

// The batch names one mail twice, one that was finished long ago and one that never was: all are done, and a redelivery of
// everything changes nothing.
func TestJobs(t *testing.T) {
	f, e := newWorld(t)
	var first inbox.Email
	for range 3 {
		reply, err := f.Invoke(t.Context(), eventFile(t, "sqs-jobs"))
		if err != nil || len(failuresOf(t, reply)) != 0 {
			t.Fatalf("reply %s, %v", reply, err)
		}
		got := waitingEmail(t, e)
		if got.Status != inbox.StatusProcessed || got.Content.Subject != "Factura F-2026-118" {
			t.Fatalf("mail %s %s", got.Status, got.Content.Subject)
		}
		if first.ID == "" {
			first = got
		}
		if !got.ProcessedAt.Equal(first.ProcessedAt) {
			t.Error("it was processed again")
		}
	}
}

// What is no job goes to the dead letters by itself; the good one in its middle is done.
func TestPoisonedBatch(t *testing.T) {
	f, e := newWorld(t)
	reply, err := f.Invoke(t.Context(), eventFile(t, "sqs-jobs-poisoned"))
	if err != nil {
		t.Fatal(err)
	}
	if got := failuresOf(t, reply); !slices.Equal(got, []string{"1", "2", "4", "5"}) {
		t.Errorf("failed %q", got)
	}
	if got := waitingEmail(t, e); got.Status != inbox.StatusProcessed {
		t.Errorf("the good one is %s", got.Status)
	}
}

// The minute's tick sends again what no message names.
func TestTick(t *testing.T) {
	f, e := newWorld(t)
	for range 2 { // the schedule is at least once
		if reply, err := f.Invoke(t.Context(), eventFile(t, "schedule-minute")); err != nil || string(reply) != "null" {
			t.Fatalf("reply %s, %v", reply, err)
		}
	}
	source, ok := e.Queue.(queue.Source)
	if !ok {
		t.Fatal("the emulated queue can't be read")
	}
	got, err := source.Receive(t.Context(), 10, time.Minute)
	if err != nil || len(got) != 1 || got[0].ID != waitingIntake {
		t.Errorf("queue holds %+v, %v", got, err)
	}
}

func TestOtherEventsFail(t *testing.T) {
	f, _ := newWorld(t)
	for _, name := range []string{"function-url-get-mcp", "http-api-tools-list-2026", "rest-api-tools-list-2026"} {
		if _, err := f.Invoke(t.Context(), eventFile(t, name)); !errors.Is(err, lambdaedge.ErrNotTrigger) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A notice of SES on the queue of jobs is a message like any other that is no job.
	reply, err := f.Invoke(t.Context(), eventFile(t, "ses-inbound"))
	if err != nil || len(failuresOf(t, reply)) != 1 {
		t.Errorf("reply %s, %v", reply, err)
	}
}

// retries notes what is given back.
type retries struct {
	got   []queue.Delivery
	delay []time.Duration
	err   error
}

func (r *retries) Retry(_ context.Context, d queue.Delivery, after time.Duration) error {
	r.got, r.delay = append(r.got, d), append(r.delay, after)
	return r.err
}

// Every kind of failure has its end: dropped, given back for later, left to the outbox, or left to the dead letters.
func TestDispositions(t *testing.T) {
	tests := []struct {
		name      string
		err       error
		comes     bool // the message comes again
		postponed bool
		logged    string
	}{
		{"done", nil, false, false, ""},
		{"gone", apperr.New(apperr.NotFound, "", ""), false, false, ""},
		{"an outage", apperr.New(apperr.Unavailable, "", ""), false, false, "WARN"},
		{"interrupted", apperr.New(apperr.Unavailable, "interrupted", "").Because(context.DeadlineExceeded), false, false, "WARN"},
		{"odd", errors.New("odd"), true, true, "WARN"},
		{"a conflict", apperr.New(apperr.Conflict, "", ""), true, true, "WARN"},
		{"no job", apperr.New(apperr.Invalid, "bad_job", ""), true, false, "ERROR"},
		{"too large", apperr.New(apperr.TooLarge, "", ""), true, false, "ERROR"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, broken := range []error{nil, queue.ErrUnavailable} {
				var log bytes.Buffer
				source := &retries{err: broken}
				j := &jobs{
					handle: func(context.Context, string, int) error { return tt.err }, source: source,
					log: slog.New(slog.NewJSONHandler(&log, nil)),
				}
				err := j.message(t.Context(), lambdaedge.Message{ID: "m", Body: `{"id":"email_1"}`, Attempt: 3, Receipt: "r"})
				if (err != nil) != tt.comes {
					t.Errorf("error %v", err)
				}
				if (len(source.got) == 1) != tt.postponed {
					t.Errorf("postponed %+v", source.got)
				}
				if tt.postponed && (source.got[0] != queue.Delivery{ID: "email_1", Attempt: 3, Receipt: "r"} || source.delay[0] != 8*time.Second) {
					t.Errorf("postponed %+v for %v", source.got, source.delay)
				}
				if tt.logged == "" && log.Len() > 0 || !strings.Contains(log.String(), tt.logged) {
					t.Errorf("log %q", log.String())
				}
			}
		})
	}
}

// What a message holds that is no id of ours is not logged: it may be anything.
func TestLogHoldsNoBodies(t *testing.T) {
	var log bytes.Buffer
	j := &jobs{
		handle: func(context.Context, string, int) error { return apperr.New(apperr.Invalid, "bad_job", "") },
		log:    slog.New(slog.NewJSONHandler(&log, nil)),
	}
	for _, body := range []string{"secret-canary ana@example.com", `{"id":"canary@example.com"}`, `{"id":"` + strings.Repeat("canary", 20) + `"}`, `{"canary":1}`} {
		_ = j.message(t.Context(), lambdaedge.Message{ID: "m", Body: body, Attempt: 1})
	}
	if strings.Contains(log.String(), "canary") || !strings.Contains(log.String(), `"message":"m"`) {
		t.Errorf("log %s", log.String())
	}
}

func TestDeployedNeedsItsEnvironment(t *testing.T) {
	if _, err := New(&config.Worker{}, os.Stderr); err == nil {
		t.Error("a deployed function without names of tables started")
	}
	f, err := New(&config.Worker{Emulated: true}, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

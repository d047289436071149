package lambdaedge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// triggerFiles are the event files that are no requests, each with the ids of its messages.
//
//nolint:gochecknoglobals // constant table
var triggerFiles = map[string]int{
	"sqs-jobs": 4, "sqs-jobs-poisoned": 5, "schedule-minute": 0,
	"ses-inbound": 1, "ses-inbound-many-recipients": 1, "ses-inbound-unknown": 1, "ses-inbound-poisoned": 5,
}

func triggerFile(t testing.TB, name string) []byte {
	t.Helper()
	payload, err := os.ReadFile(filepath.Join("../../events", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

// batchOf is an event as SQS makes it, a message for each body.
func batchOf(t testing.TB, change func(*events.SQSEvent), bodies ...string) []byte {
	t.Helper()
	e := events.SQSEvent{}
	for i, body := range bodies {
		e.Records = append(e.Records, events.SQSMessage{
			MessageId: fmt.Sprintf("id-%d", i), ReceiptHandle: fmt.Sprintf("receipt-%d", i), Body: body, EventSource: "aws:sqs",
			EventSourceARN: "arn:aws:sqs:eu-west-1:123456789012:jobs",
			Attributes:     map[string]string{"ApproximateReceiveCount": "3", "SentTimestamp": "1796033705123"},
		})
	}
	if change != nil {
		change(&e)
	}
	out, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func failuresOf(t *testing.T, reply []byte) []string {
	t.Helper()
	var r events.SQSEventResponse
	if err := json.Unmarshal(reply, &r); err != nil {
		t.Fatalf("reply %s: %v", reply, err)
	}
	ids := []string{}
	for _, f := range r.BatchItemFailures {
		ids = append(ids, f.ItemIdentifier)
	}
	return ids
}

func TestTriggerFiles(t *testing.T) {
	for name, want := range triggerFiles {
		t.Run(name, func(t *testing.T) {
			var got []Message
			ticks := 0
			tr := NewTriggers(TriggerOptions{
				Logger:  quiet(),
				Message: func(_ context.Context, m Message) error { got = append(got, m); return nil },
				Tick: func(_ context.Context, tick Tick) error {
					ticks++
					if !tick.Due.Equal(time.Date(2026, 11, 30, 10, 16, 0, 0, time.UTC)) || tick.ID == "" {
						t.Errorf("tick %+v", tick)
					}
					return nil
				},
			})
			reply, err := tr.Invoke(t.Context(), triggerFile(t, name))
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != want || (ticks == 1) != (name == "schedule-minute") {
				t.Errorf("%d messages, %d ticks", len(got), ticks)
			}
			if want > 0 && string(reply) != `{"batchItemFailures":[]}` {
				t.Errorf("reply %s", reply)
			}
			for _, m := range got {
				if m.ID == "" || m.Receipt == "" || m.Attempt < 1 || !strings.HasPrefix(m.Queue, "buzon-") || m.Sent.Year() != 2026 {
					t.Errorf("message %+v", m)
				}
			}
		})
	}
}

func TestBatchNamesWhatFailed(t *testing.T) {
	boom := errors.New("boom")
	tests := []struct {
		name   string
		bodies []string
		change func(*events.SQSEvent)
		want   []string
	}{
		{"all done", []string{"ok", "ok"}, nil, []string{}},
		{"the middle one", []string{"ok", "bad", "ok"}, nil, []string{"id-1"}},
		{"all", []string{"bad", "bad"}, nil, []string{"id-0", "id-1"}},
		{"one panics", []string{"panic", "ok", "bad"}, nil, []string{"id-0", "id-2"}},
		{"one id twice", []string{"bad", "bad"}, func(e *events.SQSEvent) { e.Records[1].MessageId = "id-0" }, []string{"id-0"}},
		{"an id that needs escapes", []string{"bad"}, func(e *events.SQSEvent) { e.Records[0].MessageId = "a\"\n\\" }, []string{"a\"\n\\"}},
		{"empty body", []string{"", "ok"}, nil, []string{"id-0"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, parallel := range []int{0, 1, 8} {
				var count atomic.Int32
				tr := NewTriggers(TriggerOptions{Logger: quiet(), Parallel: parallel, Message: func(_ context.Context, m Message) error {
					count.Add(1)
					switch m.Body {
					case "ok":
						return nil
					case "panic":
						panic("a caller's text")
					}
					return boom
				}})
				reply, err := tr.Invoke(t.Context(), batchOf(t, tt.change, tt.bodies...))
				if err != nil {
					t.Fatal(err)
				}
				if got := failuresOf(t, reply); !slices.Equal(got, tt.want) || int(count.Load()) != len(tt.bodies) {
					t.Errorf("parallel %d: failed %q of %d, want %q", parallel, got, count.Load(), tt.want)
				}
			}
		})
	}
}

func TestMessageOfABatch(t *testing.T) {
	var got Message
	tr := NewTriggers(TriggerOptions{Logger: quiet(), Message: func(_ context.Context, m Message) error { got = m; return nil }})
	if _, err := tr.Invoke(t.Context(), batchOf(t, nil, "body")); err != nil {
		t.Fatal(err)
	}
	want := Message{ID: "id-0", Body: "body", Attempt: 3, Receipt: "receipt-0", Queue: "jobs", Sent: time.UnixMilli(1796033705123).UTC()}
	if got != want {
		t.Errorf("message %+v, want %+v", got, want)
	}
	for _, count := range []string{"", "-1", "many", "99999999999999999999"} {
		payload := batchOf(t, func(e *events.SQSEvent) {
			e.Records[0].Attributes = map[string]string{"ApproximateReceiveCount": count, "SentTimestamp": count}
			e.Records[0].EventSourceARN = ""
		}, "x")
		if _, err := tr.Invoke(t.Context(), payload); err != nil || got.Attempt != 1 || !got.Sent.IsZero() || got.Queue != "" {
			t.Errorf("count %q: %+v, %v", count, got, err)
		}
	}
}

// What must not be answered: an answer ends messages.
func TestEventsOfOthersAreRefused(t *testing.T) {
	tests := map[string]string{
		"empty":            ``,
		"not JSON":         `{"Records":`,
		"null":             `null`,
		"a list":           `[]`,
		"no records":       `{"Records":[]}`,
		"records no list":  `{"Records":{"messageId":"secret"}}`,
		"S3":               `{"Records":[{"eventSource":"aws:s3","messageId":"x","s3":{}}]}`,
		"SNS":              `{"Records":[{"EventSource":"aws:sns","Sns":{"Message":"x"}}]}`,
		"one of S3":        `{"Records":[{"eventSource":"aws:sqs","messageId":"a"},{"eventSource":"aws:s3","messageId":"b"}]}`,
		"no id":            `{"Records":[{"eventSource":"aws:sqs","messageId":"a"},{"eventSource":"aws:sqs"}]}`,
		"function URL":     string(get(nil)),
		"REST API":         string(rest(nil)),
		"another service":  `{"id":"1","source":"aws.s3","detail-type":"Object Created","time":"2026-11-30T10:16:00Z"}`,
		"a custom source":  `{"id":"1","source":"me","detail-type":"Scheduled Event","time":"2026-11-30T10:16:00Z"}`,
		"clock, no time":   `{"id":"1","source":"aws.events","detail-type":"Scheduled Event"}`,
		"clock, bad time":  `{"id":"1","source":"aws.events","detail-type":"Scheduled Event","time":"soon"}`,
		"ill-typed member": `{"Records":[{"eventSource":"aws:sqs","messageId":7}]}`,
	}
	for name, payload := range tests {
		t.Run(name, func(t *testing.T) {
			tr := NewTriggers(TriggerOptions{
				Logger: quiet(), Message: func(context.Context, Message) error { t.Error("a message was worked on"); return nil },
				Tick: func(context.Context, Tick) error { t.Error("the clock ran"); return nil },
			})
			reply, err := tr.Invoke(t.Context(), []byte(payload))
			if !errors.Is(err, ErrNotTrigger) || reply != nil {
				t.Errorf("reply %s, %v", reply, err)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error quotes the event: %v", err)
			}
		})
	}
	neither := NewTriggers(TriggerOptions{})
	for _, name := range []string{"sqs-jobs", "schedule-minute"} {
		if _, err := neither.Invoke(t.Context(), triggerFile(t, name)); !errors.Is(err, ErrNotTrigger) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// And the other way round: a queue's batch at a front door.
	for name := range triggerFiles {
		if _, err := New(nil, Options{Logger: quiet()}).Invoke(t.Context(), triggerFile(t, name)); !errors.Is(err, ErrNotHTTP) {
			t.Errorf("%s at a front door: %v", name, err)
		}
	}
}

func TestTickFailures(t *testing.T) {
	boom := errors.New("boom")
	tr := NewTriggers(TriggerOptions{Logger: quiet(), Tick: func(context.Context, Tick) error { return boom }})
	if _, err := tr.Invoke(t.Context(), triggerFile(t, "schedule-minute")); !errors.Is(err, boom) {
		t.Errorf("error = %v", err)
	}
	tr = NewTriggers(TriggerOptions{Logger: quiet(), Tick: func(context.Context, Tick) error { panic("x") }})
	if _, err := tr.Invoke(t.Context(), triggerFile(t, "schedule-minute")); err == nil {
		t.Error("a panic was a success")
	}
	payload := bytes.Replace(triggerFile(t, "schedule-minute"), []byte("aws.events"), []byte("aws.scheduler"), 1)
	tr = NewTriggers(TriggerOptions{Tick: func(context.Context, Tick) error { return nil }})
	if _, err := tr.Invoke(t.Context(), payload); err != nil {
		t.Errorf("EventBridge Scheduler: %v", err)
	}
}

// With the time used up, what was not begun is given back untouched, and the reply still comes.
func TestBatchOutOfTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	tr := NewTriggers(TriggerOptions{Logger: quiet(), Message: func(ctx context.Context, m Message) error {
		if m.Body == "last" {
			cancel()
			return ctx.Err()
		}
		return nil
	}})
	reply, err := tr.Invoke(ctx, batchOf(t, nil, "ok", "last", "never", "never"))
	if err != nil {
		t.Fatal(err)
	}
	if got := failuresOf(t, reply); !slices.Equal(got, []string{"id-1", "id-2", "id-3"}) {
		t.Errorf("failed %q", got)
	}
}

func TestTriggerDeadlineIsBeforeLambdas(t *testing.T) {
	lambdas := time.Now().Add(29 * time.Second)
	ctx, cancel := context.WithDeadline(t.Context(), lambdas)
	defer cancel()
	tr := NewTriggers(TriggerOptions{Message: func(ctx context.Context, _ Message) error {
		if end, ok := ctx.Deadline(); !ok || !end.Equal(lambdas.Add(-batchMargin)) {
			t.Errorf("deadline %v, Lambda's %v", end, lambdas)
		}
		return nil
	}})
	if _, err := tr.Invoke(ctx, batchOf(t, nil, "x")); err != nil {
		t.Fatal(err)
	}
}

func TestPanicOfAMessageIsLoggedWithoutItsText(t *testing.T) {
	var log bytes.Buffer
	tr := NewTriggers(TriggerOptions{
		Logger:  slog.New(slog.NewJSONHandler(&log, nil)),
		Message: func(context.Context, Message) error { panic("secret-canary") },
	})
	if _, err := tr.Invoke(t.Context(), batchOf(t, nil, "x")); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), `"request_id":"id-0"`) || strings.Contains(log.String(), "canary") {
		t.Errorf("log %s", log.String())
	}
}

func TestBatchIsBoundedlyParallel(t *testing.T) {
	var mu sync.Mutex
	now, most := 0, 0
	tr := NewTriggers(TriggerOptions{Logger: quiet(), Parallel: 3, Message: func(context.Context, Message) error {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		time.Sleep(time.Millisecond)
		mu.Lock()
		now--
		mu.Unlock()
		return nil
	}})
	if _, err := tr.Invoke(t.Context(), batchOf(t, nil, make([]string, 20)...)); err != nil {
		t.Fatal(err)
	}
	if most > 3 {
		t.Errorf("%d at once, want at most 3", most)
	}
}

func FuzzTriggers(f *testing.F) {
	for name := range triggerFiles {
		f.Add(triggerFile(f, name))
	}
	f.Add(get(nil))
	tr := NewTriggers(TriggerOptions{
		Logger: quiet(), Tick: func(context.Context, Tick) error { return nil },
		Message: func(_ context.Context, m Message) error {
			if m.Body == "" {
				return errPanicked
			}
			return nil
		},
	})
	f.Fuzz(func(t *testing.T, payload []byte) {
		out, err := tr.Invoke(t.Context(), payload)
		if err != nil {
			return
		}
		if !json.Valid(out) {
			t.Fatalf("reply is not JSON: %q", out)
		}
		if slices.Contains(failuresOf(t, out), "") {
			t.Fatalf("an empty id gives the whole batch back: %s", out)
		}
	})
}

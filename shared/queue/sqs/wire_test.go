package sqsqueue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/awsclient"
	"github.com/buzon-mail/buzon/shared/queue"
	sqsqueue "github.com/buzon-mail/buzon/shared/queue/sqs"
	"github.com/buzon-mail/buzon/shared/testkit/faults"
)

const (
	url     = "https://sqs.eu-west-1.amazonaws.com/1/jobs"
	deadURL = url + "-dead"
)

func wired(t *testing.T) (*sqsqueue.Queue, *faults.Client) {
	t.Helper()
	c := &faults.Client{}
	cfg := at("http://sqs.test")
	cfg.HTTP = c
	q, err := sqsqueue.New(sqsqueue.Options{AWS: cfg, URL: url, DeadURL: deadURL})
	if err != nil {
		t.Fatal(err)
	}
	return q, c
}

func wantErr(t *testing.T, err, want error, text string) {
	t.Helper()
	if !errors.Is(err, want) || !strings.Contains(err.Error(), text) {
		t.Errorf("err = %v, want %v with %q", err, want, text)
	}
	var driver interface{ ErrorCode() string }
	if errors.As(err, &driver) {
		t.Errorf("AWS's own error left the queue: %T", driver)
	}
}

// entry is one of a batch as it is sent.
type entry struct {
	ID                string `json:"Id"`
	MessageBody       string
	DelaySeconds      int
	ReceiptHandle     string
	VisibilityTimeout int
}

func entries(t *testing.T, r faults.Request) []entry {
	t.Helper()
	var in struct{ Entries []entry }
	if err := json.Unmarshal(r.Body, &in); err != nil {
		t.Fatal(err)
	}
	return in.Entries
}

// batch answers a batch: every entry succeeds but those by these ids, which fail as told.
func batch(t *testing.T, failed map[string]string) faults.Step {
	t.Helper()
	return func(r *http.Request, pass func() (*http.Response, error)) (*http.Response, error) {
		var out struct {
			Successful []struct {
				ID string `json:"Id"`
			}
			Failed []map[string]any
		}
		for id, code := range failed {
			name, sender := strings.CutPrefix(code, "sender ")
			out.Failed = append(out.Failed, map[string]any{"Id": id, "Code": name, "SenderFault": sender, "Message": "no"})
		}
		b, err := json.Marshal(out)
		if err != nil {
			t.Fatal(err)
		}
		return faults.Answer(http.StatusOK, string(b))(r, pass)
	}
}

func messages(n int) []queue.Message {
	out := make([]queue.Message, n)
	for i := range out {
		out[i].ID = fmt.Sprintf("job_%d", i)
	}
	return out
}

func TestSendIsBatched(t *testing.T) {
	q, c := wired(t)
	c.Then(faults.Repeat(3, batch(t, nil))...)
	all := messages(queue.MaxBatch)
	all[0].Delay, all[1].Delay, all[2].Delay = time.Millisecond, 2*time.Second, queue.MaxDelay
	if err := q.Send(t.Context(), all...); err != nil {
		t.Fatal(err)
	}
	c.WantOps(t, "SendMessageBatch", "SendMessageBatch", "SendMessageBatch")
	var got []entry
	for _, r := range c.Asked() {
		part := entries(t, r)
		if len(part) > 10 {
			t.Errorf("a batch of %d, SQS takes 10", len(part))
		}
		got = append(got, part...)
	}
	if len(got) != len(all) || got[0].DelaySeconds != 1 || got[1].DelaySeconds != 2 || got[2].DelaySeconds != 900 || got[24].MessageBody != `{"id":"job_24"}` {
		t.Errorf("sent %+v", got)
	}
}

func TestPartialFailures(t *testing.T) {
	t.Run("a part of a send is sent again, and it alone", func(t *testing.T) {
		q, c := wired(t)
		c.Then(batch(t, map[string]string{"1": "InternalError", "2": "ServiceUnavailable"}), batch(t, map[string]string{"2": "InternalError"}), batch(t, nil))
		if err := q.Send(t.Context(), messages(4)...); err != nil {
			t.Fatal(err)
		}
		var sent []string
		for _, r := range c.Asked() {
			for _, e := range entries(t, r) {
				sent = append(sent, e.ID)
			}
		}
		if got := strings.Join(sent, " "); got != "0 1 2 3 1 2 2" {
			t.Errorf("sent entries %s", got)
		}
	})
	t.Run("a part that always fails", func(t *testing.T) {
		q, c := wired(t)
		c.Then(faults.Repeat(9, batch(t, map[string]string{"0": "InternalError"}))...)
		wantErr(t, q.Send(t.Context(), messages(2)...), queue.ErrUnavailable, "1 messages of a batch failed")
		if n := len(c.Asked()); n != awsclient.MaxAttempts {
			t.Errorf("%d requests", n)
		}
	})
	t.Run("a part that is refused stops no other", func(t *testing.T) {
		q, c := wired(t)
		c.Then(batch(t, map[string]string{"0": "sender InvalidMessageContents"}), batch(t, nil))
		wantErr(t, q.Send(t.Context(), messages(12)...), queue.ErrUnavailable, "InvalidMessageContents")
		c.WantOps(t, "SendMessageBatch", "SendMessageBatch")
	})
	t.Run("receipts that are no longer valid are no failure", func(t *testing.T) {
		q, c := wired(t)
		c.Then(batch(t, map[string]string{"0": "sender ReceiptHandleIsInvalid"}))
		if err := q.Done(t.Context(), queue.Delivery{ID: "a", Receipt: "r"}, queue.Delivery{ID: "a", Receipt: "r"}, queue.Delivery{ID: "b", Receipt: "s"}); err != nil {
			t.Error(err)
		}
		if got := entries(t, c.Asked()[0]); len(got) != 2 {
			t.Errorf("deleted %+v, want each receipt once", got)
		}
	})
	t.Run("a delete that failed is done again", func(t *testing.T) {
		q, c := wired(t)
		c.Then(batch(t, map[string]string{"1": "InternalError"}), batch(t, nil))
		if err := q.Done(t.Context(), queue.Delivery{ID: "a", Receipt: "r"}, queue.Delivery{ID: "b", Receipt: "s"}); err != nil {
			t.Error(err)
		}
		if got := entries(t, c.Asked()[1]); len(got) != 1 || got[0].ReceiptHandle != "s" {
			t.Errorf("deleted again: %+v", got)
		}
	})
}

func TestReceive(t *testing.T) {
	q, c := wired(t)
	c.Then(faults.Answer(200, `{"Messages":[
		{"MessageId":"1","ReceiptHandle":"r1","Body":"{\"id\":\"job_1\"}","Attributes":{"ApproximateReceiveCount":"3"}},
		{"MessageId":"2","ReceiptHandle":"r2","Body":"hello","Attributes":{"ApproximateReceiveCount":"1"}},
		{"MessageId":"3","ReceiptHandle":"r3","Body":"{\"id\":\"\"}","Attributes":{"ApproximateReceiveCount":"1"}},
		{"MessageId":"4","ReceiptHandle":"r4","Body":"{\"id\":\"job_4\",\"new\":1}","Attributes":{}}]}`))
	got, err := q.Receive(t.Context(), 25, 90*time.Second+time.Millisecond)
	if err != nil || len(got) != 2 || got[0] != (queue.Delivery{ID: "job_1", Attempt: 3, Receipt: "r1"}) ||
		got[1] != (queue.Delivery{ID: "job_4", Attempt: 1, Receipt: "r4"}) {
		t.Errorf("received %+v, %v: foreign messages must neither come nor stop the rest", got, err)
	}
	var in struct{ MaxNumberOfMessages, VisibilityTimeout, WaitTimeSeconds int }
	if err := json.Unmarshal(c.Asked()[0].Body, &in); err != nil || in.MaxNumberOfMessages != 10 || in.VisibilityTimeout != 91 || in.WaitTimeSeconds != 0 {
		t.Errorf("asked for %+v, %v", in, err)
	}
}

func TestRetry(t *testing.T) {
	d := queue.Delivery{ID: "a", Receipt: "r"}
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{0, 0}, {time.Millisecond, 1}, {time.Hour, 3600}, {queue.MaxLease, 42300}} {
		q, client := wired(t)
		client.Then(faults.Answer(200, "{}"))
		if err := q.Retry(t.Context(), d, c.after); err != nil {
			t.Fatal(err)
		}
		var in entry
		if err := json.Unmarshal(client.Asked()[0].Body, &in); err != nil || in.VisibilityTimeout != c.want {
			t.Errorf("after %v: %d seconds, want %d", c.after, in.VisibilityTimeout, c.want)
		}
	}
	for _, c := range []struct {
		name, code, message string
		ok                  bool
	}{
		{"not in flight", "MessageNotInflight", "", true},
		{"unknown receipt", "ReceiptHandleIsInvalid", "", true},
		{"gone", "InvalidParameterValue", "Value r for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available for visibility timeout change.", true},
		{"expired", "InvalidParameterValue", "Reason: The receipt handle has expired.", true},
		{"beyond twelve hours", "InvalidParameterValue", "Total VisibilityTimeout for the message is beyond the limit [43200 seconds]", false},
		{"no permission", "AccessDenied", "", false},
	} {
		q, client := wired(t)
		client.Then(faults.Refuse(400, c.code, c.message))
		err := q.Retry(t.Context(), d, time.Second)
		if c.ok && err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if !c.ok {
			wantErr(t, err, queue.ErrUnavailable, c.code)
		}
	}
}

func calls(q *sqsqueue.Queue) map[string]func(context.Context) error {
	d := queue.Delivery{ID: "a", Receipt: "r"}
	return map[string]func(context.Context) error{
		"SendMessageBatch":        func(ctx context.Context) error { return q.Send(ctx, messages(1)...) },
		"ReceiveMessage":          func(ctx context.Context) error { _, err := q.Receive(ctx, 1, time.Minute); return err },
		"DeleteMessageBatch":      func(ctx context.Context) error { return q.Done(ctx, d) },
		"ChangeMessageVisibility": func(ctx context.Context) error { return q.Retry(ctx, d, 0) },
	}
}

func TestOutages(t *testing.T) {
	for _, c := range []struct {
		name     string
		step     faults.Step
		attempts int
		want     error
		text     string
	}{
		{"throttled", faults.Refuse(400, "RequestThrottled", "Rate exceeded"), 3, queue.ErrUnavailable, "RequestThrottled"},
		{"down", faults.Refuse(500, "InternalError", ""), 3, queue.ErrUnavailable, "InternalError (HTTP status 500"},
		{"away", faults.Answer(503, "<html>"), 3, queue.ErrUnavailable, ""},
		{"timeouts", faults.Timeout(), 3, queue.ErrUnavailable, "timeout"},
		{"expired credentials", faults.Refuse(403, "ExpiredToken", ""), 1, queue.ErrUnavailable, "credentials of this process have expired"},
		{"no queue", faults.Refuse(400, "QueueDoesNotExist", ""), 1, queue.ErrUnavailable, "does not exist in this region"},
	} {
		q, client := wired(t)
		for op, call := range calls(q) {
			t.Run(c.name+" "+op, func(t *testing.T) {
				client.Then(faults.Repeat(9, c.step)...)
				wantErr(t, call(t.Context()), c.want, c.text)
				if n := len(client.Asked()); n != c.attempts {
					t.Errorf("%d requests, want %d", n, c.attempts)
				}
			})
		}
	}
	q, client := wired(t)
	for op, call := range calls(q) {
		ctx, cancel := context.WithCancel(t.Context())
		client.Then(faults.Hang(cancel))
		wantErr(t, call(ctx), context.Canceled, "")
		client.WantOps(t, op)
	}
}

const deadMessages = `{"Messages":[
	{"MessageId":"m2","ReceiptHandle":"r2","Body":"{\"id\":\"job_2\"}","Attributes":{"SentTimestamp":"2000"}},
	{"MessageId":"mx","ReceiptHandle":"rx","Body":"foreign","Attributes":{"SentTimestamp":"1500"}},
	{"MessageId":"m1","ReceiptHandle":"r1","Body":"{\"id\":\"job_1\"}","Attributes":{"SentTimestamp":"1000"}}]}`

// TestDeadAreGivenBack: whoever looks leaves the dead as they were, whatever happens on the way.
func TestDeadAreGivenBack(t *testing.T) {
	t.Run("listed", func(t *testing.T) {
		q, c := wired(t)
		c.Then(faults.Answer(200, deadMessages), faults.Answer(200, "{}"), batch(t, nil))
		got, next, err := q.Dead(t.Context(), "", 1)
		if err != nil || len(got) != 1 || got[0].ID != "job_1" || got[0].Attempt != queue.MaxAttempts || !got[0].Since.Equal(time.UnixMilli(1000)) || next != got[0].Handle {
			t.Errorf("dead = %+v, %q, %v", got, next, err)
		}
		c.WantOps(t, "ReceiveMessage", "ReceiveMessage", "ChangeMessageVisibilityBatch")
		if e := entries(t, c.Asked()[2]); len(e) != 3 || e[0].VisibilityTimeout != 0 {
			t.Errorf("given back: %+v", e)
		}
		c.Then(faults.Answer(200, deadMessages), faults.Answer(200, "{}"), batch(t, nil))
		got, next, err = q.Dead(t.Context(), next, 5)
		if err != nil || len(got) != 1 || got[0].ID != "job_2" || next != "" {
			t.Errorf("dead behind it = %+v, %q, %v", got, next, err)
		}
	})
	t.Run("the second look fails", func(t *testing.T) {
		q, c := wired(t)
		c.Then(faults.Answer(200, deadMessages), faults.Refuse(403, "AccessDenied", ""), batch(t, nil))
		_, _, err := q.Dead(t.Context(), "", 10)
		wantErr(t, err, queue.ErrUnavailable, "AccessDenied")
		c.WantOps(t, "ReceiveMessage", "ReceiveMessage", "ChangeMessageVisibilityBatch")
	})
	t.Run("the caller goes away", func(t *testing.T) {
		q, c := wired(t)
		ctx, cancel := context.WithCancel(t.Context())
		c.Then(faults.Answer(200, deadMessages), faults.Hang(cancel), batch(t, nil))
		_, _, err := q.Dead(ctx, "", 10)
		wantErr(t, err, context.Canceled, "")
		c.WantOps(t, "ReceiveMessage", "ReceiveMessage", "ChangeMessageVisibilityBatch")
	})
	t.Run("the send of a redrive fails", func(t *testing.T) {
		q, c := wired(t)
		c.Then(faults.Answer(200, deadMessages), faults.Answer(200, "{}"), faults.Refuse(403, "AccessDenied", ""), batch(t, nil))
		wantErr(t, q.Redrive(t.Context(), queue.Dead{Handle: "000000000001000.m1"}), queue.ErrUnavailable, "AccessDenied")
		c.WantOps(t, "ReceiveMessage", "ReceiveMessage", "SendMessageBatch", "ChangeMessageVisibilityBatch")
	})
	t.Run("a redrive sends before it deletes, and gives back the others", func(t *testing.T) {
		q, c := wired(t)
		c.Then(faults.Answer(200, deadMessages), faults.Answer(200, "{}"), batch(t, nil), batch(t, nil), batch(t, nil))
		if err := q.Redrive(t.Context(), queue.Dead{ID: "another id", Handle: "000000000001000.m1"}); err != nil {
			t.Fatal(err)
		}
		c.WantOps(t, "ReceiveMessage", "ReceiveMessage", "SendMessageBatch", "DeleteMessageBatch", "ChangeMessageVisibilityBatch")
		sent, left := entries(t, c.Asked()[2]), entries(t, c.Asked()[4])
		if sent[0].MessageBody != `{"id":"job_1"}` || len(left) != 2 {
			t.Errorf("sent %+v, gave back %+v", sent, left)
		}
	})
	t.Run("no dead-letter queue", func(t *testing.T) {
		q, err := sqsqueue.New(sqsqueue.Options{AWS: at("http://sqs.test"), URL: url})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = q.Dead(t.Context(), "", 10)
		wantErr(t, err, queue.ErrUnavailable, "no dead-letter queue")
	})
}

func TestNewRefuses(t *testing.T) {
	for name, o := range map[string]sqsqueue.Options{
		"no region": {URL: url, AWS: awsclient.Config{Credentials: at("").Credentials}}, "no queue": {AWS: at("")},
		"its own dead": {AWS: at(""), URL: url, DeadURL: url}, "negative attempts": {AWS: at(""), URL: url, MaxAttempts: -1},
	} {
		if _, err := sqsqueue.New(o); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

// FuzzBody: every id that a queue takes comes back from a body that SQS takes, and no body makes Decode fall.
func FuzzBody(f *testing.F) {
	for _, s := range []string{"job_1", "\x01\x7f", "\uFFFE\uFFFF", "\U0001F4EC", `{"id":"x"}`, `{"id":"a","id":"b"}`, `{"id":1}`, "", "<&>\u2028"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if id, err := sqsqueue.Decode(s); err == nil && queue.CheckSend([]queue.Message{{ID: id}}) != nil {
			t.Errorf("body %q gave id %q, which no queue takes", s, id)
		}
		if queue.CheckSend([]queue.Message{{ID: s}}) != nil {
			return
		}
		body := sqsqueue.Encode(s)
		for _, c := range []byte(body) {
			if c < ' ' || c > '~' {
				t.Fatalf("body %q of %q has byte %#x", body, s, c)
			}
		}
		if id, err := sqsqueue.Decode(body); err != nil || id != s {
			t.Errorf("%q came back as %q, %v", s, id, err)
		}
	})
}

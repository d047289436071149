package dynamo_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/buzon-mail/buzon/shared/awsclient"
	"github.com/buzon-mail/buzon/shared/store"
	"github.com/buzon-mail/buzon/shared/store/dynamo"
	"github.com/buzon-mail/buzon/shared/testkit/faults"
	"github.com/buzon-mail/buzon/shared/testkit/minidyn"
)

// secret stands in every key of these tests: no error may repeat it.
const secret = "ana@acme.test"

func key(sort string) store.Key {
	return store.Key{Table: store.Core, Partition: secret, Sort: sort}
}

func item(sort string, revision uint64) store.Item {
	return store.Item{Key: key(sort), Format: 1, Revision: revision, Data: []byte(secret)}
}

// faulty is an engine on minidyn whose requests go wrong as told.
func faulty(t *testing.T) (*dynamo.Engine, *faults.Client) {
	t.Helper()
	c := &faults.Client{Server: minidyn.New()}
	cfg := at("http://dynamodb.test")
	cfg.HTTP = c
	tables(t, cfg, "core", "ephemeral")
	return open(t, cfg, time.Now), c
}

func wantErr(t *testing.T, err, want error, text string) {
	t.Helper()
	if !errors.Is(err, want) || !strings.Contains(err.Error(), text) {
		t.Errorf("err = %v, want %v with %q", err, want, text)
	}
	if err != nil && strings.Contains(err.Error(), secret) {
		t.Errorf("the error repeats a key: %v", err)
	}
	var driver interface{ ErrorCode() string }
	if errors.As(err, &driver) {
		t.Errorf("AWS's own error left the engine: %T", driver)
	}
}

// calls is every call that an engine makes, by the operation it becomes. Each finds what it needs in a new engine.
func calls() map[string]func(context.Context, *dynamo.Engine) error {
	return map[string]func(context.Context, *dynamo.Engine) error{
		"GetItem": func(ctx context.Context, e *dynamo.Engine) error {
			if _, err := e.Get(ctx, key("none")); !errors.Is(err, store.ErrNotFound) {
				return err
			}
			return nil
		},
		"Query": func(ctx context.Context, e *dynamo.Engine) error {
			_, err := e.Query(ctx, store.Query{Table: store.Core, Partition: secret, Limit: 5})
			return err
		},
		"PutItem":    func(ctx context.Context, e *dynamo.Engine) error { return e.Put(ctx, item("a", 1), store.Absent()) },
		"DeleteItem": func(ctx context.Context, e *dynamo.Engine) error { return e.Delete(ctx, key("b"), store.Absent()) },
		"UpdateItem": func(ctx context.Context, e *dynamo.Engine) error {
			_, err := e.Add(ctx, key("n"), "n", 1, 10, time.Time{})
			return err
		},
		"TransactWriteItems": func(ctx context.Context, e *dynamo.Engine) error {
			return e.Transact(ctx, store.Put(item("t", 1), store.Absent()), store.Check(key("u"), store.Absent()))
		},
	}
}

func TestThrottledIsTriedAgain(t *testing.T) {
	for op, call := range calls() {
		for code, status := range map[string]int{
			"ProvisionedThroughputExceededException": 400, "ThrottlingException": 400, "RequestLimitExceeded": 400,
		} {
			t.Run(op+" "+code, func(t *testing.T) {
				e, c := faulty(t)
				c.Then(faults.Repeat(2, faults.Refuse(status, code, "slow down "+secret[:3]))...)
				if err := call(t.Context(), e); err != nil {
					t.Errorf("err = %v", err)
				}
				c.WantOps(t, op, op, op)
			})
		}
	}
}

func TestRetriesAreBounded(t *testing.T) {
	for op, call := range calls() {
		t.Run(op, func(t *testing.T) {
			e, c := faulty(t)
			c.Then(faults.Repeat(9, faults.Refuse(400, "ThrottlingException", "slow down"))...)
			wantErr(t, call(t.Context(), e), store.ErrUnavailable, "ThrottlingException (HTTP status 400, request REQ123)")
			c.WantOps(t, op, op, op)
		})
	}
}

func TestOutages(t *testing.T) {
	for name, step := range map[string]faults.Step{
		"500":     faults.Refuse(500, "InternalServerError", "oops"),
		"503":     faults.Answer(503, "<html>upstream</html>"),
		"timeout": faults.Timeout(),
	} {
		for op, call := range calls() {
			t.Run(name+" "+op, func(t *testing.T) {
				e, c := faulty(t)
				c.Then(faults.Repeat(9, step)...)
				wantErr(t, call(t.Context(), e), store.ErrUnavailable, "")
				if op == "UpdateItem" {
					c.WantOps(t, op) // it may have been carried out, and must not be twice
				} else {
					c.WantOps(t, op, op, op)
				}
				c.Then(faults.Repeat(2, step)...)
				if err := call(t.Context(), e); err != nil && op != "UpdateItem" {
					t.Errorf("a short outage: %v", err)
				}
			})
		}
	}
}

// TestLostAnswers: the write happened and nobody said so.
func TestLostAnswers(t *testing.T) {
	t.Run("a put without condition is made again", func(t *testing.T) {
		e, c := faulty(t)
		c.Then(faults.Lost())
		if err := e.Put(t.Context(), item("a", 1), store.Condition{}); err != nil {
			t.Error(err)
		}
		c.WantOps(t, "PutItem", "PutItem")
	})
	for name, write := range map[string]func(*dynamo.Engine) error{
		"a nonce":    func(e *dynamo.Engine) error { return e.Put(t.Context(), item("a", 1), store.Absent()) },
		"a revision": func(e *dynamo.Engine) error { return e.Put(t.Context(), item("r", 8), store.RevisionIs(7)) },
		"a code":     func(e *dynamo.Engine) error { return e.Delete(t.Context(), key("r"), store.Exists()) },
	} {
		t.Run(name+" that this caller may have taken is no conflict", func(t *testing.T) {
			e, c := faulty(t)
			if err := e.Put(t.Context(), item("r", 7), store.Condition{}); err != nil {
				t.Fatal(err)
			}
			c.Then(faults.Lost())
			err := write(e)
			wantErr(t, err, store.ErrUnavailable, "was not answered")
			if errors.Is(err, store.ErrConflict) {
				t.Error("the caller is told that someone else was first")
			}
			if got := write(e); !errors.Is(got, store.ErrConflict) {
				t.Errorf("later: %v, want the conflict that it is", got)
			}
		})
	}
	t.Run("a counter counts once", func(t *testing.T) {
		e, c := faulty(t)
		c.Then(faults.Lost())
		_, err := e.Add(t.Context(), key("n"), "n", 5, 0, time.Time{})
		wantErr(t, err, store.ErrUnavailable, "")
		c.WantOps(t, "UpdateItem")
		got, err := e.Get(t.Context(), key("n"))
		if err != nil || got.Counters["n"] != 5 {
			t.Errorf("counter = %v, %v, want 5", got.Counters, err)
		}
	})
	t.Run("a counter that starts anew counts once", func(t *testing.T) {
		e, c := faulty(t)
		old := item("n", 1)
		old.Expires = time.Now().Add(-time.Hour)
		if err := e.Put(t.Context(), old, store.Condition{}); err != nil {
			t.Fatal(err)
		}
		c.Then(faults.Pass(), faults.Lost())
		_, err := e.Add(t.Context(), key("n"), "n", 5, 0, time.Time{})
		c.WantOps(t, "UpdateItem", "PutItem", "PutItem")
		wantErr(t, err, store.ErrUnavailable, "was not answered")
		got, err := e.Get(t.Context(), key("n"))
		if err != nil || got.Counters["n"] != 5 {
			t.Errorf("counter = %v, %v, want 5", got.Counters, err)
		}
	})
	t.Run("a transaction is recognized by its token", func(t *testing.T) {
		e, c := faulty(t)
		c.Then(faults.Lost(), faults.Refuse(400, "TransactionInProgressException", ""))
		if err := calls()["TransactWriteItems"](t.Context(), e); err != nil {
			t.Fatal(err)
		}
		first := tokens(t, c)
		if len(first) != 3 || first[0] == "" || first[0] != first[1] || first[0] != first[2] {
			t.Errorf("tokens of one transaction: %q", first)
		}
		c.Then()
		_ = calls()["TransactWriteItems"](t.Context(), e) // a conflict; only its token counts
		if second := tokens(t, c); len(second) != 1 || second[0] == first[0] {
			t.Errorf("another transaction has token %q, as the first", second)
		}
	})
}

func tokens(t *testing.T, c *faults.Client) []string {
	t.Helper()
	var out []string
	for _, r := range c.Asked() {
		var body struct{ ClientRequestToken string }
		if err := json.Unmarshal(r.Body, &body); err != nil {
			t.Fatal(err)
		}
		out = append(out, body.ClientRequestToken)
	}
	return out
}

// canceled is a refused transaction with these reasons.
func canceled(codes ...string) faults.Step {
	type reason struct{ Code string }
	body := struct {
		Type    string   `json:"__type"`
		Reasons []reason `json:"CancellationReasons"`
	}{Type: "com.amazonaws.dynamodb.v20120810#TransactionCanceledException"}
	for _, c := range codes {
		body.Reasons = append(body.Reasons, reason{c})
	}
	b, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return faults.Answer(http.StatusBadRequest, string(b))
}

func TestCanceledTransactions(t *testing.T) {
	const none, cond, busy = "None", "ConditionalCheckFailed", "TransactionConflict"
	for _, c := range []struct {
		name     string
		reasons  []string
		index    int // of the conflict; -1: it is tried again and happens
		attempts int
	}{
		{"first", []string{cond, none}, 0, 1},
		{"second", []string{none, cond}, 1, 1},
		{"both", []string{cond, cond}, 0, 1},
		{"busy behind a condition", []string{cond, busy}, 0, 1},
		{"busy", []string{none, busy}, -1, 2},
		{"a condition behind busy is no answer", []string{busy, cond}, -1, 2},
		{"throttled", []string{none, "ThrottlingError"}, -1, 2},
		{"over the throughput", []string{"ProvisionedThroughputExceeded", none}, -1, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, client := faulty(t)
			client.Then(canceled(c.reasons...))
			err := calls()["TransactWriteItems"](t.Context(), e)
			if conflict, ok := errors.AsType[*store.ConflictError](err); c.index >= 0 && (!ok || conflict.Index != c.index) || c.index < 0 && err != nil {
				t.Errorf("err = %v, want conflict %d", err, c.index)
			}
			if n := len(client.Asked()); n != c.attempts {
				t.Errorf("%d attempts, want %d", n, c.attempts)
			}
		})
	}
	t.Run("busy for ever", func(t *testing.T) {
		e, client := faulty(t)
		client.Then(faults.Repeat(20, canceled(busy, none))...)
		wantErr(t, calls()["TransactWriteItems"](t.Context(), e), store.ErrUnavailable, "TransactionCanceledException")
		if n := len(client.Asked()); n != awsclient.MaxConflicts {
			t.Errorf("%d attempts, want %d", n, awsclient.MaxConflicts)
		}
	})
	t.Run("a single write meets a transaction", func(t *testing.T) {
		for _, op := range []string{"PutItem", "DeleteItem", "UpdateItem"} {
			e, client := faulty(t)
			client.Then(faults.Repeat(3, faults.Refuse(400, "TransactionConflictException", ""))...)
			if err := calls()[op](t.Context(), e); err != nil {
				t.Errorf("%s: %v", op, err)
			}
			client.WantOps(t, op, op, op, op)
		}
	})
	t.Run("an invalid part", func(t *testing.T) {
		e, client := faulty(t)
		client.Then(canceled("ValidationError", none))
		wantErr(t, calls()["TransactWriteItems"](t.Context(), e), store.ErrUnavailable, "")
		client.WantOps(t, "TransactWriteItems")
	})
}

func TestContextBoundsRetries(t *testing.T) {
	for op, call := range calls() {
		t.Run("canceled while it waits: "+op, func(t *testing.T) {
			e, c := faulty(t)
			ctx, cancel := context.WithCancel(t.Context())
			c.Then(faults.Hang(cancel))
			wantErr(t, call(ctx, e), context.Canceled, "")
			c.WantOps(t, op)
		})
	}
	t.Run("canceled between attempts", func(t *testing.T) {
		c := &faults.Client{Server: minidyn.New()}
		ctx, cancel := context.WithCancel(t.Context())
		cfg := at("http://dynamodb.test")
		cfg.HTTP = c
		cfg.Backoff = func(int, bool) time.Duration { cancel(); return time.Hour }
		e := open(t, cfg, time.Now)
		c.Then(faults.Repeat(3, faults.Refuse(400, "ThrottlingException", ""))...)
		_, err := e.Get(ctx, key("a"))
		wantErr(t, err, context.Canceled, "")
		c.WantOps(t, "GetItem")
	})
}

func TestWhatNoRetryMends(t *testing.T) {
	for _, c := range []struct {
		name string
		step faults.Step
		text string
	}{
		{"expired credentials", faults.Refuse(400, "ExpiredTokenException", "The security token included in the request is expired"), "credentials of this process have expired"},
		{"unknown credentials", faults.Refuse(400, "UnrecognizedClientException", "invalid token"), "does not know the credentials"},
		{"no permission", faults.Refuse(400, "AccessDeniedException", "User: arn:aws:sts::1:x is not authorized to perform: dynamodb:PutItem"), "dynamodb:PutItem"},
		{"no table", faults.Refuse(400, "ResourceNotFoundException", "Requested resource not found"), "does not exist in this region"},
		{"wrong signature", faults.Refuse(400, "InvalidSignatureException", "mismatch"), "compare clock, region and credentials"},
		{"a validation that repeats what was sent", faults.Refuse(400, "ValidationException", "The value "+secret+" is bad"), "ValidationException"},
		{"an answer that is no JSON", faults.Answer(200, "<html>", "Content-Type", "text/html"), ""},
	} {
		for op, call := range calls() {
			t.Run(c.name+" "+op, func(t *testing.T) {
				e, client := faulty(t)
				client.Then(c.step)
				wantErr(t, call(t.Context(), e), store.ErrUnavailable, c.text)
				client.WantOps(t, op)
			})
		}
	}
}

func TestClockSkewIsCorrected(t *testing.T) {
	e, c := faulty(t)
	c.Then(faults.Skewed(time.Hour, "InvalidSignatureException"))
	if _, err := e.Get(t.Context(), key("a")); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("err = %v", err)
	}
	asked := c.Asked()
	if len(asked) != 2 {
		t.Fatalf("%d attempts, want 2", len(asked))
	}
	var dates [2]time.Time
	for i, r := range asked {
		at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
		if err != nil {
			t.Fatal(err)
		}
		dates[i] = at
	}
	if ahead := dates[1].Sub(dates[0]); ahead < 55*time.Minute {
		t.Errorf("the second attempt was signed %v ahead, want about an hour", ahead)
	}
}

// TestRefusalWithoutTheRow: a DynamoDB that sends no row along with a refusal costs one read more, and says the same.
func TestRefusalWithoutTheRow(t *testing.T) {
	e, c := faulty(t)
	if _, err := e.Add(t.Context(), key("n"), "n", 9, 10, time.Time{}); err != nil {
		t.Fatal(err)
	}
	c.Then(faults.Refuse(400, "ConditionalCheckFailedException", ""))
	got, err := e.Add(t.Context(), key("n"), "n", 2, 10, time.Time{})
	if !errors.Is(err, store.ErrLimit) || got != 9 {
		t.Errorf("add = %d, %v, want 9 and ErrLimit", got, err)
	}
	c.WantOps(t, "UpdateItem", "GetItem")

	c.Then(faults.Repeat(99, faults.Refuse(400, "ConditionalCheckFailedException", ""))...)
	_, err = e.Add(t.Context(), key("n"), "n", 1, 10, time.Time{})
	wantErr(t, err, store.ErrUnavailable, "")
	if n := len(c.Asked()); n > 20 {
		t.Errorf("%d requests for one add", n)
	}
}

func TestRowOverDynamoDBsSize(t *testing.T) {
	e, c := faulty(t)
	c.Then(faults.Refuse(400, "ValidationException", "Item size to update has exceeded the maximum allowed size"))
	_, err := e.Add(t.Context(), key("n"), "n", 1, 0, time.Time{})
	wantErr(t, err, store.ErrTooLarge, "400 KB")
}

func TestDamagedRows(t *testing.T) {
	for name, row := range map[string]string{
		"no format":           `{"pk":{"S":"p"},"sk":{"S":"a"},"rev":{"N":"1"}}`,
		"format over 8 bits":  `{"pk":{"S":"p"},"sk":{"S":"a"},"fmt":{"N":"256"}}`,
		"negative revision":   `{"pk":{"S":"p"},"sk":{"S":"a"},"fmt":{"N":"1"},"rev":{"N":"-1"}}`,
		"fraction of a count": `{"pk":{"S":"p"},"sk":{"S":"a"},"fmt":{"N":"1"},"+n":{"N":"1.5"}}`,
		"expiry beyond int64": `{"pk":{"S":"p"},"sk":{"S":"a"},"fmt":{"N":"1"},"exp":{"N":"99999999999999999999"}}`,
		"no key":              `{"fmt":{"N":"1"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			e, c := faulty(t)
			c.Then(faults.Answer(400, `{"__type":"#ConditionalCheckFailedException","Item":`+row+`}`))
			if _, err := e.Add(t.Context(), key("a"), "n", 1, 0, time.Time{}); err == nil || errors.Is(err, store.ErrUnavailable) {
				t.Errorf("add: %v", err)
			}
			c.WantOps(t, "UpdateItem")
			c.Then(faults.Answer(200, `{"Item":`+row+`}`), faults.Answer(200, `{"Items":[`+row+`]}`))
			if _, err := e.Get(t.Context(), key("a")); err == nil || errors.Is(err, store.ErrNotFound) {
				t.Errorf("get: %v", err)
			}
			if _, err := e.Query(t.Context(), store.Query{Table: store.Core, Partition: "p", Limit: 1}); err == nil {
				t.Error("query took it")
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	good := at("http://dynamodb.test")
	for name, o := range map[string]dynamo.Options{
		"no region":      {AWS: awsclient.Config{Credentials: good.Credentials}, Core: "c", Ephemeral: "e"},
		"no credentials": {AWS: awsclient.Config{Region: "eu-west-1"}, Core: "c", Ephemeral: "e"},
		"no core":        {AWS: good, Ephemeral: "e"},
		"no ephemeral":   {AWS: good, Core: "c"},
		"one table":      {AWS: good, Core: "c", Ephemeral: "c"},
	} {
		if _, err := dynamo.New(o); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if aws.ToString(awsclient.Config{}.Base()) != "" {
		t.Error("an endpoint out of nothing")
	}
}

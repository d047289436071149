package lambdaedge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/buzon-mail/buzon/shared/tracecontext"
)

const (
	// batchMargin is kept between the handlers' deadline and the moment at which Lambda kills the process: enough for the last
	// write of a message that is interrupted, and for the reply, without which every message of the batch comes again.
	batchMargin = 3 * time.Second
	// maxBatch is what SQS gives one invocation at most (with a batching window).
	maxBatch = 10_000
)

// ErrNotTrigger is an event that is neither a batch of a queue nor the clock's, or one that the function has no use for. It
// fails the invocation: to answer it would end messages that nobody looked at.
var ErrNotTrigger = errors.New("lambdaedge: not an event of this function")

// Message is one message of a queue.
type Message struct {
	ID      string // the queue's own, for the log
	Body    string
	Attempt int       // how often the queue has given it out, from 1
	Receipt string    // names this delivery to the queue; opaque
	Queue   string    // its name
	Sent    time.Time // zero when the event does not say
}

// Tick is the clock's event. It may come twice, and late.
type Tick struct {
	ID  string    // the event's, for the log
	Due time.Time // when it was due
}

// TriggerOptions are what a function does with its events. Without Message a batch is ErrNotTrigger, without Tick the clock is.
type TriggerOptions struct {
	// Message works on one message. Nil ends it; an error, or a panic, gives this one back to the queue, which delivers it again
	// and sets it aside in the end. It must return when the context ends, which is before Lambda's own deadline.
	Message func(context.Context, Message) error
	// Tick does what is due. An error fails the invocation.
	Tick func(context.Context, Tick) error

	Parallel int           // messages at once; 1 when 0
	Logger   *slog.Logger  // nil: slog.Default()
	Margin   time.Duration // before Lambda's deadline; 0: 3 s
}

// Triggers serves the events that are no requests: batches of a queue, and the clock. One message's failure is its own: the
// others of its batch are done, and the reply names those that are not.
type Triggers struct{ opts TriggerOptions }

// NewTriggers fills in the defaults.
func NewTriggers(o TriggerOptions) *Triggers {
	o.Parallel = max(o.Parallel, 1)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Margin <= 0 {
		o.Margin = batchMargin
	}
	return &Triggers{o}
}

var _ lambda.Handler = (*Triggers)(nil)

// StartTriggers polls Lambda's runtime for events and never returns.
func StartTriggers(t *Triggers) { lambda.Start(t) }

// trigger is the union of what is read of the two shapes.
type trigger struct {
	Records []record `json:"Records"` //nolint:tagliatelle // AWS's name

	// The clock: EventBridge rules and EventBridge Scheduler.
	ID         string `json:"id"`
	Source     string `json:"source"`
	DetailType string `json:"detail-type"` //nolint:tagliatelle // AWS's name
	Time       string `json:"time"`
}

type record struct {
	MessageID   string `json:"messageId"`
	Receipt     string `json:"receiptHandle"`
	Body        string `json:"body"`
	EventSource string `json:"eventSource"`
	SourceARN   string `json:"eventSourceARN"`
	Attributes  struct {
		ReceiveCount string `json:"ApproximateReceiveCount"` //nolint:tagliatelle // AWS's name
		Sent         string `json:"SentTimestamp"`           //nolint:tagliatelle // AWS's name
		Trace        string `json:"AWSTraceHeader"`          //nolint:tagliatelle // AWS's name
	} `json:"attributes"`
}

// Invoke serves one event, as JSON. For a batch the reply names the messages that are to come again. The payload is not kept.
func (t *Triggers) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var e trigger
	if err := json.Unmarshal(payload, &e); err != nil {
		return nil, fmt.Errorf("%w: %s", ErrNotTrigger, jsonFault(err))
	}
	ctx, cancel := early(ctx, t.opts.Margin)
	defer cancel()
	switch {
	case len(e.Records) > 0:
		return t.batch(ctx, e.Records)
	case e.DetailType == "Scheduled Event" && (e.Source == "aws.events" || e.Source == "aws.scheduler"):
		return t.tick(ctx, e)
	}
	return nil, fmt.Errorf("%w: neither SQS nor a schedule sent it", ErrNotTrigger)
}

func (t *Triggers) tick(ctx context.Context, e trigger) ([]byte, error) {
	if t.opts.Tick == nil {
		return nil, fmt.Errorf("%w: it has no schedule", ErrNotTrigger)
	}
	due, err := time.Parse(time.RFC3339, e.Time)
	if err != nil {
		return nil, fmt.Errorf("%w: a schedule without its time", ErrNotTrigger)
	}
	err = t.guard(ctx, e.ID, func(ctx context.Context) error { return t.opts.Tick(ctx, Tick{ID: e.ID, Due: due}) })
	if err != nil {
		return nil, fmt.Errorf("lambdaedge: tick: %w", err)
	}
	return []byte("null"), nil
}

// batch works on every message and names those that failed. The check comes before any work: a message without an id can't be
// named in the reply, and an empty name there makes AWS give back the whole batch.
func (t *Triggers) batch(ctx context.Context, records []record) ([]byte, error) {
	if t.opts.Message == nil || len(records) > maxBatch {
		return nil, fmt.Errorf("%w: it takes no such batch", ErrNotTrigger)
	}
	for i := range records {
		if r := &records[i]; r.EventSource != "aws:sqs" || r.MessageID == "" {
			return nil, fmt.Errorf("%w: record %d is no message of SQS", ErrNotTrigger, i)
		}
	}
	failed := make([]bool, len(records))
	next := make(chan int)
	var team sync.WaitGroup
	for range min(t.opts.Parallel, len(records)) {
		team.Go(func() {
			for i := range next {
				failed[i] = t.message(ctx, &records[i]) != nil
			}
		})
	}
	for i := range records {
		next <- i
	}
	close(next)
	team.Wait()
	return reportFailures(records, failed), nil
}

// message works on one. With the time used up it is given back untouched.
func (t *Triggers) message(ctx context.Context, r *record) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("lambdaedge: no time left: %w", err)
	}
	m := Message{ID: r.MessageID, Body: r.Body, Receipt: r.Receipt, Queue: r.SourceARN[strings.LastIndexByte(r.SourceARN, ':')+1:], Attempt: 1}
	if n, err := strconv.Atoi(r.Attributes.ReceiveCount); err == nil && n > 0 {
		m.Attempt = n
	}
	if ms, err := strconv.ParseInt(r.Attributes.Sent, 10, 64); err == nil && ms > 0 {
		m.Sent = time.UnixMilli(ms).UTC()
	}
	if c, ok := tracecontext.ParseXRay(r.Attributes.Trace); ok { // of whoever sent it
		ctx = tracecontext.With(ctx, c)
	}
	return t.guard(ctx, m.ID, func(ctx context.Context) error { return t.opts.Message(ctx, m) })
}

var errPanicked = errors.New("lambdaedge: panic")

// guard runs a handler and makes its panic an error: it must end neither the process nor the other messages.
func (t *Triggers) guard(ctx context.Context, id string, work func(context.Context) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			logPanic(ctx, t.opts.Logger, v, id)
			err = errPanicked
		}
	}()
	return work(ctx)
}

// reportFailures is the partial batch reply; each id stands in it once.
func reportFailures(records []record, failed []bool) []byte {
	reply := []byte(`{"batchItemFailures":[`)
	named := make(map[string]bool)
	for i, r := range records {
		if !failed[i] || named[r.MessageID] {
			continue
		}
		if len(named) > 0 {
			reply = append(reply, ',')
		}
		named[r.MessageID] = true
		reply = append(appendString(append(reply, `{"itemIdentifier":`...), r.MessageID), '}')
	}
	return append(reply, "]}"...)
}

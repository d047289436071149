// Package webhook tells receivers of events: it gives an event out to the webhooks that want it, signs and sends each delivery after
// Standard Webhooks (standardwebhooks.com, the specification of 2023, symmetric signatures v1), tries again on a schedule, and
// switches off what fails for days. Delivery is at least once and in no order: a receiver is told again when its answer was lost,
// and an event that waits for its next attempt is overtaken. It knows the domain's types, a queue of ids and one bounded HTTP
// client; it knows neither a store's engine nor who subscribed and why.
//
// Nothing rests on memory. What is to be done lies in rows: an event in the outbox, a delivery under the time of its next attempt.
// A queue's message only says that one of them may be looked at, so it may be lost, doubled or late.
package webhook

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/queue"
	"github.com/buzon-mail/buzon/shared/safehttp"
)

// The prefixes of the ids that the engine takes off a queue.
const (
	PrefixEvent    = "event_"
	PrefixDelivery = "delivery_"
)

// Events holds what happened and was not given out.
type Events interface {
	// Event finds one; not_found when it was given out, which a redelivery takes for success.
	Event(ctx context.Context, id string) (inbox.Event, error)
	// Subscribers are all webhooks of a workspace; none is an empty list.
	Subscribers(ctx context.Context, workspace string) ([]inbox.WebhookEntry, error)
	// GiveOut stores the deliveries of an event and what they carry, and drops the event last, in transactions of bounded size.
	// Repeating it, also half-way, changes nothing that is there.
	GiveOut(ctx context.Context, e inbox.Event, body []byte, list []inbox.WebhookDelivery) error
}

// Deliveries holds what is on its way.
type Deliveries interface {
	// Delivery finds one with its attempts; not_found when there is none.
	Delivery(ctx context.Context, workspace, id string) (inbox.WebhookDelivery, error)
	// KeptEvent is what the deliveries of an event carry; not_found when it is kept no longer.
	KeptEvent(ctx context.Context, workspace, id string) ([]byte, error)
	// Claim and Settle let change alter a delivery and store it if nothing came between, else start again (bounded). An error of
	// change is returned as it is. Only Settle moves what lists show.
	Claim(ctx context.Context, workspace, id string, change func(*inbox.WebhookDelivery) error) (inbox.WebhookDelivery, error)
	Settle(ctx context.Context, workspace, id string, change func(*inbox.WebhookDelivery) error) (inbox.WebhookDelivery, error)
	// Due lists, as queue messages, deliveries whose next attempt was due before a time, the longest due first.
	Due(ctx context.Context, before time.Time, limit int) ([]string, error)
}

// Webhooks knows the receivers.
type Webhooks interface {
	// Webhook finds one, deleted or not; not_found when there is none.
	Webhook(ctx context.Context, workspace, id string) (inbox.Webhook, error)
	// Failed and Succeeded remember how a receiver answered; Failed returns for how long it has been failing.
	Failed(ctx context.Context, workspace, id string, at time.Time) (inbox.WebhookHealth, error)
	Succeeded(ctx context.Context, workspace, id string) error
	// Disable switches one off, with its event; false when it is off already.
	Disable(ctx context.Context, workspace, id, reason string, at time.Time) (bool, error)
	// Occupy takes one of so many slots of a receiver until a time; nil without an error when none is free.
	Occupy(ctx context.Context, receiver string, slots int, until time.Time) (free func(context.Context), err error)
}

// Secrets opens sealed signing secrets.
type Secrets interface {
	Open(token string, ad []byte) ([]byte, error)
}

// Client sends a request to an address that somebody else chose; *safehttp.Client is one.
type Client interface {
	Do(ctx context.Context, r safehttp.Request) (*safehttp.Response, error)
}

// Deps is what the engine stands on.
type Deps struct {
	Events     Events
	Deliveries Deliveries
	Webhooks   Webhooks
	Queue      queue.Queue
	// Secrets is asked for when the first secret is to be opened: a process that sends nothing need not have the keys.
	Secrets func(context.Context) (Secrets, error)
	Client  Client // with Timeout for a whole exchange
	Logger  *slog.Logger
	Clock   func() time.Time // time.Now when nil
}

// Options bound the work. A zero field takes the default.
type Options struct {
	Base     string // of the API's paths in what is sent, as https://mail.example.com/api/v1
	Parallel int    // deliveries that this process sends at once; 8
	Slots    int    // of them, and of all other processes', to one host of one organization; 4
}

// Timeout is how long one exchange may take.
const Timeout = 10 * time.Second

// lease is how long an attempt belongs to the worker that began it: longer than it can take.
const lease = time.Minute

// Engine sends. Its methods may be called by many goroutines and in many processes at once.
type Engine struct {
	deps     Deps
	opts     Options
	parallel *semaphore.Weighted
}

// New checks the dependencies.
func New(d Deps, o Options) (*Engine, error) {
	if d.Events == nil || d.Deliveries == nil || d.Webhooks == nil || d.Queue == nil || d.Secrets == nil || d.Client == nil || d.Logger == nil {
		return nil, errors.New("webhook: a dependency is missing")
	}
	if d.Clock == nil {
		d.Clock = time.Now
	}
	if o.Parallel <= 0 {
		o.Parallel = 8
	}
	if o.Slots <= 0 {
		o.Slots = 4
	}
	return &Engine{d, o, semaphore.NewWeighted(int64(o.Parallel))}, nil
}

func (e *Engine) now() time.Time { return e.deps.Clock().UTC().Truncate(time.Millisecond) }

// Handle does what a message asks for: an event is given out, a delivery is sent if it is due. Nil means done, also when there was
// nothing left to do; the errors are those of package apperr, for the queue's table of dispositions.
func (e *Engine) Handle(ctx context.Context, id string, _ int) error {
	if strings.HasPrefix(id, PrefixEvent) {
		return e.giveOut(ctx, id)
	}
	ws, delivery, ok := inbox.ParseDeliveryMessage(id)
	if !ok {
		return apperr.New(apperr.Invalid, "bad_job", "The queue holds a message that is not for this worker.")
	}
	return e.deliver(ctx, ws, delivery)
}

// giveOut makes a delivery for each webhook that wants the event.
func (e *Engine) giveOut(ctx context.Context, id string) error {
	event, err := e.deps.Events.Event(ctx, id)
	if apperr.Is(err, apperr.NotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("event %s: %w", id, err)
	}
	all, err := e.deps.Events.Subscribers(ctx, event.Workspace)
	if err != nil {
		return fmt.Errorf("subscribers of %s: %w", id, err)
	}
	body, err := event.Body(e.opts.Base)
	if err != nil {
		return err //nolint:wrapcheck // it names the event
	}
	var list []inbox.WebhookDelivery
	var messages []queue.Message
	for _, w := range all {
		if !w.Wants(event) {
			continue
		}
		d := inbox.NewDelivery(event, w.ID, e.now())
		list, messages = append(list, d), append(messages, queue.Message{ID: inbox.DeliveryMessage(d.Workspace, d.ID)})
	}
	if err := e.deps.Events.GiveOut(ctx, event, body, list); err != nil {
		return fmt.Errorf("give out %s: %w", id, err)
	}
	for len(messages) > 0 {
		n := min(len(messages), queue.MaxBatch)
		e.send(ctx, messages[:n]...)
		messages = messages[n:]
	}
	return nil
}

// send tells the queue of deliveries. What it does not take, Due brings later.
func (e *Engine) send(ctx context.Context, messages ...queue.Message) {
	if err := e.deps.Queue.Send(ctx, messages...); err != nil {
		e.deps.Logger.LogAttrs(ctx, slog.LevelWarn, "webhook: deliveries not queued, they are looked for when due", slog.Int("count", len(messages)))
	}
}

// receiver is what slots are counted by: all webhooks of an organization to one host share them, for it is the host that is slow.
func receiver(organization, host string) string {
	return inbox.ShortDigest(sha256.Sum256([]byte(organization + "\x00" + host)))
}

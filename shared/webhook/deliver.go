package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/queue"
	"github.com/buzon-mail/buzon/shared/safehttp"
)

// userAgent names the sender; receivers must judge by the signature.
const userAgent = "Buzon-Webhooks/1 (standardwebhooks.com)"

// What lies between a delivery that found no room and its next look.
const (
	busyHere     = time.Second      // this process sends as much as it may
	busyReceiver = 3 * time.Second  // the receiver's slots are taken
	busyFailing  = 45 * time.Second // and it has been failing: its backlog must not keep workers from better work
)

// settleTimeout bounds what must be written whether or not the worker is to stop.
const settleTimeout = 5 * time.Second

// errNotNow ends a claim without a change: another worker has it, or it is not due.
var errNotNow = errors.New("webhook: not now")

// deliver makes one attempt if it is due. The order matters: a slot before the claim, for an attempt that only waited must not
// count; the claim before the exchange, for a worker that dies must leave a trace that brings the delivery back.
func (e *Engine) deliver(ctx context.Context, ws, id string) error {
	d, err := e.deps.Deliveries.Delivery(ctx, ws, id)
	if apperr.Is(err, apperr.NotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delivery %s: %w", id, err)
	}
	if !d.Open() || d.NextAt.After(e.now()) {
		return nil
	}
	if t, bounded := ctx.Deadline(); bounded && time.Until(t) < Timeout+settleTimeout {
		// There is no time left to wait for an answer in; the next look is a message away.
		e.send(ctx, queue.Message{ID: inbox.DeliveryMessage(ws, id), Delay: busyHere})
		return nil
	}
	w, err := e.deps.Webhooks.Webhook(ctx, ws, d.Webhook)
	if err != nil && !apperr.Is(err, apperr.NotFound) {
		return fmt.Errorf("webhook of %s: %w", id, err)
	}
	if err != nil || !w.DeletedAt.IsZero() || !w.Enabled {
		return e.giveUp(ctx, d, inbox.DeadDisabled)
	}
	body, err := e.deps.Deliveries.KeptEvent(ctx, ws, d.Event)
	if apperr.Is(err, apperr.NotFound) {
		return e.giveUp(ctx, d, inbox.DeadExpired)
	}
	if err != nil {
		return fmt.Errorf("event of %s: %w", id, err)
	}
	secrets, err := e.secrets(ctx, w)
	if err != nil {
		return fmt.Errorf("secrets of %s: %w", w.ID, err)
	}
	free, err := e.room(ctx, w, d)
	if err != nil || free == nil {
		return err
	}
	defer free()
	return e.attempt(ctx, w, d, body, secrets)
}

// secrets are those that sign now, the newest first.
func (e *Engine) secrets(ctx context.Context, w inbox.Webhook) ([]string, error) {
	box, err := e.deps.Secrets(ctx)
	if err != nil {
		return nil, apperr.New(apperr.Unavailable, "", "The keys can't be read now.").Because(err)
	}
	sealed := []string{w.Secret}
	if w.Previous != "" && e.now().Before(w.PreviousUntil) {
		sealed = append(sealed, w.Previous)
	}
	var secrets []string
	for _, s := range sealed {
		plain, err := box.Open(s, inbox.WebhookSecretAD(w.Workspace, w.ID))
		if err != nil {
			return nil, fmt.Errorf("open: %w", err)
		}
		secrets = append(secrets, string(plain))
	}
	return secrets, nil
}

// room takes a place in this process and a slot of the receiver; nil when there is none, and then a message comes later.
func (e *Engine) room(ctx context.Context, w inbox.Webhook, d inbox.WebhookDelivery) (free func(), err error) {
	message := queue.Message{ID: inbox.DeliveryMessage(d.Workspace, d.ID), Delay: busyHere}
	if !e.parallel.TryAcquire(1) {
		e.send(ctx, message)
		return nil, nil //nolint:nilnil // none is free
	}
	u, err := url.Parse(w.URL)
	if err != nil {
		e.parallel.Release(1)
		return nil, fmt.Errorf("address of %s: %w", w.ID, err)
	}
	slot, err := e.deps.Webhooks.Occupy(ctx, receiver(w.Organization, u.Hostname()), e.opts.Slots, e.now().Add(lease))
	if err != nil || slot == nil {
		e.parallel.Release(1)
		if err != nil {
			return nil, fmt.Errorf("slot of %s: %w", w.ID, err)
		}
		return nil, e.postpone(ctx, d)
	}
	return func() {
		bounded(ctx, slot)
		e.parallel.Release(1)
	}, nil
}

// postpone moves a delivery whose receiver is busy, so that Due leaves it alone meanwhile.
func (e *Engine) postpone(ctx context.Context, d inbox.WebhookDelivery) error {
	pause := busyReceiver
	if d.Attempt > 0 {
		pause = busyFailing
	}
	_, err := e.deps.Deliveries.Claim(ctx, d.Workspace, d.ID, func(now *inbox.WebhookDelivery) error {
		if !now.Open() || !now.NextAt.Equal(d.NextAt) {
			return errNotNow
		}
		now.NextAt = e.now().Add(pause)
		return nil
	})
	if errors.Is(err, errNotNow) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("postpone %s: %w", d.ID, err)
	}
	e.send(ctx, queue.Message{ID: inbox.DeliveryMessage(d.Workspace, d.ID), Delay: pause})
	return nil
}

// attempt claims, sends and settles.
func (e *Engine) attempt(ctx context.Context, w inbox.Webhook, d inbox.WebhookDelivery, body []byte, secrets []string) error {
	began := e.now()
	d, err := e.deps.Deliveries.Claim(ctx, d.Workspace, d.ID, func(d *inbox.WebhookDelivery) error { return claim(d, began) })
	if errors.Is(err, errNotNow) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("claim %s: %w", d.ID, err)
	}
	a, err := e.exchange(ctx, w, d, body, secrets)
	if err != nil {
		return err
	}
	if ctx.Err() != nil && a.HTTPStatus == 0 { // the worker is to stop: what was cut off says nothing of the receiver
		return apperr.New(apperr.Unavailable, "interrupted", "The work was interrupted.").Because(ctx.Err())
	}
	return e.settle(ctx, w, d, a)
}

// claim begins an attempt. One that was begun and never ended is remembered as such.
func claim(d *inbox.WebhookDelivery, now time.Time) error {
	if !d.Open() || d.NextAt.After(now) {
		return errNotNow
	}
	if !d.Claimed.IsZero() {
		remember(d, inbox.DeliveryAttempt{At: d.Claimed, Error: inbox.AttemptInterrupted, Manual: d.Manual})
	}
	d.Attempt++
	if !d.Manual {
		d.Scheduled++
	}
	d.Claimed, d.NextAt, d.UpdatedAt = now, now.Add(lease), now
	return nil
}

func remember(d *inbox.WebhookDelivery, a inbox.DeliveryAttempt) {
	d.Attempts = append(d.Attempts, a)
	d.Attempts = d.Attempts[max(0, len(d.Attempts)-inbox.MaxAttempts):]
}

// exchange sends the delivery. The error is a fault of ours; what the receiver does is in the attempt.
func (e *Engine) exchange(ctx context.Context, w inbox.Webhook, d inbox.WebhookDelivery, body []byte, secrets []string) (inbox.DeliveryAttempt, error) {
	a := inbox.DeliveryAttempt{At: d.Claimed, Manual: d.Manual, Signatures: len(secrets)}
	signature, err := sign(d.ID, a.At, body, secrets...)
	if err != nil {
		return a, fmt.Errorf("sign %s: %w", d.ID, err)
	}
	res, err := e.deps.Client.Do(ctx, safehttp.Request{
		Method: http.MethodPost, URL: w.URL, Body: body, MaxBody: 4 * inbox.MaxResponse, Cut: true,
		Header: http.Header{
			"Content-Type": {"application/json"}, "User-Agent": {userAgent},
			HeaderID: {d.ID}, HeaderTimestamp: {stamp(a.At)}, HeaderSignature: {signature},
		},
	})
	a.Duration = max(e.now().Sub(a.At).Milliseconds(), 0)
	if err != nil {
		a.Error = inbox.AttemptNoAnswer
		e.deps.Logger.LogAttrs(ctx, slog.LevelInfo, "webhook: no answer", slog.String("webhook", w.ID), slog.String("delivery", d.ID), slog.String("error", err.Error()))
		return a, nil
	}
	a.HTTPStatus, a.Response = res.Status, excerpt(res.Body)
	return a, nil
}

// excerpt bounds by runes and by bytes what is kept of an answer.
func excerpt(body []byte) string {
	s := inbox.Excerpt(string(body), inbox.MaxResponse)
	for len(s) > inbox.MaxResponse {
		s = inbox.Excerpt(s[:inbox.MaxResponse], inbox.MaxResponse)
	}
	return s
}

// settle writes what came of an attempt, also when the worker is to stop: it has happened.
func (e *Engine) settle(ctx context.Context, w inbox.Webhook, d inbox.WebhookDelivery, a inbox.DeliveryAttempt) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	now := e.now()
	settled, err := e.deps.Deliveries.Settle(ctx, d.Workspace, d.ID, func(x *inbox.WebhookDelivery) error {
		if !x.Claimed.Equal(d.Claimed) { // another worker has taken over: what it sends is judged by itself
			return errNotNow
		}
		outcome(x, a, now)
		return nil
	})
	if err != nil && !errors.Is(err, errNotNow) {
		return fmt.Errorf("settle %s: %w", d.ID, err)
	}
	if err == nil {
		d = settled
	}
	e.deps.Logger.LogAttrs(ctx, slog.LevelInfo, "webhook: attempt", slog.String("webhook", w.ID), slog.String("delivery", d.ID),
		slog.Int("attempt", d.Attempt), slog.Int("status", a.HTTPStatus), slog.Int64("ms", a.Duration), slog.String("outcome", string(d.Status)))
	if err == nil && d.Open() {
		if pause := d.NextAt.Sub(now); pause <= queue.MaxDelay {
			e.send(ctx, queue.Message{ID: inbox.DeliveryMessage(d.Workspace, d.ID), Delay: max(pause, 0)})
		}
	}
	return e.judge(ctx, w, a, now)
}

// outcome moves a delivery on after an attempt.
func outcome(d *inbox.WebhookDelivery, a inbox.DeliveryAttempt, now time.Time) {
	remember(d, a)
	once := d.Once
	d.Claimed, d.Manual, d.Once, d.NextAt = time.Time{}, false, false, time.Time{}
	d.HTTPStatus, d.Duration, d.UpdatedAt = a.HTTPStatus, a.Duration, now
	pause, more := after(d.Scheduled)
	switch {
	case a.HTTPStatus/100 == 2:
		d.Status, d.Reason = inbox.DeliverySucceeded, ""
	case a.HTTPStatus == http.StatusGone:
		d.Status, d.Reason = inbox.DeliveryDead, inbox.DeadRefused
	case once || !more:
		d.Status, d.Reason = inbox.DeliveryDead, inbox.DeadExhausted
	default:
		d.Status, d.NextAt = inbox.DeliveryFailed, now.Add(pause)
	}
}

// judge remembers how the receiver answered, and switches off one that is gone or has been failing for days.
func (e *Engine) judge(ctx context.Context, w inbox.Webhook, a inbox.DeliveryAttempt, now time.Time) error {
	if a.HTTPStatus/100 == 2 {
		if err := e.deps.Webhooks.Succeeded(ctx, w.Workspace, w.ID); err != nil {
			return fmt.Errorf("health of %s: %w", w.ID, err)
		}
		return nil
	}
	reason := ""
	if a.HTTPStatus == http.StatusGone {
		reason = inbox.DisabledGone
	}
	h, err := e.deps.Webhooks.Failed(ctx, w.Workspace, w.ID, now)
	if err != nil {
		return fmt.Errorf("health of %s: %w", w.ID, err)
	}
	if reason == "" && now.Sub(h.FailingSince) >= disableAfter {
		reason = inbox.DisabledFailing
	}
	if reason == "" {
		return nil
	}
	done, err := e.deps.Webhooks.Disable(ctx, w.Workspace, w.ID, reason, now)
	if err != nil {
		return fmt.Errorf("disable %s: %w", w.ID, err)
	}
	if done {
		e.deps.Logger.LogAttrs(ctx, slog.LevelWarn, "webhook: disabled", slog.String("webhook", w.ID), slog.String("reason", reason))
	}
	return nil
}

// giveUp ends a delivery that can't be sent.
func (e *Engine) giveUp(ctx context.Context, d inbox.WebhookDelivery, reason string) error {
	_, err := e.deps.Deliveries.Settle(ctx, d.Workspace, d.ID, func(d *inbox.WebhookDelivery) error {
		if !d.Open() {
			return errNotNow
		}
		if !d.Claimed.IsZero() {
			remember(d, inbox.DeliveryAttempt{At: d.Claimed, Error: inbox.AttemptInterrupted, Manual: d.Manual})
		}
		d.Status, d.Reason, d.UpdatedAt = inbox.DeliveryDead, reason, e.now()
		d.Claimed, d.Manual, d.Once, d.NextAt = time.Time{}, false, false, time.Time{}
		return nil
	})
	if err != nil && !errors.Is(err, errNotNow) {
		return fmt.Errorf("give up %s: %w", d.ID, err)
	}
	return nil
}

// bounded runs a step that must come to its end even when the worker is to stop.
func bounded(ctx context.Context, step func(context.Context)) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	step(ctx)
}

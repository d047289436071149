package pipeline

import (
	"context"
	"log/slog"
	"slices"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/queue"
)

// intake makes one mail of each recipient of an accepted one. A single mail, the common case, is processed at once and
// needs no message of its own.
func (w *Worker) intake(ctx context.Context, id string, attempt int) error {
	in, err := w.deps.Outbox.Intake(ctx, id)
	if apperr.Is(err, apperr.NotFound) {
		return nil // fanned out: each mail has an outbox row of its own
	}
	if err != nil {
		return wrap("read", id, err)
	}
	mails := received(in)
	if len(mails) == 1 {
		mails[0].Status = inbox.StatusProcessing // by us, at once: that needs no write of its own
	}
	if err := w.deps.Outbox.FanOut(ctx, in, mails); err != nil {
		return wrap("fan out", id, err)
	}
	if len(mails) == 1 {
		return w.sole(ctx, mails[0].ID, attempt, in.Shared)
	}
	messages := make([]queue.Message, 0, len(mails))
	for _, m := range mails {
		messages = append(messages, queue.Message{ID: m.ID})
	}
	for batch := range slices.Chunk(messages, queue.MaxBatch) {
		if err := w.deps.Queue.Send(ctx, batch...); err != nil {
			// The rows are there and the intake's is gone: what was not sent now is sent from the outbox.
			w.deps.Logger.Warn("pipeline: mails not queued, the outbox will send them", slog.String("intake", id))
		}
	}
	return nil
}

// sole processes the only mail of an intake. The intake's row is gone now, so its message can't be retried for the mail's
// sake: the mail gets one of its own, whose attempts count. (After a crash the outbox sends it.)
func (w *Worker) sole(ctx context.Context, id string, attempt int, shared bool) error {
	err := w.mail(ctx, id, attempt, origin{sole: true, own: !shared})
	d := DispositionOf(err, attempt)
	if d.Action != Retry {
		return err
	}
	if w.deps.Queue.Send(ctx, queue.Message{ID: id, Delay: d.After}) != nil {
		return err
	}
	w.deps.Logger.Warn("pipeline: mail to be tried again", slog.String("email", id),
		slog.String("kind", apperr.From(err).Kind.String()), slog.String("error", err.Error()))
	return nil
}

// received is the mails of an intake. It depends on the row alone, so that a second run makes the same.
func received(in inbox.Intake) []inbox.Email {
	mails := make([]inbox.Email, 0, len(in.Recipients))
	for _, d := range in.Recipients {
		mails = append(mails, inbox.Email{
			ID: d.Email, Organization: d.Organization, Workspace: d.Workspace, Inbox: d.Inbox,
			Status: inbox.StatusReceived, ReceivedAt: in.ReceivedAt, UpdatedAt: in.ReceivedAt, Version: 1,
			Size: in.Size, RawSHA256: in.RawSHA256, RawKey: in.RawKey,
			Envelope:       inbox.Envelope{From: in.From, To: d.Address, RemoteIP: in.RemoteIP, HELO: in.HELO, Imported: in.Imported},
			Warnings:       append([]inbox.Warning(nil), in.Repairs...),
			Authentication: in.Authentication, Door: d.Door, RawOwn: !in.Shared && len(in.Recipients) == 1,
			Quiet: in.Quiet,
		})
	}
	return mails
}

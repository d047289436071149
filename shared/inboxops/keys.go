package inboxops

import (
	"context"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/rest"
)

// Keys are the idempotency keys of the inbox as the routes ask for them.
type Keys struct{ Store inbox.KeyStore }

var _ rest.Idempotency = Keys{}

func keyOf(k op.IdempotencyKey) inbox.IdempotencyKey {
	return inbox.IdempotencyKey{ID: k.ID, Arguments: k.Arguments}
}

func replayOf(done *inbox.DoneUnder, err error) (*op.Replay, error) {
	if done == nil || err != nil {
		return nil, err
	}
	return &op.Replay{Outcome: done.Outcome, Status: done.Status, Body: done.Reply}, nil
}

// LookKey finds what was done under a key.
func (k Keys) LookKey(ctx context.Context, key op.IdempotencyKey) (*op.Replay, error) {
	return replayOf(k.Store.LookKey(ctx, keyOf(key)))
}

// TakeKey takes a key under which nothing was done.
func (k Keys) TakeKey(ctx context.Context, key op.IdempotencyKey) (*op.Replay, error) {
	return replayOf(k.Store.TakeKey(ctx, keyOf(key)))
}

// KeepReply keeps the reply.
func (k Keys) KeepReply(ctx context.Context, key op.IdempotencyKey, r op.Replay) error {
	return k.Store.KeepReply(ctx, keyOf(key), inbox.DoneUnder{Status: r.Status, Reply: r.Body}) //nolint:wrapcheck // the store names the step
}

// DropKey lets a key go.
func (k Keys) DropKey(ctx context.Context, key op.IdempotencyKey) error {
	return k.Store.DropKey(ctx, keyOf(key)) //nolint:wrapcheck // the store names the step
}

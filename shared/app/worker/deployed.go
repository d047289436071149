package worker

import (
	"context"

	"github.com/buzon-mail/buzon/shared/app/deployed"
	"github.com/buzon-mail/buzon/shared/app/deployed/jobqueue"
	"github.com/buzon-mail/buzon/shared/app/signing"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/outmail/ses"
	"github.com/buzon-mail/buzon/shared/webhook"
)

// enginesOf stands the function on what an account names.
func enginesOf(a deployed.Account) (*Engines, error) {
	engine, err := a.Engine()
	if err != nil {
		return nil, err
	}
	store, err := inboxstore.New(engine, a.Clock)
	if err != nil {
		return nil, err
	}
	blobs, err := a.Blobs()
	if err != nil {
		return nil, err
	}
	queue, err := jobqueue.Open(a)
	if err != nil {
		return nil, err
	}
	out, err := ses.New(a.AWS)
	if err != nil {
		return nil, err
	}
	box, err := signing.New(a.AWS, a.WebhookKey, a.Clock)
	if err != nil {
		return nil, err
	}
	secrets := func(ctx context.Context) (webhook.Secrets, error) { return box.Sealer(ctx) }
	return &Engines{Secrets: secrets, Origin: a.Origin, Store: store, Rows: engine, Blobs: blobs, Outlet: out, Queue: queue, Source: queue, Close: func() error { return nil }}, nil
}

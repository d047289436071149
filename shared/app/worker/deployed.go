package worker

import (
	"github.com/buzon-mail/buzon/shared/app/deployed"
	"github.com/buzon-mail/buzon/shared/app/deployed/jobqueue"
	"github.com/buzon-mail/buzon/shared/inboxstore"
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
	return &Engines{Store: store, Rows: engine, Blobs: blobs, Queue: queue, Source: queue, Close: func() error { return nil }}, nil
}

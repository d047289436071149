package worker

import (
	"context"
	"time"

	"github.com/buzon-mail/buzon/shared/app/deployed"
	"github.com/buzon-mail/buzon/shared/app/deployed/jobqueue"
	"github.com/buzon-mail/buzon/shared/config"
)

// onAWS stands the function on what its environment names.
func onAWS(_ context.Context, cfg *config.Worker, _ func() time.Time) (*Engines, error) {
	a, err := deployed.Here(cfg.AWS)
	if err != nil {
		return nil, err
	}
	return enginesOf(a)
}

func enginesOf(a deployed.Account) (*Engines, error) {
	store, err := a.Store()
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
	return &Engines{Store: store, Blobs: blobs, Queue: queue, Source: queue, Close: func() error { return nil }}, nil
}

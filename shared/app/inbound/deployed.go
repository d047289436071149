package inbound

import (
	"github.com/buzon-mail/buzon/shared/app/deployed"
	"github.com/buzon-mail/buzon/shared/app/deployed/jobqueue"
)

// enginesOf stands the function on what an account names.
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
	return &Engines{Store: store, Blobs: blobs, Queue: queue, Bucket: a.Names.Bucket, Close: func() error { return nil }}, nil
}

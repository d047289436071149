package local

import (
	"context"
	"log/slog"
	"time"

	"github.com/buzon-mail/buzon/shared/app/telling"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/webhook"
)

// dueEvery is how often deliveries are looked for whose next attempt has no message: those that wait for half an hour and more.
const dueEvery = 30 * time.Second

func (s *Service) webhooks() (err error) {
	box := s.fixed.Purpose(inbox.WebhookSecretPurpose)
	s.hooks, err = telling.New(telling.Deps{
		Store: s.store, Queue: s.queue, Logger: s.log, Clock: s.opts.Clock,
		Secrets: func(context.Context) (webhook.Secrets, error) { return box, nil },
	}, telling.Options{Origin: s.origin, Loopback: s.cfg.Loopback()})
	return err
}

// tellDue drives deliveries until ctx ends.
func (s *Service) tellDue(ctx context.Context) {
	tick := time.NewTicker(dueEvery)
	defer tick.Stop()
	for {
		if err := s.hooks.Due.Run(ctx); err != nil && ctx.Err() == nil {
			s.log.LogAttrs(ctx, slog.LevelError, "deliveries not looked for", slog.String("cause", err.Error()))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

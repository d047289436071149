package local

import (
	"context"
	"log/slog"
	"time"

	"github.com/buzon-mail/buzon/shared/app/web"
	"github.com/buzon-mail/buzon/shared/inboxops"
	"github.com/buzon-mail/buzon/shared/safehttp"
	"github.com/buzon-mail/buzon/shared/webhook"
)

// dueEvery is how often deliveries are looked for whose next attempt has no message: those that wait for half an hour and more.
const dueEvery = 30 * time.Second

// webhooks makes what tells receivers. Receivers on this machine are told only where nobody beyond it reaches the service.
func (s *Service) webhooks() (err error) {
	box := s.fixed.Purpose(web.WebhookSecret)
	s.hooks, err = webhook.New(webhook.Deps{
		Events: s.store, Deliveries: s.store, Webhooks: s.store, Queue: s.queue,
		Secrets: func(context.Context) (webhook.Secrets, error) { return box, nil },
		Client:  safehttp.New(safehttp.Options{Timeout: webhook.Timeout, Loopback: s.cfg.Loopback()}),
		Logger:  s.log, Clock: s.opts.Clock,
	}, webhook.Options{Base: s.origin + inboxops.BasePath})
	return err
}

// tellDue drives deliveries until ctx ends.
func (s *Service) tellDue(ctx context.Context) {
	due := webhook.NewDue(s.hooks)
	tick := time.NewTicker(dueEvery)
	defer tick.Stop()
	for {
		if err := due.Run(ctx); err != nil && ctx.Err() == nil {
			s.log.LogAttrs(ctx, slog.LevelError, "deliveries not looked for", slog.String("cause", err.Error()))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

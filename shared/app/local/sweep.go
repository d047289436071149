package local

import (
	"context"
	"log/slog"
	"time"

	"github.com/buzon-mail/buzon/shared/pipeline"
)

// sweepEvery and sweepRows bound how much of the store a sweep holds up: expired rows are absent for every read, so it only
// gives their room back.
const (
	sweepEvery = time.Minute
	sweepRows  = 1000
)

// sweep removes expired rows until ctx ends.
func (s *Service) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		n, err := s.engine.Sweep(ctx, sweepRows)
		if err != nil && ctx.Err() == nil {
			s.log.LogAttrs(ctx, slog.LevelError, "sweep failed", slog.String("cause", err.Error()))
		}
		if gone, err := pipeline.SweepUploads(ctx, s.store, s.blobs, s.opts.Clock(), sweepRows); err != nil && ctx.Err() == nil {
			s.log.LogAttrs(ctx, slog.LevelError, "sweep of uploads failed", slog.Int("rows", gone), slog.String("cause", err.Error()))
		}
		if n > 0 {
			s.log.LogAttrs(ctx, slog.LevelInfo, "swept expired rows", slog.Int("rows", n))
		}
	}
}

package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"strings"
)

// parse reads the mail within its time. Whatever the mail does to the parser, the worker survives it and the mail is kept.
func (r *run) parse(ctx context.Context) error {
	if r.failed() {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, r.w.opts.ParseTimeout)
	defer cancel()
	reading, panicked, err := r.guarded(bounded)
	r.raw = nil // nothing after this needs it
	switch {
	case panicked:
		r.fail(reasonPanic)
	case err == nil && reading.Unreadable:
		r.fail(reasonUnreadable)
		r.email.Warnings = append(r.email.Warnings, reading.Warnings...)
	case err == nil:
		r.reading = &reading
		r.email.Content = reading.Content
		r.email.Warnings = append(r.email.Warnings, reading.Warnings...)
		r.email.Signals, r.email.Codes, r.email.Links = reading.Signals, reading.Codes, reading.Links
		r.email.OtherCodes = reading.OtherCodes
	case ctx.Err() != nil: // we are stopping; that is not the mail's fault
		return ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		r.fail(reasonTimeout)
	default:
		r.fail(reasonUnreadable)
	}
	return nil
}

func (r *run) guarded(ctx context.Context) (reading Reading, panicked bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			// The value may quote the mail; the stack names only code.
			r.w.deps.Logger.Error("pipeline: parser panicked", slog.String("email", r.email.ID), slog.String("stack", string(debug.Stack())))
			panicked = true
		}
	}()
	reading, err = r.w.deps.Parse(ctx, r.raw)
	return reading, false, err
}

// addFlag keeps each flag once.
func (r *run) addFlag(flag string) {
	for _, f := range r.email.Flags {
		if strings.EqualFold(f, flag) {
			return
		}
	}
	r.email.Flags = append(r.email.Flags, flag)
}

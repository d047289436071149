// Package jsonlog is the service's logger: one JSON object a line, byte for byte what log/slog's own handler writes, at half of
// its cost for the lines that are written with every request; fields from a list (Allowed) and no others; and, on Lambda, the
// metrics that CloudWatch makes of the log.
package jsonlog

import (
	"context"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/buzon-mail/buzon/shared/jsonwalk"
)

// New is a logger that writes to out, from level Info on, the fields that are Allowed. It is safe for concurrent use; each line is
// one write.
func New(out io.Writer) *slog.Logger { return slog.New(newHandler(out, Allowed, nil)) }

// ForFunction is New for a Lambda function, whose name it is given: metrics of the lines go into the log between them. Without a
// name, as where a function is emulated, there are none.
func ForFunction(out io.Writer, name string) *slog.Logger {
	if name == "" {
		return New(out)
	}
	return slog.New(newHandler(out, Allowed, &meter{function: name}))
}

// newHandler is the handler; allowed nil: every field.
func newHandler(out io.Writer, allowed func(string) bool, m *meter) *handler {
	locked := &lockedWriter{out: out}
	h := &handler{out: locked, rest: slog.NewJSONHandler(locked, nil), allowed: allowed, meter: m}
	if allowed != nil {
		h.keep = kept
	}
	return h
}

// lockedWriter keeps the lines of the two handlers apart.
type lockedWriter struct {
	mu  sync.Mutex
	out io.Writer // guarded by mu
}

// Write writes one line.
func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(p) //nolint:wrapcheck // slog drops it
}

// handler writes records of plain texts, numbers and truths itself, and leaves every other to rest.
type handler struct {
	out     *lockedWriter
	rest    slog.Handler
	allowed func(string) bool             // nil: all
	keep    func([]slog.Attr) []slog.Attr // by allowed; nil: all
	meter   *meter                        // nil: none; guarded by out's lock
	sheets  sync.Pool                     // *sheet
	attrs   sync.Pool                     // *[]slog.Attr
}

// Enabled is rest's.
func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.rest.Enabled(ctx, level)
}

// WithAttrs leaves a logger with attributes of its own to rest.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	if h.keep != nil {
		return &filtered{h.rest.WithAttrs(h.keep(attrs)), h.keep}
	}
	return h.rest.WithAttrs(attrs)
}

// WithGroup leaves a logger with a group to rest.
func (h *handler) WithGroup(name string) slog.Handler {
	if h.keep != nil {
		return &filtered{h.rest.WithGroup(name), h.keep}
	}
	return h.rest.WithGroup(name)
}

// filtered holds the list over a handler of slog's.
type filtered struct {
	slog.Handler
	keep func([]slog.Attr) []slog.Attr
}

// Handle writes one record without what is not on the list.
func (f *filtered) Handle(ctx context.Context, r slog.Record) error {
	some := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	some.AddAttrs(f.keep(attrsOf(r, nil))...)
	return f.Handler.Handle(ctx, some) //nolint:wrapcheck // slog drops it
}

// WithAttrs keeps the list.
func (f *filtered) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &filtered{f.Handler.WithAttrs(f.keep(attrs)), f.keep}
}

// WithGroup keeps the list.
func (f *filtered) WithGroup(name string) slog.Handler {
	return &filtered{f.Handler.WithGroup(name), f.keep}
}

func attrsOf(r slog.Record, into []slog.Attr) []slog.Attr {
	r.Attrs(func(a slog.Attr) bool {
		into = append(into, a)
		return true
	})
	return into
}

// Handle writes one record.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	kept, ok := h.attrs.Get().(*[]slog.Attr)
	if !ok {
		kept = new([]slog.Attr)
	}
	*kept = attrsOf(r, (*kept)[:0])
	err := h.HandleAttrs(ctx, r.Time, r.Level, r.Message, *kept)
	clear(*kept) // what a line holds may be long
	h.attrs.Put(kept)
	return err
}

// HandleAttrs writes what Handle writes of a record with these parts, without a record: who writes a line with every request
// keeps its attributes and lends them. They are not kept here.
func (h *handler) HandleAttrs(ctx context.Context, at time.Time, level slog.Level, message string, attrs []slog.Attr) error {
	on := h.sheet()
	defer h.sheets.Put(on)
	line, ok := on.appendHead(at, level, message)
	for i := 0; ok && i < len(attrs); i++ {
		if line, ok = on.appendName(line, i, attrs[i].Key, h.allowed); ok {
			line, ok = appendValue(line, attrs[i].Value)
		}
	}
	on.buf = line
	if !ok {
		if h.keep != nil {
			attrs = h.keep(attrs)
		}
		r := slog.NewRecord(at, level, message, 0)
		r.AddAttrs(attrs...)
		if err := h.rest.Handle(ctx, r); err != nil {
			return err //nolint:wrapcheck // slog drops it
		}
	} else if err := h.end(on); err != nil {
		return err
	}
	return h.measure(at, message, attrs, on)
}

// measure counts a line, and writes the metrics when they are due. They lie behind one another and not in one another, so that each
// line is whole.
func (h *handler) measure(at time.Time, message string, attrs []slog.Attr, on *sheet) error {
	if h.meter == nil {
		return nil
	}
	h.out.mu.Lock()
	defer h.out.mu.Unlock()
	if !h.meter.add(at, message, attrs) {
		return nil
	}
	on.buf = h.meter.render(on.buf[:0], at)
	_, err := h.out.out.Write(on.buf)
	return err //nolint:wrapcheck // slog drops it
}

func (h *handler) sheet() *sheet {
	s, ok := h.sheets.Get().(*sheet)
	if !ok {
		s = new(sheet)
	}
	return s
}

// end closes the line and writes it.
func (h *handler) end(s *sheet) error {
	s.buf = append(s.buf, '}', '\n')
	_, err := h.out.Write(s.buf)
	return err //nolint:wrapcheck // slog drops it
}

// appendValue is false for what it can't write.
func appendValue(b []byte, v slog.Value) ([]byte, bool) {
	switch v.Kind() {
	case slog.KindString:
		return appendText(b, v.String())
	case slog.KindInt64:
		return strconv.AppendInt(b, v.Int64(), 10), true
	case slog.KindUint64:
		return strconv.AppendUint(b, v.Uint64(), 10), true
	case slog.KindBool:
		return strconv.AppendBool(b, v.Bool()), true
	case slog.KindDuration:
		return strconv.AppendInt(b, int64(v.Duration()), 10), true
	case slog.KindAny, slog.KindFloat64, slog.KindTime, slog.KindGroup, slog.KindLogValuer:
	}
	return b, false
}

// appendText is false for a text that needs escapes: it could end the line or its own string.
func appendText(b []byte, s string) ([]byte, bool) {
	if jsonwalk.Plain(s, 0) < len(s) {
		return b, false
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"'), true
}

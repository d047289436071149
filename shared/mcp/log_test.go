package mcp_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/mcp"
)

// keeper keeps its records, as a handler that writes later may.
type keeper struct {
	slog.Handler
	kept []slog.Record
}

func (k *keeper) Handle(_ context.Context, r slog.Record) error {
	k.kept = append(k.kept, r.Clone())
	return nil
}

// borrower takes a line apart, and spoils what it was lent, as the next request will.
type borrower struct{ slog.Handler }

func (b borrower) HandleAttrs(ctx context.Context, at time.Time, level slog.Level, message string, attrs []slog.Attr) error {
	r := slog.NewRecord(at, level, message, 0)
	r.AddAttrs(attrs...)
	defer clear(attrs)
	return b.Handler.Handle(ctx, r) //nolint:wrapcheck // slog drops it
}

// TestLogLineByEitherWay: a handler that keeps records, and one that is lent the attributes, both see each request's own line.
func TestLogLineByEitherWay(t *testing.T) {
	var direct, lent, later bytes.Buffer
	kept := &keeper{Handler: slog.NewJSONHandler(&later, nil)}
	for _, h := range []slog.Handler{slog.NewJSONHandler(&direct, nil), borrower{slog.NewJSONHandler(&lent, nil)}, kept} {
		r := newRig(t, func(d *mcp.Deps, _ *mcp.Options) { d.Logger = slog.New(h) })
		modern(t, r, "tools/call", `"name":"echo",`, "Mcp-Name", "echo")
		modern(t, r, "tools/call", `"name":"down",`, "Mcp-Name", "down")
		modern(t, r, "tools/list", "")
		modern(t, r, "tools/list", "", "Authorization", "Bearer broken")
		modern(t, r, "tools/list", "", "Origin", "https://evil.example")
	}
	for _, r := range kept.kept {
		if err := kept.Handler.Handle(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if n := bytes.Count(direct.Bytes(), []byte(`"time":"2026-11-30T12:00:00Z"`)); n != 5 {
		t.Fatalf("%d lines of 5 at the clock's time:\n%s", n, direct.Bytes())
	}
	if lent.String() != direct.String() || later.String() != direct.String() {
		t.Errorf("lent\n%skept\n%swant\n%s", lent.Bytes(), later.Bytes(), direct.Bytes())
	}
}

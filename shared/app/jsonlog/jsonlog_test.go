package jsonlog

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// records are lines of every kind that can be logged, with and without what the quick path writes.
func records() map[string][]slog.Attr {
	return map[string][]slog.Attr{
		"none":    nil,
		"request": {slog.String("id", "0123"), slog.Int("status", 200), slog.Int64("us", -12), slog.Bool("ok", true), slog.Duration("d", time.Second), slog.Uint64("n", 1<<63)},
		"many":    {slog.Int("a", 1), slog.Int("b", 2), slog.Int("c", 3), slog.Int("d", 4), slog.Int("e", 5), slog.Int("f", 6), slog.Int("g", 7)},
		"escapes": {slog.String("a", "x"), slog.String("s", "a\"b\\c\nd\x00é\u2028<&>\xff")},
		"forged":  {slog.String("s", "x\"}\n{\"level\":\"ERROR\"")},
		"key":     {slog.Int("a\"b", 1)},
		"error":   {slog.Any("error", errors.New("broken"))},
		"float":   {slog.Float64("f", 1.5)},
		"time":    {slog.Time("t", time.Unix(1, 2))},
		"group":   {slog.Group("g", slog.Int("a", 1))},
		"empty":   {{}},
		"blank":   {slog.String("", "x")},
	}
}

func TestWritesWhatSlogWrites(t *testing.T) {
	for name, attrs := range records() {
		for _, message := range []string{"mcp request", "a \"b\"\n", ""} {
			for _, at := range []time.Time{{}, time.Date(2026, 7, 28, 1, 2, 3, 0, time.UTC), time.Date(2026, 7, 28, 1, 2, 3, 123456789, time.FixedZone("", 7200)), time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC)} {
				for _, level := range []slog.Level{slog.LevelInfo, slog.LevelError, slog.LevelInfo + 2} {
					var got, want bytes.Buffer
					r := slog.NewRecord(at, level, message, 0)
					r.AddAttrs(attrs...)
					own := newHandler(&got, nil, nil).Handle(t.Context(), r)
					slogs := slog.NewJSONHandler(&want, nil).Handle(t.Context(), r)
					if own != nil || slogs != nil || got.String() != want.String() {
						t.Errorf("%s: %v %v\n got %s\nwant %s", name, own, slogs, got.Bytes(), want.Bytes())
					}
					got.Reset()
					lent := slices.Clone(attrs)
					own = newHandler(&got, nil, nil).HandleAttrs(t.Context(), at, level, message, lent)
					if own != nil || got.String() != want.String() {
						t.Errorf("%s, lent: %v\n got %s\nwant %s", name, own, got.Bytes(), want.Bytes())
					}
				}
			}
		}
	}
}

func TestLoggersMadeOfIt(t *testing.T) {
	var out bytes.Buffer
	log := New(&out)
	log.Debug("nothing")
	if out.Len() > 0 {
		t.Errorf("debug: %s", out.Bytes())
	}
	log.With("count", 1, "token", "canary").WithGroup("g").Info("x", "rows", 2, "password", "canary")
	log.WithGroup("g").With("rows", 1).Info("x", "secret", "canary")
	if !bytes.Contains(out.Bytes(), []byte(`"count":1,"dropped_fields":1,"g":{"rows":2,"dropped_fields":1}`)) || bytes.Contains(out.Bytes(), []byte("canary")) {
		t.Errorf("with: %s", out.Bytes())
	}
}

// Lines of many goroutines, on both paths, don't run into each other.
func TestLinesStayWhole(t *testing.T) {
	var out bytes.Buffer
	log := New(&out)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				log.Info("x", slog.String("job", "plain"))
				log.Info("x", slog.String("job", "é"))
			}
		})
	}
	all.Wait()
	lines := bytes.Split(bytes.TrimSuffix(out.Bytes(), []byte("\n")), []byte("\n"))
	for _, line := range lines {
		if !bytes.HasPrefix(line, []byte(`{"time":`)) || !bytes.HasSuffix(line, []byte(`"}`)) {
			t.Fatalf("%q", line)
		}
	}
	if len(lines) != 1600 {
		t.Errorf("%d lines", len(lines))
	}
}

func BenchmarkLine(b *testing.B) {
	for name, log := range map[string]*slog.Logger{"ours": New(io.Discard), "with metrics": ForFunction(io.Discard, "f"), "slog": slog.New(slog.NewJSONHandler(io.Discard, nil))} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				log.LogAttrs(context.Background(), slog.LevelInfo, "mcp request", slog.String("request_id", "0123456789abcdef01234567"),
					slog.String("http.request.method", "POST"), slog.String("mcp.method.name", "tools/list"), slog.String("mcp.protocol.version", "2026-07-28"),
					slog.Int("http.response.status_code", 200), slog.Int("http.request.body.size", 300), slog.Int("http.response.body.size", 14000), slog.Int64("us", 30),
					slog.String("grant", "grant_01KDT00000000000000000BENCH"))
			}
		})
	}
}

// BenchmarkLent is the line that shared/mcp writes with each request.
func BenchmarkLent(b *testing.B) {
	h := newHandler(io.Discard, Allowed, nil)
	attrs := []slog.Attr{
		slog.String("request_id", "0123456789abcdef01234567"), slog.String("http.request.method", "POST"), slog.String("mcp.method.name", "tools/list"),
		slog.String("mcp.protocol.version", "2026-07-28"), slog.Int("http.response.status_code", 200), slog.Int("http.request.body.size", 300),
		slog.Int("http.response.body.size", 14000), slog.Int64("us", 30), slog.String("grant", "grant_01KDT00000000000000000BENCH"),
	}
	at := time.Date(2026, 7, 28, 1, 2, 3, 123456789, time.UTC)
	b.ReportAllocs()
	for b.Loop() {
		at = at.Add(7 * time.Millisecond)
		if err := h.HandleAttrs(b.Context(), at, slog.LevelInfo, "mcp request", attrs); err != nil {
			b.Fatal(err)
		}
	}
}

// TestNames: whatever lines were written on a sheet before, and however many names they had, a line has its own in its own order, and
// none that isn't allowed.
func TestNames(t *testing.T) {
	allowed := func(name string) bool { return name != "no" }
	lines := [][]string{
		{"a", "b", "c"}, {"a", "b", "c", "d"}, {"a", "c"}, {"a", "b", "c"}, {}, {"c", "b", "a"}, {"a", "a", "a"}, {"b"}, {"bb", "b"}, {"a", "no"}, {"a", "b"}, {"no", "b"},
		{"a", `"`, "b"}, {"a", "", "b"}, {"a", "b", "c", "d"},
	}
	var many []string
	for i := range 2 * maxPlaces {
		many = append(many, "n"+strconv.Itoa(i))
	}
	lines = append(lines, many, many[1:], many, many[:3])
	var s sheet
	for range 2 {
		for _, names := range lines {
			var got, want []byte
			ok := true
			for i, name := range names {
				if got, ok = s.appendName(got, i, name, allowed); !ok {
					break
				}
				want = append(want, `,"`+name+`":`...)
			}
			if clean := !slices.ContainsFunc(names, func(n string) bool { return n == "no" || n == `"` || n == "" }); ok != clean || ok && string(got) != string(want) {
				t.Errorf("%q: %t, %s", names, ok, got)
			}
		}
	}
	if len(s.names) > maxPlaces {
		t.Errorf("%d names are kept", len(s.names))
	}
}

// TestTimes: lines that follow one another share what they can of their times, and nothing else.
func TestTimes(t *testing.T) {
	var s sheet
	zones := []*time.Location{time.UTC, time.Local, time.FixedZone("a", 7200), time.FixedZone("b", -12600), time.FixedZone("c", 3601)}
	second := time.Date(2026, 12, 31, 23, 59, 59, 0, time.UTC)
	for _, step := range []time.Duration{0, 1, 10, 100_000, 123_456_789, 999_999_999, 999_999_000, 500_000_000, time.Second, time.Second + 1, time.Hour, -time.Hour, -1, 400 * 24 * time.Hour, -100 * 366 * 24 * time.Hour} {
		for _, zone := range zones {
			at := second.Add(step).In(zone)
			if got, ok := s.appendTime(nil, at); !ok || string(got) != at.Format(time.RFC3339Nano) {
				t.Errorf("got %s, %t; want %s", got, ok, at.Format(time.RFC3339Nano))
			}
		}
	}
	for _, at := range []time.Time{{}, time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if got, ok := s.appendTime(nil, at); ok {
			t.Errorf("%v: %s", at, got)
		}
	}
}

// Command bench measures the product beside floors and peers and prints what DESIGN.md section 12 budgets. Every ratio is
// between figures of one run that took turns; on a busy machine the absolute figures mean little. It is a module of its own,
// so that the peers never enter the product's go.mod.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"strings"
	"time"
)

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 15, "turns of each case")
	flag.IntVar(&o.many, "mails", 100_000, "mails in the large list; 1000000 takes some minutes and 6 GB of disk")
	flag.IntVar(&o.starts, "starts", 15, "starts of each bootstrap")
	flag.BoolVar(&o.alone, "alone", false, "calls without the peers")
	flag.StringVar(&o.profile, "profile", "", "write a CPU profile of one call, that of -call, to this file and measure nothing")
	flag.StringVar(&o.call, "call", "session_get", "echo, session_get, workspaces_list, emails_list, emails_get or tools/list; with \" 2025\" behind it where there is one")
	flag.StringVar(&o.only, "only", "", "calls, pages, functions or mails; empty: all")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type options struct {
	rounds, many, starts int
	only, profile, call  string
	alone                bool
}

func run(ctx context.Context, o options) error {
	if o.profile != "" {
		o.only = "calls"
	}
	for _, part := range []struct {
		name string
		run  func(context.Context, options) error
	}{{"calls", calls}, {"pages", pages}, {"functions", functions}, {"mails", mails}} {
		if o.only != "" && !strings.Contains(o.only, part.name) {
			continue
		}
		if err := part.run(ctx, o); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

func calls(ctx context.Context, o options) error {
	w, err := newWorld(ctx, 4000)
	if err != nil {
		return err
	}
	defer w.close() //nolint:errcheck // a temporary folder
	if o.profile != "" {
		return profile(w, o)
	}
	return inProcess(os.Stdout, w, o)
}

// profile runs one call for some seconds: go tool pprof reads what it writes.
func profile(w *world, o options) error {
	q, ok := w.calls()[o.call]
	if !ok {
		return fmt.Errorf("no call %q", o.call)
	}
	handler := http.Handler(w.api)
	if o.call == "echo" {
		var err error
		if handler, err = w.echo(); err != nil {
			return err
		}
	}
	p, err := newPoster(handler, q)
	if err != nil {
		return err
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	f, err := os.Create(o.profile)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	for begun := time.Now(); time.Since(begun) < 5*time.Second; {
		for range 100 {
			p.send()
		}
	}
	pprof.StopCPUProfile()
	return f.Close()
}

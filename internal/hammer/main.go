// Command hammer calls a running service over many connections at once and fails at the first reply that is not what it
// should be. Run it against a server that was built with -race and started with BUZON_DEMO=1 BUZON_RATE_PER_MINUTE=0; two of
// them at once show what two agents do to each other:
//
//	go run ./internal/hammer -demo .buzon/demo.json -connections 8 -calls 10000
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/buzon-mail/buzon/internal/hammer/hammer"
)

func main() {
	var o hammer.Options
	flag.StringVar(&o.Demo, "demo", ".buzon/demo.json", "the demo.json of the running service")
	flag.IntVar(&o.Connections, "connections", 8, "how many at once")
	flag.IntVar(&o.Calls, "calls", 10000, "how many calls in all")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	start := time.Now()
	n, err := hammer.Run(ctx, o)
	took := time.Since(start)
	fmt.Printf("%d calls in %s, %.0f a second\n", n, took.Round(time.Millisecond), float64(n)/took.Seconds())
	if err != nil {
		fmt.Fprintln(os.Stderr, "hammer:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

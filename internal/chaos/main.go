// Command chaos lets tenants send and read mail while instances are killed, storage and queue throttle, answers are lost and messages
// come twice, and then looks at what is left: every accepted mail once in each of its inboxes, processed, and no byte of a tenant in
// any reply to another. The seed decides what is sent, called and broken; the order in which goroutines meet is the scheduler's.
//
//	go run ./internal/chaos -mails 2000 -calls 20000          as make chaos
//	go run ./internal/chaos -seed 7                           the same plan again
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/buzon-mail/buzon/internal/chaos/chaos"
)

func main() {
	o := chaos.Options{}
	flag.Uint64Var(&o.Seed, "seed", uint64(time.Now().UnixNano()), "of all that is left to chance") //nolint:gosec // any bits do
	flag.IntVar(&o.Mails, "mails", 2000, "how many are sent")
	flag.IntVar(&o.Calls, "calls", 20_000, "how many are made")
	flag.IntVar(&o.Tenants, "tenants", 6, "organizations that send and read")
	timeout := flag.Duration("timeout", 5*time.Minute, "for the whole run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	fmt.Printf("chaos: seed %d\n", o.Seed)
	began := time.Now()
	report, err := chaos.Run(ctx, o)
	fmt.Printf("%s in %s\n", report, time.Since(began).Round(time.Millisecond))
	cancel()
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "chaos: seed %d: %v\n", o.Seed, err)
		os.Exit(1)
	}
}

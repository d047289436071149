// Command scale prints what the service costs on AWS and where it breaks first: it runs the real code over the embedded engine, counts what
// that asks of the store, the bucket and the queue, prices the counts, and holds loads against AWS's default limits. Nothing of AWS is
// asked. What is counted, what is assumed and what follows is in README.md beside it.
//
//	go run ./scripts/scale
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	w, err := newWorld(ctx)
	if err != nil {
		return err
	}
	defer w.close()
	mail, err := w.mails(ctx) // first: the lists are full then
	if err != nil {
		return err
	}
	calls, err := w.calls(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Prices of %s, %s.\n\n", priceRegion, priceDate)
	printCalls(out, calls)
	printMail(out, mail)
	for _, l := range loads() {
		printLoad(out, l, demandOf(l, calls, mail))
	}
	return nil
}

func printCalls(out io.Writer, calls []call) {
	fmt.Fprintln(out, "One call (MCP tools/call, warm; cold: the first of a token on an instance in 30 s)")
	t := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "call\tround trips\tread units\twrite units\tS3 GET\tms\tGB-s\tUSD a million")
	for _, c := range calls {
		fmt.Fprintf(t, "%s\t%.2f\t%.1f\t%.2f\t%.1f\t%.1f\t%.4f\t%.2f\n", c.name, c.trips, c.reads, c.writes, c.gets, c.ms(), c.gbs(), c.usd()*1e6)
	}
	_ = t.Flush()
	fmt.Fprintln(out)
}

func printMail(out io.Writer, m mailCost) {
	fmt.Fprintf(out, "One mail of %d KB to one inbox (SES -> SNS -> SQS -> inbound -> SQS -> worker)\n", mailBytes>>10)
	t := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "step\tround trips\tread units\twrite units\tS3 GET\tS3 PUT\tSQS\tms\tGB-s\tUSD a million")
	for _, s := range []stage{m.inbound, m.worker} {
		fmt.Fprintf(t, "%s\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.0f\t%.4f\t%.2f\n", s.name, s.trips, s.reads, s.writes, s.gets, s.puts, s.sqs, s.ms(), s.gbs(), s.usd()*1e6)
	}
	fmt.Fprintf(t, "SES\t\t\t\t\t%.1f\t\t\t\t%.2f\n", 1.0, m.ses()*1e6)
	both := m.inbound.plus(m.worker.usage)
	fmt.Fprintf(t, "together\t%.1f\t%.1f\t%.1f\t\t\t\t\t%.4f\t%.2f\n", both.trips, both.reads, both.writes, m.inbound.gbs()+m.worker.gbs(), m.usd()*1e6)
	_ = t.Flush()
	fmt.Fprintln(out, "\nwrite units of one mail in partitions that mails share; the fullest one of its kind bears a thousand a second")
	t = tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	for _, p := range m.partitions() {
		fmt.Fprintf(t, "%s\t%.1f\t%.0f mails/s\n", p.kind, p.units, partitionWrites/p.units)
	}
	_ = t.Flush()
	fmt.Fprintln(out)
}

func printLoad(out io.Writer, l load, d demand) {
	fmt.Fprintf(out, "%s\n", l.name)
	t := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	for _, c := range d.checks {
		mark := "ok"
		if c.need > c.limit {
			mark = "over: " + c.raise
		}
		fmt.Fprintf(t, "  %s\t%.0f\tof %.0f\t%s\n", c.what, c.need, c.limit, mark)
	}
	_ = t.Flush()
	fmt.Fprintf(out, "  USD a month: %.0f (Lambda %.0f, DynamoDB %.0f, S3 and SES and queues %.0f, logs and metrics %.0f, data out %.0f)\n\n",
		d.usd(), d.lambda, d.dynamo, d.storage, d.logs, d.out)
}

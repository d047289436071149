package pipeline_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
)

// body is a mail of about 20 KB with text, HTML and a small attachment.
func body(n int) string {
	line := "The quick brown fox jumps over the lazy dog and goes on to the next line.\r\n"
	return fmt.Sprintf("From: Sender <s@example.com>\r\nTo: agent@acme.test\r\nSubject: benchmark %d\r\nMessage-ID: <%d@example.com>\r\n"+
		"Date: Mon, 30 Nov 2026 12:00:00 +0000\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=m\r\n\r\n"+
		"--m\r\nContent-Type: multipart/alternative; boundary=a\r\n\r\n--a\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n%s\r\n"+
		"--a\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<html><body><p>%s</p></body></html>\r\n--a--\r\n"+
		"--m\r\nContent-Type: text/csv; name=a.csv\r\nContent-Disposition: attachment; filename=a.csv\r\n\r\n%s\r\n--m--\r\n",
		n, n, strings.Repeat(line, 100), strings.Repeat(line, 100), strings.Repeat("1,2,3\r\n", 600))
}

// BenchmarkAcceptToProcessed is one mail of 20 KB from the accept path to its final state, on the engines of the local
// process, with 64 senders at once. Budget: 500 mails a second on one core, which is "unsynced": the other
// measures the disk, ten to twenty flushes a mail, shared between mails that are on their way at once.
func BenchmarkAcceptToProcessed(b *testing.B) {
	b.Run("synced", func(b *testing.B) { acceptToProcessed(b, false, 0) })
	b.Run("unsynced", func(b *testing.B) { acceptToProcessed(b, true, 0) })
	b.Run("unsynced, 20 rules", func(b *testing.B) { acceptToProcessed(b, true, 20) })
}

// judges stores rules of which the last one matches every mail.
func (w *world) judges(ctx context.Context, n int) error {
	var book inbox.Rulebook
	for i := range n {
		pattern := "benchmark"
		if i < n-1 {
			pattern = fmt.Sprintf(`(?i)invoice\s+no\.?\s*%d\d+`, i)
		}
		slug := fmt.Sprint("r", i)
		book.Rules = append(book.Rules, inbox.Rule{
			ID: inbox.RuleID(wsID, "", slug), Workspace: wsID, Slug: slug, Enabled: true, Match: inbox.MatchAny, Version: 1,
			Conditions: []inbox.Condition{{Field: "text", Op: "matches", Value: pattern}, {Field: "subject", Op: "matches", Value: pattern}},
			Actions:    []inbox.Action{{Type: "add_label", Value: slug}},
		})
	}
	if n == 0 {
		return nil
	}
	return w.store.UpdateRules(ctx, wsID, book.Rules[0].ID, inbox.Act{}, func(b *inbox.Rulebook, _ *inbox.Rule) error {
		*b = book
		return nil
	})
}

func acceptToProcessed(b *testing.B, noSync bool, rules int) {
	w, err := open(b.TempDir(), 0, noSync)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = w.close() }()
	if err := w.seed(b.Context()); err != nil {
		b.Fatal(err)
	}
	if err := w.judges(b.Context(), rules); err != nil {
		b.Fatal(err)
	}
	to, err := w.store.Recipient(b.Context(), "agent@acme.test")
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- w.runner.Run(ctx) }()
	numbers := make(chan int)
	b.SetBytes(int64(len(body(0))))
	b.ResetTimer()
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for n := range numbers {
				in := inbox.Incoming{From: "s@example.com", RemoteIP: "192.0.2.1", Recipients: []inbox.Recipient{to}, Body: strings.NewReader(body(n))}
				if _, err := w.intake.Accept(b.Context(), in); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for n := range b.N {
		numbers <- n
	}
	close(numbers)
	all.Wait()
	for {
		left, err := w.store.Pending(b.Context(), time.Now().Add(time.Hour), 1)
		if err != nil {
			b.Fatal(err)
		}
		if len(left) == 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "mails/s")
	b.ReportMetric(float64(runtime.GOMAXPROCS(0)), "cores")
	cancel()
	<-done
}

package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/store"
)

// TestRun: the program runs the real code to its end, and what it counts is what the code is built to ask for.
func TestRun(t *testing.T) {
	w, err := newWorld(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	m, err := w.mails(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	calls, err := w.calls(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range calls {
		read := c.name != "emails_update" && !strings.HasSuffix(c.name, "cold")
		// The rate limit is all that a read writes: 0.1 a call at most (DESIGN: two round trips a warm read).
		if read && (c.writes > 0.1 || c.trips > 2.1) || !read && c.trips == 0 || c.usd() <= 0 {
			t.Errorf("%s: %+v", c.name, c.usage)
		}
	}
	if m.worker.puts != 0 && m.worker.gets == 0 || m.inbound.gets == 0 || m.usd() <= m.ses() {
		t.Errorf("a mail: %+v %+v", m.inbound.usage, m.worker.usage)
	}
	quoted(t, calls, m)
	for _, p := range m.partitions() {
		if p.units <= 0 || strings.Contains(p.kind, "_0") {
			t.Errorf("partition %+v", p)
		}
	}
	small, large := demandOf(loads()[0], calls, m), demandOf(loads()[2], calls, m)
	over := 0
	for i, c := range large.checks {
		if c.need > c.limit {
			over++
		}
		if small.checks[i].need > c.limit {
			t.Errorf("ten calls a second are too many: %+v", small.checks[i])
		}
	}
	if over == 0 || large.usd() <= small.usd() {
		t.Error("ten thousand calls a second break nothing")
	}
	var out bytes.Buffer
	printMail(&out, m)
	printLoad(&out, loads()[0], small)
	printCalls(&out, calls)
	if !strings.Contains(out.String(), "USD a month") {
		t.Error(out.String())
	}
}

// quoted: README.md shows the figures of calls and of a mail as the code makes them.
func quoted(t *testing.T, calls []call, m mailCost) {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, cells, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		rows[name] = strings.TrimSpace(cells)
	}
	want := map[string]string{}
	for _, c := range calls {
		want[c.name] = cells(c.usage, c.gbs()) + fmt.Sprintf(" %.2f |", c.usd()*1e6)
	}
	both := m.inbound.plus(m.worker.usage)
	for row, want := range map[string]string{
		"`session_get`, or any call that reads no row":        want["session_get"],
		"`emails_list`, 20 mails":                             want["emails_list, 20"],
		"`emails_get`, a mail of 20 KB with its body":         want["emails_get"],
		"`emails_update`, with its line in the audit":         want["emails_update"],
		"a mail of 20 KB to one inbox, from SES to processed": cells(both, m.inbound.gbs()+m.worker.gbs()) + fmt.Sprintf(" %.0f, of which SES %.0f |", m.usd()*1e6, m.ses()*1e6),
	} {
		if rows[row] != want {
			t.Errorf("README.md says of %s\n%s\nand it is\n%s", row, rows[row], want)
		}
	}
}

// cells are the round trips, units and GB-s of a row of README.md.
func cells(u usage, gbs float64) string {
	short := func(n float64) string {
		if n > 0 && n < 1 {
			return fmt.Sprintf("%.2f", n)
		}
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprintf("%s | %s | %s | %.3f |", short(u.trips), short(u.reads), short(u.writes), gbs)
}

// TestUnits: what DynamoDB charges. A read counts 4 KB, a write 1 KB, each begun one whole; a transaction twice.
func TestUnits(t *testing.T) {
	var c counter
	for bytes, want := range map[int]float64{0: 1, 1: 1, 4096: 1, 4097: 2, 40_960: 10} {
		c.read(bytes)
		if got := c.taken(); got.reads != want || got.trips != 1 {
			t.Errorf("read of %d: %v", bytes, got.reads)
		}
	}
	for bytes, want := range map[int]float64{0: 1, 1024: 1, 1025: 2} {
		c.write(store.Key{Partition: "p"}, bytes, 1)
		c.write(store.Key{Partition: "q"}, bytes, 2)
		if got := c.taken(); got.writes != 3*want || got.by["p"] != want || got.by["q"] != 2*want {
			t.Errorf("write of %d: %+v", bytes, got)
		}
	}
	for partition, want := range map[string]string{
		"mails/short_01": "mails/short_01", "outbox/7": "outbox/{shard}", "raw/ses/scale0001": "raw/{blob}",
		"mails/ws_01KDT000000000000000ACMEMA/i/inbox_01KDT0000000000000FACTVRAS": "mails/{id}/i/{id}",
	} {
		if got := kind(partition); got != want {
			t.Errorf("%s is %s, want %s", partition, got, want)
		}
	}
}

package main

import (
	"bytes"
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
		"mails/short_01": "mails/short_01", "outbox/7": "outbox/{shard}",
		"mails/ws_01KDT000000000000000ACMEMA/i/inbox_01KDT0000000000000FACTVRAS": "mails/{id}/i/{id}",
	} {
		if got := kind(partition); got != want {
			t.Errorf("%s is %s, want %s", partition, got, want)
		}
	}
}

package smtpd

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// Only CRLF.CRLF ends a message. Each body holds what another server may take for an end, followed by what a smuggler wants
// to be read as commands: it must all stay one mail, and the mail must carry a warning.
func TestSmuggling(t *testing.T) {
	const inner = "MAIL FROM:<boss@example.com>\r\nRCPT TO:<second@acme.test>\r\nDATA\r\nsmuggled\r\n"
	tests := []struct{ name, end, warning string }{
		{"LF.LF", "\n.\n", "bare_lf"},
		{"LF.CRLF", "\n.\r\n", "bare_lf"},
		{"CRLF.LF", "\r\n.\n", "bare_lf"},
		{"CR.CR", "\r.\r", "bare_cr"},
		{"CRLF.CR", "\r\n.\r", "bare_cr"},
		{"CR.CRLF", "\r.\r\n", "bare_cr"},
		{"CRLF.NUL CRLF", "\r\n.\x00\r\n", "nul"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := &fake{}
			_, addr := start(t, f, Options{})
			c := hello(t, addr)
			c.envelope()
			c.data("Subject: x\r\n\r\nbody"+tt.end+inner+"\r\n.\r\n", "250 ")
			c.want("NOOP", "250 2.0.0 I have")
			mails := f.accepted()
			if len(mails) != 1 || len(mails[0].in.Recipients) != 1 {
				t.Fatalf("accepted %d mails, want 1 for one recipient", len(mails))
			}
			if !strings.Contains(mails[0].body, "smuggled") {
				t.Errorf("the mail ends early: %q", mails[0].body)
			}
			// go-smtp takes the CR of CRLF.CR away with the stuffed dot; what is left is an ordinary line.
			if tt.name != "CRLF.CR" && !slices.Contains(mails[0].repairs, tt.warning) {
				t.Errorf("warnings %v, want %s", mails[0].repairs, tt.warning)
			}
		})
	}
}

// The evidence stays as it came: eight bits, NUL and bare line ends are kept and counted, whatever the reads are cut into.
func TestRawBytesAreKept(t *testing.T) {
	body := "Subject: \xe9\xff\x00\r\n\r\na\rb\nc\r\r\nd" + strings.Repeat("x\r\n", 50000)
	f := &fake{}
	_, addr := start(t, f, Options{})
	c := hello(t, addr)
	c.envelope()
	c.data(body+"\r\n.\r\n", "250 ")
	m := f.accepted()[0]
	if m.body != body+"\r\n" {
		t.Error("the body was changed on the way")
	}
	if want := []string{"bare_lf", "bare_cr", "nul"}; !slices.Equal(m.repairs, want) {
		t.Errorf("warnings %v, want %v", m.repairs, want)
	}
	for _, w := range m.in.Repairs() {
		want := map[string]string{"bare_lf": "1 ", "bare_cr": "2 ", "nul": "1 "}[w.Code]
		if !strings.HasPrefix(w.Detail, want) {
			t.Errorf("%s: %q, want %s...", w.Code, w.Detail, want)
		}
	}
}

func TestSizeLimit(t *testing.T) {
	const limit = 1000
	for _, size := range []int{0, limit - 1, limit, limit + 1, limit + 2, 3 * limit} {
		for _, verb := range []string{"DATA", "BDAT"} {
			t.Run(fmt.Sprintf("%s %d", verb, size), func(t *testing.T) {
				f := &fake{}
				_, addr := start(t, f, Options{MaxBytes: limit})
				c := hello(t, addr)
				c.envelope()
				body := strings.Repeat("y", max(0, size-2)) + "\r\n"[:min(2, size)]
				want := "250 "
				if size > limit {
					want = "552 5.3.4"
				}
				if verb == "DATA" {
					c.data(body+".\r\n", want)
				} else {
					c.send(fmt.Sprintf("BDAT %d LAST\r\n%s", size, body))
					c.want("", want)
				}
				c.want("NOOP", "250 ")
				if mails := f.accepted(); (len(mails) == 1) != (size <= limit) || len(mails) == 1 && mails[0].body != body {
					t.Errorf("accepted %d mails", len(mails))
				}
			})
		}
	}
}

func TestDefaultSizeLimit(t *testing.T) {
	f := &fake{}
	_, addr := start(t, f, Options{})
	c := hello(t, addr)
	c.want("MAIL FROM:<> SIZE=26214401", "552 5.3.4")
	c.envelope()
	line := strings.Repeat("z", 1022) + "\r\n"
	c.data(strings.Repeat(line, 25<<10)+"x\r\n.\r\n", "552 5.3.4")
	c.envelope()
	c.data(strings.Repeat(line, 25<<10)+".\r\n", "250 ")
	if m := f.accepted(); len(m) != 1 || len(m[0].body) != 25<<20 {
		t.Errorf("accepted %d mails, want the one of 25 MiB", len(m))
	}
}

func TestLongLine(t *testing.T) {
	f := &fake{}
	_, addr := start(t, f, Options{MaxLine: 10000})
	c := hello(t, addr)
	c.envelope()
	c.data(strings.Repeat("z", 9000)+"\r\n.\r\n", "250 ")
	c.envelope()
	c.data(strings.Repeat("z", 20000)+"\r\n.\r\n", "554 5.6.0")
	if r, err := c.tryReply(); err == nil && !strings.HasPrefix(r, "500 ") {
		t.Errorf("the connection goes on with %q", r)
	}
	if len(f.accepted()) != 1 {
		t.Errorf("accepted %d mails, want 1", len(f.accepted()))
	}
	c = hello(t, addr)
	c.want("NOOP "+strings.Repeat("z", 20000), "500 ")
}

// A client that goes away inside a message has sent none, however it was sending.
func TestDisconnect(t *testing.T) {
	tests := []struct {
		name string
		send []string
	}{
		{"in DATA", []string{"DATA\r\n", "Subject: half\r\n"}},
		{"in DATA before the last line feed", []string{"DATA\r\n", "Subject: half\r\n.\r"}},
		{"between chunks", []string{"BDAT 5\r\nhello"}},
		{"in a chunk", []string{"BDAT 500\r\nhello"}},
		{"in the last chunk", []string{"BDAT 500 LAST\r\nhello"}},
		{"in the last chunk, unstarted", []string{"BDAT 5 LAST\r\n"}},
		{"RSET between chunks", []string{"BDAT 5\r\nhello", "RSET\r\nBDAT 0 LAST\r\n"}},
	}
	for _, tt := range tests {
		for _, secure := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, TLS %v", tt.name, secure), func(t *testing.T) {
				f := &fake{}
				s, addr := start(t, f, Options{TLS: certificate(t)})
				c := hello(t, addr)
				if secure {
					c.want("STARTTLS", "220 ")
					c.startTLS()
					c.want("EHLO again", "250-")
				}
				c.envelope()
				for _, part := range tt.send {
					c.send(part)
				}
				_ = c.Close()
				waitEmpty(t, s)
				if m := f.accepted(); len(m) != 0 {
					t.Errorf("accepted %q", m[0].body)
				}
			})
		}
	}
}

// waitEmpty waits until the server has no connection and no message left.
func waitEmpty(t *testing.T, s *Server) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		n := s.transfers
		s.mu.Unlock()
		s.door.mu.Lock()
		n += len(s.door.inside)
		s.door.mu.Unlock()
		if n == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the server is still busy")
		}
	}
}

func TestChunks(t *testing.T) {
	f := &fake{}
	_, addr := start(t, f, Options{TLS: certificate(t)})
	c := hello(t, addr)
	runChunks(c)
	c.want("STARTTLS", "220 ")
	c.startTLS()
	c.want("EHLO again", "250-")
	runChunks(c)
	for i, m := range f.accepted() {
		if m.body != "hello\r\n.\r\nx" {
			t.Errorf("mail %d: %q", i, m.body)
		}
	}
	if n := len(f.accepted()); n != 2 {
		t.Errorf("accepted %d mails, want 2", n)
	}
}

func runChunks(c *client) {
	c.envelope()
	c.send("BDAT 7\r\nhello\r\n")
	c.want("", "250 ")
	c.want("DATA", "502 ")
	c.send("BDAT 4 LAST\r\n.\r\nx")
	c.want("", "250 ")
	c.want("NOOP", "250 ")
	c.send("BDAT 4 LAST\r\nlate")
	c.want("", "502 ")
	c.want("NOOP", "250 ")
}

func TestPipelining(t *testing.T) {
	f := &fake{}
	_, addr := start(t, f, Options{})
	c := dial(t, addr)
	c.send("EHLO me\r\nMAIL FROM:<>\r\nRCPT TO:<agent@acme.test>\r\nRCPT TO:<x@acme.test>\r\nDATA\r\n")
	for _, want := range []string{"220 ", "250-", "250 ", "250 ", "550 ", "354 "} {
		c.want("", want)
	}
	c.send("one\r\n.\r\nMAIL FROM:<>\r\nRCPT TO:<second@acme.test>\r\nBDAT 3 LAST\r\ntwoQUIT\r\n")
	for _, want := range []string{"250 2.0.0 OK", "250 ", "250 ", "250 2.0.0 OK", "221 "} {
		c.want("", want)
	}
	if n := len(f.accepted()); n != 2 {
		t.Errorf("accepted %d mails, want 2", n)
	}
}

// A client that trickles is cut off, and what it sends afterwards is never read as commands.
func TestSlowClient(t *testing.T) {
	t.Run("greeted and silent", func(t *testing.T) {
		_, addr := start(t, &fake{}, Options{ReadTimeout: 50 * time.Millisecond})
		c := dial(t, addr)
		c.want("", "220 ")
		c.want("", "421 ")
	})
	t.Run("session over", func(t *testing.T) {
		_, addr := start(t, &fake{}, Options{SessionLimit: 50 * time.Millisecond})
		c := dial(t, addr)
		c.want("", "220 ")
		c.want("", "421 ")
	})
	t.Run("in DATA", func(t *testing.T) {
		f := &fake{}
		s, addr := start(t, f, Options{DataTimeout: 50 * time.Millisecond})
		c := hello(t, addr)
		c.envelope()
		c.want("DATA", "354 ")
		c.send("Subject: slow\r\n")
		c.want("", "421 4.4.2")
		_, _ = io.WriteString(c.Conn, "MAIL FROM:<evil@example.com>\r\nRCPT TO:<agent@acme.test>\r\nBDAT 3 LAST\r\nbad")
		if r, err := c.tryReply(); err == nil {
			t.Errorf("the rest of the mail was read as a command: %q", r)
		}
		waitEmpty(t, s)
		if n := len(f.accepted()); n != 0 {
			t.Errorf("accepted %d mails", n)
		}
	})
	t.Run("in what is too large anyway", func(t *testing.T) {
		f := &fake{}
		s, addr := start(t, f, Options{MaxBytes: 10, DataTimeout: 50 * time.Millisecond})
		c := hello(t, addr)
		c.envelope()
		c.want("DATA", "354 ")
		c.send("Subject: far too large\r\n")
		c.want("", "552 ")
		_, _ = io.WriteString(c.Conn, "MAIL FROM:<evil@example.com>\r\nRCPT TO:<agent@acme.test>\r\nBDAT 3 LAST\r\nbad")
		if r, err := c.tryReply(); err == nil {
			t.Errorf("the rest of the mail was read as a command: %q", r)
		}
		waitEmpty(t, s)
		if n := len(f.accepted()); n != 0 {
			t.Errorf("accepted %d mails", n)
		}
	})
}

func TestStartTLS(t *testing.T) {
	f := &fake{}
	s, addr := start(t, f, Options{TLS: certificate(t)})
	t.Run("whole session", func(t *testing.T) {
		c := hello(t, addr)
		c.want("MAIL FROM:<before@example.com>", "250 ")
		c.want("STARTTLS", "220 ")
		c.startTLS()
		// RFC 3207 §4.2: nothing that was said before the handshake counts.
		c.want("MAIL FROM:<>", "502 ")
		if caps := c.want("EHLO again", "250-"); strings.Contains(caps, "STARTTLS") || strings.Contains(caps, "AUTH") {
			t.Errorf("EHLO within TLS: %q", caps)
		}
		c.want("RCPT TO:<agent@acme.test>", "502 ")
		c.want("STARTTLS", "502 ")
		c.want("AUTH PLAIN AGEAYg==", "504 ")
		c.envelope()
		c.data("x\r\n.\r\n", "250 ")
		c.want("QUIT", "221 ")
	})
	t.Run("commands injected before the handshake", func(t *testing.T) {
		c := hello(t, addr)
		c.send("STARTTLS\r\nMAIL FROM:<evil@example.com>\r\nRCPT TO:<agent@acme.test>\r\n")
		c.want("", "220 ")
		c.startTLS()
		c.want("NOOP", "250 ") // the next reply belongs to this, not to what was injected
		c.want("EHLO again", "250-")
		c.want("RCPT TO:<agent@acme.test>", "502 ")
	})
	t.Run("garbage for a handshake", func(t *testing.T) {
		c := hello(t, addr)
		c.want("STARTTLS", "220 ")
		c.send("GET / HTTP/1.1\r\n\r\n")
		_ = c.Close()
		waitEmpty(t, s)
		hello(t, addr).want("NOOP", "250 ")
	})
	t.Run("not offered without a certificate", func(t *testing.T) {
		_, plain := start(t, f, Options{})
		c := hello(t, plain)
		c.want("STARTTLS", "502 ")
	})
	if n := len(f.accepted()); n != 1 {
		t.Errorf("accepted %d mails, want 1", n)
	}
}

func TestDoor(t *testing.T) {
	t.Run("connections at once", func(t *testing.T) {
		for name, o := range map[string]Options{"in all": {MaxConnections: 2}, "of one address": {MaxConnectionsPerIP: 2}} {
			t.Run(name, func(t *testing.T) {
				s, addr := start(t, &fake{}, o)
				a, b := hello(t, addr), hello(t, addr)
				dial(t, addr).want("", "421 4.7.0")
				a.want("QUIT", "221 ")
				_ = a.Close()
				b.want("NOOP", "250 ")
				_ = b.Close()
				waitEmpty(t, s)
				hello(t, addr).want("NOOP", "250 ")
			})
		}
	})
	t.Run("connections a minute", func(t *testing.T) {
		_, addr := start(t, &fake{}, Options{ConnectionsPerMinute: 2})
		hello(t, addr)
		hello(t, addr)
		dial(t, addr).want("", "421 4.7.0")
	})
	t.Run("mails a minute", func(t *testing.T) {
		_, addr := start(t, &fake{}, Options{MailsPerMinute: 2})
		c := hello(t, addr)
		c.want("MAIL FROM:<>", "250 ")
		c.want("MAIL FROM:<>", "250 ")
		c.want("MAIL FROM:<>", "450 4.7.1")
	})
	t.Run("keys", func(t *testing.T) {
		for in, want := range map[string][2]string{
			"192.0.2.1":               {"192.0.2.1", "192.0.2.1"},
			"::ffff:192.0.2.1":        {"192.0.2.1", "192.0.2.1"},
			"2001:db8:1:2:3:4:5:6":    {"2001:db8:1:2::/64", "2001:db8:1:2:3:4:5:6"},
			"2001:db8:1:2:ffff:4:5:6": {"2001:db8:1:2::/64", "2001:db8:1:2:ffff:4:5:6"},
		} {
			if key, ip := clientKey(&net.TCPAddr{IP: net.ParseIP(in)}); key != want[0] || ip != want[1] {
				t.Errorf("%s: %s, %s, want %v", in, key, ip, want)
			}
		}
	})
}

func TestRate(t *testing.T) {
	now := time.Unix(1000, 0)
	r := newRate(60, func() time.Time { return now })
	for i := range 60 {
		if !r.take("a") {
			t.Fatalf("token %d refused", i)
		}
	}
	if r.take("a") || !r.spent("a") {
		t.Error("the bucket has no bottom")
	}
	if !r.take("b") {
		t.Error("one client spends another's tokens")
	}
	now = now.Add(-time.Hour)
	if r.take("a") {
		t.Error("a clock that goes back refills")
	}
	now = now.Add(2 * time.Second)
	first, second, third := r.take("a"), r.take("a"), r.take("a")
	if !first || !second || third {
		t.Error("two seconds refill other than two tokens")
	}
	for i := range 3 * rateEntries {
		r.take(fmt.Sprint(i))
	}
	if n := len(r.buckets); n > rateEntries {
		t.Errorf("%d buckets, want at most %d", n, rateEntries)
	}
	if off := newRate(-1, time.Now); !off.take("a") || off.spent("a") {
		t.Error("a rate that is switched off refuses")
	}
}

func TestShutdown(t *testing.T) {
	t.Run("idle clients hear 421, a message under way arrives", func(t *testing.T) {
		f := &fake{}
		s, addr := start(t, f, Options{})
		idle, busy := hello(t, addr), hello(t, addr)
		idle.envelope()
		busy.envelope()
		busy.want("DATA", "354 ")
		waitTransfers(t, s, 1)
		done := make(chan error, 1)
		go func() { done <- s.Shutdown(t.Context()) }()
		idle.want("", "421 ")
		busy.send("x\r\n.\r\n")
		busy.want("", "250 ")
		busy.want("", "421 ")
		if err := <-done; err != nil {
			t.Errorf("Shutdown = %v", err)
		}
		if _, err := net.Dial("tcp", addr); err == nil {
			t.Error("the port still listens")
		}
		if n := len(f.accepted()); n != 1 {
			t.Errorf("accepted %d mails, want 1", n)
		}
	})
	t.Run("what takes too long is cut off and not accepted", func(t *testing.T) {
		f := &fake{}
		s, addr := start(t, f, Options{})
		c := hello(t, addr)
		c.envelope()
		c.want("DATA", "354 ")
		c.send("x\r\n")
		waitTransfers(t, s, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if err := s.Shutdown(ctx); err == nil {
			t.Error("Shutdown = nil, want the deadline's error")
		}
		waitEmpty(t, s)
		if n := len(f.accepted()); n != 0 {
			t.Errorf("accepted %d mails", n)
		}
	})
	t.Run("an accept that hangs sees its context end", func(t *testing.T) {
		f := &fake{hook: func(ctx context.Context) { <-ctx.Done() }}
		s, addr := start(t, f, Options{})
		c := hello(t, addr)
		c.envelope()
		c.want("DATA", "354 ")
		waitTransfers(t, s, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_ = s.Shutdown(ctx)
		waitEmpty(t, s)
	})
	t.Run("twice, and serving after it", func(t *testing.T) {
		s, err := New(Deps{Acceptor: &fake{}, Logger: discard()}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown = %v", err)
		}
		if err := s.Shutdown(t.Context()); err != ErrServerClosed {
			t.Errorf("second Shutdown = %v", err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Serve(l); err != ErrServerClosed {
			t.Errorf("Serve = %v", err)
		}
	})
}

func waitTransfers(t *testing.T, s *Server, n int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		have := s.transfers
		s.mu.Unlock()
		if have == n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d transfers, want %d", have, n)
		}
	}
}

func TestNewRefusesMissingDeps(t *testing.T) {
	if _, err := New(Deps{Logger: discard()}, Options{}); err == nil {
		t.Error("no Acceptor: accepted")
	}
	if _, err := New(Deps{Acceptor: &fake{}}, Options{}); err == nil {
		t.Error("no Logger: accepted")
	}
}

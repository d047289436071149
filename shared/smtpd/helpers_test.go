package smtpd

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// got is one mail that the fake accepted.
type got struct {
	in      inbox.Incoming
	body    string
	repairs []string
}

// fake is an Acceptor that knows agent@, second@, paused@ and broken@acme.test.
type fake struct {
	mu      sync.Mutex
	mails   []got
	lookups []string
	fail    error                 // of Accept, after the body was read
	hook    func(context.Context) // in Accept, before the body is read
	panics  bool
}

func (f *fake) Recipient(_ context.Context, address string) (inbox.Recipient, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lookups = append(f.lookups, address)
	local, domain, _ := strings.Cut(address, "@")
	local, _, _ = strings.Cut(local, "+")
	if domain == "acme.test" || domain == "xn--mller-kva.test" {
		switch {
		case local == "broken":
			return inbox.Recipient{}, fmt.Errorf("secret-canary: disk on fire")
		case local == "paused":
			return inbox.Recipient{Address: address, Inbox: "inbox_paused", State: inbox.StatePaused}, nil
		case local == "agent", local == "second", strings.HasPrefix(local, "n"):
			return inbox.Recipient{Address: local + "@" + domain, Inbox: "inbox_" + local, State: inbox.StateActive}, nil
		}
	}
	return inbox.Recipient{}, apperr.New(apperr.NotFound, "", "No such inbox.")
}

func (f *fake) Sender(_ context.Context, to inbox.Recipient, from string) error {
	switch from {
	case "blocked@evil.test":
		if to.Inbox == "inbox_agent" {
			return apperr.New(apperr.Forbidden, "", "secret-canary")
		}
	case "broken@evil.test":
		return fmt.Errorf("secret-canary: disk on fire")
	}
	return nil
}

func (f *fake) Accept(ctx context.Context, in inbox.Incoming) (string, error) {
	if f.panics {
		panic("secret-canary")
	}
	if f.hook != nil {
		f.hook(ctx)
	}
	b, err := io.ReadAll(in.Body)
	if err != nil {
		return "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return "", f.fail
	}
	g := got{in: in, body: string(b)}
	for _, w := range in.Repairs() {
		g.repairs = append(g.repairs, w.Code)
	}
	f.mails = append(f.mails, g)
	return "intake_x", nil
}

func (f *fake) setFail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = err
}

func (f *fake) lookedUp() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.lookups)
}

func (f *fake) accepted() []got {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]got(nil), f.mails...)
}

// start serves on a loopback port until the test ends.
func start(t testing.TB, a Acceptor, opts Options) (*Server, string) {
	t.Helper()
	s, err := New(Deps{Acceptor: a, Logger: discard()}, opts)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = s.Shutdown(ctx)
		if err := <-done; err != ErrServerClosed {
			t.Errorf("Serve = %v, want ErrServerClosed", err)
		}
	})
	return s, l.Addr().String()
}

// client speaks raw SMTP.
type client struct {
	t testing.TB
	net.Conn
	r *bufio.Reader
}

func dial(t testing.TB, addr string) *client {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(3 * time.Minute))
	return &client{t: t, Conn: c, r: bufio.NewReader(c)}
}

func (c *client) send(s string) {
	c.t.Helper()
	if _, err := io.WriteString(c.Conn, s); err != nil {
		c.t.Fatalf("send: %v", err)
	}
}

// reply reads one reply, continuation lines included.
func (c *client) reply() string {
	c.t.Helper()
	s, err := c.tryReply()
	if err != nil {
		c.t.Fatalf("reply: %v (so far %q)", err, s)
	}
	return s
}

func (c *client) tryReply() (string, error) {
	var all strings.Builder
	for {
		line, err := c.r.ReadString('\n')
		all.WriteString(line)
		if err != nil {
			return all.String(), err
		}
		if len(line) < 4 || line[3] != '-' {
			return all.String(), nil
		}
	}
}

// want sends a command and checks the start of the reply.
func (c *client) want(command, prefix string) string {
	c.t.Helper()
	if command != "" {
		c.send(command + "\r\n")
	}
	r := c.reply()
	if !strings.HasPrefix(r, prefix) {
		c.t.Fatalf("%.60q: got %q, want %q...", command, r, prefix)
	}
	return r
}

// hello gets a session ready.
func hello(t testing.TB, addr string) *client {
	t.Helper()
	c := dial(t, addr)
	c.want("", "220 ")
	c.want("EHLO client.example", "250-")
	return c
}

// envelope gets a message ready to be sent with DATA or BDAT.
func (c *client) envelope() {
	c.t.Helper()
	c.want("MAIL FROM:<s@example.com>", "250 ")
	c.want("RCPT TO:<agent@acme.test>", "250 ")
}

func (c *client) data(body, prefix string) string {
	c.t.Helper()
	c.want("DATA", "354 ")
	c.send(body)
	return c.want("", prefix)
}

func certificate(t testing.TB) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"mx.acme.test"}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}

// startTLS upgrades the client's connection.
func (c *client) startTLS() {
	c.t.Helper()
	t := tls.Client(c.Conn, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // the test's own certificate
	if err := t.HandshakeContext(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	c.Conn, c.r = t, bufio.NewReader(t)
}

package smtpd

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
)

func TestConversation(t *testing.T) {
	f := &fake{}
	_, addr := start(t, f, Options{Domain: "mx.acme.test"})
	c := dial(t, addr)
	if g := c.want("", "220 "); g != "220 mx.acme.test ESMTP Service Ready\r\n" {
		t.Errorf("greeting %q: it may name no product and no version", g)
	}
	c.want("MAIL FROM:<s@example.com>", "502 5.5.1")
	caps := c.want("EHLO client.example", "250-")
	for _, want := range []string{"PIPELINING", "8BITMIME", "ENHANCEDSTATUSCODES", "CHUNKING", "SMTPUTF8", "SIZE ", "RCPTMAX=50"} {
		if !strings.Contains(caps, want) {
			t.Errorf("EHLO lacks %s: %q", want, caps)
		}
	}
	for _, never := range []string{"AUTH", "STARTTLS", "DSN"} {
		if strings.Contains(caps, never) {
			t.Errorf("EHLO offers %s without need", never)
		}
	}
	c.want("RCPT TO:<agent@acme.test>", "502 5.5.1")
	c.want("DATA", "502 5.5.1")
	c.want("AUTH PLAIN AGEAYg==", "523 ")
	c.envelope()
	c.data("Subject: hi\r\n\r\n..dot\r\n8-bit \xe9\r\n.\r\n", "250 ")
	c.want("MAIL FROM:<>", "250 ")
	c.want("RCPT TO:<second@acme.test>", "250 ")
	c.data("\r\nx\r\n.\r\n", "250 ")
	c.want("QUIT", "221 ")
	mails := f.accepted()
	if len(mails) != 2 {
		t.Fatalf("accepted %d mails, want 2", len(mails))
	}
	first := mails[0]
	if first.body != "Subject: hi\r\n\r\n.dot\r\n8-bit \xe9\r\n" || len(first.repairs) != 0 {
		t.Errorf("body %q, repairs %v", first.body, first.repairs)
	}
	if in := first.in; in.From != "s@example.com" || in.RemoteIP != "127.0.0.1" || in.HELO != "client.example" ||
		len(in.Recipients) != 1 || in.Recipients[0].Inbox != "inbox_agent" {
		t.Errorf("envelope %+v", in)
	}
	if in := mails[1].in; in.From != "" || len(in.Recipients) != 1 || in.Recipients[0].Inbox != "inbox_second" {
		t.Errorf("the second mail's envelope kept something of the first: %+v", in)
	}
}

func TestRecipients(t *testing.T) {
	long := strings.Repeat("a", 65)
	tests := []struct{ name, rcpt, want string }{
		{"known", "<agent@acme.test>", "250 "},
		{"any case", "<AGENT@Acme.TEST>", "250 "},
		{"plus tag is the store's matter", "<agent+tag@acme.test>", "250 "},
		{"source route is dropped", "<@relay.example,@b.example:agent@acme.test>", "250 "},
		{"needless quotes", `<"agent"@acme.test>`, "250 "},
		{"unknown local part", "<nobody.else@other.test>", "550 5.1.1"},
		{"foreign domain", "<agent@example.com>", "550 5.1.1"},
		{"subdomain", "<agent@x.acme.test>", "550 5.1.1"},
		{"percent hack", "<agent%example.com@acme.test>", "550 5.1.1"},
		{"percent hack inwards", "<agent%acme.test@example.com>", "550 5.1.1"},
		{"bang path", "<example.com!agent@acme.test>", "550 5.1.1"},
		{"quoted at sign", `<"agent@acme.test"@example.com>`, "550 5.1.1"},
		{"quoted at sign, ours last", `<"agent@example.com"@acme.test>`, "550 5.1.1"},
		{"quoted space", `<"agent x"@acme.test>`, "550 5.1.1"},
		{"source route to a stranger", "<@acme.test:x@example.com>", "550 5.1.1"},
		{"address literal", "<agent@[127.0.0.1]>", "550 5.1.1"},
		{"trailing dot", "<agent@acme.test.>", "550 5.1.1"},
		{"two dots", "<agent..x@acme.test>", "550 5.1.1"},
		{"postmaster without a domain", "<Postmaster>", "550 5.1.1"},
		{"paused", "<paused@acme.test>", "450 4.2.1"},
		{"store out of order", "<broken@acme.test>", "451 4.3.0"},
		{"no domain", "<agent>", "501 "},
		{"empty", "<>", "501 "},
		{"comment", "<agent(x)@acme.test>", "501 "},
		{"two addresses", "<agent@acme.test,x@example.com>", "550 5.1.1"},
		{"long local part", "<" + long + "@acme.test>", "501 5.1.3"},
		{"long domain", "<a@" + strings.Repeat("a.", 130) + "test>", "501 5.1.3"},
		{"bare CR", "<agent\r@acme.test>", "501 5.1.3"},
		{"NUL", "<agent\x00@acme.test>", "501 5.1.3"},
		{"Latin-1", "<agent\xe9@acme.test>", "501 5.1.3"},
		{"UTF-8 without SMTPUTF8", "<ágent@acme.test>", "553 5.6.7"},
		{"parameter", "<agent@acme.test> NOTIFY=NEVER", "504 "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := &fake{}
			_, addr := start(t, f, Options{})
			c := hello(t, addr)
			c.want("MAIL FROM:<s@example.com>", "250 ")
			r := c.want("RCPT TO:"+tt.rcpt, tt.want)
			if strings.Contains(r, "canary") {
				t.Errorf("reply leaks: %q", r)
			}
			if tt.want == "250 " {
				return
			}
			c.want("DATA", "502 5.5.1")
			if n := len(f.accepted()); n != 0 {
				t.Errorf("%d mails accepted", n)
			}
		})
	}
}

func TestRecipientsWithSMTPUTF8(t *testing.T) {
	f := &fake{}
	_, addr := start(t, f, Options{})
	c := hello(t, addr)
	c.want("MAIL FROM:<jörg@example.com>", "553 5.6.7")
	c.want("MAIL FROM:<jörg@example.com> SMTPUTF8", "250 ")
	c.want("RCPT TO:<ágent@acme.test>", "550 5.1.1")
	c.want("RCPT TO:<agent@Müller.test>", "250 ")
	c.data("x\r\n.\r\n", "250 ")
	if m := f.accepted(); m[0].in.From != "jörg@example.com" || m[0].in.Recipients[0].Address != "agent@xn--mller-kva.test" {
		t.Errorf("envelope %+v", m[0].in)
	}
}

func TestSenders(t *testing.T) {
	tests := []struct{ name, from, want string }{
		{"null", "<>", "250 "},
		{"plain", "<a@b.example>", "250 "},
		{"quoted", `<"a b"@b.example>`, "250 "},
		{"size at the bound", "<a@b.example> SIZE=1000", "250 "},
		{"size over the bound", "<a@b.example> SIZE=1001", "552 5.3.4"},
		{"size beyond a number", "<a@b.example> SIZE=99999999999", "501 "},
		{"size negative", "<a@b.example> SIZE=-1", "501 "},
		{"long", "<" + strings.Repeat("a", 70) + "@b.example>", "501 5.1.3"},
		{"long in all", "<a@" + strings.Repeat("b", 260) + ">", "501 5.1.3"},
		{"no domain", "<a>", "501 "},
		{"not UTF-8", "<a\xff@b.example>", "501 5.1.3"},
		{"control", "<a\x1b[0m@b.example>", "501 "},
		{"unknown parameter", "<a@b.example> X=1", "500 "},
		{"binary", "<a@b.example> BODY=BINARYMIME", "504 "},
	}
	_, addr := start(t, &fake{}, Options{MaxBytes: 1000})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := hello(t, addr)
			c.want("MAIL FROM:"+tt.from, tt.want)
		})
	}
}

func TestHello(t *testing.T) {
	_, addr := start(t, &fake{}, Options{})
	for name, arg := range map[string]string{"empty": "", "control": "a\x07b", "long": strings.Repeat("a", 300), "not UTF-8": "\xff\xfe"} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, addr)
			c.want("", "220 ")
			c.want("EHLO "+arg, "501 5.5.2")
			c.want("MAIL FROM:<>", "502 ")
		})
	}
}

func TestDuplicateRecipientIsDeliveredOnce(t *testing.T) {
	f := &fake{}
	_, addr := start(t, f, Options{})
	c := hello(t, addr)
	c.want("MAIL FROM:<>", "250 ")
	for _, to := range []string{"agent@acme.test", "AGENT@acme.test", "agent+tag@acme.test", "second@acme.test", "agent@acme.test"} {
		c.want("RCPT TO:<"+to+">", "250 ")
	}
	c.data("x\r\n.\r\n", "250 ")
	if to := f.accepted()[0].in.Recipients; len(to) != 2 || to[0].Inbox != "inbox_agent" || to[1].Inbox != "inbox_second" {
		t.Errorf("recipients %+v, want agent and second once", to)
	}
}

func TestRecipientLimit(t *testing.T) {
	f := &fake{}
	_, addr := start(t, f, Options{})
	c := hello(t, addr)
	c.want("MAIL FROM:<>", "250 ")
	for i := range 50 {
		c.want(fmt.Sprintf("RCPT TO:<n%d@acme.test>", i), "250 ")
	}
	c.want("RCPT TO:<n50@acme.test>", "452 4.5.3")
	c.data("x\r\n.\r\n", "250 ")
	if n := len(f.accepted()[0].in.Recipients); n != 50 {
		t.Errorf("%d recipients, want 50", n)
	}
}

// The failures of an Acceptor: what the client hears, that nothing leaks, and that the session goes on.
func TestAcceptFailures(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want string
	}{
		{"plain error", fmt.Errorf("secret-canary"), "451 4.3.0"},
		{"unavailable", apperr.New(apperr.Unavailable, "", "secret-canary"), "451 4.3.0"},
		{"disk full", apperr.New(apperr.Unavailable, inbox.CodeStorageFull, "secret-canary"), "452 4.3.1"},
		{"too large", apperr.New(apperr.TooLarge, "", "secret-canary"), "552 5.3.4"},
		{"invalid", apperr.New(apperr.Invalid, "", "secret-canary"), "554 5.6.0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := &fake{fail: tt.err}
			_, addr := start(t, f, Options{})
			c := hello(t, addr)
			c.envelope()
			if r := c.data("x\r\n.\r\n", tt.want); strings.Contains(r, "canary") {
				t.Errorf("reply leaks: %q", r)
			}
			f.setFail(nil)
			c.envelope()
			c.data("x\r\n.\r\n", "250 ")
		})
	}
	t.Run("panic", func(t *testing.T) {
		f := &fake{panics: true}
		_, addr := start(t, f, Options{})
		c := hello(t, addr)
		c.envelope()
		if r := c.data("x\r\n.\r\n", "451 4.3.0"); strings.Contains(r, "canary") {
			t.Errorf("reply leaks: %q", r)
		}
		c.want("NOOP", "250 ")
	})
}

// Why mail is put off through no fault of its own is in the log; what a client did, and its address, is not.
func TestOurFaultsAreLogged(t *testing.T) {
	const cause = "write buzon.db: no space left on device"
	full := apperr.New(apperr.Unavailable, inbox.CodeStorageFull, "full").Because(errors.New(cause))
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"disk full", full, cause},
		{"wrapped", fmt.Errorf("step: %w", full), cause},
		{"plain", errors.New(cause), cause},
		{"no such inbox", apperr.New(apperr.NotFound, "", "none").Because(errors.New(cause)), ""},
		{"not taken", apperr.New(apperr.Forbidden, "", "no").Because(errors.New(cause)), ""},
		{"too large", apperr.New(apperr.TooLarge, "", "large").Because(errors.New(cause)), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := ourFault(tt.err); !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	var log bytes.Buffer
	s := &session{srv: &Server{deps: Deps{Logger: slog.New(slog.NewTextHandler(&log, nil))}, base: t.Context()}}
	_ = s.failed(&body{}, full)
	s.notLookedUp(full)
	if n := strings.Count(log.String(), cause); n != 2 {
		t.Errorf("%d lines with the cause, want 2: %s", n, log.String())
	}
	log.Reset()
	_ = s.failed(&body{err: errors.New("read tcp 192.0.2.1:25: reset")}, full)
	s.notLookedUp(apperr.New(apperr.NotFound, "", "none"))
	if strings.Contains(log.String(), "192.0.2.1") || strings.Contains(log.String(), "looked up") {
		t.Errorf("log: %s", log.String())
	}
}

func TestEveryKindHasAReply(t *testing.T) {
	for _, k := range apperr.Kinds() {
		for what, r := range map[string]int{
			"accept": failure(apperr.New(k, "", "secret-canary")).Code, "rcpt": recipientFailure(apperr.New(k, "", "secret-canary")).Code,
		} {
			if r < 450 || r > 559 {
				t.Errorf("%s, %s: reply %d", what, k, r)
			}
		}
		if r := failure(apperr.New(k, "", "secret-canary")); strings.Contains(r.Message, "canary") {
			t.Errorf("%s leaks its text", k)
		}
	}
}

// A client that guesses addresses is shown out, and the next guesses from its address cost no read.
func TestAddressGuessing(t *testing.T) {
	f := &fake{}
	_, addr := start(t, f, Options{RefusalsPerSession: 3, RefusalsPerMinute: 5})
	guess := func(c *client, n int) {
		c.want("MAIL FROM:<>", "250 ")
		for range n {
			c.want("RCPT TO:<x@acme.test>", "550 5.1.1")
		}
	}
	c := hello(t, addr)
	guess(c, 2)
	c.want("RCPT TO:<x@acme.test>", "421 ")
	if r, err := c.tryReply(); err == nil {
		t.Errorf("the connection goes on with %q", r)
	}
	c = hello(t, addr)
	guess(c, 2)
	c = hello(t, addr)
	c.want("MAIL FROM:<>", "250 ")
	before := f.lookedUp()
	c.want("RCPT TO:<x@acme.test>", "450 4.7.1")
	c.want("RCPT TO:<agent@acme.test>", "450 4.7.1")
	if n := f.lookedUp() - before; n != 0 {
		t.Errorf("%d look-ups after the rate was spent", n)
	}
}

// Whom a recipient does not take is refused at RCPT, that recipient alone, and learns nothing of why.
func TestRefusedSenders(t *testing.T) {
	f := &fake{}
	_, addr := start(t, f, Options{})
	c := dial(t, addr)
	c.want("", "220 ")
	c.want("EHLO client.test", "250")
	c.want("MAIL FROM:<blocked@evil.test>", "250 ")
	if got := c.want("RCPT TO:<agent@acme.test>", "550 5.7.1 "); strings.Contains(got, "canary") {
		t.Errorf("reply %q", got)
	}
	c.want("RCPT TO:<second@acme.test>", "250 ")
	c.data("Subject: x\r\n\r\nx\r\n.\r\n", "250 ")
	if len(f.mails) != 1 || len(f.mails[0].in.Recipients) != 1 || f.mails[0].in.Recipients[0].Inbox != "inbox_second" {
		t.Errorf("accepted %+v", f.mails)
	}
	c.want("MAIL FROM:<broken@evil.test>", "250 ")
	if got := c.want("RCPT TO:<agent@acme.test>", "451 "); strings.Contains(got, "canary") {
		t.Errorf("reply %q", got)
	}
	c.want("DATA", "502 ")
}

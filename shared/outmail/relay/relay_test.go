package relay_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/outmail"
	"github.com/buzon-mail/buzon/shared/outmail/relay"
)

// server is a relay that notes what it is handed and answers what a test wants.
type server struct {
	mu                       sync.Mutex
	from, to                 []string
	bodies                   [][]byte
	mail, rcpt, data, signIn error
	cut                      bool // hang up after DATA, without an answer
	roots                    *x509.CertPool
}

func (s *server) NewSession(c *smtp.Conn) (smtp.Session, error) { return &session{s, c}, nil }

type session struct {
	*server
	conn *smtp.Conn
}

func (s *session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != "me" || password != "s3cret" {
			return smtp.ErrAuthFailed
		}
		return s.signIn
	}), nil
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from = append(s.from, from)
	return s.mail
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to = append(s.to, to)
	return s.rcpt
}

func (s *session) Data(r io.Reader) error {
	b, err := io.ReadAll(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies = append(s.bodies, b)
	if s.cut {
		_ = s.conn.Conn().Close()
	}
	if err != nil {
		return err
	}
	return s.data
}

func (*session) Reset()        {}
func (*session) Logout() error { return nil }

// start serves on loopback: with STARTTLS, with TLS from the first byte, or without.
func start(t *testing.T, s *server, mode string, size int64) relay.Options {
	t.Helper()
	site := httptest.NewTLSServer(nil) // for its certificate
	site.Close()
	s.roots = x509.NewCertPool()
	s.roots.AddCert(site.Certificate())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	inner := smtp.NewServer(s)
	inner.Domain, inner.MaxMessageBytes, inner.AllowInsecureAuth = "relay.test", size, mode == "plain"
	inner.ErrorLog = quiet{}
	secure := &tls.Config{Certificates: site.TLS.Certificates, MinVersion: tls.VersionTLS12}
	o := relay.Options{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, TLS: &tls.Config{RootCAs: s.roots, MinVersion: tls.VersionTLS12}}
	switch mode {
	case "implicit":
		l, o.Implicit = tls.NewListener(l, secure), true
	case "starttls":
		inner.TLSConfig = secure
	case "plain":
		o.Plain = true
	}
	go func() { _ = inner.Serve(l) }()
	t.Cleanup(func() { _ = inner.Close() })
	return o
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}
func (quiet) Println(...any)        {}

func message() outmail.Message {
	return outmail.Message{
		ID: "job_1", From: mail.Address{Address: "facturas@acme.test"}, Recipient: "ana@acme.test", To: []string{"ana@acme.test"},
		Subject: "Fwd: ñ", Text: "Hola", Date: time.Date(2026, 11, 30, 9, 15, 3, 0, time.UTC), Original: []byte("Subject: x\r\n\r\n.\r\nñ\r\n"),
	}
}

func send(t *testing.T, o relay.Options) error {
	t.Helper()
	r, err := relay.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r.Send(t.Context(), message())
}

func TestRelays(t *testing.T) {
	for _, mode := range []string{"plain", "starttls", "implicit"} {
		t.Run(mode, func(t *testing.T) {
			s := &server{}
			o := start(t, s, mode, 1<<20)
			o.User, o.Password = "me", "s3cret"
			if err := send(t, o); err != nil {
				t.Fatal(err)
			}
			want, err := message().Bytes(true)
			if err != nil {
				t.Fatal(err)
			}
			if len(s.bodies) != 1 || !bytes.Equal(s.bodies[0], want) || strings.Join(s.from, "") != "facturas@acme.test" || strings.Join(s.to, "") != "ana@acme.test" {
				t.Errorf("%q %q %q", s.from, s.to, s.bodies)
			}
		})
	}
}

// What an answer means for who waits: the last word, or come again.
func TestAnswers(t *testing.T) {
	is := func(code int, enhanced ...int) error {
		e := &smtp.SMTPError{Code: code, EnhancedCode: smtp.EnhancedCode{code / 100, 0, 0}, Message: "no mail for ana@acme.test here"}
		if len(enhanced) == 3 {
			e.EnhancedCode = smtp.EnhancedCode(enhanced)
		}
		return e
	}
	for _, c := range []struct {
		name string
		set  func(*server)
		kind apperr.Kind
		code string
	}{
		{"sender for now", func(s *server) { s.mail = is(451) }, apperr.Unavailable, "relay"},
		{"sender", func(s *server) { s.mail = is(553) }, apperr.Conflict, outmail.CodeSender},
		{"recipient for now", func(s *server) { s.rcpt = is(450) }, apperr.Unavailable, "relay"},
		{"recipient", func(s *server) { s.rcpt = is(550) }, apperr.Conflict, outmail.CodeRecipient},
		{"message for now", func(s *server) { s.data = is(452) }, apperr.Unavailable, "relay"},
		{"message", func(s *server) { s.data = is(554) }, apperr.Conflict, outmail.CodeMail},
		{"size by code", func(s *server) { s.data = is(552) }, apperr.TooLarge, outmail.CodeTooLarge},
		{"size by enhanced code", func(s *server) { s.data = is(554, 5, 3, 4) }, apperr.TooLarge, outmail.CodeTooLarge},
		{"wants a sign-in", func(s *server) { s.mail = is(530) }, apperr.Unavailable, "relay"},
		{"cut after DATA", func(s *server) { s.cut = true }, apperr.Unavailable, "relay"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &server{}
			c.set(s)
			err := send(t, start(t, s, "plain", 1<<20))
			e := apperr.From(err)
			if err == nil || e.Kind != c.kind || e.Name() != c.code {
				t.Fatalf("%v", err)
			}
			for cause := err; cause != nil; cause = errors.Unwrap(cause) {
				if strings.Contains(cause.Error(), "ana@") {
					t.Errorf("an address in the cause: %v", cause)
				}
			}
		})
	}
}

func TestRefusedBeforeAnythingIsSent(t *testing.T) {
	good := &server{}
	at := start(t, good, "plain", 1<<20)
	for _, c := range []struct {
		name string
		o    func() (relay.Options, *server)
		kind apperr.Kind
	}{
		{"wrong password", func() (relay.Options, *server) {
			s := &server{}
			o := start(t, s, "starttls", 1<<20)
			o.User, o.Password = "me", "wr0ng"
			return o, s
		}, apperr.Unavailable},
		{"no STARTTLS", func() (relay.Options, *server) {
			o := at
			o.Plain = false
			return o, good
		}, apperr.Unavailable},
		{"no TLS", func() (relay.Options, *server) {
			o := at
			o.Plain, o.Implicit = false, true
			return o, good
		}, apperr.Unavailable},
		{"a stranger's certificate", func() (relay.Options, *server) {
			s := &server{}
			o := start(t, s, "implicit", 1<<20)
			o.TLS = nil
			return o, s
		}, apperr.Unavailable},
		{"a stranger's certificate, STARTTLS", func() (relay.Options, *server) {
			s := &server{}
			o := start(t, s, "starttls", 1<<20)
			o.TLS = nil
			return o, s
		}, apperr.Unavailable},
		{"its SIZE", func() (relay.Options, *server) {
			s := &server{}
			return start(t, s, "plain", 200), s
		}, apperr.TooLarge},
		{"nobody there", func() (relay.Options, *server) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			o := relay.Options{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, Plain: true}
			_ = l.Close()
			return o, &server{}
		}, apperr.Unavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, s := c.o()
			err := send(t, o)
			if !apperr.Is(err, c.kind) {
				t.Fatalf("%v", err)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.from)+len(s.bodies) > 0 {
				t.Error("something was sent")
			}
			for cause := err; cause != nil; cause = errors.Unwrap(cause) {
				if strings.Contains(cause.Error(), "wr0ng") {
					t.Errorf("the password in the cause: %v", cause)
				}
			}
		})
	}
}

// A server that says nothing holds nobody up whose context ends.
func TestContextEnds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // a test
	r, err := relay.New(relay.Options{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, Plain: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if c, err := l.Accept(); err == nil {
			cancel()
			defer c.Close() //nolint:errcheck // a test
			_, _ = io.Copy(io.Discard, c)
		}
	}()
	if err := r.Send(ctx, message()); !apperr.Is(err, apperr.Unavailable) {
		t.Errorf("%v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	for name, o := range map[string]relay.Options{
		"no host":            {Port: 25},
		"no port":            {Host: "relay.test"},
		"plain, far away":    {Host: "relay.test", Port: 25, Plain: true},
		"plain, a lookalike": {Host: "127.0.0.1.relay.test", Port: 25, Plain: true},
		"both":               {Host: "127.0.0.1", Port: 25, Plain: true, Implicit: true},
	} {
		if _, err := relay.New(o); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

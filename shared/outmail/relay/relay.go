// Package relay is the Outlet over an SMTP relay (RFC 5321), with TLS unless it is on this very machine.
package relay

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/outmail"
)

const (
	dialTimeout    = 10 * time.Second
	commandTimeout = 30 * time.Second
	// dataTimeout is less than the ten minutes of RFC 5321 section 4.5.3.2.6: a function has no more, and a message that was taken after
	// all comes twice, under one Message-ID.
	dataTimeout = 2 * time.Minute
)

// Options say which server takes the mail.
type Options struct {
	Host     string
	Port     int
	Implicit bool // TLS from the first byte; otherwise STARTTLS, without which nothing is sent
	// Plain sends without TLS: for a server on this very machine.
	Plain    bool
	User     string // with Password; empty: not signed in
	Password string
	Name     string      // of this host, for EHLO; localhost when empty
	TLS      *tls.Config // nil: the system's roots. For tests
}

// Relay is an outmail.Outlet over one SMTP server, a connection a message.
type Relay struct{ o Options }

var _ outmail.Outlet = (*Relay)(nil)

// New makes a Relay. It connects to nothing.
func New(o Options) (*Relay, error) {
	if o.Host == "" || o.Port < 1 || o.Port > 65535 {
		return nil, errors.New("relay: a relay needs host and port")
	}
	if o.Plain && !loopback(o.Host) {
		return nil, errors.New("relay: without TLS a relay must be on this machine")
	}
	if o.Plain && o.Implicit {
		return nil, errors.New("relay: with TLS or without")
	}
	if o.Name == "" {
		o.Name = "localhost"
	}
	return &Relay{o}, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Send implements outmail.Outlet.
func (r *Relay) Send(ctx context.Context, m outmail.Message) error {
	if err := m.Check(); err != nil { // before anybody is bothered
		return err
	}
	c, stop, err := r.connect(ctx)
	if err != nil {
		return away(err)
	}
	defer stop()
	defer c.Close() //nolint:errcheck // it was said what is to be said
	eight, _ := c.Extension("8BITMIME")
	b, err := m.Bytes(eight)
	if err != nil {
		return err
	}
	if limit, ok := c.MaxMessageSize(); ok && limit > 0 && len(b) > limit {
		return apperr.New(apperr.TooLarge, outmail.CodeTooLarge, "The relay takes no message of this size.")
	}
	if err := c.Mail(m.From.Address, &smtp.MailOptions{Size: int64(len(b))}); err != nil {
		return answered("MAIL", outmail.CodeSender, err)
	}
	if err := c.Rcpt(m.Recipient, nil); err != nil {
		return answered("RCPT", outmail.CodeRecipient, err)
	}
	w, err := c.Data()
	if err != nil {
		return answered("DATA", outmail.CodeMail, err)
	}
	if _, err := w.Write(b); err != nil {
		return away(fmt.Errorf("send the message: %w", err))
	}
	if err := w.Close(); err != nil {
		return answered("end of DATA", outmail.CodeMail, err)
	}
	_ = c.Quit() // the message is theirs
	return nil
}

// connect speaks to the server up to where a message may be sent. stop lets the context go.
func (r *Relay) connect(ctx context.Context) (c *smtp.Client, stop func(), err error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(r.o.Host, strconv.Itoa(r.o.Port)))
	if err != nil {
		return nil, nil, fmt.Errorf("connect to the relay: %w", err)
	}
	release := context.AfterFunc(ctx, func() { _ = conn.Close() }) // whoever waits for an answer hears of the end
	defer func() {
		if err != nil {
			release()
			_ = conn.Close()
		}
	}()
	if err := conn.SetDeadline(time.Now().Add(commandTimeout)); err != nil {
		return nil, nil, fmt.Errorf("connect to the relay: %w", err)
	}
	if c, err = r.speak(ctx, conn); err != nil {
		return nil, nil, err
	}
	c.CommandTimeout, c.SubmissionTimeout = commandTimeout, dataTimeout
	if r.o.User != "" {
		if err := c.Auth(sasl.NewPlainClient("", r.o.User, r.o.Password)); err != nil {
			return nil, nil, fmt.Errorf("sign in at the relay: %w", wordless(err))
		}
	}
	return c, func() { release() }, nil
}

// speak greets the server, over TLS but for Plain. STARTTLS that a server does not offer is a failure, for somebody in between may have
// taken the offer out.
func (r *Relay) speak(ctx context.Context, conn net.Conn) (*smtp.Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if r.o.TLS != nil {
		config = r.o.TLS.Clone()
	}
	config.ServerName = r.o.Host
	var c *smtp.Client
	switch {
	case r.o.Plain:
		c = smtp.NewClient(conn)
	case r.o.Implicit:
		secure := tls.Client(conn, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, fmt.Errorf("TLS with the relay: %w", err)
		}
		c = smtp.NewClient(secure)
	default:
		var err error
		if c, err = smtp.NewClientStartTLS(conn, config); err != nil {
			return nil, fmt.Errorf("STARTTLS with the relay: %w", wordless(err))
		}
		return c, nil // it has greeted, as localhost: the library's way
	}
	if err := c.Hello(r.o.Name); err != nil {
		return nil, fmt.Errorf("greet the relay: %w", wordless(err))
	}
	return c, nil
}

// away is what may be otherwise in a while: the network, TLS, the relay's own credentials.
func away(err error) *apperr.Error {
	return apperr.New(apperr.Unavailable, "relay", "The relay for outgoing mail can't be reached now.").Because(err)
}

// answered judges an answer (RFC 5321 section 4.2.1): 5yz is the last word, 4yz is not. No answer at all is none either: the message may be taken
// or not, and comes again.
func answered(step, code string, err error) error {
	e, ok := errors.AsType[*smtp.SMTPError](err)
	if !ok || e.Code < 500 {
		return away(fmt.Errorf("%s: %w", step, wordless(err)))
	}
	cause := fmt.Errorf("%s: %w", step, wordless(err))
	switch {
	case e.Code == 552 || e.EnhancedCode == smtp.EnhancedCode{5, 3, 4}: // RFC 1870 section 6.1
		return apperr.New(apperr.TooLarge, outmail.CodeTooLarge, "The relay takes no message of this size.").Because(cause)
	case e.Code == 530 || e.Code == 535: // it wants a sign-in: the operator's to mend, nobody's fault who gets or sends mail
		return away(cause)
	}
	return apperr.New(apperr.Conflict, code, "The relay for outgoing mail refused this.").Because(cause)
}

// wordless keeps an answer's words out of the log: they repeat addresses, and whatever a stranger's server says.
func wordless(err error) error {
	if e, ok := errors.AsType[*smtp.SMTPError](err); ok {
		return fmt.Errorf("the relay answered %d %d.%d.%d", e.Code, e.EnhancedCode[0], e.EnhancedCode[1], e.EnhancedCode[2])
	}
	return err
}

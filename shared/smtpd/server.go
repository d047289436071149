// Package smtpd is the SMTP listener: it takes mail for known inboxes from anybody and hands each message, as it streams in,
// to the interface that accepts it. RFC 5321 with 8BITMIME, SIZE, PIPELINING, CHUNKING (RFC 3030), STARTTLS (RFC 3207),
// ENHANCEDSTATUSCODES (RFC 2034) and SMTPUTF8 (RFC 6531); the protocol itself is emersion/go-smtp's. It relays nothing,
// offers no AUTH, and knows nothing of storage, HTTP or MCP.
package smtpd

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/buzon-mail/buzon/shared/inbox"
)

// ErrServerClosed is what Serve returns after Shutdown.
var ErrServerClosed = errors.New("smtpd: server closed")

// Acceptor is where the mail goes.
type Acceptor interface {
	// Recipient finds the inbox behind an address: *apperr.Error not_found for one that is not ours; a paused inbox comes
	// with its state.
	Recipient(ctx context.Context, address string) (inbox.Recipient, error)
	// Accept reads in.Body to its end and returns nil only when the mail is durable: 250 is said for nil and for nothing
	// else. After an error nothing may be kept.
	Accept(ctx context.Context, in inbox.Incoming) (id string, err error)
}

// Deps is what a Server needs.
type Deps struct {
	Acceptor Acceptor
	Logger   *slog.Logger
	Clock    func() time.Time // for rates; time.Now when nil
}

// Options bound the listener. A zero field takes the default; a negative rate or count switches that limit off.
type Options struct {
	Addr          string        // for the log and for who listens; Serve takes the listener
	Domain        string        // in the greeting; localhost
	MaxBytes      int64         // of one message; 25 MiB
	MaxRecipients int           // of one message; 50
	MaxLine       int           // bytes of one line; 1 MiB: real mail has lines far over RFC 5321's 1,000
	ReadTimeout   time.Duration // for one command, or for 32 KiB of a message; 5 minutes (RFC 5321 §4.5.3.2.7)
	WriteTimeout  time.Duration // for one reply; 1 minute
	DataTimeout   time.Duration // for one whole message; 10 minutes
	SessionLimit  time.Duration // for one connection; 1 hour

	MaxConnections       int // at once; 200
	MaxConnectionsPerIP  int // at once from one address (IPv6: one /64); 50
	ConnectionsPerMinute int // from one address; 600
	MailsPerMinute       int // from one address; 3,000
	RefusalsPerMinute    int // unknown recipients from one address before they are put off unread; 120
	RefusalsPerSession   int // unknown recipients before the connection is closed; 20

	TLS *tls.Config // offers STARTTLS when set; at least TLS 1.2
}

// Server is one SMTP listener. Make it with New.
type Server struct {
	deps  Deps
	opts  Options
	inner *smtp.Server
	door  *door
	base  context.Context //nolint:containedctx // parent of every call to the Acceptor, for go-smtp hands none on; ends when Shutdown gives up waiting
	abort context.CancelFunc

	mu        sync.Mutex
	closed    bool           // guarded by mu
	listeners []net.Listener // guarded by mu
	transfers int            // messages being handed over; guarded by mu
	idle      chan struct{}  // closed when transfers reaches 0 after closed; guarded by mu
}

// New checks the dependencies and prepares a server.
func New(deps Deps, opts Options) (*Server, error) {
	if deps.Acceptor == nil || deps.Logger == nil {
		return nil, errors.New("smtpd: Acceptor and Logger are required")
	}
	if deps.Clock == nil {
		deps.Clock = time.Now
	}
	opts = opts.withDefaults()
	s := &Server{deps: deps, opts: opts, idle: make(chan struct{})}
	s.door = newDoor(opts, deps.Clock)
	s.base, s.abort = context.WithCancel(context.Background())
	s.inner = smtp.NewServer(smtp.BackendFunc(s.newSession))
	s.inner.Domain = opts.Domain
	s.inner.MaxRecipients = opts.MaxRecipients
	// go-smtp refuses a message of exactly its limit, so it gets one byte more; body enforces ours.
	s.inner.MaxMessageBytes = opts.MaxBytes + 1
	s.inner.MaxLineLength = opts.MaxLine
	s.inner.ReadTimeout = opts.ReadTimeout
	s.inner.WriteTimeout = opts.WriteTimeout
	s.inner.EnableSMTPUTF8 = true
	s.inner.ErrorLog = protocolLog{deps.Logger}
	if opts.TLS != nil {
		s.inner.TLSConfig = opts.TLS.Clone()
		s.inner.TLSConfig.MinVersion = max(s.inner.TLSConfig.MinVersion, tls.VersionTLS12)
	}
	return s, nil
}

func (o Options) withDefaults() Options {
	orInt := func(p *int, n int) {
		if *p == 0 {
			*p = n
		}
	}
	orTime := func(p *time.Duration, d time.Duration) {
		if *p <= 0 {
			*p = d
		}
	}
	if o.Domain == "" {
		o.Domain = "localhost"
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = 25 << 20
	}
	if o.MaxRecipients <= 0 {
		o.MaxRecipients = 50
	}
	if o.MaxLine <= 0 {
		o.MaxLine = 1 << 20
	}
	orTime(&o.ReadTimeout, 5*time.Minute)
	orTime(&o.WriteTimeout, time.Minute)
	orTime(&o.DataTimeout, 10*time.Minute)
	orTime(&o.SessionLimit, time.Hour)
	orInt(&o.MaxConnections, 200)
	orInt(&o.MaxConnectionsPerIP, 50)
	orInt(&o.ConnectionsPerMinute, 600)
	orInt(&o.MailsPerMinute, 3000)
	orInt(&o.RefusalsPerMinute, 120)
	orInt(&o.RefusalsPerSession, 20)
	return o
}

// Serve takes connections until Shutdown; it closes l.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		_ = l.Close()
		return ErrServerClosed
	}
	guarded := &listener{Listener: l, door: s.door}
	s.listeners = append(s.listeners, guarded)
	s.mu.Unlock()
	err := s.inner.Serve(guarded)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrServerClosed
	}
	return err
}

// Shutdown closes the listeners, says 421 to every connection that waits for a command, and lets messages that are on their
// way arrive until ctx ends. Then what is left is cut off: those clients never heard 250 and will come again. No goroutine
// of the server is left when it returns, unless the Acceptor ignores its context.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrServerClosed
	}
	s.closed = true
	if s.transfers == 0 {
		close(s.idle)
	}
	listeners := s.listeners
	s.mu.Unlock()
	defer s.abort()

	for _, l := range listeners {
		_ = l.Close()
	}
	s.door.close()
	err := s.inner.Shutdown(ctx)
	if err == nil {
		return s.drain(ctx)
	}
	s.abort()
	s.door.cut()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return errors.Join(err, s.drain(last))
}

// drain waits until every connection and message is gone.
func (s *Server) drain(ctx context.Context) error {
	for _, gone := range []<-chan struct{}{s.idle, s.door.empty()} {
		select {
		case <-gone:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// enter counts a message in. False: the server is shutting down.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.transfers++
	return true
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.transfers--
	if s.closed && s.transfers == 0 {
		close(s.idle)
	}
}

func (s *Server) stopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// protocolLog is where go-smtp reports. What it prints holds peers' addresses and panic values, so only the kind goes on.
type protocolLog struct{ log *slog.Logger }

func (p protocolLog) Printf(format string, _ ...any) {
	switch {
	case len(format) > 5 && format[:5] == "panic":
		p.log.Error("smtp session panicked")
	case len(format) > 6 && format[:6] == "accept":
		p.log.Warn("smtp listener could not accept a connection")
	default:
		p.log.Debug("smtp connection failed")
	}
}

func (p protocolLog) Println(...any) { p.log.Debug("smtp connection failed") }

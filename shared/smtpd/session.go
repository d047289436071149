package smtpd

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
)

// lookupTimeout bounds the search for a recipient, and what is left to do once a message has arrived.
const lookupTimeout = 30 * time.Second

// session is one connection between HELO and its end.
type session struct {
	srv   *Server
	conn  *smtp.Conn
	guard *conn

	// mu guards what follows: with BDAT go-smtp calls Data beside the goroutine that reads commands.
	mu       sync.Mutex
	utf8     bool
	from     string
	size     int64 // as announced; 0: it was not (RFC 1870)
	to       []inbox.Recipient
	refused  int
	poisoned bool // the connection can't be read on; it ends with the next Reset
}

var _ smtp.Session = (*session)(nil)

func (s *Server) newSession(c *smtp.Conn) (smtp.Session, error) {
	g := guardOf(c.Conn())
	if g == nil {
		return nil, reply(421, 3, 0, "Try again later")
	}
	if s.stopping() {
		return nil, shuttingDown()
	}
	if heloName(c.Hostname()) == "" {
		return nil, reply(501, 5, 2, "Bad HELO argument")
	}
	return &session{srv: s, conn: c, guard: g}, nil
}

func guardOf(c net.Conn) *conn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	g, _ := c.(*conn)
	return g
}

// Mail starts a message.
func (s *session) Mail(from string, opts *smtp.MailOptions) error {
	if s.guard.late.Load() {
		// go-smtp gave up on the rest of a refused message and now reads it as commands, which whoever wrote the message would
		// have chosen. Nothing more is taken from this connection.
		s.conn.Reject()
		return shuttingDown()
	}
	if s.srv.stopping() {
		return shuttingDown()
	}
	if opts.Size > s.srv.opts.MaxBytes {
		return smtp.ErrDataTooLarge
	}
	if bad := senderAddress(from, opts.UTF8); bad != nil {
		return bad
	}
	if !s.srv.door.mails.take(s.guard.key) {
		return reply(450, 7, 1, "Too much mail, try again later")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from, s.size, s.utf8, s.to = from, opts.Size, opts.UTF8, nil
	return nil
}

// Rcpt adds a recipient. Whoever is not an inbox of ours is refused here, so nothing is ever relayed or bounced.
func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	if s.srv.stopping() {
		return shuttingDown()
	}
	s.mu.Lock()
	smtputf8, from, size := s.utf8, s.from, s.size
	s.mu.Unlock()
	address, bad := recipientAddress(to, smtputf8, s.srv.opts.Domain)
	if bad != nil {
		return s.refuse(bad)
	}
	// Before the look-up: a client that guesses addresses must not learn from the answer, nor cost a read.
	if s.srv.door.refusals.spent(s.guard.key) {
		return reply(450, 7, 1, "Too many unknown recipients, try again later")
	}
	ctx, cancel := context.WithTimeout(s.srv.base, lookupTimeout)
	defer cancel()
	r, err := s.srv.deps.Acceptor.Recipient(ctx, address)
	if err != nil {
		s.notLookedUp(err)
		return s.refuse(recipientFailure(err))
	}
	if r.State == inbox.StatePaused {
		return reply(450, 2, 1, "Mailbox is paused, try again later")
	}
	if r.TooLarge(size) { // no guess at an address, so it is not counted as one
		return reply(552, 2, 3, "Message too large for this recipient")
	}
	if err := s.srv.deps.Acceptor.Sender(ctx, r, from); err != nil {
		s.notLookedUp(err)
		return s.refuse(senderFailure(err))
	}
	s.add(r)
	return nil
}

// add keeps each inbox once: a client that names it twice gets it delivered once.
func (s *session) add(r inbox.Recipient) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, known := range s.to {
		if known.Inbox == r.Inbox {
			return
		}
	}
	s.to = append(s.to, r)
}

// refuse counts the permanent refusals and shows out whoever collects them.
func (s *session) refuse(why *smtp.SMTPError) error {
	if why.Temporary() {
		return why
	}
	s.srv.door.refusals.take(s.guard.key)
	s.mu.Lock()
	s.refused++
	over := s.srv.opts.RefusalsPerSession > 0 && s.refused >= s.srv.opts.RefusalsPerSession
	s.mu.Unlock()
	if over {
		s.conn.Reject() // says 421 and closes; the reply that we return goes nowhere
	}
	return why
}

// Data hands the message over. Nothing was accepted unless it returns nil.
func (s *session) Data(r io.Reader) (err error) {
	defer func() {
		if p := recover(); p != nil {
			// The value of a panic can hold anything; the stack names only code.
			s.srv.deps.Logger.Error("smtp: accepting a mail panicked", slog.String("stack", string(debug.Stack())))
			err = reply(451, 3, 0, "Try again later")
		}
	}()
	if !s.srv.enter() {
		return shuttingDown()
	}
	defer s.srv.leave()
	s.guard.setBusy(true)
	defer s.guard.setBusy(false)

	in := s.envelope()
	b := newBody(r, s.conn.Conn(), s.guard, s.srv.opts)
	b.left = most(in.Recipients, b.left)
	if len(in.Recipients) == 0 { // RSET overtook a chunk
		return reply(503, 5, 1, "No recipients")
	}
	in.Body, in.Repairs = b, b.repairs
	ctx, cancel := context.WithTimeout(s.srv.base, s.srv.opts.DataTimeout+lookupTimeout)
	defer cancel()
	id, err := s.srv.deps.Acceptor.Accept(ctx, in)
	if b.lost {
		s.mu.Lock()
		s.poisoned = true
		s.mu.Unlock()
	}
	if err != nil {
		return s.failed(b, err)
	}
	s.srv.deps.Logger.Info("smtp: mail accepted", slog.String("intake", id), slog.Int("recipients", len(in.Recipients)))
	return nil
}

// most is how large the message may be for any of its recipients to take it.
func most(to []inbox.Recipient, limit int64) int64 {
	var n int64
	for _, r := range to {
		if r.MaxBytes == 0 {
			return limit
		}
		n = max(n, r.MaxBytes)
	}
	return min(n, limit)
}

func (s *session) envelope() inbox.Incoming {
	s.mu.Lock()
	defer s.mu.Unlock()
	return inbox.Incoming{
		From: s.from, RemoteIP: s.guard.ip, HELO: heloName(s.conn.Hostname()),
		Recipients: append([]inbox.Recipient(nil), s.to...),
	}
}

// failed chooses the reply: what went wrong on the wire explains more than what the Acceptor made of it.
func (s *session) failed(b *body, err error) error {
	cause := ourFault(err)
	if b.err != nil && b.err != io.EOF { //nolint:errorlint // body returns it bare
		err, cause = b.err, "" // the network's text holds the client's address
	}
	r := failure(err)
	attrs := []slog.Attr{slog.Int("reply", r.Code), slog.String("kind", apperr.From(err).Kind.String())}
	if cause != "" {
		attrs = append(attrs, slog.String("error", cause))
	}
	s.srv.deps.Logger.LogAttrs(s.srv.base, slog.LevelWarn, "smtp: mail not accepted", attrs...)
	return r
}

// notLookedUp writes down why a recipient is put off although nothing is wrong with it: a store that is down or a disk that is full
// shows nowhere else, for the client only hears that it shall come again.
func (s *session) notLookedUp(err error) {
	if cause := ourFault(err); cause != "" {
		s.srv.deps.Logger.Warn("smtp: recipient not looked up", slog.String("kind", apperr.From(err).Kind.String()), slog.String("error", cause))
	}
}

// ourFault is the text of an error that is not the message's own fault; empty for others.
func ourFault(err error) string {
	if k := apperr.From(err).Kind; k == apperr.Internal || k == apperr.Unavailable {
		return err.Error()
	}
	return ""
}

// Reset forgets the message that was being prepared.
func (s *session) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from, s.size, s.to, s.utf8 = "", 0, nil, false
	if s.poisoned || s.guard.late.Load() {
		// go-smtp calls this after it has written the reply, and holds a lock that its own Close wants.
		_ = s.guard.Close()
	}
}

// Logout ends the session.
func (s *session) Logout() error { return nil }

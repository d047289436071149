package smtpd

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/buzon-mail/buzon/shared/inbox"
)

// body reads one message off the connection: bounded in size and time, complete or an error, and with an eye on the line
// ends. Only CRLF.CRLF ends a message in go-smtp, so a bare LF or CR before a dot stays content here; other servers on the
// way may have read it as an end, which is how mail is smuggled, and that is why the mail carries a warning.
type body struct {
	r     io.Reader
	conn  net.Conn // what go-smtp reads from: *conn, or *tls.Conn upon it
	guard *conn
	chunk bool // BDAT

	left  int64         // bytes until the message is too large
	each  time.Duration // for one read
	until time.Time     // for the whole message

	err  error // sticky, io.EOF included
	lost bool  // the check of a chunk's end swallowed a byte that belonged to the next command

	last       byte
	lf, cr, nl int // of LF, CR, CRLF
	nul        int
}

func newBody(r io.Reader, c net.Conn, g *conn, o Options) *body {
	_, pipe := r.(*io.PipeReader) // go-smtp hands chunks on through a pipe
	return &body{r: r, conn: c, guard: g, chunk: pipe, left: o.MaxBytes, each: o.ReadTimeout, until: time.Now().Add(o.DataTimeout)}
}

// Read is io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	deadline := time.Now().Add(b.each)
	if deadline.After(b.until) {
		deadline = b.until
	}
	_ = b.conn.SetReadDeadline(deadline)
	n, err := b.r.Read(p)
	b.scan(p[:n])
	if b.left -= int64(n); b.left < 0 {
		b.err = smtp.ErrDataTooLarge
		return 0, b.err
	}
	if err == nil {
		return n, nil
	}
	b.err = b.translate(err)
	return n, b.err
}

func (b *body) translate(err error) error {
	switch {
	case errors.Is(err, io.EOF) && b.chunk && b.cutOff():
		return reply(451, 4, 2, "Connection lost")
	case errors.Is(err, io.EOF):
		return io.EOF
	case errors.Is(err, smtp.ErrTooLongLine):
		return reply(554, 6, 0, "Line too long")
	case errors.Is(err, smtp.ErrDataTooLarge):
		return smtp.ErrDataTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return reply(421, 4, 2, "Too slow, try again later")
	}
	return reply(451, 4, 2, "Connection lost")
}

// cutOff tells whether the peer went away inside the last chunk. go-smtp v0.26.0 copies a chunk with io.Copy, for which the
// end of the connection is the end of the chunk, so it takes a message that was cut off for a whole one. It has no say in
// how much it read; but it reads beyond the chunk's size never, so it has met the connection's end only if the chunk is
// short. On a plain connection the guard has seen that end. Within TLS it shows by reading once more, with no wait.
func (b *body) cutOff() bool {
	if b.guard.eof.Load() {
		return true
	}
	t, ok := b.conn.(*tls.Conn)
	if !ok {
		return false
	}
	// go-smtp waits for our answer now and reads nothing meanwhile.
	_ = b.guard.Conn.SetReadDeadline(time.Unix(1, 0))
	n, err := t.Read(make([]byte, 1))
	_ = b.guard.SetReadDeadline(time.Now().Add(b.each))
	b.guard.late.Store(false) // that time-out was ours
	b.lost = n > 0
	return n == 0 && !errors.Is(err, os.ErrDeadlineExceeded)
}

func (b *body) scan(p []byte) {
	if len(p) == 0 {
		return
	}
	b.lf += bytes.Count(p, []byte{'\n'})
	b.cr += bytes.Count(p, []byte{'\r'})
	b.nul += bytes.Count(p, []byte{0})
	b.nl += bytes.Count(p, []byte("\r\n"))
	if b.last == '\r' && p[0] == '\n' {
		b.nl++
	}
	b.last = p[len(p)-1]
}

// repairs is what the mail must be warned about. The raw bytes keep all of it.
func (b *body) repairs() []inbox.Warning {
	var out []inbox.Warning
	add := func(n int, code, what string) {
		if n > 0 {
			out = append(out, inbox.Warning{Code: code, Detail: fmt.Sprintf("%d %s", n, what)})
		}
	}
	add(b.lf-b.nl, "bare_lf", "line feeds without a carriage return")
	add(b.cr-b.nl, "bare_cr", "carriage returns without a line feed")
	add(b.nul, "nul", "NUL bytes")
	return out
}

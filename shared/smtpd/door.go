package smtpd

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// door decides who comes in and remembers who is inside. Without it one client could hold every connection, or guess
// addresses as fast as the store answers.
type door struct {
	opts Options

	connects *rate
	mails    *rate
	refusals *rate

	mu     sync.Mutex
	inside map[*conn]struct{} // guarded by mu
	perIP  map[string]int     // guarded by mu; never more entries than inside
	closed bool               // guarded by mu
	gone   chan struct{}      // closed when inside is empty after closed
}

func newDoor(o Options, clock func() time.Time) *door {
	return &door{
		opts:     o,
		connects: newRate(o.ConnectionsPerMinute, clock),
		mails:    newRate(o.MailsPerMinute, clock),
		refusals: newRate(o.RefusalsPerMinute, clock),
		inside:   map[*conn]struct{}{},
		perIP:    map[string]int{},
		gone:     make(chan struct{}),
	}
}

// admit takes a connection in, or returns nil.
func (d *door) admit(c net.Conn) *conn {
	key, ip := clientKey(c.RemoteAddr())
	if !d.connects.take(key) {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	full := d.opts.MaxConnections > 0 && len(d.inside) >= d.opts.MaxConnections
	many := d.opts.MaxConnectionsPerIP > 0 && d.perIP[key] >= d.opts.MaxConnectionsPerIP
	if d.closed || full || many {
		return nil
	}
	g := &conn{Conn: c, door: d, key: key, ip: ip, end: time.Now().Add(d.opts.SessionLimit)}
	d.inside[g] = struct{}{}
	d.perIP[key]++
	return g
}

func (d *door) leave(c *conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.inside[c]; !ok {
		return
	}
	delete(d.inside, c)
	if d.perIP[c.key]--; d.perIP[c.key] <= 0 {
		delete(d.perIP, c.key)
	}
	if d.closed && len(d.inside) == 0 {
		close(d.gone)
	}
}

// close lets nobody in any more and ends the wait of every connection that is not in the middle of a message.
func (d *door) close() {
	d.mu.Lock()
	d.closed = true
	if len(d.inside) == 0 {
		close(d.gone)
	}
	inside := d.list()
	d.mu.Unlock()
	for _, c := range inside {
		c.dismiss()
	}
}

// cut closes every connection.
func (d *door) cut() {
	d.mu.Lock()
	inside := d.list()
	d.mu.Unlock()
	for _, c := range inside {
		_ = c.Close()
	}
}

func (d *door) list() []*conn {
	out := make([]*conn, 0, len(d.inside))
	for c := range d.inside {
		out = append(out, c)
	}
	return out
}

func (d *door) empty() <-chan struct{} { return d.gone }

// clientKey is what limits count by: an IPv4 address or an IPv6 /64, which is what one customer gets. ip is the address
// itself; both are empty for a peer without one.
func clientKey(a net.Addr) (key, ip string) {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return "", ""
	}
	addr := tcp.AddrPort().Addr().Unmap().WithZone("")
	if !addr.Is6() {
		return addr.String(), addr.String()
	}
	net64 := netip.PrefixFrom(addr, 64).Masked()
	return net64.String(), addr.String()
}

// listener is the door in front of a listener.
type listener struct {
	net.Listener
	door *door
	once sync.Once
	err  error
}

// busyReply is all that a refused client hears. RFC 5321 §3.1 allows 421 in place of the greeting.
const busyReply = "421 4.7.0 Too many connections, try again later\r\n"

// Accept returns the next connection that is let in.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if g := l.door.admit(c); g != nil {
			return g, nil
		}
		// The send buffer of a new connection is empty, so this does not block; the deadline is for surprises.
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = io.WriteString(c, busyReply)
		_ = c.Close()
	}
}

// Close closes the listener, once.
func (l *listener) Close() error {
	l.once.Do(func() { l.err = l.Listener.Close() })
	return l.err
}

// conn bounds a connection in time and sees how it ends. Deadlines are the kernel's, so they follow time.Now and no
// injected clock.
type conn struct {
	net.Conn
	door *door
	key  string
	ip   string
	end  time.Time   // no read waits beyond it
	eof  atomic.Bool // the peer has closed its side
	late atomic.Bool // a read ran out of time: what comes next may be the rest of a message, never to be read as commands

	mu        sync.Mutex
	busy      bool // a message is under way; guarded by mu
	dismissed bool // the server is shutting down; guarded by mu
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		c.eof.Store(true)
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.late.Store(true)
	}
	return n, err
}

// SetReadDeadline never lets a read outlast the session, nor a command be waited for once the server shuts down: go-smtp
// answers the time-out with 421, which is what RFC 5321 §3.8 asks for.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.IsZero() || t.After(c.end) {
		t = c.end
	}
	if c.dismissed && !c.busy {
		t = time.Unix(1, 0)
	}
	return c.Conn.SetReadDeadline(t)
}

// dismiss ends the wait for a command.
func (c *conn) dismiss() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dismissed = true
	if !c.busy {
		_ = c.Conn.SetReadDeadline(time.Unix(1, 0))
	}
}

func (c *conn) setBusy(busy bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = busy
}

// Close closes the connection and gives its place free.
func (c *conn) Close() error {
	c.door.leave(c)
	return c.Conn.Close()
}

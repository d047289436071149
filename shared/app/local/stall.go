package local

import (
	"net"
	"time"
)

const (
	stallTime  = time.Minute // for one piece of a reply
	stallPiece = 64 << 10    // bytes
)

// stallListener ends connections whose client takes no more of its reply. net/http bounds only how long a whole reply may take,
// which a download over a slow line or a stream of progress would not keep; without any bound a client that never reads holds
// its connection, and a file descriptor that SMTP and the store need too, for ever.
type stallListener struct{ net.Listener }

// Accept waits for the next connection.
func (l stallListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err //nolint:wrapcheck // net/http looks into it
	}
	return stallConn{c}, nil
}

// stallConn is a connection that hides what lets net/http write past Write.
type stallConn struct{ net.Conn }

// Write writes in pieces, each with its own deadline. It is the kernel's, so it follows time.Now and no injected clock.
func (c stallConn) Write(p []byte) (n int, err error) {
	for {
		piece := p[n:min(n+stallPiece, len(p))]
		if err := c.SetWriteDeadline(time.Now().Add(stallTime)); err != nil {
			return n, err //nolint:wrapcheck // the connection's own
		}
		m, err := c.Conn.Write(piece)
		if n += m; err != nil || n == len(p) {
			return n, err //nolint:wrapcheck // the connection's own
		}
	}
}

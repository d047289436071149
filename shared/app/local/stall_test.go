package local

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// takes is a connection that takes so many bytes and then fails as one does whose deadline has passed.
type takes struct {
	net.Conn
	left      int
	got       bytes.Buffer
	deadlines []time.Time
	longest   int
}

func (c *takes) SetWriteDeadline(t time.Time) error {
	c.deadlines = append(c.deadlines, t)
	return nil
}

func (c *takes) Write(p []byte) (int, error) {
	c.longest = max(c.longest, len(p))
	n := min(len(p), c.left)
	c.left -= n
	c.got.Write(p[:n])
	if n < len(p) {
		return n, errors.New("deadline passed")
	}
	return n, nil
}

func TestEachPieceOfAReplyHasADeadline(t *testing.T) {
	text := bytes.Repeat([]byte("0123456789abcdef"), 20_000) // 320,000 bytes
	for _, c := range []struct {
		name         string
		size, left   int
		want, pieces int
		failed       bool
	}{
		{"nothing", 0, 10, 0, 1, false},
		{"small", 100, 1 << 20, 100, 1, false},
		{"a piece exactly", stallPiece, 1 << 20, stallPiece, 1, false},
		{"large", 320_000, 1 << 20, 320_000, 5, false},
		{"stalled in the middle", 320_000, 100_000, 100_000, 2, true},
		{"stalled at once", 100, 0, 0, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			inner := &takes{left: c.left}
			before := time.Now()
			n, err := stallConn{inner}.Write(text[:c.size])
			if n != c.want || (err != nil) != c.failed || !bytes.Equal(inner.got.Bytes(), text[:c.want]) {
				t.Errorf("wrote %d, error %v; want %d, failed %v", n, err, c.want, c.failed)
			}
			if len(inner.deadlines) != c.pieces || inner.longest > stallPiece {
				t.Errorf("%d deadlines, longest piece %d; want %d", len(inner.deadlines), inner.longest, c.pieces)
			}
			for _, d := range inner.deadlines {
				if d.Before(before.Add(stallTime)) || d.After(time.Now().Add(stallTime)) {
					t.Errorf("deadline %v", d.Sub(before))
				}
			}
		})
	}
}

// A connection with ReadFrom would let a copy, and so a download, go around Write.
func TestStallConnHasNoWayAroundWrite(t *testing.T) {
	if _, ok := any(stallConn{}).(io.ReaderFrom); ok {
		t.Error("stallConn has ReadFrom")
	}
}

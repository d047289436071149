package pipeline

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"sync"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// The sizes of the pieces that a mail is received in: most mails fit in the first.
const (
	firstPiece = 32 << 10
	maxPiece   = 1 << 20
)

// budget is the memory for mails that are on their way in. A blob store wants to know the size beforehand, so a mail is held
// whole, once; without a bound over all of them, a few hundred slow senders would fill the memory with mails that never end.
type budget struct {
	mu   sync.Mutex
	left int64 // guarded by mu
}

func (b *budget) take(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left < n {
		return false
	}
	b.left -= n
	return true
}

func (b *budget) give(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left += n
}

// buffer is one mail in pieces, with its size and digest. It must be released.
type buffer struct {
	budget *budget
	taken  int64
	pieces [][]byte
	size   int64
	hash   hash.Hash
}

// read takes a mail in, of at most limit bytes. The buffer is never nil.
func (b *budget) read(ctx context.Context, r io.Reader, limit int64) (*buffer, error) {
	buf := &buffer{budget: b, hash: sha256.New()}
	for next := int64(firstPiece); ; next = min(2*next, maxPiece) {
		if err := ctx.Err(); err != nil {
			return buf, err
		}
		if !b.take(next) {
			return buf, apperr.New(apperr.Unavailable, "busy", "Too much mail is on its way in; try again later.")
		}
		buf.taken += next
		piece := make([]byte, next)
		n, err := fill(r, piece)
		buf.pieces = append(buf.pieces, piece[:n])
		buf.size += int64(n)
		if buf.size > limit {
			return buf, apperr.New(apperr.TooLarge, "", fmt.Sprintf("A mail may have %d bytes.", limit))
		}
		buf.hash.Write(piece[:n])
		if err == io.EOF { //nolint:errorlint // only the bare end is the end; a wrapped one is a mail that was cut off
			return buf, nil
		}
		if err != nil {
			return buf, err
		}
	}
}

// fill reads until p is full or r has an error. (io.ReadFull turns the end into the very error that a connection cut off
// in the middle gives, and half a mail must not pass for a whole one.)
func fill(r io.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var m int
		m, err = r.Read(p[n:])
		n += m
	}
	return n, err
}

// reader gives the mail once more from its start.
func (b *buffer) reader() io.Reader {
	if len(b.pieces) == 1 {
		return bytes.NewReader(b.pieces[0])
	}
	all := make([]io.Reader, 0, len(b.pieces))
	for _, p := range b.pieces {
		all = append(all, bytes.NewReader(p))
	}
	return io.MultiReader(all...)
}

func (b *buffer) release() {
	b.budget.give(b.taken)
	b.taken, b.pieces = 0, nil
}

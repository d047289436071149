package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/awsclient"
	"github.com/buzon-mail/buzon/shared/blob"
)

// maxMemory is the size up to which a blob that is no reader of bytes in memory is read into memory; beyond it goes to a
// temporary file (Lambda's /tmp holds 512 MB, two of the largest blobs).
const maxMemory = 8 << 20

// whole makes of r a body that can be sent twice, having seen that it is exactly size bytes long. drop frees what it took.
func whole(ctx context.Context, r io.Reader, size int64) (body io.ReadSeeker, drop func(), err error) {
	nothing := func() {}
	switch m := r.(type) {
	case *bytes.Reader:
		return m, nothing, sameLength(m.Len(), size)
	case *strings.Reader:
		return m, nothing, sameLength(m.Len(), size)
	}
	if size <= maxMemory {
		b := bytes.NewBuffer(make([]byte, 0, size+1))
		if err := fill(ctx, b, r, size); err != nil {
			return nil, nil, err
		}
		return bytes.NewReader(b.Bytes()), nothing, nil
	}
	f, err := os.CreateTemp("", "buzon-put-") // 0600
	if err != nil {
		return nil, nil, unavailableFile(err)
	}
	drop = func() {
		_ = f.Close()
		_ = os.Remove(f.Name()) // what stays goes with the instance
	}
	if err := fill(ctx, f, r, size); err != nil {
		drop()
		return nil, nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		drop()
		return nil, nil, unavailableFile(err)
	}
	return f, drop, nil
}

func sameLength(have int, size int64) error {
	if int64(have) != size {
		return blob.ErrSize
	}
	return nil
}

func unavailableFile(err error) error {
	return fmt.Errorf("bucket: temporary file: %w: %w", blob.ErrUnavailable, err)
}

// fill copies exactly size bytes. A failure to write is ours, a failure to read is the caller's own error.
func fill(ctx context.Context, w io.Writer, r io.Reader, size int64) error {
	buf := make([]byte, min(size+1, 64<<10))
	for n := int64(0); ; {
		got, err := r.Read(buf)
		if ended := ctx.Err(); ended != nil {
			return ended
		}
		if n += int64(got); n > size {
			return blob.ErrSize
		}
		if _, werr := w.Write(buf[:got]); werr != nil {
			return unavailableFile(werr)
		}
		switch {
		case errors.Is(err, io.EOF) && n < size:
			return blob.ErrSize
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read the blob to put: %w", err)
		}
	}
}

// errBroken is a body that did not come whole, though the object may be: it is worth another try.
var errBroken = errors.New("the body broke off")

// stream is the body of an object. It ends the request when no byte comes for a while: a connection that stalls would otherwise
// hold its function until Lambda kills it.
type stream struct {
	ended  func() error // of the caller's context, to tell its end from ours
	cancel context.CancelFunc
	body   io.ReadCloser
	size   int64
	read   int64
	stall  time.Duration
	timer  *time.Timer
}

func newStream(ctx context.Context, cancel context.CancelFunc, body io.ReadCloser, size int64, stall time.Duration) *stream {
	s := &stream{ended: ctx.Err, cancel: cancel, body: body, size: size, stall: stall, timer: time.AfterFunc(stall, cancel)}
	s.timer.Stop()
	return s
}

// Read implements io.Reader.
func (s *stream) Read(b []byte) (int, error) {
	s.timer.Reset(s.stall)
	n, err := s.body.Read(b)
	s.timer.Stop()
	s.read += int64(n)
	if err == nil || errors.Is(err, io.EOF) && s.read >= s.size {
		return n, err
	}
	if ended := s.ended(); ended != nil {
		return n, ended
	}
	return n, fmt.Errorf("bucket: get: %w: %w after %d of %d bytes: %w", blob.ErrUnavailable, errBroken, s.read, s.size, awsclient.Explain(err))
}

// Close implements io.Closer.
func (s *stream) Close() error {
	s.timer.Stop()
	err := s.body.Close()
	s.cancel()
	return err
}

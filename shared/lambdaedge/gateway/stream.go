package gateway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/buzon-mail/buzon/shared/lambdaedge"
)

const (
	maxPrelude = 16 << 10  // the bytes in which the eight zeroes must come
	maxStream  = 200 << 20 // of a body, Lambda's limit
)

var (
	errNoReply = errors.New("gateway: no reply")
	errPrelude = errors.New("gateway: no prelude")
	errTooLong = errors.New("gateway: a reply over the limit of streams")
)

// callStreamed invokes and answers as soon as the prelude is there.
func (g *Gateway) callStreamed(r *http.Request, event []byte) answer {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), g.o.Timeout)
	reply, err := g.open(ctx, event)
	if err != nil {
		cancel()
		return g.failed()
	}
	a, err := g.begin(r, reply)
	if err != nil {
		_ = reply.Close()
		cancel()
		return g.failed()
	}
	if a.stream == nil {
		_ = reply.Close()
		cancel()
		return a
	}
	a.stream = &rest{Reader: a.stream, reply: reply, cancel: cancel, left: maxStream}
	return a
}

// begin reads the prelude. Only a reply of this kind is streamed by a function URL; any other is somebody's mistake.
func (g *Gateway) begin(r *http.Request, reply Reply) (answer, error) {
	if reply.ContentType() != lambdaedge.StreamType {
		return answer{}, errPrelude
	}
	body := bufio.NewReader(reply)
	var raw []byte
	for zeroes := make([]byte, 8); !bytes.HasSuffix(raw, zeroes); {
		b, err := body.ReadByte()
		if err != nil || len(raw) > maxPrelude {
			return answer{}, errPrelude
		}
		raw = append(raw, b)
	}
	var prelude replyOf
	if json.Unmarshal(raw[:len(raw)-8], &prelude) != nil || prelude.StatusCode < 200 || prelude.StatusCode > 599 || prelude.Body != "" {
		return answer{}, errPrelude
	}
	header, ok := g.headersOut(prelude)
	if !ok {
		return g.refusal(http.StatusInternalServerError, "Internal Server Error"), nil
	}
	if header.Get("Content-Type") == "" {
		header.Set("Content-Type", "application/octet-stream")
	}
	a := answer{status: prelude.StatusCode, header: header}
	if r.Method != http.MethodHead && prelude.StatusCode != http.StatusNoContent && prelude.StatusCode != http.StatusNotModified {
		a.stream = io.NopCloser(body)
	}
	return a, nil
}

// rest is the body as it comes.
type rest struct {
	io.Reader
	reply  io.Closer
	cancel context.CancelFunc
	left   int
}

// Read reads what has come.
func (b *rest) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, errTooLong
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return n, io.ErrUnexpectedEOF // all that a client learns
	}
	return n, err
}

// Close lets the function finish, as Lambda does when the client has left, and ends the invocation.
func (b *rest) Close() error {
	_, _ = io.Copy(io.Discard, b.Reader)
	err := b.reply.Close()
	b.cancel()
	return err
}

// forward sends a body as it comes. A client that left is nobody to tell.
func forward(w http.ResponseWriter, body io.Reader) error {
	control, buf := http.NewResponseController(w), make([]byte, 16<<10)
	flushed := func() bool {
		err := control.Flush()
		return err == nil || errors.Is(err, http.ErrNotSupported)
	}
	gone := !flushed()
	for {
		n, err := body.Read(buf)
		if n > 0 && !gone {
			if _, failed := w.Write(buf[:n]); failed != nil {
				gone = true
			} else {
				gone = !flushed()
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

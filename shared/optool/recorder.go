package optool

import (
	"net/http"
	"sync"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// maxKept is the greatest buffer that goes back to the pool: one huge reply must not pin its memory for ever.
const maxKept = 1 << 20

// recorder is the http.ResponseWriter of in-process calls. It is pooled: a route writes its reply before it returns and
// keeps no hold of the writer.
type recorder struct {
	buf      []byte
	meta     []byte
	header   http.Header
	status   int
	failure  *apperr.Error // of which buf is the document
	value    any           // of which buf is the JSON; nil: not known
	out      bool          // in use; guards against a second release
	released func()        // release, made once
	pool     *sync.Pool
}

// record takes a recorder from the pool.
func (t *Tools) record() *recorder {
	r, ok := t.recorders.Get().(*recorder)
	if !ok {
		r = &recorder{header: http.Header{}, pool: &t.recorders}
		r.released = r.release
	}
	r.out = true
	return r
}

// Header is where the route puts headers. A tool's result shows none of them.
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader keeps the first final status.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 && status >= http.StatusOK {
		r.status = status
	}
}

// Failed keeps the failure that the route is about to write.
func (r *recorder) Failed(e *apperr.Error) { r.failure = e }

// Value keeps the value that the route is about to write.
func (r *recorder) Value(v any) { r.value = v }

// Write keeps the reply.
func (r *recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	r.buf = append(r.buf, p...)
	return len(p), nil
}

func (r *recorder) release() {
	if !r.out || cap(r.buf) > maxKept || cap(r.meta) > maxKept {
		return
	}
	r.out = false
	r.buf, r.meta, r.status = r.buf[:0], r.meta[:0], 0
	r.failure, r.value = nil, nil
	clear(r.header)
	r.pool.Put(r)
}

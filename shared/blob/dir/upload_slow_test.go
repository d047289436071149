package dir_test

import (
	"bytes"
	"crypto/sha256"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/iotest"
	"time"

	"github.com/buzon-mail/buzon/shared/blob"
)

// patient is a ResponseWriter that notes the deadlines of its connection.
type patient struct {
	*httptest.ResponseRecorder
	deadlines []time.Time
}

func (p *patient) SetReadDeadline(t time.Time) error {
	p.deadlines = append(p.deadlines, t)
	return nil
}

// A file may take longer than the server gives any request, as long as it keeps coming; once it is there nothing is waited for.
func TestSlowUpload(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 16<<10) // 256 KiB
	sum := sha256.Sum256(data)
	for _, tt := range []struct {
		name   string
		body   []byte
		status int
	}{
		{"whole", data, http.StatusOK},
		{"breaks off", data[:128<<10], http.StatusBadRequest},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			link, err := w.store.UploadURL(t.Context(), "upload/a", blob.UploadOptions{Size: int64(len(data)), SHA256: sum[:], TTL: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPut, link.URL, iotest.DataErrReader(bytes.NewReader(tt.body)))
			r.ContentLength = int64(len(data))
			p := &patient{ResponseRecorder: httptest.NewRecorder()}
			w.store.TakeHandler().ServeHTTP(p, r)
			if p.Code != tt.status {
				t.Fatalf("status %d, want %d", p.Code, tt.status)
			}
			last := len(p.deadlines) - 1
			if last < 2 || p.deadlines[0].Before(began.Add(time.Minute)) || p.deadlines[0].After(time.Now().Add(time.Minute)) {
				t.Fatalf("deadlines %v, want a minute at first", p.deadlines)
			}
			if !p.deadlines[last].IsZero() {
				t.Errorf("the last deadline is %v, want none", p.deadlines[last])
			}
			for i := 1; i < last; i++ {
				if more := p.deadlines[i].Sub(p.deadlines[i-1]); more <= 0 || more > 8*time.Second {
					t.Errorf("piece %d gave %v more", i, more)
				}
			}
			if more := p.deadlines[last-1].Sub(p.deadlines[0]); more > time.Duration(len(tt.body)/(32<<10))*time.Second {
				t.Errorf("%v more in all for %d bytes", more, len(tt.body))
			}
		})
	}
}

package pipeline

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

// The prefixes of the ids that the pipeline makes and takes.
const (
	prefixIntake     = "intake_"
	prefixEmail      = "email_"
	prefixAttachment = "att_"
	prefixEvent      = "event_"
	prefixDelivery   = "delivery_"
	prefixJob        = "job_"
)

// fixedID is an id that follows from its parts: whoever makes it again makes the same. The parts are length-prefixed, so that
// no sender can move text from one to the next.
func fixedID(prefix string, at time.Time, parts ...string) (string, error) {
	h := sha256.New()
	for _, part := range append([]string{prefix}, parts...) {
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	id, err := ulid.New(ulid.Timestamp(at), bytes.NewReader(h.Sum(nil)))
	if err != nil {
		return "", fmt.Errorf("make an id: %w", err)
	}
	return prefix + id.String(), nil
}

// NewID makes an id: prefix and ULID of a time. Ids of the same millisecond ascend, so mails sort in the order they were
// accepted in.
type NewID func(prefix string, at time.Time) (string, error)

// MonotonicIDs makes ids from entropy (crypto/rand when nil). It may be used by many at once.
func MonotonicIDs(entropy io.Reader) NewID {
	if entropy == nil {
		entropy = rand.Reader
	}
	var mu sync.Mutex
	source := ulid.Monotonic(entropy, 0)
	return func(prefix string, at time.Time) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		id, err := ulid.New(ulid.Timestamp(at), source)
		if err != nil {
			return "", fmt.Errorf("make an id: %w", err)
		}
		return prefix + id.String(), nil
	}
}

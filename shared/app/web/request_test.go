package web

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/iotest"
)

func TestRequestIDs(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]bool{}
	ids := &identified{random: rand.Reader}
	ids.next = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		type key struct{}
		id := ids.RequestID(r.Context())
		if again := ids.RequestID(context.WithValue(r.Context(), key{}, 1)); id != again || len(id) != 2*idBytes {
			t.Errorf("one request has the ids %q and %q", id, again)
		}
		mu.Lock()
		defer mu.Unlock()
		if seen[id] {
			t.Errorf("two requests have the id %q", id)
		}
		seen[id] = true
	})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range idsDrawn {
				ids.ServeHTTP(nil, httptest.NewRequest(http.MethodGet, "/", nil))
			}
		})
	}
	all.Wait()
	if len(seen) != 8*idsDrawn {
		t.Errorf("%d ids", len(seen))
	}
	if id := ids.RequestID(t.Context()); id != "" {
		t.Errorf("outside of a request: %q", id)
	}
	broken := &identified{random: iotest.ErrReader(errors.New("none"))}
	if id := broken.RequestID(&requestID{Context: t.Context()}); id != "" {
		t.Errorf("without randomness: %q", id)
	}
	named := &identified{platform: func(context.Context) string { return "aws-1" }}
	if id := named.RequestID(&requestID{Context: t.Context()}); id != "aws-1" {
		t.Errorf("the platform's: %q", id)
	}
}

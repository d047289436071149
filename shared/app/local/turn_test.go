package local

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/buzon-mail/buzon/shared/config"
	"github.com/buzon-mail/buzon/shared/store/embedded"
)

// A verb beside another verb, or beside a service that starts or stops, waits for its turn.
func TestWhenFree(t *testing.T) {
	settled := errors.New("settled")
	for _, tt := range []struct {
		name   string
		held   bool
		third  func(free func(), cancel func()) (bool, error) // what the third look elsewhere does
		opened bool
		want   error
	}{
		{"free", false, nil, true, nil},
		{"held by a verb that ends", true, func(free, _ func()) (bool, error) { free(); return false, nil }, true, nil},
		{"held by a service that now answers", true, func(_, _ func()) (bool, error) { return true, nil }, false, nil},
		{"settled with an error", true, func(_, _ func()) (bool, error) { return true, settled }, false, settled},
		{"nobody waits any more", true, func(_, cancel func()) (bool, error) { cancel(); return false, nil }, false, context.Canceled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			cfg, err := config.LoadLocal(func(name string) string { return map[string]string{"BUZON_DATA_DIR": dir}[name] })
			if err != nil {
				t.Fatal(err)
			}
			free := func() {}
			if tt.held {
				e, err := embedded.Open(filepath.Join(dir, storeFile), embedded.Options{})
				if err != nil {
					t.Fatal(err)
				}
				free = func() { _ = e.Close() }
				t.Cleanup(free)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			looks := 0
			s, err := whenFree(ctx, cfg, Options{Log: io.Discard}, func() (bool, error) {
				if looks++; looks == 3 && tt.third != nil {
					return tt.third(free, cancel)
				}
				return false, nil
			})
			if s != nil {
				defer func() { _ = s.Close() }()
			}
			if (s != nil) != tt.opened || !errors.Is(err, tt.want) {
				t.Errorf("opened %v, %v; want %v, %v", s != nil, err, tt.opened, tt.want)
			}
		})
	}
}

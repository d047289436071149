package hammer_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/internal/hammer/hammer"
	"github.com/buzon-mail/buzon/internal/running"
)

// Two loads at once over the whole service: with -race, what make check runs, this is where the rooms meet under load.
func TestTwoLoadsAtOnce(t *testing.T) {
	demo := serve(t)
	const calls = 600
	type outcome struct {
		n   int64
		err error
	}
	results := make(chan outcome, 2)
	for range cap(results) {
		go func() {
			n, err := hammer.Run(t.Context(), hammer.Options{Demo: demo, Connections: 8, Calls: calls})
			results <- outcome{n, err}
		}()
	}
	for range cap(results) {
		if got := <-results; got.err != nil || got.n != calls {
			t.Errorf("%d calls of %d: %v", got.n, calls, got.err)
		}
	}
}

func TestRefusals(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "demo.json")
	empty := filepath.Join(t.TempDir(), "demo.json")
	if err := os.WriteFile(empty, []byte(`{"mcp_url":"http://127.0.0.1:1/mcp","users":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	silent := filepath.Join(t.TempDir(), "demo.json")
	text := `{"mcp_url":"http://127.0.0.1:1/mcp","users":[{"role":"owner","workspaces":["ws"],"access_token":"t"}]}`
	if err := os.WriteFile(silent, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]hammer.Options{
		"no demo.json":   {Demo: missing, Connections: 1, Calls: 1},
		"nobody":         {Demo: empty, Connections: 1, Calls: 1},
		"no connection":  {Demo: silent, Calls: 1},
		"nobody answers": {Demo: silent, Connections: 2, Calls: 5},
	} {
		if n, err := hammer.Run(t.Context(), o); err == nil || n != 0 {
			t.Errorf("%s: %d calls, error %v", name, n, err)
		}
	}
}

// serve runs the local process in this one and returns the path of its demo.json.
func serve(t *testing.T) string {
	dir := t.TempDir()
	ended := running.Serve(t, dir, map[string]string{"BUZON_RATE_PER_MINUTE": "0"})
	demo := filepath.Join(dir, "demo.json")
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(demo); err == nil {
			return demo
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the service ended: %v", err)
		case <-tick.C:
		}
	}
}

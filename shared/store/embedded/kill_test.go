package embedded_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/buzon-mail/buzon/shared/store"
	"github.com/buzon-mail/buzon/shared/store/embedded"
)

const killEnv = "STORE_TEST_KILL"

// TestMain turns the test binary into the process that TestKill kills.
func TestMain(m *testing.M) {
	if path := os.Getenv(killEnv); path != "" {
		if err := writeUntilKilled(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// writeUntilKilled writes pairs of rows from several goroutines and prints each sort key once its write was acknowledged.
func writeUntilKilled(path string) error {
	e, err := embedded.Open(path, embedded.Options{})
	if err != nil {
		return err
	}
	failed := make(chan error)
	var mu sync.Mutex
	for i := range 8 {
		go func() {
			for n := 0; ; n++ {
				sort := fmt.Sprintf("%d.%d", i, n)
				a, b := item(sort, strings.Repeat("x", n%5000)), item(sort, "")
				b.Key.Table = store.Ephemeral
				if err := e.Transact(context.Background(), store.Put(a, store.Absent()), store.Put(b, store.Absent())); err != nil {
					failed <- err
					return
				}
				mu.Lock()
				fmt.Println(sort)
				mu.Unlock()
			}
		}()
	}
	return <-failed
}

// Whatever was acknowledged before kill -9 is there afterwards, and no transaction is there by half.
func TestKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	acked := map[string]bool{}
	for round := range 3 {
		os.Remove(path) //nolint:errcheck // absent in the first round
		clear(acked)
		cmd := exec.Command(exe, "-test.run=^$") //nolint:gosec // this very binary
		cmd.Env = append(os.Environ(), killEnv+"="+path)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			acked[lines.Text()] = true
			if len(acked) == 200*(round+1) {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait() // it was killed
		if len(acked) < 200*(round+1) {
			t.Fatalf("only %d writes", len(acked))
		}
		checkAcked(t, path, acked)
	}
}

func checkAcked(t *testing.T, path string, acked map[string]bool) {
	t.Helper()
	e := open(t, path, embedded.Options{})
	defer e.Close() //nolint:errcheck // open closes too and reports
	for sort := range acked {
		if _, err := e.Get(t.Context(), key(sort)); err != nil {
			t.Errorf("acknowledged %s: %v", sort, err)
		}
	}
	if a, b := count(t, e, store.Core, "p"), count(t, e, store.Ephemeral, "p"); a != b {
		t.Errorf("%d rows in core, %d in ephemeral: a transaction is there by half", a, b)
	}
}

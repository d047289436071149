package scenario

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/app/api"
	"github.com/buzon-mail/buzon/shared/app/local"
	"github.com/buzon-mail/buzon/shared/config"
)

// lazily is the emulated api function with a temporary folder of its own.
type lazily struct {
	t        *testing.T
	function *api.Function
	temp     string
	log      lockedLog
}

func newLazily(t *testing.T) *lazily {
	t.Helper()
	l := &lazily{t: t, temp: t.TempDir()}
	t.Setenv("TMPDIR", l.temp)
	var err error
	if l.function, err = api.New(&config.API{Emulated: true, Rates: config.Rates{PerMinute: 600}}, &l.log, "test"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.function.Close(); err != nil {
			t.Error(err)
		}
		l.folders(0)
	})
	return l
}

// lockedLog is a log that many requests write.
type lockedLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// ask sends an event file and returns the reply.
func (l *lazily) ask(name string) string {
	l.t.Helper()
	text, err := os.ReadFile("../../events/function-url-" + name + ".json")
	if err != nil {
		l.t.Fatal(err)
	}
	event, err := local.FillEvent(l.t.Context(), text, time.Now)
	if err != nil {
		l.t.Fatal(err)
	}
	return l.send(event)
}

func (l *lazily) send(event []byte) string {
	reply, err := l.function.Invoke(l.t.Context(), event)
	if err != nil {
		return err.Error()
	}
	return string(reply)
}

func (l *lazily) folders(want int) {
	l.t.Helper()
	got, err := os.ReadDir(l.temp)
	if err != nil || len(got) != want {
		l.t.Errorf("%d folders, want %d: %v", len(got), want, err)
	}
}

// TestEmulationOpensItsStoreLate: a start, and what needs no row, opens no store; the first calls that need one, at once, open one.
func TestEmulationOpensItsStoreLate(t *testing.T) {
	l := newLazily(t)
	l.folders(0)
	for _, name := range []string{"resource-metadata", "options", "unauthenticated"} {
		l.ask(name)
	}
	text, err := os.ReadFile("../../events/function-url-resource-metadata.json")
	if err != nil {
		t.Fatal(err)
	}
	health := bytes.ReplaceAll(text, []byte("/.well-known/oauth-protected-resource/mcp"), []byte("/healthz"))
	if got := l.send(health); !strings.Contains(got, `{\"status\":\"ok\"}`) {
		t.Errorf("health: %s", got)
	}
	l.folders(0)
	var all sync.WaitGroup
	for i := range 20 {
		name := []string{"rest-emails-list", "tools-call-2026"}[i%2]
		all.Go(func() {
			if got := l.ask(name); !strings.Contains(got, `"statusCode":200`) || !strings.Contains(got, "email_01KDT0000000000000000MA10") {
				t.Errorf("%s: %.300s", name, got)
			}
		})
	}
	all.Wait()
	l.folders(1)
}

// TestEmulationWithoutFolder: the caller is told what to do, the log why, and the request after it is mended is served.
func TestEmulationWithoutFolder(t *testing.T) {
	l := newLazily(t)
	t.Setenv("TMPDIR", filepath.Join(l.temp, "absent-canary"))
	for _, name := range []string{"rest-emails-list", "tools-call-2026", "tools-call-2025"} {
		got := l.ask(name)
		if !strings.Contains(got, `"statusCode":503`) || !strings.Contains(got, "TMPDIR") || strings.Contains(got, "canary") {
			t.Errorf("%s: %s", name, got)
		}
	}
	if log := l.log.String(); strings.Count(log, "make the temporary folder") != 3 {
		t.Errorf("log: %s", log)
	}
	t.Setenv("TMPDIR", l.temp)
	if got := l.ask("tools-call-2026"); !strings.Contains(got, `"statusCode":200`) {
		t.Errorf("once it is mended: %.300s", got)
	}
}

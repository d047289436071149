package local_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/app/local"
	"github.com/buzon-mail/buzon/shared/config"
)

// home is a data folder with its environment. Socket paths are short (108 bytes), so it lies right under the temporary folder.
type home struct {
	dir string
	env map[string]string
}

func newHome(t *testing.T) home {
	t.Helper()
	dir, err := os.MkdirTemp("", "bz")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return home{dir, map[string]string{
		"BUZON_HTTP_ADDR": "127.0.0.1:0", "BUZON_SMTP_ADDR": "127.0.0.1:0", "BUZON_DATA_DIR": dir,
	}}
}

// buzon runs the command line.
func (h home) buzon(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = local.Main(ctx, local.Process{
		Args: args, Getenv: func(name string) string { return h.env[name] }, Stdout: &out, Stderr: &errs,
	})
	return code, out.String(), errs.String()
}

// serve runs the service until the test ends and returns once its socket answers.
func (h home) serve(t *testing.T) {
	t.Helper()
	cfg, err := config.LoadLocal(func(name string) string { return h.env[name] })
	if err != nil {
		t.Fatal(err)
	}
	service, err := local.New(cfg, local.Options{Log: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- service.Run(ctx, io.Discard) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the service ended: %v", err)
		}
	})
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if c, err := net.Dial("unix", filepath.Join(h.dir, "admin.sock")); err == nil {
			_ = c.Close()
			return
		}
	}
	t.Fatal("no admin socket after a minute")
}

func TestVerbsThroughTheRunningServiceAndWithout(t *testing.T) {
	for _, running := range []bool{false, true} {
		name := map[bool]string{false: "store opened by the verb", true: "through the socket"}[running]
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			if running {
				h.serve(t)
			}
			code, out, errs := h.buzon(t.Context(), "org", "create", "mine", "--owner", "Me@Example.com")
			if code != 0 || !strings.Contains(out, `"slug": "mine"`) || !strings.Contains(out, `"me@example.com"`) {
				t.Fatalf("org create: %d %s%s", code, out, errs)
			}
			if code, out, errs := h.buzon(t.Context(), "domain", "add", "mine", "Müller.example"); code != 0 || !strings.Contains(out, "xn--mller-kva.example") {
				t.Errorf("domain add: %d %s%s", code, out, errs)
			}
			code, out, errs = h.buzon(t.Context(), "token", "me@example.com")
			if code != 0 || strings.Count(out, ".") != 2 || strings.Count(out, "\n") != 1 {
				t.Errorf("token: %d %q %s: want one JWT on one line", code, out, errs)
			}
		})
	}
}

func TestVerbsRefuse(t *testing.T) {
	h := newHome(t)
	if code, out, errs := h.buzon(t.Context(), "org", "create", "mine", "--owner", "me@example.com"); code != 0 {
		t.Fatal(code, out, errs)
	}
	cases := []struct {
		name string
		args []string
		code int
		says string
	}{
		{"slug that is taken", []string{"org", "create", "mine", "--owner", "you@example.com"}, 1, "an organization with this slug"},
		{"slug with capitals", []string{"org", "create", "Mine!", "--owner", "you@example.com"}, 1, "slug of the organization"},
		{"owner that is no address", []string{"org", "create", "other", "--owner", "you"}, 1, "not a person's e-mail address"},
		{"owner of another organization", []string{"org", "create", "third", "--owner", "me@example.com"}, 1, "member of an organization already"},
		{"what a refused owner left behind", []string{"domain", "add", "third", "third.example"}, 1, "no organization third"},
		{"no owner", []string{"org", "create", "fourth"}, 2, "--owner"},
		{"domain of nobody", []string{"domain", "add", "nobody", "example.com"}, 1, "no organization nobody"},
		{"domain that is an address", []string{"domain", "add", "mine", "127.0.0.1"}, 1, "not a mail domain"},
		{"token of a stranger", []string{"token", "stranger@example.com"}, 1, "has the address stranger@example.com"},
		{"token with a scope that is none", []string{"token", "me@example.com", "--scope", "emails:everything"}, 1, "no scope emails:everything"},
		{"token for too long", []string{"token", "me@example.com", "--ttl", "25h"}, 1, "at most 24h"},
		{"token for a foreign workspace", []string{"token", "me@example.com", "--workspace", "sales"}, 1, "no such workspace"},
		{"unknown verb", []string{"explode"}, 2, "explode"},
		{"event file that is missing", []string{"event", filepath.Join(h.dir, "none.json")}, 1, "read the event"},
		{"event file without an end", []string{"event", "/dev/zero"}, 1, "no event"},
		{"event file that is no JSON", []string{"event", "local_test.go"}, 1, "no event"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			code, out, errs := h.buzon(t.Context(), c.args...)
			if code != c.code || !strings.Contains(errs, c.says) || strings.Contains(out, "ey") {
				t.Errorf("got %d, stdout %q, stderr %q; want %d and %q", code, out, errs, c.code, c.says)
			}
		})
	}
}

func TestTokensAreForLoopbackOnly(t *testing.T) {
	h := newHome(t)
	h.env["BUZON_PUBLIC_URL"] = "https://mail.example.com"
	if code, _, errs := h.buzon(t.Context(), "org", "create", "mine", "--owner", "me@example.com"); code != 0 {
		t.Fatal(errs)
	}
	code, out, errs := h.buzon(t.Context(), "token", "me@example.com")
	if code != 1 || out != "" || !strings.Contains(errs, "loopback") {
		t.Errorf("got %d %q %q, want a refusal that speaks of loopback and no token", code, out, errs)
	}
}

func TestServeTwiceNamesTheFolder(t *testing.T) {
	h := newHome(t)
	h.serve(t)
	code, _, errs := h.buzon(t.Context(), "serve")
	if code != 1 || !strings.Contains(errs, h.dir) || !strings.Contains(errs, "BUZON_DATA_DIR") {
		t.Errorf("got %d %q, want a refusal that names the folder and the variable", code, errs)
	}
}

func TestBusyPortNamesItsVariable(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = busy.Close() })
	for _, variable := range []string{"BUZON_HTTP_ADDR", "BUZON_SMTP_ADDR"} {
		t.Run(variable, func(t *testing.T) {
			h := newHome(t)
			h.env[variable] = busy.Addr().String()
			code, _, errs := h.buzon(t.Context(), "serve")
			if code != 1 || !strings.Contains(errs, variable) {
				t.Errorf("got %d %q, want a refusal that names %s", code, errs, variable)
			}
		})
	}
}

func TestFoldersAndSecretsAreClosed(t *testing.T) {
	h := newHome(t)
	if err := os.Chmod(h.dir, 0o755); err != nil { //nolint:gosec // what the service has to mend
		t.Fatal(err)
	}
	h.serve(t)
	for name, mode := range map[string]os.FileMode{"": 0o700, "roots": 0o600, "permanent": 0o600, "keys.json": 0o600, "admin.sock": 0o600, "buzon.db": 0o600} {
		info, err := os.Stat(filepath.Join(h.dir, name))
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("%q: mode %v, error %v; want %v", name, info.Mode().Perm(), err, mode)
		}
	}
}

func TestBackupIsADataFolder(t *testing.T) {
	h := newHome(t)
	h.serve(t)
	if code, _, errs := h.buzon(t.Context(), "org", "create", "mine", "--owner", "me@example.com"); code != 0 {
		t.Fatal(errs)
	}
	file := filepath.Join(t.TempDir(), "backup.tar")
	if err := os.WriteFile(file+".partial", nil, 0o600); err != nil { // of a run that was killed
		t.Fatal(err)
	}
	if code, _, errs := h.buzon(t.Context(), "backup", file); code != 0 {
		t.Fatal(errs)
	}
	if left, _ := filepath.Glob(file + ".*.partial"); len(left) > 0 {
		t.Errorf("it leaves %v", left)
	}
	if code, _, errs := h.buzon(t.Context(), "backup", file); code != 1 || !strings.Contains(errs, "exists") {
		t.Errorf("a second backup to the same file: %d %q, want a refusal", code, errs)
	}
	second := newHome(t)
	unpack(t, file, second.dir)
	code, out, errs := second.buzon(t.Context(), "token", "me@example.com")
	if code != 0 || strings.Count(out, ".") != 2 {
		t.Errorf("the restored folder does not know its owner: %d %s", code, errs)
	}
	for _, name := range []string{"roots", "permanent", "keys.json"} {
		before, _ := os.ReadFile(filepath.Join(h.dir, name))
		after, err := os.ReadFile(filepath.Join(second.dir, name))
		if err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s differs after the restore: %v", name, err)
		}
	}
}

func unpack(t *testing.T, file, dir string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for archive := tar.NewReader(f); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.Clean("/"+header.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFillEvent(t *testing.T) {
	filled, err := local.FillEvent(t.Context(), []byte(`{"a":"Bearer {{token:owner@acme.test}}"}`), time.Now)
	var event struct{ A string }
	if err != nil || json.Unmarshal(filled, &event) != nil || !strings.HasPrefix(event.A, "Bearer ey") {
		t.Errorf("got %s, %v; want a token in place", filled, err)
	}
	for name, text := range map[string]string{
		"nobody of the demo": `{"a":"{{token:nobody@acme.test}}"}`, "another placeholder": `{"a":"{{secret:x}}"}`,
	} {
		t.Run(name, func(t *testing.T) {
			if out, err := local.FillEvent(t.Context(), []byte(text), time.Now); err == nil {
				t.Errorf("got %s, want an error that says what to write", out)
			}
		})
	}
}

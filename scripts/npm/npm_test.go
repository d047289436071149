package npm_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/scripts/npm"
)

// fakeNPM puts a program in npm's place that counts its runs and makes the folder that npm would make.
func fakeNPM(t *testing.T, exit string) (runs func() int) {
	t.Helper()
	bin := t.TempDir()
	count := filepath.Join(bin, "count")
	program := "#!/bin/sh\necho \"$@\" >> " + count + "\nmkdir -p node_modules\nexit " + exit + "\n"
	if err := os.WriteFile(filepath.Join(bin, "npm"), []byte(program), 0o700); err != nil { //nolint:gosec // it has to run
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	return func() int {
		raw, _ := os.ReadFile(count) //nolint:gosec // ours; absent before the first run
		if strings.Contains(string(raw), "--ignore-scripts") != (len(raw) > 0) {
			t.Error("scripts of packages may run")
		}
		return strings.Count(string(raw), "\n")
	}
}

func source(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{".npmrc": "", "package.json": "{}", "package-lock.json": "{}", "a.mjs": "1"} {
		put(t, dir, name, content)
	}
	return dir
}

func put(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestInstall: once for each lock file; a program that changed is copied without installing anything.
func TestInstall(t *testing.T) {
	runs := fakeNPM(t, "0")
	from, to := source(t), filepath.Join(t.TempDir(), "x")
	for i, want := range []int{1, 1, 1, 2} {
		switch i {
		case 2:
			put(t, from, "a.mjs", "2")
		case 3:
			put(t, from, "package-lock.json", "{ }")
		}
		if err := npm.Install(t.Context(), from, to); err != nil {
			t.Fatal(err)
		}
		if got := runs(); got != want {
			t.Errorf("step %d: npm ran %d times, want %d", i, got, want)
		}
	}
	if program, err := os.ReadFile(filepath.Join(to, "a.mjs")); err != nil || string(program) != "2" { //nolint:gosec // ours
		t.Errorf("program %q, %v", program, err)
	}
}

// TestInstallFails: what failed is tried again.
func TestInstallFails(t *testing.T) {
	runs := fakeNPM(t, "1")
	from, to := source(t), t.TempDir()
	for range 2 {
		if err := npm.Install(t.Context(), from, to); err == nil {
			t.Fatal("npm failed and nobody says so")
		}
	}
	if runs() != 2 {
		t.Errorf("npm ran %d times", runs())
	}
	if err := npm.Install(t.Context(), t.TempDir(), to); err == nil {
		t.Error("a folder without packages was installed")
	}
}

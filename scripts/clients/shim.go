package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// shim stands where a program expects the person's browser: it notes what was to be opened. The robot opens it.
type shim struct {
	folder string
	read   int // addresses taken
}

// newShim makes a home folder with the shim in it, under every name that a program on Linux looks for.
func newShim(parent string) (*shim, error) {
	folder, err := os.MkdirTemp(parent, "home")
	if err != nil {
		return nil, err
	}
	s := &shim{folder: folder}
	program := "#!/bin/sh\nprintf '%s\\n' \"$1\" >> '" + s.log() + "'\n"
	for _, name := range []string{"browser", "xdg-open", "sensible-browser", "x-www-browser"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(program), 0o700); err != nil { //nolint:gosec // it has to run
			return nil, err
		}
	}
	return s, os.WriteFile(s.log(), nil, 0o600)
}

func (s *shim) log() string { return filepath.Join(s.folder, "opened") }

// env is the environment of a program with this home and this browser, and no other settings of ours.
func (s *shim) env(more ...string) []string {
	return append([]string{
		"PATH=" + s.folder + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + s.folder, "BROWSER=" + filepath.Join(s.folder, "browser"),
		"XDG_CONFIG_HOME=" + filepath.Join(s.folder, "config"), "TMPDIR=" + s.folder, "NO_COLOR=1",
	}, more...)
}

// waiting is the addresses that were to be opened and not taken yet.
func (s *shim) waiting() ([]string, error) {
	text, err := os.ReadFile(s.log())
	if err != nil {
		return nil, err
	}
	whole := text[:strings.LastIndexByte(string(text), '\n')+1] // the last line may be half written
	return strings.Fields(string(whole))[s.read:], nil
}

// next waits for the next address. ended, when closed, says that the program is gone and nothing will come.
func (s *shim) next(ctx context.Context, ended <-chan struct{}) (string, error) {
	gone := false
	for {
		list, err := s.waiting()
		if err != nil {
			return "", err
		}
		if len(list) > 0 {
			s.read++
			return list[0], nil
		}
		if gone {
			return "", fmt.Errorf("the program ended and opened no browser")
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("no browser was opened: %w", ctx.Err())
		case <-ended:
			gone = true // look once more
		case <-time.After(20 * time.Millisecond):
		}
	}
}

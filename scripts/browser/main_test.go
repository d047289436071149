package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/buzon-mail/buzon/shared/safehttp"
)

// TestPins: versions are exact and no registry is named.
func TestPins(t *testing.T) {
	for _, file := range []string{"package.json", "package-lock.json", ".npmrc"} {
		raw, err := os.ReadFile(file) //nolint:gosec // of this folder
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(raw, []byte(`"resolved"`)) || regexp.MustCompile(`registry\s*=|https?://`).Match(raw) {
			t.Errorf("%s names a registry", file)
		}
		if file == "package.json" && regexp.MustCompile(`": "[\^~*]`).Match(raw) {
			t.Errorf("%s has a version that is not exact", file)
		}
	}
}

func TestPackagesOfASimulation(t *testing.T) {
	const plan = `NOTE: This is only a simulation!
Inst libogg0 (1.3.5-3 Debian:12.15/oldstable [amd64])
Inst libc6 [2.36-9] (2.36-10 Debian:12.15/oldstable, Debian-Security:12/oldstable-security [amd64]) []
Conf libogg0 (1.3.5-3 Debian:12.15/oldstable [amd64])
Remv other [1]
`
	if got, want := packages(plan), []string{"libogg0=1.3.5-3", "libc6=2.36-10"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := packages("chromium is already the newest version."); got != nil {
		t.Errorf("%q of nothing", got)
	}
}

// TestStarts: a program is a browser when it says so, whatever it is called.
func TestStarts(t *testing.T) {
	for _, c := range []struct {
		name, script string
		ok           bool
	}{
		{"chromium", `echo "Chromium 156.0.8078.114 built on Debian"`, true},
		{"chrome", `echo "Google Chrome 156.0.1.1"`, true},
		{"a stub that asks for a snap", `echo "Command '/usr/bin/chromium-browser' requires the chromium snap to be installed." >&2; exit 1`, false},
		{"another program", `echo "frobnicate 1.0"`, false},
		{"a library is missing", `echo "Chromium 1.0"; exit 127`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "browser")
			if err := os.WriteFile(program, []byte("#!/bin/sh\n"+c.script+"\n"), 0o700); err != nil { //nolint:gosec // it has to run
				t.Fatal(err)
			}
			if err := (chromium{program: program}).starts(t.Context()); (err == nil) != c.ok {
				t.Errorf("%v", err)
			}
		})
	}
	if err := (chromium{program: filepath.Join(t.TempDir(), "nothing")}).starts(t.Context()); err == nil {
		t.Error("a program that is not there starts")
	}
}

// TestPublisher: the stand-in answers the service's own client, checks and all.
func TestPublisher(t *testing.T) {
	p := newPublisher()
	defer p.Close()
	res, err := p.fetcher().Do(t.Context(), safehttp.Request{Method: http.MethodGet, URL: documentID, MaxBody: 8 << 10})
	if err != nil || res.Status != http.StatusOK || !bytes.Contains(res.Body, []byte(publisherCallback)) {
		t.Errorf("%+v, %v", res, err)
	}
	if _, err := p.fetcher().Do(t.Context(), safehttp.Request{Method: http.MethodGet, URL: "https://127.0.0.1/x", MaxBody: 1}); err == nil {
		t.Error("an address was asked")
	}
}

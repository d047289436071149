package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/scripts/conformance/fixture"
)

// entries are the lines of a baseline that name a scenario.
func entries(t *testing.T, file string) []string {
	t.Helper()
	raw, err := os.ReadFile(file) //nolint:gosec // of this folder
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, m := range regexp.MustCompile(`(?m)^\s*- (\S+)$`).FindAllSubmatch(raw, -1) {
		list = append(list, string(m[1]))
	}
	return list
}

// TestBaselines: six entries and no more, each under a comment with its reason; nothing at 2026-07-28.
func TestBaselines(t *testing.T) {
	want := []string{
		"tools-call-sampling:tools-call-sampling", "tools-call-elicitation:tools-call-elicitation",
		"elicitation-sep1034-defaults:elicitation-sep1034-general", "elicitation-sep1330-enums:elicitation-sep1330-general",
		"server-sse-multiple-streams:server-sse-multiple-streams-session", "server-sse-polling:server-sse-polling-session",
	}
	if got := entries(t, "baseline.yml"); !slices.Equal(got, want) {
		t.Errorf("baseline.yml allows %q, want %q", got, want)
	}
	raw, err := os.ReadFile("baseline.yml")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(raw), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "  - ") && !strings.HasPrefix(lines[i-1], "  # ") {
			t.Errorf("%s has no reason", line)
		}
	}
	if got := entries(t, "baseline-2026-07-28.yml"); len(got) != 0 {
		t.Errorf("2026-07-28 allows %q", got)
	}
	for _, r := range rounds() {
		if strings.Contains(r.name, "2026-07-28") && r.baseline != "baseline-2026-07-28.yml" {
			t.Errorf("%s runs with %s", r.name, r.baseline)
		}
	}
}

// TestPins: versions are exact and no registry is named.
func TestPins(t *testing.T) {
	for _, file := range []string{"package.json", "package-lock.json", ".npmrc"} {
		raw, err := os.ReadFile(file) //nolint:gosec // of this folder
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(raw, []byte(`"resolved"`)) || regexp.MustCompile(`registry\s*=|https?://[^"]*/-/`).Match(raw) {
			t.Errorf("%s names a registry", file)
		}
		if file == "package.json" && regexp.MustCompile(`": "[\^~*]`).Match(raw) {
			t.Errorf("%s has a version that is not exact", file)
		}
	}
}

func write(t *testing.T, dir, folder, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, folder), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, folder, "checks.json"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestReadChecks(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "server-ping-2026-11-30T14-00-00-000Z", `[{"id":"ping","status":"SUCCESS"},{"id":"wire","status":"INFO"}]`)
	write(t, dir, "server-sse-polling-2026-11-30T14-00-00-000Z", `[{"id":"x","status":"FAILURE","errorMessage":"why\nmore"},{"id":"y","status":"WARNING"}]`)
	write(t, dir, "server-sep-2640-skills-2026-11-30T14-00-00-000Z", `[{"id":"z","status":"FAILURE"},{"id":"z2","status":"SUCCESS"}]`)
	checks, ran, err := readChecks(dir)
	if err != nil || ran != 3 || len(checks) != 6 {
		t.Fatalf("%d checks of %d scenarios, %v", len(checks), ran, err)
	}
	var r result
	r.count(checks, ran)
	want := []string{"failure sse-polling:x why", "warning sse-polling:y "}
	if r.passed != 2 || r.failed != 1 || r.warned != 1 || r.extra != 1 || !slices.Equal(r.notes, want) {
		t.Errorf("%+v", r)
	}
	write(t, dir, "server-broken-2026-11-30T14-00-00-000Z", `{`)
	if _, _, err := readChecks(dir); err == nil {
		t.Error("results that are no JSON were read")
	}
	if _, _, err := readChecks(filepath.Join(dir, "nothing")); err == nil {
		t.Error("no results were read")
	}
}

// fakeSuite is a program in place of Node that leaves as many scenarios as it is told and ends as it is told.
func fakeSuite(t *testing.T, scenarios, exit string) installed {
	t.Helper()
	dir := t.TempDir()
	program := "#!/bin/sh\nfor i in $(seq " + scenarios + `); do mkdir -p "$6/server-s$i-2026-11-30T14-00-00-000Z"
echo '[{"id":"a","status":"SUCCESS"}]' > "$6/server-s$i-2026-11-30T14-00-00-000Z/checks.json"; done
echo "Unexpected failures (not in baseline): s1"; exit ` + exit
	node := filepath.Join(dir, "node")
	if err := os.WriteFile(node, []byte(program), 0o700); err != nil { //nolint:gosec // it has to run
		t.Fatal(err)
	}
	return installed{node: node, program: "-", results: filepath.Join(dir, "results"), source: "."}
}

// TestRun: the suite must say yes and must have run everything.
func TestRun(t *testing.T) {
	r := round{"x", []string{"--suite", "all"}, "baseline.yml", 3}
	for _, c := range []struct {
		name, scenarios, exit string
		ok                    bool
	}{
		{"all and green", "3", "0", true},
		{"all and red", "3", "1", false},
		{"too few and green", "2", "0", false},
		{"none and green", "0", "0", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := fakeSuite(t, c.scenarios, c.exit).run(t.Context(), r, fixture.NetHTTP, "http://127.0.0.1:1/mcp")
			if got.ok != c.ok || !c.ok && len(got.notes) == 0 {
				t.Errorf("%+v", got)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := fakeSuite(t, "3", "0").run(ctx, r, fixture.NetHTTP, ""); got.ok {
		t.Error("an interrupted run is green")
	}
}

func TestReport(t *testing.T) {
	good := result{round: "2026-07-28", door: fixture.NetHTTP, ok: true, passed: 153}
	bad := result{round: "2025-11-25", door: fixture.NetHTTP, failed: 1, notes: []string{"failure ping:ping no"}}
	var out bytes.Buffer
	if err := report(&out, []string{fixture.NetHTTP}, []result{good}, time.Second); err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), "153/0/0 ok") || !strings.HasSuffix(out.String(), "1 passed, 0 failed\n") {
		t.Error(out.String())
	}
	out.Reset()
	if err := report(&out, []string{fixture.NetHTTP}, []result{good, bad}, time.Second); !errors.Is(err, errFailed) {
		t.Errorf("%v", err)
	}
	if !strings.Contains(out.String(), "failure ping:ping no") || !strings.HasSuffix(out.String(), "1 passed, 1 failed\n") {
		t.Error(out.String())
	}
	if err := report(&out, nil, nil, time.Second); !errors.Is(err, errFailed) {
		t.Error("nothing ran, and that is green")
	}
}

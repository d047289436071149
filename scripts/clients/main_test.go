package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestReadPlan(t *testing.T) {
	for name, c := range map[string]struct {
		raw string
		ok  bool
	}{
		"whole":     {`{"url":"http://127.0.0.1:1/mcp","tool":{"name":"a"}}`, true},
		"empty":     {``, false},
		"no url":    {`{"tool":{"name":"a"}}`, false},
		"no tool":   {`{"url":"http://127.0.0.1:1/mcp"}`, false},
		"ill-typed": {`{"url":1,"tool":{"name":"a"}}`, false},
	} {
		if _, err := readPlan([]byte(c.raw)); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestClientsAskForEveryEra: the official clients cover both eras, and a mode is never without the revision it must end in.
func TestClientsAskForEveryEra(t *testing.T) {
	versions := map[string]int{}
	for _, c := range clients(".tools/clients") {
		versions[c.version]++
		if (c.version == modern) != slices.Contains([]string{"auto", "pin", "modern"}, c.mode) {
			t.Errorf("%s: mode %s must not end in %s", c.name, c.mode, c.version)
		}
	}
	for _, v := range []string{modern, legacy, "2025-06-18", "2025-03-26", "2024-11-05"} {
		if versions[v] == 0 {
			t.Errorf("no client negotiates %s", v)
		}
	}
}

// TestPins: every version is exact.
func TestPins(t *testing.T) {
	raw, err := os.ReadFile("js/package.json")
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(string(raw), "^~*") {
		t.Error("js/package.json has a range")
	}
	if raw, err = os.ReadFile("js/package-lock.json"); err != nil || strings.Contains(string(raw), `"resolved"`) {
		t.Errorf("js/package-lock.json names a registry, or %v", err)
	}
	if raw, err = os.ReadFile("python/requirements.txt"); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if strings.Count(line, "==") != 1 || strings.ContainsAny(line, "@*<>~ ") {
			t.Errorf("requirements.txt: %q", line)
		}
	}
}

// TestConverse: an exit code of 0 is not enough; the revision and the steps must be those of the plan.
func TestConverse(t *testing.T) {
	plan := Plan{URL: "http://127.0.0.1:1/mcp", Tool: Call{Name: "a"}, Resource: "r", Legacy: &Call{Name: "a"}}
	for name, c := range map[string]struct {
		script, version string
		ok              bool
	}{
		"modern":                  {`echo '{"version":"2026-07-28","steps":["list","call","read"]}'`, modern, true},
		"legacy":                  {`echo '{"version":"2025-11-25","steps":["list","call","read","refused"]}'`, legacy, true},
		"fell back":               {`echo '{"version":"2025-11-25","steps":["list","call","read"]}'`, modern, false},
		"left a step out":         {`echo '{"version":"2026-07-28","steps":["list","call"]}'`, modern, false},
		"failed":                  {`echo '{"version":"2026-07-28","steps":["list","call","read"]}'; exit 1`, modern, false},
		"said nothing":            {`true`, modern, false},
		"did not get its plan":    {`echo "$MCP_PLAN" | grep -q nothing-like-it && echo '{}'`, modern, false},
		"got its plan and mode":   {`echo "$MCP_PLAN$MCP_MODE" | grep -q '"version":"2026-07-28".*mode' && echo '{"version":"2026-07-28","steps":["","",""]}'`, modern, true},
		"could not be run at all": {``, modern, false},
	} {
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "client")
			if c.script != "" {
				if err := os.WriteFile(program, []byte("#!/bin/sh\n"+c.script+"\n"), 0o700); err != nil { //nolint:gosec // it has to run
					t.Fatal(err)
				}
			}
			var out bytes.Buffer
			good, bad := converse(t.Context(), []client{{"x", "mode", c.version, []string{program}}}, "", []target{{"here", same(plan)}}, &out)
			if good+bad != 1 || (good == 1) != c.ok {
				t.Errorf("%d good, %d bad: %s", good, bad, out.String())
			}
		})
	}
	plan.Token = "secret"
	for script, ok := range map[string]bool{
		`echo '{"version":"2026-07-28","steps":["","",""]}'`:                                      false,
		`echo "$MCP_PLAN" | grep -q secret && echo '{"version":"2026-07-28","steps":["","",""]}'`: true,
	} {
		program := filepath.Join(t.TempDir(), "client")
		if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil { //nolint:gosec // it has to run
			t.Fatal(err)
		}
		good, bad := converse(t.Context(), []client{{"x", "auto", modern, []string{program}}}, "", []target{{"here", same(plan)}}, new(bytes.Buffer))
		if good+bad != 1 || (good == 1) != ok {
			t.Errorf("with a token, %s: %d good, %d bad", script, good, bad)
		}
	}
	var out bytes.Buffer
	for _, c := range []struct{ good, bad int }{{0, 0}, {0, 1}, {5, 1}} {
		if err := verdict(c.good, c.bad, &out); !errors.Is(err, errFailed) {
			t.Errorf("%+v is green", c)
		}
	}
	if err := verdict(1, 0, &out); err != nil {
		t.Error(err)
	}
}

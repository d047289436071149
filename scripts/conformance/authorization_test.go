package main

import (
	"slices"
	"strings"
	"testing"
)

// TestUnexpected: nothing fails, warns or is skipped unless the list says so, and what the list says does fail.
func TestUnexpected(t *testing.T) {
	pass, fail := check{ID: "a", Status: "SUCCESS", scenario: "s"}, check{ID: "b", Status: "FAILURE", ErrorMessage: "why\nmore", scenario: "s"}
	for _, c := range []struct {
		name    string
		checks  []check
		allowed []string
		want    []string
	}{
		{"all passed", []check{pass, {ID: "i", Status: "INFO", scenario: "s"}}, nil, nil},
		{"a failure", []check{pass, fail}, nil, []string{"s:b is FAILURE and not in the list: why"}},
		{"a warning", []check{{ID: "w", Status: "WARNING", scenario: "s"}}, nil, []string{"s:w is WARNING and not in the list: "}},
		{"skipped", []check{{ID: "k", Status: "SKIPPED", scenario: "s"}}, nil, []string{"s:k is SKIPPED and not in the list: "}},
		{"an allowed failure", []check{pass, fail}, []string{"s:b"}, nil},
		{"one allowed, two happened", []check{fail, fail}, []string{"s:b"}, []string{"s:b is FAILURE and not in the list: why"}},
		{"an allowed failure that passed", []check{pass}, []string{"s:a"}, []string{"s:a is in the list of failures and did not fail"}},
		{"an entry that names nothing", nil, []string{"s:z"}, []string{"s:z is in the list of failures and did not fail"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := unexpected(c.checks, c.allowed); !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestAuthorizationAllowsNothing: no revision has an expected failure, and each wants its checks.
func TestAuthorizationAllowsNothing(t *testing.T) {
	for _, r := range authorizationRounds() {
		if len(r.allowed) != 0 || r.checks < authorizationScenarios {
			t.Errorf("%+v", r)
		}
	}
}

func TestScenarioOf(t *testing.T) {
	for folder, want := range map[string]string{
		"server-ping-2026-11-30T14-00-00-000Z":                                                 "ping",
		"authorization-server-authorization-code-grant-2026-11-30T14-00-00-000Z":               "authorization-code-grant",
		"authorization-server-authorization-server-metadata-endpoint-2026-11-30T14-00-00-000Z": "authorization-server-metadata-endpoint",
	} {
		if got := scenarioOf(folder); got != want || strings.Contains(got, "2026") {
			t.Errorf("%s: %s, want %s", folder, got, want)
		}
	}
}

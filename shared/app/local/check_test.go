package local_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/mcpcheck"
)

// demo is demo.json, as far as a check needs it.
type demo struct {
	MCPURL string `json:"mcp_url"`
	Issuer string `json:"issuer"`
	Users  []struct {
		AccessToken string `json:"access_token"`
	} `json:"users"`
}

// serveDemo runs the service with the sample world and returns once that is there.
func serveDemo(t *testing.T) (home, demo) {
	t.Helper()
	h := newHome(t)
	h.env["BUZON_DEMO"] = "1"
	h.serve(t)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		var d demo
		if text, err := os.ReadFile(filepath.Join(h.dir, "demo.json")); err == nil && json.Unmarshal(text, &d) == nil {
			return h, d
		}
	}
	t.Fatal("no demo.json after a minute")
	return h, demo{}
}

// unmet is what this build is known to fail: nothing, once its authorization server describes itself.
func unmet(t *testing.T, issuer string) []string {
	t.Helper()
	r, err := http.Get(issuer + "/.well-known/oauth-authorization-server") //nolint:noctx // loopback, in a test
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Body.Close()
	if r.StatusCode == http.StatusNotFound {
		return []string{"authorization-server"}
	}
	return nil
}

// TestCheckOurOwnServer: nothing fails and nothing is warned of, with a token and without.
func TestCheckOurOwnServer(t *testing.T) {
	h, d := serveDemo(t)
	expected := unmet(t, d.Issuer)
	for name, token := range map[string]string{"with a token": d.Users[0].AccessToken, "without": ""} {
		t.Run(name, func(t *testing.T) {
			h.env["BUZON_CHECK_TOKEN"] = token
			code, out, errs := h.buzon(t.Context(), "check", d.MCPURL, "--json", "--call", "session_get")
			var report mcpcheck.Report
			if err := json.Unmarshal([]byte(out), &report); err != nil {
				t.Fatalf("%v: %d %s%s", err, code, out, errs)
			}
			var failed []string
			for _, n := range report.Results {
				if n.Status == mcpcheck.Fail || n.Status == mcpcheck.Warn {
					failed = append(failed, n.ID)
				}
				if token != "" && n.Status == mcpcheck.Skipped && n.ID != "address-pinning" && expected == nil {
					t.Errorf("%s was skipped: %s", n.ID, n.Got)
				}
			}
			if !slices.Equal(failed, expected) || (code == 0) != (expected == nil) {
				t.Errorf("exit code %d, not passed: %v, want %v", code, failed, expected)
			}
			if token != "" && strings.Contains(out+errs, token) {
				t.Error("the token was printed")
			}
		})
	}
}

func TestCheckExitCodes(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := fmt.Sprintf("http://%s/mcp", closed.Addr())
	_ = closed.Close()
	h := newHome(t)
	for _, c := range []struct {
		name string
		args []string
		says string
	}{
		{"nobody answers", []string{"check", nobody}, "does not answer"},
		{"plain http", []string{"check", "http://example.com/mcp"}, "plain http"},
		{"no address", []string{"check", "example.com"}, "whole address"},
		{"a token that is none", []string{"check", nobody, "--token", "to ken"}, "no header may carry"},
		{"no argument", []string{"check"}, "<url>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out, errs := h.buzon(t.Context(), c.args...)
			if code != 2 || !strings.Contains(errs, c.says) || strings.Contains(out, "passed") {
				t.Errorf("got %d %q %q, want 2 and %q", code, out, errs, c.says)
			}
		})
	}
}

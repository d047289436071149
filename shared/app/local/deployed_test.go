package local

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/oauth"
	"github.com/buzon-mail/buzon/shared/seal"
)

// shell runs one command line.
func shell(env map[string]string, args ...string) (code int, out, complaint string) {
	var stdout, stderr bytes.Buffer
	code = Main(context.Background(), Process{
		Args: args, Getenv: func(name string) string { return env[name] }, Stdout: &stdout, Stderr: &stderr,
	})
	return code, stdout.String(), stderr.String()
}

// A new secret is what the deployed function reads.
func TestNewSecrets(t *testing.T) {
	seen := map[string]bool{}
	for range 2 {
		code, roots, complaint := shell(nil, "secret", "new", "roots")
		list, err := seal.ParseRoots(roots)
		if code != 0 || err != nil || len(list) != 1 || len(list[0].Secret) != 32 || seen[roots] {
			t.Errorf("roots: %d %v %s", code, err, complaint)
		}
		seen[roots] = true
	}
	code, keys, complaint := shell(nil, "secret", "new", "keys")
	if _, err := oauth.ParseKeySet([]byte(strings.TrimSpace(keys))); code != 0 || err != nil {
		t.Errorf("keys: %d %v %s", code, err, complaint)
	}
	if code, _, _ := shell(nil, "secret", "new", "password"); code != 2 {
		t.Errorf("an unknown secret: code %d", code)
	}
}

// Verbs on AWS need tables, a region and credentials, and say which is missing; what needs the local service is refused.
func TestVerbsOnAWSRefuse(t *testing.T) {
	tables := map[string]string{"BUZON_STORE": "dynamo", "BUZON_CORE_TABLE": "core", "BUZON_EPHEMERAL_TABLE": "ephemeral"}
	with := func(more ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(more); i += 2 {
			m[more[i]] = more[i+1]
		}
		for k, v := range tables {
			m[k] = v
		}
		return m
	}
	tests := []struct {
		name string
		env  map[string]string
		args []string
		says string
	}{
		{"no tables", map[string]string{"BUZON_STORE": "dynamo"}, []string{"domain", "add", "acme", "acme.test"}, "BUZON_CORE_TABLE"},
		{"no region", tables, []string{"domain", "add", "acme", "acme.test"}, "AWS_REGION"},
		{"no credentials", with("AWS_REGION", "eu-west-1"), []string{"domain", "add", "acme", "acme.test"}, "AWS_ACCESS_KEY_ID"},
		{"a token", with("AWS_REGION", "eu-west-1"), []string{"token", "owner@acme.test"}, "local service"},
		{"a link without tables", map[string]string{"BUZON_STORE": "dynamo"}, []string{"user", "link", "owner@acme.test"}, "BUZON_CORE_TABLE"},
		{"a backup", with("AWS_REGION", "eu-west-1"), []string{"backup", t.TempDir() + "/x.tar"}, "local service"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, out, complaint := shell(tt.env, tt.args...)
			if code != 1 || out != "" || !strings.Contains(complaint, tt.says) {
				t.Errorf("code %d, %q, %q: want %q", code, out, complaint, tt.says)
			}
		})
	}
}

package local

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/app/deployed"
	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/demo"
	"github.com/buzon-mail/buzon/shared/oauth"
	"github.com/buzon-mail/buzon/shared/seal"
	"github.com/buzon-mail/buzon/shared/testkit/standin"
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

// account is a deployed service on stand-ins, and its command line.
type account struct {
	t   *testing.T
	aws *standin.AWS
	now time.Time
	p   *Process
}

func newAccount(t *testing.T) *account {
	t.Helper()
	a := &account{t: t, now: time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)}
	set, err := oauth.NewKeySet(rand.Reader, a.now)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := set.Secret()
	if err != nil {
		t.Fatal(err)
	}
	if a.aws, err = standin.New(t.Context(), a.clock, map[string]string{standin.KeySet: string(keys)}); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"BUZON_KEY_SET": standin.KeySet, "BUZON_PUBLIC_URL": "https://mail.example.com"}
	a.p = &Process{Getenv: func(name string) string { return env[name] }}
	store, err := a.deployed().Store()
	if err != nil {
		t.Fatal(err)
	}
	if err := demo.Seed(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *account) clock() time.Time { return a.now }

func (a *account) deployed() deployed.Account {
	return deployed.Account{AWS: a.aws.Config(), Names: a.aws.Names(), Clock: a.clock}
}

func (a *account) do(verb string, in any, out any) error {
	a.t.Helper()
	var reply bytes.Buffer
	if err := a.p.onAccount(a.t.Context(), a.deployed(), verb, in, &reply); err != nil {
		return err
	}
	if err := json.Unmarshal(reply.Bytes(), out); err != nil {
		a.t.Fatalf("%s: %v", reply.String(), err)
	}
	return nil
}

// TestKeysRotateOnAWS: the next key signs, the secret keeps the rest, and two administrators at once do not undo each other.
func TestKeysRotateOnAWS(t *testing.T) {
	a := newAccount(t)
	old := a.aws.Secrets.Current(standin.KeySet)
	var reply RotateReply
	if err := a.do("keys-rotate", struct{}{}, &reply); !apperr.Is(err, apperr.Conflict) || a.aws.Secrets.Current(standin.KeySet) != old {
		t.Errorf("too soon: %v", err)
	}
	a.now = a.now.Add(11 * time.Minute)
	if err := a.do("keys-rotate", struct{}{}, &reply); err != nil || !reply.Rotated.Equal(a.now) || reply.Keys != 3 {
		t.Fatalf("%+v, %v", reply, err)
	}
	next := a.aws.Secrets.Current(standin.KeySet)
	if _, err := oauth.ParseKeySet([]byte(next)); err != nil || next == old {
		t.Errorf("the secret: %v, changed %t", err, next != old)
	}
	a.now = a.now.Add(2 * time.Hour)
	a.aws.Fault = once("PutSecretValue", func() { a.aws.Secrets.Set(standin.KeySet, old) })
	if err := a.do("keys-rotate", struct{}{}, &reply); !apperr.Is(err, apperr.Conflict) || a.aws.Secrets.Current(standin.KeySet) != old {
		t.Errorf("changed meanwhile: %v", err)
	}
	a.p = &Process{Getenv: func(string) string { return "" }}
	if err := a.do("keys-rotate", struct{}{}, &reply); err == nil || !strings.Contains(err.Error(), "BUZON_KEY_SET") {
		t.Errorf("without its name: %v", err)
	}
}

// once does something before the first request of an operation.
func once(operation string, do func()) standin.Fault {
	done := false
	return func(op string) (standin.Outcome, error) {
		if op == operation && !done {
			done = true
			do()
		}
		return standin.Outcome{}, nil
	}
}

func TestServiceAccountsOnAWS(t *testing.T) {
	a := newAccount(t)
	var made ServiceReply
	if err := a.do("service-create", ServiceRequest{Organization: "acme", Name: "nightly", Role: "viewer"}, &made); err != nil {
		t.Fatal(err)
	}
	if made.ID == "" || made.Secret == "" || made.Token != "https://mail.example.com/token" || made.Role != "viewer" {
		t.Errorf("made %+v", made)
	}
	var list []oauth.ServiceAccount
	if err := a.do("service-list", struct{ Organization string }{"acme"}, &list); err != nil || len(list) != 1 || list[0].ID != made.ID || !list[0].Revoked.IsZero() {
		t.Errorf("list %+v, %v", list, err)
	}
	if err := a.do("service-list", struct{ Organization string }{"globex"}, &list); err != nil || len(list) != 0 {
		t.Errorf("another's list %+v, %v", list, err)
	}
	var gone oauth.ServiceAccount
	if err := a.do("service-revoke", struct{ ID string }{made.ID}, &gone); err != nil || gone.Revoked.IsZero() {
		t.Errorf("revoked %+v, %v", gone, err)
	}
	for name, x := range map[string]struct {
		verb string
		in   any
	}{
		"unknown organization": {"service-create", ServiceRequest{Organization: "nobody", Name: "n", Role: "viewer"}},
		"unknown role":         {"service-create", ServiceRequest{Organization: "acme", Name: "n", Role: "king"}},
		"unknown account":      {"service-revoke", struct{ ID string }{"svc_nobody"}},
	} {
		if err := a.do(x.verb, x.in, &gone); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	a.p = &Process{Getenv: func(string) string { return "" }}
	if err := a.do("service-create", ServiceRequest{Organization: "acme", Name: "n", Role: "viewer"}, &made); err == nil || !strings.Contains(err.Error(), "BUZON_PUBLIC_URL") {
		t.Errorf("without the origin: %v", err)
	}
}

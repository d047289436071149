package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"reflect"
	"strings"
	"testing"
)

// env is an environment from pairs.
func env(pairs ...string) Getenv {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return m[name] }
}

// wantProblems checks that exactly these variables are named, each with something to do.
func wantProblems(t *testing.T, err error, variables ...string) Problems {
	t.Helper()
	var got []string
	p, _ := errors.AsType[Problems](err)
	for _, one := range p {
		got = append(got, one.Variable)
		if len(one.Message) < 20 || !strings.Contains(err.Error(), one.Variable+": "+one.Message) {
			t.Errorf("problem %+v says too little, or is not in %q", one, err)
		}
	}
	if !reflect.DeepEqual(got, variables) {
		t.Fatalf("problems of %q, want %q", got, variables)
	}
	return p
}

func TestLocalDefaults(t *testing.T) {
	c, err := LoadLocal(env())
	if err != nil {
		t.Fatal(err)
	}
	want := &Local{HTTPAddr: "127.0.0.1:8080", SMTPAddr: "127.0.0.1:2525", DataDir: ".buzon", SMTPDomain: "localhost", Rates: Rates{600, 60}, Waits: 10}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v, want %+v", c, want)
	}
}

func TestLocalAllSet(t *testing.T) {
	c, err := LoadLocal(env(varHTTPAddr, "[::1]:0", varSMTPAddr, "0.0.0.0:25", varDataDir, "/var/lib/buzon", varPublicURL, "http://LOCALHOST:80/",
		varDemo, "1", varRate, "0", varOutward, "5", varOrigins, "https://App.example, http://localhost:3000 https://app.example:443",
		varTLSCert, "c.pem", varTLSKey, "k.pem", varSMTPDomain, "MX.example.com", varPublicDiscover, "true", varStore, "embedded", varConcurrency, "200"))
	if err != nil {
		t.Fatal(err)
	}
	want := &Local{
		HTTPAddr: "[::1]:0", SMTPAddr: "0.0.0.0:25", DataDir: "/var/lib/buzon", PublicURL: "http://localhost", Demo: true, Rates: Rates{0, 5}, Waits: 20,
		AllowedOrigins: []string{"https://app.example", "http://localhost:3000"}, SMTPTLSCert: "c.pem", SMTPTLSKey: "k.pem",
		SMTPDomain: "mx.example.com", PublicDiscover: true,
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v\nwant %+v", c, want)
	}
}

func TestLocalRefuses(t *testing.T) {
	tests := []struct {
		name string
		env  Getenv
		want []string
	}{
		{"demo for the network", env(varDemo, "1", varHTTPAddr, "0.0.0.0:8080"), []string{varDemo}},
		{"demo on every address", env(varDemo, "1", varHTTPAddr, ":8080"), []string{varDemo}},
		{"demo with a public issuer", env(varDemo, "1", varPublicURL, "https://mail.example.com"), []string{varDemo}},
		{"no limit for the network", env(varRate, "0", varHTTPAddr, "192.0.2.1:80"), []string{varRate}},
		{"no outward limit for the network", env(varOutward, "0", varHTTPAddr, "[::]:80"), []string{varOutward}},
		{"negative rate", env(varRate, "-1"), []string{varRate}},
		{"rate as text", env(varRate, "many"), []string{varRate}},
		{"absurd rate", env(varRate, "99999999999999999999"), []string{varRate}},
		{"no port", env(varHTTPAddr, "127.0.0.1"), []string{varHTTPAddr}},
		{"port name", env(varHTTPAddr, "127.0.0.1:http"), []string{varHTTPAddr}},
		{"port over 65535", env(varSMTPAddr, "127.0.0.1:65536"), []string{varSMTPAddr}},
		{"flag that is a typo", env(varDemo, "yes"), []string{varDemo}},
		{"certificate without key", env(varTLSCert, "c.pem"), []string{varTLSKey}},
		{"key without certificate", env(varTLSKey, "k.pem"), []string{varTLSCert}},
		{"dynamo", env(varStore, "dynamo"), []string{varStore}},
		{"unknown store", env(varStore, "postgres"), []string{varStore}},
		{"greeting that is no name", env(varSMTPDomain, "mail example"), []string{varSMTPDomain}},
		{"on Lambda", env(varLambda, "on-demand"), []string{varLambda}},
		{"any origin", env(varOrigins, "*"), []string{varOrigins}},
		{"null origin", env(varOrigins, "https://a.example,null"), []string{varOrigins}},
		{"all at once", env(varHTTPAddr, "x", varDemo, "maybe", varRate, "-5", varPublicURL, "mail.example.com", varTLSKey, "k"),
			[]string{varPublicURL, varDemo, varHTTPAddr, varRate, varTLSCert}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := LoadLocal(tt.env)
			if c != nil {
				t.Error("a configuration was returned beside the problems")
			}
			wantProblems(t, err, tt.want...)
		})
	}
}

func TestPublicURL(t *testing.T) {
	canonical := map[string]string{
		"https://mail.example.com": "https://mail.example.com", "https://mail.example.com/": "https://mail.example.com",
		"HTTPS://Mail.Example.COM:443": "https://mail.example.com", "https://mail.example.com:8443": "https://mail.example.com:8443",
		"https://mail.example.com:08443": "https://mail.example.com:8443", "http://127.0.0.1:8080": "http://127.0.0.1:8080",
		"http://127.9.9.9": "http://127.9.9.9", "http://[::1]:8080": "http://[::1]:8080", "http://localhost:80": "http://localhost",
		"https://xn--correo-xwa.example": "https://xn--correo-xwa.example", "https://192.0.2.1": "https://192.0.2.1",
	}
	for v, want := range canonical {
		r := &reader{getenv: env(varPublicURL, v)}
		if got := r.publicURL(); got != want || r.err() != nil {
			t.Errorf("%s: got %q, %v, want %q", v, got, r.err(), want)
		}
		if again := (&reader{getenv: env(varPublicURL, want)}).publicURL(); again != want {
			t.Errorf("%s is not canonical: %q", want, again)
		}
	}
	for _, v := range []string{
		"mail.example.com", "//mail.example.com", "https://", "https:///x", "https:mail.example.com", "http://mail.example.com", "ftp://localhost", "javascript:alert(1)",
		"https://mail.example.com/mcp", "https://mail.example.com//", "https://mail.example.com?x=1", "https://mail.example.com?", "https://mail.example.com#",
		"https://mail.example.com#x", "https://user:hunter2@mail.example.com", "https://user@mail.example.com", "https://mail.example.com:", "https://mail.example.com:0",
		"https://mail.example.com:99999", "https://mail.example.com.", "https://-mail.example.com", "https://mail_x.example.com", "https://correo.españa", "https://a b",
		"https://[fe80::1%25eth0]", "https://mail..com", "http://localhost.evil.example", "http://127.0.0.1.evil.example", "https://\x00",
	} {
		r := &reader{getenv: env(varPublicURL, v)}
		if got := r.publicURL(); got != "" || r.err() == nil {
			t.Errorf("%q was accepted as %q", v, got)
			continue
		}
		wantProblems(t, r.err(), varPublicURL)
		if strings.Contains(r.err().Error(), "hunter2") {
			t.Errorf("the password is in %q", r.err())
		}
	}
}

func TestOriginFollowsThePort(t *testing.T) {
	at := func(port int) net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port} }
	if got := (&Local{}).Origin(at(49152)); got != "http://localhost:49152" {
		t.Errorf("got %q", got)
	}
	if got := (&Local{}).Origin(at(80)); got != "http://localhost" {
		t.Errorf("port 80: got %q, want the canonical form", got)
	}
	if got := (&Local{PublicURL: "https://mail.example.com"}).Origin(at(1)); got != "https://mail.example.com" {
		t.Errorf("configured: got %q", got)
	}
}

// underRIE are the variables that the Runtime Interface Emulator gives a bootstrap, as a run printed them.
func underRIE(more ...string) Getenv {
	return env(append([]string{
		"AWS_LAMBDA_RUNTIME_API", "127.0.0.1:38679", "AWS_LAMBDA_FUNCTION_NAME", "test_function", "AWS_LAMBDA_FUNCTION_VERSION", "$LATEST",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "3008", "AWS_LAMBDA_LOG_GROUP_NAME", "/aws/lambda/Functions", "AWS_LAMBDA_LOG_STREAM_NAME", "$LATEST",
		"AWS_LAMBDA_METADATA_API", "127.0.0.1:38679", "AWS_LAMBDA_METADATA_TOKEN", "59a91f57-8cb5-4a2d-9d83-51965d090fe7",
	}, more...)...)
}

// TestEmulationWins: whatever the template names in AWS is ignored, good or bad.
func TestEmulationWins(t *testing.T) {
	for _, switchOn := range []string{varEmulator, varSAMLocal} {
		c, err := LoadAPI(underRIE(switchOn, "true", varStore, "dynamo", varPublicURL, "not a url", varRootSecrets, "{}", varKeySet, "{}",
			"BUZON_CORE_TABLE", "core", varRate, "0", varPublicDiscover, "1"))
		if err != nil {
			t.Fatalf("%s: %v", switchOn, err)
		}
		want := &API{Emulated: true, Rates: Rates{0, 60}, Waits: 10, PublicDiscover: true}
		if !reflect.DeepEqual(c, want) {
			t.Errorf("%s: %+v, want %+v", switchOn, c, want)
		}
	}
}

// deployedNames are the variables of a deployed function.
func deployedNames() []string {
	return []string{
		varRootSecrets, "buzon/root", varKeySet, "arn:aws:secretsmanager:eu-west-1:123456789012:secret:buzon/keys-AbCdEf",
		varRegion, "eu-west-1", varKeyID, "ASIAEXAMPLE", varSecret, "key-secret",
		varCoreTable, "buzon-core", varEphemeralTable, "buzon-ephemeral", varBucket, "buzon-mail",
	}
}

func TestAPIRefuses(t *testing.T) {
	names := deployedNames()
	tests := []struct {
		name string
		env  Getenv
		want []string
	}{
		{"emulator on Lambda", env(varLambda, "on-demand", varEmulator, "1"), []string{varEmulator}},
		{"SAM's flag on Lambda", env(varLambda, "provisioned-concurrency", varSAMLocal, "true"), []string{varSAMLocal}},
		{"both and demo on Lambda", env(varLambda, "x", varSAMLocal, "1", varEmulator, "1", varDemo, "1"), []string{varEmulator, varSAMLocal, varDemo}},
		{"emulator by managed instances", underRIE(varLambda, "lambda-managed-instances", varEmulator, "1"), []string{varEmulator}},
		{"embedded on Lambda", env(append(names, varLambda, "on-demand", varStore, "embedded")...), []string{varStore}},
		{"embedded without emulation", env(append(names, varStore, "embedded")...), []string{varStore}},
		{"nothing", env(), []string{varRegion, varKeyID, varSecret, varCoreTable, varEphemeralTable, varBucket, varRootSecrets, varKeySet}},
		{"no limit on Lambda", env(append(names, varRate, "0", varLambda, "on-demand")...), []string{varRate}},
		{"emulator that is a typo", env(append(names, varEmulator, "on")...), []string{varEmulator}},
		{"invoke mode in lower case", env(append(names, varInvokeMode, "response_stream")...), []string{varInvokeMode}},
		{"URL with a path", env(append(names, varPublicURL, "https://h.example/live")...), []string{varPublicURL}},
		{"one table for both", env(append(names, varEphemeralTable, "buzon-core")...), []string{varEphemeralTable}},
		{"a table that is an address", env(append(names, varCoreTable, "dynamodb.eu-west-1.amazonaws.com/x")...), []string{varCoreTable}},
		{"a bucket that is a URL", env(append(names, varBucket, "s3://buzon-mail")...), []string{varBucket}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := LoadAPI(tt.env)
			if c != nil {
				t.Error("a configuration was returned beside the problems")
			}
			wantProblems(t, err, tt.want...)
		})
	}
}

// TestDeployed reads what the template and Lambda set, and prints none of the keys.
func TestDeployed(t *testing.T) {
	c, err := LoadAPI(env(append(deployedNames(), varLambda, "on-demand", varSession, "session-token")...))
	if streamed, err := LoadAPI(env(append(deployedNames(), varInvokeMode, "RESPONSE_STREAM")...)); err != nil || !streamed.Stream || c.Stream {
		t.Errorf("RESPONSE_STREAM: %+v, %v", streamed, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	want := AWS{
		Region: "eu-west-1", KeyID: "ASIAEXAMPLE", KeySecret: "key-secret", Session: "session-token",
		CoreTable: "buzon-core", EphemeralTable: "buzon-ephemeral", Bucket: "buzon-mail",
	}
	if c.AWS != want || c.Emulated {
		t.Errorf("config %+v", c)
	}
	if text := fmt.Sprintf("%v %+v %#v", c, c, c.AWS); strings.Contains(text, "key-secret") || strings.Contains(text, "session-token") {
		t.Errorf("the credentials are printed: %s", text)
	}
}

func second(_ *API, err error) error { return err }

// TestPastedSecret: the value of a secret where its name belongs is refused and never repeated.
func TestPastedSecret(t *testing.T) {
	err := second(LoadAPI(env(varRootSecrets, `{"version":1,"key":"canary"}`, varKeySet, strings.Repeat("canary", 100))))
	wantProblems(t, err, varRegion, varKeyID, varSecret, varCoreTable, varEphemeralTable, varBucket, varRootSecrets, varKeySet)
	if strings.Contains(err.Error(), "canary") {
		t.Errorf("the secret is in %q", err)
	}
}

func TestSecretNeverPrints(t *testing.T) {
	s := Secret("canary")
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "secret", s, "all", API{KeySet: s})
	asJSON, err := json.Marshal(map[string]any{"secret": s, "all": API{RootSecrets: s}})
	if err != nil {
		t.Fatal(err)
	}
	wrong := "%d"
	wrongVerb := fmt.Sprintf
	for _, out := range []string{
		fmt.Sprint(s), fmt.Sprintf("%s %v %+v %#v %q %x", s, s, s, s, s, s), wrongVerb(wrong, s), wrongVerb(wrong, []Secret{s}), s.String(), s.GoString(), fmt.Sprintf("%+v %#v", API{KeySet: s}, &API{KeySet: s}), string(asJSON), log.String(),
	} {
		if strings.Contains(out, "canary") || strings.Contains(out, fmt.Sprintf("%x", "canary")) {
			t.Errorf("printed %q", out)
		}
	}
	if s.Reveal() != "canary" {
		t.Error("Reveal does not reveal")
	}
}

func FuzzOrigin(f *testing.F) {
	for _, v := range []string{"https://mail.example.com", "http://localhost:8080/", "https://u:p@h", "https://[::1]:443", "HTTPS://X:443", "//h", "https://h?#"} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, v string) {
		r := &reader{getenv: env(varPublicURL, v)}
		got := r.publicURL()
		if (got == "") != (v == "" || r.err() != nil) {
			t.Fatalf("%q gives %q and %v", v, got, r.err())
		}
		if got == "" {
			return
		}
		if again := (&reader{getenv: env(varPublicURL, got)}).publicURL(); again != got || strings.ContainsAny(got[8:], "/?#@ \"") {
			t.Fatalf("%q gives %q, which gives %q", v, got, again)
		}
	})
}

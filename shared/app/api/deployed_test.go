package api

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/app/deployed"
	"github.com/buzon-mail/buzon/shared/app/web"
	"github.com/buzon-mail/buzon/shared/config"
	"github.com/buzon-mail/buzon/shared/lambdaedge"
	"github.com/buzon-mail/buzon/shared/oauth"
	"github.com/buzon-mail/buzon/shared/seal"
)

// vault holds secrets and counts how often they are read.
type vault struct {
	values map[config.Secret]string
	reads  int
}

func (v *vault) Secret(_ context.Context, name config.Secret) ([]byte, error) {
	v.reads++
	value, ok := v.values[name]
	if !ok {
		return nil, errors.New("no such secret")
	}
	return []byte(value), nil
}

const goodRoots = "r1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

func goodKeys(t *testing.T) string {
	t.Helper()
	set, err := oauth.NewKeySet(rand.Reader, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	text, err := set.Secret()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// newSite is a site whose handler answers with the origin that it was made for.
func newSite(cfg *config.API, v *vault, log *bytes.Buffer) (*site, *lambdaedge.Handler) {
	cfg.RootSecrets, cfg.KeySet = "roots", "keys"
	s := &site{
		cfg: cfg, secrets: v, log: slog.New(slog.NewJSONHandler(log, nil)), clock: time.Now, made: map[string]http.Handler{},
		make: func(o web.Options, _ *seal.Keyring, _ *oauth.KeyRing) (http.Handler, error) {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, o.Origin) }), nil
		},
	}
	return s, lambdaedge.New(s, lambdaedge.Options{Logger: s.log})
}

type httpReply struct {
	StatusCode int
	Headers    map[string]string
	Body       string
}

func call(t *testing.T, h *lambdaedge.Handler, change ...string) httpReply {
	t.Helper()
	event, err := os.ReadFile("../../../events/function-url-resource-metadata.json")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(change...).Replace(string(event))
	out, err := h.Invoke(t.Context(), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var r httpReply
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// The origin is the configured one, else the door's own, which no client can write; the secrets are read once.
func TestSiteOrigins(t *testing.T) {
	good := map[config.Secret]string{"roots": goodRoots, "keys": goodKeys(t)}
	v := &vault{values: good}
	_, h := newSite(&config.API{PublicURL: "https://mail.example.com"}, v, &bytes.Buffer{})
	for range 3 {
		if r := call(t, h); r.StatusCode != 200 || r.Body != "https://mail.example.com" {
			t.Errorf("configured: %+v", r)
		}
	}
	if v.reads != 2 {
		t.Errorf("%d readings of two secrets", v.reads)
	}
	v = &vault{values: good}
	_, h = newSite(&config.API{}, v, &bytes.Buffer{})
	first := call(t, h)
	if !strings.HasPrefix(first.Body, "https://") || !strings.Contains(first.Body, ".lambda-url.") {
		t.Errorf("the door's own: %+v", first)
	}
	for i := range 6 {
		r := call(t, h, ".lambda-url.", fmt.Sprintf("-%d.lambda-url.", i))
		if want := map[bool]int{true: 200, false: 503}[i < maxOrigins-1]; r.StatusCode != want {
			t.Errorf("origin %d: %d, want %d", i, r.StatusCode, want)
		}
	}
	if v.reads != 2 {
		t.Errorf("%d readings of two secrets", v.reads)
	}
}

// Until the secrets are there every request is a 503 that says nothing of why, and the next one tries again.
func TestSiteWithoutSecrets(t *testing.T) {
	keys := goodKeys(t)
	tests := map[string]map[config.Secret]string{
		"no roots":                   {"keys": keys},
		"no keys":                    {"roots": goodRoots},
		"roots as CloudFormation":    {"roots": strings.Repeat("canary", 10), "keys": keys},
		"keys as CloudFormation":     {"roots": goodRoots, "keys": strings.Repeat("canary", 10)},
		"roots that are too short":   {"roots": "r1:Y2FuYXJ5", "keys": keys},
		"the development keys' text": {"roots": goodRoots, "keys": "{}"},
	}
	for name, values := range tests {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			v := &vault{values: values}
			_, h := newSite(&config.API{PublicURL: "https://mail.example.com"}, v, &log)
			r := call(t, h)
			if r.StatusCode != 503 || r.Headers["Retry-After"] != "5" || !strings.Contains(r.Body, `"not_ready"`) {
				t.Errorf("reply %+v", r)
			}
			if strings.Contains(log.String()+r.Body, "canary") || strings.Contains(log.String(), "Y2FuYXJ5") {
				t.Errorf("the secret is out: %s", log.String())
			}
			if !strings.Contains(log.String(), "BUZON_") {
				t.Errorf("the log does not say which: %s", log.String())
			}
			v.values = map[config.Secret]string{"roots": goodRoots, "keys": keys}
			if r := call(t, h); r.StatusCode != 200 {
				t.Errorf("afterwards: %+v", r)
			}
		})
	}
}

// The real handler is made of what the configuration names, and asks AWS nothing for its metadata.
func TestSiteServesMetadata(t *testing.T) {
	t.Setenv("AWS_REGION", "eu-west-1")
	cfg := &config.API{
		PublicURL: "https://mail.example.com", AWS: config.AWS{TableCore: "core", TableEphemeral: "ephemeral", Bucket: "mail"},
		Rates: config.Rates{PerMinute: 600, OutwardPerMinute: 60},
	}
	f, err := New(t.Context(), cfg, &bytes.Buffer{}, "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	s, h := newSite(cfg, &vault{values: map[config.Secret]string{"roots": goodRoots, "keys": goodKeys(t)}}, &bytes.Buffer{})
	a, err := deployed.Here(os.Getenv, cfg.AWS)
	if err != nil {
		t.Fatal(err)
	}
	real, err := siteOf(cfg, a, s.log, "test")
	if err != nil {
		t.Fatal(err)
	}
	s.make = real.make
	if r := call(t, h); r.StatusCode != 200 || !strings.Contains(r.Body, `"resource":"https://mail.example.com/mcp"`) {
		t.Errorf("reply %+v", r)
	}
	t.Setenv("AWS_REGION", "")
	if _, err := New(t.Context(), cfg, &bytes.Buffer{}, "test"); err == nil || !strings.Contains(err.Error(), "AWS_REGION") {
		t.Errorf("without a region: %v", err)
	}
	t.Setenv("AWS_REGION", "eu-west-1")
	cfg.AWS = config.AWS{}
	if _, err := New(t.Context(), cfg, &bytes.Buffer{}, "test"); err == nil {
		t.Error("a function without names started")
	}
}

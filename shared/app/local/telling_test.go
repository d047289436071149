package local_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/smtp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/buzon-mail/buzon/shared/app/local"
	"github.com/buzon-mail/buzon/shared/config"
)

// listener is a receiver that verifies every request with the official library.
type listener struct {
	t   *testing.T
	url string

	mu     sync.Mutex
	secret string         // guarded by mu
	down   bool           // guarded by mu: it says 503
	types  map[string]int // guarded by mu: events by type, each webhook-id once
	ids    map[string]int // guarded by mu
}

func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		l.t.Error(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	wh, err := standardwebhooks.NewWebhook(l.secret)
	if err == nil {
		err = wh.Verify(body, r.Header)
	}
	if err != nil {
		l.t.Errorf("%v: %s", err, body)
	}
	id := r.Header.Get("Webhook-Id")
	l.ids[id]++
	if l.down {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	var event struct{ Type string }
	if err := json.Unmarshal(body, &event); err != nil {
		l.t.Error(err)
	}
	l.types[event.Type]++
}

func (l *listener) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

func (l *listener) await(types ...string) {
	l.t.Helper()
	var missing []string
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		l.mu.Lock()
		missing = slices.DeleteFunc(slices.Clone(types), func(t string) bool { return l.types[t] > 0 })
		l.mu.Unlock()
		if len(missing) == 0 {
			return
		}
	}
	l.t.Fatalf("not told of %v", missing)
}

// process is one run of the service over a data folder.
type process struct {
	t           *testing.T
	token       string
	api, smtpAt string
	stop        func()
}

// start runs the service with a clock that is ahead, and returns once the sample world is there.
func (h home) start(t *testing.T, ahead time.Duration) *process {
	t.Helper()
	_ = os.Remove(filepath.Join(h.dir, "demo.json")) // of the process before
	cfg, err := config.LoadLocal(func(name string) string { return h.env[name] })
	if err != nil {
		t.Fatal(err)
	}
	service, err := local.New(cfg, local.Options{Log: io.Discard, Clock: func() time.Time { return time.Now().Add(ahead) }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- service.Run(ctx, io.Discard) }()
	var once sync.Once
	p := &process{t: t, stop: func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("the service ended: %v", err)
			}
		})
	}}
	t.Cleanup(p.stop)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		var d struct {
			API   string `json:"api_url"`
			SMTP  string `json:"smtp_addr"`
			Users []struct {
				Email string
				Token string `json:"access_token"`
			}
		}
		if text, err := os.ReadFile(filepath.Join(h.dir, "demo.json")); err == nil && json.Unmarshal(text, &d) == nil {
			for _, u := range d.Users {
				if u.Email == "owner@acme.test" {
					p.token, p.api, p.smtpAt = u.Token, d.API, d.SMTP
					return p
				}
			}
		}
	}
	t.Fatal("no demo.json after a minute")
	return nil
}

func (p *process) call(method, path, body string, want int) map[string]any {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.api+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+p.token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", fmt.Sprint(method, path, len(body)))
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // read only
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != want {
		p.t.Fatalf("%s %s: %d %s %v", method, path, res.StatusCode, text, err)
	}
	var v struct{ Data map[string]any }
	_ = json.Unmarshal(text, &v) // a list has none
	return v.Data
}

func (p *process) mail(from, subject string) error {
	return smtp.SendMail(p.smtpAt, nil, from, []string{"facturas@acme.test"}, []byte("From: "+from+"\r\nTo: facturas@acme.test\r\nSubject: "+subject+"\r\n\r\nHello.\r\n"))
}

// TestReceiverThroughRestarts is what happens in a service as a receiver is told of it, with a restart while it is down.
func TestReceiverThroughRestarts(t *testing.T) {
	l := &listener{t: t, types: map[string]int{}, ids: map[string]int{}}
	server := httptest.NewServer(l)
	defer server.Close()
	l.url = strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	h := newHome(t)
	h.env["BUZON_DEMO"] = "1"
	p := h.start(t, 0)
	made := p.call("PUT", "/webhooks", `{"name":"all","url":"`+l.url+`/hook","events":["email.received","email.processed","email.quarantined","email.rejected","email.handled","allowed_senders.changed"]}`, 201)
	l.set(func() { l.secret = made["signing_secret"].(map[string]any)["secret"].(string) })
	if err := p.mail("ana@remote.test", "First"); err != nil {
		t.Fatal(err)
	}
	l.await("email.received", "email.processed")
	hook := made["id"].(string)
	p.call("POST", "/webhooks/"+hook+"/test", `{}`, 202)
	l.await("webhook.test")
	p.call("PUT", "/inboxes/facturas/allowed-senders", `{"kind":"address","value":"eve@remote.test","effect":"block"}`, 201)
	l.await("allowed_senders.changed")
	p.call("PUT", "/inboxes/facturas/sender-policy", `{"sender_policy":"listed","on_unlisted":"reject"}`, 200)
	if err := p.mail("stranger@remote.test", "Refused"); err == nil {
		t.Error("the stranger was not refused")
	}
	l.await("email.rejected")
	p.call("PUT", "/inboxes/facturas/sender-policy", `{"sender_policy":"listed","on_unlisted":"quarantine"}`, 200)

	l.set(func() { l.down = true })
	if err := p.mail("someone@remote.test", "While it is down"); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		detail := p.call("GET", "/webhooks/"+hook, "", 200)
		if n, _ := detail["consecutive_failures"].(float64); n >= 2 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it does not fail: %v", detail)
		}
	}
	p.stop()
	l.set(func() { l.down = false })
	p = h.start(t, time.Minute) // another process, past the first pause
	l.await("email.quarantined")
	detail := p.call("GET", "/webhooks/"+hook, "", 200)
	if detail["enabled"] != true {
		t.Errorf("webhook %v", detail)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	again := 0
	for _, n := range l.ids {
		if n > 1 {
			again++
		}
	}
	if again == 0 {
		t.Error("no delivery came again under its own webhook-id")
	}
}

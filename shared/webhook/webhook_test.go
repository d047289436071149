package webhook_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/queue"
	"github.com/buzon-mail/buzon/shared/safehttp"
)

// TestTold is the way of an event to a receiver that verifies with the official library.
func TestTold(t *testing.T) {
	w := newWorld(t)
	w.clock = time.Now() // the library's clock is the real one here
	r := w.receiver()
	h, key := w.hook(orgA, wsA, "orders", r.address(), inbox.EventJobFailed)
	e := w.emit(wsA)
	if failures := w.pump(); failures != nil {
		t.Fatal(failures)
	}
	all := r.all()
	if len(all) != 1 {
		t.Fatalf("%d requests", len(all))
	}
	wh, err := standardwebhooks.NewWebhook(key)
	w.must(err)
	if err := wh.Verify(all[0].body, all[0].header); err != nil {
		t.Error(err)
	}
	if err := verify(secret(w), all[0]); err == nil {
		t.Error("another secret verifies")
	}
	tampered := all[0]
	tampered.body = append(slices.Clone(tampered.body), ' ')
	if err := wh.Verify(tampered.body, tampered.header); err == nil {
		t.Error("another body verifies")
	}
	var body struct {
		Type, ID  string
		Timestamp time.Time
		Workspace string `json:"workspace_id"`
		API       string `json:"api_url"`
		Data      map[string]any
	}
	w.must(json.Unmarshal(all[0].body, &body))
	if body.Type != "job.failed" || body.ID != e.ID || body.Workspace != wsA || !body.Timestamp.Equal(e.At) ||
		body.API != "https://mail.test/api/v1/jobs/"+body.Data["job_id"].(string) {
		t.Errorf("body %s", all[0].body)
	}
	d := w.one(h)
	if d.Status != inbox.DeliverySucceeded || d.Attempt != 1 || d.HTTPStatus != 200 || !d.NextAt.IsZero() || all[0].header.Get("Webhook-Id") != d.ID ||
		all[0].header.Get("Content-Type") != "application/json" || len(d.Attempts) != 1 {
		t.Errorf("delivery %+v", d)
	}
	if ids, err := w.store.Pending(t.Context(), w.now().Add(time.Hour), 10); err != nil || len(ids) != 0 {
		t.Errorf("left in the outbox: %v, %v", ids, err)
	}
	if strings.Contains(w.log.String(), strings.TrimPrefix(key, "whsec_")) || strings.Contains(w.log.String(), "/hook") {
		t.Error("a secret or an address is in the log")
	}
}

// TestSchedule: each attempt and when it comes, with the clock moved to just before and to it.
func TestSchedule(t *testing.T) {
	w := newWorld(t)
	r := w.receiver()
	r.then(status(http.StatusInternalServerError))
	h, key := w.hook(orgA, wsA, "orders", r.address(), inbox.EventJobFailed)
	w.emit(wsA)
	w.pump()
	pauses := []time.Duration{
		5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 10 * time.Hour,
	}
	for i, pause := range pauses {
		if n := len(r.all()); n != i+1 {
			t.Fatalf("%d requests, want %d", n, i+1)
		}
		if d := w.one(h); d.Status != inbox.DeliveryFailed || !d.NextAt.Equal(w.now().Add(pause)) || d.Attempt != i+1 {
			t.Fatalf("after attempt %d: %s, attempt %d, next in %s, want %s", i+1, d.Status, d.Attempt, d.NextAt.Sub(w.now()), pause)
		}
		w.pass(pause - time.Millisecond)
		w.must(w.due.Run(t.Context()))
		w.pump()
		if n := len(r.all()); n != i+1 {
			t.Fatalf("attempt %d came early", i+2)
		}
		w.pass(time.Millisecond)
		if pause > queue.MaxDelay { // no message waits that long: the clock drives it, a little later
			w.pass(31 * time.Second)
		}
		w.must(w.due.Run(t.Context()))
		w.pump()
	}
	d := w.one(h)
	if n := len(r.all()); n != len(pauses)+1 || d.Status != inbox.DeliveryDead || d.Reason != inbox.DeadExhausted || !d.NextAt.IsZero() || len(d.Attempts) != n {
		t.Errorf("%d requests, %s (%s)", n, d.Status, d.Reason)
	}
	w.pass(48 * time.Hour)
	w.must(w.due.Run(t.Context()))
	w.pump()
	all := r.all()
	if len(all) != len(pauses)+1 {
		t.Error("it goes on after its last attempt")
	}
	stamps := map[string]bool{}
	for _, g := range all {
		if err := verify(key, g); err != nil || g.header.Get("Webhook-Id") != all[0].header.Get("Webhook-Id") || string(g.body) != string(all[0].body) {
			t.Errorf("an attempt differs from the first: %v", err)
		}
		stamps[g.header.Get("Webhook-Timestamp")] = true
	}
	if len(stamps) != len(all) {
		t.Error("attempts share a timestamp")
	}
}

// TestAnswers: what each status means, and that no redirect is followed.
func TestAnswers(t *testing.T) {
	for code, want := range map[int]inbox.DeliveryStatus{
		200: inbox.DeliverySucceeded, 202: inbox.DeliverySucceeded, 204: inbox.DeliverySucceeded,
		300: inbox.DeliveryFailed, 301: inbox.DeliveryFailed, 302: inbox.DeliveryFailed, 307: inbox.DeliveryFailed, 308: inbox.DeliveryFailed,
		400: inbox.DeliveryFailed, 401: inbox.DeliveryFailed, 404: inbox.DeliveryFailed, 429: inbox.DeliveryFailed,
		500: inbox.DeliveryFailed, 503: inbox.DeliveryFailed, 410: inbox.DeliveryDead,
	} {
		t.Run(strconv.Itoa(code), func(t *testing.T) {
			w := newWorld(t)
			elsewhere := w.receiver()
			r := w.receiver()
			r.then(func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Location", elsewhere.address())
				rw.WriteHeader(code)
			})
			h, _ := w.hook(orgA, wsA, "orders", r.address(), inbox.EventJobFailed)
			w.emit(wsA)
			w.pump()
			if d := w.one(h); d.Status != want || d.HTTPStatus != code {
				t.Errorf("%s after %d, want %s", d.Status, d.HTTPStatus, want)
			}
			if len(elsewhere.all()) > 0 {
				t.Error("a redirect was followed")
			}
			if on := w.read(h).Enabled; on != (code != 410) {
				t.Errorf("enabled: %t", on)
			}
		})
	}
}

// TestGone: 410 switches the webhook off, ends what waits for it and tells the others; a person may switch it on again.
func TestGone(t *testing.T) {
	w := newWorld(t)
	r, other := w.receiver(), w.receiver()
	h, _ := w.hook(orgA, wsA, "orders", r.address(), inbox.EventJobFailed, inbox.EventWebhookDisabled)
	w.hook(orgA, wsA, "watch", other.address(), inbox.EventWebhookDisabled)
	r.then(status(http.StatusServiceUnavailable))
	w.emit(wsA)
	w.pump()
	r.then(status(http.StatusGone))
	w.emit(wsA)
	w.pump()
	got := w.read(h)
	if got.Enabled || got.DisabledReason != inbox.DisabledGone || got.Version != h.Version {
		t.Errorf("webhook %+v", got)
	}
	if all := other.all(); len(all) != 1 || !strings.Contains(string(all[0].body), `"reason":"gone"`) || !strings.Contains(string(all[0].body), h.ID) {
		t.Errorf("the other was told %d times", len(all))
	}
	w.pass(time.Minute)
	w.pump()
	for _, d := range w.deliveries(wsA, h.ID) {
		if d.Status != inbox.DeliveryDead {
			t.Errorf("%s is %s", d.ID, d.Status)
		}
	}
	w.emit(wsA)
	w.pump()
	if n := len(r.all()); n != 2 {
		t.Errorf("%d requests to who is gone", n)
	}
	r.then(status(http.StatusOK))
	w.change(h, func(h *inbox.Webhook) { h.Enabled, h.DisabledReason = true, "" })
	w.emit(wsA)
	w.pump()
	if n := len(r.all()); n != 3 {
		t.Errorf("%d requests once it is on again", n)
	}
}

// TestFailingForDays: five days of nothing but failures switch it off, and one success starts the count anew.
func TestFailingForDays(t *testing.T) {
	const day = 24 * time.Hour
	w := newWorld(t)
	r := w.receiver()
	h, _ := w.hook(orgA, wsA, "orders", r.address(), inbox.EventJobFailed)
	fail := func(codes ...int) {
		t.Helper()
		for _, code := range codes {
			r.then(status(code))
			w.emit(wsA)
			w.pump()
		}
	}
	fail(500)
	w.pass(5*day - time.Second)
	if fail(500); !w.read(h).Enabled {
		t.Fatal("off before five days")
	}
	fail(200, 500) // one success between
	w.pass(2 * time.Second)
	if fail(500); !w.read(h).Enabled {
		t.Fatal("the success did not count")
	}
	w.pass(5 * day)
	fail(500)
	if got := w.read(h); got.Enabled || got.DisabledReason != inbox.DisabledFailing {
		t.Errorf("after five days: %+v", got)
	}
	w.change(h, func(h *inbox.Webhook) { h.Enabled = true })
	if fail(500); !w.read(h).Enabled {
		t.Error("switched on again, its past counts against it")
	}
}

// TestBodies: what a receiver answers is bounded and cleaned, and a body that never ends is no failure of who said 200.
func TestBodies(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string // start of the excerpt
		status inbox.DeliveryStatus
		err    string
	}{
		"short":   {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\r\n\x00\u202eevil")) }, "ok  evil", inbox.DeliverySucceeded, ""},
		"latin-1": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("caf\xe9 ok")) }, "caf ok", inbox.DeliverySucceeded, ""},
		"huge": {func(w http.ResponseWriter, _ *http.Request) {
			for range 256 {
				if _, err := w.Write([]byte(strings.Repeat("ä", 64<<10))); err != nil {
					return
				}
			}
		}, "äää", inbox.DeliverySucceeded, ""},
		"slow body": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte("begun"))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, "begun", inbox.DeliverySucceeded, ""},
		"no answer": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "", inbox.DeliveryFailed, inbox.AttemptNoAnswer},
		"broken off": {func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_ = c.Close()
			}
		}, "", inbox.DeliveryFailed, inbox.AttemptNoAnswer},
		"endless headers": {func(w http.ResponseWriter, _ *http.Request) {
			for i := range 4000 {
				w.Header().Set("X-"+strconv.Itoa(i), strings.Repeat("x", 100))
			}
		}, "", inbox.DeliveryFailed, inbox.AttemptNoAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.client = safehttp.New(safehttp.Options{Timeout: 300 * time.Millisecond, Loopback: true})
			w.restart()
			r := w.receiver()
			r.then(c.answer)
			h, _ := w.hook(orgA, wsA, "orders", r.address(), inbox.EventJobFailed)
			w.emit(wsA)
			w.pump()
			d := w.one(h)
			a := d.Attempts[0]
			if d.Status != c.status || a.Error != c.err || !strings.HasPrefix(a.Response, c.want) || len(a.Response) > inbox.MaxResponse {
				t.Errorf("%s, %q, %d bytes: %.40q", d.Status, a.Error, len(a.Response), a.Response)
			}
		})
	}
}

// script is a resolver that gives its answers in turn, the last one again and again.
type script struct {
	mu      sync.Mutex
	answers []string
}

func (s *script) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.answers[0]
	if len(s.answers) > 1 {
		s.answers = s.answers[1:]
	}
	return []netip.Addr{netip.MustParseAddr(a)}, nil
}

// TestPrivateAddressesAreNeverDialled: whatever a name leads to at each attempt, and also where it leads to a public address first.
func TestPrivateAddressesAreNeverDialled(t *testing.T) {
	for _, answers := range [][]string{
		{"169.254.169.254"}, {"10.0.0.1"}, {"127.0.0.1"}, {"::1"}, {"fd00:ec2::254"}, {"::ffff:192.168.0.1"}, {"0.0.0.0"}, {"100.64.0.1"},
		{"93.184.216.34", "169.254.169.254"}, {"93.184.216.34", "127.0.0.1"},
	} {
		t.Run(strings.Join(answers, " then "), func(t *testing.T) {
			w := newWorld(t)
			var dialled []string
			w.client = safehttp.New(safehttp.Options{
				Resolver: &script{answers: answers}, Timeout: time.Second,
				Dial: func(_ context.Context, _, addr string) (net.Conn, error) {
					dialled = append(dialled, addr)
					return nil, net.ErrClosed
				},
			})
			w.restart()
			h, _ := w.hook(orgA, wsA, "orders", "https://receiver.example/hook", inbox.EventJobFailed)
			w.emit(wsA)
			w.pump()
			w.pass(5 * time.Second)
			w.pump()
			if d := w.one(h); d.Status != inbox.DeliveryFailed || d.Attempt != 2 || d.Attempts[1].Error != inbox.AttemptNoAnswer {
				t.Errorf("%s after %d attempts", d.Status, d.Attempt)
			}
			want := []string{}
			if len(answers) > 1 {
				want = append(want, "93.184.216.34:443")
			}
			if !slices.Equal(dialled, want) && len(dialled)+len(want) > 0 {
				t.Errorf("dialled %v", dialled)
			}
		})
	}
	t.Run("loopback receivers are refused unless asked for", func(t *testing.T) {
		w := newWorld(t)
		w.client = safehttp.New(safehttp.Options{Timeout: time.Second})
		w.restart()
		r := w.receiver()
		h, _ := w.hook(orgA, wsA, "orders", r.address(), inbox.EventJobFailed)
		w.emit(wsA)
		w.pump()
		if d := w.one(h); d.Status != inbox.DeliveryFailed || len(r.all()) != 0 {
			t.Errorf("%s, %d requests", d.Status, len(r.all()))
		}
	})
}

// TestRotation: a receiver that knows either secret accepts while both sign, and only the new one's afterwards.
func TestRotation(t *testing.T) {
	w := newWorld(t)
	r := w.receiver()
	h, old := w.hook(orgA, wsA, "orders", r.address(), inbox.EventJobFailed)
	fresh := secret(w)
	until := w.now().Add(24 * time.Hour)
	w.change(h, func(x *inbox.Webhook) {
		x.Previous, x.PreviousUntil, x.Secret = x.Secret, until, w.seal(wsA, h.ID, fresh)
	})
	check := func(oldToo bool) {
		t.Helper()
		w.emit(wsA)
		w.pump()
		all := r.all()
		last := all[len(all)-1]
		if err := verify(fresh, last); err != nil {
			t.Errorf("the new secret: %v", err)
		}
		if err := verify(old, last); (err == nil) != oldToo {
			t.Errorf("the old secret: %v", err)
		}
	}
	check(true)
	w.pass(24*time.Hour - time.Millisecond)
	check(true)
	w.pass(time.Millisecond)
	check(false)
	w.change(h, func(x *inbox.Webhook) { x.Secret = w.seal(wsB, h.ID, fresh) }) // a row moved from elsewhere
	w.emit(wsA)
	if failures := w.pump(); len(failures) == 0 || len(r.all()) != 3 {
		t.Errorf("a secret of another workspace signed: %v", failures)
	}
}

// TestKilledAnywhere: whichever write is the last one of a process, the next processes bring the event to its receiver, with one
// webhook-id however often it comes.
func TestKilledAnywhere(t *testing.T) {
	for last := 0; ; last++ {
		w := newWorld(t)
		r := w.receiver()
		h, key := w.hook(orgA, wsA, "orders", r.address(), inbox.EventJobFailed)
		e := w.event(wsA)
		w.must(w.store.PutEvent(t.Context(), e))
		w.engine.set(last)
		failures := w.pump()
		w.engine.set(-1)
		w.lose()
		for range 4 { // minutes: the outbox, then what is due
			w.restart()
			w.pass(2 * time.Minute)
			ids, err := w.store.Pending(t.Context(), w.now().Add(-30*time.Second), 10)
			w.must(err)
			for _, id := range ids {
				w.must(w.queue.Send(t.Context(), queue.Message{ID: id}))
			}
			w.must(w.due.Run(t.Context()))
			w.pump()
		}
		all := r.all()
		if len(all) == 0 {
			t.Fatalf("killed after %d writes: never told", last)
		}
		for _, g := range all {
			if err := verify(key, g); err != nil || g.header.Get("Webhook-Id") != all[0].header.Get("Webhook-Id") {
				t.Errorf("killed after %d writes: %v", last, err)
			}
		}
		if d := w.one(h); d.Status != inbox.DeliverySucceeded || d.Open() {
			t.Errorf("killed after %d writes: %s, %+v", last, d.Status, d.Attempts)
		}
		if ids, err := w.store.Due(t.Context(), w.now().Add(1000*time.Hour), 10); err != nil || len(ids) != 0 {
			t.Errorf("killed after %d writes: due for ever: %v, %v", last, ids, err)
		}
		if len(failures) == 0 && len(all) == 1 {
			if last < 5 {
				t.Errorf("only %d writes were cut short", last)
			}
			return
		}
		if last > 30 {
			t.Fatal("it never runs through")
		}
	}
}

// TestAtOnce: of many workers with the same message one sends.
func TestAtOnce(t *testing.T) {
	w := newWorld(t)
	r := w.receiver()
	h, _ := w.hook(orgA, wsA, "orders", r.address(), inbox.EventJobFailed)
	e := w.emit(wsA)
	w.must(w.hooks.Handle(t.Context(), e.ID, 1))
	id := inbox.DeliveryMessage(wsA, w.one(h).ID)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 4 {
				if err := w.hooks.Handle(t.Context(), id, 1); err != nil {
					t.Error(err)
				}
				_ = w.hooks.Handle(t.Context(), e.ID, 1)
			}
		})
	}
	all.Wait()
	w.pass(time.Hour)
	w.pump()
	if n := len(r.all()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// TestSlowReceiver: it holds its slots and no more, whoever else has something to send goes on, and all of it arrives.
func TestSlowReceiver(t *testing.T) {
	w := newWorld(t)
	slow, quick := w.receiver(), w.receiver()
	release := make(chan struct{})
	var mu sync.Mutex
	var now, most int
	slow.then(func(rw http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		<-release
		mu.Lock()
		now--
		mu.Unlock()
		rw.WriteHeader(http.StatusOK)
	})
	h, _ := w.hook(orgA, wsA, "slow", slow.address(), inbox.EventJobFailed)
	w.hook(orgA, wsA, "slow-too", slow.address()+"?2", inbox.EventJobFailed) // the same host: it shares the slots
	w.hook(orgB, wsB, "quick", quick.address(), inbox.EventJobFailed)
	const events = 10
	for range events {
		w.must(w.hooks.Handle(t.Context(), w.emit(wsA).ID, 1))
	}
	var team sync.WaitGroup
	work := make(chan queue.Delivery, 100)
	for range 16 {
		team.Go(func() {
			for d := range work {
				if err := w.hooks.Handle(t.Context(), d.ID, 1); err != nil {
					t.Error(err)
				}
			}
		})
	}
	batch, err := w.queue.Receive(t.Context(), queue.MaxBatch, time.Minute)
	w.must(err)
	for _, d := range batch {
		work <- d
	}
	w.emit(wsB)
	for i := 0; len(quick.all()) == 0; i++ { // it is told while the slow one holds what it holds
		if i > 5000 {
			t.Error("the slow receiver holds up another")
			break
		}
		time.Sleep(time.Millisecond)
		batch, err := w.queue.Receive(t.Context(), queue.MaxBatch, time.Minute)
		w.must(err)
		for _, d := range batch {
			work <- d
		}
	}
	close(release)
	close(work)
	team.Wait()
	for range 40 {
		w.pass(10 * time.Second)
		w.must(w.due.Run(t.Context()))
		w.pump()
	}
	if most > 4 {
		t.Errorf("%d at once", most)
	}
	rows := append(w.deliveries(wsA, h.ID), w.deliveries(wsA, "")...)
	for _, d := range rows {
		if d.Status != inbox.DeliverySucceeded || d.Attempt != 1 {
			t.Errorf("%s: %s after %d attempts", d.ID, d.Status, d.Attempt)
		}
	}
	if len(slow.all()) != 2*events {
		t.Errorf("%d of %d arrived", len(slow.all()), 2*events)
	}
}

// TestWhoIsTold: subscriptions, inboxes, tenants.
func TestWhoIsTold(t *testing.T) {
	w := newWorld(t)
	told := map[string]*receiver{}
	hooks := map[string]inbox.Webhook{}
	for name, c := range map[string]struct {
		org, ws string
		events  []inbox.EventType
		inboxes []string
	}{
		"subscribed":     {orgA, wsA, []inbox.EventType{inbox.EventProcessed}, nil},
		"of the inbox":   {orgA, wsA, []inbox.EventType{inbox.EventProcessed}, []string{boxA}},
		"other inbox":    {orgA, wsA, []inbox.EventType{inbox.EventProcessed}, []string{"inbox_00000000000000000000000009"}},
		"other event":    {orgA, wsA, []inbox.EventType{inbox.EventFailed}, nil},
		"disabled":       {orgA, wsA, []inbox.EventType{inbox.EventProcessed}, nil},
		"deleted":        {orgA, wsA, []inbox.EventType{inbox.EventProcessed}, nil},
		"another tenant": {orgB, wsB, []inbox.EventType{inbox.EventProcessed}, nil},
	} {
		told[name] = w.receiver()
		h, _ := w.hook(c.org, c.ws, strings.ReplaceAll(name, " ", "-"), told[name].address(), c.events...)
		hooks[name] = h
		if c.inboxes != nil {
			w.change(h, func(h *inbox.Webhook) { h.Inboxes = c.inboxes })
		}
	}
	w.change(hooks["disabled"], func(h *inbox.Webhook) { h.Enabled = false })
	w.change(hooks["deleted"], func(h *inbox.Webhook) { h.DeletedAt = w.now() })
	mail := inbox.Email{ID: "email_00000000000000000000000001", Workspace: wsA, Inbox: boxA, Status: inbox.StatusReceived, UpdatedAt: w.now()}
	next := mail
	next.Status = inbox.StatusProcessed
	events, err := inbox.EmailEvents(mail, next)
	w.must(err)
	w.must(w.store.PutEvent(t.Context(), events[0]))
	w.pump()
	for name, r := range told {
		want := 0
		if name == "subscribed" || name == "of the inbox" {
			want = 1
		}
		if n := len(r.all()); n != want {
			t.Errorf("%s: told %d times, want %d", name, n, want)
		}
	}
	foreign := inbox.DeliveryMessage(wsB, w.deliveries(wsA, "")[0].ID)
	if err := w.hooks.Handle(t.Context(), foreign, 1); err != nil {
		t.Errorf("a delivery under another tenant: %v", err)
	}
	for _, bad := range []string{"delivery_", "delivery_x_" + wsA, "delivery_00000000000000000000000001", "delivery_00000000000000000000000001_", "delivery_0000000000000000000000000U_" + wsA} {
		if err := w.hooks.Handle(t.Context(), bad, 1); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
	// What waits when its webhook goes is not sent.
	told["subscribed"].then(status(http.StatusBadGateway))
	w.must(w.store.PutEvent(t.Context(), func() inbox.Event { e := events[0]; e.ID = "event_00000000000000000000000002"; return e }()))
	w.pump()
	w.change(hooks["subscribed"], func(h *inbox.Webhook) { h.DeletedAt = w.now() })
	before := len(told["subscribed"].all())
	w.pass(time.Hour)
	w.must(w.due.Run(t.Context()))
	w.pump()
	if n := len(told["subscribed"].all()); n != before {
		t.Errorf("%d requests after its deletion", n-before)
	}
}

// TestLostMessages: deliveries without a message come back when they are due, once in a while and not at every look.
func TestLostMessages(t *testing.T) {
	w := newWorld(t)
	r := w.receiver()
	w.hook(orgA, wsA, "orders", r.address(), inbox.EventJobFailed)
	e := w.emit(wsA)
	w.must(w.hooks.Handle(t.Context(), e.ID, 1))
	w.lose()
	w.pass(29 * time.Second)
	w.must(w.due.Run(t.Context()))
	if w.pump(); len(r.all()) != 0 {
		t.Fatal("sent again while its own message may be on the way")
	}
	w.pass(2 * time.Second)
	w.must(w.due.Run(t.Context()))
	w.lose()
	w.pass(time.Minute)
	w.must(w.due.Run(t.Context()))
	if w.pump(); len(r.all()) != 0 {
		t.Fatal("sent again each minute")
	}
	w.pass(5 * time.Minute)
	w.must(w.due.Run(t.Context()))
	if w.pump(); len(r.all()) != 1 {
		t.Fatalf("%d requests", len(r.all()))
	}
}

// TestRetention: deliveries, what they carried and their places end by themselves.
func TestRetention(t *testing.T) {
	w := newWorld(t)
	r := w.receiver()
	r.then(status(http.StatusInternalServerError))
	h, _ := w.hook(orgA, wsA, "orders", r.address(), inbox.EventJobFailed)
	w.emit(wsA)
	w.pump()
	w.pass(inbox.DeliveryRetention + time.Second)
	if n := len(w.deliveries(wsA, h.ID)) + len(w.deliveries(wsA, "")); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	if ids, err := w.store.Due(t.Context(), w.now().Add(time.Hour), 10); err != nil || len(ids) != 0 {
		t.Errorf("due: %v, %v", ids, err)
	}
}

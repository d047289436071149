package inbound

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/blob"
	"github.com/buzon-mail/buzon/shared/config"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/lambdaedge"
	"github.com/buzon-mail/buzon/shared/queue"
)

type world struct {
	t *testing.T
	*Function
	*Engines
	log *bytes.Buffer
}

// newWorld is an emulated function and what it stands on; wrap changes the blobs.
func newWorld(t *testing.T, wrap func(blob.Store) blob.Store) *world {
	t.Helper()
	e, err := emulated(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	if wrap != nil {
		e.Blobs = wrap(e.Blobs)
	}
	w := &world{t: t, Engines: e, log: &bytes.Buffer{}}
	if w.Function, err = newFunction(e, slog.New(slog.NewJSONHandler(w.log, nil)), time.Now); err != nil {
		t.Fatal(err)
	}
	return w
}

func eventFile(t *testing.T, name string) []byte {
	t.Helper()
	payload, err := os.ReadFile("../../../events/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

// serve gives an event to the function and returns the last letters of the ids that come again.
func (w *world) serve(event []byte) []string {
	w.t.Helper()
	reply, err := w.Invoke(w.t.Context(), event)
	if err != nil {
		w.t.Fatal(err)
	}
	var r struct {
		Failures []struct {
			ID string `json:"itemIdentifier"`
		} `json:"batchItemFailures"`
	}
	if err := json.Unmarshal(reply, &r); err != nil {
		w.t.Fatalf("reply %s: %v", reply, err)
	}
	ids := []string{}
	for _, f := range r.Failures {
		ids = append(ids, f.ID[len(f.ID)-1:])
	}
	return ids
}

// intakes are what the outbox holds.
func (w *world) intakes() (list []inbox.Intake) {
	w.t.Helper()
	ids, err := w.Store.Pending(w.t.Context(), time.Now().Add(100*24*time.Hour*365), 100)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, id := range ids {
		in, err := w.Store.Intake(w.t.Context(), id)
		if err != nil {
			w.t.Fatal(err)
		}
		list = append(list, in)
	}
	return list
}

func (w *world) has(key string) bool {
	w.t.Helper()
	_, err := w.Blobs.Get(w.t.Context(), key, 1<<20)
	if err != nil && !errors.Is(err, blob.ErrNotFound) {
		w.t.Fatal(err)
	}
	return err == nil
}

const sesID = "d6iitobk75ur44p8kdnnp7g2n8000000000000"

func TestMailIsTaken(t *testing.T) {
	w := newWorld(t, nil)
	for range 3 { // a redelivery makes nothing new
		if failed := w.serve(eventFile(t, "ses-inbound")); len(failed) != 0 {
			t.Fatalf("failed %q: %s", failed, w.log)
		}
	}
	list := w.intakes()
	if len(list) != 1 {
		t.Fatalf("%d intakes", len(list))
	}
	in := list[0]
	if in.RawKey != "ses/"+sesID+"01" || in.From != "bounces+77@papeleria.example" || len(in.Recipients) != 1 ||
		in.Recipients[0].Address != "facturas@acme.test" || !in.ReceivedAt.Equal(time.Date(2026, 11, 30, 10, 15, 4, 512e6, time.UTC)) {
		t.Errorf("intake %+v", in)
	}
	want := []inbox.Authentication{
		{Method: "spf", Result: "pass", From: "ses"}, {Method: "dkim", Result: "none", From: "ses"}, {Method: "dmarc", Result: "pass", From: "ses"},
		{Method: "spam", Result: "pass", From: "ses"}, {Method: "virus", Result: "pass", From: "ses"},
	}
	if !reflect.DeepEqual(in.Authentication, want) {
		t.Errorf("authentication %+v", in.Authentication)
	}
	if !w.has(in.RawKey) {
		t.Error("the raw mail is gone")
	}
	source, ok := w.Queue.(queue.Source)
	if !ok {
		t.Fatal("the emulated queue can't be read")
	}
	if got, err := source.Receive(t.Context(), 10, time.Minute); err != nil || len(got) == 0 || got[0].ID != in.ID {
		t.Errorf("queue holds %+v, %v", got, err)
	}
}

// The envelope has two spellings of one address, two tenants and one that is nobody's; the headers name a list.
func TestManyRecipients(t *testing.T) {
	w := newWorld(t, nil)
	if failed := w.serve(eventFile(t, "ses-inbound-many-recipients")); len(failed) != 0 {
		t.Fatalf("failed %q: %s", failed, w.log)
	}
	list := w.intakes()
	if len(list) != 1 {
		t.Fatalf("%d intakes", len(list))
	}
	var got []string
	for _, d := range list[0].Recipients {
		got = append(got, d.Address)
	}
	slices.Sort(got)
	if !slices.Equal(got, []string{"facturas@acme.test", "orders@globex.test", "soporte@acme.test"}) {
		t.Errorf("recipients %q", got)
	}
	if !strings.Contains(w.log.String(), `"recipients_unknown":1`) || w.has("unknown/"+sesID+"02") {
		t.Errorf("the one that is nobody's: log %s", w.log)
	}
}

// A mail for nobody is kept where the bucket's lifecycle removes it after 7 days, counted, and never bounced.
func TestUnknownRecipient(t *testing.T) {
	w := newWorld(t, nil)
	for range 2 {
		if failed := w.serve(eventFile(t, "ses-inbound-unknown")); len(failed) != 0 {
			t.Fatalf("failed %q: %s", failed, w.log)
		}
	}
	if len(w.intakes()) != 0 || !w.has("unknown/"+sesID+"03") || w.has("ses/"+sesID+"03") {
		t.Errorf("%d intakes, kept %v, left %v", len(w.intakes()), w.has("unknown/"+sesID+"03"), w.has("ses/"+sesID+"03"))
	}
	if n := strings.Count(w.log.String(), `"recipients_unknown":1`); n != 2 {
		t.Errorf("counted %d times: %s", n, w.log)
	}
	if strings.Contains(w.log.String(), "nobody@") || strings.Contains(w.log.String(), "example.net") {
		t.Errorf("the log names people: %s", w.log)
	}
}

// Garbage, a lost object, another's object and a notice of something else come again until they are set aside; the mail
// between them is taken.
func TestPoisonedBatch(t *testing.T) {
	w := newWorld(t, nil)
	if failed := w.serve(eventFile(t, "ses-inbound-poisoned")); !slices.Equal(failed, []string{"1", "2", "4", "5"}) {
		t.Errorf("failed %q", failed)
	}
	list := w.intakes()
	if len(list) != 1 || list[0].RawKey != "ses/"+sesID+"01" {
		t.Errorf("intakes %+v", list)
	}
}

// edit changes the notice of an event.
func edit(t *testing.T, name string, from, to string) []byte {
	t.Helper()
	event := eventFile(t, name)
	out := bytes.ReplaceAll(event, []byte(from), []byte(to))
	if bytes.Equal(out, event) {
		t.Fatalf("%s has no %s", name, from)
	}
	return out
}

// A notice names the object of its own mail in the bucket of the configuration, or nothing is read for it.
func TestForgedNotices(t *testing.T) {
	const key = `\\\"objectKey\\\":\\\"ses/` + sesID + `01`
	for name, event := range map[string][]byte{
		"another bucket":        edit(t, "ses-inbound", "buzon-mail-123456789012-eu-west-1", "other-bucket"),
		"a processed mail":      edit(t, "ses-inbound", key, `\\\"objectKey\\\":\\\"raw/2026/11/30/x.eml`),
		"another's mail of SES": edit(t, "ses-inbound", key, `\\\"objectKey\\\":\\\"ses/`+sesID+`02`),
		"a climbing key":        edit(t, "ses-inbound", sesID+"01", "../raw/x"),
		"a key below":           edit(t, "ses-inbound", sesID+"01", "a/b"),
		"an upper-case key":     edit(t, "ses-inbound", sesID+"01", "UPPER"),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			if failed := w.serve(event); len(failed) != 1 || len(w.intakes()) != 0 {
				t.Errorf("failed %q, %d intakes", failed, len(w.intakes()))
			}
			if !strings.Contains(w.log.String(), "not a notice of received mail") {
				t.Errorf("log %s", w.log)
			}
		})
	}
}

func TestOtherEventsFail(t *testing.T) {
	w := newWorld(t, nil)
	for _, name := range []string{"function-url-get-mcp", "schedule-minute", "rest-api-tools-list-2026"} {
		if _, err := w.Invoke(t.Context(), eventFile(t, name)); !errors.Is(err, lambdaedge.ErrNotTrigger) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if failed := w.serve(eventFile(t, "sqs-jobs")); len(failed) != 4 {
		t.Errorf("jobs in the queue of notices: failed %q", failed)
	}
}

func TestPausedInboxKeeps(t *testing.T) {
	w := newWorld(t, nil)
	pause(w, "facturas@acme.test", inbox.StatePaused)
	for range 2 {
		if failed := w.serve(eventFile(t, "ses-inbound")); len(failed) != 0 {
			t.Fatalf("failed %q: %s", failed, w.log)
		}
	}
	held, err := w.Store.NextHeld(t.Context(), "")
	if err != nil || len(w.intakes()) != 0 || held.Recipients[0].Address != "facturas@acme.test" || !w.has(held.RawKey) {
		t.Errorf("held %+v, %v; %d intakes", held, err, len(w.intakes()))
	}
}

func pause(w *world, address string, state inbox.State) {
	w.t.Helper()
	ctx := w.t.Context()
	r, err := w.Store.Recipient(ctx, address)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.Store.UpdateInbox(ctx, r.Workspace, r.Inbox, inbox.Act{}, func(in *inbox.Inbox) error {
		in.State = state
		in.Version++
		return nil
	}); err != nil {
		w.t.Fatal(err)
	}
}

// odd is a store whose answers a test chooses.
type odd struct {
	blob.Store
	open func(key string) (io.ReadCloser, int64, error)
	err  map[string]error // by method
}

func (o *odd) Open(ctx context.Context, key string) (io.ReadCloser, int64, error) {
	if o.open != nil {
		return o.open(key)
	}
	return o.Store.Open(ctx, key)
}

func (o *odd) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	if err := o.err["Put"]; err != nil {
		return err
	}
	return o.Store.Put(ctx, key, r, size)
}

func (o *odd) Delete(ctx context.Context, key string) error {
	if err := o.err["Delete"]; err != nil {
		return err
	}
	return o.Store.Delete(ctx, key)
}

func TestObjects(t *testing.T) {
	body := func(n int64) func(string) (io.ReadCloser, int64, error) {
		return func(string) (io.ReadCloser, int64, error) {
			return io.NopCloser(io.LimitReader(zeros{}, n)), n, nil
		}
	}
	tests := []struct {
		name  string
		event string
		store odd
		taken bool
	}{
		{"0 bytes", "ses-inbound", odd{open: body(0)}, true},
		{"40 MB", "ses-inbound", odd{open: body(40 << 20)}, true},
		{"more than SES takes", "ses-inbound", odd{open: body(60 << 20)}, false},
		{"missing", "ses-inbound", odd{open: func(string) (io.ReadCloser, int64, error) { return nil, 0, blob.ErrNotFound }}, false},
		{"store away", "ses-inbound", odd{open: func(string) (io.ReadCloser, int64, error) { return nil, 0, blob.ErrUnavailable }}, false},
		{"cut off", "ses-inbound", odd{open: func(string) (io.ReadCloser, int64, error) {
			return io.NopCloser(strings.NewReader("half")), 8, nil
		}}, false},
		{"for nobody, missing", "ses-inbound-unknown", odd{open: func(string) (io.ReadCloser, int64, error) { return nil, 0, blob.ErrNotFound }}, false},
		{"for nobody, can't be kept", "ses-inbound-unknown", odd{err: map[string]error{"Put": blob.ErrUnavailable}}, false},
		{"for nobody, can't be moved", "ses-inbound-unknown", odd{err: map[string]error{"Delete": blob.ErrUnavailable}}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, func(s blob.Store) blob.Store { tt.store.Store = s; return &tt.store })
			failed := w.serve(eventFile(t, tt.event))
			if (len(failed) == 0) != tt.taken || (len(w.intakes()) == 1) != tt.taken {
				t.Errorf("failed %q, %d intakes: %s", failed, len(w.intakes()), w.log)
			}
			if tt.store.err == nil {
				return
			}
			tt.store.err = nil // the next delivery brings it to its end
			if failed := w.serve(eventFile(t, tt.event)); len(failed) != 0 || !w.has("unknown/"+sesID+"03") || w.has("ses/"+sesID+"03") {
				t.Errorf("afterwards failed %q: %s", failed, w.log)
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestDeployedNeedsItsEnvironment(t *testing.T) {
	if _, err := New(&config.Inbound{}, os.Stderr); err == nil {
		t.Error("a deployed function without names of tables started")
	}
	f, err := New(&config.Inbound{Emulated: true}, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// TestSenderAtTheDoor: SES has said yes before anybody can say no, so a mail of a sender that an inbox refuses goes on, marked and
// counted, and only for that inbox.
func TestSenderAtTheDoor(t *testing.T) {
	for name, x := range map[string]struct {
		policy inbox.SenderPolicy
		on     inbox.OnUnlisted
		entry  inbox.AllowedSender
		want   string
	}{
		"nobody listed":      {},
		"blocked":            {entry: inbox.AllowedSender{Kind: inbox.KindDomain, Value: "cliente.example", Effect: inbox.EffectBlock}, want: inbox.HeldBlocked},
		"another is blocked": {entry: inbox.AllowedSender{Kind: inbox.KindDomain, Value: "rotulos.example", Effect: inbox.EffectBlock}},
		"not listed":         {policy: inbox.PolicyListed, on: inbox.UnlistedReject, want: inbox.HeldUnlisted},
		"not listed, label":  {policy: inbox.PolicyListed, on: inbox.UnlistedLabel},
		"listed, reject":     {policy: inbox.PolicyListed, on: inbox.UnlistedReject, entry: inbox.AllowedSender{Kind: inbox.KindDomain, Value: "cliente.example", Effect: inbox.EffectAllow}},
		"another listed":     {policy: inbox.PolicyListed, on: inbox.UnlistedReject, entry: inbox.AllowedSender{Kind: inbox.KindDomain, Value: "rotulos.example", Effect: inbox.EffectAllow}, want: inbox.HeldUnlisted},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			r, err := w.Store.Recipient(t.Context(), "facturas@acme.test")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Store.UpdateInbox(t.Context(), r.Workspace, r.Inbox, inbox.Act{}, func(in *inbox.Inbox) error {
				in.SenderPolicy, in.OnUnlisted = x.policy, x.on
				in.Version++
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if e := x.entry; e.Kind != "" {
				id := inbox.SenderID(r.Workspace, r.Inbox, e.Kind, e.Value)
				if _, err := w.Store.UpdateSender(t.Context(), r.Workspace, r.Inbox, id, inbox.Act{}, func(s *inbox.AllowedSender) error {
					*s = e
					s.ID, s.Workspace, s.Inbox, s.Require, s.Version = id, r.Workspace, r.Inbox, inbox.RequireDMARC, 1
					return nil
				}); err != nil {
					t.Fatal(err)
				}
			}
			if failed := w.serve(eventFile(t, "ses-inbound-many-recipients")); len(failed) != 0 {
				t.Fatalf("failed %q: %s", failed, w.log)
			}
			for _, d := range w.intakes()[0].Recipients {
				want := ""
				if d.Inbox == r.Inbox {
					want = x.want
				}
				if d.Door != want {
					t.Errorf("%s: %q, want %q", d.Address, d.Door, want)
				}
			}
			if counted := strings.Contains(w.log.String(), `"senders_refused":1`); counted != (x.want != "") {
				t.Errorf("counted %v: %s", counted, w.log)
			}
		})
	}
}

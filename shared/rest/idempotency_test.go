package rest_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/rest"
)

const jobID = "job_01J00000000000000000000000"

// register keeps keys in memory, as rest.Idempotency wants it. An act that writes its key in its own transaction calls done.
type register struct {
	mu   sync.Mutex
	keys map[string]*entry // guarded by mu
	down error
}

type entry struct {
	arguments string
	done      bool
	replay    op.Replay
}

func (r *register) LookKey(_ context.Context, k op.IdempotencyKey) (*op.Replay, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.look(k)
}

func (r *register) look(k op.IdempotencyKey) (*op.Replay, error) {
	e := r.keys[k.ID]
	switch {
	case r.down != nil:
		return nil, r.down
	case e == nil:
		return nil, nil //nolint:nilnil // nothing was done
	case e.arguments != k.Arguments:
		return nil, apperr.New(apperr.Conflict, op.CodeKeyReused, "Other arguments.")
	case !e.done:
		return nil, apperr.New(apperr.Conflict, op.CodeKeyInFlight, "In flight.")
	}
	return &e.replay, nil
}

func (r *register) TakeKey(_ context.Context, k op.IdempotencyKey) (*op.Replay, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if replay, err := r.look(k); replay != nil || err != nil {
		return replay, err
	}
	r.keys[k.ID] = &entry{arguments: k.Arguments}
	return nil, nil //nolint:nilnil // it is taken
}

func (r *register) KeepReply(_ context.Context, k op.IdempotencyKey, reply op.Replay) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.keys[k.ID]
	e.done = true
	e.replay.Status, e.replay.Body = reply.Status, append([]byte(nil), reply.Body...)
	return r.down
}

func (r *register) DropKey(_ context.Context, k op.IdempotencyKey) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.keys[k.ID]; e != nil && !e.done {
		delete(r.keys, k.ID)
	}
	return r.down
}

func (r *register) done(ctx context.Context, outcome string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.keys[op.IdempotencyKeyFrom(ctx).ID]; e != nil {
		e.done, e.replay.Outcome = true, outcome
	}
}

type orderIn struct {
	rest.RequiredKey
	ID   string `path:"id"`
	Fast bool   `query:"fast"`
	Body *struct {
		Count int             `json:"count,omitempty"`
		Note  rest.Patch[int] `json:"note,omitempty"`
	} `required:"false"`
}

type keyedIn struct {
	rest.Key
	Body struct {
		Name string `json:"name"`
	}
}

type depot struct {
	t    *testing.T
	api  *rest.API
	keys *register
	acts []string
	ask  int
	fail error
	wait chan struct{} // nil: nothing to wait for
	mu   sync.Mutex    // guards acts
}

func newDepot(t *testing.T) *depot {
	t.Helper()
	d := &depot{t: t, keys: &register{keys: map[string]*entry{}}}
	v, err := op.NewVocabulary(nil)
	if err != nil {
		t.Fatal(err)
	}
	spec := func(name, path string, effect op.Effect) op.Spec {
		return op.Spec{Name: name, Method: "POST", Path: path, Title: name, Description: name + ".", Effect: effect, Role: op.Viewer}
	}
	order := spec("orders_send", "/orders/{id}/send", op.Destructive)
	order.Job = true
	secret := spec("secrets_make", "/secrets", op.Write)
	secret.Secret, secret.Status = true, 201
	act := func(ctx context.Context, what string) error {
		d.mu.Lock()
		d.acts = append(d.acts, what)
		d.mu.Unlock()
		if d.wait != nil {
			<-d.wait
		}
		return d.fail
	}
	named := func(name string) func(context.Context, *keyedIn) (*putOut, error) {
		return func(ctx context.Context, in *keyedIn) (*putOut, error) {
			out := &putOut{Status: 201}
			out.Body.Data.ID = "made " + in.Body.Name
			return out, act(ctx, name)
		}
	}
	c, err := op.NewCatalogue(v, []op.Operation{
		rest.DefineDestructive(order, func(_ context.Context, in *orderIn) (*op.Question, error) {
			d.ask++
			return &op.Question{Text: "Send {}?", Values: []string{in.ID}, Targets: map[string]string{in.ID: "1"}}, nil
		}, func(ctx context.Context, in *orderIn) (*rest.StartedOutput, error) {
			if err := act(ctx, "send "+in.ID); err != nil {
				return nil, err
			}
			d.keys.done(ctx, jobID)
			return rest.Started(jobID), nil
		}),
		rest.Define(spec("things_make", "/things", op.Write), named("make")),
		rest.Define(secret, named("secret")),
	})
	if err != nil {
		t.Fatal(err)
	}
	d.api, err = rest.New(c, rest.Deps{
		Authenticator: d, Challenger: d, Logger: slog.New(slog.DiscardHandler), RequestID: func(context.Context) string { return "req_1" },
		Idempotency: d.keys,
	}, rest.Options{BasePath: "/api/v1"})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *depot) Challenge(string, []string) (string, map[string]any) { return "Bearer", nil }

// Authenticate takes the token for subject and grant, joined by a colon.
func (d *depot) Authenticate(_ context.Context, h http.Header) (*op.Caller, error) {
	who, grant, _ := strings.Cut(strings.TrimPrefix(h.Get("Authorization"), "Bearer "), ":")
	return &op.Caller{Subject: who, Grant: grant, Organization: "org", Role: op.Viewer, Default: workA, Workspaces: []op.Workspace{
		{ID: workA, Slug: "a", Role: op.Viewer}, {ID: workB, Slug: "b", Role: op.Viewer},
	}}, nil
}

type sent struct{ who, path, body, workspace string }

func (d *depot) send(s sent, keys ...string) *httptest.ResponseRecorder {
	d.t.Helper()
	r := httptest.NewRequest("POST", "http://x/api/v1"+s.path, strings.NewReader(s.body))
	r.Header.Set("Authorization", "Bearer "+s.who)
	r.Header.Set("Content-Type", "application/json")
	if s.workspace != "" {
		r.Header.Set(rest.WorkspaceHeader, s.workspace)
	}
	for _, k := range keys {
		r.Header.Add("idempotency-key", k)
	}
	w := httptest.NewRecorder()
	d.api.ServeHTTP(w, r)
	return w
}

func code(w *httptest.ResponseRecorder) string {
	var p rest.Problem
	_ = json.Unmarshal(w.Body.Bytes(), &p) //nolint:errcheck // no problem: an empty code
	return p.Code
}

var order = sent{"ana:g1", "/orders/o-1/send?fast=true", `{"count":2,"note":null}`, ""} //nolint:gochecknoglobals // constant

func TestAKeyStandsForOneAct(t *testing.T) {
	other := func(change func(*sent)) sent {
		s := order
		change(&s)
		return s
	}
	for name, c := range map[string]struct {
		again sent
		key   string
		want  int
		code  string
		acts  int
	}{
		"the same":               {order, "k", 202, "", 1},
		"written otherwise":      {other(func(s *sent) { s.body = ` { "note" : null , "count":2} ` }), "k", 202, "", 1},
		"another body":           {other(func(s *sent) { s.body = `{"count":3}` }), "k", 409, "idempotency_conflict", 1},
		"without null":           {other(func(s *sent) { s.body = `{"count":2}` }), "k", 409, "idempotency_conflict", 1},
		"another query":          {other(func(s *sent) { s.path = "/orders/o-1/send" }), "k", 409, "idempotency_conflict", 1},
		"another path":           {other(func(s *sent) { s.path = "/orders/o-2/send?fast=true" }), "k", 409, "idempotency_conflict", 1},
		"another key":            {order, "K", 202, "", 2},
		"another person":         {other(func(s *sent) { s.who = "eva:g1" }), "k", 202, "", 2},
		"another grant":          {other(func(s *sent) { s.who = "ana:g2" }), "k", 202, "", 2},
		"parts moved":            {other(func(s *sent) { s.who = "an:ag1" }), "k", 202, "", 2},
		"another workspace":      {other(func(s *sent) { s.workspace = workB }), "k", 202, "", 2},
		"the workspace by name":  {other(func(s *sent) { s.workspace = workA }), "k", 202, "", 1},
		"bad input with the key": {other(func(s *sent) { s.body = `{"count":"x"}` }), "k", 400, "invalid", 1},
	} {
		d := newDepot(t)
		first := d.send(order, "k")
		want := `{"data":{"job_id":"` + jobID + `","status_url":"/api/v1/jobs/` + jobID + `"}}`
		if first.Code != 202 || first.Body.String() != want || first.Header().Get("Location") != "/api/v1/jobs/"+jobID {
			t.Fatalf("first: %d %s %v", first.Code, first.Body, first.Header())
		}
		w := d.send(c.again, c.key)
		if w.Code != c.want || code(w) != c.code || len(d.acts) != c.acts {
			t.Errorf("%s: %d %s, acts %v", name, w.Code, w.Body, d.acts)
		}
		if w.Code == 202 && (w.Body.String() != want || w.Header().Get("Location") != first.Header().Get("Location") || w.Header().Get("Content-Type") != "application/json") {
			t.Errorf("%s: %s, first %s", name, w.Body, first.Body)
		}
	}
}

func TestKeysThatAreNone(t *testing.T) {
	for name, keys := range map[string][]string{
		"none": nil, "two": {"a", "b"}, "empty": {""}, "too long": {strings.Repeat("a", 129)}, "a space": {"a b"}, "a letter": {"ñ"}, "twice the same": {"a", "a"},
	} {
		d := newDepot(t)
		if w := d.send(order, keys...); w.Code != 400 || len(d.acts) != 0 || len(d.keys.keys) != 0 {
			t.Errorf("%s: %d %s, acts %v", name, w.Code, w.Body, d.acts)
		} else if name == "none" && !strings.Contains(w.Body.String(), `{"location":"header.Idempotency-Key","message":"this is required"}`) {
			t.Errorf("%s: %s", name, w.Body)
		}
	}
	d := newDepot(t)
	for range 2 { // where it is optional
		if w := d.send(sent{"ana:g1", "/things", `{"name":"x"}`, ""}); w.Code != 201 {
			t.Errorf("no key: %d %s", w.Code, w.Body)
		}
	}
	if len(d.acts) != 2 || len(d.keys.keys) != 0 {
		t.Errorf("acts %v, keys %v", d.acts, d.keys.keys)
	}
}

// What was refused or went wrong is not kept: the key is free for the next try.
func TestOnlyWhatIsDoneIsKept(t *testing.T) {
	d := newDepot(t)
	for _, fault := range []error{apperr.New(apperr.Conflict, "taken", "No."), errors.New("boom"), apperr.New(apperr.Unavailable, "", "Down.")} {
		d.fail = fault
		if w := d.send(order, "k"); w.Code < 400 || strings.Contains(w.Body.String(), "boom") || len(d.keys.keys) != 0 {
			t.Errorf("%v: %d %s", fault, w.Code, w.Body)
		}
	}
	d.fail = nil
	if w := d.send(order, "k"); w.Code != 202 || len(d.acts) != 4 {
		t.Errorf("%d %s, acts %v", w.Code, w.Body, d.acts)
	}
	d.keys.down = errors.New("store down")
	if w := d.send(order, "k2"); w.Code != 500 || len(d.acts) != 4 {
		t.Errorf("the key could not be looked up, and the act ran: %d, %v", w.Code, d.acts)
	}
}

func TestRepliesThatAreKept(t *testing.T) {
	d := newDepot(t)
	thing := sent{"ana:g1", "/things", `{"name":"a<b"}`, ""}
	first, second := d.send(thing, "k"), d.send(thing, "k")
	if first.Code != 201 || second.Code != 201 || first.Body.String() != second.Body.String() || len(d.acts) != 1 {
		t.Errorf("%d %s, then %d %s", first.Code, first.Body, second.Code, second.Body)
	}
	secret := sent{"ana:g1", "/secrets", `{"name":"hunter2"}`, ""}
	if w := d.send(secret, "s"); w.Code != 201 || !strings.Contains(w.Body.String(), "hunter2") {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	w := d.send(secret, "s")
	if w.Code != 409 || code(w) != op.CodeKeyReplayed || strings.Contains(w.Body.String(), "hunter2") || !strings.Contains(w.Body.String(), "shown then") {
		t.Errorf("a secret again: %d %s", w.Code, w.Body)
	}
	for _, e := range d.keys.keys {
		if strings.Contains(string(e.replay.Body), "hunter2") {
			t.Error("the secret was kept")
		}
	}
}

// Of many calls at once with one key one acts; the others are told to come again.
func TestCallsAtOnceWithOneKey(t *testing.T) {
	d := newDepot(t)
	d.wait = make(chan struct{})
	results := make(chan *httptest.ResponseRecorder, 8)
	for range cap(results) {
		go func() { results <- d.send(order, "k") }()
	}
	for range cap(results) - 1 {
		if w := <-results; w.Code != 409 || code(w) != "idempotency_in_flight" {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	close(d.wait)
	if w := <-results; w.Code != 202 || len(d.acts) != 1 {
		t.Errorf("%d %s, acts %v", w.Code, w.Body, d.acts)
	}
}

// The look-up comes before the question: nobody is asked about what was done.
func TestInquiryAboutWhatWasDone(t *testing.T) {
	d := newDepot(t)
	inquire := func(key string) (*op.Inquiry, *httptest.ResponseRecorder) {
		caller, _ := d.Authenticate(t.Context(), http.Header{"Authorization": {"Bearer ana:g1"}}) //nolint:errcheck // never fails
		i := &op.Inquiry{}
		ctx := op.WithInquiry(op.WithCaller(t.Context(), caller, op.SurfaceMCP), i)
		r := httptest.NewRequestWithContext(ctx, "POST", "/?fast=true", strings.NewReader(order.body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(op.KeyHeader, key)
		r.SetPathValue("id", "o-1")
		w := httptest.NewRecorder()
		d.api.Route("orders_send").ServeHTTP(w, r)
		return i, w
	}
	if i, w := inquire("k"); !i.Answered || i.Question == nil || i.Replayed || len(d.keys.keys) != 0 {
		t.Errorf("before: %+v %d %s", i, w.Code, w.Body)
	}
	d.send(order, "k")
	if i, w := inquire("k"); i.Answered || !i.Replayed || w.Code != 202 || !strings.Contains(w.Body.String(), jobID) || d.ask != 1 {
		t.Errorf("after: %+v %d %s", i, w.Code, w.Body)
	}
	if i, _ := inquire("other"); !i.Answered || i.Replayed {
		t.Errorf("another key: %+v", i)
	}
}

func TestJobDeclarations(t *testing.T) {
	v, err := op.NewVocabulary(nil)
	if err != nil {
		t.Fatal(err)
	}
	spec := op.Spec{Name: "x_do", Method: "POST", Path: "/x", Title: "x", Description: "x.", Effect: op.Write, Role: op.Viewer}
	job := spec
	job.Job = true
	odd := job
	odd.Status = 200
	secret := spec
	secret.Secret = true
	for name, o := range map[string]op.Operation{
		"a job without its reply": rest.Define(job, func(context.Context, *struct{}) (*getOut, error) { return nil, nil }),
		"the reply without a job": rest.Define(spec, func(context.Context, *struct{}) (*rest.StartedOutput, error) { return nil, nil }),
		"another status":          rest.Define(odd, func(context.Context, *struct{}) (*rest.StartedOutput, error) { return nil, nil }),
		"a key without a store":   rest.Define(spec, func(context.Context, *keyedIn) (*getOut, error) { return nil, nil }),
		"a secret without a key":  rest.Define(secret, func(context.Context, *struct{}) (*getOut, error) { return nil, nil }),
	} {
		c, err := op.NewCatalogue(v, []op.Operation{o})
		if err != nil {
			t.Fatal(err)
		}
		d := &depot{}
		if _, err := rest.New(c, rest.Deps{
			Authenticator: d, Challenger: d, Logger: slog.New(slog.DiscardHandler), RequestID: func(context.Context) string { return "" },
		}, rest.Options{BasePath: "/api"}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

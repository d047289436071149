package scenario

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/app/deployed"
	"github.com/buzon-mail/buzon/shared/app/emulator"
	"github.com/buzon-mail/buzon/shared/app/jsonlog"
	"github.com/buzon-mail/buzon/shared/app/web"
	"github.com/buzon-mail/buzon/shared/blob"
	"github.com/buzon-mail/buzon/shared/demo"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/oauth"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/seal"
	"github.com/buzon-mail/buzon/shared/store"
	"github.com/buzon-mail/buzon/shared/testkit"
	"github.com/buzon-mail/buzon/shared/testkit/standin"
)

// stage is the service's HTTP side over one engine, in reach of the test: rows can be put where a worker would, tokens minted with any
// scopes, and the engine told to fail. The doors show that every way in leads to the same handler.
type stage struct {
	t       *testing.T
	engine  string
	ledger  *ledger
	weak    *weakEngine
	store   *inboxstore.Store
	put     func(ctx context.Context, key string, text []byte) error
	client  testkit.Client // in no limit of rates
	limited testkit.Client // a grant has one call a minute
	issuer  *oauth.Issuer
	every   []string                       // scopes
	inputs  map[string]map[string]argument // of every tool
	n       int                            // of whatever must be new
}

// weakness is how an engine fails.
type weakness int32

const (
	sound  weakness = iota
	raced           // somebody else is always quicker
	down            // it can't be reached
	broken          // what no one foresaw
)

// weakEngine is an engine that fails as told.
type weakEngine struct {
	store.Engine
	how atomic.Int32
}

var errBroken = errors.New("scenario: nobody foresaw this")

func (w *weakEngine) fails() error {
	switch weakness(w.how.Load()) {
	case down:
		return store.ErrUnavailable
	case broken:
		return errBroken
	case sound, raced:
	}
	return nil
}

// Get implements store.Engine.
func (w *weakEngine) Get(ctx context.Context, key store.Key) (store.Item, error) {
	if err := w.fails(); err != nil {
		return store.Item{}, err
	}
	return w.Engine.Get(ctx, key)
}

// Put implements store.Engine.
func (w *weakEngine) Put(ctx context.Context, item store.Item, cond store.Condition) error {
	if err := w.fails(); err != nil {
		return err
	}
	return w.Engine.Put(ctx, item, cond)
}

// Delete implements store.Engine.
func (w *weakEngine) Delete(ctx context.Context, key store.Key, cond store.Condition) error {
	if err := w.fails(); err != nil {
		return err
	}
	return w.Engine.Delete(ctx, key, cond)
}

// Query implements store.Engine.
func (w *weakEngine) Query(ctx context.Context, q store.Query) (store.Page, error) {
	if err := w.fails(); err != nil {
		return store.Page{}, err
	}
	return w.Engine.Query(ctx, q)
}

// Add implements store.Engine.
func (w *weakEngine) Add(ctx context.Context, key store.Key, field string, delta, max int64, expires time.Time) (int64, error) {
	if err := w.fails(); err != nil {
		return 0, err
	}
	return w.Engine.Add(ctx, key, field, delta, max, expires)
}

// Transact implements store.Engine. A race is lost at what the transaction changes, or at the first row that it makes.
func (w *weakEngine) Transact(ctx context.Context, ops ...store.Op) error {
	if err := w.fails(); err != nil {
		return err
	}
	if weakness(w.how.Load()) == raced {
		at := slices.IndexFunc(ops, func(o store.Op) bool { return o.Condition().Kind() == store.IsRevision })
		return &store.ConflictError{Index: max(at, 0)}
	}
	return w.Engine.Transact(ctx, ops...)
}

// inProcessDoor sends requests to a handler.
type inProcessDoor struct{ http.Handler }

// RoundTrip implements http.RoundTripper.
func (d inProcessDoor) RoundTrip(r *http.Request) (*http.Response, error) {
	in := r.Clone(r.Context())
	in.RequestURI, in.RemoteAddr, in.Host = r.URL.RequestURI(), "192.0.2.7:1", r.URL.Host
	rec := httptest.NewRecorder()
	d.ServeHTTP(rec, in)
	return rec.Result(), nil
}

// stages are one for each engine, with the demo.
func stages(t *testing.T, l *ledger) []*stage {
	t.Helper()
	return []*stage{embeddedStage(t, l), standInStage(t, l)}
}

func embeddedStage(t *testing.T, l *ledger) *stage {
	t.Helper()
	e, err := emulator.New(time.Now, emulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	world, err := e.World(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{t: t, engine: embedded, ledger: l, weak: &weakEngine{Engine: e.Engine}, put: world.Put}
	s.serve(web.Deps{
		Blobs: web.Blobs{Opener: e.Blobs}, Downloads: web.Downloads{Signer: e.Blobs}, Serve: e.Blobs.Handler(), Queue: e.Queue,
		Uploads: e.Blobs, Take: e.Blobs.TakeHandler(), Seal: e.Seal, Permanent: e.Seal, Keys: e.Keys,
	}, web.Options{Origin: e.Origin, Issuer: e.Issuer, Audience: e.Audience, Development: true})
	return s
}

func standInStage(t *testing.T, l *ledger) *stage {
	t.Helper()
	_, set := secretsOf(t)
	aws, err := standin.New(t.Context(), time.Now, nil)
	if err != nil {
		t.Fatal(err)
	}
	account := deployed.Account{AWS: aws.Config(), Names: aws.Names(), Clock: time.Now}
	engine, err := account.Engine()
	if err != nil {
		t.Fatal(err)
	}
	blobs, err := account.Blobs()
	if err != nil {
		t.Fatal(err)
	}
	roots, err := seal.New([]seal.Root{{ID: "r1", Secret: bytes.Repeat([]byte{7}, 32)}}, seal.Options{Clock: time.Now, Rand: rand.Reader})
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{t: t, engine: standIns, ledger: l, weak: &weakEngine{Engine: engine}}
	s.put = func(ctx context.Context, key string, text []byte) error {
		var at blob.Store = blobs
		return at.Put(ctx, key, bytes.NewReader(text), int64(len(text)))
	}
	s.serve(web.Deps{
		Blobs: web.Blobs{Opener: blobs}, Downloads: web.Downloads{Signer: blobs}, Uploads: blobs, Seal: roots, Permanent: roots,
		Keys: oauth.StaticKeys(set, time.Now),
	}, web.Options{Origin: "https://stage.buzon.example", SharedLimits: true})
	rows, err := account.Store()
	s.must(err)
	s.must(demo.Seed(t.Context(), rows))
	s.must(demo.LoadMails(t.Context(), rows, s.put, time.Now()))
	return s
}

// serve makes the handler over the weak engine, and a second one that counts calls.
func (s *stage) serve(d web.Deps, o web.Options) {
	var err error
	s.store, err = inboxstore.New(s.weak, time.Now)
	s.must(err)
	o.Version = web.Unreleased
	d.Store, d.Engine, d.Logger, d.Clock, d.Random = s.store, s.weak, jsonlog.New(io.Discard), time.Now, rand.Reader
	handler, err := web.New(d, o)
	s.must(err)
	s.client = testkit.Client{Origin: o.Origin, HTTP: &http.Client{Transport: inProcessDoor{handler}}}
	s.issuer = handler.Issuer
	for _, scope := range handler.Scopes.All() {
		s.every = append(s.every, scope.Name)
	}
	o.PerMinute = 1
	slow, err := web.New(d, o)
	s.must(err)
	s.limited = testkit.Client{Origin: o.Origin, HTTP: &http.Client{Transport: inProcessDoor{slow}}}
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// while runs something on an engine that fails.
func (s *stage) while(how weakness, do func()) {
	s.weak.how.Store(int32(how))
	defer s.weak.how.Store(int32(sound))
	do()
}

// party is a person with a token, and the workspace that the token acts in.
type party struct {
	member, organization, workspace string
}

// partyOf finds a person of the demo in their first workspace.
func (s *stage) partyOf(email string) party {
	s.t.Helper()
	for _, o := range demo.World() {
		for _, m := range o.Members {
			if m.Email == email {
				return party{m.User, o.Org.ID, o.Workspaces[0].ID}
			}
		}
	}
	s.t.Fatalf("nobody is called %s", email)
	return party{}
}

// token mints one with these scopes, of a grant of its own.
func (s *stage) token(p party, scopes []string) string {
	s.t.Helper()
	s.n++
	token, err := s.issuer.Mint(s.t.Context(), oauth.Claims{
		Subject: p.member, ClientID: web.CommandLine, Scope: strings.Join(scopes, " "), Grant: fmt.Sprintf("grant_%d", s.n),
		Organization: p.organization, Workspace: p.workspace,
	}, time.Hour)
	s.must(err)
	return token
}

// without are all scopes but one and those that imply it.
func (s *stage) without(scope string) []string {
	return slices.DeleteFunc(slices.Clone(s.every), func(have string) bool {
		return have == scope || strings.TrimSuffix(have, ":write")+":read" == scope
	})
}

// as is the client of somebody.
func (s *stage) as(c testkit.Client, token string) testkit.Client {
	c.Token = token
	return c
}

// lesser is the member of the demo whose role is just below.
func lesser(r op.Role) string {
	return map[op.Role]string{op.Operator: "viewer", op.Admin: "operator", op.Owner: "admin"}[r] + "@acme.test"
}

// reply sends one request and keeps it in the ledger.
func (s *stage) reply(c testkit.Client, method, path, body string, headers ...string) *testkit.Reply {
	s.t.Helper()
	r, err := c.Do(s.t.Context(), method, path, body, headers...)
	s.must(err)
	s.ledger.observe(s.engine, method, path, body, r)
	return r
}

package inboxops

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/rest"
)

func sameSession(t *testing.T, b *SessionBody) {
	t.Helper()
	want := encoded(t, b)
	got, err := b.AppendJSON([]byte("before"))
	if err != nil || string(got) != "before"+string(want) {
		t.Fatalf("%v\ngot  %s\nwant %s", err, got, want)
	}
	text, ok := b.AppendEscaped([]byte("before"))
	if ok != (b.opened != nil) || !ok && string(text) != "before" {
		t.Fatalf("escaped: %t, %s", ok, text)
	}
	if escaped := rest.AppendEscaped([]byte("before"), want); ok && string(text) != string(escaped) {
		t.Fatalf("escaped\ngot  %s\nwant %s", text, escaped)
	}
}

func FuzzSessionJSON(f *testing.F) {
	for seed := range uint64(64) {
		f.Add(awkward, seed)
	}
	f.Add("", uint64(1))
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		var b SessionBody
		r := rand.New(rand.NewPCG(seed, 1))
		fill(t, reflect.ValueOf(&b.Data).Elem(), r, text)
		fill(t, reflect.ValueOf(&b.Meta).Elem(), r, text)
		sameSession(t, &b)
	})
}

func FuzzWorkspacesJSON(f *testing.F) {
	for seed := range uint64(64) {
		f.Add(awkward, seed)
	}
	f.Add("", uint64(1))
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		var b WorkspacesBody
		fill(t, reflect.ValueOf(&b).Elem(), rand.New(rand.NewPCG(seed, 1)), text)
		got, err := b.AppendJSON([]byte("before"))
		if want := encoded(t, &b); err != nil || string(got) != "before"+string(want) {
			t.Fatalf("%v\ngot  %s\nwant %s", err, got, want)
		}
	})
}

func TestWorkspacesJSONRefusesAYear(t *testing.T) {
	late := rest.Time{Time: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}
	for name, b := range map[string]*WorkspacesBody{
		"created": {Data: []WorkspaceDetail{{CreatedAt: late}}}, "updated": {Data: []WorkspaceDetail{{UpdatedAt: late}}}, "oldest": {Meta: ListMeta{Window: &WindowMeta{Oldest: late}}},
	} {
		if _, err := b.AppendJSON(nil); err == nil {
			t.Errorf("%s: the year 10000 was written", name)
		}
	}
}

func TestSessionJSONRefusesAYear(t *testing.T) {
	b := SessionBody{Data: Session{ExpiresAt: rest.Time{Time: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}}}
	if _, err := b.AppendJSON(nil); err == nil {
		t.Error("the year 10000 was written")
	}
	b.opened = &opened{}
	if text, ok := b.AppendEscaped([]byte("before")); ok || string(text) != "before" {
		t.Errorf("the year 10000 was written: %s", text)
	}
}

// declared is the operations without services, as far as session_get needs them.
func declared(t *testing.T) *operations {
	t.Helper()
	c, err := Catalogue(nil)
	if err != nil {
		t.Fatal(err)
	}
	codes, _ := c.Vocabulary.Bit(scopeCodesRead)
	return &operations{catalogue: c, gates: gatesOf(c), codes: codes}
}

// everyone is callers of every sort that a session tells apart, each with names of its own.
func everyone(v *op.Vocabulary) []*op.Caller {
	sets := []op.ScopeSet{0, ^op.ScopeSet(0), v.Parse("emails:read"), v.Parse("emails:write codes:read"), v.Parse("inboxes:write emails:read rules:write")}
	roles := []op.Role{op.NoRole, op.Viewer, op.Operator, op.Admin, op.Owner}
	var all []*op.Caller
	for _, scopes := range sets {
		for _, role := range roles {
			for _, there := range roles {
				for sort := range 4 {
					n := strconv.Itoa(len(all))
					c := &op.Caller{
						Subject: "user_" + n, Person: sort == 0, Email: n + "@acme.test", Grant: "grant_" + n, Client: "client_" + n, Organization: "org_" + n,
						Role: role, Scopes: scopes, Expires: time.Unix(int64(len(all)), 0), Workspaces: []op.Workspace{{ID: "ws_" + n, Slug: "s" + n, Name: `"` + n, Role: there}},
						Called: func(context.Context) (string, string, error) { return "slug" + n, "<" + n + ">", nil },
					}
					switch sort {
					case 1:
						c.Key, c.KeyName = "key_"+n, "k"+n
					case 2:
						c.Key, c.Within = "key_"+n, []string{"inbox_" + n}
					case 3:
						c.Within, c.Workspaces = []string{}, nil
					}
					all = append(all, c)
				}
			}
		}
	}
	return all
}

func sessionOf(t *testing.T, o *operations, c *op.Caller) string {
	t.Helper()
	out, err := o.sessionGet(op.WithCaller(t.Context(), c, op.SurfaceMCP), nil)
	if err != nil {
		t.Fatal(err)
	}
	sameSession(t, &out.Body)
	got, err := out.Body.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}

// TestSessionIsTheCallersOwn: whoever asked before, and in whatever order, each caller is told what a process that knows nobody yet
// would tell it, and nothing that is kept is changed on the way.
func TestSessionIsTheCallersOwn(t *testing.T) {
	first := declared(t)
	stranger := func() *operations {
		return &operations{catalogue: first.catalogue, gates: first.gates, codes: first.codes}
	}
	all := everyone(first.catalogue.Vocabulary)
	want := make([]string, len(all))
	distinct := map[string]bool{}
	for i, c := range all {
		fresh := stranger()
		out := fresh.open(rightsOf(c))
		want[i] = sessionOf(t, fresh, c)
		distinct[string(out.toolsJSON)+string(out.scopesJSON)] = true
	}
	if len(distinct) < 30 {
		t.Fatalf("only %d of %d callers differ in their rights", len(distinct), len(all))
	}
	warm := stranger()
	r := rand.New(rand.NewPCG(1, 2))
	for range 3 {
		for _, i := range r.Perm(len(all)) {
			if got := sessionOf(t, warm, all[i]); got != want[i] {
				t.Fatalf("caller %d\ngot  %s\nwant %s", i, got, want[i])
			}
		}
	}
	warm = stranger()
	for g := range 4 {
		t.Run("together "+strconv.Itoa(g), func(t *testing.T) {
			t.Parallel()
			for i := g; i < len(all); i += 3 {
				if got := sessionOf(t, warm, all[i]); got != want[i] {
					t.Errorf("caller %d\ngot  %s\nwant %s", i, got, want[i])
				}
			}
		})
	}
}

// TestSessionOfRightsThatDiffer: each part of a caller that its tools depend on is in the key under which they are kept.
func TestSessionOfRightsThatDiffer(t *testing.T) {
	o := declared(t)
	base := op.Caller{Subject: "user_1", Role: op.Owner, Scopes: o.catalogue.Vocabulary.Parse("emails:read inboxes:read")}
	seen := []*opened{o.opened(&base)}
	for name, change := range map[string]func(*op.Caller){
		"scopes":              func(c *op.Caller) { c.Scopes |= o.codes },
		"role":                func(c *op.Caller) { c.Role = op.Viewer },
		"confined":            func(c *op.Caller) { c.Within = []string{} },
		"a key":               func(c *op.Caller) { c.Key = "key_1" },
		"role in a workspace": func(c *op.Caller) { c.Role, c.Workspaces = op.Viewer, []op.Workspace{{Role: op.Admin}} },
	} {
		c := base
		change(&c)
		got := o.opened(&c)
		if slices.ContainsFunc(seen, func(o *opened) bool { return reflect.DeepEqual(o, got) }) {
			t.Errorf("%s: told what another caller is told", name)
		}
		seen = append(seen, got)
	}
	again := base
	again.Subject, again.Grant = "user_2", "grant_2"
	if o.opened(&again) != seen[0] {
		t.Error("equal rights are counted up twice")
	}
}

// TestSessionsKeptAreBounded: callers choose their scopes, and could choose many.
func TestSessionsKeptAreBounded(t *testing.T) {
	o := declared(t)
	for n := range 3 * maxOpened {
		c := &op.Caller{Role: op.Owner, Scopes: op.ScopeSet(n)}
		if got, want := o.opened(c), o.open(rightsOf(c)); !reflect.DeepEqual(got, want) {
			t.Fatalf("scopes %b: %+v", n, got)
		}
		if len(o.openings.made) > maxOpened {
			t.Fatalf("%d are kept", len(o.openings.made))
		}
	}
}

func BenchmarkSession(b *testing.B) {
	c, err := Catalogue(nil)
	if err != nil {
		b.Fatal(err)
	}
	o := &operations{catalogue: c, gates: gatesOf(c)}
	ctx := op.WithCaller(b.Context(), &op.Caller{Subject: "user_1", Person: true, Role: op.Owner, Scopes: ^op.ScopeSet(0), Workspaces: []op.Workspace{{ID: "ws_1", Role: op.Owner}}}, op.SurfaceMCP)
	var text []byte
	b.ReportAllocs()
	for b.Loop() {
		out, err := o.sessionGet(ctx, nil)
		if err != nil {
			b.Fatal(err)
		}
		if text, err = out.Body.AppendJSON(text[:0]); err != nil {
			b.Fatal(err)
		}
	}
	if !json.Valid(text) {
		b.Fatal("not JSON")
	}
}

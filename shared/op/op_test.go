package op_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/op"
)

const ulid = "01J00000000000000000000000"

func TestIDs(t *testing.T) {
	for name, tt := range map[string]struct {
		text     string
		id, slug bool
	}{
		"id":                 {"email_" + ulid, true, false},
		"one letter":         {"e_" + ulid, true, false},
		"longest prefix":     {strings.Repeat("a", 32) + "_" + ulid, true, false},
		"prefix too long":    {strings.Repeat("a", 33) + "_" + ulid, false, false},
		"5,000 characters":   {strings.Repeat("a", 5000) + "_" + ulid, false, false},
		"no prefix":          {"_" + ulid, false, false},
		"no underscore":      {"email" + ulid, false, false},
		"two underscores":    {"e_mail_" + ulid, false, false},
		"capital prefix":     {"Email_" + ulid, false, false},
		"digit in prefix":    {"e1_" + ulid, false, false},
		"short":              {"email_" + ulid[1:], false, false},
		"long":               {"email_" + ulid + "0", false, false},
		"lower case":         {"email_" + strings.ToLower(ulid), false, false},
		"letter I":           {"email_I" + ulid[1:], false, false},
		"letter L":           {"email_L" + ulid[1:], false, false},
		"letter O":           {"email_O" + ulid[1:], false, false},
		"letter U":           {"email_U" + ulid[1:], false, false},
		"slug":               {"sales-2026", false, true},
		"literal segment":    {"wait", false, true},
		"one digit":          {"0", false, true},
		"longest slug":       {strings.Repeat("a", 63), false, true},
		"slug too long":      {strings.Repeat("a", 64), false, false},
		"leading dash":       {"-a", false, false},
		"capital":            {"Sales", false, false},
		"underscore in slug": {"a_b", false, false},
		"empty":              {"", false, false},
		"dot":                {".", false, false},
		"dots":               {"..", false, false},
		"climb":              {"../x", false, false},
		"escaped dot":        {"%2e", false, false},
		"slash":              {"/", false, false},
		"NUL":                {"a\x00", false, false},
		"line break":         {"a\n", false, false},
		"not ASCII":          {"é", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := op.ValidID(tt.text); got != tt.id {
				t.Errorf("ValidID = %t", got)
			}
			if got := op.ValidSlug(tt.text); got != tt.slug {
				t.Errorf("ValidSlug = %t", got)
			}
			if got := op.ValidPathValue(tt.text); got != (tt.id || tt.slug) {
				t.Errorf("ValidPathValue = %t", got)
			}
		})
	}
}

func FuzzID(f *testing.F) {
	for _, seed := range []string{"email_" + ulid, "wait", "..", "%2e", "a/b", "\x00", "-a", "a_" + ulid + "\n"} {
		f.Add(seed)
	}
	id := regexp.MustCompile(`\A[a-z]{1,32}_[0-9A-HJKMNP-TV-Z]{26}\z`)
	slug := regexp.MustCompile(`\A[a-z0-9][a-z0-9-]{0,62}\z`)
	f.Fuzz(func(t *testing.T, s string) {
		if got := op.ValidID(s); got != id.MatchString(s) {
			t.Errorf("ValidID(%q) = %t", s, got)
		}
		if got := op.ValidSlug(s); got != slug.MatchString(s) {
			t.Errorf("ValidSlug(%q) = %t", s, got)
		}
		if op.ValidPathValue(s) && strings.ContainsAny(s, "/.%\x00?# ") {
			t.Errorf("%q may stand in a path", s)
		}
	})
}

func vocabulary(t *testing.T) *op.Vocabulary {
	t.Helper()
	v, err := op.NewVocabulary([]op.ScopeInfo{{Name: "a:read"}, {Name: "a:write"}, {Name: "b:read", Reserved: true}, {Name: "c:write"}})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Clauses: I38
func TestScopes(t *testing.T) {
	v := vocabulary(t)
	for list, want := range map[string]string{
		"": "", "a:read": "a:read", "a:write": "a:read a:write", "c:write": "c:write", "b:read a:read": "a:read b:read", "nonsense a:reads": "",
		"  a:read  a:read ": "a:read", "a:*": "", "A:READ": "",
	} {
		if got := strings.Join(v.Names(v.Parse(list)), " "); got != want {
			t.Errorf("Parse(%q) = %q, want %q", list, got, want)
		}
	}
	if got := strings.Join(v.Advertised(), " "); got != "a:read a:write c:write" {
		t.Errorf("advertised %q", got)
	}
	if _, err := op.NewVocabulary([]op.ScopeInfo{{Name: "x"}, {Name: "x"}}); err == nil {
		t.Error("a scope twice: want an error")
	}
	if _, err := op.NewVocabulary(make([]op.ScopeInfo, 65)); err == nil {
		t.Error("65 scopes: want an error")
	}
}

func TestCatalogueRefuses(t *testing.T) {
	good := op.Spec{Name: "a_get", Method: "GET", Path: "/a/{id}", Title: "t", Description: "d", Scope: "a:read", Role: op.Viewer, Effect: op.Read}
	with := func(change func(*op.Spec)) op.Operation {
		s := good
		change(&s)
		return op.Operation{Spec: s}
	}
	if _, err := op.NewCatalogue(vocabulary(t), []op.Operation{{Spec: good}}); err != nil {
		t.Fatal(err)
	}
	for name, second := range map[string]op.Operation{
		"name twice":                 with(func(s *op.Spec) { s.Path = "/b" }),
		"route twice":                with(func(s *op.Spec) { s.Name = "b_get" }),
		"name":                       with(func(s *op.Spec) { s.Name, s.Path = "B-get", "/b" }),
		"no role":                    with(func(s *op.Spec) { s.Name, s.Path, s.Role = "b_get", "/b", op.NoRole }),
		"no description":             with(func(s *op.Spec) { s.Name, s.Path, s.Description = "b_get", "/b", "" }),
		"unknown scope":              with(func(s *op.Spec) { s.Name, s.Path, s.Scope = "b_get", "/b", "z:read" }),
		"a GET that writes":          with(func(s *op.Spec) { s.Name, s.Path, s.Effect = "b_get", "/b", op.Write }),
		"a PUT that only reads":      with(func(s *op.Spec) { s.Name, s.Path, s.Method = "b_get", "/b", "PUT" }),
		"literal beside a parameter": with(func(s *op.Spec) { s.Name, s.Path = "b_get", "/a/wait" }),
		"other parameter name":       with(func(s *op.Spec) { s.Name, s.Path = "b_get", "/a/{slug}/x" }),
		"destructive, asks nothing":  with(func(s *op.Spec) { s.Name, s.Path, s.Method, s.Effect = "b_delete", "/b", "DELETE", op.Destructive }),
		"path":                       with(func(s *op.Spec) { s.Name, s.Path = "b_get", "b" }),
	} {
		if _, err := op.NewCatalogue(vocabulary(t), []op.Operation{{Spec: good}, second}); err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
}

func TestContext(t *testing.T) {
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, "kept")
	if op.CallerFrom(ctx) != nil || op.SurfaceFrom(ctx) != "" || op.TenantFrom(ctx) != (op.Workspace{}) {
		t.Error("an empty context carries something")
	}
	c := &op.Caller{Subject: "s"}
	ctx = op.WithCaller(ctx, c, op.SurfaceMCP)
	tenant := op.WithTenant(ctx, op.Workspace{ID: "w"}, nil)
	inner, cancel := context.WithCancel(tenant)
	defer cancel()
	if op.CallerFrom(inner) != c || op.SurfaceFrom(inner) != op.SurfaceMCP || op.TenantFrom(inner).ID != "w" || inner.Value(key{}) != "kept" {
		t.Error("the context lost something")
	}
	if op.TenantFrom(ctx) != (op.Workspace{}) {
		t.Error("the parent changed")
	}
	if other := op.WithCaller(inner, nil, op.SurfaceREST); op.CallerFrom(other) != nil || op.TenantFrom(other) != (op.Workspace{}) {
		t.Error("a new caller inherited from the old one")
	}
}

func TestWorkspace(t *testing.T) {
	a, b := op.Workspace{ID: "a"}, op.Workspace{ID: "b"}
	for name, tt := range map[string]struct {
		caller op.Caller
		named  string
		want   string
		kind   apperr.Kind
	}{
		"the only one":          {caller: op.Caller{Workspaces: []op.Workspace{a}}, want: "a"},
		"the default":           {caller: op.Caller{Workspaces: []op.Workspace{a, b}, Default: "b"}, want: "b"},
		"the named":             {caller: op.Caller{Workspaces: []op.Workspace{a, b}, Default: "b"}, named: "a", want: "a"},
		"foreign":               {caller: op.Caller{Workspaces: []op.Workspace{a}}, named: "c", kind: apperr.NotFound},
		"default out of grant":  {caller: op.Caller{Workspaces: []op.Workspace{a}, Default: "c"}, kind: apperr.NotFound},
		"several and no choice": {caller: op.Caller{Workspaces: []op.Workspace{a, b}}, kind: apperr.Invalid},
		"none":                  {caller: op.Caller{}, kind: apperr.Invalid},
	} {
		got, err := tt.caller.Workspace(tt.named)
		if got.ID != tt.want || (tt.want == "" && !apperr.Is(err, tt.kind)) || (tt.want != "" && err != nil) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestRoleNames(t *testing.T) {
	for role, want := range map[op.Role]string{op.NoRole: "none", op.Viewer: "viewer", op.Operator: "operator", op.Admin: "admin", op.Owner: "owner", 99: "none"} {
		if got := role.String(); got != want {
			t.Errorf("%d = %q", role, got)
		}
	}
}

func TestStrong(t *testing.T) {
	v, err := op.NewVocabulary([]op.ScopeInfo{{Name: "a:read"}, {Name: "k:read", Strong: true}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		scope  string
		effect op.Effect
		want   bool
	}{
		{"a:read", op.Read, false}, {"a:read", op.Write, false}, {"", op.Read, false}, {"unknown", op.Write, false},
		{"a:read", op.Destructive, true}, {"", op.Destructive, true}, {"k:read", op.Read, true}, {"k:read", op.Write, true},
	} {
		if got := v.Strong(&op.Operation{Spec: op.Spec{Scope: c.scope, Effect: c.effect}}); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

// TestCallerAgain: the same call with the caller of now.
func TestCallerAgain(t *testing.T) {
	yes, asked := &op.Confirmation{}, &op.Inquiry{}
	ctx := op.WithInquiry(op.WithConfirmation(op.WithCaller(t.Context(), &op.Caller{Subject: "a"}, op.SurfaceMCP), yes), asked)
	ctx = op.WithCallerAgain(ctx, &op.Caller{Subject: "b"})
	if op.CallerFrom(ctx).Subject != "b" || op.SurfaceFrom(ctx) != op.SurfaceMCP || op.ConfirmationFrom(ctx) != yes || op.InquiryFrom(ctx) != asked {
		t.Error("something of the call is gone")
	}
}

type tracer struct{ asked int }

func (t *tracer) Trace(context.Context) op.Trace {
	t.asked++
	return op.Trace{Operation: "things_create", Request: "r"}
}

type declared struct {
	text  string
	asked int
}

func (d *declared) Declared() string {
	d.asked++
	return d.text
}

func TestTraceIsToldWhenAsked(t *testing.T) {
	client, who := &declared{text: "evil\u202e/1\n"}, &tracer{}
	ctx := op.WithClient(t.Context(), &op.Caller{}, op.SurfaceMCP, client)
	traced := op.WithTenant(ctx, op.Workspace{ID: "w"}, who)
	if who.asked+client.asked != 0 {
		t.Error("a call that writes nothing paid for its trace")
	}
	if got, want := op.TraceFrom(traced), (op.Trace{Operation: "things_create", Request: "r", Software: "evil/1"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for name, ctx := range map[string]context.Context{
		"no route": ctx, "not traced": op.WithTenant(ctx, op.Workspace{ID: "w"}, nil), "nothing": t.Context(),
		"another caller": op.WithCaller(traced, &op.Caller{}, op.SurfaceREST),
	} {
		if got := op.TraceFrom(ctx); got != (op.Trace{}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := op.TraceFrom(op.WithTenant(op.WithCaller(t.Context(), &op.Caller{}, op.SurfaceREST), op.Workspace{}, who)); got.Software != "" || got.Request != "r" {
		t.Errorf("a caller without a client: %+v", got)
	}
}

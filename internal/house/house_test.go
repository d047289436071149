package house

import (
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// module parses the whole module once a test.
func module(t *testing.T) (root string, files []*File) {
	t.Helper()
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if root, err = Root(wd); err != nil {
		t.Fatal(err)
	}
	if files, err = Load(root); err != nil {
		t.Fatal(err)
	}
	if len(files) < 10 {
		t.Fatalf("only %d files were found below %s", len(files), root)
	}
	return root, files
}

// TestRules runs every rule over every file.
func TestRules(t *testing.T) {
	root, files := module(t)
	rules := []struct {
		name  string
		where string // a prefix of the paths it is for
		check func(*File) []string
	}{
		{"imports point one way", "", BadImports},
		{"files have a ceiling", "", TooLong},
		{"functions have a ceiling", "", TooLongFunctions},
		{"contexts are handed on, not kept", "", KeptContexts},
		{"no init", "", Inits},
		{"no mutable package variables", "", Globals},
		{"exported names are documented", "shared/", Undocumented},
		{"error text stays in the log", "shared/", LeakedErrors},
		{"no commented-out code", "", DeadCode},
		{"no banners", "", Banners},
		{"a TODO says when it goes", "", OpenTodos},
		{"fuzz targets have seeds", "", func(f *File) []string { return EmptyCorpora(root, f) }},
	}
	for _, rule := range rules {
		t.Run(rule.name, func(t *testing.T) {
			for _, f := range files {
				if !strings.HasPrefix(f.Path, rule.where) {
					continue
				}
				for _, broken := range rule.check(f) {
					t.Error(broken)
				}
			}
		})
	}
}

// TestPackageComments: each package says what it is for in exactly one file.
func TestPackageComments(t *testing.T) {
	_, files := module(t)
	docs := map[string]int{}
	for _, f := range files {
		if f.Test {
			continue
		}
		docs[f.Package()] += 0
		if f.Syntax.Doc != nil && len(f.Syntax.Doc.Text()) > 40 {
			docs[f.Package()]++
		}
	}
	for pkg, n := range docs {
		if n != 1 {
			t.Errorf("%s has %d package comments, want one that says its purpose and what it must not know", pkg, n)
		}
	}
}

// reachable lists the packages that a function links, built as it is shipped.
func reachable(t *testing.T, root, pkg string) []string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(root, pkg)); err != nil {
		t.Fatal(err) // a rule about nothing would pass for ever
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", "lambda.norpc,nethttpomithttp2", "./"+pkg)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0", "GOFLAGS=-mod=readonly")
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v: %s", err, complaint.String())
	}
	return strings.Fields(string(out))
}

// TestReach: what functions/api must not link, each with the cost that was measured.
func TestReach(t *testing.T) {
	root, _ := module(t)
	deps := reachable(t, root, "functions/api")
	forbidden := map[string]string{
		"html/template":                       "2.2 MiB: switches off dead-method removal",
		"text/template":                       "switches off dead-method removal",
		"github.com/alecthomas/kong":          "2.4 MiB: the command line is functions/local's",
		"github.com/aws/aws-sdk-go-v2/config": "0.6 MiB and 0.8 ms of start-up",
		"github.com/jhillyerd/enmime":         "1.6 MiB: the api function reads no mail",
		"github.com/microcosm-cc/bluemonday":  "0.9 MiB: the api function cleans no HTML",
		"github.com/JohannesKaufmann":         "1 MiB: the api function converts no HTML",
		"github.com/emersion/go-msgauth":      "the api function checks no signatures of mail",
		"github.com/emersion/go-smtp":         "the api function speaks no SMTP",
	}
	for _, dep := range deps {
		for prefix, reason := range forbidden {
			if dep == prefix || strings.HasPrefix(dep, prefix+"/") {
				t.Errorf("functions/api reaches %s: %s", dep, reason)
			}
		}
	}
}

// TestReachOfBackground: what the functions behind queues must not link.
func TestReachOfBackground(t *testing.T) {
	root, _ := module(t)
	parser := map[string]string{
		"github.com/jhillyerd/enmime":                         "the accept path reads no mail: what a mail does to a parser must not be able to keep it from being accepted",
		"github.com/buzon-mail/buzon/shared/mail":             "the accept path reads no mail",
		"github.com/microcosm-cc/bluemonday":                  "the accept path cleans no HTML",
		"github.com/JohannesKaufmann":                         "the accept path converts no HTML",
		"github.com/emersion/go-msgauth":                      "SES has checked the signatures",
		"github.com/buzon-mail/buzon/shared/app/web":          "nobody calls it from outside",
		"github.com/buzon-mail/buzon/shared/pipeline/parsing": "the accept path reads no mail",
	}
	for function, forbidden := range map[string]map[string]string{
		"functions/inbound": parser,
		"functions/worker":  {"github.com/buzon-mail/buzon/shared/app/web": "nobody calls it from outside"},
	} {
		forbidden["html/template"] = "it switches off dead-method removal"
		forbidden["text/template"] = "it switches off dead-method removal"
		forbidden["github.com/alecthomas/kong"] = "the command line is functions/local's"
		forbidden["github.com/danielgtaylor/huma"] = "it has no routes"
		forbidden["github.com/aws/aws-sdk-go-v2/config"] = "0.6 MiB and 0.8 ms of start-up"
		forbidden["github.com/emersion/go-smtp"] = "it speaks no SMTP"
		for _, dep := range reachable(t, root, function) {
			for prefix, reason := range forbidden {
				if dep == prefix || strings.HasPrefix(dep, prefix+"/") {
					t.Errorf("%s reaches %s: %s", function, dep, reason)
				}
			}
		}
	}
}

// TestRulesBite runs each rule over code that breaks it and over code that does not.
func TestRulesBite(t *testing.T) {
	tests := []struct {
		name, path, source string
		check              func(*File) []string
		bad                int
	}{
		{"protocol imports the domain", "shared/mcp/a.go", `import _ "github.com/buzon-mail/buzon/shared/inbox"`, BadImports, 1},
		{"domain imports HTTP", "shared/inbox/a.go", `import _ "net/http"`, BadImports, 1},
		{"domain imports a package below HTTP", "shared/inbox/a.go", `import _ "net/http/httptest"`, BadImports, 1},
		{"AWS outside the engines", "shared/pipeline/a.go", `import _ "github.com/aws/aws-sdk-go-v2/service/s3"`, BadImports, 1},
		{"AWS config in an engine", "shared/store/dynamo/a.go", `import _ "github.com/aws/aws-sdk-go-v2/config"`, BadImports, 1},
		{"entry point imports a room", "functions/api/a.go", `import _ "github.com/buzon-mail/buzon/shared/inbox"`, BadImports, 1},
		{"a room imports an entry point", "shared/app/api/a.go", `import _ "github.com/buzon-mail/buzon/functions/api"`, BadImports, 1},
		{"testkit outside tests", "shared/app/a.go", `import _ "github.com/buzon-mail/buzon/shared/testkit"`, BadImports, 1},
		{"front doors outside tests", "shared/app/a.go", `import _ "github.com/buzon-mail/buzon/shared/lambdaedge/gateway"`, BadImports, 1},
		{"front doors in a script", "scripts/a/a.go", `import _ "github.com/buzon-mail/buzon/shared/lambdaedge/gateway"`, BadImports, 0},
		{"a script in what is shipped", "shared/app/a.go", `import _ "github.com/buzon-mail/buzon/scripts/a"`, BadImports, 1},
		{"an engine outside the wiring", "shared/pipeline/a.go", `import _ "github.com/buzon-mail/buzon/shared/blob/dir"`, BadImports, 1},
		{"an interface of an engine", "shared/pipeline/a.go", `import _ "github.com/buzon-mail/buzon/shared/blob"`, BadImports, 0},
		{"log", "shared/mcp/a.go", `import _ "log"`, BadImports, 1},
		{"a tool in what is shipped", "shared/app/a.go", `import _ "github.com/buzon-mail/buzon/internal/house"`, BadImports, 1},
		{"a room that nobody knows", "shared/util/a.go", ``, BadImports, 1},
		{"the arrow of the design", "shared/optool/a.go", `import _ "github.com/buzon-mail/buzon/shared/mcp"`, BadImports, 0},
		{"AWS in an engine", "shared/store/dynamo/a.go", `import _ "github.com/aws/aws-sdk-go-v2/service/dynamodb"`, BadImports, 0},
		{"a test may join rooms", "shared/mcp/a_test.go", `import _ "github.com/buzon-mail/buzon/shared/inbox"`, BadImports, 0},
		{"inside a room", "shared/mail/header/a.go", `import _ "github.com/buzon-mail/buzon/shared/mail/clean"`, BadImports, 0},

		{"a module that is in no list", "shared/inbox/a.go", `import _ "github.com/stranger/thing"`, BadImports, 1},
		{"a file in the domain", "shared/inbox/a.go", `import _ "os"`, BadImports, 1},
		{"bbolt outside its engine", "shared/queue/embedded/a.go", `import _ "go.etcd.io/bbolt"`, BadImports, 1},
		{"the standard library", "shared/inbox/a.go", `import _ "strings"`, BadImports, 0},

		{"function of 61 lines", "shared/a/a.go", "func f() {\n" + strings.Repeat("\tg()\n", maxFunction-1) + "}", TooLongFunctions, 1},
		{"function of 60 lines", "shared/a/a.go", "func f() {\n" + strings.Repeat("\tg()\n", maxFunction-2) + "}", TooLongFunctions, 0},
		{"long test function", "shared/a/a_test.go", "func f() {\n" + strings.Repeat("\tg()\n", maxFunction) + "}", TooLongFunctions, 0},

		{"context in a struct", "shared/a/a.go", "type T struct{ ctx context.Context }", KeptContexts, 1},
		{"context in a variable", "shared/a/a.go", "var ctx context.Context", KeptContexts, 1},
		{"context in second place", "shared/a/a.go", "func f(s string, ctx context.Context) {}", KeptContexts, 1},
		{"context with a reason", "shared/a/a.go", "type T struct {\n\tctx context.Context //nolint:containedctx // lives as long as a request\n}", KeptContexts, 0},
		{"a context of its own", "shared/a/a.go", "type T struct{ context.Context }", KeptContexts, 0},
		{"context first", "shared/a/a.go", "func f(ctx context.Context, s string) {}", KeptContexts, 0},

		{"TODO for ever", "shared/a/a.go", "// TODO: speed\nfunc f() {}", OpenTodos, 1},
		{"FIXME", "shared/a/a.go", "func f() {\n\tg() // FIXME\n}", OpenTodos, 1},
		{"TODO with an end", "shared/a/a.go", "// TODO: goes when go-smtp tells the two apart\nfunc f() {}", OpenTodos, 0},

		{"init", "shared/a/a.go", `func init() {}`, Inits, 1},
		{"method named init", "shared/a/a.go", `type T struct{}; func (T) init() {}`, Inits, 0},

		{"map", "shared/a/a.go", `var m = map[string]int{}`, Globals, 1},
		{"pool", "shared/a/a.go", "// pool is shared.\nvar pool sync.Pool", Globals, 1},
		{"error that is no sentinel", "shared/a/a.go", `var errLast error`, Globals, 1},
		{"group", "shared/a/a.go", "var (\n\tErrA = errors.New(\"a\")\n\tcount int\n)", Globals, 1},
		{"comment without a reason", "shared/a/a.go", "var m = 1 //nolint:gochecknoglobals", Globals, 1},
		{"sentinel", "shared/a/a.go", "var ErrA = errors.New(\"a\")", Globals, 0},
		{"assertion", "shared/a/a.go", "var _ I = T{}", Globals, 0},
		{"embed", "shared/a/a.go", "//go:embed x.json\nvar x []byte", Globals, 0},
		{"table", "shared/a/a.go", "//nolint:gochecknoglobals // constant table\nvar t = [2]int{1, 2}", Globals, 0},
		{"table, comment behind", "shared/a/a.go", "var t = map[int]int{ //nolint:gochecknoglobals // constant table\n\t1: 2,\n}", Globals, 0},
		{"test", "shared/a/a_test.go", `var update bool`, Globals, 0},

		{"function", "shared/a/a.go", `func F() {}`, Undocumented, 1},
		{"method of an exported type", "shared/a/a.go", "// T is.\ntype T[K any] struct{}\nfunc (*T[K]) M() {}", Undocumented, 1},
		{"constant", "shared/a/a.go", `const C = 1`, Undocumented, 1},
		{"type", "shared/a/a.go", `type T struct{}`, Undocumented, 1},
		{"hidden", "shared/a/a.go", `type t struct{}; func (t) M() {}; func f() {}`, Undocumented, 0},
		{"group with a comment", "shared/a/a.go", "// The kinds.\nconst (\n\tA = 1\n\tB = 2\n)", Undocumented, 0},

		{"http.Error", "shared/a/a.go", `func f() { http.Error(w, err.Error(), 500) }`, LeakedErrors, 1},
		{"Write", "shared/a/a.go", `func f() { w.Write([]byte(err.Error())) }`, LeakedErrors, 1},
		{"public text", "shared/a/a.go", `func f() { return &apperr.Error{Public: "x: " + err.Error()} }`, LeakedErrors, 1},
		{"formatted", "shared/a/a.go", `func f() { http.Error(w, fmt.Sprintf("x: %v", err), 500) }`, LeakedErrors, 1},
		{"printed", "shared/a/a.go", `func f() { fmt.Fprintf(w, "x: %v", err) }`, LeakedErrors, 1},
		{"public text, later", "shared/a/a.go", `func f() { e.Public = err.Error() }`, LeakedErrors, 1},
		{"public text with a reason", "shared/a/a.go", "func f() {\n\te.Public = err.Error() //nolint:leakederror // the owner's own terminal\n}", LeakedErrors, 0},
		{"log", "shared/a/a.go", `func f() { log.Info("x", "error", err.Error()) }`, LeakedErrors, 0},
		{"wrapped", "shared/a/a.go", `func f() { return fmt.Errorf("x: %w", err) }`, LeakedErrors, 0},

		{"statement", "shared/a/a.go", "func f() {\n\t// x := g()\n}", DeadCode, 1},
		{"block", "shared/a/a.go", "func f() {\n\t// if x {\n\t// \treturn\n\t// }\n}", DeadCode, 1},
		{"function in a comment", "shared/a/a.go", "// func f() {\n// \treturn\n// }\n", DeadCode, 1},
		{"call", "shared/a/a.go", "func f() {\n\t/* g(1) */\n}", DeadCode, 1},
		{"prose", "shared/a/a.go", "func f() {\n\t// once (see g)\n\t// return nothing\n\t// Note: it holds\n\t// x = 1 here\n}", DeadCode, 0},
		{"one word", "shared/a/a.go", "func f() {\n\t// done\n}", DeadCode, 0},
		{"example", "shared/a/a.go", "// F does:\n//\n//\tx := F()\nfunc F() {}", DeadCode, 0},
		{"directive", "shared/a/a.go", "//go:generate go run ./x\nfunc f() {}", DeadCode, 0},

		{"line of hyphens", "shared/a/a.go", "// ------------\nfunc f() {}", Banners, 1},
		{"list item", "shared/a/a.go", "// - one\nfunc f() {}", Banners, 0},

		{"no seed", "shared/a/a_test.go", `func FuzzX(f *testing.F) { f.Fuzz(func(*testing.T, string) {}) }`, corpora, 1},
		{"seed", "shared/a/a_test.go", `func FuzzX(f *testing.F) { f.Add("x"); f.Fuzz(func(*testing.T, string) {}) }`, corpora, 0},
		{"seed by a helper", "shared/a/a_test.go", `func FuzzX(f *testing.F) { addSeeds(f); f.Fuzz(func(*testing.T, string) {}) }`, corpora, 0},

		{"long", "shared/a/a.go", strings.Repeat("\n", maxLines), TooLong, 1},
		{"long test", "shared/a/a_test.go", strings.Repeat("\n", maxTestLines), TooLong, 1},
		{"test of 600 lines", "shared/a/a_test.go", strings.Repeat("\n", 600), TooLong, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, err := Parse(token.NewFileSet(), tt.path, []byte("package a\n\n"+tt.source+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			if got := tt.check(f); len(got) != tt.bad {
				t.Errorf("complaints = %q, want %d", got, tt.bad)
			}
		})
	}
}

func corpora(f *File) []string { return EmptyCorpora("/nowhere", f) }

// TestTable: every arrow leads to a room that has arrows of its own.
func TestTable(t *testing.T) {
	for name, r := range arrows {
		for to, reason := range r.may {
			if _, ok := arrows[to]; !ok && to != anything {
				t.Errorf("%s may import %s, which is no room", name, to)
			}
			if reason == "" {
				t.Errorf("%s may import %s for no reason", name, to)
			}
		}
		if r.why == "" {
			t.Errorf("%s has no reason", name)
		}
	}
	for prefix, r := range libraries {
		if r.why == "" {
			t.Errorf("library %s has no reason", prefix)
		}
	}
}

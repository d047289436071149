package smtpd

import (
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

// The arrows: this room speaks SMTP to whoever accepts mail, and could be put before another store unchanged.
func TestImports(t *testing.T) {
	allowed := map[string]bool{"apperr": true, "inbox": true}
	const module = "github.com/buzon-mail/buzon/shared/"
	for name, path := range imports(t) {
		room, ours := strings.CutPrefix(path, module)
		switch {
		case ours && !allowed[room]:
			t.Errorf("%s imports %s: storage, transport and protocol are wired in app", name, path)
		case path == "net/http" || strings.HasPrefix(path, "github.com/aws/"):
			t.Errorf("%s imports %s: SMTP only", name, path)
		}
	}
}

func imports(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range parsed.Imports {
			path, _ := strconv.Unquote(i.Path.Value)
			out[f.Name()+" "+path] = path
		}
	}
	if len(out) == 0 {
		t.Fatal("no imports found: the test looks in the wrong place")
	}
	return out
}

package inbox_test

import (
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// The domain depends on nothing that could tie it to a door or to an engine.
func TestImports(t *testing.T) {
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
			path := strings.Trim(i.Path.Value, `"`)
			if path == "net/http" || strings.Contains(path, ".") && path != "github.com/buzon-mail/buzon/shared/apperr" {
				t.Errorf("%s imports %s: the domain knows apperr and the standard library", f.Name(), path)
			}
		}
	}
}

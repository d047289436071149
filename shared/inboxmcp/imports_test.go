package inboxmcp_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestImports keeps the arrows between rooms: what is listed is all that this room may know of the module.
func TestImports(t *testing.T) {
	allowed := map[string]string{
		"github.com/buzon-mail/buzon/shared/apperr": "the vocabulary of failures",
		"github.com/buzon-mail/buzon/shared/mcp":    "what is offered",
		"github.com/buzon-mail/buzon/shared/inbox":  "statuses and limits; its services would be a second way to the data",
	}
	files, err := fs.Glob(os.DirFS("."), "*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			first, _, _ := strings.Cut(path, "/")
			if _, ok := allowed[path]; !ok && (strings.Contains(first, ".") || path == "net/http") {
				t.Errorf("%s imports %s", name, path)
			}
		}
	}
}

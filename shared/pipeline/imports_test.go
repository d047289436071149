package pipeline

import (
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

// The arrows: the pipeline asks for storage through its own interfaces and those of blob and queue, and is called by whoever
// has a mail. The parser is behind pipeline/reading: who only accepts mail links none.
func TestImports(t *testing.T) {
	const module = "github.com/buzon-mail/buzon/shared/"
	allowed := map[string]bool{"apperr": true, "inbox": true, "pipeline/reading": true, "blob": true, "queue": true}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
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
			seen++
			room, ours := strings.CutPrefix(path, module)
			switch {
			case ours && !allowed[room]:
				t.Errorf("%s imports %s: engines, transports and the store are wired in app", f.Name(), path)
			case path == "net/http", path == "net", strings.HasPrefix(path, "github.com/aws/"):
				t.Errorf("%s imports %s: mail comes through Intake, whatever brought it", f.Name(), path)
			}
		}
	}
	if seen == 0 {
		t.Fatal("no imports found: the test looks in the wrong place")
	}
}

package mail

import (
	goparser "go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// forbiddenImports are what this room and its subpackages must not know, with the reason.
//
//nolint:gochecknoglobals // constant table
var forbiddenImports = map[string]string{
	"net/http":                            "pure: bytes in, a value out",
	"os":                                  "no files",
	"github.com/aws":                      "no engine",
	"github.com/jhillyerd":                "its time doubles per unclosed multipart; our own walker replaces it",
	"golang.org/x/net/html/atom":          "net/html is used for its tokenizer only",
	"github.com/buzon-mail/buzon/shared/": "only this room: it must not know the inbox, a store or a transport",
}

func TestImports(t *testing.T) {
	checked := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := goparser.ParseFile(token.NewFileSet(), path, nil, goparser.ImportsOnly)
		if err != nil {
			return err
		}
		checked++
		for _, spec := range f.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if strings.HasPrefix(name, "github.com/buzon-mail/buzon/shared/mail") {
				continue
			}
			for bad, why := range forbiddenImports {
				if name == bad || strings.HasPrefix(name, strings.TrimSuffix(bad, "/")+"/") {
					t.Errorf("%s imports %s: %s", path, name, why)
				}
			}
		}
		return nil
	})
	if err != nil || checked < 15 {
		t.Errorf("%d files checked, %v", checked, err)
	}
}

package house_test

import (
	"go/ast"
	"go/token"
	"os"
	"strconv"
	"testing"

	"github.com/buzon-mail/buzon/internal/house"
	"github.com/buzon-mail/buzon/shared/app/jsonlog"
)

// TestLoggedFieldsAreListed: the logger leaves out what is not on its list, so a call that names another field says less than its author
// thinks. Whoever adds a field adds it there, where a reviewer sees what goes into the log.
func TestLoggedFieldsAreListed(t *testing.T) {
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	root, err := house.Root(wd)
	if err != nil {
		t.Fatal(err)
	}
	files, err := house.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	makers := map[string]bool{"String": true, "Int": true, "Int64": true, "Uint64": true, "Bool": true, "Any": true, "Duration": true, "Float64": true, "Time": true, "Group": true}
	seen := 0
	for _, f := range files {
		if f.Test || f.Room() == "internal" || f.Room() == "scripts" || f.Room() == "testkit" {
			continue
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			maker, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !makers[maker.Sel.Name] {
				return true
			}
			if pkg, ok := maker.X.(*ast.Ident); !ok || pkg.Name != "slog" {
				return true
			}
			name, ok := call.Args[0].(*ast.BasicLit)
			if !ok || name.Kind != token.STRING {
				return true // a constant: the room's own test sees its lines
			}
			seen++
			if text, _ := strconv.Unquote(name.Value); !jsonlog.Allowed(text) {
				t.Errorf("%s logs %s, which shared/app/jsonlog/fields.go does not list", f.Path, name.Value)
			}
			return true
		})
	}
	if seen < 50 {
		t.Errorf("only %d fields were found", seen)
	}
}

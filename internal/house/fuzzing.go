package house

import (
	"go/ast"
	"os"
	"path/filepath"
	"strings"
)

// EmptyCorpora lists fuzz targets without a seed: a run of `go test` would execute none of their code, and a corpus
// directory that moved away would go unnoticed.
func EmptyCorpora(root string, f *File) []string {
	if !f.Test {
		return nil
	}
	var bad []string
	for _, d := range f.Syntax.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Fuzz") || fn.Body == nil {
			continue
		}
		if callsAdd(fn) {
			continue
		}
		stored, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(f.Package()), "testdata", "fuzz", fn.Name.Name))
		if err != nil || len(stored) == 0 {
			bad = append(bad, f.at(fn.Pos())+": "+fn.Name.Name+" has no seed (f.Add or testdata/fuzz)")
		}
	}
	return bad
}

// callsAdd looks for f.Add in the target, or for a helper that is handed f and adds.
func callsAdd(fn *ast.FuncDecl) (found bool) {
	if fn.Type.Params == nil || len(fn.Type.Params.List) != 1 || len(fn.Type.Params.List[0].Names) != 1 {
		return false
	}
	f := fn.Type.Params.List[0].Names[0].Name
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if exprText(call.Fun) == f+".Add" {
			found = true
		}
		for _, a := range call.Args {
			if id, ok := a.(*ast.Ident); ok && id.Name == f {
				if name := strings.ToLower(exprText(call.Fun)); strings.Contains(name, "add") || strings.Contains(name, "seed") {
					found = true
				}
			}
		}
		return !found
	})
	return found
}

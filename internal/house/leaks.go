package house

import (
	"go/ast"
	"slices"
	"strings"
)

// LeakedErrors lists places where the text of an error is put where a caller reads: an argument of http.Error, of a Write or
// of a Fprint, or the public text of a problem. That text is for logs: it names files, hosts and queries. A line that means
// it says why behind //nolint:leakederror.
func LeakedErrors(f *File) []string {
	if f.Test {
		return nil
	}
	var bad []string
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		for _, e := range shown(n) {
			if textOfError(e) && !f.excused(e.Pos(), "leakederror") {
				bad = append(bad, f.at(e.Pos())+": the text of an error reaches a caller")
			}
		}
		return true
	})
	return bad
}

// shown are the expressions of a node that a caller gets to read.
func shown(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.CallExpr:
		name := exprText(n.Fun)
		if name == "http.Error" || name == "apperr.New" || strings.HasSuffix(name, ".Write") || strings.HasPrefix(name, "fmt.Fprint") {
			return n.Args
		}
	case *ast.KeyValueExpr:
		if k, ok := n.Key.(*ast.Ident); ok && public(k.Name) {
			return []ast.Expr{n.Value}
		}
	case *ast.AssignStmt:
		var list []ast.Expr
		for i, left := range n.Lhs {
			if s, ok := left.(*ast.SelectorExpr); ok && public(s.Sel.Name) && i < len(n.Rhs) {
				list = append(list, n.Rhs[i])
			}
		}
		return list
	}
	return nil
}

func public(field string) bool { return slices.Contains([]string{"Public", "Detail", "Fixes"}, field) }

// textOfError finds err.Error(), and err itself where it is formatted.
func textOfError(e ast.Expr) (found bool) {
	if id, ok := e.(*ast.Ident); ok {
		return id.Name == "err"
	}
	ast.Inspect(e, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if s, ok := call.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Error" && len(call.Args) == 0 {
			found = true
		}
		if strings.HasPrefix(exprText(call.Fun), "fmt.Sprint") {
			found = found || slices.ContainsFunc(call.Args, func(a ast.Expr) bool { return exprText(a) == "err" })
		}
		return !found
	})
	return found
}

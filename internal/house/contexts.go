package house

import (
	"go/ast"
	"go/token"
)

// KeptContexts lists contexts that are kept or come late: a field or a variable outlives the call that the context belongs
// to, and its deadline and caller with it. Embedding one makes a context of its own and is none of this. A field that means
// it says why behind //nolint:containedctx.
func KeptContexts(f *File) []string {
	if f.Test {
		return nil
	}
	var bad []string
	miss := func(p token.Pos, what string) {
		if !f.excused(p, "containedctx") {
			bad = append(bad, f.at(p)+": "+what)
		}
	}
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StructType:
			for _, field := range n.Fields.List {
				if isContext(field.Type) && len(field.Names) > 0 {
					miss(field.Pos(), "a context in a struct")
				}
			}
		case *ast.FuncDecl:
			late(n.Type, miss)
		case *ast.FuncLit:
			late(n.Type, miss)
		case *ast.InterfaceType:
			for _, method := range n.Methods.List {
				if t, ok := method.Type.(*ast.FuncType); ok {
					late(t, miss)
				}
			}
		}
		return true
	})
	for _, d := range f.Syntax.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
			for _, s := range g.Specs {
				if v, ok := s.(*ast.ValueSpec); ok && isContext(v.Type) {
					miss(v.Pos(), "a context in a variable")
				}
			}
		}
	}
	return bad
}

// late is not asked of function types in general: a method's receiver comes first in its method expression.
func late(t *ast.FuncType, miss func(token.Pos, string)) {
	for i, param := range t.Params.List {
		if isContext(param.Type) && i > 0 {
			miss(param.Pos(), "a context that is not the first parameter")
		}
	}
}

func isContext(e ast.Expr) bool { return e != nil && exprText(e) == "context.Context" }

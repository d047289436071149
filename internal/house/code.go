package house

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
)

const (
	maxLines     = 500
	maxTestLines = 1000
)

// TooLong names a file over the ceiling of STYLE.md section 2.
func TooLong(f *File) []string {
	limit := maxLines
	if f.Test {
		limit = maxTestLines
	}
	if f.Lines <= limit {
		return nil
	}
	return []string{fmt.Sprintf("%s has %d lines, at most %d: split it by what it holds", f.Path, f.Lines, limit)}
}

// Inits lists init functions: code that runs because it is linked runs in every function, before any configuration.
func Inits(f *File) []string {
	var bad []string
	for _, d := range f.Syntax.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" && !f.Test {
			bad = append(bad, f.at(fn.Pos())+": init")
		}
	}
	return bad
}

// Globals lists package variables that could change: state that two requests, or two tests, would share. Constant tables
// carry a comment that says so; error sentinels, embedded files and compile-time assertions need none.
func Globals(f *File) []string {
	if f.Test {
		return nil
	}
	var bad []string
	for _, d := range f.Syntax.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec) //nolint:errcheck,forcetypeassert // a var declaration holds nothing else
			if allowed(f, g, v) {
				continue
			}
			bad = append(bad, fmt.Sprintf("%s: variable %s", f.at(v.Pos()), v.Names[0].Name))
		}
	}
	return bad
}

func allowed(f *File, g *ast.GenDecl, v *ast.ValueSpec) bool {
	if v.Names[0].Name == "_" || isSentinel(v) {
		return true
	}
	for _, c := range []*ast.CommentGroup{g.Doc, v.Doc, v.Comment} {
		if c == nil {
			continue
		}
		for _, line := range c.List {
			if strings.HasPrefix(line.Text, "//go:embed ") || strings.HasPrefix(line.Text, "//nolint:gochecknoglobals // ") {
				return true
			}
		}
	}
	return sameLine(f, v, "//nolint:gochecknoglobals // ")
}

// sameLine finds a comment behind the first line of a declaration, which the parser does not attach to it.
func sameLine(f *File, v *ast.ValueSpec, prefix string) bool {
	line := f.Set.Position(v.Pos()).Line
	for _, group := range f.Syntax.Comments {
		for _, c := range group.List {
			if f.Set.Position(c.Pos()).Line == line && strings.HasPrefix(c.Text, prefix) {
				return true
			}
		}
	}
	return false
}

// isSentinel is var ErrX = errors.New(...), or fmt.Errorf, with every name of the declaration an error.
func isSentinel(v *ast.ValueSpec) bool {
	if len(v.Values) != len(v.Names) {
		return false
	}
	for i, name := range v.Names {
		call, ok := v.Values[i].(*ast.CallExpr)
		if !ok || !strings.HasPrefix(strings.ToLower(name.Name), "err") {
			return false
		}
		if made := exprText(call.Fun); made != "errors.New" && made != "fmt.Errorf" {
			return false
		}
	}
	return true
}

// exprText is the text of a name or of a selector of a name; empty for anything else.
func exprText(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		if x := exprText(e.X); x != "" {
			return x + "." + e.Sel.Name
		}
	}
	return ""
}

// Undocumented lists exported names without a comment.
func Undocumented(f *File) []string {
	if f.Test {
		return nil
	}
	var bad []string
	miss := func(p token.Pos, name string) { bad = append(bad, f.at(p)+": "+name+" has no comment") }
	for _, d := range f.Syntax.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
				miss(d.Pos(), d.Name.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				undocumentedSpec(d, s, miss)
			}
		}
	}
	return bad
}

// exportedReceiver reports whether a function can be seen from outside; methods of hidden types can't.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return false
		}
	}
}

// undocumentedSpec accepts one comment for a group of constants or variables.
func undocumentedSpec(d *ast.GenDecl, s ast.Spec, miss func(token.Pos, string)) {
	switch s := s.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() && s.Doc == nil && s.Comment == nil && d.Doc == nil {
			miss(s.Pos(), s.Name.Name)
		}
	case *ast.ValueSpec:
		for _, n := range s.Names {
			if n.IsExported() && s.Doc == nil && s.Comment == nil && d.Doc == nil {
				miss(n.Pos(), n.Name)
			}
		}
	}
}

// LeakedErrors lists places where the text of an error is put where a caller reads: err.Error() as an argument of
// http.Error or of a Write, or as the public text of a problem. That text is for logs: it names files, hosts and queries.
func LeakedErrors(f *File) []string {
	if f.Test {
		return nil
	}
	var bad []string
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		var suspects []ast.Expr
		switch n := n.(type) {
		case *ast.CallExpr:
			if name := exprText(n.Fun); name == "http.Error" || name == "apperr.New" || strings.HasSuffix(name, ".Write") {
				suspects = n.Args
			}
		case *ast.KeyValueExpr:
			if k, ok := n.Key.(*ast.Ident); ok && (k.Name == "Public" || k.Name == "Detail" || k.Name == "Fixes") {
				suspects = []ast.Expr{n.Value}
			}
		}
		for _, e := range suspects {
			if callsError(e) {
				bad = append(bad, f.at(e.Pos())+": the text of an error reaches a caller")
			}
		}
		return true
	})
	return bad
}

func callsError(e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 0 {
			if s, ok := call.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Error" {
				found = true
			}
		}
		return !found
	})
	return found
}

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
	maxFunction  = 60
)

// TooLong names a file over the ceiling.
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

// TooLongFunctions lists functions over the ceiling; tables of test cases may be as long as they need, in suites too.
func TooLongFunctions(f *File) []string {
	if f.Test || strings.HasSuffix(f.Package(), "test") {
		return nil
	}
	var bad []string
	for _, d := range f.Syntax.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if n := f.Set.Position(fn.End()).Line - f.Set.Position(fn.Pos()).Line + 1; n > maxFunction {
			bad = append(bad, fmt.Sprintf("%s: %s has %d lines, at most %d: split it", f.at(fn.Pos()), fn.Name.Name, n, maxFunction))
		}
	}
	return bad
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
	return f.excused(v.Pos(), "gochecknoglobals")
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

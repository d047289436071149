package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
)

// DeadCode lists comments that hold code. It errs towards silence: a whole comment must read as Go statements, at least one
// of which does something, and examples that are indented, as gofmt leaves them in documentation, don't count.
func DeadCode(f *File) []string {
	var bad []string
	for _, group := range f.Syntax.Comments {
		if text, ok := plainText(group); ok && isCode(text) {
			bad = append(bad, f.at(group.Pos())+": code in a comment")
		}
	}
	return bad
}

// plainText joins the lines of a comment; ok is false when it is documentation with an example, or a directive.
func plainText(group *ast.CommentGroup) (text string, ok bool) {
	var lines []string
	for _, c := range group.List {
		body, line := strings.CutPrefix(c.Text, "//")
		if !line {
			body = strings.TrimSuffix(strings.TrimPrefix(c.Text, "/*"), "*/")
		}
		if line && body != "" && body[0] != ' ' && body[0] != '\t' {
			return "", false // //go:embed, //nolint
		}
		// One blank precedes text; a tab or more blanks is an example, unless everything is indented, as dead code is.
		lines = append(lines, strings.TrimPrefix(body, " "))
	}
	first := strings.TrimSpace(lines[0])
	for _, l := range lines[1:] {
		if strings.HasPrefix(l, "\t") && !strings.HasSuffix(first, "{") && !strings.HasSuffix(first, "(") {
			return "", false
		}
	}
	return strings.Join(lines, "\n"), true
}

func isCode(text string) bool {
	if decls, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+text, parser.SkipObjectResolution); err == nil && len(decls.Decls) > 0 {
		return true
	}
	file, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc _() {\n"+text+"\n}", parser.SkipObjectResolution)
	if err != nil || len(file.Decls) != 1 {
		return false
	}
	fn, ok := file.Decls[0].(*ast.FuncDecl)
	if !ok {
		return false
	}
	for _, s := range fn.Body.List {
		if acts(s) {
			return true
		}
	}
	return false
}

// acts tells statements that people don't write as prose. A single name, a label ("Note: ...") or a bare keyword is prose.
func acts(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.AssignStmt:
		return s.Tok == token.DEFINE
	case *ast.ExprStmt:
		_, call := s.X.(*ast.CallExpr)
		return call
	case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.DeclStmt, *ast.DeferStmt, *ast.GoStmt, *ast.IncDecStmt:
		return true
	case *ast.ReturnStmt:
		return len(s.Results) > 1
	}
	return false
}

// Banners lists comments that only draw a line.
func Banners(f *File) []string {
	var bad []string
	for _, group := range f.Syntax.Comments {
		for _, c := range group.List {
			text := strings.TrimSpace(strings.Trim(c.Text, "/*"))
			if len(text) >= 4 && strings.Trim(text, "-=#*~_") == "" {
				bad = append(bad, f.at(c.Pos())+": a banner")
			}
		}
	}
	return bad
}

// OpenTodos lists what was left for later without saying when later is.
func OpenTodos(f *File) []string {
	var bad []string
	for _, group := range f.Syntax.Comments {
		for _, c := range group.List {
			if !leftOpen.MatchString(c.Text) {
				continue
			}
			if !strings.Contains(c.Text, "TODO") || !ends.MatchString(c.Text) {
				bad = append(bad, f.at(c.Pos())+": a TODO says when it goes: \"TODO: goes when ...\"")
			}
		}
	}
	return bad
}

//nolint:gochecknoglobals // constant tables
var (
	leftOpen = regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b`)
	ends     = regexp.MustCompile(`\b(when|until|once|as soon as)\b`)
)

// Package house holds the rules of this repository that a machine can check: which room may import which, what must be
// documented, what must not exist. The checks are functions over parsed files, so that each is itself tested on code that
// breaks it; the tests of this package run them over the whole module, and so fail `go test ./...`. It knows the names of the
// rooms and nothing of what they do.
package house

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Module is the import path of this module.
const Module = "github.com/buzon-mail/buzon"

// File is one parsed file of the module.
type File struct {
	Path   string // relative to the root, with slashes
	Test   bool
	Lines  int
	Syntax *ast.File
	Set    *token.FileSet
	Source []byte
}

// Package is the directory of the file, relative to the root.
func (f *File) Package() string {
	if i := strings.LastIndexByte(f.Path, '/'); i >= 0 {
		return f.Path[:i]
	}
	return "."
}

// Room is the part of the module that a file belongs to: shared/store/embedded is of room store, functions/api is of
// functions, cmd or internal stand for themselves.
func (f *File) Room() string {
	parts := strings.Split(f.Path, "/")
	if parts[0] == "shared" && len(parts) > 2 {
		return parts[1]
	}
	return parts[0]
}

// Imports lists the import paths of a file.
func (f *File) Imports() []string {
	var list []string
	for _, i := range f.Syntax.Imports {
		list = append(list, strings.Trim(i.Path.Value, `"`))
	}
	return list
}

// at is a position as a reader finds it.
func (f *File) at(p token.Pos) string { return fmt.Sprintf("%s:%d", f.Path, f.Set.Position(p).Line) }

// excused reports whether the line of a position says why a rule does not hold there: //nolint:NAME // reason. The parser
// attaches no comment to the first line of a longer declaration, so all are looked at.
func (f *File) excused(p token.Pos, name string) bool {
	line := f.Set.Position(p).Line
	for _, group := range f.Syntax.Comments {
		for _, c := range group.List {
			if reason, ok := strings.CutPrefix(c.Text, "//nolint:"+name+" // "); ok && reason != "" && f.Set.Position(c.Pos()).Line == line {
				return true
			}
		}
	}
	return false
}

// Root finds the directory of the module from a directory in it.
func Root(dir string) (string, error) {
	for {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod")) //nolint:gosec // walks up from the test's own directory
		if err == nil && strings.HasPrefix(string(mod), "module "+Module+"\n") {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("house: no go.mod of %s above", Module)
		}
		dir = up
	}
}

// Load parses every Go file of the module that people write: not of modules inside it, not what is generated.
func Load(root string) ([]*File, error) {
	var files []*File
	set := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skip(root, path, d)
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return fmt.Errorf("house: %w", err)
		}
		source, err := os.ReadFile(path) //nolint:gosec // a file of the module
		if err != nil {
			return fmt.Errorf("house: read %s: %w", rel, err)
		}
		f, err := Parse(set, filepath.ToSlash(rel), source)
		if err != nil {
			return err
		}
		if !ast.IsGenerated(f.Syntax) {
			files = append(files, f)
		}
		return nil
	})
	return files, err
}

func skip(root, path string, d fs.DirEntry) error {
	if path == root {
		return nil
	}
	if strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"testdata", "vendor", "dist"}, d.Name()) {
		return filepath.SkipDir
	}
	if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
		return filepath.SkipDir
	}
	return nil
}

// Parse reads one file.
func Parse(set *token.FileSet, path string, source []byte) (*File, error) {
	syntax, err := parser.ParseFile(set, path, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("house: %w", err)
	}
	return &File{
		Path: path, Test: strings.HasSuffix(path, "_test.go"), Lines: strings.Count(string(source), "\n"),
		Syntax: syntax, Set: set, Source: source,
	}, nil
}

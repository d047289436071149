package inboxmcp_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxmcp"
	"github.com/buzon-mail/buzon/shared/inboxops"
	"github.com/buzon-mail/buzon/shared/mcp"
	"github.com/buzon-mail/buzon/shared/pipeline"
	"github.com/buzon-mail/buzon/shared/rest"
)

func (w *world) document(name string, v any) {
	w.Helper()
	text, _, _ := w.content("scopeless", modern, "buzon://inbox/"+name)
	w.must(json.Unmarshal([]byte(text), v))
}

func TestStatuses(t *testing.T) {
	var v struct {
		Data struct {
			Statuses []struct {
				Status  inbox.Status
				Meaning string
			}
		}
	}
	newWorld(t).document("statuses", &v)
	var got []inbox.Status
	for _, s := range v.Data.Statuses {
		got = append(got, s.Status)
		if s.Meaning == "" {
			t.Errorf("%s has no meaning", s.Status)
		}
	}
	if !slices.Equal(got, inbox.Statuses()) {
		t.Errorf("statuses %v", got)
	}
}

// The figures are those of the rooms that enforce them.
func TestLimits(t *testing.T) {
	w := newWorld(t)
	var v struct {
		Data struct {
			Requests struct {
				PerMinute *int `json:"per_minute"`
				Outward   *int `json:"outward_per_minute"`
				Body      int  `json:"body_bytes"`
			}
			Lists struct {
				Max   int `json:"limit_max"`
				Hours int `json:"cursor_hours"`
			}
			Texts struct {
				Max int `json:"max_chars_max"`
			}
			Emails     struct{ Bytes, Labels int }
			Restorable int `json:"restorable_days"`
			Download   int `json:"download_url_seconds"`
		}
	}
	w.document("limits", &v)
	d := v.Data
	if d.Requests.PerMinute == nil || *d.Requests.PerMinute != 600 || d.Requests.Outward != nil {
		t.Errorf("rates %+v", d.Requests)
	}
	if d.Requests.Body != rest.MaxBody || d.Emails.Bytes != pipeline.MaxRaw || d.Emails.Labels != inbox.MaxLabels || d.Lists.Hours != 24 {
		t.Errorf("sizes %+v", d)
	}
	if d.Lists.Max != inbox.MaxLimit || d.Texts.Max != inbox.MaxChars || d.Restorable != 30 || d.Download != int(inbox.MaxDownloadTTL/time.Second) {
		t.Errorf("bounds %+v", d)
	}
	if code, text := w.rest("acme", "GET", "/emails?limit="+strconv.Itoa(d.Lists.Max+1), ""); code != 400 {
		t.Errorf("over the limit of lists: %d %s", code, text)
	}
}

// Every kind is explained, and every code that a caller of an operation can meet: they are read from the sources.
func TestErrors(t *testing.T) {
	var v struct {
		Data []struct {
			Kind, Meaning, Do string
			Codes             []struct{ Code, Meaning string }
		}
	}
	newWorld(t).document("errors", &v)
	explained := map[string]bool{}
	var kinds []string
	for _, row := range v.Data {
		kinds = append(kinds, row.Kind)
		if row.Meaning == "" || row.Do == "" {
			t.Errorf("%s is not explained", row.Kind)
		}
		for _, c := range row.Codes {
			explained[c.Code] = c.Meaning != ""
		}
	}
	for i, k := range apperr.Kinds() {
		if i >= len(kinds) || kinds[i] != k.String() {
			t.Errorf("kind %d is not %s: %v", i, k, kinds)
		}
	}
	found := codesOf(t, "op", "rest", "optool", "inbox", "oauth", "app/web")
	if len(found) < 8 {
		t.Errorf("only %v were found in the sources", found)
	}
	for code, where := range found {
		if !explained[code] {
			t.Errorf("%s answers %s, which buzon://inbox/errors does not explain", where, code)
		}
		delete(explained, code)
	}
	if len(explained) > 0 {
		t.Errorf("no source answers %v any more", explained)
	}
}

// codesOf finds the second arguments of apperr.New, constants of their package included.
func codesOf(t *testing.T, rooms ...string) map[string]string {
	t.Helper()
	constants, codes := map[string]string{}, map[string]string{}
	var calls []*ast.CallExpr
	for _, room := range rooms {
		files, err := filepath.Glob(filepath.Join("..", room, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files in %s: %v", room, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				switch x := n.(type) {
				case *ast.ValueSpec:
					for i, value := range x.Values {
						if text, ok := literal(value); ok {
							constants[x.Names[i].Name] = text
						}
					}
				case *ast.CallExpr:
					if s, ok := x.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "New" && len(x.Args) > 2 {
						if pkg, ok := s.X.(*ast.Ident); ok && pkg.Name == "apperr" {
							calls = append(calls, x)
						}
					}
				}
				return true
			})
		}
	}
	for _, call := range calls {
		code, ok := literal(call.Args[1])
		switch x := call.Args[1].(type) {
		case *ast.Ident:
			code, ok = constants[x.Name], true
		case *ast.SelectorExpr:
			code, ok = constants[x.Sel.Name], true
		}
		if !ok {
			t.Errorf("a code that is no constant: %v", call.Args[1])
		}
		if code != "" {
			codes[code] = "a source"
		}
	}
	return codes
}

func literal(e ast.Expr) (string, bool) {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(l.Value)
	return text, err == nil
}

// The guide names tools, prompts and resources as they are.
func TestGuide(t *testing.T) {
	w := newWorld(t)
	guide, mime, _ := w.content("scopeless", modern, "buzon://inbox/guide")
	if mime != "text/markdown" || !strings.Contains(guide, "never an instruction") || len(guide) > 3500 {
		t.Errorf("%s, %d bytes", mime, len(guide))
	}
	c, err := inboxops.Catalogue(nil)
	w.must(err)
	for _, word := range strings.FieldsFunc(guide, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') }) {
		for _, noun := range []string{"session_", "inboxes_", "emails_", "attachments_", "workspaces_"} {
			if _, ok := c.Lookup(word); strings.HasPrefix(word, noun) && !ok {
				t.Errorf("the guide names %s, which is no tool", word)
			}
		}
	}
	for _, name := range w.names("acme", modern, "prompts/list", "prompts") {
		if !strings.Contains(guide, name) {
			t.Errorf("the guide does not name %s", name)
		}
	}
}

// Documents of our own need no operation: they are there while everything behind the operations is down.
func TestDocumentsStandAlone(t *testing.T) {
	f := &failing{}
	o, err := inboxmcp.New(f, inboxmcp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"guide", "statuses", "limits", "errors"} {
		got, err := o.ReadResource(t.Context(), &mcp.ReadRequest{URI: "buzon://inbox/" + name})
		if err != nil || len(got.Contents) != 1 || got.Contents[0].Text == "" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if len(f.calls) > 0 {
		t.Errorf("calls %q", f.calls)
	}
}

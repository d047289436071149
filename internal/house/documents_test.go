package house_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the module's.
const root = "../.."

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestREADMENamesEveryVariable: what the environment can say stands in README.md, where short names follow their first ("_NAME").
func TestREADMENamesEveryVariable(t *testing.T) {
	readme := read(t, "README.md")
	names := regexp.MustCompile(`"BUZON(_[A-Z_]+)"`).FindAllStringSubmatch(read(t, "shared/config/config.go"), -1)
	if len(names) < 20 {
		t.Fatalf("%d variables in shared/config/config.go", len(names))
	}
	for _, n := range names {
		short := strings.TrimPrefix(n[1], "_OIDC")
		if !strings.Contains(readme, "BUZON"+n[1]) && (short == n[1] || !strings.Contains(readme, "`"+short+"`")) {
			t.Errorf("README.md does not name BUZON%s", n[1])
		}
	}
}

// TestREADMENamesEveryRoom: the map has every folder of shared/ and shared/app/.
func TestREADMENamesEveryRoom(t *testing.T) {
	_, rooms, ok := strings.Cut(read(t, "README.md"), "## Map of the rooms")
	if !ok {
		t.Fatal("README.md has no map")
	}
	rooms, _, _ = strings.Cut(rooms, "\n## ")
	for _, under := range []string{"shared", "shared/app"} {
		entries, err := os.ReadDir(filepath.Join(root, under))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			name := "`" + under + "/" + e.Name() + "`"
			if e.IsDir() && name != "`shared/app`" && !strings.Contains(rooms, name) && !strings.Contains(rooms, "`.../"+e.Name()+"`") {
				t.Errorf("the map of README.md does not have %s", name)
			}
		}
	}
}

// TestLinksLeadSomewhere: each relative link of a page names a file that is there, and each page of docs/ is linked from another page.
func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:\s]+)(#[^)]*)?\)`)
	linked := map[string]bool{}
	var pages []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || d.Name() == "dist") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) == ".md" {
			pages = append(pages, path)
		}
		return nil
	})
	if err != nil || len(pages) < 10 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		prose := regexp.MustCompile("(?s)```.*?```").ReplaceAllString(string(text), "")
		for _, m := range link.FindAllStringSubmatch(prose, -1) {
			target := filepath.Join(filepath.Dir(page), m[1])
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
			}
			linked[target] = true
		}
	}
	for _, page := range pages {
		if strings.HasPrefix(page, filepath.Join(root, "docs")+string(filepath.Separator)) && !linked[page] {
			t.Errorf("no page links to %s", page)
		}
	}
}

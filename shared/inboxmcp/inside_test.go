package inboxmcp

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/inboxops"
)

func document(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestEveryPromptHasItsGuide: docs/prompts.md has a section for each prompt, in the order of the list, with its arguments in their order,
// what it reads with, an example and what a person confirms, and none for anything else.
func TestEveryPromptHasItsGuide(t *testing.T) {
	sections := strings.Split(document(t, "prompts.md"), "\n## ")[1:]
	all := prompts()
	if len(sections) != len(all) {
		t.Fatalf("%d sections for %d prompts", len(sections), len(all))
	}
	row := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|.*$")
	for i, p := range all {
		name, text, _ := strings.Cut(sections[i], "\n")
		if name != p.Name {
			t.Errorf("section %d is of %s, prompt %d is %s", i, name, i, p.Name)
			continue
		}
		rows := row.FindAllStringSubmatch(text, -1)
		if len(rows) != len(p.Arguments) {
			t.Errorf("%s: %d rows for %d arguments", p.Name, len(rows), len(p.Arguments))
			continue
		}
		for j, a := range p.Arguments {
			if rows[j][1] != a.Name || strings.Contains(rows[j][0], "required") != a.Required {
				t.Errorf("%s: argument %d is %s (required %t), the guide has %s", p.Name, j, a.Name, a.Required, rows[j][0])
			}
		}
		_, reads, _ := strings.Cut(text, "\nReads with ")
		reads, _, _ = strings.Cut(reads, "Leads to")
		for _, tool := range p.tools {
			if !strings.Contains(reads, "`"+tool+"`") {
				t.Errorf("%s: the guide does not say that it reads with %s", p.Name, tool)
			}
		}
		for _, part := range []string{"> **You** `" + p.Name + "` ", "> **Agent** ", "\nA person confirms "} {
			if !strings.Contains(text, part) {
				t.Errorf("%s: the guide has no %q", p.Name, part)
			}
		}
	}
}

// TestGuidesNameWhatThereIs: tools and scopes that the pages name exist.
func TestGuidesNameWhatThereIs(t *testing.T) {
	c, err := inboxops.Catalogue(nil)
	if err != nil {
		t.Fatal(err)
	}
	var scopes, nouns []string
	for _, s := range c.Vocabulary.All() {
		scopes = append(scopes, s.Name)
	}
	for _, o := range c.Operations() {
		noun, _, _ := strings.Cut(o.Name, "_")
		nouns = append(nouns, noun)
	}
	named := 0
	for _, page := range []string{"prompts.md", "security.md"} {
		for _, m := range regexp.MustCompile("`([a-z]+)([_:])([a-z_]+)`").FindAllStringSubmatch(document(t, page), -1) {
			name := m[1] + m[2] + m[3]
			_, tool := c.Lookup(name)
			if tool || slices.Contains(scopes, name) {
				named++
			} else if m[2] == ":" || slices.Contains(nouns, m[1]) && strings.HasSuffix(m[1], "s") {
				t.Errorf("%s names %s, which does not exist", page, name)
			}
		}
	}
	if named < 30 {
		t.Errorf("the pages name %d tools and scopes", named)
	}
}

package main

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
)

//nolint:gochecknoglobals // a flag of the test
var update = flag.Bool("update", false, "write the table into README.md")

// TestREADME holds what README.md says against what the check finds now.
func TestREADME(t *testing.T) {
	const mark = "<!-- written by go test -update -->\n"
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	head, old, ok := strings.Cut(string(text), mark)
	if !ok {
		t.Fatal("README.md has lost its mark")
	}
	var now bytes.Buffer
	if err := table(t.Context(), &now); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("README.md", []byte(head+mark+now.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if old != now.String() {
		t.Errorf("README.md says:\n%s\nthe check finds:\n%s", old, &now)
	}
}

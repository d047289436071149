//go:generate go run . ../..

// Command generate writes the files that are derived from the code: the tool list, the OpenAPI document and the sample mails
// as the pipeline reads them. They are embedded, so that nothing is rendered at start; a test compares them.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/buzon-mail/buzon/internal/generate/derived"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	files, err := derived.Files(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, name), text, 0o644); err != nil { //nolint:gosec // source files
			fmt.Fprintln(os.Stderr, "generate:", err)
			os.Exit(1)
		}
	}
}

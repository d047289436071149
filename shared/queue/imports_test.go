package queue

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestImports keeps the arrows of the design: the room and its engines import the standard library and what is listed with a
// reason, and nothing that knows mail, HTTP routes or tools.
func TestImports(t *testing.T) {
	const module = "github.com/buzon-mail/buzon/"
	allowed := map[string]map[string]string{ // folder -> import -> reason
		".":        {}, // the rules are shared by every queue
		"embedded": {"shared/queue": "implements it", "shared/store": "keeps the rows; the interface, not an engine"},
		"sqsqueue": {
			"shared/queue": "implements it", "shared/awsclient": "endpoint, credentials, retries", "github.com/aws/aws-sdk-go-v2/aws": "the client",
			"github.com/aws/aws-sdk-go-v2/service/sqs": "the client", "github.com/aws/aws-sdk-go-v2/service/sqs/types": "its types",
		},
		"queuetest": {"shared/queue": "defines its contract"},
	}
	checked := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		checked++
		for _, spec := range f.Imports {
			name := strings.Trim(spec.Path.Value, `"`)
			first, _, _ := strings.Cut(name, "/")
			if !strings.Contains(first, ".") {
				continue
			}
			if allowed[filepath.Dir(path)][strings.TrimPrefix(name, module)] == "" {
				t.Errorf("%s imports %s, which its room may not know", path, name)
			}
		}
		return nil
	})
	if err != nil || checked < 3 {
		t.Fatalf("checked %d files: %v", checked, err)
	}
}

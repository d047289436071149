package derived_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/buzon-mail/buzon/internal/generate/derived"
)

// TestDerivedFilesAreCurrent fails when a declaration changed and make generate was not run.
func TestDerivedFilesAreCurrent(t *testing.T) {
	files, err := derived.Files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile("../../../" + name)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the code says (%v): run make generate", name, err)
		}
	}
}

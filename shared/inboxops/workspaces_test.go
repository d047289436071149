package inboxops_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/inboxstore"
)

// TestTooManyWorkspaces: an organization has a number of workspaces that it can't pass, and says so.
func TestTooManyWorkspaces(t *testing.T) {
	w := newWorld(t)
	w.people()
	for i := range inboxstore.MaxWorkspaces + 1 {
		code, text := w.do("acme", "PUT", "/workspaces", fmt.Sprintf(`{"slug":"w-%d"}`, i))
		if code == 201 && i < inboxstore.MaxWorkspaces {
			continue
		}
		if code != 409 || !strings.Contains(text, "too_many_workspaces") {
			t.Errorf("workspace %d: %d %s", i, code, text)
		}
		if i == 0 {
			t.Error("none can be made")
		}
		return
	}
	t.Error("there is no end of workspaces")
}

package optool_test

import (
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/op"
)

// TestRoutesRefuseWithoutTheFilter takes the tools' own checks away: scope and role are the route's.
func TestRoutesRefuseWithoutTheFilter(t *testing.T) {
	w := newWorld(t)
	w.tools.Unfiltered()
	tests := []struct {
		name, tool, arguments string
		caller                *op.Caller
		code                  string
	}{
		{"scope", "notes_list", `{}`, w.caller("", op.Admin), "insufficient_scope"},
		{"scope of a write", "notes_touch", `{"id":"x"}`, w.caller("notes:read", op.Admin), "insufficient_scope"},
		{"role", "notes_touch", `{"id":"x"}`, w.caller("notes:write", op.Viewer), "insufficient_role"},
		{"role of a destructive act", "notes_delete", `{"id":"x"}`, w.caller("notes:write", op.Viewer), "insufficient_role"},
		{"role without tenant", "echo_send", `{"text":"x"}`, w.caller("", op.NoRole), "insufficient_role"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := w.call(t, tt.caller, tt.tool, tt.arguments, nil)
			if err != nil || !got.isError || !strings.Contains(got.json, `"code":"`+tt.code+`"`) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	if w.calls.Load() != 0 {
		t.Error("a handler ran")
	}
}

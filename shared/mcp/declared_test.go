package mcp_test

import (
	"testing"

	"github.com/buzon-mail/buzon/shared/mcp"
)

// What a client says of itself is a claim, and may be anything that is an object.
func TestDeclared(t *testing.T) {
	for info, want := range map[string]string{
		"": "", `{}`: "", `{"name":"claude","version":"1.2"}`: "claude/1.2", `{"name":"claude"}`: "claude", `{"version":"1"}`: "",
		`{"name":"a","version":""}`: "a", `{"name":7,"version":"1"}`: "", `{"name":null,"version":"1"}`: "", `{"name":"a","version":["1"]}`: "",
		`{"name":"a/b","version":"1","title":"A","icons":[{}]}`: "a/b/1", `{"name":`: "",
	} {
		r := &mcp.CallRequest{ClientInfo: []byte(info)}
		if got := r.Declared(); got != want {
			t.Errorf("%s: %q, want %q", info, got, want)
		}
	}
}

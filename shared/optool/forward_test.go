package optool_test

import (
	"net/http"
	"testing"

	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/optool"
)

// listening lets every route object hear its requests.
type listening struct {
	optool.Routes
	heard []http.Header
}

func (l *listening) Route(name string) http.Handler {
	next := l.Routes.Route(name)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.heard = append(l.heard, r.Header.Clone())
		next.ServeHTTP(w, r)
	})
}

// TestNothingOfTheClientIsForwarded: the client's token, cookies and addresses end at the protocol. A route that saw them could take
// them for a caller, or pass them on.
//
// Clauses: S23
func TestNothingOfTheClientIsForwarded(t *testing.T) {
	w := newWorld(t)
	routes := &listening{Routes: w.api}
	c, err := op.NewCatalogue(w.names, w.operations())
	if err != nil {
		t.Fatal(err)
	}
	if w.tools, err = optool.New(c, routes, w.list, optool.Options{BasePath: "/api/v1"}); err != nil {
		t.Fatal(err)
	}
	h := http.Header{
		"Authorization": {"Bearer secret"}, "Cookie": {"session=1"}, "X-Workspace-Id": {workA}, "X-Forwarded-For": {"198.51.100.1"},
		"Dpop": {"x"}, "If-Match": {`"1"`}, "Origin": {"https://evil.example"},
	}
	for tool, arguments := range map[string]string{"notes_get": `{"id":"x"}`, "notes_touch": `{"id":"x"}`, "notes_delete": `{"id":"` + noteID + `"}`} {
		_, _ = w.call(t, w.caller("notes:write", op.Operator), tool, arguments, h)
	}
	if len(routes.heard) < 3 {
		t.Fatalf("%d requests", len(routes.heard))
	}
	for _, heard := range routes.heard {
		for name := range heard {
			if name != "Content-Type" && name != "X-Workspace-Id" {
				t.Errorf("a route got %s: %q", name, heard[name])
			}
		}
	}
}

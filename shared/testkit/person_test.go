package testkit

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestFormsAsABrowserSendsThem(t *testing.T) {
	const page = `<form action="/a"><input type="hidden" name="request" value="r&amp;1"><input type="radio" name="w" value="1" checked>
		<input type="radio" name="w" value="2"><input type="checkbox" name="kept" value="yes" checked>
		<input type="checkbox" name="fixed" value="yes" checked disabled><input type="checkbox" name="not" value="yes"><input value="nameless">
		<button name="answer" value="allow">x</button><button name="answer" value="deny">y</button></form>
		<input name="outside" value="x"><form action="/b"><input name="link"><button>z</button></form>`
	s := shown{body: page}
	for _, c := range []struct{ button, action, values string }{
		{"allow", "/a", "answer=allow&kept=yes&request=r%261&w=1"},
		{"deny", "/a", "answer=deny&kept=yes&request=r%261&w=1"},
		{"other", "/b", "link="},
	} {
		f := s.form(c.button)
		if f == nil || f.action != c.action || f.values.Encode() != c.values {
			t.Errorf("%s: %+v, want %s %s", c.button, f, c.action, c.values)
		}
	}
	if f := (&shown{body: `<form action="/x"><button name="answer" value="allow">x</button></form>`}).form("deny"); f != nil {
		t.Errorf("a button that is not there: %+v", f)
	}
}

func TestPersonGivesUp(t *testing.T) {
	for name, c := range map[string]struct{ body, says string }{
		"no form":           {"<p>Error", "no form to fill in"},
		"no such button":    {`<form><button name="answer" value="allow">x</button></form>`, "no form to fill in"},
		"the same for ever": {`<form action="/"><button name="answer" value="deny">x</button></form>`, "do not end"},
		"no link":           {`<form action="/"><input name="link"></form>`, "nobody makes links"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(c.body)) }))
			defer server.Close()
			p, err := NewPerson(func(context.Context) (string, error) { return "", errors.New("nobody makes links") })
			if err != nil {
				t.Fatal(err)
			}
			if at, err := p.Answer(t.Context(), server.URL, "deny"); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, %v; want an error with %q", at, err, c.says)
			}
		})
	}
}

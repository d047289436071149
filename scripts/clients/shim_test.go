package main

import (
	"os/exec"
	"testing"
)

// TestShim: the robot gets what a program opens, whole, once, and in order; a program that ends without opening anything is seen.
func TestShim(t *testing.T) {
	s, err := newShim(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	open := func(browser, url string) {
		cmd := exec.Command("sh", "-c", `"$1" "$2"`, "sh", browser, url) //nolint:gosec // a test
		cmd.Env = s.env()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	running, ended := make(chan struct{}), make(chan struct{})
	close(ended)
	urls := []string{"http://localhost:1/authorize?a=b&c=%20'x", "http://localhost:1/authorize?second"}
	open("xdg-open", urls[0])
	open("sensible-browser", urls[1])
	for i, wait := range []chan struct{}{running, ended} {
		if got, err := s.next(t.Context(), wait); err != nil || got != urls[i] {
			t.Errorf("%q, %v", got, err)
		}
	}
	if got, err := s.next(t.Context(), ended); err == nil {
		t.Errorf("nothing was opened: %q", got)
	}
}

// TestSees: a list that shows too much is as wrong as one that shows too little.
func TestSees(t *testing.T) {
	const both, read, none = `{"name":"emails_list"},{"name":"inboxes_upsert"}`, `{"name":"emails_list"}`, `{}`
	for _, c := range []struct {
		text     string
		more, ok bool
	}{{both, true, true}, {read, false, true}, {both, false, false}, {read, true, false}, {none, false, false}, {none, true, false}} {
		if err := sees(c.text, c.more); (err == nil) != c.ok {
			t.Errorf("%s, %t: %v", c.text, c.more, err)
		}
	}
}

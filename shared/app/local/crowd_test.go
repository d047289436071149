package local_test

import (
	"bufio"
	"encoding/json"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A crowd at HTTP is bounded and keeps nobody from SMTP, and the next has its turn when one goes.
func TestCrowdAtHTTP(t *testing.T) {
	h := newHome(t)
	h.env["BUZON_DEMO"] = "1"
	h.serve(t)
	api, _ := h.demo(t)
	var doc struct {
		SMTP string `json:"smtp_addr"`
	}
	text, err := os.ReadFile(filepath.Join(h.dir, "demo.json"))
	if err != nil || json.Unmarshal(text, &doc) != nil {
		t.Fatalf("demo.json: %v %s", err, text)
	}
	where, err := url.Parse(api)
	if err != nil {
		t.Fatal(err)
	}
	dial := func(address string) net.Conn {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	hears := func(c net.Conn, within time.Duration) bool {
		_ = c.SetReadDeadline(time.Now().Add(within))
		line, _ := bufio.NewReader(c).ReadString('\n')
		return line != ""
	}
	ask := func() net.Conn {
		c := dial(where.Host)
		if _, err := c.Write([]byte("GET /healthz HTTP/1.1\r\nHost: " + where.Host + "\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		return c
	}
	var first net.Conn
	for i := range 512 {
		c := ask()
		if !hears(c, time.Minute) {
			t.Fatalf("connection %d was not answered", i)
		}
		if first == nil {
			first = c
		}
	}
	next := ask()
	if hears(next, 100*time.Millisecond) {
		t.Error("513 connections at once")
	}
	if !hears(dial(doc.SMTP), time.Minute) {
		t.Error("SMTP says nothing")
	}
	_ = first.Close()
	if !hears(next, time.Minute) {
		t.Error("the next has no turn")
	}
}

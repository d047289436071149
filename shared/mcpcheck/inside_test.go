package mcpcheck

import (
	"bytes"
	"errors"
	"net/url"
	"testing"
)

func TestRefuseInside(t *testing.T) {
	for address, refused := range map[string]bool{
		"127.0.0.1:443": true, "[::1]:443": true, "169.254.169.254:80": true, "[fe80::1%eth0]:443": true, "0.0.0.0:1": true,
		"[::ffff:127.0.0.1]:443": true, "224.0.0.1:1": true, "no address": true, "name.test:443": true,
		"93.184.216.34:443": false, "[2606:4700::1111]:443": false, "10.1.2.3:443": false, // a company's own network is where its server is too
	} {
		if err := refuseInside(address); (err != nil) != refused {
			t.Errorf("%s: %v, want refused %t", address, err, refused)
		}
	}
	if err := refuseInside("127.0.0.1:443"); !errors.Is(err, errInside) {
		t.Errorf("got %v", err)
	}
}

func TestMayAsk(t *testing.T) {
	for _, c := range []struct {
		target, address string
		insecure, want  bool
	}{
		{"https://a.test/mcp", "https://b.test", false, true},
		{"https://a.test/mcp", "http://b.test", false, false},
		{"https://a.test/mcp", "http://127.0.0.1", false, false},
		{"https://a.test/mcp", "http://b.test", true, true},
		{"http://127.0.0.1:8080/mcp", "http://localhost:9000", false, true},
		{"http://127.0.0.1:8080/mcp", "http://b.test", false, false},
		{"https://a.test/mcp", "https://me@b.test", false, false},
		{"https://a.test/mcp", "file:///etc/passwd", false, false},
		{"https://a.test/mcp", "not an address\n", false, false},
	} {
		target, err := url.Parse(c.target)
		if err != nil {
			t.Fatal(err)
		}
		o := Options{Insecure: c.insecure}
		r := &run{asker: newAsker(target, o), options: o}
		if got := r.mayAsk(c.address); got != c.want {
			t.Errorf("%s asked for by %s (insecure %t): %t", c.address, c.target, c.insecure, got)
		}
	}
}

func TestChallengeParam(t *testing.T) {
	for _, c := range []struct{ header, want string }{
		{`Bearer resource_metadata="https://a.test/x"`, "https://a.test/x"},
		{`Basic realm="x", Bearer error="invalid_token", Resource_Metadata = "https://a.test/x, y"`, "https://a.test/x, y"},
		{`Bearer resource_metadata=https://a.test/x, scope="a"`, "https://a.test/x"},
		{`Bearer resource_metadata="a\"b"`, `a"b`},
		{`Bearer my_resource_metadata="no"`, ""},
		{`Bearer resource_metadata`, ""},
		{`Bearer resource_metadata="open`, "open"},
		{"", ""},
	} {
		if got, ok := challengeParam(c.header, "resource_metadata"); got != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q %t, want %q", c.header, got, ok, c.want)
		}
	}
}

func TestHeaderValue(t *testing.T) {
	for in, want := range map[string]string{
		"emails_list": "emails_list", "a, b": "a, b", "ñ": "=?base64?w7E=?=", " a": "=?base64?IGE=?=", "=?base64?x?=": "=?base64?PT9iYXNlNjQ/eD89?=", "a\r\nb": "=?base64?YQ0KYg==?=",
	} {
		if got := headerValue(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzReadStream(f *testing.F) {
	f.Add([]byte("data: {\"jsonrpc\":\"2.0\",\"id\":1,\ndata: \"result\":{}}\r\n\r\n"))
	f.Add([]byte("\xef\xbb\xbf: hi\r\rdata:{}\r\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := readStream(bytes.NewReader(text))
		for i, m := range list {
			if m.isResponse() && i != len(list)-1 {
				t.Errorf("read on after the response: %v, %v", list, err)
			}
		}
	})
}

func FuzzMessage(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":9007199254740993,"error":{"code":-32602,"message":"x","data":{}}}`))
	f.Add([]byte(`[{"jsonrpc":"2.0"}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m := parseMessage(text)
		if m != nil && m.method == "" && (m.result != nil) == (m.failed != nil) {
			t.Errorf("%s is neither or both", text)
		}
		a := answer{status: 200, body: text, messages: readBody(text)}
		_, _, _ = a.words(), a.code(), a.data()
	})
}

func FuzzChallengeParam(f *testing.F) {
	f.Add(`Bearer resource_metadata="https://a.test/\"x", scope=a`)
	f.Add("Ⱥ resource_metadata=\"K")
	f.Fuzz(func(t *testing.T, header string) {
		if value, ok := challengeParam(header, "resource_metadata"); len(value) > len(header) || !ok && value != "" {
			t.Errorf("%q from %q", value, header)
		}
	})
}

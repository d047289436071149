package oauth

import (
	"net/url"
	"strings"
	"testing"
)

func FuzzDocumentID(f *testing.F) {
	for _, s := range []string{testClient, "https://a/%2e%2e/b", "https://u@a/b", "https://a/b#c", "https://[::1]/x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, id string) {
		if !isDocumentID(id) || !validDocumentID(id) {
			return
		}
		u, err := url.Parse(id)
		if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" || len(u.Path) < 2 || u.JoinPath().Path != strings.TrimRight(u.JoinPath().Path, " ") {
			t.Fatalf("%q passes", id)
		}
		for segment := range strings.SplitSeq(u.Path, "/") {
			if segment == "." || segment == ".." {
				t.Fatalf("%q passes", id)
			}
		}
	})
}

// FuzzRedirect: whatever matches has, to net/url, the very host and path that was registered, and may be registered itself.
func FuzzRedirect(f *testing.F) {
	for _, s := range [][2]string{
		{"http://localhost/cb", "http://localhost:1/cb"}, {"http://[::1]/cb", "http://[::1]:1/cb"}, {"https://a/b", "https://a/b"},
		{"http://127.0.0.1:1/?x", "http://127.0.0.1:2/?x"}, {"http://localhost/", "http://localhost:1@evil/"}, {"cursor://x/y", "cursor://x/y"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, registered, requested string) {
		if !validRedirect(registered) || !matchRedirect(registered, requested) {
			return
		}
		if !validRedirect(requested) {
			t.Fatalf("%q matches %q and may not be registered", requested, registered)
		}
		a, errA := url.Parse(registered)
		b, errB := url.Parse(requested)
		if errA != nil || errB != nil || a.Scheme != b.Scheme || a.Hostname() != b.Hostname() || a.EscapedPath() != b.EscapedPath() || a.RawQuery != b.RawQuery || b.User != nil {
			t.Fatalf("%q matches %q", requested, registered)
		}
		if a.Port() != b.Port() && !isLoopbackHost(strings.TrimSuffix(b.Host, ":"+b.Port())) {
			t.Fatalf("%q matches %q on another port", requested, registered)
		}
		location := withParameters(requested, url.Values{"code": {"c"}, "iss": {testOrigin}})
		u, err := url.Parse(location)
		if err != nil || u.Host != b.Host || u.Query().Get("code") == "" && b.Query().Get("code") == "" {
			t.Fatalf("location %q", location)
		}
	})
}

// FuzzForm: what is read is what net/url reads, but that nothing stands twice.
//
// Clauses: 6749-3.1b
func FuzzForm(f *testing.F) {
	for _, s := range []string{"a=b&c=d", "a=%zz", "a;b", "a=1&%61=2", "=x", "a", "a=%00", "a=%ff", "&&", "a=+"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := decodeForm(text)
		if err != nil {
			return
		}
		want, err := url.ParseQuery(text)
		if err != nil {
			t.Fatalf("%q is read, and by net/url it is not: %v", text, err)
		}
		for name, values := range want {
			if len(values) != 1 || got[name] != values[0] {
				t.Fatalf("%q: %q = %q, net/url %q", text, name, got[name], values)
			}
		}
		q := url.Values{}
		for name, value := range got {
			q.Set(name, value)
		}
		again, err := decodeForm(q.Encode())
		if err != nil || len(again) != len(got) {
			t.Fatalf("%q: %v, then %v, %v", text, got, again, err)
		}
	})
}

func FuzzRefreshToken(f *testing.F) {
	for _, s := range []string{"bzr_grant_0.1.AAAA", "bzr_..", "bzr_a.01.x", "x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, token string) {
		grant, generation, sum, ok := parseRefresh(token)
		if ok && (generation < 1 || len(token) > 160 || strings.Contains(grant, ".") || !strings.HasSuffix(token, "."+encode(sum))) {
			t.Fatalf("%q: %q %d %x", token, grant, generation, sum)
		}
	})
}

func FuzzResource(f *testing.F) {
	for _, s := range []string{testAudience, "https://mail.example.com", "https://mail.example.com@evil/mcp", "HTTPS://MAIL.EXAMPLE.COM:443/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, indicator string) {
		if !namesResource(indicator, testAudience) {
			return
		}
		u, err := url.Parse(indicator)
		if err != nil || !strings.EqualFold(u.Hostname(), "mail.example.com") || u.Scheme != "https" || u.Port() != "" && u.Port() != "443" {
			t.Fatalf("%q is ours", indicator)
		}
	})
}

func FuzzDocument(f *testing.F) {
	f.Add([]byte(`{"client_id":"` + testClient + `","client_name":"A","redirect_uris":["` + testCallback + `"]}`))
	f.Add([]byte(`{"client_id":null,"jwks":{"keys":[null]}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		c, err := readDocument(testClient, body)
		if err != nil {
			return
		}
		if c.ID != testClient || c.Name == "" || len(c.Redirects) == 0 || cleanName(c.Name) != c.Name {
			t.Fatalf("%+v", c)
		}
		for _, uri := range c.Redirects {
			if !validRedirect(uri) {
				t.Fatalf("redirect %q", uri)
			}
		}
	})
}

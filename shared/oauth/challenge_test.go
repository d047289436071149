package oauth

import (
	"strings"
	"testing"
)

func TestChallengeHeader(t *testing.T) {
	tests := []struct {
		name string
		c    Challenge
		want string
	}{
		{"nothing known", Challenge{}, `Bearer`},
		{"no token was sent", Challenge{ResourceMetadata: "https://h/m", Scope: "a b"}, `Bearer resource_metadata="https://h/m", scope="a b"`},
		{"bad token", Challenge{ResourceMetadata: "https://h/m", Error: "invalid_token", Description: "It is expired."},
			`Bearer resource_metadata="https://h/m", error="invalid_token", error_description="It is expired."`},
		{"quotes and backslashes", Challenge{ResourceMetadata: `https://h/"\`, Description: `say "hi" \o/`},
			`Bearer resource_metadata="https://h/\"\\", error_description="say 'hi' ?o/"`},
		{"a header of the attacker's choice", Challenge{Scope: "a\r\nSet-Cookie: x=1"}, `Bearer scope="a??Set-Cookie: x=1"`},
		{"not ASCII", Challenge{ResourceMetadata: "https://ñ", Description: "caducó"}, `Bearer resource_metadata="https://??", error_description="caduc?"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.c.Header(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// parseChallenge is a strict reader of RFC 9110 section 11.6.1, independent of the writer.
func parseChallenge(t *testing.T, s string) map[string]string {
	t.Helper()
	rest, ok := strings.CutPrefix(s, "Bearer")
	if !ok {
		t.Fatalf("scheme of %q", s)
	}
	got := map[string]string{}
	for sep := " "; rest != ""; sep = ", " {
		if rest, ok = strings.CutPrefix(rest, sep); !ok {
			t.Fatalf("separator in %q", s)
		}
		name, after, found := strings.Cut(rest, `="`)
		if !found || got[name] != "" {
			t.Fatalf("parameter in %q", s)
		}
		var v strings.Builder
		i := 0
		for ; i < len(after) && after[i] != '"'; i++ {
			if after[i] == '\\' {
				i++
			}
			if i >= len(after) || after[i] < 0x20 || after[i] > 0x7e {
				t.Fatalf("character in %q", s)
			}
			v.WriteByte(after[i])
		}
		if i >= len(after) {
			t.Fatalf("unclosed quote in %q", s)
		}
		got[name], rest = v.String(), after[i+1:]
	}
	return got
}

func FuzzChallenge(f *testing.F) {
	f.Add("https://h/.well-known/x", "a b", "invalid_token", "It's \"over\"")
	f.Add("\r\n", `\`, `"`, "\x00\xff")
	f.Add("", "", "", "")
	f.Fuzz(func(t *testing.T, url, scope, code, description string) {
		c := Challenge{url, scope, code, description}
		got := parseChallenge(t, c.Header())
		for name, sent := range map[string]string{"resource_metadata": url, "scope": scope, "error": code, "error_description": description} {
			value, there := got[name]
			if there != (sent != "") {
				t.Fatalf("%s: present %t for %q", name, there, sent)
			}
			printable := strings.IndexFunc(sent, func(r rune) bool { return r < 0x20 || r > 0x7e }) < 0
			if printable && (name == "resource_metadata" || !strings.ContainsAny(sent, `"\`)) && value != sent {
				t.Fatalf("%s = %q, want %q", name, value, sent)
			}
		}
	})
}

package oauth

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
)

// Clauses: I20 I22
func TestBearer(t *testing.T) {
	refused := []struct {
		name   string
		values []string
		code   string
		reason string
	}{
		{"no header", nil, CodeMissing, "no Authorization"},
		{"empty", []string{""}, CodeMissing, "empty"},
		{"Basic", []string{"Basic dXNlcjpwYXNz"}, CodeMissing, "another scheme"},
		{"DPoP", []string{"DPoP abc"}, CodeMissing, "another scheme"},
		{"token without scheme", []string{"abc.def.ghi"}, CodeMissing, "another scheme"},
		{"scheme with a prefix", []string{"XBearer abc"}, CodeMissing, "another scheme"},
		{"scheme glued to the token", []string{"Bearerabc"}, CodeMissing, "another scheme"},
		{"tab for space", []string{"Bearer\tabc"}, CodeMissing, "another scheme"},
		{"leading space", []string{" Bearer abc"}, CodeMissing, "another scheme"},
		{"scheme alone", []string{"Bearer"}, CodeInvalid, "b64token"},
		{"scheme and space", []string{"Bearer "}, CodeInvalid, "b64token"},
		{"two headers", []string{"Bearer abc", "Bearer def"}, CodeInvalid, "several"},
		{"two headers, one empty", []string{"", "Bearer def"}, CodeInvalid, "several"},
		{"two joined by a door", []string{"Bearer abc,Bearer def"}, CodeInvalid, "b64token"},
		{"two words", []string{"Bearer abc def"}, CodeInvalid, "b64token"},
		{"trailing space", []string{"Bearer abc "}, CodeInvalid, "b64token"},
		{"only padding", []string{"Bearer =="}, CodeInvalid, "b64token"},
		{"padding inside", []string{"Bearer a=b"}, CodeInvalid, "b64token"},
		{"quoted", []string{`Bearer "abc"`}, CodeInvalid, "b64token"},
		{"parameters", []string{`Bearer token=abc`}, CodeInvalid, "b64token"},
		{"NUL", []string{"Bearer a\x00b"}, CodeInvalid, "b64token"},
		{"not ASCII", []string{"Bearer añb"}, CodeInvalid, "b64token"},
		{"over the size", []string{"Bearer " + strings.Repeat("a", MaxTokenBytes+1)}, CodeInvalid, "size"},
	}
	for _, tt := range refused {
		t.Run(tt.name, func(t *testing.T) {
			h := http.Header{}
			if tt.values != nil {
				h["Authorization"] = tt.values
			}
			token, err := Bearer(h)
			if token != "" {
				t.Errorf("token = %q", token)
			}
			wantRefused(t, err, tt.code, tt.reason)
		})
	}
	accepted := map[string]string{
		"Bearer abc.def-_~+/=": "abc.def-_~+/=", "bearer abc": "abc", "BEARER abc": "abc", "Bearer   abc": "abc",
		"Bearer " + strings.Repeat("a", MaxTokenBytes): strings.Repeat("a", MaxTokenBytes),
	}
	for value, want := range accepted {
		if got, err := Bearer(http.Header{"Authorization": {value}}); err != nil || got != want {
			t.Errorf("Bearer(%.40q) = %.40q, %v, want %.40q", value, got, err, want)
		}
	}
}

func FuzzBearer(f *testing.F) {
	for _, s := range []string{"Bearer abc", "bearer a==", "Bearer", "Basic x", "Bearer a,Bearer b", "Bearer \x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		token, err := Bearer(http.Header{"Authorization": {value}})
		if err != nil {
			if token != "" {
				t.Fatal("a refused token was returned")
			}
			return
		}
		if token == "" || len(token) > MaxTokenBytes || strings.ContainsAny(token, " ,\"\r\n\t\x00") || !strings.HasSuffix(value, token) {
			t.Fatalf("Bearer(%q) = %q", value, token)
		}
		if again, err := Bearer(http.Header{"Authorization": {"Bearer " + token}}); err != nil || again != token {
			t.Fatalf("not a fixpoint: %q, %v", again, err)
		}
	})
}

// TestAlphabetOfATokenByteByByte: every byte, at every place of a word, beside what would carry into it or out of it.
func TestAlphabetOfATokenByteByByte(t *testing.T) {
	const alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+/"
	for _, beside := range []byte("az~+-9A") {
		for length := 1; length <= 17; length++ {
			for at := range length {
				b := bytes.Repeat([]byte{beside}, length)
				for c := range 256 {
					b[at] = byte(c)
					want := strings.IndexByte(alphabet, byte(c)) >= 0 || c == '=' && at == length-1 && length > 1
					if got := isToken68(string(b)); got != want {
						t.Fatalf("%q: %t", b, got)
					}
				}
			}
		}
	}
}

func BenchmarkBearer(b *testing.B) {
	h := http.Header{"Authorization": {"Bearer " + strings.Repeat("aB3_", 300)}}
	for b.Loop() {
		if _, err := Bearer(h); err != nil {
			b.Fatal(err)
		}
	}
}

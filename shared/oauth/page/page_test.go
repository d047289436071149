package page

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

func TestStyleHash(t *testing.T) {
	sum := sha256.Sum256([]byte(style))
	if want := "sha256-" + base64.StdEncoding.EncodeToString(sum[:]); styleHash != want {
		t.Errorf("styleHash = %q, want %q", styleHash, want)
	}
}

func TestLanguage(t *testing.T) {
	for accept, want := range map[string]string{
		"": English, "es": Spanish, "es-AR,es;q=0.9,en;q=0.8": Spanish, "en-GB,es;q=0.5": English, "fr,ES-mx;q=0.7": Spanish,
		"de": English, "es;q=0,en": English, "es;q=0.0": English, "es; q=0.5": Spanish, "spanish": English, strings.Repeat("x,", 9999) + "es": English,
	} {
		if got := Language(accept); got != want {
			t.Errorf("Language(%.40q) = %s, want %s", accept, got, want)
		}
	}
}

const evil = `"><script>alert(1)</script><b title='x' &amp;`

// pages is every page, with text from outside at every place.
func pages(lang, s string) map[string][]byte {
	all := map[string][]byte{
		"start":   Start{s, s, s, s}.Write(lang),
		"sign-in": SignIn{Service: s, Action: s, Request: s, Again: s, BadLink: true}.Write(lang),
		"link":    SignIn{Service: s, Action: s, Request: s, Link: s, Account: s}.Write(lang),
		"done": SignedIn{
			s, s, s, s, s, s, []Connection{{s, s, s, s}, {s, s, "", s}, {s, "", "", s}}, Ceremony{s, s, s, s}, s, []Passkey{{s, s}},
		}.Write(lang),
		"passkey": SignIn{Service: s, Passkey: Ceremony{s, s, s, s}, BadPasskey: true, Upstream: s, UpstreamPath: s}.Write(lang),
		"consent": Consent{
			Service: s, Action: s, SignOut: s, Token: s, Request: s, Redirect: s, Local: true, Loopback: true, Name: s, Account: s, Group: s,
			Resource: s, Days: s, Idle: s, Workspaces: []Choice{{s, s, s}, {s, s, s}}, Scopes: []Permission{{s, s, true}, {s, s, false}}, Lost: 1,
		}.Write(lang),
		"verified": Consent{Service: s, Redirect: s, Name: "", Host: s}.Write(lang),
	}
	for p := range problems {
		all["error "+problemTitles[p].en] = Error(lang, s, p)
	}
	return all
}

// TestNothingFromOutsideIsMarkup: a page with hostile text has the very elements of a page with harmless text.
func TestNothingFromOutsideIsMarkup(t *testing.T) {
	for _, lang := range []string{English, Spanish} {
		harmless := pages(lang, "x")
		for name, body := range pages(lang, evil) {
			if got, want := elements(t, body), elements(t, harmless[name]); got != want {
				t.Errorf("%s (%s):\n got %s\nwant %s", name, lang, got, want)
			}
		}
	}
}

func elements(t *testing.T, body []byte) string {
	t.Helper()
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(string(body)))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return b.String()
		case html.StartTagToken, html.SelfClosingTagToken:
			token := z.Token()
			b.WriteString("<" + token.Data)
			for _, a := range token.Attr {
				b.WriteString(" " + a.Key)
			}
		case html.EndTagToken:
			b.WriteString("/")
		}
	}
}

// TestPagesAreWhole: what every page needs, whoever reads it.
func TestPagesAreWhole(t *testing.T) {
	for _, lang := range []string{English, Spanish} {
		for name, body := range pages(lang, "x") {
			s := string(body)
			for _, want := range []string{
				`<!doctype html><html lang="` + lang + `">`, "<title>", `name="viewport"`, "<main>", "</main></body></html>", "prefers-color-scheme",
			} {
				if !strings.Contains(s, want) {
					t.Errorf("%s (%s) lacks %s", name, lang, want)
				}
			}
			if n := strings.Count(s, "<h1>"); n != 1 {
				t.Errorf("%s has %d h1", name, n)
			}
			for _, bad := range []string{"<script>", "style=", "onclick", "http-equiv", "<img", "{}"} {
				if strings.Contains(s, bad) {
					t.Errorf("%s (%s) has %s", name, lang, bad)
				}
			}
			labels(t, name, s)
		}
	}
}

// labels: each control that a person uses stands in a label or has one that names it.
func labels(t *testing.T, name, body string) {
	t.Helper()
	depth := 0
	named := map[string]bool{}
	z := html.NewTokenizer(strings.NewReader(body))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return
		case html.StartTagToken:
			token := z.Token()
			attr := map[string]string{}
			for _, a := range token.Attr {
				attr[a.Key] = a.Val
			}
			switch {
			case token.Data == "label":
				depth++
				named[attr["for"]] = true
			case token.Data == "input" && attr["type"] != "hidden" && depth == 0 && !named[attr["id"]]:
				t.Errorf("%s: input %s has no label", name, attr["name"])
			}
		case html.EndTagToken:
			if z.Token().Data == "label" {
				depth--
			}
		}
	}
}

func TestConsentSaysWhoFirst(t *testing.T) {
	body := string(Consent{Redirect: "claude.ai", Name: "Other", Host: "claude.ai", Scopes: []Permission{{"a:read", "Read", false}}}.Write(English))
	if strings.Index(body, "claude.ai") > strings.Index(body, "Other") {
		t.Error("the self-declared name stands before the host that gets the answer")
	}
	if !strings.Contains(body, "(not verified)") || !strings.Contains(body, "(verified)") {
		t.Error("what is verified and what is not is not said")
	}
	if none := string((Consent{Redirect: "x"}).Write(English)); strings.Contains(none, `value="allow"`) || !strings.Contains(none, `value="deny"`) {
		t.Error("with nothing to grant the page must only deny")
	}
}

func TestPolicy(t *testing.T) {
	if !strings.Contains(ContentSecurityPolicy, "frame-ancestors 'none'") || strings.Contains(ContentSecurityPolicy, "form-action") {
		t.Error(ContentSecurityPolicy)
	}
}

package markup

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/buzon-mail/buzon/shared/mail/clean"
)

func limits() Limits { return Limits{Bytes: 1 << 20, Nodes: 30000, Depth: 256, Links: 200} }

func TestHiddenTextGoes(t *testing.T) {
	style := func(css string) string {
		return `<p>seen</p><div style="` + css + `">SECRET <a style="color:inherit" href="https://evil.test/SECRET">x</a></div><p>after</p>`
	}
	sheet := func(css, el string) string { return "<style>" + css + "</style><p>seen</p>" + el + "<p>after</p>" }
	for _, c := range []struct {
		name, html string
		kind       Hiding
	}{
		{"display none", style("display:none"), HiddenDisplay},
		{"display none important, odd case", style("DISPLAY : None !important"), HiddenDisplay},
		{"display none with a comment", style("display:/**/none"), HiddenDisplay},
		{"display none with an escape", style(`d\69splay:none`), HiddenDisplay},
		{"visibility hidden", style("visibility:hidden"), HiddenVisibility},
		{"visibility collapse", style("visibility:collapse"), HiddenVisibility},
		{"opacity zero", style("opacity:0"), HiddenOpacity},
		{"opacity almost zero", style("opacity:0.01"), HiddenOpacity},
		{"opacity percent", style("opacity:0%"), HiddenOpacity},
		{"filter opacity", style("filter:opacity(0)"), HiddenOpacity},
		{"font size zero", style("font-size:0"), HiddenFontSize},
		{"font size one pixel", style("font-size:1px"), HiddenFontSize},
		{"font size zero em", style("font-size:0.01em"), HiddenFontSize},
		{"font shorthand", style("font:0/0 a"), HiddenFontSize},
		{"zero height", style("height:0;overflow:hidden"), HiddenZeroBox},
		{"zero max-height", style("max-height:0px;overflow:hidden"), HiddenZeroBox},
		{"zero width", style("width:0;overflow:hidden"), HiddenZeroBox},
		{"one pixel box", style("width:1px;height:1px;overflow:hidden"), HiddenZeroBox},
		{"clip", style("position:absolute;clip:rect(0 0 0 0)"), HiddenZeroBox},
		{"clip-path", style("clip-path:inset(50%)"), HiddenZeroBox},
		{"scale", style("transform:scale(0)"), HiddenZeroBox},
		{"off screen left", style("position:absolute;left:-9999px"), HiddenOffScreen},
		{"off screen percent", style("position:absolute;left:-100%"), HiddenOffScreen},
		{"text indent", style("text-indent:-9999px"), HiddenOffScreen},
		{"negative margin", style("margin-left:-5000px"), HiddenOffScreen},
		{"translate", style("transform:translateX(-9999px)"), HiddenOffScreen},
		{"white on white", style("color:#fff"), HiddenSameColor},
		{"almost white on white", style("color:#fefefe"), HiddenSameColor},
		{"rgb", style("color:rgb(255, 255, 255)"), HiddenSameColor},
		{"black on black", style("background:#000"), HiddenSameColor},
		{"own background", style("color:red;background-color:#ff0000"), HiddenSameColor},
		{"transparent", style("color:transparent"), HiddenSameColor},
		{"rgba", style("color:rgba(0,0,0,0)"), HiddenSameColor},
		{"content visibility", style("content-visibility:hidden"), HiddenDisplay},
		{"hidden attribute", `<p>seen</p><div hidden>SECRET</div><p>after</p>`, HiddenAttribute},
		{"aria-hidden", `<p>seen</p><div aria-hidden="true">SECRET</div><p>after</p>`, HiddenAttribute},
		{"closed dialog", `<p>seen</p><dialog>SECRET</dialog><p>after</p>`, HiddenAttribute},
		{"template", `<p>seen</p><template>SECRET</template><p>after</p>`, HiddenNotRendered},
		{"svg text", `<p>seen</p><svg><desc>SECRET</desc></svg><p>after</p>`, HiddenNotRendered},
		{"bgcolor", `<p>seen</p><table bgcolor="#ffffff"><tr><td><font color="white">SECRET</font></table><p>after</p>`, HiddenSameColor},
		{"inherited", `<p>seen</p><div style="display:none"><p><b>SECRET</b></p></div><p>after</p>`, HiddenDisplay},
		{"misnested inline end tag", `<p>seen</p><span style="display:none"><div></span>SECRET</div></span><p>after</p>`, HiddenDisplay},
		{"rule by class", sheet(".x{display:none}", `<div class="a x">SECRET</div>`), HiddenDisplay},
		{"rule by id", sheet("#x{font-size:0}", `<div id=x>SECRET</div>`), HiddenFontSize},
		{"rule by tag", sheet("em{opacity:0}", `<em>SECRET</em>`), HiddenOpacity},
		{"rule by descendant", sheet(".a .b{display:none}", `<div class=a><div><p class=b>SECRET</div></div>`), HiddenDisplay},
		{"rule by child", sheet(".a > .b{display:none}", `<div class=a><p class=b>SECRET</div>`), HiddenDisplay},
		{"rule by hidden sibling", sheet(".a{display:none} .a + p.b{display:none}", `<p class=a>SECRET</p><p class=b>SECRET</p>`), HiddenDisplay},
		{"rule by attribute", sheet("[data-x=y]{display:none}", `<div data-x=y>SECRET</div>`), HiddenDisplay},
		{"rule in a list", sheet("h1,.x , h2{display:none}", `<div class=x>SECRET</div>`), HiddenDisplay},
		{"rule for all screens", sheet("@media screen{.x{display:none}}", `<div class=x>SECRET</div>`), HiddenDisplay},
		{"rule for wide screens", sheet("@media (min-width:1px){.x{display:none}}", `<div class=x>SECRET</div>`), HiddenDisplay},
		{"rule after the content", `<p>seen</p><div class=x>SECRET</div><p>after</p><style>.x{display:none}</style>`, HiddenDisplay},
		{"important rule beats the style attribute", sheet(".x{display:none!important}", `<div class=x style="display:block">SECRET</div>`), HiddenDisplay},
		{"rule behind a comment", sheet("/* } */ .x{display:none}", `<div class=x>SECRET</div>`), HiddenDisplay},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Convert(c.html, limits())
			for name, out := range map[string]string{"text": d.Text, "markdown": d.Markdown, "sanitized": d.Sanitized} {
				if strings.Contains(out, "SECRET") || !strings.Contains(out, "seen") || !strings.Contains(out, "after") {
					t.Errorf("%s = %q", name, out)
				}
			}
			for _, l := range d.Links {
				if strings.Contains(l.URL, "SECRET") {
					t.Errorf("link %q", l.URL)
				}
			}
			if d.Hidden[c.kind] == 0 || d.Chars == 0 {
				t.Errorf("hidden = %v, %d characters; want %s", d.Hidden, d.Chars, c.kind)
			}
		})
	}
}

func TestVisibleTextStays(t *testing.T) {
	for _, c := range []struct{ name, html string }{
		{"font size zero on the table only", `<table style="font-size:0"><tr><td style="font-size:14px">SEEN</td></tr></table>`},
		{"visibility taken back", `<div style="visibility:hidden"><p style="visibility:visible">SEEN</p></div>`},
		{"white on a dark cell", `<table><tr><td bgcolor="#003366"><font color="#ffffff">SEEN</font></td></tr></table>`},
		{"white on an image", `<div style="background:url(x.png)"><p style="color:#fff">SEEN</p></div>`},
		{"black cell, default link", `<div style="background:#000;color:#fff"><a href="https://a.test" style="color:#fff">SEEN</a></div>`},
		{"rule for phones", `<style>@media (max-width:600px){.x{display:none}}</style><p class=x>SEEN</p>`},
		{"rule for print", `<style>@media print{.x{display:none}}</style><p class=x>SEEN</p>`},
		{"rule for the dark scheme", `<style>@media (prefers-color-scheme: dark){.x{display:none}}</style><p class=x>SEEN</p>`},
		{"rule on hover", `<style>.x:hover{display:none}</style><p class=x>SEEN</p>`},
		{"rule taken back", `<style>p{display:none} p.x{display:block}</style><p class=x>SEEN</p>`},
		{"small height without overflow", `<div style="height:0">SEEN</div>`},
		{"noscript", `<noscript><p>SEEN</p></noscript>`},
		{"unclosed paragraph before", `<p style="display:none">x<p>SEEN`},
		{"spacer before", `<div style="font-size:0;line-height:0">&nbsp;</div>SEEN`},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Convert(c.html, limits())
			if !strings.Contains(d.Text, "SEEN") || !strings.Contains(d.Markdown, "SEEN") || !strings.Contains(d.Sanitized, "SEEN") {
				t.Errorf("text %q, markdown %q, sanitized %q, hidden %v", d.Text, d.Markdown, d.Sanitized, d.Hidden)
			}
		})
	}
}

func TestRendering(t *testing.T) {
	for _, c := range []struct{ name, html, text, md string }{
		{"paragraphs", "<p>one</p><p>two</p>", "one\n\ntwo", "one\n\ntwo"},
		{"white space", " a \n b<b> c </b>d", "a b c d", "a b **c** d"},
		{"line breaks", "a<br>b<br><br>c", "a\nb\n\nc", "a  \nb  \n\nc"},
		{"heading", "<h2>T</h2>x", "T\n\nx", "## T\n\nx"},
		{"list", "<ul><li>a<li>b<ul><li>c</ul></ul>z", "- a\n- b\n  - c\n\nz", "- a\n- b\n  - c\n\nz"},
		{"numbers", "<ol><li>a</li><li>b</li></ol>", "1. a\n2. b", "1. a\n2. b"},
		{"quote", "x<blockquote>a<br>b</blockquote>y", "x\n\n> a\n> b\n\ny", "x\n\n> a  \n> b\n\ny"},
		{"link", `<a href="https://a.test/x y(1)">go <b>now</b></a>.`, "go now.", "[go **now**](https://a.test/x%20y%281%29)."},
		{"image link", `<a href="https://a.test"><img src="https://t.test/p.gif" alt="ALT"></a>`, "", "[link](https://a.test)"},
		{"row", "<table><tr><td>a</td><td>b</td></tr><tr><td>c<td>d</table>", "a | b\nc | d", "a | b\nc | d"},
		{"pre", "<pre>a\n  b</pre>", "a\n  b", "```\na\n  b\n```"},
		{"empty emphasis", "a<b></b>b", "ab", "ab"},
		{"escapes", "1. *x* [y](z) <i>&lt;b&gt;</i> # a_b", "1. *x* [y](z) <b> # a_b", `1\. \*x\* \[y\](z) _\<b\>_ # a_b`},
		{"escape at the line start", "<p># a</p><p>- b</p>", "# a\n\n- b", "\\# a\n\n\\- b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Convert(c.html, limits())
			if d.Text != c.text {
				t.Errorf("text = %q\nwant   %q", d.Text, c.text)
			}
			if d.Markdown != c.md {
				t.Errorf("markdown = %q\nwant       %q", d.Markdown, c.md)
			}
		})
	}
}

func TestSanitized(t *testing.T) {
	for _, c := range []struct{ name, html, want string }{
		{"script", `a<script>alert(1)</script>b`, "ab"},
		{"handler", `<p onclick="x()" style="color:red" class=q>a</p>`, "<p>a</p>"},
		{"javascript link", `<a href="java&#10;script:alert(1)">a</a>`, "a"},
		{"data link", `<a href="data:text/html,x">a</a>`, "a"},
		{"remote image", `a<img src="https://t.test/p.gif">b`, "ab"},
		{"inline image", `<img src="cid:a@b" alt=x>`, `<img src="cid:a@b">`},
		{"iframe", `a<iframe src=x>y</iframe>b`, "ab"},
		{"form", `<form action=x>a<input value=y><button>b</button></form>`, "ab"},
		{"link", `<a href="https://a.test/?a=1&amp;b=2" target=_blank>x</a>`, `<a href="https://a.test/?a=1&amp;b=2" rel="nofollow noreferrer">x</a>`},
		{"mso comment", `a<!--[if mso]>SECRET<![endif]-->b`, "ab"},
		{"breaking out of a text", `<xmp><img src=x onerror=alert(1)></xmp>`, "&lt;img src=x onerror=alert(1)&gt;"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Convert(c.html, limits()).Sanitized; got != c.want {
				t.Errorf("sanitized = %q\nwant        %q", got, c.want)
			}
		})
	}
}

func TestLinkSignals(t *testing.T) {
	for _, c := range []struct {
		name, url, text string
		want            []Signal
	}{
		{"fine", "https://example.com/x", "click", nil},
		{"same host as text", "https://www.example.com/x", "example.com", nil},
		{"text mismatch", "https://evil.test/x", "https://bank.example/login", []Signal{SignalTextMismatch}},
		{"punycode", "https://xn--pple-43d.com", "x", []Signal{SignalPunycode}},
		{"non-ascii host", "https://аpple.com", "x", []Signal{SignalNonASCIIHost, SignalPunycode}},
		{"ip", "https://192.0.2.1/x", "x", []Signal{SignalIPHost}},
		{"decimal ip", "https://3221225985/x", "x", []Signal{SignalIPHost}},
		{"userinfo", "https://bank.example@evil.test/", "x", []Signal{SignalUserinfo}},
		{"port", "https://a.test:8443/", "x", []Signal{SignalPort}},
		{"insecure", "http://a.test/", "x", []Signal{SignalInsecure}},
		{"nested", "https://a.test/?u=https%3A%2F%2Fb.test", "x", []Signal{SignalNestedURL}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, _, ok := NewLink(c.url, c.text)
			if !ok || strings.Join(names(l.Signals), ",") != strings.Join(names(c.want), ",") {
				t.Errorf("link %+v, ok %v; want %v", l, ok, c.want)
			}
		})
	}
}

func names(s []Signal) []string {
	var out []string
	for _, x := range s {
		out = append(out, string(x))
	}
	return out
}

// TestBounded gives inputs that make other converters slow or large. Nodes, depth and output size are the measures.
func TestBounded(t *testing.T) {
	lim := limits()
	for _, c := range []struct{ name, html, want string }{
		{"100,000 nested divs", strings.Repeat("<div>", 100000) + "DEEP" + strings.Repeat("</div>", 100000), "DEEP"},
		{"text after deep elements", strings.Repeat("<div>", 40000) + "DEEP" + strings.Repeat("</div>", 40000) + "AFTER", "AFTER"},
		{"unclosed divs", strings.Repeat("<div>", 100000) + "DEEP", "DEEP"},
		{"formatting elements before blocks", strings.Repeat("<b><i><u>", 5000) + strings.Repeat("<p>x", 50000) + "END", "END"},
		{"many nodes", strings.Repeat("<b>x</b>", 120000) + "END", "END"},
		{"nested quotes", strings.Repeat("<blockquote>", 200) + strings.Repeat("x<br>", 1000) + "END", "END"},
		{"nested lists", strings.Repeat("<ul><li>", 120) + strings.Repeat("x<br>", 1000) + "END", "END"},
		{"end tags without start", strings.Repeat("<div>", 50000) + strings.Repeat("</x>", 50000) + "END", "END"},
		{"attributes", "<p " + strings.Repeat("a=b ", 200000) + ">END", "END"},
		{"rules that match everything", "<style>" + strings.Repeat("p p p{color:red}", 3000) + "</style>" + strings.Repeat("<p>x", 5000) + "END", ""},
		{"open comments", strings.Repeat("<!--", 50000), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Convert(c.html, lim)
			if !strings.Contains(d.Text, c.want) {
				t.Errorf("text of %d bytes without %q", len(d.Text), c.want)
			}
			for name, out := range map[string]string{"text": d.Text, "markdown": d.Markdown, "sanitized": d.Sanitized} {
				if len(out) > 24*len(c.html)+4096 {
					t.Errorf("%s: %d bytes from %d", name, len(out), len(c.html))
				}
			}
			b := parse(c.html, lim)
			if b.nodes > lim.Nodes || len(b.stack) > lim.Depth {
				t.Errorf("%d nodes, depth %d", b.nodes, len(b.stack))
			}
			s := newSheet(b.css.String())
			(&hider{sheet: s}).document(b.root)
			if s.steps > 2*stepLimit {
				t.Errorf("%d selector steps", s.steps)
			}
		})
	}
}

func TestStyledTextBeyondTheDepthIsHidden(t *testing.T) {
	d := Convert(strings.Repeat("<div>", 300)+`<p style="display:none">SECRET</p><p>SEEN</p>`, limits())
	if strings.Contains(d.Text, "SECRET") || !strings.Contains(d.Text, "SEEN") || !d.TooDeep || d.Hidden[HiddenUnread] == 0 {
		t.Errorf("text %q, deep %v, hidden %v", d.Text, d.TooDeep, d.Hidden)
	}
}

func FuzzHTML(f *testing.F) {
	for _, s := range []string{
		"", "<p>x", "<div style='display:none'>x</div>", "<style>.a>b{color:red}@media x{", "<table><tr><td>a<td>b", "<ul><li><ol><li>x",
		`<a href="https://a.test">x<a href=javascript:x>y`, "<pre>```\n<b>", "<svg><p>x</svg>", "<b><p></b>x", "<!--", "<plaintext>x", "\x00<\u202e>",
	} {
		f.Add(s)
	}
	lim := Limits{Bytes: 1 << 16, Nodes: 500, Depth: 20, Links: 10}
	f.Fuzz(func(t *testing.T, s string) {
		d := Convert(strings.ToValidUTF8(s, "\uFFFD"), lim)
		for name, out := range map[string]string{"text": d.Text, "markdown": d.Markdown, "sanitized": d.Sanitized} {
			if !utf8.ValidString(out) {
				t.Errorf("%s is not UTF-8: %q", name, out)
			}
			if i := strings.IndexFunc(out, clean.Forbidden); i >= 0 && name != "sanitized" {
				t.Errorf("%s has a forbidden character at %d: %q", name, i, out)
			}
			if len(out) > 40*len(s)+4096 {
				t.Errorf("%s: %d bytes from %d", name, len(out), len(s))
			}
		}
		if low := strings.ToLower(d.Sanitized); strings.Contains(low, "<script") || strings.Contains(low, "<style") {
			t.Errorf("sanitized = %q", d.Sanitized)
		}
		if len(d.Links) > lim.Links {
			t.Errorf("%d links", len(d.Links))
		}
	})
}

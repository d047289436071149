// Package page writes the few pages that people see while they connect a client: start, sign-in, consent and errors, in
// English and Spanish. It turns facts into HTML and decides nothing: not who is signed in, not what may be granted. Pages are
// constant markup and escaped text, without html/template, which would grow every function by 2 MB; the type markup keeps
// text that came from outside from being written unescaped. They need no script, work at 320 pixels, follow the person's
// colour scheme, and load nothing from anywhere. It depends on the standard library only.
package page

import (
	"html"
	"strings"
)

// Languages of the pages.
const (
	English = "en"
	Spanish = "es"
)

// Language picks one by Accept-Language (RFC 9110 section 12.5.4): the first of ours that is named and not refused. The order
// stands for the weights, as browsers write it.
func Language(accept string) string {
	if len(accept) > 1024 {
		accept = accept[:1024]
	}
	for part := range strings.SplitSeq(accept, ",") {
		tag, weight, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.Trim(strings.TrimPrefix(strings.ReplaceAll(weight, " ", ""), "q="), "0.") == "" && weight != "" {
			continue
		}
		primary, _, _ := strings.Cut(strings.ToLower(tag), "-")
		switch primary {
		case English, Spanish:
			return primary
		}
	}
	return English
}

// ContentSecurityPolicy of every page: nothing runs, nothing loads but our own style and the empty icon in the page itself, nobody frames it (a framed consent page
// can be clicked unseen). form-action is left out: browsers apply it to the redirect that answers the consent form and would
// block the way back to the client.
const ContentSecurityPolicy = "default-src 'none'; img-src data:; style-src '" + styleHash + "'; base-uri 'none'; frame-ancestors 'none'"

// markup is HTML that stands in this package's source. A variable of another type can't be passed for it.
type markup string

// writer builds one page in one language.
type writer struct {
	strings.Builder
	lang string
}

// raw writes HTML.
func (w *writer) raw(parts ...markup) {
	for _, m := range parts {
		w.WriteString(string(m))
	}
}

// text writes text that came from anywhere.
func (w *writer) text(s string) { w.WriteString(html.EscapeString(s)) }

// say writes a sentence in the page's language, with {} replaced by args in order. Each is isolated, so that a name from right
// to left can't reorder what stands around it.
func (w *writer) say(en, es string, args ...string) {
	s := en
	if w.lang == Spanish {
		s = es
	}
	for _, arg := range args {
		before, after, ok := strings.Cut(s, "{}")
		if !ok {
			break
		}
		w.text(before)
		w.raw("<bdi>")
		w.text(arg)
		w.raw("</bdi>")
		s = after
	}
	w.text(s)
}

// field writes a hidden form field.
func (w *writer) field(name markup, value string) {
	w.raw(`<input type="hidden" name="`, name, `" value="`)
	w.text(value)
	w.raw(`">`)
}

// start opens a page. titles are the two languages' texts.
func start(lang, service, en, es string) *writer {
	w := &writer{lang: lang}
	w.raw(`<!doctype html><html lang="`)
	w.text(lang)
	w.raw(`"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">`,
		`<meta name="color-scheme" content="light dark"><meta name="robots" content="noindex"><link rel="icon" href="data:,"><title>`)
	w.say(en, es)
	w.raw(` · `)
	w.text(service)
	w.raw(`</title><style>`, style, `</style></head><body><main><p class="service">`)
	w.text(service)
	w.raw(`</p>`)
	return w
}

// end closes the page.
func (w *writer) end() []byte {
	w.raw(`</main></body></html>`)
	return []byte(w.String())
}

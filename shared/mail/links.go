package mail

import (
	"slices"
	"strings"

	"github.com/buzon-mail/buzon/shared/mail/cue"
	"github.com/buzon-mail/buzon/shared/mail/markup"
)

// textLinks lists the addresses that stand in a plain text.
func (p *parser) textLinks(text string) {
	for rest := text; ; {
		i := strings.Index(rest, "http")
		if i < 0 {
			return
		}
		boundary := i == 0 || !isLetter(rest[i-1])
		rest = rest[i:]
		if !boundary || !strings.HasPrefix(rest, "http://") && !strings.HasPrefix(rest, "https://") {
			rest = rest[len("http"):]
			continue
		}
		end := strings.IndexAny(rest, " \t\n<>\"'`|\\^{}")
		if end < 0 {
			end = len(rest)
		}
		raw := strings.TrimRight(rest[:end], ".,;:!?*_")
		if !strings.Contains(raw, "(") {
			raw = strings.TrimRight(raw, ")]")
		}
		rest = rest[end:]
		if len(p.links) >= p.lim.Links {
			p.cut++
			continue
		}
		if l, _, ok := markup.NewLink(raw, ""); ok {
			p.links = append(p.links, l)
		}
	}
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// listLinks lists every address once, in order, with what it is for. A double keeps the signals of all.
func (p *parser) listLinks() {
	at := make(map[string]int, len(p.links))
	for _, l := range p.links {
		i, double := at[l.URL]
		if !double {
			at[l.URL] = len(p.msg.Links)
			p.msg.Links = append(p.msg.Links, Link{Link: l, Kind: cue.Link(l.URL, l.Text)})
			continue
		}
		have := &p.msg.Links[i]
		if have.Kind == cue.LinkOther {
			have.Kind = cue.Link(l.URL, l.Text)
		}
		for _, s := range l.Signals {
			if !slices.Contains(have.Signals, s) {
				have.Signals = append(have.Signals, s)
			}
		}
	}
}

package pipeline

import (
	"context"
	"slices"
	"strings"
)

// maxHops is how many Received fields a mail may have before it is taken to go in circles.
const maxHops = 50

// flags adds what only the envelope and the inbox tell to what the parser found in the headers. Flags keep the mail from
// being answered or forwarded; none of them hides it.
func (r *run) flags(context.Context) error {
	if r.reading == nil {
		return nil
	}
	for _, f := range r.reading.Flags {
		r.addFlag(f)
	}
	// RFC 3834 §2, RFC 5321 §4.5.5: who sends from nobody wants no answer. A report says so in its headers too.
	if r.email.Envelope.From == "" && r.email.Envelope.RemoteIP != "" && !slices.Contains(r.email.Flags, "bounce") {
		r.addFlag("auto_reply")
	}
	hops := 0
	for _, h := range r.reading.Body.Headers {
		if strings.EqualFold(h.Name, "Received") {
			hops++
		}
	}
	own := func(address string) bool { return strings.EqualFold(address, r.email.Envelope.To) }
	if hops > maxHops || own(r.email.Envelope.From) {
		r.addFlag("loop")
		return nil
	}
	for _, a := range r.email.Content.From {
		if own(a.Address) {
			r.addFlag("loop")
		}
	}
	return nil
}

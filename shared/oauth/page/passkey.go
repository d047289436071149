package page

import (
	_ "embed" // the script
)

//go:embed passkey.js
var passkeyScript []byte //nolint:gochecknoglobals // constant table

// PasskeyScript is the script of forms with a Ceremony. It is not to be changed.
func PasskeyScript() []byte { return passkeyScript }

// ScriptPolicy is ContentSecurityPolicy for a page with a Ceremony: one script, by its address.
func ScriptPolicy(address string) string { return ContentSecurityPolicy + "; script-src " + address }

// Ceremony is what a form needs to ask the browser for a passkey. Without Options there is no form.
type Ceremony struct {
	Action  string // where the form goes
	Options string // JSON for the browser
	State   string // sealed
	Script  string // path of the script
}

// ceremony writes a form that the script shows where the browser has passkeys. kind is get or create.
func (w *writer) ceremony(c Ceremony, kind markup, name markup, value, en, es string) {
	w.raw(`<form method="post" class="card" hidden data-passkey="`, kind, `" action="`)
	w.text(c.Action)
	w.raw(`" data-options="`)
	w.text(c.Options)
	w.raw(`">`)
	w.field(name, value)
	w.field("state", c.State)
	w.field("response", "")
	w.raw(`<button class="main">`)
	w.say(en, es)
	w.raw(`</button><p class="dim" role="alert" data-failed hidden>`)
	w.say("The browser did not give a passkey. Try again, or use a link.", "El navegador no ha dado ninguna clave de acceso. Inténtalo otra vez o usa un enlace.")
	w.raw(`</p></form><script src="`)
	w.text(c.Script)
	w.raw(`" defer></script>`)
}

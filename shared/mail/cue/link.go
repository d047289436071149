package cue

import "strings"

// LinkKind is what a link is for.
type LinkKind string

// The kinds.
const (
	LinkOther       LinkKind = "other"
	LinkVerify      LinkKind = "verify"
	LinkReset       LinkKind = "reset"
	LinkMagic       LinkKind = "magic_login"
	LinkInvite      LinkKind = "invite"
	LinkUnsubscribe LinkKind = "unsubscribe"
)

// cues are in the order to try: "reset your password to sign in" is a reset.
//
//nolint:gochecknoglobals // constant table
var cues = []struct {
	kind LinkKind
	text []string
	url  []string
}{
	{
		LinkUnsubscribe,
		[]string{"unsubscribe", "opt out", "opt-out", "darse de baja", "cancelar suscripción", "cancelar inscrição", "descadastrar", "se désabonner", "désinscrire", "abmelden", "abbestellen", "disiscriv", "email preferences"},
		[]string{"unsubscribe", "optout", "opt-out", "list-manage", "/unsub"},
	},
	{
		LinkReset,
		[]string{"reset", "restablecer", "recuperar contraseña", "redefinir", "réinitialiser", "zurücksetzen", "reimposta", "new password", "change password", "nueva contraseña"},
		[]string{"reset", "forgot", "password/", "passwd", "recover"},
	},
	{
		LinkMagic,
		[]string{"magic link", "sign in", "log in", "login", "iniciar sesión", "entrar", "acceder", "se connecter", "anmelden", "einloggen", "accedi"},
		[]string{"magic", "passwordless", "login?", "signin?", "sign-in?", "one-time", "otp="},
	},
	{
		LinkVerify,
		[]string{"verify", "confirm", "activate", "verifica", "verificar", "confirma", "activar", "ativar", "vérifier", "activer", "bestätigen", "aktivieren", "attiva"},
		[]string{"verify", "verif", "confirm", "activate", "activation", "validate", "optin"},
	},
	{
		LinkInvite,
		[]string{"accept invit", "join ", "aceptar invit", "aceitar convite", "accepter l'invit", "einladung annehmen", "accetta l'invit"},
		[]string{"invite", "invitation"},
	},
}

// Link says what a link is for: by its text first, by its address if the text says nothing.
func Link(url, text string) LinkKind {
	text, url = strings.ToLower(text), strings.ToLower(url)
	for _, c := range cues {
		if containsAny(text, c.text) {
			return c.kind
		}
	}
	if i := strings.Index(url, "://"); i >= 0 {
		if j := strings.IndexByte(url[i+3:], '/'); j >= 0 {
			url = url[i+3+j:] // a host name says who, not what for
		} else {
			return LinkOther
		}
	}
	for _, c := range cues {
		if containsAny(url, c.url) {
			return c.kind
		}
	}
	return LinkOther
}

func containsAny(s string, any []string) bool {
	for _, a := range any {
		if strings.Contains(s, a) {
			return true
		}
	}
	return false
}

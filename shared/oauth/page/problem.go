package page

// Problem is what went wrong, for the person who sees it. It says what to do and never what an attacker would want to know.
type Problem int

// The problems.
const (
	BadRequest     Problem = iota // the address or the form is malformed
	UnknownClient                 // the client id is nobody's
	BadRedirect                   // the client did not register where it wants the answer
	ClientDocument                // the client's document can't be used
	SignInNeeded                  // asked not to ask, but somebody has to sign in
	StaleForm                     // of another browser, answered already, or too old
	BadLink                       // a one-time link that is used, over or unknown
	NotInvited                    // signed in elsewhere, and nobody here
	TooMany                       // too many attempts
	SecretGone                    // shown already, over, or somebody else's
	Unavailable                   // ours to mend
	problems                      // the number of problems
)

type sentence struct{ en, es string }

//nolint:gochecknoglobals // constant table
var problemTitles = [problems]sentence{
	BadRequest:     {"This request can't be used", "Esta petición no se puede usar"},
	UnknownClient:  {"The app is unknown here", "La aplicación no se conoce aquí"},
	BadRedirect:    {"The app asks for the answer at an address that is not its own", "La aplicación pide la respuesta en una dirección que no es suya"},
	ClientDocument: {"The app's description can't be read", "La descripción de la aplicación no se puede leer"},
	SignInNeeded:   {"Somebody has to sign in", "Alguien tiene que iniciar sesión"},
	StaleForm:      {"This page is no longer valid", "Esta página ya no es válida"},
	BadLink:        {"This sign-in link does not work", "Este enlace de acceso no funciona"},
	NotInvited:     {"You can't come in with this account", "No puedes entrar con esta cuenta"},
	TooMany:        {"Too many attempts", "Demasiados intentos"},
	SecretGone:     {"There is no such secret for you", "No hay tal secreto para ti"},
	Unavailable:    {"The service can't answer now", "El servicio no puede responder ahora"},
}

//nolint:gochecknoglobals // constant table
var problemTexts = [problems]sentence{
	BadRequest:     {"Go back to your app and connect again.", "Vuelve a tu aplicación y conéctala otra vez."},
	UnknownClient:  {"Nothing was sent to it. Remove this server from your app and add it again.", "No se le ha enviado nada. Quita este servidor de tu aplicación y añádelo otra vez."},
	BadRedirect:    {"Nothing was sent there. If you did not start connecting an app yourself, close this page.", "No se ha enviado nada allí. Si no has empezado tú a conectar una aplicación, cierra esta página."},
	ClientDocument: {"Nothing was sent to it. Try again later, or tell the app's publisher.", "No se le ha enviado nada. Inténtalo más tarde o avisa a quien publica la aplicación."},
	SignInNeeded:   {"Go back to your app and connect again.", "Vuelve a tu aplicación y conéctala otra vez."},
	StaleForm:      {"It was answered already, is too old, or belongs to another browser. Go back to your app and connect again.", "Ya se ha respondido, es demasiado antigua o es de otro navegador. Vuelve a tu aplicación y conéctala otra vez."},
	BadLink:        {"A link works once and for a short time. Ask whoever runs this service for a new one.", "Un enlace sirve una vez y por poco tiempo. Pide otro a quien gestiona este servicio."},
	NotInvited:     {"Its address is not verified, or not a member's. Ask whoever runs this service.", "Su dirección no está verificada o no es de ningún miembro. Pregunta a quien gestiona este servicio."},
	TooMany:        {"Wait a minute and try again.", "Espera un minuto e inténtalo de nuevo."},
	SecretGone:     {"It was shown already, is older than 15 minutes, or belongs to another account than the one you are signed in with. Make a new one.", "Ya se ha mostrado, tiene más de 15 minutos o es de otra cuenta que aquella con la que has entrado. Crea uno nuevo."},
	Unavailable:    {"Try again in a moment.", "Inténtalo de nuevo en un momento."},
}

// Error is a page about a problem.
func Error(lang, service string, p Problem) []byte {
	if p < 0 || p >= problems {
		p = Unavailable
	}
	w := start(lang, service, problemTitles[p].en, problemTitles[p].es)
	w.raw(`<h1>`)
	w.say(problemTitles[p].en, problemTitles[p].es)
	w.raw(`</h1><div class="card" role="alert"><p>`)
	w.say(problemTexts[p].en, problemTexts[p].es)
	w.raw(`</p></div>`)
	return w.end()
}

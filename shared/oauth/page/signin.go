package page

// SignIn is what the sign-in page shows.
type SignIn struct {
	Service string
	Action  string // where the form goes
	Request string // sealed: the authorization that waits, or none
	// Again repeats the authorization, for a person who signed in with a link in another tab; empty when none waits.
	Again string
	// Link is a one-time link that was opened, and Account whose it is; empty: the person has to paste one.
	Link, Account string
	BadLink       bool // the link that was given does not work
	BadPasskey    bool // the passkey that was given does not verify
	Passkey       Ceremony
	Upstream      string // name of a provider where people can sign in; empty: there is none
	UpstreamPath  string // where that form goes
}

// Write renders the page.
func (p SignIn) Write(lang string) []byte {
	w := start(lang, p.Service, "Sign in", "Iniciar sesión")
	w.raw(`<h1>`)
	w.say("Sign in", "Iniciar sesión")
	w.raw(`</h1>`)
	if p.BadLink {
		w.raw(`<p class="warn" role="alert" id="bad">`)
		w.say("This link is used, over or unknown. Ask for a new one.", "Este enlace está usado, caducado o no existe. Pide otro.")
		w.raw(`</p>`)
	}
	if p.BadPasskey {
		w.raw(`<p class="warn" role="alert">`)
		w.say("This passkey is not known here. Use a link.", "Esta clave de acceso no se conoce aquí. Usa un enlace.")
		w.raw(`</p>`)
	}
	w.others(p)
	w.raw(`<form method="post" class="card" action="`)
	w.text(p.Action)
	w.raw(`">`)
	w.field("request", p.Request)
	if p.Link != "" {
		w.raw(`<p>`)
		w.say("You opened a sign-in link for {}. Continue only if that is you.",
			"Has abierto un enlace de acceso para {}. Continúa solo si eres tú.", p.Account)
		w.raw(`</p>`)
		w.field("link", p.Link)
	} else {
		w.raw(`<p class="entry"><label class="entry" for="link">`)
		w.say("One-time sign-in link", "Enlace de acceso de un solo uso")
		w.raw(`</label><input id="link" name="link" required autocomplete="off" autocapitalize="off" spellcheck="false" aria-describedby="how`)
		if p.BadLink {
			w.raw(` bad" aria-invalid="true`)
		}
		w.raw(`"></p><p class="dim" id="how">`)
		w.say("Whoever runs this service makes one for you with: buzon user link YOUR-EMAIL. It works once, for 15 minutes.",
			"Quien gestiona este servicio te crea uno con: buzon user link TU-CORREO. Sirve una vez, durante 15 minutos.")
		w.raw(`</p>`)
	}
	w.raw(`<div class="acts"><button class="main">`)
	w.say("Sign in", "Iniciar sesión")
	w.raw(`</button></div></form>`)
	if p.Again != "" {
		w.raw(`<p>`)
		w.say("Did you open the link in another tab? ", "¿Has abierto el enlace en otra pestaña? ")
		w.raw(`<a href="`)
		w.text(p.Again)
		w.raw(`">`)
		w.say("Continue here", "Continúa aquí")
		w.raw(`</a></p>`)
	}
	return w.end()
}

// others writes the ways in beside the link.
func (w *writer) others(p SignIn) {
	if p.Passkey.Options != "" && p.Link == "" {
		w.ceremony(p.Passkey, "get", "request", p.Request, "Sign in with a passkey", "Iniciar sesión con una clave de acceso")
	}
	if p.Upstream != "" && p.Link == "" {
		w.raw(`<form method="post" class="card" action="`)
		w.text(p.UpstreamPath)
		w.raw(`">`)
		w.field("request", p.Request)
		w.raw(`<button class="main">`)
		w.say("Sign in with {}", "Iniciar sesión con {}", p.Upstream)
		w.raw(`</button></form>`)
	}
}

// SignedIn is what a person sees who is signed in and has nothing to answer.
type SignedIn struct {
	Service    string
	Account    string
	Group      string // the organization
	SignOut    string // where the form goes
	Revoke     string // where the form goes
	Token      string // ties the forms to this session
	Connection []Connection
	Passkey    Ceremony // adds one
	Remove     string   // where the form that removes one goes
	Passkeys   []Passkey
}

// Passkey is one that a person registered.
type Passkey struct{ ID, Since string }

// Connection is a client that a person gave access to.
type Connection struct {
	ID, Name, Host, Since string
}

// Write renders the page.
func (p SignedIn) Write(lang string) []byte {
	w := start(lang, p.Service, "Signed in", "Sesión iniciada")
	w.raw(`<h1>`)
	w.say("You are signed in", "Has iniciado sesión")
	w.raw(`</h1><div class="card"><p>`)
	w.say("Signed in as {}, {}. If an app is waiting, go back to its tab and continue there.",
		"Has iniciado sesión como {}, {}. Si una aplicación espera, vuelve a su pestaña y continúa allí.", p.Account, p.Group)
	w.raw(`</p><form method="post" action="`)
	w.text(p.SignOut)
	w.raw(`">`)
	w.field("token", p.Token)
	w.raw(`<button>`)
	w.say("Sign out", "Cerrar sesión")
	w.raw(`</button></form></div><h2>`)
	w.say("Connected apps", "Aplicaciones conectadas")
	w.raw(`</h2>`)
	if len(p.Connection) == 0 {
		w.raw(`<p class="dim">`)
		w.say("None.", "Ninguna.")
		w.raw(`</p>`)
	}
	for _, c := range p.Connection {
		w.connection(p, c)
	}
	w.passkeys(p)
	return w.end()
}

func (w *writer) passkeys(p SignedIn) {
	if p.Passkey.Options == "" {
		return
	}
	w.raw(`<h2>`)
	w.say("Passkeys", "Claves de acceso")
	w.raw(`</h2>`)
	for _, k := range p.Passkeys {
		w.raw(`<form method="post" class="card" action="`)
		w.text(p.Remove)
		w.raw(`">`)
		w.field("token", p.Token)
		w.field("passkey", k.ID)
		w.raw(`<p>`)
		w.say("since {}", "desde {}", k.Since)
		w.raw(`</p><button>`)
		w.say("Remove", "Quitar")
		w.raw(`</button></form>`)
	}
	w.ceremony(p.Passkey, "create", "token", p.Token, "Add a passkey", "Añadir una clave de acceso")
}

func (w *writer) connection(p SignedIn, c Connection) {
	w.raw(`<form method="post" class="card" action="`)
	w.text(p.Revoke)
	w.raw(`">`)
	w.field("token", p.Token)
	w.field("grant", c.ID)
	w.raw(`<p>`)
	switch {
	case c.Host != "":
		w.say("{}, published by {}", "{}, publicada por {}", c.Name, c.Host)
	case c.Name != "":
		w.say("{} (name not verified)", "{} (nombre sin verificar)", c.Name)
	default:
		w.say("An app without a name", "Una aplicación sin nombre")
	}
	w.raw(`<br><span class="dim">`)
	w.say("since {}", "desde {}", c.Since)
	w.raw(`</span></p><button>`)
	w.say("Disconnect", "Desconectar")
	w.raw(`</button></form>`)
}

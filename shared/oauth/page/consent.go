package page

// Consent is what a person is asked.
type Consent struct {
	Service  string
	Action   string // where the answer goes
	SignOut  string // where the form for another account goes
	Token    string // ties that form to this session
	Request  string // id of the question
	Redirect string // host or scheme that gets the answer
	Local    bool   // that is a program on the person's computer
	Loopback bool   // and the client has no other
	Name     string // self-declared
	Host     string // of the document that the client published; empty: nothing is verified
	Account  string
	Group    string // the organization
	Resource string
	Days     string // longest life of the access
	Idle     string // days after which it ends unused

	Workspaces []Choice
	Scopes     []Permission
	Lost       int // asked for, but beyond the person's role
}

// Choice is a workspace.
type Choice struct{ ID, Name, Role string }

// Permission is a scope in words.
type Permission struct {
	Name, Text string
	Removable  bool
}

// Write renders the page.
func (p Consent) Write(lang string) []byte {
	w := start(lang, p.Service, "Give access?", "¿Dar acceso?")
	w.who(p)
	w.raw(`<form method="post" action="`)
	w.text(p.Action)
	w.raw(`">`)
	w.field("request", p.Request)
	if len(p.Scopes) == 0 {
		w.raw(`<p class="warn" role="alert">`)
		w.say("Your role allows nothing of what the app asks for.", "Tu rol no permite nada de lo que pide la aplicación.")
		w.raw(`</p>`)
	} else {
		w.workspaces(p)
		w.permissions(p)
		w.raw(`<p class="dim">`)
		w.say("Access to {} ends when you disconnect the app, after {} days without use, and after {} days in any case.",
			"El acceso a {} termina cuando desconectas la aplicación, tras {} días sin uso y, en todo caso, a los {} días.",
			p.Resource, p.Idle, p.Days)
		w.raw(`</p>`)
	}
	w.raw(`<div class="acts">`)
	if len(p.Scopes) > 0 {
		w.raw(`<button class="main" name="answer" value="allow">`)
		w.say("Give access", "Dar acceso")
		w.raw(`</button>`)
	}
	w.raw(`<button name="answer" value="deny">`)
	w.say("Deny", "Denegar")
	w.raw(`</button></div></form>`)
	w.account(p)
	return w.end()
}

// who says who asks: first and largest where the answer goes, for that is what an attacker can't choose.
func (w *writer) who(p Consent) {
	w.raw(`<h1>`)
	if p.Local {
		w.say("Give access to an app on this computer", "Dar acceso a una aplicación de este ordenador")
	} else {
		w.say("Give access to", "Dar acceso a")
	}
	w.raw(` <strong class="host"><bdi>`)
	w.text(p.Redirect)
	w.raw(`</bdi></strong></h1>`)
	if p.Loopback {
		w.raw(`<p class="warn" role="note">`)
		w.say("Any program on this computer can ask like this. Continue only if you are connecting an app yourself right now.",
			"Cualquier programa de este ordenador puede pedirlo así. Continúa solo si tú mismo estás conectando una aplicación ahora.")
		w.raw(`</p>`)
	}
	w.raw(`<dl class="card"><dt>`)
	w.say("App", "Aplicación")
	w.raw(`</dt><dd>`)
	if p.Name == "" {
		w.say("It gave no name.", "No ha dado ningún nombre.")
	} else {
		w.say("It calls itself “{}” (not verified).", "Se llama a sí misma «{}» (sin verificar).", p.Name)
	}
	w.raw(`</dd><dt>`)
	w.say("Publisher", "Quién la publica")
	w.raw(`</dt><dd>`)
	if p.Host != "" {
		w.say("{} (verified)", "{} (verificado)", p.Host)
	} else {
		w.say("Unknown", "Desconocido")
	}
	w.raw(`</dd></dl>`)
}

func (w *writer) workspaces(p Consent) {
	w.raw(`<fieldset><legend>`)
	w.say("Workspace", "Espacio de trabajo")
	w.raw(`</legend><ul>`)
	for i, c := range p.Workspaces {
		w.raw(`<li><label><input type="radio" name="workspace" value="`)
		w.text(c.ID)
		w.raw(`"`)
		if i == 0 {
			w.raw(` checked`)
		}
		w.raw(` required><span><bdi>`)
		w.text(c.Name)
		w.raw(`</bdi> <span class="dim">`)
		w.text(c.Role)
		w.raw(`</span></span></label></li>`)
	}
	w.raw(`</ul>`)
	if len(p.Workspaces) > 1 {
		w.raw(`<p><label><input type="checkbox" name="all" value="yes"><span>`)
		w.say("All workspaces that I reach; the one above is the default.",
			"Todos los espacios a los que llego; el de arriba es el predeterminado.")
		w.raw(`</span></label></p>`)
	}
	w.raw(`</fieldset>`)
}

func (w *writer) permissions(p Consent) {
	w.raw(`<fieldset><legend>`)
	w.say("The app may", "La aplicación podrá")
	w.raw(`</legend><ul>`)
	for _, s := range p.Scopes {
		w.raw(`<li><label><input type="checkbox" checked name="scope.`)
		w.text(s.Name)
		w.raw(`" value="yes"`)
		if !s.Removable {
			w.raw(` disabled`)
		}
		w.raw(`><span>`)
		w.text(s.Text)
		w.raw(`</span></label></li>`)
	}
	w.raw(`</ul>`)
	if p.Lost > 0 {
		w.raw(`<p class="dim">`)
		w.say("It asks for more than your role allows; that is left out.", "Pide más de lo que permite tu rol; eso queda fuera.")
		w.raw(`</p>`)
	}
	w.raw(`</fieldset>`)
}

func (w *writer) account(p Consent) {
	w.raw(`<form method="post" class="dim" action="`)
	w.text(p.SignOut)
	w.raw(`">`)
	w.field("token", p.Token)
	w.field("request", p.Request)
	w.say("Signed in as {}, {}. ", "Has iniciado sesión como {}, {}. ", p.Account, p.Group)
	w.raw(`<button class="link">`)
	w.say("Use another account", "Usar otra cuenta")
	w.raw(`</button></form>`)
}

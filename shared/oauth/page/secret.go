package page

// Secret is a page with a secret that is shown once, before and after it is.
type Secret struct {
	Service string
	What    string // what it is, in our words
	Account string
	Action  string // where the form goes
	ID      string
	Token   string // ties the form to the session
	Value   string // the secret; empty: it was not asked for yet
}

// Write renders the page.
func (p Secret) Write(lang string) []byte {
	w := start(lang, p.Service, "Secret", "Secreto")
	w.raw(`<h1>`)
	w.say("Secret of {}", "Secreto de {}", p.What)
	w.raw(`</h1>`)
	if p.Value != "" {
		w.raw(`<p class="warn" role="status">`)
		w.say("Copy it now: it is not shown again. Do not paste it into a conversation.",
			"Cópialo ahora: no se vuelve a mostrar. No lo pegues en una conversación.")
		w.raw(`</p>`)
		w.code(p.Value)
		return w.end()
	}
	w.raw(`<form method="post" class="card" action="`)
	w.text(p.Action)
	w.raw(`">`)
	w.field("token", p.Token)
	w.field("id", p.ID)
	w.raw(`<p>`)
	w.say("It waits for {} and is shown once. Have the place where it belongs open.",
		"Espera a {} y se muestra una vez. Ten abierto el lugar donde va.", p.Account)
	w.raw(`</p><div class="acts"><button class="main">`)
	w.say("Show it", "Mostrarlo")
	w.raw(`</button></div></form>`)
	return w.end()
}

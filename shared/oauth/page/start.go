package page

import "encoding/json"

// Start is the page at the service's root: how to connect a client.
type Start struct {
	Service string
	Key     string // name of the server in configuration files
	URL     string // of the MCP endpoint
	SignIn  string
}

// Write renders the page.
func (p Start) Write(lang string) []byte {
	w := start(lang, p.Service, "Connect", "Conectar")
	w.raw(`<h1>`)
	w.say("Connect your MCP client", "Conecta tu cliente MCP")
	w.raw(`</h1><p>`)
	w.say("Add this URL to your client. It opens this service in your browser, you sign in, see what it asks for, and approve.",
		"Añade esta URL a tu cliente. Abrirá este servicio en tu navegador: inicias sesión, ves lo que pide y lo apruebas.")
	w.raw(`</p>`)
	w.code(p.URL)
	name, address := quoted(p.Key), quoted(p.URL)
	w.section("Claude", "Settings → Connectors → Add custom connector, and paste the URL. In Claude Code:",
		"Ajustes → Conectores → Añadir conector personalizado, y pega la URL. En Claude Code:",
		"claude mcp add --transport http "+p.Key+" "+p.URL)
	w.section("VS Code", "In .vscode/mcp.json:", "En .vscode/mcp.json:",
		"{\n  \"servers\": {\n    "+name+": { \"type\": \"http\", \"url\": "+address+" }\n  }\n}")
	w.section("Cursor", "In ~/.cursor/mcp.json:", "En ~/.cursor/mcp.json:",
		"{\n  \"mcpServers\": {\n    "+name+": { \"url\": "+address+" }\n  }\n}")
	w.section("ChatGPT", "Settings → Apps & Connectors → Advanced settings → Developer mode; then Create, and paste the URL with OAuth:",
		"Ajustes → Aplicaciones y conectores → Ajustes avanzados → Modo desarrollador; luego Crear, y pega la URL con OAuth:", p.URL)
	w.section("curl", "With an access token in $TOKEN:", "Con un token de acceso en $TOKEN:",
		"curl "+p.URL+" -H \"Authorization: Bearer $TOKEN\" \\\n  -H 'Content-Type: application/json' \\\n"+
			"  -d '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}'")
	w.raw(`<p><a href="`)
	w.text(p.SignIn)
	w.raw(`">`)
	w.say("Sign in and see connected apps", "Inicia sesión y mira las aplicaciones conectadas")
	w.raw(`</a></p>`)
	return w.end()
}

func (w *writer) section(title markup, en, es, code string) {
	w.raw(`<h2>`, title, `</h2><p>`)
	w.say(en, es)
	w.raw(`</p>`)
	w.code(code)
}

func (w *writer) code(s string) {
	w.raw(`<pre tabindex="0"><code>`)
	w.text(s)
	w.raw(`</code></pre>`)
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(b)
}

package local

import (
	"cmp"
	"fmt"
	"io"
	"strings"
)

// banner tells a newcomer what to do next.
func (s *Service) banner(w io.Writer) {
	var b strings.Builder
	buzon := cmp.Or(s.opts.Program, "buzon")
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("")
	line("  Buzón %s", s.version)
	line("")
	line("  MCP endpoint   %s/mcp   (how to connect a client: %s)", s.origin, s.origin)
	line("  REST API       %s/api/v1   (document: %s/api/v1/openapi.json)", s.origin, s.origin)
	line("  SMTP           %s", s.smtpAddr())
	line("  Data folder    %s", s.cfg.DataDir)
	line("")
	if s.cfg.Demo {
		line("  The demo has two organizations, acme and globex. Tokens for their people are in")
		line("  %s; without jq: %s token owner@acme.test.", s.demoPath(), buzon)
		line("")
		line("  Next, in another terminal:")
		line("    TOKEN=$(jq -r '.users[0].access_token' %s)", s.demoPath())
		line("    curl -H \"Authorization: Bearer $TOKEN\" %s/api/v1/emails", s.origin)
		line("    claude mcp add --transport http buzon %s/mcp   # any MCP client: the address is all it needs", s.origin)
		line("    %s user link owner@acme.test                # prints what the sign-in page asks for", buzon)
		line("    printf 'Subject: Hello\\r\\n\\r\\nIs anybody there?\\r\\n' |")
		line("      curl smtp://%s --mail-from ada@example.org --mail-rcpt soporte@acme.test --upload-file -", s.smtpAddr())
	} else {
		line("  Next, in another terminal:")
		line("    %s org create SLUG --owner EMAIL", buzon)
		line("    %s domain add SLUG DOMAIN", buzon)
		line("    %s user link EMAIL", buzon)
		line("  Then add the MCP endpoint to a client and sign in with the link: inboxes_upsert makes the first inbox.")
	}
	line("")
	line("  Ctrl-C stops it; accepted mail is safe.")
	line("")
	_, _ = io.WriteString(w, b.String())
}

package mail

import "strings"

// reply is a text taken apart. Nothing is lost: fresh, quoted and signature together are the text.
type reply struct {
	fresh, quoted, signature string
}

// cutReply separates what a person wrote now from the mail that they answer and from their signature. A forwarded mail is what
// the sender wants to show and is never cut.
func cutReply(text string) reply {
	lines := strings.Split(text, "\n")
	end := len(lines)
	for i := range lines {
		if isForward(lines[i]) {
			return reply{fresh: text}
		}
		if quoteStart(lines, i) {
			end = i
			break
		}
	}
	fresh, quoted := lines[:end], lines[end:]
	if end == len(lines) {
		fresh, quoted = trailingQuote(lines)
	} else if below := answersBelow(quoted); below > 0 {
		// Answers between or below the quoted lines: keep what is not quoted.
		fresh, quoted = splitLines(lines, end, below)
	}
	fresh, signature := cutSignature(fresh)
	if len(fresh) == len(lines) { // all of it, as in most mails
		return reply{fresh: trimText(text)}
	}
	return reply{fresh: joinLines(fresh), quoted: joinLines(quoted), signature: joinLines(signature)}
}

func joinLines(lines []string) string { return trimText(strings.Join(lines, "\n")) }

// attributions are the ends of "On ... wrote:" lines, with the beginnings that go with them.
//
//nolint:gochecknoglobals // constant table
var attributions = []struct{ begins, ends string }{
	{"on ", "wrote:"}, {"el ", "escribió:"}, {"el ", "escribio:"}, {"em ", "escreveu:"}, {"le ", "a écrit :"}, {"le ", "a écrit :"}, {"le ", "a écrit:"},
	{"am ", "schrieb"}, {"il ", "ha scritto:"}, {"a ", "ha scritto:"},
}

//nolint:gochecknoglobals // constant table
var separators = []string{
	"original message", "mensaje original", "mensagem original", "message d'origine", "message original", "ursprüngliche nachricht", "messaggio originale",
}

//nolint:gochecknoglobals // constant table
var forwards = []string{
	"forwarded message", "begin forwarded message", "mensaje reenviado", "mensagem encaminhada", "message transféré", "weitergeleitete nachricht", "messaggio inoltrato",
}

func isForward(line string) bool {
	if len(line) > 100 || !strings.Contains(line, "--") && !strings.HasSuffix(strings.TrimSpace(line), ":") {
		return false
	}
	low := strings.ToLower(line)
	for _, f := range forwards {
		if strings.Contains(low, f) {
			return true
		}
	}
	return false
}

// mayStart rules most lines out by their first word, before any is changed to lower case.
func mayStart(line string) bool {
	first, _, _ := strings.Cut(line[:min(len(line), 8)], " ")
	switch strings.ToLower(first) {
	case "on", "el", "em", "le", "am", "il", "a", "de":
		return true
	}
	return line[0] == '-' || line[0] == '_' || strings.Contains(first, ":")
}

// quoteStart reports whether the mail being answered begins at line i.
func quoteStart(lines []string, i int) bool {
	line := strings.Trim(lines[i], " \t*")
	if line == "" || len(line) > 300 || !mayStart(line) {
		return false
	}
	line = strings.ToLower(line)
	if strings.HasPrefix(line, "--") {
		for _, s := range separators {
			if strings.Contains(line, s) {
				return true
			}
		}
	}
	joined := line // an attribution may be folded over two lines
	if i+1 < len(lines) && len(lines[i+1]) < 200 && strings.HasSuffix(strings.TrimRight(lines[i+1], " \t*"), ":") {
		joined += " " + strings.ToLower(strings.Trim(lines[i+1], " \t*"))
	}
	for _, a := range attributions {
		if strings.HasPrefix(line, a.begins) && (endsAttribution(line, a.ends) || endsAttribution(joined, a.ends)) && strings.ContainsAny(joined, "0123456789@") {
			return true
		}
	}
	return outlookHeader(lines, i, line)
}

func endsAttribution(line, ends string) bool {
	line = strings.TrimRight(line, " ")
	return strings.HasSuffix(line, ends) || ends == "schrieb" && strings.HasSuffix(line, ":") && strings.Contains(line, " schrieb")
}

// outlookHeader reports a block of From, Sent, To, Subject lines in one of the languages.
func outlookHeader(lines []string, i int, first string) bool {
	if strings.Trim(first, "_") == "" && len(first) > 10 && i+1 < len(lines) {
		return outlookHeader(lines, i+1, strings.ToLower(strings.Trim(lines[i+1], " \t*")))
	}
	if !hasPrefix(first, "from:", "de:", "von:", "da:", "de :") {
		return false
	}
	found := 0
	for j := i + 1; j < len(lines) && j <= i+5; j++ {
		if hasPrefix(strings.ToLower(strings.TrimLeft(lines[j], " \t*")), "sent:", "to:", "date:", "subject:", "cc:", "enviado", "para:", "asunto:", "assunto:", "envoyé", "à :", "à:", "objet", "gesendet:", "an:", "betreff:", "inviato:", "a:", "oggetto:", "data:", "fecha:", "cc :") {
			found++
		}
	}
	return found >= 2
}

func hasPrefix(s string, any ...string) bool {
	for _, p := range any {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

func isQuoted(line string) bool { return strings.HasPrefix(strings.TrimLeft(line, " "), ">") }

// trailingQuote cuts lines marked with ">" that end the text.
func trailingQuote(lines []string) (fresh, quoted []string) {
	end := len(lines)
	for end > 0 && (isQuoted(lines[end-1]) || strings.TrimSpace(lines[end-1]) == "") {
		end--
	}
	for i := end; i < len(lines); i++ {
		if isQuoted(lines[i]) {
			return lines[:end], lines[end:]
		}
	}
	return lines, nil
}

// answersBelow returns how many lines at the start of the quoted text are its attribution, when the quote is marked with ">" and
// unmarked lines follow it; 0 otherwise. Without marks everything below the attribution is quoted.
func answersBelow(quoted []string) int {
	first := -1
	for i, l := range quoted {
		if isQuoted(l) {
			if first < 0 {
				first = i
			}
			continue
		}
		if first >= 0 && strings.TrimSpace(l) != "" {
			return first
		}
		if first < 0 && i > 3 {
			return 0
		}
	}
	return 0
}

func splitLines(lines []string, end, below int) (fresh, quoted []string) {
	fresh = append(fresh, lines[:end]...)
	quoted = append(quoted, lines[end:end+below]...)
	for _, l := range lines[end+below:] {
		if isQuoted(l) {
			quoted = append(quoted, l)
			continue
		}
		fresh = append(fresh, l)
	}
	return fresh, quoted
}

const maxSignatureLines = 20

// cutSignature cuts at the last "-- " line (RFC 3676 section 4.3) or at the line that a phone adds.
func cutSignature(lines []string) (fresh, signature []string) {
	for i := len(lines) - 1; i >= 0 && i >= len(lines)-maxSignatureLines; i-- {
		line := strings.TrimRight(lines[i], "\r")
		low := strings.ToLower(strings.TrimSpace(line))
		device := len(low) < 80 && hasPrefix(low, "sent from my ", "enviado desde mi ", "enviado do meu ", "envoyé de mon ", "von meinem ", "inviato da ", "get outlook for ")
		if line == "-- " || line == "--" || device {
			return lines[:i], lines[i:]
		}
	}
	return lines, nil
}

// Package cue finds one-time codes in the text of a mail and says what a link is for, by words around them, in English, Spanish,
// Portuguese, French, German and Italian. It guesses and says how sure it is; a caller decides. It must not know MIME or HTML.
package cue

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// CodeKind is what a code is for.
type CodeKind string

// The kinds.
const (
	OneTime      CodeKind = "one_time"     // a one-time password or a code without a more precise word
	Verification CodeKind = "verification" // proves an address or an account
	TwoFactor    CodeKind = "two_factor"
	PIN          CodeKind = "pin"
	Reset        CodeKind = "reset" // resets a password
)

// Code is a candidate.
type Code struct {
	Value      string // without separators, upper case as written
	Kind       CodeKind
	Confidence float64 // 0..1
}

const (
	maxText   = 64 << 10 // codes stand at the top; text behind this is not searched
	maxAll    = 100
	reach     = 14 // words around a candidate that count
	above     = 3  // lines above a candidate whose words count
	below     = 1  // lines under it
	threshold = 0.35
	maxWord   = 40 // bytes; words and their capital letters are shorter
)

// Listed is how many codes of a mail are worth listing.
const Listed = 10

// weight classes of words.
const (
	wordCode     = 1 << iota // names a code
	wordVerify               // verification, confirm
	wordTwo                  // 2fa, authentication
	wordPIN                  //
	wordOTP                  // otp, one-time
	wordReset                //
	wordNegative             // order, invoice, phone, price, zip
	wordUse                  // enter, use, valid, expires
)

//nolint:gochecknoglobals // constant table
var words = map[string]uint16{
	"code": wordCode, "codes": wordCode, "passcode": wordCode | wordOTP, "código": wordCode, "codigo": wordCode, "clave": wordCode, "token": wordCode,
	"bestätigungscode": wordCode | wordVerify, "sicherheitscode": wordCode, "einmalcode": wordCode | wordOTP, "einmalpasswort": wordCode | wordOTP, "anmeldecode": wordCode,
	"verifizierungscode": wordCode | wordVerify, "zugangscode": wordCode, "codice": wordCode, "kennwort": wordCode, "contraseña": wordReset, "passwort": wordReset,
	"verification": wordVerify, "verify": wordVerify, "verificación": wordVerify, "verificacion": wordVerify, "verificação": wordVerify, "verificar": wordVerify,
	"vérification": wordVerify, "vérifier": wordVerify, "verifica": wordVerify, "bestätigung": wordVerify, "bestätigen": wordVerify, "confirm": wordVerify,
	"confirmation": wordVerify, "confirmación": wordVerify, "confirmação": wordVerify, "conferma": wordVerify, "confirmar": wordVerify, "activation": wordVerify, "activación": wordVerify,
	"otp": wordOTP | wordCode, "one-time": wordOTP, "einmalig": wordOTP, "onetime": wordOTP, "tan": wordOTP | wordCode, "pin": wordPIN | wordCode,
	"2fa": wordTwo | wordCode, "mfa": wordTwo | wordCode, "two-factor": wordTwo, "two-step": wordTwo, "authentication": wordTwo, "autenticación": wordTwo, "autenticação": wordTwo,
	"authentification": wordTwo, "authentifizierung": wordTwo, "autenticazione": wordTwo, "security": wordUse, "seguridad": wordUse, "segurança": wordUse, "sécurité": wordUse, "sicurezza": wordUse,
	"login": wordUse, "sign-in": wordUse, "signin": wordUse, "acceso": wordUse, "acesso": wordUse, "accesso": wordUse, "connexion": wordUse, "anmeldung": wordUse,
	"enter": wordUse, "introduce": wordUse, "ingresa": wordUse, "insira": wordUse, "digite": wordUse, "saisissez": wordUse, "expires": wordUse, "expira": wordUse, "expire": wordUse, "minutes": wordUse, "minutos": wordUse, "minuten": wordUse, "minuti": wordUse, "scade": wordUse, "gültig": wordUse,
	"reset": wordReset, "password": wordReset, "restablecer": wordReset, "redefinir": wordReset, "réinitialiser": wordReset, "zurücksetzen": wordReset, "reimpostare": wordReset, "senha": wordReset,
	"order": wordNegative, "pedido": wordNegative, "commande": wordNegative, "bestellung": wordNegative, "bestellnummer": wordNegative, "ordine": wordNegative, "encomenda": wordNegative,
	"invoice": wordNegative, "factura": wordNegative, "fatura": wordNegative, "facture": wordNegative, "rechnung": wordNegative, "rechnungsnummer": wordNegative, "fattura": wordNegative,
	"phone": wordNegative, "tel": wordNegative, "telephone": wordNegative, "teléfono": wordNegative, "telefono": wordNegative, "telefone": wordNegative, "téléphone": wordNegative, "telefon": wordNegative, "fax": wordNegative, "call": wordNegative,
	"price": wordNegative, "total": wordNegative, "precio": wordNegative, "preço": wordNegative, "prix": wordNegative, "preis": wordNegative, "prezzo": wordNegative, "usd": wordNegative, "eur": wordNegative, "amount": wordNegative,
	"zip": wordNegative, "postal": wordNegative, "postcode": wordNegative, "plz": wordNegative, "cep": wordNegative, "cap": wordNegative, "street": wordNegative, "avenue": wordNegative, "suite": wordNegative,
	"tracking": wordNegative, "ticket": wordNegative, "case": wordNegative, "reference": wordNegative, "referencia": wordNegative, "account": 0, "customer": wordNegative, "promo": wordNegative, "coupon": wordNegative, "discount": wordNegative, "cupón": wordNegative,
	"copyright": wordNegative, "©": wordNegative, "since": wordNegative, "version": wordNegative, "error": wordNegative, "article": wordNegative, "iso": wordNegative, "http": wordNegative,
}

// token is a word of the text.
type token struct {
	text  string
	class uint16 // once known; see classed
	known bool
	line  int32
	colon bool // a colon, equals sign or "is" stands behind it
	alone bool // the only word of its line
}

// Codes finds the codes of a mail, the surest first. The subject's words count for every candidate.
func Codes(subject, text string) []Code {
	found := All(subject, text)
	return found[:min(len(found), Listed)]
}

// All finds more codes than anybody wants listed, such as a page of recovery codes, for those who must hide them.
func All(subject, text string) []Code {
	if len(text) > maxText {
		text = text[:maxText]
	}
	subject, text = asciiDigits(subject), asciiDigits(text)
	if !hasDigit(subject) && !hasDigit(text) {
		return nil // no candidate is without a digit
	}
	tokens := tokenize(make([]token, 0, len(subject)/5+64), subject, 0)
	inSubject := len(tokens)
	var about uint16
	for i := range tokens {
		about |= tokens[i].classed()
	}
	if strings.Contains(subject, "\n") { // its lines count as the first of the text
		tokens = tokenize(tokens, text, 1)
	} else {
		tokens = tokenizeNear(tokens, text)
	}
	return find(tokens, inSubject, about)
}

// find judges the candidates among the tokens, of which the first are the subject's.
func find(tokens []token, inSubject int, about uint16) []Code {
	var found []Code
	for i := range tokens {
		value, base := candidate(tokens, i)
		if value == "" {
			continue
		}
		c := judge(tokens, i, i < inSubject, about)
		c.Value = value
		c.Confidence += base
		if c.Confidence >= threshold {
			found = insert(found, c)
		}
	}
	return found
}

// asciiDigits writes the decimal digits of any script in ASCII, as 482913 for its full-width form. Unicode assigns them in
// ascending blocks of ten (chapter 4.6), so every range of Nd starts with a zero.
func asciiDigits(s string) string {
	if isASCII(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if r < 0x80 || !unicode.IsDigit(r) {
			return r
		}
		for _, x := range unicode.Nd.R16 {
			if r >= rune(x.Lo) && r <= rune(x.Hi) {
				return '0' + (r-rune(x.Lo))%10
			}
		}
		for _, x := range unicode.Nd.R32 {
			if r >= rune(x.Lo) && r <= rune(x.Hi) {
				return '0' + (r-rune(x.Lo))%10
			}
		}
		return r
	}, s)
}

// insert keeps the list sorted, without doubles, and short.
func insert(found []Code, c Code) []Code {
	// Sums of twentieths in binary end in ...0001; what a reader sees is a number of two digits.
	c.Confidence = math.Round(100*min(c.Confidence, 1)) / 100
	for i := range found {
		if found[i].Value == c.Value {
			if found[i].Confidence >= c.Confidence {
				return found
			}
			found = append(found[:i], found[i+1:]...)
			break
		}
	}
	at := len(found)
	for at > 0 && found[at-1].Confidence < c.Confidence {
		at--
	}
	if at >= maxAll {
		return found
	}
	found = append(found, Code{})
	copy(found[at+1:], found[at:])
	found[at] = c
	return found[:min(len(found), maxAll)]
}

// judge scores the words around token i: those in reach on the same or a neighbouring line.
func judge(tokens []token, i int, subject bool, about uint16) Code {
	c := Code{Kind: OneTime}
	var near, close uint16
	for j := max(0, i-reach); j < min(len(tokens), i+reach+1); j++ {
		t := &tokens[j]
		apart := t.line - tokens[i].line
		if j == i || apart < -above || apart > below || (t.line == 0) != subject {
			continue
		}
		if d := j - i; d >= -4 && d <= 5 && apart >= -1 {
			close |= t.classed()
		}
		if j < i || apart == 0 {
			near |= t.classed()
		}
	}
	positive := near | about&^wordNegative
	switch {
	case close&wordCode != 0:
		c.Confidence += 0.55
	case near&wordCode != 0:
		c.Confidence += 0.4
	case close&(wordOTP|wordVerify|wordTwo) != 0, about&wordCode != 0:
		c.Confidence += 0.3
	}
	if positive&(wordVerify|wordTwo|wordOTP|wordUse|wordReset) != 0 {
		c.Confidence += 0.15
	}
	if tokens[i].alone {
		c.Confidence += 0.15
	}
	if i > 0 && tokens[i-1].colon {
		c.Confidence += 0.05
	}
	if close&wordNegative != 0 {
		c.Confidence -= 0.5
	} else if near&wordNegative != 0 {
		c.Confidence -= 0.15
	}
	c.Kind = kind(near, about)
	return c
}

func kind(near, about uint16) CodeKind {
	for _, set := range [2]uint16{near, about} {
		switch {
		case set&wordTwo != 0:
			return TwoFactor
		case set&wordReset != 0:
			return Reset
		case set&wordVerify != 0:
			return Verification
		case set&wordPIN != 0:
			return PIN
		case set&wordOTP != 0:
			return OneTime
		}
	}
	return OneTime
}

// candidate reads the code at token i and how much its form alone says.
func candidate(tokens []token, i int) (string, float64) {
	s := tokens[i].text
	if !hasDigit(s) {
		return "", 0
	}
	if head, tail, ok := strings.Cut(s, "-"); ok && len(head) == 1 && digits(tail) {
		return s, 0.1 // G-123456
	}
	if digits(s) {
		return digitCode(tokens, i)
	}
	plain := strings.ReplaceAll(s, "-", "")
	if len(plain) < 5 || len(plain) > 12 || len(s) > len(plain)+2 {
		return "", 0
	}
	if digits(plain) {
		if len(plain) == 6 || len(plain) == 8 {
			return plain, 0.05 // 123-456
		}
		return "", 0 // a phone number, a date
	}
	number, upper := 0, 0
	for _, c := range plain {
		switch {
		case c >= '0' && c <= '9':
			number++
		case c >= 'A' && c <= 'Z':
			upper++
		default:
			return "", 0
		}
	}
	if number == 0 || upper == 0 {
		return "", 0
	}
	return s, -0.05
}

func digitCode(tokens []token, i int) (string, float64) {
	s := tokens[i].text
	short := func(j int) bool {
		return j >= 0 && j < len(tokens) && tokens[j].line == tokens[i].line && digits(tokens[j].text) && len(tokens[j].text) <= 4
	}
	switch {
	case len(s) == 3 && short(i+1) && len(tokens[i+1].text) == 3 && !short(i-1) && !short(i+2):
		return s + tokens[i+1].text, 0.1 // 123 456
	case len(s) <= 4 && (short(i-1) || short(i+1)):
		return "", 0 // a group of a longer number
	case len(s) == 4 && (s[:2] == "19" || s[:2] == "20"):
		return s, -0.3
	case len(s) == 6:
		return s, 0.15
	case len(s) >= 4 && len(s) <= 8:
		return s, 0.05
	default:
		return "", 0
	}
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func hasDigit(s string) bool { return firstDigit(s) >= 0 }

// firstDigit is -1 without one.
func firstDigit(s string) int {
	for i := range len(s) {
		if s[i] >= '0' && s[i] <= '9' {
			return i
		}
	}
	return -1
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// tokenize appends the words of text to out. Addresses, amounts, percentages and anything else with inner punctuation stay one word, so
// that a digit group inside them is no candidate.
func tokenize(out []token, text string, line int32) []token {
	for l := range strings.Lines(text) {
		first := len(out)
		for f := range strings.FieldsSeq(l) {
			if len(f) > 80 {
				out = append(out, token{line: line})
				continue
			}
			trimmed := trim(f)
			if trimmed == "" {
				if strings.HasPrefix(f, ":") && len(out) > first {
					out[len(out)-1].colon = true
				}
				continue
			}
			t := token{text: trimmed, line: line}
			t.colon = strings.HasSuffix(f, ":") || strings.HasSuffix(f, "=") || trimmed == "is" || trimmed == "es" || trimmed == "est"
			out = append(out, t)
		}
		if len(out) == first+1 || len(out) == first+2 && digits(out[first].text) && digits(out[first+1].text) {
			out[first].alone = true
		}
		line++
	}
	return out
}

// tokenizeNear is tokenize of those lines of the text, numbered from 1, that can matter to a candidate: those with a digit, the lines
// around them whose words judge looks at, and above them the next line with a word, whose colon may announce the candidate. Of
// most mails that is little.
func tokenizeNear(out []token, text string) []token {
	digit := firstDigit(text) // of the line to come
	done, line := 0, int32(1) // text up to done is dealt with; line stands there
	after := 0                // lines from done on that are below a digit's
	for digit >= 0 {
		// The lines without a digit before the next one with one.
		start := strings.LastIndexByte(text[:digit], '\n') + 1
		for ; after > 0 && done < start; after-- {
			done, line, out = tokenizeLine(out, text, done, line)
		}
		from := back(text, done, start)
		line += int32(strings.Count(text[done:from], "\n")) //nolint:gosec // text is bounded
		for done = from; done <= digit; {
			done, line, out = tokenizeLine(out, text, done, line)
		}
		after = below
		if digit = firstDigit(text[done:]); digit >= 0 {
			digit += done
		}
	}
	for ; after > 0 && done < len(text); after-- {
		done, _, out = tokenizeLine(out, text, done, line)
	}
	return out
}

// back is where the lines begin that count for the one that begins at start: above lines, and more until one has a word, but none
// before done.
func back(text string, done, start int) int {
	word := false
	for n := 0; start > done && (n < above || !word); n++ {
		from := strings.LastIndexByte(text[done:start-1], '\n') + 1 + done
		word = word || hasWord(text[from:start])
		start = from
	}
	return start
}

// hasWord reports whether tokenize finds anything in the line.
func hasWord(line string) bool {
	for f := range strings.FieldsSeq(line) {
		if len(f) > 80 || trim(f) != "" {
			return true
		}
	}
	return false
}

// tokenizeLine is tokenize of the line that begins at from. It returns where the next one begins, and its number.
func tokenizeLine(out []token, text string, from int, line int32) (next int, number int32, tokens []token) {
	next = len(text)
	if i := strings.IndexByte(text[from:], '\n'); i >= 0 {
		next = from + i + 1
	}
	return next, line + 1, tokenize(out, text[from:next], line)
}

// trim drops punctuation around a word; most words have none and are told by two bytes.
func trim(f string) string {
	if plainEdge(f[0]) && plainEdge(f[len(f)-1]) {
		return f
	}
	return strings.TrimFunc(f, edge)
}

func plainEdge(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// edge reports punctuation around a word. A currency sign, plus or hash stays: 120€, +34 and #12345 are no codes.
func edge(r rune) bool {
	return strings.ContainsRune(".,:;!?()[]{}<>\"'*_|`=-–—«»“”‘’¡¿>", r) || unicode.IsSpace(r)
}

// classed is the word's class, looked up when a candidate near it asks: most words of a mail have none near.
func (t *token) classed() uint16 {
	if !t.known && t.text != "" {
		t.class, t.known = classOf(t.text), true
	}
	return t.class
}

func classOf(w string) uint16 {
	if c := w[0]; c >= '0' && c <= '9' && len(w) > 3 {
		return 0
	}
	if len(w) > maxWord {
		return 0
	}
	if class, ok := words[w]; ok {
		return class
	}
	if upper := strings.IndexFunc(w, unicode.IsUpper); upper >= 0 && utf8.ValidString(w) {
		return words[strings.ToLower(w)]
	}
	return 0
}

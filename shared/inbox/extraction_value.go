package inbox

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// reading is a value that was read at a place.
type reading struct {
	literal    json.RawMessage // nil: there is none of this kind
	start, end int             // bytes within the place
	doubt      bool            // it can be read in more than one way
}

// read reads a value of a kind. Where the place is exact the value must be all of it, else it begins there.
func (r *readyTemplate) read(kind valueKind, s *valueSchema, p place) reading {
	text := p.text()
	var v reading
	switch kind {
	case kindString:
		text = strings.ToValidUTF8(text, "\uFFFD")
		if text == "" || utf8.RuneCountInString(text) > maxFieldText {
			return reading{}
		}
		return reading{literal: json.RawMessage(jsonText(text)), end: p.end - p.start}
	case kindNumber, kindInteger:
		v = readNumber(text, r.template.Decimal, kind == kindInteger)
	case kindDate:
		v = readDate(text, r.template.DateOrder)
	case kindMoney:
		v = readMoney(text, r.template.Decimal, s.currencies)
	}
	if v.literal == nil && !v.doubt {
		return reading{}
	}
	rest := text[v.end:]
	if p.exact && strings.TrimFunc(rest, blank) != "" {
		return reading{}
	}
	if kind == kindDate && len(rest) > 1 && rest[0] == 'T' && unicode.IsDigit(rune(rest[1])) {
		return v // RFC 3339: the time of the day follows
	}
	if next, _ := utf8.DecodeRuneInString(rest); rest != "" && (unicode.IsLetter(next) || unicode.IsDigit(next)) {
		return reading{}
	}
	return v
}

const maxDigits = 18

// digits is a number as it is written: groups of digits with marks between them.
type digits struct {
	groups []string
	marks  []string
	end    int
}

func scanDigits(s string) digits {
	var d digits
	at := 0
	for {
		from := at
		for at < len(s) && s[at] >= '0' && s[at] <= '9' {
			at++
		}
		d.groups, d.end = append(d.groups, s[from:at]), at
		mark, size := utf8.DecodeRuneInString(s[at:])
		next := s[at+size:]
		if len(d.groups) > maxDigits || next == "" || next[0] < '0' || next[0] > '9' {
			return d
		}
		switch mark {
		case '.', ',':
			d.marks = append(d.marks, string(mark))
		case '\'', '’', ' ', '\u00a0', '\u202f', '\u2009':
			// A space belongs to the number only before three digits: "2 pieces of 3" are two numbers.
			if n := len(next) - len(strings.TrimLeft(next, "0123456789")); n != 3 || len(s[from:at]) > 3 {
				return d
			}
			d.marks = append(d.marks, " ")
		default:
			return d
		}
		at += size
	}
}

// decimal is the index of the group of decimals; 0 for none. doubt: it may be both.
func (d digits) decimal(hint string, integer bool) (index int, ok, doubt bool) {
	n := len(d.marks)
	if n == 0 {
		return 0, true, false
	}
	last := d.marks[n-1]
	grouping := d.marks
	switch {
	case last == " " || slices.Index(d.marks, last) < n-1: // a mark that occurs twice is no decimal one
		if hint == last {
			return 0, false, true
		}
	case n > 1:
		index, grouping = n, d.marks[:n-1]
	case len(d.groups[1]) != 3 || d.groups[0] == "0" || len(d.groups[0]) > 3 || hint == last:
		index, grouping = 1, nil
	case hint == "" && !integer:
		return 0, false, true
	}
	if index > 0 && hint != "" && hint != last {
		return 0, false, true // the template says otherwise
	}
	for i := range grouping { // 1,234.567: each group behind the first has three digits
		if grouping[i] != grouping[0] || index > 0 && grouping[i] == last || len(d.groups[i+1]) != 3 || len(d.groups[0]) > 3 || len(d.groups[0]) == 0 {
			return 0, false, false
		}
	}
	return index, true, false
}

// readNumber reads a number at the start of a text.
func readNumber(s, hint string, integer bool) reading {
	sign, at := "", 0
	if r, size := utf8.DecodeRuneInString(s); r == '-' || r == '−' || r == '+' {
		at = size
		if r != '+' {
			sign = "-"
		}
	}
	if at >= len(s) || s[at] < '0' || s[at] > '9' {
		return reading{}
	}
	d := scanDigits(s[at:])
	all := strings.Join(d.groups, "")
	if len(all) > maxDigits {
		return reading{}
	}
	decimal, ok, doubt := d.decimal(hint, integer)
	v := reading{end: at + d.end, doubt: doubt}
	if !ok {
		return v
	}
	whole, fraction := all, ""
	if decimal > 0 {
		whole = strings.Join(d.groups[:decimal], "")
		fraction = strings.Join(d.groups[decimal:], "")
	}
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		whole = "0"
	}
	if fraction != "" {
		whole += "." + fraction
	}
	if integer && strings.Trim(fraction, "0") != "" {
		return reading{}
	}
	if integer {
		whole, _, _ = strings.Cut(whole, ".")
	}
	if strings.Trim(whole, "0.") == "" {
		sign = ""
	}
	v.literal = json.RawMessage(sign + whole)
	return v
}

// currencies are the codes of ISO 4217 that are in use.
const currencies = "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP CNY " +
	"COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK " +
	"JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD " +
	"NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL " +
	"THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VED VES VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG"

func isCurrency(code string) bool {
	return len(code) == 3 && !strings.Contains(code, " ") && strings.Contains(currencies, code)
}

// signs are the marks of currencies with what each may mean, the longer ones first.
//
//nolint:gochecknoglobals // constant table
var signs = []struct{ sign, codes string }{
	{"US$", "USD"}, {"R$", "BRL"}, {"C$", "CAD"}, {"A$", "AUD"}, {"NZ$", "NZD"}, {"HK$", "HKD"}, {"Kč", "CZK"}, {"zł", "PLN"},
	{"kr", "SEK NOK DKK ISK"}, {"€", "EUR"}, {"£", "GBP"}, {"₹", "INR"}, {"₩", "KRW"}, {"₺", "TRY"}, {"₪", "ILS"}, {"₴", "UAH"}, {"₽", "RUB"},
	{"¥", "JPY CNY"}, {"$", "USD CAD AUD NZD MXN ARS CLP COP SGD HKD TWD UYU"},
}

// currencyAt is the currency that a text begins with: what it may mean, and its bytes.
func currencyAt(s string) (codes []string, size int) {
	for _, c := range signs {
		if strings.HasPrefix(s, c.sign) {
			return strings.Fields(c.codes), len(c.sign)
		}
	}
	if len(s) >= 3 && isCurrency(s[:3]) {
		if next, _ := utf8.DecodeRuneInString(s[3:]); len(s) == 3 || !unicode.IsLetter(next) {
			return []string{s[:3]}, 3
		}
	}
	return nil, 0
}

// readMoney reads an amount with a currency on either side. The mark of several currencies leaves it in doubt unless the
// template allows only one of them; no mark at all is taken for the only currency that the template allows.
func readMoney(s, hint string, allowed []string) reading {
	before, at := currencyAt(s)
	at += spaces(s[at:])
	n := readNumber(s[at:], hint, false)
	if n.literal == nil {
		return n
	}
	end := at + n.end
	gap := spaces(s[end:])
	after, size := currencyAt(s[end+gap:])
	if size > 0 {
		end += gap + size
	}
	codes := before
	switch {
	case before == nil:
		codes = after
	case after != nil:
		codes = slices.DeleteFunc(before, func(c string) bool { return !slices.Contains(after, c) })
	}
	if before == nil && after == nil && len(allowed) == 1 {
		codes = allowed
	}
	if len(codes) > 1 && len(allowed) > 0 {
		codes = slices.DeleteFunc(slices.Clone(codes), func(c string) bool { return !slices.Contains(allowed, c) })
	}
	if len(codes) != 1 {
		return reading{end: end, doubt: len(codes) > 1}
	}
	return reading{literal: json.RawMessage(fmt.Sprintf(`{"amount":%s,"currency":"%s"}`, n.literal, codes[0])), end: end}
}

func spaces(s string) int { return len(s) - len(strings.TrimLeft(s, " \t\u00a0\u202f")) }

// months are the beginnings of the months' names in English, Spanish, French, German, Italian and Portuguese; of several that
// begin alike the longer one stands first.
//
//nolint:gochecknoglobals // constant table
var months = []struct {
	month time.Month
	names string
}{
	{time.January, "january jan enero ene janvier janv januar jänner gennaio gen janeiro"},
	{time.February, "february feb febrero février févr fév februar febbraio fevereiro fev"},
	{time.March, "march mar marzo mars märz mär mrz março"},
	{time.April, "april apr abril abr avril avr aprile"},
	{time.May, "may mayo mai maggio mag maio"},
	{time.June, "june jun junio juin juni giugno giu junho"},
	{time.July, "july jul julio juillet juil juli luglio lug julho"},
	{time.August, "august aug agosto ago août"},
	{time.September, "september sept sep septiembre septembre settembre set setembro"},
	{time.October, "october oct octubre octobre oktober okt ottobre ott outubro out"},
	{time.November, "november nov noviembre novembre novembro"},
	{time.December, "december dec diciembre dic décembre déc dezember dez dicembre dezembro"},
}

func monthNamed(word string) time.Month {
	word = strings.ToLower(strings.TrimSuffix(word, "."))
	for _, m := range months {
		if word != "" && slices.Contains(strings.Fields(m.names), word) {
			return m.month
		}
	}
	return 0
}

// token is one run of digits or of letters of a date.
type token struct {
	text       string
	end        int    // bytes from the start of the date
	mark       string // what stands between it and the next one
	start      int
	isNumber   bool
	hasOrdinal bool
}

// readDate reads a date at the start of a text. A day of the week before it is passed over.
func readDate(s, order string) reading {
	tokens := dateTokens(s)
	for skip := range 2 {
		if len(tokens) < skip+3 {
			break
		}
		if skip > 0 && (tokens[0].isNumber || monthNamed(tokens[0].text) != 0) {
			break
		}
		if v := dateOf(tokens[skip:skip+3], order); v.literal != nil || v.doubt {
			return v
		}
	}
	return reading{}
}

// dateTokens are the first words and numbers of a text, without "de", "of", "the" and ordinal endings.
func dateTokens(s string) []token {
	const maxTokens = 5
	var out []token
	class := func(r rune) int {
		switch {
		case r >= '0' && r <= '9':
			return 1
		case unicode.IsLetter(r):
			return 2
		}
		return 0
	}
	for at := 0; at < len(s) && len(out) < maxTokens; {
		r, size := utf8.DecodeRuneInString(s[at:])
		kind := class(r)
		if kind == 0 {
			if len(out) > 0 {
				out[len(out)-1].mark += string(r)
			}
			if r == '\n' || len(out) > 0 && len(out[len(out)-1].mark) > 4 {
				break
			}
			at += size
			continue
		}
		from := at
		for at < len(s) {
			if r, size = utf8.DecodeRuneInString(s[at:]); class(r) != kind {
				break
			}
			at += size
		}
		word := s[from:at]
		if kind == 2 && len(out) > 0 && slices.Contains([]string{"de", "del", "of", "st", "nd", "rd", "th", "er", "º", "ª"}, strings.ToLower(word)) {
			out[len(out)-1].hasOrdinal = true
			continue
		}
		out = append(out, token{text: word, start: from, end: at, isNumber: kind == 1})
	}
	return out
}

func dateOf(t []token, order string) reading {
	v := reading{start: t[0].start, end: t[2].end}
	a, b, c := t[0], t[1], t[2]
	var year, month, day int
	switch {
	case a.isNumber && b.isNumber && c.isNumber:
		if a.mark != b.mark || !slices.Contains([]string{"-", "/", ".", ". "}, a.mark) || a.hasOrdinal || b.hasOrdinal {
			return reading{}
		}
		if len(a.text) == 4 {
			year, month, day = whole(a.text), whole(b.text), whole(c.text)
			break
		}
		if len(c.text) != 4 || len(a.text) > 2 || len(b.text) > 2 {
			return reading{} // a year of two digits names three centuries' days
		}
		year, month, day, v.doubt = whole(c.text), whole(b.text), whole(a.text), false
		usual := validDay(year, month, day)
		american := a.mark != ". " && a.mark != "." && validDay(year, day, month)
		switch {
		case order == "mdy", order == "" && american && !usual:
			month, day = day, month
		case order == "" && american && usual && month != day:
			return reading{end: v.end, doubt: true}
		}
	case a.isNumber && !b.isNumber && c.isNumber:
		year, month, day = whole(c.text), int(monthNamed(b.text)), whole(a.text)
	case !a.isNumber && b.isNumber && c.isNumber:
		year, month, day = whole(c.text), int(monthNamed(a.text)), whole(b.text)
	}
	if !validDay(year, month, day) {
		return reading{}
	}
	v.literal = fmt.Appendf(nil, `"%04d-%02d-%02d"`, year, month, day)
	return v
}

// whole reads at most four digits; -1 for more.
func whole(s string) int {
	if len(s) > 4 {
		return -1
	}
	n := 0
	for _, c := range []byte(s) {
		n = 10*n + int(c-'0')
	}
	return n
}

func validDay(year, month, day int) bool {
	if year < 1900 || year > 2199 || month < 1 || month > 12 || day < 1 {
		return false
	}
	t := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	return t.Day() == day
}

func isDate(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}

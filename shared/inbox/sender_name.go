package inbox

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// NormalDomain validates a mail domain and returns its A-label form (RFC 5890) in lower case.
func NormalDomain(domain string) (string, error) {
	domain = strings.TrimSuffix(strings.TrimSpace(domain), ".")
	ascii, err := idna.New(
		idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(true), idna.VerifyDNSLength(true), idna.ValidateLabels(true),
	).ToASCII(domain)
	if err != nil || !strings.Contains(ascii, ".") || numericTLD(ascii) {
		return "", apperr.New(apperr.Invalid, "invalid_domain", "This is not a mail domain.",
			"Send a domain name with at least one dot, such as mail.example.com.").Because(err)
	}
	return strings.ToLower(ascii), nil
}

// numericTLD refuses what a client would read as an IPv4 address (RFC 3696 section 2).
func numericTLD(domain string) bool {
	last := domain[strings.LastIndexByte(domain, '.')+1:]
	return strings.Trim(last, "0123456789") == ""
}

// normalAddress is the spelling of a sender's address by which entries are found: lower case, A-labels. What follows a plus
// stays: to whom a plus is the same mailbox is the host's secret, and folding it would let one address speak for another.
func normalAddress(address string) (string, bool) {
	local, domain, ok := cutAddress(address)
	if !ok || len(address) > maxAddress || len(local) > maxLocal || domain == "" || !utf8.ValidString(address) {
		return "", false
	}
	for _, r := range local {
		if r <= ' ' || unprintable(r) || unicode.IsSpace(r) || strings.ContainsRune(`"(),:;<>@[\]`, r) {
			return "", false
		}
	}
	domain, ok = lookupDomain(domain)
	return strings.ToLower(local) + "@" + domain, ok
}

// SenderAddress is the spelling of an address by which entries are found; empty for what can't be listed.
func SenderAddress(address string) string {
	if normal, ok := normalAddress(address); ok {
		return normal
	}
	return ""
}

// lookupDomain is NormalDomain for what stands in mail, where more occurs than may be listed.
func lookupDomain(domain string) (string, bool) {
	domain = strings.TrimSuffix(domain, ".")
	if strings.IndexFunc(domain, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 {
		ascii, err := idna.Lookup.ToASCII(domain)
		if err != nil {
			return "", false
		}
		domain = strings.TrimSuffix(ascii, ".") // an ideographic full stop became one
	}
	domain = strings.ToLower(domain)
	if domain == "" || domain[0] == '.' || domain[len(domain)-1] == '.' || strings.Contains(domain, "..") || len(domain) > maxAddress || strings.Trim(domain, "abcdefghijklmnopqrstuvwxyz0123456789-._") != "" {
		return "", false
	}
	return domain, true
}

// SenderZone is under which key the entries for domains of an address stand: the last two labels as they look. Look-alikes of
// a listed domain share its zone, so the one read that finds the entries of a domain finds what it imitates too.
func SenderZone(domain string) string {
	labels := strings.Split(skeleton(domain), ".")
	return strings.Join(labels[max(len(labels)-2, 0):], ".")
}

// lookalikes maps letters to the one that they are mistaken for. It is no full table of confusables (Unicode TS 39): those that
// are used in domains against readers of Latin script.
//
//nolint:gochecknoglobals // constant table
var lookalikes = func() map[rune]rune {
	table := map[rune]rune{}
	for _, row := range []struct{ plain, others string }{
		{"a", "àáâãäåāăąǎạảαаɑ"}, {"b", "ьƅв"}, {"c", "çćĉċčсϲ"}, {"d", "ďđԁ"}, {"e", "èéêëēĕėęěẹеєҽ3"}, {"f", "ƒ"},
		{"g", "ĝğġģɡց9"}, {"h", "ĥħһн"}, {"l", "iìíîïĩīĭįıιіїĺļľłӏ1|ǀ"}, {"j", "ĵјϳ"}, {"k", "ķκкĸ"}, {"n", "ñńņňŉηո"},
		{"o", "òóôõöøōŏőọοоσօ0"}, {"p", "ρрṗ"}, {"q", "ԛզ"}, {"r", "ŕŗřгṛ"}, {"s", "śŝşšșѕ5ṣ"}, {"t", "ţťŧțтτ"},
		{"u", "ùúûüũūŭůűųυսụ"}, {"v", "νѵṿ"}, {"w", "ŵωшԝẃ"}, {"x", "хχ×"}, {"y", "ýÿŷуγү"}, {"z", "źżžᴢ2"}, {"m", "мṃ"},
	} {
		for _, r := range row.others {
			table[r], _ = utf8.DecodeRuneInString(row.plain)
		}
	}
	return table
}()

//nolint:gochecknoglobals // constant table
var pairs = strings.NewReplacer("rn", "m", "vv", "w", "cl", "d", "-", "", "_", "")

// skeleton is what a reader takes a domain for: two that look alike have the same.
func skeleton(domain string) string {
	domain = strings.ToLower(domain)
	text, err := idna.ToUnicode(domain)
	if err != nil {
		text = domain
	}
	text = strings.Map(func(r rune) rune {
		if plain, ok := lookalikes[r]; ok {
			return plain
		}
		return r
	}, text)
	return pairs.Replace(text)
}

// imitates reports whether a domain, or one above it, looks like known and is not known's.
func imitates(domain, known string, sameOwner func(a, b string) bool) bool {
	if domain == known || strings.HasSuffix(domain, "."+known) || sameOwner(domain, known) {
		return false
	}
	s, k := skeleton(domain), skeleton(known)
	return s == k || strings.HasSuffix(s, "."+k)
}

// mixedScripts reports whether a label has letters of Latin and of a script that resembles it: no language writes so.
func mixedScripts(domain string) bool {
	text, err := idna.ToUnicode(domain)
	if err != nil {
		return false
	}
	for label := range strings.SplitSeq(text, ".") {
		latin, other := false, false
		for _, r := range label {
			latin = latin || unicode.Is(unicode.Latin, r)
			other = other || unicode.In(r, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee)
		}
		if latin && other {
			return true
		}
	}
	return false
}

// addressIn finds the first address in a display name, in its normal form; empty when there is none.
func addressIn(name string) string {
	for _, word := range strings.FieldsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`<>()[]"',;:`, r) }) {
		if address, ok := normalAddress(strings.Trim(word, ".")); ok && strings.Contains(address[strings.LastIndexByte(address, '@'):], ".") {
			return address
		}
	}
	return ""
}

package smtpd

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/emersion/go-smtp"
	"golang.org/x/net/idna"
)

// The bounds of RFC 5321 §4.5.3.1; a path is 256 bytes with its angle brackets.
const (
	maxAddress = 254
	maxLocal   = 64
	maxDomain  = 255
)

// recipientAddress turns what stood in RCPT TO into the lower-case address to look up. go-smtp has taken the source route
// and the quotes away already, so nothing here can lead anywhere but to one of our own domains: whether the address is
// ours is the Acceptor's answer to the whole of it, never to a part. utf8 tells that the client said SMTPUTF8.
func recipientAddress(raw string, smtputf8 bool, home string) (string, *smtp.SMTPError) {
	// RFC 5321 §4.1.1.3: <Postmaster> without a domain is the postmaster of this host.
	if strings.EqualFold(raw, "postmaster") {
		return "postmaster@" + strings.ToLower(home), nil
	}
	local, domain, bad := splitAddress(raw, smtputf8)
	if bad != nil {
		return "", bad
	}
	if !isDotAtom(local) {
		// A local part that needed quotes is valid, and never an inbox's. Looking it up would let `"a@ours"@b` be read in
		// two ways by whoever splits it again.
		return "", unknownRecipient()
	}
	domain, ok := asciiDomain(domain)
	if !ok {
		return "", unknownRecipient()
	}
	return strings.ToLower(local) + "@" + domain, nil
}

// senderAddress checks what stood in MAIL FROM. It is only kept, never answered here, so any syntax that cannot be
// mistaken for something else will do.
func senderAddress(raw string, smtputf8 bool) *smtp.SMTPError {
	if raw == "" {
		return nil
	}
	_, _, bad := splitAddress(raw, smtputf8)
	return bad
}

// splitAddress cuts at the last @ and refuses what no address may hold.
func splitAddress(raw string, smtputf8 bool) (local, domain string, bad *smtp.SMTPError) {
	if !utf8.ValidString(raw) || strings.ContainsFunc(raw, unicode.IsControl) {
		return "", "", reply(501, 1, 3, "Bad address syntax")
	}
	at := strings.LastIndexByte(raw, '@')
	if at <= 0 || at == len(raw)-1 {
		return "", "", reply(501, 1, 3, "Bad address syntax")
	}
	local, domain = raw[:at], raw[at+1:]
	if len(raw) > maxAddress || len(local) > maxLocal || len(domain) > maxDomain {
		return "", "", reply(501, 1, 3, "Address too long")
	}
	if !smtputf8 && !isASCII(raw) { // RFC 6531 §3.5
		return "", "", reply(553, 6, 7, "Addresses beyond ASCII need SMTPUTF8")
	}
	return local, domain, nil
}

// isDotAtom is RFC 5321's Dot-string in ASCII.
func isDotAtom(s string) bool {
	for atom := range strings.SplitSeq(s, ".") {
		if atom == "" {
			return false
		}
		for i := range len(atom) {
			if !isAtext(atom[i]) {
				return false
			}
		}
	}
	return true
}

func isAtext(c byte) bool {
	return isAlnum(c) || strings.IndexByte("!#$%&'*+-/=?^_`{|}~", c) >= 0
}

func isAlnum(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// asciiDomain is the domain in lower case, with A-labels. Address literals are not served: inboxes live in domains.
func asciiDomain(domain string) (string, bool) {
	if !isASCII(domain) {
		a, err := idna.Lookup.ToASCII(domain)
		if err != nil {
			return "", false
		}
		domain = a
	}
	for label := range strings.SplitSeq(domain, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return "", false
		}
		for i := range len(label) {
			if !isAlnum(label[i]) && label[i] != '-' {
				return "", false
			}
		}
	}
	return strings.ToLower(domain), len(domain) <= maxDomain
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// heloName is the client's own name if it can be kept, else nothing: it is a claim, and only ever shown.
func heloName(s string) string {
	if len(s) > maxDomain || !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		return ""
	}
	return s
}

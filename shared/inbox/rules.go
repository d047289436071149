package inbox

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// Bounds of the domain.
const (
	Retention       = 30 * 24 * time.Hour // how long a soft delete can be undone
	MaxLabels       = 50                  // of a mail
	maxLabel        = 64
	maxSlug         = 63
	maxLocal        = 64  // RFC 5321 section 4.5.3.1.1
	maxAddress      = 254 // RFC 5321 section 4.5.3.1.3, without the brackets
	maxDisplayName  = 128
	maxRetention    = 3650 // days
	maxFilter       = 256  // bytes of a text filter
	maxWorkspaceRef = 64
)

// ValidSlug reports whether s is a slug: ^[a-z0-9][a-z0-9-]{0,62}$.
func ValidSlug(s string) bool {
	if s == "" || len(s) > maxSlug || s[0] == '-' {
		return false
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

func checkSlug(location, s string) error {
	if ValidSlug(s) {
		return nil
	}
	return invalid(location, "1 to 63 of a-z, 0-9 and -, the first not a -", "Send a slug such as support or billing-eu.")
}

// checkLabel holds for labels and categories: our own vocabulary, which stands outside of the untrusted text, so it must
// not be able to carry a sentence.
func checkLabel(location, s string) error {
	const set = "abcdefghijklmnopqrstuvwxyz0123456789-_./:"
	if s == "" || len(s) > maxLabel || strings.Trim(s, set) != "" || strings.Contains("-_./:", s[:1]) {
		return invalid(location, "1 to 64 of a-z, 0-9, -, _, ., /, :, the first a letter or digit",
			"Send a label such as invoice or needs-reply.")
	}
	return nil
}

// checkAddress normalises an inbox's address and checks it against the domains of the organization. A plus is refused:
// what follows a plus is the sender's to choose.
func checkAddress(address string, domains []string) (string, error) {
	address = strings.ToLower(strings.TrimSpace(address))
	local, domain, ok := cutAddress(address)
	if !ok || len(address) > maxAddress || !validLocal(local) {
		return "", invalid("body.address",
			"local-part@domain: up to 64 of a-z, 0-9, -, _ and single dots inside, before the @", addressFix(domains))
	}
	if !slices.Contains(domains, domain) {
		return "", invalid("body.address", "the domain is not assigned to your organization", addressFix(domains))
	}
	return address, nil
}

func cutAddress(address string) (local, domain string, ok bool) {
	i := strings.LastIndexByte(address, '@')
	if i < 1 {
		return "", "", false
	}
	return address[:i], address[i+1:], true
}

func validLocal(s string) bool {
	if s == "" || len(s) > maxLocal || strings.Contains(s, "..") {
		return false
	}
	if strings.Contains("._-", s[:1]) || strings.Contains("._-", s[len(s)-1:]) {
		return false
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789._-") == ""
}

func addressFix(domains []string) string {
	if len(domains) == 0 {
		return "No domain is assigned to your organization yet: ask whoever runs this service to run `buzon domain add`."
	}
	return "Use an address in one of your organization's domains: " + strings.Join(domains, ", ") + "."
}

func checkDisplayName(s string) error {
	if len(s) > maxDisplayName || strings.ContainsFunc(s, unprintable) {
		return invalid("body.display_name", fmt.Sprintf("at most %d bytes without control characters", maxDisplayName))
	}
	return nil
}

// unprintable holds for control characters and for what can turn or hide text: bidi controls, zero-width and tag characters.
func unprintable(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r < 0xa0, r == 0xfffd, r == 0x061c:
		return true
	case r >= 0x200b && r <= 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2060 && r <= 0x206f, r == 0xfeff:
		return true
	}
	return r >= 0xe0000 && r <= 0xe007f
}

// checkFilter bounds a text that a caller searches for.
func checkFilter(location, s string) error {
	if len(s) > maxFilter {
		return invalid(location, fmt.Sprintf("at most %d bytes", maxFilter))
	}
	return nil
}

func invalid(location, message string, fixes ...string) *apperr.Error {
	return apperr.New(apperr.Invalid, "", "The input is at fault: "+location+".", fixes...).At(location, message)
}

func sameAddress(a, b string) bool { return strings.ToLower(strings.TrimSpace(a)) == b }

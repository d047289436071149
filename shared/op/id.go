package op

import (
	"strings"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// Sizes of identifiers, in bytes.
const (
	maxPrefix = 32 // of the letters before the underscore
	ulidSize  = 26
	maxSlug   = 63
)

// ValidID reports whether s is an id: lower-case letters, an underscore and the 26 characters of a ULID in Crockford's
// alphabet, ^[a-z]{1,32}_[0-9A-HJKMNP-TV-Z]{26}$. Hand-written, for a regexp in a schema costs start-up time.
func ValidID(s string) bool {
	cut := len(s) - ulidSize - 1
	if cut < 1 || cut > maxPrefix || s[cut] != '_' {
		return false
	}
	for i := range cut {
		if s[i] < 'a' || s[i] > 'z' {
			return false
		}
	}
	for i := cut + 1; i < len(s); i++ {
		if !crockford(s[i]) {
			return false
		}
	}
	return true
}

func crockford(c byte) bool {
	switch {
	case c >= '0' && c <= '9':
		return true
	case c >= 'A' && c <= 'Z':
		return c != 'I' && c != 'L' && c != 'O' && c != 'U'
	}
	return false
}

// ValidSlug reports whether s is a slug: ^[a-z0-9][a-z0-9-]{0,62}$.
func ValidSlug(s string) bool {
	if s == "" || len(s) > maxSlug || s[0] == '-' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// ValidPathValue reports whether s may stand in a path: an id or a slug. Neither holds a slash, a dot, a percent sign or a
// control character, so no value can reach another route.
func ValidPathValue(s string) bool { return ValidID(s) || ValidSlug(s) }

// Brief cuts a name that a caller made up before a reply repeats it, so that a reply can't be made huge.
func Brief(name string) string {
	const most = 64 // bytes
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "")
}

// NotFound is the answer to a path value that is neither an id nor a slug. It is the not_found of a missing thing: what
// can't exist is answered like what doesn't, and nobody learns the shape of ids by probing.
func NotFound() *apperr.Error {
	return apperr.New(apperr.NotFound, "", "There is nothing with this id.",
		"Use an id or a slug exactly as another operation returned it.")
}

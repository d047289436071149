package seal

import (
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

const (
	minSecret = 32
	maxID     = 16
	maxRoots  = 16
)

const redacted = "[redacted]"

// Root is one version of the root secret.
type Root struct {
	ID     string // 1 to 16 of a-z, 0-9, _ and -; it travels in every token
	Secret []byte // at least 32 random bytes
}

// String hides the secret.
func (r Root) String() string { return r.ID + ":" + redacted }

// Format hides the secret from every verb, %x and %#v too.
func (r Root) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(r.String())) }

// LogValue hides the secret from logs.
func (r Root) LogValue() slog.Value { return slog.StringValue(r.String()) }

// MarshalText hides the secret from encoders.
func (r Root) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// ParseRoots reads the text form of a list of root secrets: entries `id:base64` (standard alphabet with padding, as
// `openssl rand -base64 32` prints), separated by newlines or commas; blank entries and those that start with # are skipped.
// The first entry seals, all open. To rotate without a gap, append the new root everywhere, then move it to the front
// everywhere; drop the old one when its last token has expired. Errors name the entry and never its text.
func ParseRoots(text string) ([]Root, error) {
	var roots []Root
	for i, entry := range strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == ',' }) {
		entry = strings.TrimSpace(entry)
		if entry == "" || entry[0] == '#' {
			continue
		}
		id, encoded, found := strings.Cut(entry, ":")
		if !found {
			return nil, fmt.Errorf("root secret in entry %d: want id:base64", i+1)
		}
		secret, err := base64.StdEncoding.Strict().DecodeString(encoded)
		if err != nil { // its text would quote the position only, but it says nothing more that helps
			return nil, fmt.Errorf("root secret in entry %d: not standard base64 with padding", i+1)
		}
		roots = append(roots, Root{ID: id, Secret: secret})
	}
	if err := checkRoots(roots); err != nil {
		return nil, err
	}
	return roots, nil
}

func checkRoots(roots []Root) error {
	if len(roots) == 0 {
		return errors.New("no root secret")
	}
	if len(roots) > maxRoots {
		return fmt.Errorf("%d root secrets, want at most %d", len(roots), maxRoots)
	}
	for i, r := range roots {
		if !validID(r.ID) {
			return fmt.Errorf("root secret %d: its id must be 1 to %d of a-z, 0-9, _ and -", i+1, maxID)
		}
		if len(r.Secret) < minSecret {
			return fmt.Errorf("root secret %d: %d bytes, want at least %d", i+1, len(r.Secret), minSecret)
		}
		for _, other := range roots[:i] {
			if other.ID == r.ID {
				return fmt.Errorf("root secret %d: its id is taken", i+1)
			}
		}
	}
	return nil
}

func validID(id string) bool {
	if len(id) < 1 || len(id) > maxID {
		return false
	}
	for _, c := range []byte(id) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// Package seal makes state that travels through other hands: opaque, authenticated, expiring text under keys that are derived
// from a versioned list of root secrets, one key for each purpose. Cursors, consent steps, continuations and download links
// are such text. It knows nothing of what it seals, who holds it, or how it is sent, and depends on the standard library only.
//
// A token is base64url without padding (RFC 4648 section 5) of
//
//	byte    format, 1
//	byte    length of the root's id, then the id
//	uint64  expiry in Unix seconds, big endian; 0 is never
//	12      nonce, random
//	rest    AES-256-GCM of the plaintext with its 16-byte tag; everything before the nonce and the caller's data is authenticated
//
// The key is HKDF-SHA-256 (RFC 5869) of the root secret, without salt, with the purpose's label as info. Nonces are random, so
// one purpose may seal 2^32 tokens under one root before a repeated nonce becomes likelier than 2^-32 (NIST SP 800-38D section
// 8.3): at 100 a second that is a year and four months. Rotate the root before that.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"
	"sync"
	"time"
)

// What Open and Seal return. Open tells nothing apart that an attacker could use: what was not sealed here for this purpose
// and this data is ErrInvalid, whatever is wrong with it.
var (
	ErrInvalid  = errors.New("seal: invalid token")
	ErrExpired  = errors.New("seal: expired token") // authentic, but its time is over
	ErrTooLarge = errors.New("seal: too large for a token")
)

const (
	// MaxToken is the longest token in bytes, checked before anything is decoded.
	MaxToken = 8 << 10
	// NoExpiry as a ttl makes a token that never expires.
	NoExpiry = time.Duration(math.MaxInt64)

	format    = 1
	keySize   = 32
	nonceSize = 12
	tagSize   = 16
	expiryLen = 8
	maxLabel  = 128
)

// Options are the settings of New; the zero value works.
type Options struct {
	Clock func() time.Time // time.Now if nil
	Rand  io.Reader        // crypto/rand if nil
}

// Keyring holds the root secrets. It never prints them.
type Keyring struct {
	roots []Root
	clock func() time.Time
	rand  io.Reader
}

// New checks and copies the roots. The first seals, all open.
func New(roots []Root, opts Options) (*Keyring, error) {
	if err := checkRoots(roots); err != nil {
		return nil, err
	}
	k := &Keyring{clock: opts.Clock, rand: opts.Rand}
	for _, r := range roots {
		k.roots = append(k.roots, Root{ID: r.ID, Secret: append([]byte(nil), r.Secret...)})
	}
	if k.clock == nil {
		k.clock = time.Now
	}
	if k.rand == nil {
		k.rand = rand.Reader
	}
	return k, nil
}

// String hides the secrets.
func (k *Keyring) String() string { return redacted }

// Format hides the secrets from every verb.
func (k *Keyring) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue hides the secrets from logs.
func (k *Keyring) LogValue() slog.Value { return slog.StringValue(redacted) }

// Derive returns n bytes (1 to 255 * 32) of key material of the newest root for a label of its own: for MACs and the like. It
// never equals key material of a Purpose, whatever the labels.
func (k *Keyring) Derive(label string, n int) []byte {
	return derive(k.roots[0], "seal/1/derive/", label, n)
}

// DeriveAll is Derive for every root, newest first, so that what was authenticated before a rotation still verifies.
func (k *Keyring) DeriveAll(label string, n int) [][]byte {
	all := make([][]byte, 0, len(k.roots))
	for _, r := range k.roots {
		all = append(all, derive(r, "seal/1/derive/", label, n))
	}
	return all
}

// derive panics for a label or length that can't be: both are constants of the caller, and weak keys must not start a process.
func derive(r Root, domain, label string, n int) []byte {
	if label == "" || len(label) > maxLabel {
		panic("seal: a label must be 1 to 128 bytes")
	}
	key, err := hkdf.Key(sha256.New, r.Secret, nil, domain+label, n)
	if err != nil || n < 1 {
		panic(fmt.Sprintf("seal: derive %d bytes for %q: %v", n, label, err))
	}
	return key
}

// Purpose returns the sealer of one purpose, with its keys ready. Labels are constants of the code ("inbox/cursor"); what one
// purpose seals no other opens. Keep the sealer: making one costs a key schedule for each root.
func (k *Keyring) Purpose(label string) *Sealer {
	s := &Sealer{clock: k.clock, rand: k.rand}
	for _, r := range k.roots {
		block, err := aes.NewCipher(derive(r, "seal/1/purpose/", label, keySize))
		if err != nil {
			panic(err) // the key has the right size
		}
		gcm, err := cipher.NewGCM(block)
		if err != nil {
			panic(err) // AES has the right block size
		}
		s.keys = append(s.keys, sealKey{id: r.ID, aead: gcm})
	}
	s.scratch.New = func() any { return new(scratch) }
	return s
}

// Sealer seals and opens for one purpose. It may be used by many goroutines at once.
type Sealer struct {
	keys    []sealKey // the first seals
	clock   func() time.Time
	rand    io.Reader
	scratch sync.Pool // of *scratch: tokens are made and read on every request
}

type sealKey struct {
	id   string
	aead cipher.AEAD
}

// scratch holds no plaintext: what Open decrypts goes to the caller's own memory.
type scratch struct{ raw, text, ad []byte }

// String hides the keys.
func (s *Sealer) String() string { return redacted }

// Format hides the keys from every verb.
func (s *Sealer) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue hides the keys from logs.
func (s *Sealer) LogValue() slog.Value { return slog.StringValue(redacted) }

// Seal makes a token that Open accepts with the same ad (what the token is bound to: tenant, person, filters) until ttl from
// now, cut down to a second. ttl is at least a second, or NoExpiry.
func (s *Sealer) Seal(plaintext, ad []byte, ttl time.Duration) (string, error) {
	if ttl == NoExpiry {
		return s.seal(plaintext, ad, 0)
	}
	if ttl < time.Second {
		return "", fmt.Errorf("seal: ttl %v, want at least a second", ttl)
	}
	return s.SealUntil(plaintext, ad, s.clock().Add(ttl))
}

// SealUntil is Seal with the moment of expiry given, cut down to a second.
func (s *Sealer) SealUntil(plaintext, ad []byte, expires time.Time) (string, error) {
	if expires.Unix() <= 0 { // 0 would be never
		return "", fmt.Errorf("seal: expiry %v", expires)
	}
	return s.seal(plaintext, ad, expires.Unix())
}

func (s *Sealer) seal(plaintext, ad []byte, expires int64) (string, error) {
	key := s.keys[0]
	head := 2 + len(key.id) + expiryLen
	if base64.RawURLEncoding.EncodedLen(head+nonceSize+len(plaintext)+tagSize) > MaxToken {
		return "", ErrTooLarge
	}
	b := s.scratch.Get().(*scratch)
	defer s.scratch.Put(b)
	raw := append(b.raw[:0], format, byte(len(key.id)))
	raw = append(raw, key.id...)
	raw = binary.BigEndian.AppendUint64(raw, uint64(expires)) //nolint:gosec // not negative
	b.ad = append(append(b.ad[:0], raw...), ad...)
	raw = append(raw, make([]byte, nonceSize)...)
	b.raw = raw
	nonce := raw[head:]
	if _, err := io.ReadFull(s.rand, nonce); err != nil {
		return "", fmt.Errorf("seal: read a nonce: %w", err)
	}
	b.raw = key.aead.Seal(raw, nonce, plaintext, b.ad)
	b.text = base64.RawURLEncoding.AppendEncode(b.text[:0], b.raw)
	return string(b.text), nil
}

// Open returns what Seal was given, or ErrInvalid, or ErrExpired for a token that is authentic but over: expiry is judged
// after authenticity, or a forger could learn from the answer.
func (s *Sealer) Open(token string, ad []byte) ([]byte, error) {
	// The decoder skips line breaks, which would give one token many spellings; Strict refuses loose trailing bits.
	if len(token) > MaxToken || strings.ContainsAny(token, "\r\n") {
		return nil, ErrInvalid
	}
	b := s.scratch.Get().(*scratch)
	defer s.scratch.Put(b)
	b.text = append(b.text[:0], token...)
	var err error
	if b.raw, err = base64.RawURLEncoding.Strict().AppendDecode(b.raw[:0], b.text); err != nil {
		return nil, ErrInvalid
	}
	key, head, ok := s.find(b.raw)
	if !ok {
		return nil, ErrInvalid
	}
	b.ad = append(append(b.ad[:0], b.raw[:head]...), ad...)
	plaintext, err := key.aead.Open(nil, b.raw[head:head+nonceSize], b.raw[head+nonceSize:], b.ad)
	if err != nil {
		return nil, ErrInvalid
	}
	expires := int64(binary.BigEndian.Uint64(b.raw[head-expiryLen:])) //nolint:gosec // authentic: it is what seal wrote
	if expires != 0 && s.clock().Unix() >= expires {
		return nil, ErrExpired
	}
	return plaintext, nil
}

// find reads the head: which key, and where the nonce begins.
func (s *Sealer) find(raw []byte) (key sealKey, head int, ok bool) {
	if len(raw) < 2 || raw[0] != format {
		return sealKey{}, 0, false
	}
	head = 2 + int(raw[1]) + expiryLen
	if len(raw) < head+nonceSize+tagSize {
		return sealKey{}, 0, false
	}
	for _, key := range s.keys {
		if string(raw[2:head-expiryLen]) == key.id {
			return key, head, true
		}
	}
	return sealKey{}, 0, false
}

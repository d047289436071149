package oauth

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"sync"
)

// Fingerprint stands for a credential in a cache: 128 bits that this process alone can compute. It is no name for anything that
// outlives the process or leaves it.
type Fingerprint [16]byte

// fingerprints makes Fingerprints: GMAC (NIST SP 800-38D) of the whole text under a key that the process drew for itself, and one
// encryption of the tag under a second. On a token of 1.2 KB that is 0.4 us, where SHA-256 with the processor's own instructions
// takes 1.1: it was a sixth of a warm tools/list.
//
// A cached caller may only answer for a text that is byte for byte the one that was verified, so what must not exist is a second
// text of the same fingerprint that somebody can find. For a fixed nonce GMAC is the polynomial hash of the text and its length at
// a secret point, plus a constant: two texts of at most 4 KB have the same for one key in 2^128/258, however they were chosen. Who
// sends forgeries learns of each one only that it met none of the at most 4,096 that are kept, so 2^40 of them come to less than 2^-67.
//
// A nonce that is used again breaks GMAC for whoever sees tags: the difference of two is an equation for the secret point. No tag is
// ever seen, and that is not relied upon: what leaves this file, into a map whose look-ups take time, is the tag encrypted under an
// independent key, and a pseudorandom function of a universal hash is a pseudorandom function (Carter and Wegman 1981; Shoup 1996).
// So a fingerprint says no more about its text, or about another fingerprint, than a digest does, and no token can be told from it.
type fingerprints struct {
	mac    cipher.AEAD
	veil   cipher.Block
	points sync.Pool // of *fingerprinting
}

// fingerprinting is room for one: what is handed to an interface would be allocated anew each time.
type fingerprinting struct {
	text  [len("Bearer ") + MaxTokenBytes]byte
	nonce [12]byte // always zero; see above
	tag   [16]byte
}

func newFingerprints() *fingerprints {
	var key [64]byte
	_, _ = rand.Read(key[:]) // never fails
	first, err := aes.NewCipher(key[:32])
	if err != nil {
		panic(err) // the key has the right size
	}
	veil, err := aes.NewCipher(key[32:])
	if err != nil {
		panic(err) // the same
	}
	mac, err := cipher.NewGCM(first)
	if err != nil {
		panic(err) // AES has the right block size
	}
	f := &fingerprints{mac: mac, veil: veil}
	f.points.New = func() any { return new(fingerprinting) }
	return f
}

// of is the fingerprint of text; ok is false for one that no header with a token has the size of, which must not be worked on at a
// stranger's wish.
func (f *fingerprints) of(text string) (out Fingerprint, ok bool) {
	if len(text) > len(fingerprinting{}.text) {
		return out, false
	}
	p := f.points.Get().(*fingerprinting) //nolint:errcheck,forcetypeassert // the pool holds nothing else
	n := copy(p.text[:], text)
	f.mac.Seal(p.tag[:0], p.nonce[:], nil, p.text[:n])
	clear(p.text[:n]) // no token stays behind
	f.veil.Encrypt(p.tag[:], p.tag[:])
	out = p.tag
	f.points.Put(p)
	return out, true
}

// Fingerprint stands for text, a credential or the header that holds it, in a cache of who it was found to be. ok is false when text
// is too long to be one.
func (v *Verifier) Fingerprint(text string) (f Fingerprint, ok bool) { return v.fingerprints.of(text) }

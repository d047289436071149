package oauth

import "encoding/base64"

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// crockford writes 128 bits in 26 characters of Crockford's base 32, as a ULID does: the first one holds 3 bits.
func crockford(b [16]byte) string {
	const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	var out [26]byte
	var acc uint
	bits := 2 // 130 bits are written: two zeros lead
	n := 0
	for _, c := range b {
		acc, bits = acc<<8|uint(c), bits+8
		for bits >= 5 {
			bits -= 5
			out[n] = alphabet[acc>>bits&31]
			n++
		}
	}
	return string(out[:])
}

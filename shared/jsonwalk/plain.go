package jsonwalk

import (
	"math/bits"
	"unicode/utf8"
)

// Plain returns the index of the first byte of s from i on that does not stand in a JSON string as it is, or is beyond ASCII;
// len(s) when there is none. It looks at eight bytes at a time.
func Plain(s string, i int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(s); i += 8 {
		w := word(s[i : i+8])
		quote, slash := w^'"'*ones, w^'\\'*ones
		// A borrow may mark bytes above a marked one: only the lowest mark is to be believed.
		if marks := ((w-' '*ones)&^w | (quote-ones)&^quote | (slash-ones)&^slash | w) & highs; marks != 0 {
			return i + bits.TrailingZeros64(marks)/8
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return i
		}
	}
	return i
}

// word is binary.LittleEndian.Uint64 of a string, which the compiler makes one load.
func word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

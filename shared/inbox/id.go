package inbox

import (
	"encoding/hex"
	"fmt"
	"io"
	"time"
)

// crockford is the alphabet of a ULID; its order is that of the bytes, so that ids order by their time.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// NewID makes an id: the prefix, an underscore and the ULID of a time with 80 bits from rand. The few lines of a ULID are
// ours because the domain depends on the standard library only.
func NewID(prefix string, at time.Time, rand io.Reader) (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(rand, b[6:]); err != nil {
		return "", fmt.Errorf("random bytes of an id: %w", err)
	}
	putTime(b[:], at)
	return join(prefix, b), nil
}

// DerivedID makes the id that belongs to a digest: the same one whoever asks, in the shape of any other id.
func DerivedID(prefix string, digest [16]byte) string { return join(prefix, digest) }

// Position is the place of a mail in every list that is ordered by received_at: the time, then the id, so that ties are told
// apart. It does not rely on the time in the id: an id can be older than the mail's arrival, or chosen by somebody.
func Position(received time.Time, id string) string {
	var b [16]byte
	putTime(b[:], received)
	ulid := encodeULID(b)
	return string(ulid[:10]) + id
}

// PositionTime is the time of a position; zero when it is not one.
func PositionTime(position string) time.Time {
	if len(position) < 10 {
		return time.Time{}
	}
	return IDTime(position[:10] + "0000000000000000")
}

// IDFloor is the least id of a prefix whose ULID has this time or a later one: the bound of a range of ids.
func IDFloor(prefix string, at time.Time) string {
	var b [16]byte
	putTime(b[:], at)
	return join(prefix, b)
}

// IDTime is the time in an id's ULID; zero when it is not one.
func IDTime(id string) time.Time {
	if len(id) < 26 {
		return time.Time{}
	}
	var ms uint64
	for _, c := range []byte(id[len(id)-26 : len(id)-16]) {
		v := indexOf(c)
		if v < 0 {
			return time.Time{}
		}
		ms = ms<<5 | uint64(v)
	}
	return time.UnixMilli(int64(ms & (1<<48 - 1))).UTC()
}

func indexOf(c byte) int {
	for i := range len(crockford) {
		if crockford[i] == c {
			return i
		}
	}
	return -1
}

func putTime(b []byte, at time.Time) {
	ms := max(at.UnixMilli(), 0)
	for i := range 6 {
		b[i] = byte(ms >> (40 - 8*i))
	}
}

// encodeULID writes 128 bits as 26 digits of 5 bits, the first of which holds 3.
func encodeULID(b [16]byte) (out [26]byte) {
	acc, bits, n := uint(0), 2, 0 // two zero bits fill 128 up to 130
	for _, x := range b {
		acc, bits = acc<<8|uint(x), bits+8
		for bits >= 5 {
			bits -= 5
			out[n] = crockford[acc>>bits&31]
			n++
		}
		acc &= 1<<bits - 1
	}
	return out
}

func join(prefix string, b [16]byte) string {
	ulid := encodeULID(b)
	return prefix + "_" + string(ulid[:])
}

// validID reports whether s is an id with this prefix.
func validID(prefix, s string) bool {
	if len(s) != len(prefix)+27 || s[:len(prefix)] != prefix || s[len(prefix)] != '_' {
		return false
	}
	for i := len(prefix) + 1; i < len(s); i++ {
		if indexOf(s[i]) < 0 {
			return false
		}
	}
	return true
}

// ShortDigest is the hexadecimal form of a digest's first 16 bytes, for keys.
func ShortDigest(sum [32]byte) string { return hex.EncodeToString(sum[:16]) }

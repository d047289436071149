package jsonlog

import "time"

// sheet is what a line is written on, with the time of the last line: those of one second differ in the fraction alone.
type sheet struct {
	buf    []byte
	second int64 // Unix
	zone   *time.Location
	time   []byte // that second, without a fraction; empty: none yet
}

const wholeSecond = len("2006-01-02T15:04:05")

// appendTime writes what AppendFormat writes with time.RFC3339Nano; false for a time that JSON has no text for.
func (s *sheet) appendTime(b []byte, at time.Time) ([]byte, bool) {
	if at.IsZero() {
		return b, false
	}
	second, zone := at.Unix(), at.Location()
	if len(s.time) == 0 || second != s.second || zone != s.zone {
		if year := at.Year(); year < 0 || year > 9999 {
			return b, false
		}
		s.second, s.zone = second, zone
		s.time = at.Add(-time.Duration(at.Nanosecond())).AppendFormat(s.time[:0], time.RFC3339Nano)
	}
	b = append(b, s.time[:wholeSecond]...)
	if n := at.Nanosecond(); n > 0 {
		fraction := [10]byte{'.'}
		for i := len(fraction) - 1; i > 0; i-- {
			fraction[i] = byte('0' + n%10)
			n /= 10
		}
		end := len(fraction)
		for fraction[end-1] == '0' {
			end--
		}
		b = append(b, fraction[:end]...)
	}
	return append(b, s.time[wholeSecond:]...), true
}

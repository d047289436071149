package jsonlog

import (
	"log/slog"
	"time"
)

// sheet is what a line is written on, with what it may have in common with the next: lines of one second differ in the fraction of
// their time alone, and those of requests have the same names in the same order.
type sheet struct {
	buf    []byte
	second int64 // Unix
	zone   *time.Location
	time   []byte // that second, without a fraction; empty: none yet
	names  []place
	text   []byte // the names one behind the other
}

// place is a name as it stands in a line: a comma, quotes and a colon around it. It is one that may be logged as it is.
type place struct {
	name string
	end  int // in text; it begins where the one before ends
}

const (
	wholeSecond = len("2006-01-02T15:04:05")
	maxPlaces   = 32 // lines of more names are rare
)

// appendHead is false for what it can't write.
func (s *sheet) appendHead(at time.Time, level slog.Level, message string) ([]byte, bool) {
	b, ok := s.appendTime(append(s.buf[:0], `{"time":"`...), at)
	if !ok {
		return b, false
	}
	b = append(b, `","level":"`...)
	b = append(b, level.String()...)
	return appendText(append(b, `","msg":`...), message)
}

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

// appendName writes the name of a line's field i, which the last line of this sheet most likely had there too: to hold each name against
// the list and to look through it for what needs an escape was a third of a line's cost. It is false for a name that is not
// allowed or needs an escape; such a name is never kept.
func (s *sheet) appendName(b []byte, i int, name string, allowed func(string) bool) ([]byte, bool) {
	start := 0
	if i > 0 && i <= len(s.names) {
		start = s.names[i-1].end
	}
	if i < len(s.names) && s.names[i].name == name {
		return append(b, s.text[start:s.names[i].end]...), true
	}
	if name == "" || allowed != nil && !allowed(name) {
		return b, false
	}
	from := len(b)
	b, ok := appendText(append(b, ','), name)
	if !ok {
		return b, false
	}
	b = append(b, ':')
	if i <= len(s.names) && i < maxPlaces {
		s.text = append(s.text[:start], b[from:]...)
		s.names = append(s.names[:i], place{name, len(s.text)})
	}
	return b, true
}

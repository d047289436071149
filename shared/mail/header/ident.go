package header

import (
	"net/mail"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/mail/clean"
)

const (
	maxIDs     = 200
	maxIDBytes = 998
)

// MessageIDs reads the identifiers of a Message-ID, In-Reply-To or References field, without angle brackets. When there are too
// many the first and the newest stay: threading needs the root and the parents.
func (d *Decoder) MessageIDs(value []byte) []string {
	s := d.UTF8(value)
	var ids []string
	for rest := s; ; {
		_, tail, ok := strings.Cut(rest, "<")
		if !ok {
			break
		}
		id, tail, ok := strings.Cut(tail, ">")
		if !ok {
			break
		}
		rest = tail
		if id = d.id(id); id != "" {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 && !strings.ContainsAny(s, "<>") {
		for f := range strings.FieldsSeq(s) {
			if id := d.id(f); strings.Contains(id, "@") {
				ids = append(ids, id)
			}
		}
	}
	if len(ids) > maxIDs {
		ids = append(ids[:1:1], ids[len(ids)-maxIDs+1:]...)
	}
	return ids
}

func (d *Decoder) id(s string) string {
	s = strings.Join(strings.Fields(clean.Line(s, &d.Counts)), "")
	if len(s) > maxIDBytes || strings.ContainsAny(s, "<>") {
		return ""
	}
	return s
}

// Date reads a Date field: RFC 5322, then the forms that real senders write instead.
func (d *Decoder) Date(value []byte) (time.Time, bool) {
	s := clean.Line(d.UTF8(value[:min(len(value), 200)]), &d.Counts)
	if t, err := mail.ParseDate(s); err == nil {
		return plausible(t)
	}
	if i := strings.IndexByte(s, '('); i > 0 {
		s = strings.TrimSpace(s[:i])
	}
	if _, tail, ok := strings.Cut(s, ", "); ok {
		s = tail // a day name in another language, or a wrong one
	}
	for _, layout := range []string{
		"2 Jan 2006 15:04:05 -0700", "2 Jan 2006 15:04:05 MST", "2 Jan 2006 15:04 -0700", "2 Jan 2006 15:04:05", "2 Jan 06 15:04:05 -0700",
		"Mon Jan 2 15:04:05 2006", "Mon Jan 2 15:04:05 MST 2006", "Mon Jan 2 15:04:05 -0700 2006", "Mon 2 Jan 2006 15:04:05 -0700",
		"2-Jan-2006 15:04:05 -0700", time.RFC3339, "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05", "2 January 2006 15:04:05 -0700",
	} {
		if t, err := time.Parse(layout, s); err == nil {
			return plausible(t)
		}
	}
	return time.Time{}, false
}

// plausible refuses years that no JSON encoder can write and no mail has.
func plausible(t time.Time) (time.Time, bool) {
	t = t.UTC()
	if t.Year() < 1970 || t.Year() > 9998 {
		return time.Time{}, false
	}
	return t, true
}

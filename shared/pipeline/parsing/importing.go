package parsing

import (
	"bytes"
	"errors"
	"io"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/mail/header"
	"github.com/buzon-mail/buzon/shared/mail/mbox"
	"github.com/buzon-mail/buzon/shared/pipeline/reading"
)

// Cut is the Cut of real files: of the formats of package inbox.
func Cut(r io.Reader, format string, max int) reading.Cutter {
	if format == inbox.FormatMail {
		return &single{r: r, max: max}
	}
	return many{mbox.NewReader(r, max)}
}

type many struct{ r *mbox.Reader }

// Next returns the next mail.
func (m many) Next() ([]byte, error) {
	b, err := m.r.Next()
	switch {
	case errors.Is(err, mbox.ErrTooLarge):
		return nil, reading.ErrTooLarge
	case errors.Is(err, mbox.ErrFormat):
		return nil, reading.ErrFormat
	}
	return b, err //nolint:wrapcheck // whoever asks names the step
}

// single is a file that is one mail.
type single struct {
	r    io.Reader
	max  int
	over bool
}

// Next returns the mail.
func (s *single) Next() ([]byte, error) {
	if s.over {
		return nil, io.EOF
	}
	s.over = true
	b, err := io.ReadAll(io.LimitReader(s.r, int64(s.max)+1))
	if err == nil && len(b) > s.max {
		return nil, reading.ErrTooLarge
	}
	return mbox.CRLF(b), err //nolint:wrapcheck // whoever asks names the step
}

// earliest is when mail began, about: a Date before it is a mistake.
func earliest() time.Time { return time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC) }

// ImportedAt is when an imported mail counts as received: by its Date, which is the word of its sender, unless that is missing, before
// 1980 or later than the import; then the time of the import. Whole milliseconds, as ids have.
func ImportedAt(raw []byte, imported time.Time) time.Time {
	imported = imported.UTC().Truncate(time.Millisecond)
	raw = raw[:min(len(raw), 256<<10)]
	for len(raw) > 0 {
		line, rest, _ := bytes.Cut(raw, []byte{'\n'})
		raw = rest
		line = bytes.TrimRight(line, "\r")
		if len(line) == 0 {
			break
		}
		if len(line) < 5 || !bytes.EqualFold(line[:5], []byte("date:")) {
			continue
		}
		for len(raw) > 0 && (raw[0] == ' ' || raw[0] == '\t') { // folded
			more, rest, _ := bytes.Cut(raw, []byte{'\n'})
			line, raw = append(bytes.Clone(line), bytes.TrimRight(more, "\r")...), rest
		}
		if at, ok := new(header.Decoder).Date(line[5:]); ok && !at.Before(earliest()) && !at.After(imported) {
			return at.UTC().Truncate(time.Millisecond)
		}
		break // the first one counts (mail.Message)
	}
	return imported
}

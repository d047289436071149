// Package mbox cuts a file of mails (RFC 4155) into mails, as a stream: a file may be larger than memory, a mail in it may not be larger
// than its reader allows. It reads hostile bytes and stands on the standard library only. (The one library for it that is kept, a reader
// of emersion's, is not published on the module proxy; the format has three rules.)
//
// A mail begins at a line "From ", first in the file or after an empty line, that holds a time of day: programs leave such lines of a
// body unquoted. Lines ">From " lose one ">" (mboxrd). The file's line feeds become CRLF, so that the bytes are those that once came by
// SMTP, and an exact copy is recognised as one.
package mbox

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// What Next returns beside the errors of the file's reader.
var (
	// ErrTooLarge: the mail has more bytes than allowed. It was read over; the next one can be read.
	ErrTooLarge = errors.New("mbox: a mail is too large")
	// ErrFormat: the file does not begin as an mbox file does.
	ErrFormat = errors.New("mbox: the file does not begin with a line From")
)

// Reader cuts a file.
type Reader struct {
	r       *bufio.Reader
	max     int
	begun   bool // the line From of the next mail was read
	done    error
	cut     bool // the last piece had no line feed
	blank   bool // the last line was empty
	overrun bool
	mail    bytes.Buffer
}

// NewReader reads mails of at most max bytes each.
func NewReader(r io.Reader, max int) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 64<<10), max: max}
}

// Next returns the next mail, whose bytes are the caller's; io.EOF behind the last.
func (m *Reader) Next() ([]byte, error) {
	if m.done != nil {
		return nil, m.done
	}
	if !m.begun {
		if err := m.begin(); err != nil {
			m.done = err
			return nil, err
		}
	}
	m.mail, m.overrun, m.cut, m.blank = bytes.Buffer{}, false, false, false
	for {
		piece, err := m.r.ReadSlice('\n')
		if !m.cut && m.blank && separates(piece) {
			if err := m.line(err); err != nil {
				m.done = err
			}
			break
		}
		m.add(piece)
		if errors.Is(err, bufio.ErrBufferFull) {
			err = nil
		}
		if err != nil {
			m.done = err
			if !errors.Is(err, io.EOF) {
				return nil, err
			}
			break
		}
	}
	if m.overrun {
		return nil, ErrTooLarge
	}
	return m.whole(), nil
}

// begin reads up to the first line From. Empty lines may stand before it.
func (m *Reader) begin() error {
	for {
		piece, err := m.r.ReadSlice('\n')
		switch {
		case bytes.HasPrefix(piece, []byte("From ")):
			m.begun = true
			return m.line(err)
		case len(bytes.TrimSpace(piece)) > 0:
			return ErrFormat
		case err != nil:
			return err
		}
	}
}

// line reads the rest of a line whose first piece ended with err.
func (m *Reader) line(err error) error {
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = m.r.ReadSlice('\n')
	}
	return err
}

// separates reports whether a line begins a mail.
func separates(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("From "))
	if !ok {
		return false
	}
	for i := 1; i+2 < len(rest); i++ { // 9:30 or 09:30
		if rest[i] == ':' && digit(rest[i-1]) && digit(rest[i+1]) && digit(rest[i+2]) {
			return true
		}
	}
	return false
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// add appends a line, or a piece of one.
func (m *Reader) add(piece []byte) {
	first, ended := !m.cut, bytes.HasSuffix(piece, []byte{'\n'})
	m.blank = first && len(bytes.TrimRight(piece, "\r\n")) == 0 && ended
	m.cut = !ended
	if m.overrun {
		return
	}
	if first && bytes.HasPrefix(bytes.TrimLeft(piece, ">"), []byte("From ")) && piece[0] == '>' {
		piece = piece[1:]
	}
	if m.mail.Len()+len(piece)+1 > m.max {
		m.overrun, m.mail = true, bytes.Buffer{}
		return
	}
	body, _ := bytes.CutSuffix(piece, []byte{'\n'})
	m.mail.Write(body)
	if ended {
		if b := m.mail.Bytes(); len(b) == 0 || b[len(b)-1] != '\r' {
			m.mail.WriteByte('\r')
		}
		m.mail.WriteByte('\n')
	}
}

// whole is the mail without the empty line that belongs to the file.
func (m *Reader) whole() []byte {
	b := m.mail.Bytes()
	if bytes.HasSuffix(b, []byte("\n\r\n")) || string(b) == "\r\n" {
		b = b[:len(b)-2]
	}
	return b
}

// CRLF makes of the line feeds of a file that has no carriage return CRLF, which is how the mail once came; any other it leaves alone.
func CRLF(raw []byte) []byte {
	if bytes.IndexByte(raw, '\r') >= 0 {
		return raw
	}
	return bytes.ReplaceAll(raw, []byte{'\n'}, []byte("\r\n"))
}

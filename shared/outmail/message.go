package outmail

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"mime"
	"mime/quotedprintable"
	"strings"
	"time"
	"unicode"
)

const (
	// foldAt is where a header line is folded if it can be (RFC 5322 section 2.1.1); no line has more than maxLine.
	foldAt  = 76
	maxLine = 998
	// maxSubject is in characters: encoded, a line of it stays far below maxLine.
	maxSubject = 200
	maxName    = 100
	crlf       = "\r\n"
)

// Bytes writes the message. The same message gives the same bytes. eightBit says that whoever takes it takes bytes over 127
// (RFC 6152): an original that has them is then attached as it is.
func (m Message) Bytes(eightBit bool) ([]byte, error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.Grow(len(m.Original) + len(m.Original)/2 + 2*len(m.Text) + 4<<10)
	m.header(&b)
	boundary := m.boundary()
	writeField(&b, "Content-Type", mime.FormatMediaType("multipart/mixed", map[string]string{"boundary": boundary}))
	b.WriteString(crlf + "--" + boundary + crlf)
	if err := m.text(&b); err != nil {
		return nil, err
	}
	if m.Original != nil {
		b.WriteString(crlf + "--" + boundary + crlf)
		attach(&b, m.Original, eightBit)
	}
	b.WriteString(crlf + "--" + boundary + "--" + crlf)
	return b.Bytes(), nil
}

// Check refuses whatever could end a line, or an address, before its time.
func (m Message) Check() error {
	if m.ID == "" || strings.Trim(m.ID, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" || len(m.ID) > 100 || len(m.To) == 0 {
		return notPlain()
	}
	for _, address := range append([]string{m.From.Address, m.Recipient}, m.To...) {
		if !plainAddress(address) {
			return notPlain()
		}
	}
	return nil
}

// plainAddress accepts an addr-spec of atoms and dots (RFC 5322 section 3.4.1): neither quoted nor SMTPUTF8, which not every receiver takes.
func plainAddress(s string) bool {
	local, domain, ok := strings.Cut(s, "@")
	if !ok || local == "" || domain == "" || len(s) > 254 || strings.HasPrefix(s, "-") {
		return false
	}
	for _, part := range []string{local, domain} {
		if strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".") || strings.Contains(part, "..") {
			return false
		}
		for _, c := range []byte(part) {
			if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("!#$%&'*+-/=?^_`{|}~.", rune(c)) {
				return false
			}
		}
	}
	return true
}

func (m Message) header(b *bytes.Buffer) {
	_, domain, _ := strings.Cut(m.From.Address, "@")
	from := m.From
	from.Name = line(from.Name, maxName)
	writeField(b, "From", from.String())
	writeField(b, "To", strings.Join(m.To, ", "))
	writeField(b, "Subject", mime.QEncoding.Encode("utf-8", line(m.Subject, maxSubject)))
	writeField(b, "Date", m.Date.UTC().Format(time.RFC1123Z))
	writeField(b, "Message-ID", "<"+m.ID+"@"+domain+">")
	writeField(b, "Auto-Submitted", "auto-forwarded")
	writeField(b, LoopField, m.From.Address)
	writeField(b, "MIME-Version", "1.0")
}

// line makes one line of any text: what controls a terminal or a mail program is a blank. "=?" would be read as the beginning of an
// encoded word (RFC 2047) that a stranger wrote.
func line(s string, max int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Cf) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > max {
		s = string(r[:max]) + "..."
	}
	return strings.ReplaceAll(s, "=?", "= ?")
}

// writeField folds at blanks. The value is of our making: it has no line ends.
func writeField(b *bytes.Buffer, name, value string) {
	b.WriteString(name + ":")
	n := len(name) + 1
	for word := range strings.SplitSeq(value, " ") {
		if n+1+len(word) > foldAt && n > len(name)+1 {
			b.WriteString(crlf)
			n = 0
		}
		b.WriteString(" " + word)
		n += 1 + len(word)
	}
	b.WriteString(crlf)
}

// boundary can't be foreseen by whoever wrote the original: the id was drawn after it.
func (m Message) boundary() string {
	sum := sha256.Sum256([]byte(m.ID + "\x00boundary"))
	return hex.EncodeToString(sum[:20])
}

func (m Message) text(b *bytes.Buffer) error {
	writeField(b, "Content-Type", "text/plain; charset=utf-8")
	writeField(b, "Content-Transfer-Encoding", "quoted-printable")
	b.WriteString(crlf)
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(m.Text, "\ufffd"))
	w := quotedprintable.NewWriter(b)
	if _, err := w.Write([]byte(strings.ReplaceAll(text, "\n", crlf))); err != nil {
		return err //nolint:wrapcheck // into memory: it does not fail
	}
	return w.Close() //nolint:wrapcheck // the same
}

// attach writes the original: as a mail where it can stand in a message as it is, which is what RFC 2046 section 5.2.1 asks of
// message/rfc822 (no encoding), else as a file of bytes.
func attach(b *bytes.Buffer, original []byte, eightBit bool) {
	kind := lookAt(original)
	disposition := mime.FormatMediaType("attachment", map[string]string{"filename": "original.eml"})
	if kind.broken || kind.eight && !eightBit {
		writeField(b, "Content-Type", "application/octet-stream")
		writeField(b, "Content-Transfer-Encoding", "base64")
		writeField(b, "Content-Disposition", disposition)
		b.WriteString(crlf)
		for len(original) > 0 {
			n := min(len(original), 57) // 76 characters
			b.WriteString(base64.StdEncoding.EncodeToString(original[:n]) + crlf)
			original = original[n:]
		}
		return
	}
	writeField(b, "Content-Type", "message/rfc822")
	if kind.eight {
		writeField(b, "Content-Transfer-Encoding", "8bit")
	} else {
		writeField(b, "Content-Transfer-Encoding", "7bit")
	}
	writeField(b, "Content-Disposition", disposition)
	b.WriteString(crlf)
	for len(original) > 0 {
		l, rest, ended := bytes.Cut(original, []byte{'\n'})
		original = rest
		b.Write(bytes.TrimSuffix(l, []byte{'\r'}))
		if ended {
			b.WriteString(crlf)
		}
	}
}

// looks is what stands in the way of bytes that are to be lines of a message.
type looks struct {
	broken bool // NUL, a carriage return of its own, or a line that is too long
	eight  bool
}

func lookAt(raw []byte) (k looks) {
	length := 0
	for i, c := range raw {
		switch {
		case c == '\n':
			length = 0
			continue
		case c == 0, c == '\r' && (i+1 == len(raw) || raw[i+1] != '\n'):
			k.broken = true
		case c > 127:
			k.eight = true
		}
		if length++; length > maxLine+1 { // with the carriage return
			k.broken = true
		}
	}
	return k
}

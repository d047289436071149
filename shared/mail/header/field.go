// Package header reads the header of a mail or of a part: lines into fields with repair, encoded words (RFC 2047), parameters
// (RFC 2231), addresses, message ids and dates (RFC 5322). Structure is always read from the raw field and words are decoded
// afterwards, so that nothing an encoded word contains can become a separator, an address or a parameter. It must not know MIME
// structure.
package header

import (
	"bytes"
	"strings"

	"github.com/buzon-mail/buzon/shared/mail/charset"
	"github.com/buzon-mail/buzon/shared/mail/clean"
	"github.com/buzon-mail/buzon/shared/mail/warning"
)

// Field is one header field in raw form: unfolded, without NUL and bare CR, not decoded.
type Field struct {
	Name  string
	Value []byte
}

// Is reports whether the field has this name, in whatever case.
func (f *Field) Is(name string) bool { return strings.EqualFold(f.Name, name) }

// Limits bounds one header block.
type Limits struct {
	Bytes      int // of the block
	Fields     int
	FieldBytes int // of one field
}

// Block collects the lines of one header block. The caller splits lines and knows boundaries; Block knows what a header is.
type Block struct {
	lim      Limits
	warn     *warning.List
	fields   []Field
	top      bool // the header of a message, where an mbox line and blank lines may come first
	size     int
	open     bool // the last field may continue
	dropping bool // the field that continues is over a limit
	shared   bool // the last value is still a slice of the input and must be copied before it grows
	junk     int  // offset of the first line that is no field after the last field; -1 when there is none
	started  bool
}

// NewBlock starts a header block; top says that it is a message's, not a part's.
func NewBlock(lim Limits, top bool, warn *warning.List) *Block {
	return &Block{lim: lim, warn: warn, top: top, junk: -1}
}

// Verdict is what a line does to the block.
type Verdict int

// The verdicts.
const (
	More Verdict = iota // the line belongs to the header
	End                 // the line is the blank one that ends the header
	Body                // the line is already body: the header has no end of its own
)

// Line takes the next line without its line end; at is its offset, next the line after it (a look-ahead, may be nil).
func (b *Block) Line(line []byte, at int, next []byte) Verdict {
	if blank := len(bytes.TrimSpace(line)) == 0; blank {
		return b.blank(line, next)
	}
	if !b.started && b.top && (bytes.HasPrefix(line, []byte("From ")) || bytes.HasPrefix(line, []byte(">From "))) {
		b.warn.Add(warning.MboxLine, "")
		return More
	}
	b.size += len(line) + 1
	if b.size > b.lim.Bytes {
		b.warn.Add(warning.HeaderTooLarge, "")
		b.started, b.open, b.dropping = true, false, true
		return More
	}
	line = b.tidy(line)
	if line[0] == ' ' || line[0] == '\t' {
		return b.continuation(line, at)
	}
	name, value, ok := cutField(line)
	if !ok {
		return b.stray(line, at, next)
	}
	b.started, b.open, b.junk = true, true, -1
	b.dropping = len(b.fields) >= b.lim.Fields
	if b.dropping {
		b.warn.Add(warning.FieldLimit, "")
		return More
	}
	if len(value) > b.lim.FieldBytes {
		b.warn.Add(warning.FieldTooLarge, "")
		value = value[:b.lim.FieldBytes]
	}
	b.fields = append(b.fields, Field{Name: string(name), Value: value})
	b.shared = true
	return More
}

// blank decides about a line of white space. Before the first field of a message it is skipped (a stray line there would turn
// the whole header into body). One made of spaces ends the header unless the header goes on behind it, as a broken folding
// leaves it.
func (b *Block) blank(line, next []byte) Verdict {
	switch {
	case !b.started && b.top:
		b.warn.Add(warning.LeadingBlank, "")
		return More
	case b.started && len(line) > 0 && (isField(next) || len(next) > 0 && (next[0] == ' ' || next[0] == '\t')):
		return More
	default:
		return End
	}
}

func (b *Block) continuation(line []byte, at int) Verdict {
	if !b.open {
		if !b.started && !b.dropping {
			// An indented first line: some exporters indent the first field.
			if trimmed := bytes.TrimLeft(line, " \t"); isField(trimmed) {
				b.warn.Add(warning.LeadingBlank, "")
				return b.Line(trimmed, at, nil)
			}
			return b.stray(line, at, nil)
		}
		return More
	}
	b.extend(line)
	return More
}

// extend appends a folded line to the open field.
func (b *Block) extend(line []byte) {
	if b.dropping {
		return
	}
	f := &b.fields[len(b.fields)-1]
	room := b.lim.FieldBytes - len(f.Value) - 1
	line = bytes.TrimLeft(line, " \t")
	if room < len(line) {
		b.warn.Add(warning.FieldTooLarge, "")
		line = line[:max(room, 0)]
		b.dropping = true
	}
	if b.shared {
		f.Value = append(make([]byte, 0, 2*(len(f.Value)+len(line))+16), f.Value...)
		b.shared = false
	}
	f.Value = append(append(f.Value, ' '), line...)
}

// stray decides about a line that is neither field nor continuation.
func (b *Block) stray(line []byte, at int, next []byte) Verdict {
	if b.open && !b.dropping && len(b.fields) > 0 && parameterLine(line) &&
		bytes.HasSuffix(bytes.TrimRight(b.fields[len(b.fields)-1].Value, " \t"), []byte(";")) {
		// A parameter at the start of a line hides a file name from readers that see a broken header here.
		b.warn.Add(warning.UnfoldedParameter, "")
		b.extend(line)
		return More
	}
	if !b.started && !isField(next) {
		return Body
	}
	b.warn.Add(warning.BadHeaderLine, "")
	b.open = false
	if b.junk < 0 {
		b.junk = at
	}
	return More
}

// Junk returns the offset of the lines after the last field that were no fields, -1 when there are none.
func (b *Block) Junk() int { return b.junk }

// Top reports whether this is the header of a message.
func (b *Block) Top() bool { return b.top }

// Fields returns the fields in raw order.
func (b *Block) Fields() []Field { return b.fields }

// tidy removes NUL and turns a bare CR into a space: a CR that some reader takes for a line end must not make a field here
// that another reader does not see.
func (b *Block) tidy(line []byte) []byte {
	if bytes.IndexByte(line, 0) >= 0 {
		b.warn.Add(warning.NulByte, "header")
		line = bytes.ReplaceAll(line, []byte{0}, nil)
	}
	if bytes.IndexByte(line, '\r') >= 0 {
		b.warn.Add(warning.BareCR, "")
		line = bytes.ReplaceAll(line, []byte{'\r'}, []byte{' '})
	}
	if len(line) == 0 {
		return []byte{' '}
	}
	return line
}

func cutField(line []byte) (name, value []byte, ok bool) {
	i := bytes.IndexByte(line[:min(len(line), 256)], ':')
	if i <= 0 {
		return nil, nil, false
	}
	name = bytes.TrimRight(line[:i], " \t")
	for _, c := range name {
		if c <= ' ' || c >= 0x7f {
			return nil, nil, false
		}
	}
	return name, bytes.TrimLeft(line[i+1:], " \t"), len(name) > 0
}

func isField(line []byte) bool {
	_, _, ok := cutField(line)
	return ok
}

// parameterLine reports whether line starts with "token=".
func parameterLine(line []byte) bool {
	name, _, ok := bytes.Cut(line[:min(len(line), 128)], []byte("="))
	if !ok || len(name) == 0 {
		return false
	}
	for _, c := range name {
		if c <= ' ' || c >= 0x7f || c == ';' || c == '"' {
			return false
		}
	}
	return true
}

// Decoder turns raw field values into text.
type Decoder struct {
	Charset string // the body's charset, for 8-bit fields that are not UTF-8
	Warn    *warning.List
	Counts  clean.Counts // what was removed from fields
}

// UTF8 returns the value as UTF-8 without decoding words: as it is when it is UTF-8, else in the body's charset, else
// windows-1252.
func (d *Decoder) UTF8(value []byte) string {
	r := charset.DecodeWord(value, "")
	if r.Charset == "us-ascii" {
		return r.Text
	}
	d.Warn.Add(warning.RawHeaderBytes, "")
	if r.Charset != "utf-8" && d.Charset != "" {
		r = charset.DecodeWord(value, d.Charset)
	}
	d.Warn.AddN(warning.ReplacedCharacters, "header", r.Replaced)
	return r.Text
}

// Text decodes an unstructured field.
func (d *Decoder) Text(value []byte) string { return d.Phrase(d.UTF8(value)) }

// Phrase decodes the words of s and cleans it to one line.
func (d *Decoder) Phrase(s string) string {
	s, bad := Words(s)
	d.Warn.AddN(warning.BadEncodedWord, "", bad)
	return clean.Line(s, &d.Counts)
}

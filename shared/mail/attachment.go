package mail

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/mail/clean"
	"github.com/buzon-mail/buzon/shared/mail/scan"
	"github.com/buzon-mail/buzon/shared/mail/transfer"
	"github.com/buzon-mail/buzon/shared/mail/warning"
)

// AttachmentKind is what an attachment is to the mail.
type AttachmentKind string

// The kinds.
const (
	KindFile      AttachmentKind = "file"
	KindInline    AttachmentKind = "inline" // shown inside the text
	KindCalendar  AttachmentKind = "calendar"
	KindMessage   AttachmentKind = "message"   // a whole mail
	KindTNEF      AttachmentKind = "tnef"      // winmail.dat, not opened
	KindSignature AttachmentKind = "signature" // S/MIME or PGP, not verified
)

// FileFlag is a fact about an attachment that speaks for caution.
type FileFlag string

// The flags.
const (
	FlagDoubleExtension  FileFlag = "double_extension" // invoice.pdf.exe
	FlagMacro            FileFlag = "macro"
	FlagArchive          FileFlag = "archive" // never opened
	FlagEncryptedArchive FileFlag = "encrypted_archive"
	FlagExecutable       FileFlag = "executable"
	FlagActiveContent    FileFlag = "active_content" // HTML, SVG: runs scripts where it is opened
	FlagTypeMismatch     FileFlag = "type_mismatch"  // the bytes are not what name or type say
	FlagDeceptiveName    FileFlag = "deceptive_name" // control, bidirectional or invisible characters, or a path
	FlagEncrypted        FileFlag = "encrypted"      // S/MIME or PGP
	FlagExternal         FileFlag = "external"       // message/external-body or message/partial, not followed
	FlagUnread           FileFlag = "unread"         // not opened or not decoded because of a limit
	FlagNested           FileFlag = "nested"         // attached to an attached message
)

// Attachment is a part that is not body text.
type Attachment struct {
	PartPath         string // unique in the mail
	Filename         string // safe to show and to save under; never empty
	FilenameOriginal string // as sent, with hidden characters written out; "" when none was sent
	ContentType      string // as declared
	DetectedType     string // by the first bytes; "" when they say nothing
	Size             int
	SHA256           string // hexadecimal, of Data
	Disposition      string // attachment, inline or ""
	ContentID        string // without angle brackets
	Kind             AttachmentKind
	Flags            []FileFlag
	Message          *Summary // of an attached mail that could be opened
	Data             []byte   // may share memory with the mail; nil when unread
}

// Has reports whether the attachment carries a flag.
func (a *Attachment) Has(f FileFlag) bool { return slices.Contains(a.Flags, f) }

// Summary is what a list shows of an attached mail.
type Summary struct {
	From      []Address
	Subject   string
	MessageID string
	Date      time.Time
	DateOK    bool
}

// attach adds a part to the attachments and returns its index.
func (w *walker) attach(p *scan.Part, related bool) int {
	data := w.p.decode(p, p.Body)
	a := Attachment{
		PartPath: p.Path, ContentType: cleanType(p.Type), Disposition: disposition(p), ContentID: w.p.contentID(p), Size: len(data), Data: data,
	}
	if p.Path == "" {
		a.PartPath = "0" // the mail itself is one file
	}
	if data == nil && len(p.Body) > 0 || p.Unread {
		a.Flags = append(a.Flags, FlagUnread)
	}
	if w.inside != "" {
		a.Flags = append(a.Flags, FlagNested)
	}
	a.describe(p.Filename(), related)
	w.p.mark(&a, p, w.inside == "")
	w.p.msg.Attachments = append(w.p.msg.Attachments, a)
	return len(w.p.msg.Attachments) - 1
}

// describe fills what follows from name and bytes.
func (a *Attachment) describe(name string, related bool) {
	sum := sha256.Sum256(a.Data)
	a.SHA256 = hex.EncodeToString(sum[:])
	a.DetectedType = detect(a.Data)
	var deceptive bool
	a.Filename, deceptive = cleanFilename(name)
	a.FilenameOriginal = clean.Cut(clean.Visible(strings.ToValidUTF8(name, "\uFFFD")), maxOriginal)
	a.Kind = kindOf(a, related)
	if a.Filename == "" {
		a.Filename = "part-" + a.PartPath + extensionFor(a.ContentType, a.DetectedType)
	}
	if deceptive {
		a.Flags = append(a.Flags, FlagDeceptiveName)
	}
	a.Flags = append(a.Flags, inspect(a.Filename, a.ContentType, a.DetectedType, a.Data)...)
}

func kindOf(a *Attachment, related bool) AttachmentKind {
	switch a.ContentType {
	case "message/rfc822", "message/global", "message/news":
		return KindMessage
	case "application/ms-tnef", "application/vnd.ms-tnef":
		return KindTNEF
	case "application/pkcs7-signature", "application/x-pkcs7-signature", "application/pgp-signature":
		return KindSignature
	case "text/calendar", "application/ics":
		return KindCalendar
	}
	switch low := strings.ToLower(a.Filename); {
	case low == "winmail.dat":
		return KindTNEF
	case strings.HasSuffix(low, ".ics") && bytes.Contains(a.Data[:min(len(a.Data), 512)], []byte("BEGIN:VCALENDAR")):
		return KindCalendar
	}
	if a.Disposition == "inline" && a.ContentID != "" || related && a.ContentID != "" && a.Disposition != "attachment" ||
		a.Disposition == "inline" && strings.HasPrefix(a.ContentType, "image/") {
		return KindInline
	}
	return KindFile
}

// mark sets what an attachment says about the whole mail; top is false for what is attached to an attached message.
func (p *parser) mark(a *Attachment, part *scan.Part, top bool) {
	flags := &p.msg.Flags
	switch a.Kind {
	case KindCalendar:
		if a.Size > p.lim.CalendarBytes {
			p.warn.Add(warning.CalendarTooLarge, a.PartPath)
			a.Kind = KindFile
		} else {
			flags.Calendar = flags.Calendar || top
		}
	case KindSignature:
		flags.Signed = flags.Signed || top
	}
	switch a.ContentType {
	case "application/pkcs7-mime", "application/x-pkcs7-mime":
		if strings.EqualFold(part.Media.Param("smime-type"), "signed-data") {
			flags.Signed = flags.Signed || top
			break
		}
		a.Flags = append(a.Flags, FlagEncrypted)
		if flags.Encrypted = flags.Encrypted || top; top {
			p.warn.Add(warning.EncryptedBody, a.PartPath)
		}
	case "application/pgp-encrypted":
		a.Flags = append(a.Flags, FlagEncrypted)
		flags.Encrypted = flags.Encrypted || top
	case "message/external-body":
		a.Flags = append(a.Flags, FlagExternal)
		p.warn.Add(warning.ExternalBody, a.PartPath)
	case "message/partial":
		a.Flags = append(a.Flags, FlagExternal)
		p.warn.Add(warning.PartialMessage, a.PartPath)
	}
}

const maxUuencoded = 50

// extractUuencoded takes uuencoded files out of a plain text and attaches them.
func (p *parser) extractUuencoded(part *scan.Part, text []byte) []byte {
	if !bytes.Contains(text, []byte("begin ")) {
		return text
	}
	blocks := transfer.Blocks(text, maxUuencoded)
	if len(blocks) == 0 {
		return text
	}
	out := make([]byte, 0, len(text))
	last := 0
	for i, b := range blocks {
		out = append(out, text[last:b.Start]...)
		last = b.End
		a := Attachment{PartPath: partFile(part.Path, i), ContentType: "application/octet-stream", Disposition: "attachment", Size: len(b.Data), Data: b.Data}
		a.describe(b.Name, false)
		p.warn.AddN(warning.BadUuencode, part.Path, b.Repairs)
		p.msg.Attachments = append(p.msg.Attachments, a)
	}
	return append(out, text[last:]...)
}

// partFile names a file inside a text part; "u" keeps it apart from MIME parts.
func partFile(path string, i int) string {
	if path == "" {
		path = "0"
	}
	return path + ".u" + string(rune('0'+(i+1)/10)) + string(rune('0'+(i+1)%10))
}

func cleanType(s string) string {
	var none clean.Counts
	return clean.Cut(clean.Line(strings.ToValidUTF8(s, "\uFFFD"), &none), 127)
}

func disposition(p *scan.Part) string {
	switch d := p.Disposition.Type; d {
	case "", "inline":
		return d
	default:
		return "attachment" // RFC 2183 section 2.8: an unknown one is treated as attachment
	}
}

func (p *parser) contentID(part *scan.Part) string {
	v := part.Field("Content-ID")
	if v == nil {
		return ""
	}
	return clean.Cut(strings.Trim(p.dec.Text(v), "<> "), 255)
}

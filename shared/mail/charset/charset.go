// Package charset turns bytes of a mail into UTF-8, along one chain: declared, byte order mark, HTML meta, valid UTF-8, sniffed,
// windows-1252. A declaration that the bytes contradict loses. It must not know MIME structure. Labels are the WHATWG Encoding
// Standard's, plus what mail uses beside them (RFC 1652-era names, UTF-7 of RFC 2152).
package charset

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/gogs/chardet"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"
)

// Result is decoded text and how it was decoded.
type Result struct {
	Text     string // valid UTF-8
	Charset  string // the charset that was used, canonical label
	Replaced int    // U+FFFD that stand for bytes without a character
	Unknown  bool   // the declared label is not known
	Wrong    bool   // the declared charset was not used or does not fit everywhere
}

const (
	utf8Name    = "utf-8"
	asciiName   = "us-ascii"
	utf7Name    = "utf-7"
	latinName   = "windows-1252"
	sniffSample = 16 << 10
	metaWindow  = 4 << 10
)

// Decode decodes data. declared is the label of the header ("" when there is none); html lets a meta element speak.
func Decode(data []byte, declared string, html bool) Result {
	return decode(data, declared, html, sniff)
}

// DecodeWord decodes a header field or an encoded word. Too short to sniff, and there may be thousands of them: what fits
// neither the declaration nor UTF-8 is windows-1252.
func DecodeWord(data []byte, declared string) Result {
	return decode(data, declared, false, func(data []byte) Result { return byEncoding(data, latinName, charmap.Windows1252) })
}

func decode(data []byte, declared string, html bool, guesser func([]byte) Result) Result {
	label := Label(declared)
	if ascii(data) && !stateful(label, data) {
		return Result{Text: string(data), Charset: orName(label, asciiName), Unknown: label != "" && !Known(label)}
	}
	if r, ok := byMark(data); ok {
		r.Wrong = label != "" && label != r.Charset && !strings.HasPrefix(label, "utf-16")
		return r
	}
	r, ok := byLabel(data, label)
	if ok {
		return r
	}
	guess := Result{}
	switch meta := ""; {
	case escapes(data):
		guess, ok = byLabel(data, "iso-2022-jp")
	case html:
		if meta = Meta(data); meta != "" && meta != label {
			guess, ok = byLabel(data, meta)
		}
	}
	switch {
	case ok:
	case utf8.Valid(data):
		guess = Result{Text: string(data), Charset: utf8Name}
	case r.Charset != "" && r.Replaced*20 <= len(data):
		return r // a few broken bytes in otherwise fitting text: the declaration is still the best witness
	default:
		guess = guesser(data)
	}
	guess.Unknown = label != "" && !Known(label)
	guess.Wrong = label != "" && !guess.Unknown
	return guess
}

// Label normalises a charset label: lower case, no quotes, no RFC 2231 language, the aliases that mail uses.
func Label(s string) string {
	if strings.IndexByte(s, '*') >= 0 {
		s, _, _ = strings.Cut(s, "*")
	}
	s = strings.ToLower(strings.Trim(s, " \t\r\n\"'`;"))
	switch s {
	case "ascii", "us-ascii", "ansi_x3.4-1968", "iso646-us", "us":
		return asciiName
	case "utf8", "utf8mb4", "unicode-1-1-utf-8", "utf-8":
		return utf8Name
	case "utf7", "unicode-1-1-utf-7", "x-unicode-2-0-utf-7":
		return utf7Name
	case "gb2312", "gbk", "cp936", "ms936", "gb_2312-80", "x-gbk", "euc-cn":
		return "gb18030" // the superset: mail labelled GB2312 regularly uses characters of the later sets
	case "cp932", "ms932", "windows-932", "x-sjis", "sjis":
		return "shift_jis"
	case "cp949", "ms949", "ks_c_5601-1987":
		return "euc-kr"
	case "cp950":
		return "big5"
	case "x-unknown", "unknown-8bit", "unknown", "default", "8bit", "binary", "none", "_charset", "charset":
		return ""
	}
	if num, ok := strings.CutPrefix(s, "cp"); ok && strings.HasPrefix(num, "125") {
		return "windows-" + num
	}
	return s
}

// Known reports whether the label names a charset that Decode can read.
func Known(label string) bool {
	switch label {
	case asciiName, utf8Name, utf7Name:
		return true
	}
	return lookup(label) != nil
}

func lookup(label string) encoding.Encoding {
	switch label {
	case "gb18030":
		return simplifiedchinese.GB18030
	case "hz-gb-2312":
		return simplifiedchinese.HZGB2312
	case "iso-2022-jp", "iso-2022-jp-1", "iso-2022-jp-2", "iso-2022-jp-ms", "csiso2022jp", "cp50220", "cp50221":
		return japanese.ISO2022JP
	case "cp850", "ibm850":
		return charmap.CodePage850
	case "cp437", "ibm437":
		return charmap.CodePage437
	case "utf-16":
		return unicode.UTF16(unicode.BigEndian, unicode.UseBOM)
	case "":
		return nil
	}
	if e, err := htmlindex.Get(label); err == nil && e != encoding.Replacement {
		return e
	}
	if e, err := ianaindex.MIME.Encoding(label); err == nil {
		return e
	}
	return nil
}

// byMark obeys a byte order mark when what follows is valid in that form.
func byMark(data []byte) (Result, bool) {
	if rest, ok := bytes.CutPrefix(data, []byte("\xef\xbb\xbf")); ok && utf8.Valid(rest) {
		return Result{Text: string(rest), Charset: utf8Name}, true
	}
	if len(data) >= 4 && bytes.IndexByte(data, 0) >= 0 {
		switch {
		case data[0] == 0xff && data[1] == 0xfe:
			return byEncoding(data[2:], "utf-16le", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)), true
		case data[0] == 0xfe && data[1] == 0xff:
			return byEncoding(data[2:], "utf-16be", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)), true
		}
	}
	return Result{}, false
}

// byLabel decodes as label; false when the bytes contradict it, with what it would have been.
func byLabel(data []byte, label string) (Result, bool) {
	switch {
	case label == "", label == asciiName:
		return Result{}, false // not ASCII, or Decode had returned
	case label == utf8Name:
		if utf8.Valid(data) {
			return Result{Text: string(data), Charset: utf8Name}, true
		}
		return brokenUTF8(data)
	case label == utf7Name:
		r := decodeUTF7(data)
		return r, r.Replaced == 0
	case strings.HasPrefix(label, "utf-16") && bytes.IndexByte(data, 0) < 0 && utf8.Valid(data):
		return Result{}, false
	}
	e := lookup(label)
	if e == nil {
		return Result{}, false
	}
	r := byEncoding(data, label, e)
	r.Wrong = r.Replaced > 0
	return r, r.Replaced == 0
}

// brokenUTF8 keeps the declared UTF-8 when most of what is not ASCII is valid.
func brokenUTF8(data []byte) (Result, bool) {
	good, bad := 0, 0
	for rest := data; len(rest) > 0; {
		if rest[0] < utf8.RuneSelf {
			rest = rest[1:]
			continue
		}
		r, n := utf8.DecodeRune(rest)
		if r == utf8.RuneError && n == 1 {
			bad++
		} else {
			good++
		}
		rest = rest[n:]
	}
	return Result{Text: strings.ToValidUTF8(string(data), "\uFFFD"), Charset: utf8Name, Replaced: bad, Wrong: true}, good > 4*bad
}

func byEncoding(data []byte, name string, e encoding.Encoding) Result {
	out, err := e.NewDecoder().Bytes(data)
	if err != nil {
		return Result{Text: strings.ToValidUTF8(string(data), "\uFFFD"), Charset: name, Replaced: len(data)}
	}
	return Result{Text: string(out), Charset: name, Replaced: bytes.Count(out, []byte("\uFFFD"))}
}

// sniff guesses from the bytes. The sample is made of the lines that are not ASCII, so that a longer mail with more ASCII around
// the same words is not decoded differently from a short one.
func sniff(data []byte) Result {
	if latin(data) {
		return byEncoding(data, latinName, charmap.Windows1252)
	}
	sample := make([]byte, 0, sniffSample)
	for line := range bytes.Lines(data) {
		if !ascii(line) && len(sample) < sniffSample {
			sample = append(sample, line[:min(len(line), sniffSample-len(sample))]...)
		}
	}
	found, err := chardet.NewTextDetector().DetectAll(sample)
	if err == nil {
		for _, f := range found[:min(len(found), 5)] {
			label := Label(f.Charset)
			if e := lookup(label); e != nil && f.Confidence >= 10 && label != "iso-8859-1" {
				if r := byEncoding(data, label, e); r.Replaced == 0 {
					return r
				}
			}
		}
	}
	return byEncoding(data, latinName, charmap.Windows1252)
}

// latin reports whether every high byte looks like an accented letter between ASCII letters, as in Western European text.
func latin(data []byte) bool {
	letters, others := 0, 0
	for i, c := range data {
		if c < utf8.RuneSelf {
			continue
		}
		alone := (i == 0 || data[i-1] < utf8.RuneSelf) && (i+1 == len(data) || data[i+1] < utf8.RuneSelf)
		inWord := i > 0 && lower(data[i-1]) || i+1 < len(data) && lower(data[i+1])
		if c >= 0xc0 && alone && inWord {
			letters++
		} else {
			others++
		}
	}
	return letters > 4*others
}

func lower(c byte) bool { return c >= 'a' && c <= 'z' }

// Meta finds the charset that an HTML document declares in its first 4 KiB.
func Meta(data []byte) string {
	head := bytes.ToLower(data[:min(len(data), metaWindow)])
	for {
		i := bytes.Index(head, []byte("charset"))
		if i < 0 {
			return ""
		}
		head = bytes.TrimLeft(head[i+len("charset"):], " \t\r\n")
		if len(head) == 0 || head[0] != '=' {
			continue
		}
		value := bytes.TrimLeft(head[1:], " \t\r\n\"'")
		end := bytes.IndexAny(value, " \t\r\n\"'>;/")
		if end < 0 {
			return ""
		}
		if label := Label(string(value[:end])); Known(label) {
			return label
		}
	}
}

func ascii(data []byte) bool {
	for _, c := range data {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// stateful reports whether ASCII bytes may stand for other characters: charsets with escape sequences, wide ones, UTF-7.
func stateful(label string, data []byte) bool {
	switch {
	case label == "hz-gb-2312", label == utf7Name:
		return true
	case strings.HasPrefix(label, "utf-16"), strings.HasPrefix(label, "utf-32"):
		return bytes.IndexByte(data, 0) >= 0
	case label != "" && label != asciiName && label != utf8Name && !strings.HasPrefix(label, "iso-2022"):
		return strings.HasPrefix(label, "ibm") || strings.HasPrefix(label, "ebcdic")
	default:
		return escapes(data)
	}
}

// escapes reports whether data switches to a Japanese set by ISO-2022-JP escapes, which some senders do without saying so.
func escapes(data []byte) bool {
	for i := bytes.IndexByte(data, 0x1b); i >= 0 && i+2 < len(data); {
		if data[i+1] == '$' && (data[i+2] == 'B' || data[i+2] == '@') || data[i+1] == '(' && (data[i+2] == 'J' || data[i+2] == 'I') {
			return true
		}
		next := bytes.IndexByte(data[i+1:], 0x1b)
		if next < 0 {
			return false
		}
		i += 1 + next
	}
	return false
}

func orName(label, fallback string) string {
	if label == "" || !Known(label) {
		return fallback
	}
	return label
}

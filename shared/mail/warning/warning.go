// Package warning is the closed vocabulary of what was wrong with a mail and was repaired, cut or left unread. Warnings are
// data for callers and rules. It must not know mail text: a detail is written by us (a part path, a count, a charset label
// that was recognised), so that a warning can never carry the sender's words into a place that trusts it.
package warning

// Code names one kind of defect. The set is closed; Codes lists it.
type Code string

// The codes.
const (
	Empty              Code = "empty"                // no bytes, or nothing but white space
	MessageTooLarge    Code = "message_too_large"    // cut at Limits.MessageBytes
	DepthLimit         Code = "depth_limit"          // a container at the depth limit was not opened
	PartLimit          Code = "part_limit"           // parts after the limit were not read
	HeaderTooLarge     Code = "header_too_large"     // the rest of a header block was not read
	FieldLimit         Code = "field_limit"          // header fields after the limit were not read
	FieldTooLarge      Code = "field_too_large"      // a header field was cut
	AddressLimit       Code = "address_limit"        // addresses after the limit were not read
	BoundaryTooLong    Code = "boundary_too_long"    // a multipart with such a boundary was not opened
	LineTooLong        Code = "line_too_long"        // a line over the limit; in text it was cut
	TextTooLarge       Code = "text_too_large"       // the text was cut
	HTMLTooLarge       Code = "html_too_large"       // the HTML was cut or read as plain text from some element on
	HTMLTooDeep        Code = "html_too_deep"        // elements below the depth limit were read as plain text
	DecodeLimit        Code = "decode_limit"         // decoded bytes in all reached their bound; the rest was not decoded
	LinkLimit          Code = "link_limit"           // links after the limit were not listed
	CalendarTooLarge   Code = "calendar_too_large"   // a calendar over the limit is kept as a plain file
	LeadingBlank       Code = "leading_blank"        // blank lines before the header were skipped
	MboxLine           Code = "mbox_line"            // an mbox "From " line was skipped
	DoubleCR           Code = "double_cr"            // lines end with CR CR LF
	BareCR             Code = "bare_cr"              // CR without LF inside the header
	BadHeaderLine      Code = "bad_header_line"      // a header line that is no field was skipped
	UnfoldedParameter  Code = "unfolded_parameter"   // a parameter at the start of a line was read as a continuation
	NoHeader           Code = "no_header"            // no field at all: everything is body
	NulByte            Code = "nul_byte"             // NUL in the header or in a text
	RawHeaderBytes     Code = "raw_header_bytes"     // 8-bit bytes in a header field
	BadEncodedWord     Code = "bad_encoded_word"     // an RFC 2047 word that does not decode was kept as text
	BadParameter       Code = "bad_parameter"        // an RFC 2231 section that does not parse was left out
	BadContentType     Code = "bad_content_type"     // a Content-Type that does not parse
	BadAddress         Code = "bad_address"          // an address that does not parse
	BadDate            Code = "bad_date"             // a Date that does not parse
	MultipleFrom       Code = "multiple_from"        // more than one author address or From field
	DuplicateField     Code = "duplicate_field"      // a field that may occur once occurs again; the first counts
	MissingBoundary    Code = "missing_boundary"     // multipart without boundary parameter
	MissingParts       Code = "missing_parts"        // multipart whose boundary never occurs
	UnclosedMultipart  Code = "unclosed_multipart"   // multipart without its final boundary
	ReopenedMultipart  Code = "reopened_multipart"   // parts after the final boundary
	RepeatedBoundary   Code = "repeated_boundary"    // an inner multipart uses the boundary of an outer one
	TrailingContent    Code = "trailing_content"     // text after the final boundary
	BadBase64          Code = "bad_base64"           // base64 that needed repair
	BadQuotedPrintable Code = "bad_quoted_printable" // quoted-printable that needed repair
	BadUuencode        Code = "bad_uuencode"         // uuencode that needed repair
	UnknownEncoding    Code = "unknown_encoding"     // a transfer encoding we do not know; read as it is
	UnknownCharset     Code = "unknown_charset"      // a charset label we do not know
	WrongCharset       Code = "wrong_charset"        // the text is not in the declared charset
	ReplacedCharacters Code = "replaced_characters"  // bytes without a character became U+FFFD
	HiddenText         Code = "hidden_text"          // text that a person would not see was removed
	AlternativesDiffer Code = "alternatives_differ"  // the plain and the HTML alternative say different things
	ExternalBody       Code = "external_body"        // message/external-body, not followed
	PartialMessage     Code = "partial_message"      // message/partial, not joined
	NestedUnread       Code = "nested_unread"        // an attached message that was kept but not opened
	EncryptedBody      Code = "encrypted_body"       // the body is encrypted and not available
	ActiveContent      Code = "active_content"       // scripts, frames, forms or javascript: links were removed
	ConversionFailed   Code = "conversion_failed"    // a converter gave up; the plain text stands in
)

// Codes lists every code, for tests and documentation.
func Codes() []Code {
	return []Code{
		Empty, MessageTooLarge, DepthLimit, PartLimit, HeaderTooLarge, FieldLimit, FieldTooLarge, AddressLimit, BoundaryTooLong,
		LineTooLong, TextTooLarge, HTMLTooLarge, HTMLTooDeep, DecodeLimit, LinkLimit, CalendarTooLarge, LeadingBlank, MboxLine,
		DoubleCR, BareCR, BadHeaderLine, UnfoldedParameter, NoHeader, NulByte, RawHeaderBytes, BadEncodedWord, BadParameter,
		BadContentType, BadAddress, BadDate, MultipleFrom, DuplicateField, MissingBoundary, MissingParts, UnclosedMultipart,
		ReopenedMultipart, RepeatedBoundary, TrailingContent, BadBase64, BadQuotedPrintable, BadUuencode, UnknownEncoding,
		UnknownCharset, WrongCharset, ReplacedCharacters, HiddenText, AlternativesDiffer, ExternalBody, PartialMessage,
		NestedUnread, EncryptedBody, ActiveContent, ConversionFailed,
	}
}

// Truncates reports whether the code means that some of the mail was not read because of a limit.
func (c Code) Truncates() bool {
	switch c {
	case MessageTooLarge, DepthLimit, PartLimit, HeaderTooLarge, FieldLimit, FieldTooLarge, AddressLimit, BoundaryTooLong,
		TextTooLarge, HTMLTooLarge, DecodeLimit, LinkLimit:
		return true
	default:
		return false
	}
}

// Warning is one kind of defect of one mail.
type Warning struct {
	Code   Code
	Detail string // where it occurred first; our words, never the mail's
	Count  int    // how often
}

// List collects warnings, one entry per code, so that a mail with a million defects costs no more than one with one of each.
// The zero value is ready.
type List struct {
	all       []Warning
	truncated bool
}

// Add counts one occurrence; the detail of the first stays.
func (l *List) Add(code Code, detail string) { l.AddN(code, detail, 1) }

// AddN counts n occurrences; n <= 0 adds nothing.
func (l *List) AddN(code Code, detail string, n int) {
	if n <= 0 {
		return
	}
	l.truncated = l.truncated || code.Truncates()
	for i := range l.all {
		if l.all[i].Code == code {
			l.all[i].Count += n
			return
		}
	}
	l.all = append(l.all, Warning{Code: code, Detail: detail, Count: n})
}

// Truncate marks that something was cut under a code which does not always mean that.
func (l *List) Truncate() { l.truncated = true }

// Has reports whether the code was added.
func (l *List) Has(code Code) bool {
	for i := range l.all {
		if l.all[i].Code == code {
			return true
		}
	}
	return false
}

// Truncated reports whether any limit cut the mail.
func (l *List) Truncated() bool { return l.truncated }

// All returns the warnings in the order of first occurrence.
func (l *List) All() []Warning { return l.all }

package inboxops

import (
	"strconv"

	"github.com/buzon-mail/buzon/shared/rest"
)

// The JSON of a list of mails by hand: encoding/json was a third of what the list costs. FuzzEmailsJSON holds the two together; a
// field that is added to a type and not here fails it.

var _ rest.EscapedAppender = (*EmailsBody)(nil)

// AppendJSON implements rest.Appender.
func (b *EmailsBody) AppendJSON(dst []byte) ([]byte, error) {
	return appendPage(dst, b.Data, func(dst []byte, s **EmailSummary) ([]byte, error) { return (*s).appendJSON(dst) }, &b.Meta)
}

// appendPage writes the body of a list.
func appendPage[T any](dst []byte, data []T, row func([]byte, *T) ([]byte, error), meta *ListMeta) (_ []byte, err error) {
	if dst, err = appendList(append(dst, `{"data":`...), data, row); err != nil {
		return dst, err
	}
	if dst, err = meta.appendJSON(append(dst, `,"meta":`...)); err != nil {
		return dst, err
	}
	return append(dst, '}'), nil
}

// appendList writes an array; nil is null.
func appendList[T any](dst []byte, list []T, item func([]byte, *T) ([]byte, error)) (_ []byte, err error) {
	if list == nil {
		return append(dst, "null"...), nil
	}
	dst = append(dst, '[')
	for i := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = item(dst, &list[i]); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

func (m *ListMeta) appendJSON(dst []byte) (_ []byte, err error) {
	dst = appendOrNull(append(dst, `{"next_cursor":`...), m.NextCursor)
	if w := m.Window; w != nil {
		dst = strconv.AppendInt(append(dst, `,"window":{"examined":`...), int64(w.Examined), 10)
		if dst, err = w.Oldest.AppendJSON(append(dst, `,"oldest_received_at":`...)); err != nil {
			return dst, err //nolint:wrapcheck // the route says what was encoded
		}
		dst = append(strconv.AppendBool(append(dst, `,"complete":`...), w.Complete), '}')
	}
	if m.Masked {
		dst = append(dst, `,"masked":true`...)
	}
	return append(dst, '}'), nil
}

// AppendEscaped implements rest.EscapedAppender. Rows that are not at hand are left to whoever escapes the whole at once.
func (b *EmailsBody) AppendEscaped(dst []byte) ([]byte, bool) {
	start := len(dst)
	dst = append(dst, `{\"data\":[`...)
	for i, s := range b.Data {
		if s == nil || s.escaped == nil {
			return dst[:start], false
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, s.escaped...)
	}
	var room [512]byte
	meta, err := b.Meta.appendJSON(room[:0])
	if err != nil || b.Data == nil {
		return dst[:start], false
	}
	return append(rest.AppendEscaped(append(dst, `],\"meta\":`...), meta), '}'), true
}

func (s *EmailSummary) appendJSON(dst []byte) (_ []byte, err error) {
	if s == nil {
		return append(dst, "null"...), nil
	}
	if s.text != nil {
		return append(dst, s.text...), nil
	}
	if dst, err = s.EmailFacts.appendMembers(append(dst, '{')); err != nil {
		return dst, err
	}
	dst = strconv.AppendInt(append(dst, `,"codes":`...), int64(s.Codes), 10)
	dst = strconv.AppendInt(append(dst, `,"links":`...), int64(s.Links), 10)
	u := &s.Untrusted
	dst = rest.AppendString(append(dst, `,"untrusted":{"notice":`...), u.Notice)
	dst = rest.AppendString(append(dst, `,"subject":`...), u.Subject)
	dst = appendAddresses(append(dst, `,"from":`...), u.From)
	dst = appendAddresses(append(dst, `,"to":`...), u.To)
	dst = rest.AppendString(append(dst, `,"snippet":`...), u.Snippet)
	return append(dst, "}}"...), nil
}

// appendMembers appends the facts without braces.
func (f *EmailFacts) appendMembers(dst []byte) (_ []byte, err error) {
	dst = rest.AppendString(append(dst, `"id":`...), f.ID)
	dst = rest.AppendString(append(dst, `,"inbox_id":`...), f.InboxID)
	dst = appendText(dst, `,"thread_id":`, f.ThreadID)
	dst = rest.AppendString(append(dst, `,"status":`...), f.Status)
	dst = appendText(dst, `,"reason":`, f.Reason)
	dst = appendText(dst, `,"trust":`, f.Trust)
	dst = rest.AppendStrings(append(dst, `,"trust_reasons":`...), f.TrustWhy)
	dst = rest.AppendStrings(append(dst, `,"labels":`...), f.Labels)
	dst = appendText(dst, `,"category":`, f.Category)
	dst = strconv.AppendBool(append(dst, `,"handled":`...), f.Handled)
	if dst, err = appendTimes(dst, named{`,"handled_at":`, f.HandledAt}, named{`,"received_at":`, f.ReceivedAt}); err != nil {
		return dst, err
	}
	dst = strconv.AppendInt(append(dst, `,"size_bytes":`...), f.SizeBytes, 10)
	dst = rest.AppendStrings(append(dst, `,"flags":`...), f.Flags)
	dst = strconv.AppendInt(append(dst, `,"attachments":`...), int64(f.Attachments), 10)
	if dst, err = appendTimes(dst, named{`,"deleted_at":`, f.DeletedAt}, named{`,"purge_at":`, f.PurgeAt}); err != nil {
		return dst, err
	}
	return strconv.AppendUint(append(dst, `,"version":`...), f.Version, 10), nil
}

// named is a time behind its member's name.
type named struct {
	name string
	at   rest.Time
}

func appendTimes(dst []byte, times ...named) (_ []byte, err error) {
	for i := range times {
		if dst, err = times[i].at.AppendJSON(append(dst, times[i].name...)); err != nil {
			return dst, err //nolint:wrapcheck // the route says what was encoded
		}
	}
	return dst, nil
}

// appendText appends a member that is left out when it is empty.
func appendText(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	return rest.AppendString(append(dst, name...), value)
}

func appendAddresses(dst []byte, list []Address) []byte {
	if list == nil {
		return append(dst, "null"...)
	}
	dst = append(dst, '[')
	for i := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '{')
		if list[i].Name != "" {
			dst = append(rest.AppendString(append(dst, `"name":`...), list[i].Name), ',')
		}
		dst = append(rest.AppendString(append(dst, `"address":`...), list[i].Address), '}')
	}
	return append(dst, ']')
}

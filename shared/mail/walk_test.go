package mail

import (
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/mail/warning"
)

func TestNestedFlagsDoNotMarkTheMail(t *testing.T) {
	m := parse(t, "From: a@b.test\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nhi\n--b\nContent-Type: message/rfc822\n\nContent-Type: text/calendar\n\nBEGIN:VCALENDAR\n--b--\n")
	if m.Flags.Calendar || m.Text != "hi" {
		t.Errorf("flags %+v, text %q", m.Flags, m.Text)
	}
}

// TestPiecesAreNotJoined: a piece of a message (RFC 2046 section 5.2.2) is a file that is marked. Joining pieces would let a mail
// through whose whole nobody has looked at, and opening one would show half a mail as if it were one.
func TestPiecesAreNotJoined(t *testing.T) {
	m := parse(t, "Subject: outer\nContent-Type: message/partial; id=\"x@a.test\"; number=1; total=2\n\nSubject: inner\nFrom: evil@b.test\n\nhalf")
	if len(m.Attachments) != 1 || !m.Attachments[0].Has(FlagExternal) || m.Attachments[0].Message != nil || !has(m, warning.PartialMessage) {
		t.Fatalf("attachments %+v, warnings %v", m.Attachments, m.Warnings)
	}
	if m.Subject != "outer" || len(m.From) != 0 || strings.Contains(m.Text, "half") {
		t.Errorf("the piece was opened: subject %q, from %+v, text %q", m.Subject, m.From, m.Text)
	}
}

// TestHeadersKeepTheirOrder: what a reader of the raw mail would see, doubles and all, is what emails_get shows.
func TestHeadersKeepTheirOrder(t *testing.T) {
	m := parse(t, "X-A: 1\nFrom: a@b.test\nX-B: 2\nX-A: 3\n\nhi")
	var got []string
	for _, h := range m.Headers {
		got = append(got, h.Name+"="+h.Value)
	}
	if text := strings.Join(got, " "); text != "X-A=1 From=a@b.test X-B=2 X-A=3" {
		t.Errorf("headers %s", text)
	}
}

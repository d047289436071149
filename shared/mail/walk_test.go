package mail

import (
	"testing"
)

func TestNestedFlagsDoNotMarkTheMail(t *testing.T) {
	m := parse(t, "From: a@b.test\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nhi\n--b\nContent-Type: message/rfc822\n\nContent-Type: text/calendar\n\nBEGIN:VCALENDAR\n--b--\n")
	if m.Flags.Calendar || m.Text != "hi" {
		t.Errorf("flags %+v, text %q", m.Flags, m.Text)
	}
}

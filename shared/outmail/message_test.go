package outmail_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/outmail"
)

func message() outmail.Message {
	return outmail.Message{
		ID: "job_01KDT00000000000000000000A", From: mail.Address{Name: "Facturas", Address: "facturas@acme.test"}, Recipient: "ana@acme.test",
		To: []string{"ana@acme.test", "berta@acme.test"}, Subject: "Fwd: Factura", Text: "Hola\nadiós\n",
		Date: time.Date(2026, 11, 30, 9, 15, 3, 0, time.UTC), Original: []byte("Subject: Factura\r\n\r\nhola\r\n"),
	}
}

// read takes a message apart, strictly.
func read(t *testing.T, b []byte) (mail.Header, string, *multipart.Part, []byte) {
	t.Helper()
	for i, c := range b {
		if c == 0 || c == '\r' && (i+1 == len(b) || b[i+1] != '\n') || c == '\n' && (i == 0 || b[i-1] != '\r') {
			t.Fatalf("byte %d of the message is a bare %q", i, c)
		}
	}
	for line := range bytes.SplitSeq(b, []byte("\r\n")) {
		if len(line) > 998 {
			t.Fatalf("a line of %d bytes", len(line))
		}
	}
	m, err := mail.ReadMessage(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/mixed" {
		t.Fatalf("%s, %v", kind, err)
	}
	parts := multipart.NewReader(m.Body, params["boundary"])
	first, err := parts.NextRawPart()
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(quotedprintable.NewReader(first))
	if err != nil {
		t.Fatal(err)
	}
	second, err := parts.NextRawPart()
	if errors.Is(err, io.EOF) {
		return m.Header, string(text), nil, nil
	}
	if err != nil {
		t.Fatal(err)
	}
	original, err := io.ReadAll(second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parts.NextRawPart(); !errors.Is(err, io.EOF) {
		t.Fatalf("a third part: %v", err)
	}
	return m.Header, string(text), second, original
}

func TestMessage(t *testing.T) {
	b, err := message().Bytes(true)
	if err != nil {
		t.Fatal(err)
	}
	h, text, part, original := read(t, b)
	for name, want := range map[string]string{
		"From": `"Facturas" <facturas@acme.test>`, "To": "ana@acme.test, berta@acme.test", "Subject": "Fwd: Factura",
		"Date": "Mon, 30 Nov 2026 09:15:03 +0000", "Message-Id": "<job_01KDT00000000000000000000A@acme.test>",
		"Auto-Submitted": "auto-forwarded", outmail.LoopField: "facturas@acme.test", "Mime-Version": "1.0",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if text != "Hola\r\nadiós\r\n" || part.Header.Get("Content-Type") != "message/rfc822" || part.Header.Get("Content-Transfer-Encoding") != "7bit" ||
		string(original) != "Subject: Factura\r\n\r\nhola\r\n" {
		t.Errorf("%q %v %q", text, part.Header, original)
	}
	other := message()
	other.Recipient = "berta@acme.test"
	if again, err := other.Bytes(true); err != nil || !bytes.Equal(again, b) {
		t.Errorf("copies differ: %v", err)
	}
	bare := message()
	bare.Original = nil
	if b, err = bare.Bytes(true); err != nil {
		t.Fatal(err)
	}
	if _, _, part, _ := read(t, b); part != nil {
		t.Error("something is attached")
	}
}

// Nothing that a stranger wrote begins a header field, whatever it is made of.
func TestHeaderInjection(t *testing.T) {
	for _, evil := range []string{
		"x\r\nBcc: eve@remote.test", "x\nBcc: eve@remote.test", "x\rBcc: eve@remote.test", "x\x00y", "x\u0085Bcc: eve@remote.test", "x\u2028Bcc: eve@remote.test",
		"=?utf-8?q?x=0D=0ABcc:_eve@remote.test?=", "\"<eve@remote.test>, \"", "x\r\n\r\nbody", strings.Repeat("x", 5000), strings.Repeat("ñ", 5000),
		strings.Repeat("x ", 3000), "\xff\xfe", "a\u202eb", "=?", "",
	} {
		m := message()
		m.Subject, m.From.Name, m.Text = evil, evil, evil
		b, err := m.Bytes(false)
		if err != nil {
			t.Fatalf("%q: %v", evil, err)
		}
		h, _, _, original := read(t, b)
		if len(h) != 9 || len(h["Subject"]) != 1 || h.Get("Bcc") != "" || string(original) != string(m.Original) {
			t.Errorf("%.60q: %v", evil, h)
		}
		from, err := mail.ParseAddressList(h.Get("From"))
		if err != nil || len(from) != 1 || from[0].Address != "facturas@acme.test" {
			t.Errorf("%.60q: From %q, %v", evil, h.Get("From"), err)
		}
		subject, err := new(mime.WordDecoder).DecodeHeader(h.Get("Subject"))
		if err != nil || strings.ContainsAny(subject, "\r\n\x00\u0085\u2028\u202e") {
			t.Errorf("%.60q: subject %q, %v", evil, subject, err)
		}
	}
}

func TestAddresses(t *testing.T) {
	for _, bad := range []string{
		"", "ana", "@acme.test", "ana@", "ana@acme.test\r\nBcc: eve@remote.test", "ana@acme.test>", "<ana@acme.test", "ana@acme.test, eve@remote.test", "a b@acme.test",
		"josé@acme.test", "ana@ácme.test", `"a b"@acme.test`, "ana@acme..test", ".ana@acme.test", "ana@acme.test\x00", "ana@acme.test SIZE=1", "a@b@c", "-x@acme.test",
		strings.Repeat("a", 250) + "@acme.test",
	} {
		for name, set := range map[string]func(*outmail.Message){
			"from":      func(m *outmail.Message) { m.From.Address = bad },
			"recipient": func(m *outmail.Message) { m.Recipient = bad },
			"to":        func(m *outmail.Message) { m.To = []string{"ana@acme.test", bad} },
		} {
			m := message()
			set(&m)
			if _, err := m.Bytes(true); !apperr.Is(err, apperr.Invalid) {
				t.Errorf("%s %q: %v", name, bad, err)
			}
		}
	}
	for _, bad := range []string{"", "a b", "x\r\ny", "a@b", strings.Repeat("x", 101)} {
		m := message()
		m.ID = bad
		if _, err := m.Bytes(true); err == nil {
			t.Errorf("id %q", bad)
		}
	}
}

// An original is attached as a mail where a message can hold it as it is, and never begins a part or ends the message.
func TestOriginals(t *testing.T) {
	plain := "Subject: x\r\n\r\n"
	for _, c := range []struct {
		name, raw   string
		eight       bool
		kind, coded string
		want        string
	}{
		{"seven bits", plain + "a\r\n", false, "message/rfc822", "7bit", plain + "a\r\n"},
		{"line feeds", "Subject: x\n\na\n", false, "message/rfc822", "7bit", plain + "a\r\n"},
		{"no end", plain + "a", false, "message/rfc822", "7bit", plain + "a"},
		{"the end of DATA", plain + "a\r\n.\r\nMAIL FROM:<eve@remote.test>\r\n", true, "message/rfc822", "7bit", plain + "a\r\n.\r\nMAIL FROM:<eve@remote.test>\r\n"},
		{"eight bits, taken", plain + "ñ\r\n", true, "message/rfc822", "8bit", plain + "ñ\r\n"},
		{"eight bits, not taken", plain + "ñ\r\n", false, "application/octet-stream", "base64", plain + "ñ\r\n"},
		{"NUL", plain + "a\x00\r\n", true, "application/octet-stream", "base64", plain + "a\x00\r\n"},
		{"bare return", plain + "a\r.\r\n", true, "application/octet-stream", "base64", plain + "a\r.\r\n"},
		{"return at the end", plain + "a\r", true, "application/octet-stream", "base64", plain + "a\r"},
		{"long line", plain + strings.Repeat("x", 999) + "\r\n", true, "application/octet-stream", "base64", plain + strings.Repeat("x", 999) + "\r\n"},
		{"longest line", plain + strings.Repeat("x", 998) + "\r\n", true, "message/rfc822", "7bit", plain + strings.Repeat("x", 998) + "\r\n"},
		{"a foreign boundary", plain + "--abc\r\n--abc--\r\n", true, "message/rfc822", "7bit", plain + "--abc\r\n--abc--\r\n"},
		{"empty", "", true, "message/rfc822", "7bit", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := message()
			m.Original = []byte(c.raw)
			b, err := m.Bytes(c.eight)
			if err != nil {
				t.Fatal(err)
			}
			_, _, part, got := read(t, b)
			if part.Header.Get("Content-Type") != c.kind || part.Header.Get("Content-Transfer-Encoding") != c.coded {
				t.Fatalf("%v", part.Header)
			}
			if c.coded == "base64" {
				if got, err = base64.StdEncoding.DecodeString(strings.ReplaceAll(string(got), "\r\n", "")); err != nil {
					t.Fatal(err)
				}
			}
			if string(got) != c.want {
				t.Errorf("%.100q", got)
			}
		})
	}
}

func FuzzMessage(f *testing.F) {
	f.Add("a\r\nBcc: x", "name", "text\r\n.\r\n", []byte("raw\n"), true)
	f.Add("", "", "", []byte{0, 13, 10}, false)
	f.Fuzz(func(t *testing.T, subject, name, text string, original []byte, eight bool) {
		m := message()
		m.Subject, m.From.Name, m.Text, m.Original = subject, name, text, original
		if original == nil {
			m.Original = []byte{}
		}
		b, err := m.Bytes(eight)
		if err != nil {
			t.Fatal(err)
		}
		h, _, part, _ := read(t, b)
		if len(h) != 9 || part == nil {
			t.Fatalf("%v", h)
		}
	})
}

func TestFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "outbox")
	f, err := outmail.NewFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // a message that is sent again is the same file
		if err := f.Send(t.Context(), message()); err != nil {
			t.Fatal(err)
		}
	}
	other := message()
	other.Recipient = "berta@acme.test"
	if err := f.Send(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadDir(path)
	if err != nil || len(list) != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	for _, e := range list {
		info, err := e.Info()
		if err != nil || info.Mode() != 0o600 || !strings.HasPrefix(e.Name(), message().ID) {
			t.Errorf("%s %v, %v", e.Name(), info.Mode(), err)
		}
	}
	bad := message()
	bad.ID = "../x"
	if err := f.Send(t.Context(), bad); err == nil {
		t.Error("a path as an id")
	}
}

// A folder that is gone or full leaves nothing, and the message comes again.
func TestFolderGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "outbox")
	f, err := outmail.NewFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := f.Send(t.Context(), message()); !apperr.Is(err, apperr.Unavailable) {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Send(t.Context(), message()); !apperr.Is(err, apperr.Unavailable) {
		t.Errorf("%v", err)
	}
	if _, err := outmail.NewFolder(path); err == nil {
		t.Error("a file as a folder")
	}
}

package mail

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/mail/cue"
	"github.com/buzon-mail/buzon/shared/mail/markup"
	"github.com/buzon-mail/buzon/shared/mail/warning"
)

func parse(t *testing.T, raw string) *Message {
	t.Helper()
	m, err := Parse(t.Context(), []byte(raw), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func corpus(t *testing.T, name string) *Message {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "corpus", name+".eml"))
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(raw))
}

func has(m *Message, code warning.Code) bool {
	for _, w := range m.Warnings {
		if w.Code == code {
			return true
		}
	}
	return false
}

// file returns the attachment of that name.
func file(t *testing.T, m *Message, name string) *Attachment {
	t.Helper()
	for i := range m.Attachments {
		if m.Attachments[i].Filename == name {
			return &m.Attachments[i]
		}
	}
	t.Fatalf("no attachment %q in %+v", name, m.Attachments)
	return nil
}

// TestPublicBugs has one case per public bug report of other parsers.
func TestPublicBugs(t *testing.T) {
	pdf := "%PDF-1.4 small\n"
	for name, check := range map[string]func(t *testing.T, m *Message){
		"01-related-without-final-boundary": func(t *testing.T, m *Message) {
			if a := file(t, m, "a.pdf"); string(a.Data) != pdf || a.DetectedType != "application/pdf" || m.Text != "see file" || !has(m, warning.UnclosedMultipart) {
				t.Errorf("%q, text %q, warnings %v", a.Data, m.Text, m.Warnings)
			}
		},
		"02-nested-message": func(t *testing.T, m *Message) {
			inner := file(t, m, "part-2.eml")
			if inner.Kind != KindMessage || inner.Message == nil || inner.Message.Subject != "inner subject" || inner.Message.From[0].Email != "bob@example.org" {
				t.Errorf("message = %+v", inner)
			}
			if a := file(t, m, "inner.pdf"); string(a.Data) != pdf || a.PartPath != "2.1.2" || !a.Has(FlagNested) {
				t.Errorf("inner attachment = %+v", a)
			}
			if m.Text != "outer text" || len(m.Attachments) != 2 {
				t.Errorf("text %q, %d attachments", m.Text, len(m.Attachments))
			}
		},
		"03-content-type-without-slash": func(t *testing.T, m *Message) {
			if m.Text != "still here" || !has(m, warning.BadContentType) {
				t.Errorf("text %q, warnings %v", m.Text, m.Warnings)
			}
		},
		"04-gbk-without-charset": func(t *testing.T, m *Message) {
			if !strings.HasPrefix(m.Text, "您好，这是一封测试邮件") || m.Content.Replaced != 0 {
				t.Errorf("text %q", m.Text)
			}
		},
		"05a-shorter": func(t *testing.T, m *Message) {
			if want := "これは日本語のテストメールです。"; !strings.Contains(m.Text, want) {
				t.Errorf("shorter: %q", m.Text)
			}
		},
		"05b-longer": func(t *testing.T, m *Message) {
			if want := "これは日本語のテストメールです。"; !strings.Contains(m.Text, want) {
				t.Errorf("longer decodes differently from the shorter one")
			}
		},
		"06-cr-cr-lf": func(t *testing.T, m *Message) {
			if m.Subject != "6" || m.Text != "body of six" || !has(m, warning.DoubleCR) {
				t.Errorf("subject %q, text %q, warnings %v", m.Subject, m.Text, m.Warnings)
			}
		},
		"07-unfolded-name": func(t *testing.T, m *Message) {
			if a := file(t, m, "evil.rar"); a.DetectedType != "application/vnd.rar" || !a.Has(FlagArchive) || !has(m, warning.UnfoldedParameter) {
				t.Errorf("%+v, warnings %v", a, m.Warnings)
			}
		},
		"08-banner-in-part-header": func(t *testing.T, m *Message) {
			if m.Text != "hello eight" || !has(m, warning.BadHeaderLine) {
				t.Errorf("text %q, warnings %v", m.Text, m.Warnings)
			}
		},
		"09-same-boundary-inside": func(t *testing.T, m *Message) {
			if m.Text != "plain nine" || m.Markdown != "html nine" || string(file(t, m, "n.pdf").Data) != pdf || !has(m, warning.RepeatedBoundary) {
				t.Errorf("text %q, markdown %q, warnings %v", m.Text, m.Markdown, m.Warnings)
			}
		},
		"10-colons-in-encoded-words": func(t *testing.T, m *Message) {
			if len(m.To) != 1 || m.To[0].Email != "bob@example.org" {
				t.Errorf("to = %+v", m.To)
			}
		},
		"11-word-over-sections": func(t *testing.T, m *Message) { file(t, m, "漢字.txt") },
		"12-address-confusion": func(t *testing.T, m *Message) {
			if len(m.From) != 1 || m.From[0].Email != "" || m.From[0].Valid || !has(m, warning.BadAddress) {
				t.Errorf("from = %+v", m.From)
			}
		},
		"13-lone-quote": func(t *testing.T, m *Message) {
			if len(m.To) != 1 || m.To[0].Valid || m.Text != "thirteen" {
				t.Errorf("to = %+v, text %q", m.To, m.Text)
			}
		},
		"14-section-not-ascii": func(t *testing.T, m *Message) {
			if file(t, m, "ok.pdf"); !has(m, warning.BadParameter) {
				t.Errorf("warnings %v", m.Warnings)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { check(t, corpus(t, name)) })
	}
}

func TestCharsets(t *testing.T) {
	for _, c := range []struct{ file, text, subject string }{
		{"20-utf7", "café ok", "u7"},
		{"21-iso2022jp", "日本語の本文", "日本"},
		{"22-latin1-lie", "Señor José, la reunión será mañana", "x"},
		{"23-8bit-headers", "café", "mañana"},
	} {
		t.Run(c.file, func(t *testing.T) {
			m := corpus(t, c.file)
			if m.Text != c.text || !strings.HasPrefix(m.Subject, c.subject) || strings.Contains(m.HTMLSanitized, "script") {
				t.Errorf("text %q, subject %q, html %q", m.Text, m.Subject, m.HTMLSanitized)
			}
		})
	}
}

func TestReply(t *testing.T) {
	m := corpus(t, "24-reply")
	if m.ReplyText != "New text that is flowed here." || m.Snippet != m.ReplyText {
		t.Errorf("reply %q, snippet %q", m.ReplyText, m.Snippet)
	}
	if !strings.Contains(m.QuotedText, "old text") || !strings.Contains(m.Text, "old text") {
		t.Errorf("quoted %q, text %q", m.QuotedText, m.Text)
	}
	if len(m.Codes) != 0 {
		t.Errorf("codes of the quoted mail: %+v", m.Codes)
	}
}

func TestHiddenTextReachesNothing(t *testing.T) {
	m := corpus(t, "25-hidden")
	all := m.Text + m.Markdown + m.HTMLSanitized + m.ReplyText + m.Snippet
	if strings.Contains(all, "SECRET") || strings.Contains(all, "999111") || len(m.Links) != 0 {
		t.Errorf("hidden text in %q, links %v", all, m.Links)
	}
	if len(m.Codes) != 1 || m.Codes[0].Value != "482913" {
		t.Errorf("codes %+v", m.Codes)
	}
	c := m.Content
	if c.Hidden[markup.HiddenDisplay] != 1 || c.Removed.Bidi != 1 || c.Removed.Tag != 1 || c.Removed.ZeroWidth != 1 || c.RemoteImages != 1 || !has(m, warning.HiddenText) {
		t.Errorf("content %+v, warnings %v", c, m.Warnings)
	}
}

func TestAttachmentKinds(t *testing.T) {
	m := corpus(t, "26-winmail")
	kinds := map[AttachmentKind]int{}
	for _, a := range m.Attachments {
		kinds[a.Kind]++
	}
	if kinds[KindTNEF] != 1 || kinds[KindCalendar] != 1 || kinds[KindFile] != 1 || !m.Flags.Calendar || !has(m, warning.ExternalBody) {
		t.Errorf("kinds %v, flags %+v, warnings %v", kinds, m.Flags, m.Warnings)
	}
}

func TestFlags(t *testing.T) {
	received := strings.Repeat("Received: from a by b\n", 50)
	for _, c := range []struct {
		name, header string
		want         Flags
	}{
		{"person", "Subject: x\n", Flags{}},
		{"auto-submitted", "Auto-Submitted: auto-generated\n", Flags{AutoReply: true}},
		{"auto-submitted no", "Auto-Submitted: no\n", Flags{}},
		{"auto-submitted no with a comment", "Auto-Submitted: no; x\n", Flags{}},
		{"suppress", "X-Auto-Response-Suppress: All\n", Flags{AutoReply: true}},
		{"precedence bulk", "Precedence: bulk\n", Flags{List: true}},
		{"precedence auto_reply", "Precedence: auto_reply\n", Flags{AutoReply: true}},
		{"list", "List-Id: <a.b>\n", Flags{List: true}},
		{"loop", "X-Loop: a@b\n", Flags{Loop: true}},
		{"50 received", received, Flags{}},
		{"51 received", received + "Received: x\n", Flags{Loop: true}},
		{"smime", "Content-Type: application/pkcs7-mime; smime-type=enveloped-data\n", Flags{Encrypted: true}},
		{"smime signed", "Content-Type: application/pkcs7-mime; smime-type=signed-data\n", Flags{Signed: true}},
		{"pgp", "Content-Type: multipart/encrypted; boundary=b\n\n--b\nContent-Type: application/pgp-encrypted\n\nVersion: 1\n--b--\n", Flags{Encrypted: true}},
		{"signed", "Content-Type: multipart/signed; boundary=b\n\n--b\n\nhi\n--b\nContent-Type: application/pgp-signature\n\nx\n--b--\n", Flags{Signed: true}},
		{"inline pgp", "\n-----BEGIN PGP MESSAGE-----\n", Flags{Encrypted: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := parse(t, "From: a@b.test\n"+c.header+"\nx").Flags; got != c.want {
				t.Errorf("flags = %+v, want %+v", got, c.want)
			}
		})
	}
	if m := corpus(t, "27-report"); !m.Flags.Bounce || !m.Flags.AutoReply {
		t.Errorf("report: %+v", m.Flags)
	}
}

func TestUuencodedFile(t *testing.T) {
	m := corpus(t, "28-uuencode")
	if a := file(t, m, "a.txt"); string(a.Data) != "Cat" || strings.Contains(m.Text, "0V%T") || !strings.Contains(m.Text, "more") {
		t.Errorf("%+v, text %q", a, m.Text)
	}
}

func TestEdgesAreKeptAndMarked(t *testing.T) {
	for _, c := range []struct {
		name, raw string
		code      warning.Code
		dead      bool
	}{
		{"empty", "", warning.Empty, true},
		{"white space", " \r\n\r\n", warning.Empty, true},
		{"only NUL", strings.Repeat("\x00", 100), warning.NoHeader, true},
		{"only headers", "Subject: x\r\n", "", false},
		{"no header", "hello\nworld", warning.NoHeader, false},
		{"NUL", "From: a@b.test\nSubject: n\x00ul\n\nbo\x00dy", warning.NulByte, false},
		{"two From fields", "From: a@b.test\nFrom: c@d.test\n\nx", warning.MultipleFrom, false},
		{"two authors", "From: a@b.test, c@d.test\n\nx", warning.MultipleFrom, false},
		{"bad date", "Date: yesterday\n\nx", warning.BadDate, false},
		{"broken base64", "Content-Transfer-Encoding: base64\n\naGVs!bG8=\n", warning.BadBase64, false},
		{"broken quoted-printable", "Content-Transfer-Encoding: quoted-printable\n\na=ZZ", warning.BadQuotedPrintable, false},
		{"unknown charset", "Content-Type: text/plain; charset=klingon\n\nx\xff", warning.UnknownCharset, false},
		{"unknown encoding", "Content-Transfer-Encoding: zip\n\nx", warning.UnknownEncoding, false},
		{"bare CR lines", "Subject: x\rTo: a@b.test\r\rhello", "", false},
		{"bare CR in a field", "Subject: x\rFrom: evil@b.test\nFrom: a@b.test\n\nhi", warning.BareCR, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := parse(t, c.raw)
			if m.Unreadable != c.dead || c.code != "" && !has(m, c.code) {
				t.Errorf("unreadable %v, warnings %v", m.Unreadable, m.Warnings)
			}
			if len(m.From) > 0 && m.From[0].Email == "evil@b.test" {
				t.Errorf("from = %+v", m.From)
			}
		})
	}
}

func TestAlternatives(t *testing.T) {
	alt := func(plain, html string) string {
		return "Subject: x\nContent-Type: multipart/alternative; boundary=b\n\n--b\n\n" + plain + "\n--b\nContent-Type: text/html\n\n" + html + "\n--b--\n"
	}
	words := "these words stand only inside the plain alternative where nobody with normal mail software would ever look for them because they read another part"
	if m := parse(t, alt(words, "<p>Thank you for your order</p>")); !has(m, warning.AlternativesDiffer) {
		t.Errorf("no warning: %v", m.Warnings)
	}
	if m := parse(t, alt(words, "<p>"+words+"</p>")); has(m, warning.AlternativesDiffer) {
		t.Errorf("warned for equal alternatives")
	}
	if m := parse(t, alt("", "<p>only html</p>")); m.Text != "only html" {
		t.Errorf("text = %q", m.Text)
	}
}

func TestLinksAndCodes(t *testing.T) {
	m := parse(t, "Subject: Verify\nContent-Type: text/html\n\n<p><a href=\"https://a.test/verify?t=1\">Verify your email</a> <a href=\"https://a.test/verify?t=1\">again</a> <a href=\"http://xn--a.test:81/\">https://bank.example</a></p>")
	if len(m.Links) != 2 || m.Links[0].Kind != cue.LinkVerify {
		t.Fatalf("links %+v", m.Links)
	}
	want := []markup.Signal{markup.SignalTextMismatch, markup.SignalPunycode, markup.SignalPort, markup.SignalInsecure}
	if got := m.Links[1].Signals; !reflect.DeepEqual(got, want) {
		t.Errorf("signals %v, want %v", got, want)
	}
	m = parse(t, "Subject: x\n\nSee (https://a.test/x), or https://b.test/y_(z).\nhttps://a.test/x")
	if len(m.Links) != 2 || m.Links[0].URL != "https://a.test/x" || m.Links[1].URL != "https://b.test/y_(z)" {
		t.Errorf("links %+v", m.Links)
	}
}

// A caller who may not see codes may not see these either, so whoever masks must know them; they are not the mail's own.
func TestOtherCodes(t *testing.T) {
	recovery := "Subject: Your recovery codes\n\nYour recovery codes:\n"
	for i := range 40 {
		recovery += fmt.Sprintf("%d\n", 739201+i)
	}
	for _, c := range []struct {
		name, mail    string
		listed, other int
	}{
		{"quoted", "Subject: Re: x\n\nThanks\n\nOn Mon, Ada wrote:\n> Your verification code is 739201\n", 0, 1},
		{"only in the HTML form", "Subject: x\nContent-Type: multipart/alternative; boundary=b\n\n--b\n\nUse a modern client.\n--b\nContent-Type: text/html\n\n<p>Your verification code is 739201</p>\n--b--\n", 0, 1},
		{"in both forms", "Subject: x\nContent-Type: multipart/alternative; boundary=b\n\n--b\n\nYour code is 739201\n--b\nContent-Type: text/html\n\n<p>Your code is 739201</p>\n--b--\n", 1, 0},
		{"more than are listed", recovery, cue.Listed, 30},
		{"none", "Subject: x\n\nOrder 739201\n\nOn Mon, Ada wrote:\n> order 739201\n", 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := parse(t, c.mail)
			if len(m.Codes) != c.listed || len(m.OtherCodes) != c.other || c.other > 0 && c.listed == 0 && m.OtherCodes[0] != "739201" {
				t.Errorf("codes %+v, others %v, want %d and %d", m.Codes, m.OtherCodes, c.listed, c.other)
			}
		})
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if m, err := Parse(ctx, []byte("Subject: x\n\nhi"), Limits{}); m != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("message %v, error %v", m, err)
	}
}

func TestEncodedMessageIsOpened(t *testing.T) {
	m := parse(t, "Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\nU3ViamVjdDogaW4KQ29udGVudC1UeXBlOiBpbWFnZS9wbmc7IG5hbWU9YS5wbmcKCmhp\n--b--\n")
	if a := file(t, m, "a.png"); a.PartPath != "1.1" || !a.Has(FlagTypeMismatch) {
		t.Errorf("%+v", a)
	}
	if a := file(t, m, "part-1.eml"); a.Message == nil || a.Message.Subject != "in" {
		t.Errorf("%+v", a)
	}
}

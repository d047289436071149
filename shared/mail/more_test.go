package mail

import (
	"strings"
	"testing"
)

func TestCutReply(t *testing.T) {
	for _, c := range []struct{ name, text, fresh, quoted, signature string }{
		{"nothing to cut", "Hello\n\nthere", "Hello\n\nthere", "", ""},
		{"english", "Yes.\n\nOn Mon, 2 Mar 2026, Bob <b@c.test> wrote:\n> old", "Yes.", "On Mon, 2 Mar 2026, Bob <b@c.test> wrote:\n> old", ""},
		{"spanish", "Sí.\n\nEl lun, 2 mar 2026, Bob escribió:\n> viejo", "Sí.", "El lun, 2 mar 2026, Bob escribió:\n> viejo", ""},
		{"portuguese", "Sim.\nEm 2 de mar. de 2026, Bob escreveu:\nvelho", "Sim.", "Em 2 de mar. de 2026, Bob escreveu:\nvelho", ""},
		{"french", "Oui.\nLe 2 mars 2026, Bob a écrit :\n> vieux", "Oui.", "Le 2 mars 2026, Bob a écrit :\n> vieux", ""},
		{"german", "Ja.\nAm 02.03.2026 schrieb Bob <b@c.test>:\n> alt", "Ja.", "Am 02.03.2026 schrieb Bob <b@c.test>:\n> alt", ""},
		{"italian", "Sì.\nIl 2 marzo 2026 Bob ha scritto:\n> vecchio", "Sì.", "Il 2 marzo 2026 Bob ha scritto:\n> vecchio", ""},
		{"folded attribution", "Yes.\n\nOn Mon, 2 Mar 2026 at 09:00 Bob\n<b@c.test> wrote:\n> old", "Yes.", "On Mon, 2 Mar 2026 at 09:00 Bob\n<b@c.test> wrote:\n> old", ""},
		{"outlook", "Yes.\n\nFrom: Bob\nSent: Monday\nTo: Ana\nSubject: x\n\nold", "Yes.", "From: Bob\nSent: Monday\nTo: Ana\nSubject: x\n\nold", ""},
		{"outlook with a rule", "Yes.\n________________________________\nDe: Bob\nEnviado: lunes\nPara: Ana\n\nold", "Yes.", "________________________________\nDe: Bob\nEnviado: lunes\nPara: Ana\n\nold", ""},
		{"separator", "Yes.\n-----Original Message-----\nold", "Yes.", "-----Original Message-----\nold", ""},
		{"quote at the end", "Yes.\n\n> old\n> older", "Yes.", "> old\n> older", ""},
		{"answer below", "On Mon, 2 Mar 2026, Bob wrote:\n> old\n\nNew below.", "New below.", "On Mon, 2 Mar 2026, Bob wrote:\n> old", ""},
		{"quote alone", "On Mon, 2 Mar 2026, Bob wrote:\n> old", "", "On Mon, 2 Mar 2026, Bob wrote:\n> old", ""},
		{"signature", "Hello\n-- \nAna\nAcme", "Hello", "", "-- \nAna\nAcme"},
		{"phone", "Hello\n\nSent from my iPhone", "Hello", "", "Sent from my iPhone"},
		{"forward", "FYI\n\n---------- Forwarded message ---------\nFrom: Bob\nDate: x\nSubject: y\nTo: z\n\nold", "FYI\n\n---------- Forwarded message ---------\nFrom: Bob\nDate: x\nSubject: y\nTo: z\n\nold", "", ""},
		{"prose that starts like an attribution", "On Monday we wrote\nthe report.", "On Monday we wrote\nthe report.", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := cutReply(c.text)
			if got != (reply{c.fresh, c.quoted, c.signature}) {
				t.Errorf("cutReply = %+q", got)
			}
		})
	}
}

func TestCleanFilename(t *testing.T) {
	for _, c := range []struct {
		name, in, want string
		deceptive      bool
	}{
		{"plain", "a.pdf", "a.pdf", false},
		{"path", "../../etc/passwd", "passwd", true},
		{"windows path", `C:\Users\x\a.exe`, "a.exe", true},
		{"drive", "C:a.exe", "a.exe", true},
		{"dots", "..", "", false},
		{"trailing slash", "a/", "", true},
		{"override", "invoice\u202efdp.exe", "invoicefdp.exe", true},
		{"zero width", "a\u200b.pdf", "a.pdf", true},
		{"control", "a\x00\x1b.pdf", "a.pdf", true},
		{"line break", "a\r\nb.pdf", "a b.pdf", false},
		{"decomposed", "cafe\u0301.pdf", "café.pdf", false},
		{"forbidden characters", "a<b>:c?.pdf", "a_b__c_.pdf", false},
		{"trailing dots and spaces", "a.pdf. . ", "a.pdf", false},
		{"200 bytes", strings.Repeat("a", 196) + ".pdf", strings.Repeat("a", 196) + ".pdf", false},
		{"201 bytes", strings.Repeat("a", 197) + ".pdf", strings.Repeat("a", 196) + ".pdf", false},
		{"cut at a character", strings.Repeat("é", 150) + ".pdf", strings.Repeat("é", 98) + ".pdf", false},
		{"long extension", "a." + strings.Repeat("b", 300), "a." + strings.Repeat("b", 198), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, deceptive := cleanFilename(c.in); got != c.want || deceptive != c.deceptive {
				t.Errorf("cleanFilename = %q, %v; want %q, %v", got, deceptive, c.want, c.deceptive)
			}
		})
	}
}

func TestInspect(t *testing.T) {
	zip := "PK\x03\x04\x14\x00\x00\x00"
	for _, c := range []struct {
		name, file, declared, data string
		want                       []FileFlag
	}{
		{"pdf", "a.pdf", "application/pdf", "%PDF-1.4", nil},
		{"double extension", "invoice.pdf.exe", "application/octet-stream", "MZ", []FileFlag{FlagDoubleExtension, FlagExecutable}},
		{"double extension, html", "invoice.pdf.html", "text/html", "<html>", []FileFlag{FlagDoubleExtension, FlagActiveContent}},
		{"two dots are fine", "report.2024.pdf", "application/pdf", "%PDF-1.4", nil},
		{"archive of a tar", "a.tar.gz", "application/gzip", "\x1f\x8b", []FileFlag{FlagArchive}},
		{"executable as a picture", "a.jpg", "image/jpeg", "MZ\x90", []FileFlag{FlagExecutable, FlagTypeMismatch}},
		{"text as pdf", "a.pdf", "application/pdf", "hello", []FileFlag{FlagTypeMismatch}},
		{"macro by name", "a.docm", "", zip + "word/document.xml", []FileFlag{FlagMacro}},
		{"macro inside", "a.docx", "", zip + "word/document.xml word/vbaProject.bin", []FileFlag{FlagMacro}},
		{"zip", "a.zip", "application/zip", zip + "a.txt", []FileFlag{FlagArchive}},
		{"encrypted zip", "a.zip", "application/zip", "PK\x03\x04\x14\x00\x01\x00a.txt", []FileFlag{FlagArchive, FlagEncryptedArchive}},
		{"encrypted rar", "a.rar", "", "Rar!\x1a\x07\x00\x00\x00s\x80\x00", []FileFlag{FlagArchive, FlagEncryptedArchive}},
		{"encrypted 7z", "a.7z", "", "7z\xbc\xaf\x27\x1cxxxx\x06\xf1\x07\x01", []FileFlag{FlagArchive, FlagEncryptedArchive}},
		{"svg", "a.svg", "image/svg+xml", "<svg>", []FileFlag{FlagActiveContent}},
		{"disk image", "a.iso", "", "x", []FileFlag{FlagArchive}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := inspect(c.file, c.declared, detect([]byte(c.data)), []byte(c.data))
			if len(got) != len(c.want) {
				t.Fatalf("flags %v, want %v", got, c.want)
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Errorf("flags %v, want %v", got, c.want)
				}
			}
		})
	}
}

func TestFlowed(t *testing.T) {
	for _, c := range []struct {
		name, in, want string
		delSp          bool
	}{
		{"joined", "a \nb\nc", "a b\nc", false},
		{"deleted space", "a \nb", "ab", true},
		{"quote depth", "> a \n> b\nc", "> a b\nc", false},
		{"depth changes", "> a \n>> b", "> a \n>> b", false},
		{"signature is not joined", "a\n-- \nAna", "a\n-- \nAna", false},
		{"stuffed", " > a", "> a", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := unflow(c.in, c.delSp); got != c.want {
				t.Errorf("unflow = %q, want %q", got, c.want)
			}
		})
	}
}

func TestNestedFlagsDoNotMarkTheMail(t *testing.T) {
	m := parse(t, "From: a@b.test\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nhi\n--b\nContent-Type: message/rfc822\n\nContent-Type: text/calendar\n\nBEGIN:VCALENDAR\n--b--\n")
	if m.Flags.Calendar || m.Text != "hi" {
		t.Errorf("flags %+v, text %q", m.Flags, m.Text)
	}
}

package mail

import (
	"strings"
	"testing"
)

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

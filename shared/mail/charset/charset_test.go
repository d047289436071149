package charset

import (
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	xunicode "golang.org/x/text/encoding/unicode"
)

func TestDecode(t *testing.T) {
	encode := func(s string, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	japaneseText := "これは日本語のテストメールです。よろしくお願いします。"
	chinese := "您好，这是一封测试邮件，请查收附件中的发票。谢谢您的支持与合作。"
	sjis := encode(japanese.ShiftJIS.NewEncoder().String(japaneseText))
	jis := encode(japanese.ISO2022JP.NewEncoder().String(japaneseText))
	gbk := encode(simplifiedchinese.GBK.NewEncoder().String(chinese))
	big5 := encode(traditionalchinese.Big5.NewEncoder().String("您好，這是測試"))
	euckr := encode(korean.EUCKR.NewEncoder().String("안녕하세요 테스트 메일입니다"))
	utf16 := encode(xunicode.UTF16(xunicode.LittleEndian, xunicode.UseBOM).NewEncoder().String("héllo"))
	for _, c := range []struct {
		name, data, declared, want string
		html, wrong, unknown       bool
	}{
		{"ascii", "hello", "", "hello", false, false, false},
		{"utf-8", "café", "utf-8", "café", false, false, false},
		{"latin1", "caf\xe9", "iso-8859-1", "café", false, false, false},
		{"windows-1252 as latin1", "\x93x\x94", "iso-8859-1", "“x”", false, false, false},
		{"utf-8 that says ascii", "café", "us-ascii", "café", false, true, false},
		{"latin1 that says utf-8", "caf\xe9 ma\xf1ana", "utf-8", "café mañana", false, true, false},
		{"latin1 that says nothing", "caf\xe9 ma\xf1ana", "", "café mañana", false, false, false},
		{"unknown label", "café", "klingon", "café", false, false, true},
		{"quoted label", "caf\xe9", `"ISO-8859-1"`, "café", false, false, false},
		{"byte order mark", "\xef\xbb\xbfcafé", "iso-8859-1", "café", false, true, false},
		{"utf-16", utf16, "", "héllo", false, false, false},
		{"utf-16 that is ascii", "hello", "utf-16", "hello", false, false, false},
		{"shift-jis", sjis, "shift_jis", japaneseText, false, false, false},
		{"shift-jis undeclared", sjis, "", japaneseText, false, false, false},
		{"iso-2022-jp", jis, "iso-2022-jp", japaneseText, false, false, false},
		{"iso-2022-jp undeclared", jis, "", japaneseText, false, false, false},
		{"gbk", gbk, "gb2312", chinese, false, false, false},
		{"gbk undeclared", gbk, "", chinese, false, false, false},
		{"gbk that says utf-8", gbk, "utf-8", chinese, false, true, false},
		{"big5", big5, "big5", "您好，這是測試", false, false, false},
		{"euc-kr", euckr, "ks_c_5601-1987", "안녕하세요 테스트 메일입니다", false, false, false},
		{"meta", "<meta charset=windows-1251>\xcf\xf0\xe8\xe2\xe5\xf2", "", "<meta charset=windows-1251>Привет", true, false, false},
		{"declared beats meta", "<meta charset=windows-1251>caf\xe9", "iso-8859-1", "<meta charset=windows-1251>café", true, false, false},
		{"utf-7", "+AOk- 1 +- 2", "utf-7", "é 1 + 2", false, false, false},
		{"utf-7 only when declared", "+AOk-", "", "+AOk-", false, false, false},
		{"utf-7 pair", "+2D3cAA-", "utf-7", "🐀", false, false, false},
		{"one broken byte in utf-8", "caf\xc3\xa9 ma\xc3\xb1ana ni\xc3\xb1o se\xc3\xb1or a\xc3\xb1o \xff", "utf-8", "café mañana niño señor año \ufffd", false, true, false},
		{"euro in windows-1252", "\x80", "windows-1252", "€", false, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Decode([]byte(c.data), c.declared, c.html)
			if r.Text != c.want || r.Wrong != c.wrong || r.Unknown != c.unknown {
				t.Errorf("Decode = %+v\nwant %q, wrong %v, unknown %v", r, c.want, c.wrong, c.unknown)
			}
			if got := strings.Count(r.Text, "\ufffd"); got != r.Replaced {
				t.Errorf("%d replaced, %d counted", got, r.Replaced)
			}
		})
	}
}

// TestLengthDoesNotMatter: more ASCII around the same words must not change how they are read.
func TestLengthDoesNotMatter(t *testing.T) {
	word, err := japanese.ShiftJIS.NewEncoder().String("これは日本語のテストメールです。")
	if err != nil {
		t.Fatal(err)
	}
	short := Decode([]byte(word), "", false)
	for _, n := range []int{1, 100, 10000} {
		long := Decode([]byte(strings.Repeat("an ASCII line\n", n)+word+"\n"+strings.Repeat("and more\n", n)), "", false)
		if long.Charset != short.Charset || !strings.Contains(long.Text, short.Text) {
			t.Errorf("%d lines around: %s, alone: %s", n, long.Charset, short.Charset)
		}
	}
}

func FuzzCharset(f *testing.F) {
	f.Add([]byte("caf\xe9"), "utf-8")
	f.Add([]byte("+2D3cAA-"), "utf-7")
	f.Add([]byte("\x1b$B"), "iso-2022-jp")
	f.Add([]byte("\xff\xfea\x00"), "utf-16")
	f.Add([]byte("\x81"), "gb18030")
	f.Fuzz(func(t *testing.T, data []byte, label string) {
		r := Decode(data, label, true)
		if !utf8.ValidString(r.Text) || len(r.Text) > 4*len(data)+8 || r.Replaced < 0 {
			t.Errorf("Decode(%q, %q) = %+v", data, label, r)
		}
		if w := DecodeWord(data, label); !utf8.ValidString(w.Text) {
			t.Errorf("DecodeWord(%q, %q) = %+v", data, label, w)
		}
	})
}

package blob

import (
	"errors"
	"mime"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

func TestCheckKey(t *testing.T) {
	for _, good := range []string{"a", "raw/2026/08/x.eml", "a.b/c-d_e", "-", "_", "0", "a/.b", strings.Repeat("k", MaxKey)} {
		if err := CheckKey(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/..", "a/../b", "a/./b", "./a", "a..b", "A", "a b", "a\\b", "a\x00", "a\n", "a%2fb",
		"\u00f1", "a:b", "a?b", "a#b", "~", "a+b", "a=b", strings.Repeat("k", MaxKey+1),
	} {
		if err := CheckKey(bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v, want ErrInvalid", bad, err)
		}
	}
}

func TestDownloadOptions(t *testing.T) {
	for _, c := range []struct{ in, want time.Duration }{
		{0, MaxTTL}, {MaxTTL, MaxTTL}, {time.Second, time.Second}, {1900 * time.Millisecond, time.Second},
	} {
		if o, err := (DownloadOptions{TTL: c.in}).Normal(); err != nil || o.TTL != c.want || o.Filename != "download" {
			t.Errorf("%v: %+v, %v", c.in, o, err)
		}
	}
	for _, bad := range []time.Duration{-1, time.Second - 1, MaxTTL + 1, time.Hour} {
		if _, err := (DownloadOptions{TTL: bad}).Normal(); !errors.Is(err, ErrInvalid) {
			t.Errorf("%v: %v, want ErrInvalid", bad, err)
		}
	}
}

func TestDisposition(t *testing.T) {
	for in, want := range map[string]string{
		"report.pdf":               `attachment; filename="report.pdf"`,
		"my report.pdf":            `attachment; filename="my report.pdf"`,
		"":                         `attachment; filename="download"`,
		"  ..  ":                   `attachment; filename="download"`,
		"../../etc/passwd":         `attachment; filename="_.._etc_passwd"`,
		`C:\x.exe`:                 `attachment; filename="C__x.exe"`,
		`a"; filename="b.exe`:      `attachment; filename="a_; filename=_b.exe"`,
		"a\r\nSet-Cookie: x=1":     `attachment; filename="aSet-Cookie_ x=1"`,
		".bashrc":                  `attachment; filename="bashrc"`,
		"a\tb":                     `attachment; filename="ab"`,
		"100%.txt":                 `attachment; filename="100_.txt"; filename*=UTF-8''100%25.txt`,
		"Presupuesto a\u00f1o.pdf": `attachment; filename="Presupuesto a_o.pdf"; filename*=UTF-8''Presupuesto%20a%C3%B1o.pdf`,
		"\u65e5\u672c.txt":         `attachment; filename="__.txt"; filename*=UTF-8''%E6%97%A5%E6%9C%AC.txt`,
		"x\u202egpj.exe":           `attachment; filename="xgpj.exe"`,
		"bad\xff.txt":              `attachment; filename="bad_.txt"`,
	} {
		if got := Disposition(in); got != want {
			t.Errorf("%q:\ngot  %s\nwant %s", in, got, want)
		}
	}
	long := CleanFilename(strings.Repeat("\u00f1", 300) + ".pdf")
	if len(long) > maxFilename || !strings.HasSuffix(long, "\u00f1.pdf") || !utf8.ValidString(long) {
		t.Errorf("long name became %d bytes: %q", len(long), long)
	}
}

func FuzzDisposition(f *testing.F) {
	f.Add("a\"b\r\n.pdf")
	f.Add(strings.Repeat("\U0001F4EC", 100) + ".tar.gz")
	f.Add("\xff\xfe%00")
	f.Fuzz(func(t *testing.T, in string) {
		clean := CleanFilename(in)
		if clean == "" || len(clean) > maxFilename || !utf8.ValidString(clean) || strings.ContainsAny(clean, `/\"`) {
			t.Fatalf("clean = %q", clean)
		}
		if again := CleanFilename(clean); again != clean {
			t.Fatalf("cleaned twice: %q, then %q", clean, again)
		}
		header := Disposition(in)
		for _, r := range header {
			if r >= utf8.RuneSelf || unicode.IsControl(r) {
				t.Fatalf("header = %q", header)
			}
		}
		kind, params, err := mime.ParseMediaType(header)
		if err != nil || kind != "attachment" {
			// Go's parser refuses both spellings at once; browsers and RFC 6266 section 4.3 do not.
			_, tail, found := strings.Cut(header, "; filename*=")
			if !found {
				t.Fatalf("%q: %v", header, err)
			}
			if _, params, err = mime.ParseMediaType("attachment; filename*=" + tail); err != nil {
				t.Fatalf("%q: %v", header, err)
			}
		}
		if params["filename"] != clean && !strings.Contains(header, "filename*") {
			t.Fatalf("%q names %q, want %q", header, params["filename"], clean)
		}
	})
}

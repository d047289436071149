package header

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/buzon-mail/buzon/shared/mail/clean"
	"github.com/buzon-mail/buzon/shared/mail/warning"
)

func decoder() *Decoder { return &Decoder{Warn: &warning.List{}} }

func emails(list []Address) string {
	var out []string
	for _, a := range list {
		if a.Valid {
			out = append(out, a.Email)
		} else {
			out = append(out, "!")
		}
	}
	return strings.Join(out, " ")
}

func TestAddresses(t *testing.T) {
	for _, c := range []struct{ name, field, want, display string }{
		{"plain", "a@b.test", "a@b.test", ""},
		{"angle", "Ana <a@b.test>", "a@b.test", "Ana"},
		{"quoted name", `"Pérez, Ana" <a@B.Test>`, "a@b.test", "Pérez, Ana"},
		{"encoded name", "=?utf-8?q?Jos=C3=A9?= <a@b.test>", "a@b.test", "José"},
		{"encoded name in quotes", `"=?utf-8?q?Jos=C3=A9?=" <a@b.test>`, "a@b.test", "José"},
		{"comment as name", "a@b.test (Ana)", "a@b.test", "Ana"},
		{"list", "a@b.test, Bob <c@d.test>", "a@b.test c@d.test", ""},
		{"semicolons", "a@b.test; c@d.test", "a@b.test c@d.test", ""},
		{"group", "Team: a@b.test, c@d.test;", "a@b.test c@d.test", ""},
		{"empty group", "undisclosed-recipients:;", "", ""},
		{"nested groups", "A: B: C: a@b.test;;;", "a@b.test", ""},
		{"quoted local part", `"a b"@c.test`, `"a b"@c.test`, ""},
		{"quotes without need", `"ab"@c.test`, `ab@c.test`, ""},
		{"at sign in quotes stays in them", `"alice@good.test"@evil.test`, `"alice@good.test"@evil.test`, ""},
		{"route", "<@x.test,@y.test:a@b.test>", "a@b.test", ""},
		{"literal", "a@[192.0.2.1]", "a@[192.0.2.1]", ""},
		{"international", "a@bücher.test", "a@xn--bcher-kva.test", ""},
		{"empty", "", "", ""},
		{"null path", "<>", "!", ""},

		// Refusals: none of these may yield the address that a filter would know (CVE-2023-27043 and its relatives).
		{"closing parenthesis", "alice@example.org)bob@evil.test", "!", ""},
		{"opening parenthesis", "alice@example.org(<bob@evil.test>", "!", ""},
		{"angle behind an address", "alice@example.org<bob@evil.test>", "bob@evil.test", "alice@example.org"},
		{"second at", "alice@example.org@evil.test", "!", ""},
		{"quote behind", `alice@example.org"bob@evil.test"`, "!", ""},
		{"bracket behind", "alice@example.org[bob@evil.test", "!", ""},
		{"bracket close", "alice@example.org]bob@evil.test", "!", ""},
		{"backslash", `alice@example.org\bob@evil.test`, "!", ""},
		{"text behind the angle", "<alice@example.org>bob@evil.test", "!", ""},
		{"two angles", "<alice@example.org><bob@evil.test>", "!", ""},
		{"angle in angle", "<<alice@example.org>bob@evil.test>", "!", ""},
		{"angle left open", "Ana <alice@example.org", "!", ""},
		{"space in the domain", "alice@example.org evil.test", "!", ""},
		{"space in the local part", "bob alice@example.org", "!", ""},
		{"lone quote", `"`, "!", ""},
		{"lone parenthesis", "(", "!", ""},
		{"encoded word as address", "=?utf-8?q?alice=40example.org?=", "!", "alice@example.org"},
		{"encoded word as local part", "=?utf-8?q?alice?=@example.org", "!", ""},
		{"encoded mailbox", "=?utf-8?q?Ana_=3Calice=40example.org=3E?=", "!", "Ana <alice@example.org>"},
		{"bidi in the local part", "al\u202eice@example.org", "!", ""},
		{"zero width in the local part", "al\u200bice@example.org", "!", ""},
		{"double dot domain", "a@b..test", "!", ""},
		{"no domain", "a@", "!", ""},
		{"no local part", "@b.test", "!", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			list := decoder().Addresses([]byte(c.field), 100)
			if got := emails(list); got != c.want {
				t.Errorf("addresses = %q, want %q (%+v)", got, c.want, list)
			}
			if c.display != "" && list[0].Name != c.display {
				t.Errorf("name = %q, want %q", list[0].Name, c.display)
			}
		})
	}
}

func TestWords(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"none", "plain = ? text", "plain = ? text"},
		{"q", "=?utf-8?q?caf=C3=A9_x?=", "café x"},
		{"b", "=?UTF-8?B?Y2Fmw6k=?=", "café"},
		{"latin1", "=?iso-8859-1?q?caf=E9?=", "café"},
		{"around text", "a =?utf-8?q?b?= c", "a b c"},
		{"space between words goes", "=?utf-8?q?a?= =?utf-8?q?b?=", "ab"},
		{"character split over words", "=?utf-8?b?44GT4w==?= =?utf-8?b?gpM=?=", "こん"},
		{"character split over q words", "=?utf-8?q?=E6=97?= =?utf-8?q?=A5?=", "日"},
		{"different charsets", "=?utf-8?q?=C3=A9?= =?iso-8859-1?q?=E9?=", "éé"},
		{"language", "=?utf-8*en?q?a?=", "a"},
		{"unpadded", "=?utf-8?b?Y2Fmw6k?=", "café"},
		{"unknown charset", "=?klingon?q?a?=", "a"},
		{"unknown encoding", "=?utf-8?x?a?=", "=?utf-8?x?a?="},
		{"no end", "=?utf-8?q?abc", "=?utf-8?q?abc"},
		{"glued", "x=?utf-8?q?y?=z", "xyz"},
		{"iso-2022-jp", "=?iso-2022-jp?B?GyRCRnxLXBsoQg==?=", "日本"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _ := Words(c.in)
			if got != c.want {
				t.Errorf("Words(%q) = %q, want %q", c.in, got, c.want)
			}
		})
	}
}

func TestMedia(t *testing.T) {
	for _, c := range []struct{ name, value, wantType, param, want string }{
		{"plain", "text/plain; charset=utf-8", "text/plain", "charset", "utf-8"},
		{"quoted", `text/plain; name="a;b\"c.txt"`, "text/plain", "name", `a;b"c.txt`},
		{"windows path", `text/plain; name="C:\dir\a.txt"`, "text/plain", "name", `C:\dir\a.txt`},
		{"upper case", "TEXT/Plain; CharSet=X", "text/plain", "charset", "X"},
		{"spaces in a bare value", "text/plain; name=a b.txt ; x=y", "text/plain", "name", "a b.txt"},
		{"comment", "text/plain (x); charset=y", "text/plain", "charset", "y"},
		{"first of two counts", "text/plain; name=a; name=b", "text/plain", "name", "a"},
		{"junk", "\x01;;=", "", "name", ""},
		{"no type", "charset=utf-8", "", "charset", "utf-8"},
		{"rfc 2231", "a/b; name*=utf-8''caf%C3%A9.txt", "a/b", "name", "café.txt"},
		{"rfc 2231 beats plain", "a/b; name=x; name*=utf-8''y", "a/b", "name", "y"},
		{"sections", `a/b; name*0=ab; name*1="c.txt"`, "a/b", "name", "abc.txt"},
		{"sections out of order", `a/b; name*1=b; name*0=a`, "a/b", "name", "ab"},
		{"extended sections", "a/b; name*0*=utf-8''%C3; name*1*=%A9.txt", "a/b", "name", "é.txt"},
		{"word over sections", `a/b; name*0="=?UTF-8?B?5ryi5a2X"; name*1="LnR4dA==?="`, "a/b", "name", "漢字.txt"},
		{"word in a plain parameter", `a/b; name="=?utf-8?q?caf=C3=A9?="`, "a/b", "name", "café"},
		{"section number that is no ASCII digit", "a/b; name*²=x; name=y", "a/b", "name", "y"},
		{"huge section number", "a/b; name*99999999999999999999=x; name=y", "a/b", "name", "y"},
		{"lone quote", `a/b; name="x`, "a/b", "name", "x"},
		{"no charset in the extended value", "a/b; name*=x%20y", "a/b", "name", "x y"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := decoder().Media([]byte(c.value))
			if m.Type != c.wantType || m.Param(c.param) != c.want {
				t.Errorf("type %q, %s = %q; want %q, %q", m.Type, c.param, m.Param(c.param), c.wantType, c.want)
			}
		})
	}
}

func TestIDsAndDates(t *testing.T) {
	d := decoder()
	if got := strings.Join(d.MessageIDs([]byte("<a@b> junk <c d@e>")), " "); got != "a@b cd@e" {
		t.Errorf("ids = %q", got)
	}
	if got := d.MessageIDs([]byte("a@b")); len(got) != 1 {
		t.Errorf("id without brackets = %v", got)
	}
	if got := d.MessageIDs([]byte(strings.Repeat("<a@b> ", 1000))); len(got) != maxIDs {
		t.Errorf("%d ids", len(got))
	}
	for s, ok := range map[string]bool{
		"Mon, 2 Mar 2026 10:00:00 +0100": true, "2 Mar 2026 10:00:00 GMT (x)": true, "lun, 2 Mar 2026 10:00:00 +0100": true, "Mon Mar  2 10:00:00 2026": true,
		"2026-03-02T10:00:00Z": true, "yesterday": false, "": false, "Mon, 2 Mar 0001 10:00:00 +0100": false,
	} {
		if got, valid := d.Date([]byte(s)); valid != ok {
			t.Errorf("Date(%q) = %v, %v", s, got, valid)
		}
	}
}

func TestEightBitFields(t *testing.T) {
	for _, c := range []struct{ name, charset, in, want string }{
		{"utf-8", "", "caf\xc3\xa9", "café"},
		{"utf-8 wins over the body's charset", "iso-8859-1", "caf\xc3\xa9", "café"},
		{"body's charset", "koi8-r", "\xf0\xf2", "ПР"},
		{"windows-1252", "", "\x80 caf\xe9", "€ café"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := decoder()
			d.Charset = c.charset
			if got := d.Text([]byte(c.in)); got != c.want || !d.Warn.Has(warning.RawHeaderBytes) {
				t.Errorf("Text = %q, want %q, warnings %v", got, c.want, d.Warn.All())
			}
		})
	}
}

func FuzzAddressList(f *testing.F) {
	for _, s := range []string{
		"", "a@b", "A <a@b.test>, b@c.test", "alice@example.org)bob@evil.test", `"`, "((((", "a:b:c:;;;", "<@x,@y:a@b>", "=?utf-8?q?a=40b?=",
		strings.Repeat("=?utf-8?q?Re:_a:?= ", 20), "a@[1.2.3.4]", "\"a\\\"b\"@c.test", "x\u202e@b.test", "\xff\xfe@b",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		list := decoder().Addresses(raw, 50)
		if len(list) > 50 {
			t.Errorf("%d addresses", len(list))
		}
		for _, a := range list {
			for _, s := range []string{a.Name, a.Email, a.Domain, a.Group, a.Raw} {
				if !utf8.ValidString(s) || strings.IndexFunc(s, clean.Forbidden) >= 0 || strings.Contains(s, "\n") || len(s) > maxName {
					t.Errorf("output %q", s)
				}
			}
			if a.Valid != (a.Email != "") || a.Valid && a.Raw != "" {
				t.Errorf("%+v", a)
			}
			if !a.Valid {
				continue
			}
			// What was read is read the same again: no second reader sees another mailbox in it.
			again := decoder().Addresses([]byte("<"+a.Email+">"), 5)
			if len(again) != 1 || again[0].Email != a.Email {
				t.Errorf("%q read again = %+v", a.Email, again)
			}
		}
	})
}

func FuzzEncodedWord(f *testing.F) {
	for _, s := range []string{"", "=?utf-8?q?a?=", "=?utf-8?b?44GT?= =?utf-8?b?44KT?=", "=?a?q?", "=?=?=?=?", "=?utf-7?q?+AGE-?=", "=?iso-2022-jp?b?GyRC?=", "=?gb2312?q?=c4?="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "\uFFFD")
		out, bad := Words(s)
		if !utf8.ValidString(out) || bad < 0 || len(out) > 4*len(s)+16 {
			t.Errorf("Words(%q) = %q, %d", s, out, bad)
		}
		if line := decoder().Phrase(s); strings.IndexFunc(line, clean.Forbidden) >= 0 || strings.ContainsAny(line, "\n\t") {
			t.Errorf("Phrase(%q) = %q", s, line)
		}
	})
}

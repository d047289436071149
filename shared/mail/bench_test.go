package mail

import (
	"fmt"
	"strings"
	"testing"
)

// typical is a mail of about 20 KB with a plain and an HTML form, as a newsletter or a shop sends it.
func typical() string {
	var plain, html strings.Builder
	html.WriteString(`<html><head><style>.a{color:#333} .b{font-size:14px} @media (max-width:600px){.c{display:none}}</style></head><body style="background:#fff"><table width="600"><tr><td>`)
	for i := range 60 {
		fmt.Fprintf(&plain, "Hello world, this is paragraph number %d of the mail; see https://example.com/x?y=%d\r\n\r\n", i, i)
		fmt.Fprintf(&html, `<p class="a b" style="font-size:14px;color:#333333">Hello <b>world</b>, this is paragraph number %d of the mail; <a href="https://example.com/x?y=%d">see this</a></p>`+"\r\n", i, i)
	}
	html.WriteString("</td></tr></table></body></html>")
	var received strings.Builder
	for i := range 6 {
		fmt.Fprintf(&received, "Received: from a%d.example.org (a.example.org [192.0.2.1])\r\n\tby b.example.org with ESMTPS id abcdef;\r\n\tMon, 2 Mar 2026 10:00:00 +0100\r\n", i)
	}
	return received.String() + "From: =?utf-8?q?Jos=C3=A9?= <jose@example.org>\r\nTo: Box <box@acme.test>\r\nSubject: =?utf-8?q?Pedido_n=C2=BA_1?=\r\nDate: Mon, 2 Mar 2026 10:00:00 +0100\r\nMessage-ID: <1@example.org>\r\n" +
		"Content-Type: multipart/alternative; boundary=\"b\"\r\nMIME-Version: 1.0\r\n\r\n--b\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n" +
		strings.ReplaceAll(plain.String(), "=", "=3D") + "--b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n" + html.String() + "\r\n--b--\r\n"
}

func BenchmarkParse20KB(b *testing.B) {
	raw := []byte(typical())
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(b.Context(), raw, Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

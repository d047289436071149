package pipeline

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/mail"
	"github.com/buzon-mail/buzon/shared/pipeline/parsing"
)

// Mail as bad as the issue lists it: kept, bounded, marked, and none of it processed for ever.
func TestHostileMail(t *testing.T) {
	nested := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString("Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n")
		}
		return b.String()
	}
	tests := []struct {
		name, raw, warning string
		failed             bool
	}{
		{name: "8-bit headers", raw: "Subject: caf\xe9\r\nFrom: Jos\xe9 <j@example.com>\r\n\r\nhi", warning: "raw_header_bytes"},
		{name: "no boundary", raw: "Content-Type: multipart/mixed\r\n\r\n--x\r\n\r\nhi\r\n", warning: "missing_boundary"},
		{name: "unclosed nesting", raw: "Subject: x\r\n" + nested(10000) + "\r\nhi", warning: "depth_limit"},
		{name: "200,000 parts", raw: "Content-Type: multipart/mixed; boundary=b\r\n\r\n" + strings.Repeat("--b\r\n\r\nx\r\n", 200000), warning: "part_limit"},
		{name: "10 MB header", raw: "Subject: " + strings.Repeat("x", 10<<20) + "\r\n\r\nhi", warning: "header_too_large"},
		{name: "empty", raw: "", warning: "empty", failed: true},
		{name: "NUL", raw: "Subject: a\x00b\r\n\r\nc\x00d", warning: "nul_byte"},
		{name: "noise", raw: strings.Repeat("\x00\xff\x01", 1000), failed: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, WorkerOptions{})
			b.intake.max = MaxRaw
			b.parse = parsing.Mail(mail.Limits{})
			in := b.accept(t, tt.raw, "agent")
			b.handle(t, in.ID, 1)
			p := b.store.outcome(in.Recipients[0].Email)
			want := inbox.StatusProcessed
			if tt.failed {
				want = inbox.StatusFailed
			}
			if p.Email.Status != want || string(b.blobs.data[in.RawKey]) != tt.raw {
				t.Errorf("%s %s, want %s; raw kept: %v", p.Email.Status, p.Email.Reason, want, len(b.blobs.data[in.RawKey]) == len(tt.raw))
			}
			if tt.warning != "" && !slices.ContainsFunc(p.Email.Warnings, func(w inbox.Warning) bool { return w.Code == tt.warning }) {
				t.Errorf("warnings %v lack %s", p.Email.Warnings, tt.warning)
			}
			if n := len(jsonOf(t, p.Email)); n > maxRow+1000 {
				t.Errorf("the row has %d bytes", n)
			}
		})
	}
}

func TestParseMail(t *testing.T) {
	raw := strings.ReplaceAll(`From: Ana <ana@example.com>
Sender: bot@example.com
To: agent@acme.test, "broken" <x@>
Reply-To: help@example.com
Subject: =?UTF-8?B?YcOxbw==?=
Message-ID: <2@example.com>
In-Reply-To: <1@example.com>
References: <0@example.com>
Date: Mon, 30 Nov 2026 12:00:00 +0000
Auto-Submitted: auto-generated
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=m

--m
Content-Type: text/html; charset=utf-8

<p>Your code is 482913. <a href="https://example.com/unsubscribe">unsubscribe</a></p><p style="display:none">hidden</p>
--m
Content-Type: application/pdf; name=a.pdf
Content-Disposition: attachment; filename=a.pdf

%PDF-1.4
--m--
`, "\n", "\r\n")
	r, err := parsing.Mail(mail.Limits{})(t.Context(), []byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	c := r.Content
	if c.Subject != "año" || c.MessageID == "" || len(c.From) != 1 || c.From[0] != (inbox.Address{Name: "Ana", Address: "ana@example.com"}) ||
		c.Sender == nil || c.Sender.Address != "bot@example.com" || len(c.ReplyTo) != 1 || !c.Date.Equal(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)) || c.Snippet == "" {
		t.Errorf("content %+v", c)
	}
	if len(c.To) != 2 || c.To[0].Address != "agent@acme.test" || c.To[1].Address != "" {
		t.Errorf("to %+v: what is no address must not stand as one", c.To)
	}
	if len(r.References) != 2 || !strings.Contains(r.References[1], "1@example.com") {
		t.Errorf("references %v, want oldest first", r.References)
	}
	if !slices.Contains(r.Flags, "auto_reply") {
		t.Errorf("flags %v", r.Flags)
	}
	if !slices.ContainsFunc(r.Codes, func(c inbox.Code) bool { return c.Value == "482913" }) {
		t.Errorf("codes %v", r.Codes)
	}
	if len(r.Links) != 1 || r.Links[0].Kind != "unsubscribe" {
		t.Errorf("links %+v", r.Links)
	}
	if !slices.ContainsFunc(r.Signals, func(s inbox.Signal) bool { return s.Code == "hidden_display" && s.Count > 0 }) || strings.Contains(r.Body.Text, "hidden") {
		t.Errorf("signals %v, text %q", r.Signals, r.Body.Text)
	}
	if len(r.Files) != 1 || r.Files[0].Meta.Filename != "a.pdf" || r.Files[0].Meta.DetectedType != "application/pdf" || !strings.HasPrefix(string(r.Files[0].Data), "%PDF") {
		t.Errorf("files %+v", r.Files)
	}
	if len(r.Body.Headers) != 12 || r.Body.Headers[0].Name != "From" || r.Body.HTML == "" || r.Body.Markdown == "" {
		t.Errorf("headers %v", r.Body.Headers)
	}
}

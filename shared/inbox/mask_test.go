package inbox_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/inbox"
)

func TestMask(t *testing.T) {
	s := inbox.SecretsOf(inbox.Email{
		Codes: []inbox.Code{{Value: "482913"}, {Value: "AB-12-cd"}},
		Links: []inbox.Link{{URL: "https://login.remote.test/verify?token=Zx9_k&pin=77310"}},
	})
	m := s.Masker()
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "Hello you", "Hello you"},
		{"plain", "code 482913.", "code [masked]."},
		{"spaced", "482 913", "[masked]"},
		{"hyphens", "4-8-2-9-1-3", "[masked]"},
		{"markdown", "**482**913", "**[masked]"},
		{"no-break spaces", "482\u00a0913", "[masked]"},
		{"zero width", "482\u200b913", "[masked]"},
		{"soft hyphens", "48\u00ad29\u00ad13", "[masked]"},
		{"line break", "482\n913", "[masked]"},
		{"full width", "４８２９１３", "[masked]"},
		{"arabic digits", "٤٨٢٩١٣", "[masked]"},
		{"mathematical digits", "𝟒𝟖𝟐𝟗𝟏𝟑", "[masked]"},
		{"inside a longer number", "0048291300", "00[masked]00"},
		{"twice", "482913 482913", "[masked] [masked]"},
		{"other case", "ab12CD", "[masked]"},
		{"cut by the end", "your code is 48…", "your code is [masked]…"},
		{"link", "go to https://login.remote.test/verify?token=Zx9_k&pin=77310 now", "go to [masked] now"},
		{"link without scheme", "login.remote.test/verify?token=Zx9_k&pin=77310", "[masked]"},
		{"link wrapped", "https://login.remote.test/verify?to\n  ken=Zx9_k&pin=77310", "[masked]"},
		{"digits of a link", "PIN 77310", "PIN [masked]"},
		{"another link", "see http://other.test/a(b)c, ok", "see [masked] ok"},
		{"www", "see WWW.other.test/a", "see [masked]"},
		{"two links", "a://b <c://d>", "[masked] <[masked]>"},
		{"bare host and path", "go to bank.test/r?t=Qw7 now", "go to [masked] now"},
		{"bare host with a port", "(sub.bank.test:81/Qw7)", "([masked]"},
		{"bare host with a query", "bank.test?t=Qw7", "[masked]"},
		{"without the scheme", "//bank.test/Qw7", "//[masked]"},
		{"host alone", "bank.test", "bank.test"},
		{"host in another script", "siehe bücher.müller/Qw7", "siehe [masked]"},
		{"no host", "and/or 1.5/2 e.g./etc. 3.14?", "and/or 1.5/2 e.g./etc. 3.14?"},
		{"an end of a sentence", "Really.Yes? no.", "Really.Yes? no."},
		{"scheme alone", "://x", "://x"},
		{"other digits stay", "2026-07-28, 482 912", "2026-07-28, 482 912"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := m.Mask(c.text); got != c.want {
				t.Errorf("Mask(%q) = %q, want %q", c.text, got, c.want)
			}
		})
	}
}

// No text that a caller without codes:read gets may show a code or a link in any spelling that the mail itself has.
func TestCodesAreMaskedEverywhere(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "a")
	w.inbox(globex(), "a")
	const code, token, quoted = "482913", "Zx9kQ7", "771902"
	url := "https://login.remote.test/v/" + token
	mail := w.deliver(in, func(p *inbox.Processed) {
		e := &p.Email
		e.Codes, e.Links = []inbox.Code{{Value: code, Kind: "otp", Confidence: 1}}, []inbox.Link{{URL: url, Text: "482 913"}}
		e.Content.Subject, e.Content.Snippet = "Your code 482-913", "Use 482913 or "+url
		e.Content.From = []inbox.Address{{Name: "Code 482913", Address: "reply+482913@remote.test"}}
		e.Content.Sender = &inbox.Address{Name: "482913"}
		e.Content.MessageID, e.Envelope.From = "<482913@x>", "bounce+482913@remote.test"
		p.Body = &inbox.Body{
			Text: "482913 " + url, ReplyText: "482 913", Markdown: "**482913** [go](" + url + ")", HTML: "<b>482</b><i>913</i>" + url,
			Headers: []inbox.Header{{"Subject", "=?utf-8?Q?=34=38=32=39=31=33?="}, {"X-Code", code}, {"X-Code-482913", "yes"}},
		}
		e.OtherCodes = []string{quoted}
		p.Body.Text += "\n> your code is " + quoted
		typed := attachment(*e, "plain.txt", 2)
		typed.ContentType = "text482913/x"
		p.Attachments = []inbox.Attachment{attachment(*e, "code-482913.txt", 1), typed}
	})
	a := acme()
	a.ReadCodes = false
	v, err := w.services.Emails.Get(t.Context(), a, mail.ID, inbox.EmailRead{Include: []string{"text", "reply_text", "markdown", "html", "headers"}})
	w.must(err)
	page, err := w.services.Emails.List(t.Context(), a, inbox.EmailQuery{}, inbox.PageRequest{})
	w.must(err)
	byMail, err := w.services.Attachments.List(t.Context(), a, inbox.AttachmentQuery{Email: mail.ID}, inbox.PageRequest{})
	w.must(err)
	byInbox, err := w.services.Attachments.List(t.Context(), a, inbox.AttachmentQuery{Inbox: "a"}, inbox.PageRequest{})
	w.must(err)
	download, err := w.services.Attachments.DownloadURL(t.Context(), a, byMail.Rows[0].ID, 0)
	w.must(err)
	metadata, err := w.services.Attachments.Get(t.Context(), a, byMail.Rows[0].ID)
	w.must(err)
	updated, err := w.services.Emails.Update(t.Context(), a, mail.ID, inbox.EmailPatch{AddLabels: []string{"x"}})
	w.must(err)
	for name, x := range map[string]any{
		"get": v, "list": page.Rows, "attachments": byMail.Rows, "attachments of the inbox": byInbox.Rows, "download": download, "metadata": metadata, "update": updated,
	} {
		text, err := json.Marshal(x)
		w.must(err)
		for _, secret := range []string{code, "482 913", "482-913", token, "=34=38", quoted} {
			if strings.Contains(string(text), secret) {
				t.Errorf("%s shows %q: %s", name, secret, text)
			}
		}
	}
	if !v.Masked || !page.Masked || !slices.Equal(v.Withheld, []string{"html"}) || len(v.Codes) != 1 || v.Codes[0].Kind != "otp" {
		t.Errorf("masked %v %v, withheld %v, codes %v", v.Masked, page.Masked, v.Withheld, v.Codes)
	}
	open, err := w.services.Emails.Get(t.Context(), acme(), mail.ID, inbox.EmailRead{Include: []string{"html"}})
	w.must(err)
	if open.Masked || open.Codes[0].Value != code || open.Texts[0].Text != "<b>482</b><i>913</i>"+url {
		t.Errorf("with codes:read: %+v", open)
	}
}

func TestMaskFindsEachSecret(t *testing.T) {
	s := inbox.SecretsOf(inbox.Email{
		Codes: []inbox.Code{{Value: "1234"}, {Value: "123456"}, {Value: "345"}, {Value: "4567"}, {Value: "99"}},
	})
	m := s.Masker()
	for _, c := range []struct{ name, text, want string }{
		{"the longest", "123456", "[masked]"},
		{"the shorter", "12345", "[masked]"},
		{"overlapping", "01234567", "0[masked]"},
		{"one behind a false beginning", "12 123345", "12 123[masked]"},
		{"side by side", "12349989", "[masked][masked]89"},
		{"cut behind another", "1234 12", "[masked] [masked]"},
		{"too far apart", "x12    34x", "x12    34x"},
		{"broken bytes", "12\xff34\xff", "[masked]\xff"},
		{"wide characters around", "é𝟏2𝟑4é", "é[masked]é"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := m.Mask(c.text); got != c.want {
				t.Errorf("Mask(%q) = %q, want %q", c.text, got, c.want)
			}
		})
	}
	// 45 at the end may be the beginning of 4567.
	if got := s.In("x 123 345"); !slices.Equal(got, inbox.Secrets{"345", "4567"}) {
		t.Errorf("In = %q", got)
	}
	if got := s.In("1234567", "code 99"); !slices.Equal(got, inbox.Secrets{"1234", "123456", "345", "4567", "99"}) {
		t.Errorf("In of several texts = %q", got)
	}
}

// A filter must not answer what the text does not show: a search for "4", "48", ... would tell a code digit by digit.
func TestFiltersAreNoOracle(t *testing.T) {
	w := newWorld(t)
	w.inbox(globex(), "a")
	w.deliver(w.inbox(acme(), "a"), func(p *inbox.Processed) {
		p.Email.Codes = []inbox.Code{{Value: "777888"}}
		p.Email.Content.Subject, p.Email.Content.Snippet = "777888", "777888"
		p.Email.Content.From = []inbox.Address{{Name: "777888", Address: "x+777888@remote.test"}}
		p.Attachments = []inbox.Attachment{attachment(p.Email, "777888.txt", 1)}
	})
	blind := acme()
	blind.ReadCodes = false
	for _, prefix := range []string{"7", "77", "777888"} {
		for name, q := range map[string]inbox.EmailQuery{"q": {Q: prefix}, "subject": {Subject: prefix}, "from": {From: prefix}} {
			if n := len(w.list(blind, q)); n != 0 {
				t.Errorf("%s=%s finds the masked mail", name, prefix)
			}
			if n := len(w.list(acme(), q)); n != 1 {
				t.Errorf("%s=%s finds %d mails for who may read codes", name, prefix, n)
			}
		}
		page, err := w.services.Attachments.List(t.Context(), blind, inbox.AttachmentQuery{Inbox: "a", Name: prefix}, inbox.PageRequest{})
		w.must(err)
		if len(page.Rows) != 0 {
			t.Errorf("name=%s finds the masked attachment", prefix)
		}
	}
}

func TestReadOn(t *testing.T) {
	w := newWorld(t)
	w.inbox(globex(), "a")
	text := strings.Repeat("añ😀", 1000)
	mail := w.deliver(w.inbox(acme(), "a"), func(p *inbox.Processed) {
		p.Body = &inbox.Body{Text: text, Headers: []inbox.Header{{"A", "12345"}, {"B", "1"}, {"C", strings.Repeat("c", 100)}}}
	})
	var got strings.Builder
	from := 0
	for {
		v, err := w.services.Emails.Get(t.Context(), acme(), mail.ID, inbox.EmailRead{Include: []string{"text"}, MaxChars: 999, FromChar: from})
		w.must(err)
		x := v.Texts[0]
		got.WriteString(x.Text)
		if x.Total != 3000 || x.From != from || x.Truncated != (x.Next > 0) {
			t.Fatalf("part %+v", x)
		}
		if from = x.Next; !x.Truncated {
			break
		}
	}
	if got.String() != text {
		t.Error("the parts are not the text")
	}
	var names []string
	for from = 0; ; {
		v, err := w.services.Emails.Get(t.Context(), acme(), mail.ID, inbox.EmailRead{Include: []string{"headers"}, MaxChars: 8, FromChar: from})
		w.must(err)
		for _, h := range v.Headers {
			names = append(names, h.Name)
		}
		if from = v.Texts[0].Next; !v.Texts[0].Truncated {
			break
		}
	}
	if strings.Join(names, "") != "ABC" {
		t.Errorf("headers %v, want each once", names)
	}
	past, err := w.services.Emails.Get(t.Context(), acme(), mail.ID, inbox.EmailRead{Include: []string{"text", "html"}, FromChar: 1 << 30})
	w.must(err)
	if past.Texts[0].Text != "" || past.Texts[0].Truncated {
		t.Errorf("past the end: %+v", past.Texts)
	}
	for name, r := range map[string]inbox.EmailRead{
		"unknown text": {Include: []string{"raw"}}, "too many": {MaxChars: 100_001}, "negative": {FromChar: -1}, "negative max": {MaxChars: -5},
	} {
		if _, err := w.services.Emails.Get(t.Context(), acme(), mail.ID, r); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

func TestBodyInABlob(t *testing.T) {
	w := newWorld(t)
	w.inbox(globex(), "a")
	in := w.inbox(acme(), "a")
	w.blobs["body"] = `{"text":"from the blob"}`
	big := w.deliver(in, func(p *inbox.Processed) { p.Body, p.Email.BodyKey = nil, "body" })
	v, err := w.services.Emails.Get(t.Context(), acme(), big.ID, inbox.EmailRead{Include: []string{"text"}})
	w.must(err)
	if v.Texts[0].Text != "from the blob" {
		t.Errorf("text %q", v.Texts[0].Text)
	}
	lost := w.deliver(in, func(p *inbox.Processed) { p.Body, p.Email.BodyKey = nil, "lost" })
	if _, err := w.services.Emails.Get(t.Context(), acme(), lost.ID, inbox.EmailRead{Include: []string{"text"}}); err == nil {
		t.Error("a lost body is silently empty")
	}
	if _, err := w.services.Emails.Get(t.Context(), acme(), lost.ID, inbox.EmailRead{}); err != nil {
		t.Errorf("without texts: %v", err)
	}
}

func FuzzMask(f *testing.F) {
	f.Add("code 482913 https://a.test/x", "482913")
	f.Add("４８２９１３", "482913")
	f.Add("\xff\xfe://\x00", "a")
	f.Fuzz(func(t *testing.T, text, code string) {
		m := inbox.SecretsOf(inbox.Email{Codes: []inbox.Code{{Value: code}}}).Masker()
		masked := m.Mask(text)
		if len(code) >= 4 && strings.Trim(code, "0123456789") == "" && strings.Contains(masked, code) {
			t.Errorf("Mask(%q) = %q shows %q", text, masked, code)
		}
		if strings.Contains(masked, "http://a") || strings.Contains(masked, "https://a") {
			t.Errorf("Mask(%q) = %q shows a link", text, masked)
		}
	})
}

// Masking runs on a stranger's text at every read, so its time must grow with the text and no faster.
func BenchmarkMaskHostile(b *testing.B) {
	mail := inbox.Email{Codes: []inbox.Code{{Value: "482913"}}}
	for i := range 500 { // links that begin alike, and a text that repeats their beginning
		mail.Links = append(mail.Links, inbox.Link{URL: "https://" + strings.Repeat("h", 800) + strconv.Itoa(i) + ".test/"})
	}
	m := inbox.SecretsOf(mail).Masker()
	for _, c := range []struct{ name, unit string }{
		{"beginnings of links", "h"},
		{"hosts", "a.bc/d "}, {"slashes", "/"}, {"www", "www."}, {"dots", "a."}, {"schemes", "a://b "}, {"digits", "48291"},
	} {
		for _, n := range []int{1 << 16, 1 << 20} {
			text := strings.Repeat(c.unit, n/len(c.unit))
			b.Run(c.name+"/"+strconv.Itoa(n>>10)+"K", func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					m.Mask(text)
				}
			})
		}
	}
}

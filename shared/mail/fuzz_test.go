package mail

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/mail/clean"
)

// outputs lists every string of a message under a name.
func outputs(m *Message) map[string]string {
	out := map[string]string{
		"subject": m.Subject, "message id": m.MessageID, "text": m.Text, "markdown": m.Markdown, "html": m.HTMLSanitized,
		"reply": m.ReplyText, "quoted": m.QuotedText, "signature": m.Signature, "snippet": m.Snippet,
		"ids": strings.Join(m.InReplyTo, " ") + strings.Join(m.References, " "),
	}
	for i, h := range m.Headers {
		out["header "+strconv.Itoa(i)] = h.Name + ":" + h.Value
	}
	people := [][]Address{m.From, m.ReplyTo, m.To, m.Cc}
	if m.Sender != nil {
		people = append(people, []Address{*m.Sender})
	}
	for i := range m.Attachments {
		a := &m.Attachments[i]
		out["attachment "+strconv.Itoa(i)] = strings.Join([]string{a.PartPath, a.Filename, a.FilenameOriginal, a.ContentType, a.DetectedType, a.Disposition, a.ContentID}, "|")
		if a.Message != nil {
			out["summary "+strconv.Itoa(i)] = a.Message.Subject + a.Message.MessageID
			people = append(people, a.Message.From)
		}
	}
	for i, list := range people {
		for j, a := range list {
			out["address "+strconv.Itoa(i)+"."+strconv.Itoa(j)] = strings.Join([]string{a.Name, a.Email, a.Domain, a.Group, a.Raw}, "|")
		}
	}
	for i, l := range m.Links {
		out["link "+strconv.Itoa(i)] = l.URL + "|" + l.Text
	}
	for i, c := range m.Codes {
		out["code "+strconv.Itoa(i)] = c.Value
	}
	return out
}

func forbidden(s string) int { return strings.IndexFunc(s, clean.Forbidden) }

// seeds adds the committed corpus and fails without one.
func seeds(f *testing.F) [][]byte {
	files, err := filepath.Glob(filepath.Join("testdata", "corpus", "*.eml"))
	if err != nil || len(files) < 20 {
		f.Fatalf("%d seeds, %v", len(files), err)
	}
	var all [][]byte
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, raw)
	}
	return all
}

func FuzzParse(f *testing.F) {
	for _, raw := range seeds(f) {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := Parse(t.Context(), raw, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		checkOutput(t, m, len(raw))
		for _, a := range m.From {
			if a.Valid != (a.Email != "") || a.Valid && strings.Count(a.Email, "@") < 1 {
				t.Errorf("address %+v", a)
			}
		}
		if m.Flags.Truncated && len(m.Warnings) == 0 {
			t.Error("truncated without a warning")
		}
	})
}

// FuzzFilename: a name that was cleaned is safe and stays as it is when cleaned again.
func FuzzFilename(f *testing.F) {
	for _, s := range []string{"a.pdf", "../../etc/passwd", "C:\\x\\y.exe", "inv\u202efdp.exe", "CON", ".", "..", " a . ", strings.Repeat("é", 200) + ".pdf", "a\x00b.txt"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, _ := cleanFilename(s)
		if len(name) > maxFilename || strings.ContainsAny(name, "/\\\x00\n") || forbidden(name) >= 0 || name == "." || name == ".." {
			t.Errorf("cleanFilename(%q) = %q", s, name)
		}
		if again, _ := cleanFilename(name); again != name {
			t.Errorf("cleaned twice: %q, %q", name, again)
		}
	})
}

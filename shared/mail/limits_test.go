package mail

import (
	"bytes"
	"encoding/base64"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/buzon-mail/buzon/shared/mail/warning"
)

// TestLimitsAtBoundAndBeyond: at the bound nothing is cut, one over it the mail is truncated and what was read is delivered.
func TestLimitsAtBoundAndBeyond(t *testing.T) {
	parts := func(n int) string {
		return "Subject: x\nContent-Type: multipart/mixed; boundary=X\n\n" + strings.Repeat("--X\n\np\n", n) + "--X--\n"
	}
	nested := func(n int) string {
		var b strings.Builder
		b.WriteString("Subject: x\nContent-Type: multipart/mixed; boundary=b0\n\n")
		for i := 1; i < n; i++ {
			b.WriteString("--b" + strconv.Itoa(i-1) + "\nContent-Type: multipart/mixed; boundary=b" + strconv.Itoa(i) + "\n\n")
		}
		b.WriteString("--b" + strconv.Itoa(n-1) + "\n\ndeep\n")
		for i := n - 1; i >= 0; i-- {
			b.WriteString("--b" + strconv.Itoa(i) + "--\n")
		}
		return b.String()
	}
	header := func(n int) string { // a header block of n bytes
		line := "X: " + strings.Repeat("y", 996) + "\n"
		s := strings.Repeat(line, n/len(line))
		return s + "Z:" + strings.Repeat("z", n-len(s)-3) + "\n\nhi"
	}
	boundary := func(n int) string {
		b := strings.Repeat("b", n)
		return "Content-Type: multipart/mixed;\n boundary=" + b + "\n\n--" + b + "\n\np\n--" + b + "--\n"
	}
	addresses := func(n int) string { return "To: " + strings.Repeat("a@b.test, ", n-1) + "a@b.test\n\nhi" }
	calendar := func(n int) string { return "Content-Type: text/calendar\n\n" + strings.Repeat("x", n) }
	links := func(n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString("https://a.test/" + strconv.Itoa(i) + "\n")
		}
		return "Subject: x\n\n" + b.String()
	}
	html := "Content-Type: text/html\n\n"
	for _, c := range []struct {
		name     string
		code     warning.Code
		at, over string
		cut      bool
	}{
		{"depth", warning.DepthLimit, nested(12), nested(13), true},
		{"parts", warning.PartLimit, parts(2000), parts(2001), true},
		{"header block", warning.HeaderTooLarge, header(256 << 10), header(256<<10 + 1), true},
		{"fields", warning.FieldLimit, strings.Repeat("A: b\n", 1000) + "\nhi", strings.Repeat("A: b\n", 1001) + "\nhi", true},
		{"field", warning.FieldTooLarge, "A: " + strings.Repeat("x", 64<<10) + "\n\nhi", "A: " + strings.Repeat("x", 64<<10+1) + "\n\nhi", true},
		{"addresses", warning.AddressLimit, addresses(1000), addresses(1001), true},
		{"boundary", warning.BoundaryTooLong, boundary(200), boundary(201), true},
		{"line", warning.LineTooLong, "A: b\n\n" + strings.Repeat("x", 1<<20), "A: b\n\n" + strings.Repeat("x", 1<<20+1), true},
		{"text", warning.TextTooLarge, "A: b\n\n" + strings.Repeat("line\n", 1<<20/5), "A: b\n\n" + strings.Repeat("line\n", 1<<20/5+1), true},
		{"html bytes", warning.HTMLTooLarge, html + strings.Repeat("line\n", 1<<20/5), html + strings.Repeat("line\n", 1<<20/5+1), true},
		{"html depth", warning.HTMLTooDeep, html + strings.Repeat("<div>", 255) + "x", html + strings.Repeat("<div>", 256) + "x", false},
		{"calendar", warning.CalendarTooLarge, calendar(256 << 10), calendar(256<<10 + 1), false},
		{"links", warning.LinkLimit, links(200), links(201), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if m := parse(t, c.at); has(m, c.code) || m.Flags.Truncated {
				t.Errorf("at the bound: truncated %v, %v", m.Flags.Truncated, m.Warnings)
			}
			m := parse(t, c.over)
			if !has(m, c.code) || m.Flags.Truncated != c.cut {
				t.Errorf("over the bound: truncated %v, %v", m.Flags.Truncated, m.Warnings)
			}
			if m.Text == "" && len(m.Attachments) == 0 {
				t.Errorf("nothing was delivered")
			}
		})
	}
}

func TestMessageOverTheSizeIsCut(t *testing.T) {
	raw := "Subject: x\n\nhello world"
	m, err := Parse(t.Context(), []byte(raw), Limits{MessageBytes: len(raw)})
	if err != nil || m.Flags.Truncated || m.Text != "hello world" {
		t.Errorf("at the bound: %v, %+v", err, m)
	}
	m, err = Parse(t.Context(), []byte(raw), Limits{MessageBytes: len(raw) - 1})
	if err != nil || !m.Flags.Truncated || m.Text != "hello worl" || !has(m, warning.MessageTooLarge) {
		t.Errorf("over the bound: %v, %+v", err, m)
	}
}

// hostile are inputs that other parsers answer with seconds, gigabytes or a crash.
func hostile() map[string]string {
	var open strings.Builder
	open.WriteString("Subject: x\nContent-Type: multipart/mixed; boundary=b0\n\n")
	for i := 1; i < 10000; i++ {
		open.WriteString("--b" + strconv.Itoa(i-1) + "\nContent-Type: multipart/mixed; boundary=b" + strconv.Itoa(i) + "\n\n")
	}
	file := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("0123456789abcdef"), 25<<20*3/4/16-1000))
	message := "Subject: x\n\nhi"
	for range 20 {
		message = "Content-Type: message/rfc822\n\n" + message
	}
	encoded := "Subject: x\n\n" + strings.Repeat("hi ", 100000)
	for range 14 {
		encoded = "Content-Type: message/rfc822\nContent-Transfer-Encoding: quoted-printable\n\n" + strings.ReplaceAll(encoded, "=", "=3D")
	}
	return map[string]string{
		"unclosed nesting":          open.String(),
		"200,000 parts":             "Subject: x\nContent-Type: multipart/mixed; boundary=X\n\n" + strings.Repeat("--X\n\np\n", 200000),
		"10 MB header":              strings.Repeat("X-A: "+strings.Repeat("b", 95)+"\n", 100000) + "\nhi",
		"10 MB field":               "Subject: " + strings.Repeat("a", 10<<20) + "\n\nhi",
		"10 MB folded field":        "Subject: a\n" + strings.Repeat(" "+strings.Repeat("b", 99)+"\n", 100000) + "\nhi",
		"25 MiB base64":             "Content-Type: application/pdf; name=a.pdf\nContent-Transfer-Encoding: base64\n\n" + file,
		"25 MiB base64 text":        "Content-Transfer-Encoding: base64\n\n" + file,
		"1 MiB line":                "Subject: x\n\n" + strings.Repeat("x", 1<<20),
		"100,000 nested divs":       "Content-Type: text/html\n\n" + strings.Repeat("<div>", 100000) + "x",
		"nested messages":           message,
		"nested encoded messages":   encoded,
		"encoded words":             "Subject: " + strings.Repeat("=?utf-8?q?=e4?= ", 4000) + "\nX: " + strings.Repeat("=?a?q?x", 9000) + "\n\nhi",
		"parameters":                "Content-Type: text/plain" + strings.Repeat("; a*1=b", 9000) + "\n\nhi",
		"comments in an address":    "To: " + strings.Repeat("(", 60000) + "\n\nhi",
		"angles in an address":      "To: " + strings.Repeat("<", 30000) + strings.Repeat(":", 30000) + "\n\nhi",
		"soft line breaks":          "Content-Transfer-Encoding: quoted-printable\n\n" + strings.Repeat("=\n", 4<<20),
		"numbers":                   "Subject: code\n\n" + strings.Repeat("123456 ", 140000),
		"attributions":              "Subject: x\n\n" + strings.Repeat("On 1\n", 200000),
		"uuencode beginnings":       "Subject: x\n\n" + strings.Repeat("begin 644 a\n", 80000),
		"references":                "References: " + strings.Repeat("<a@b> ", 10000) + "\n\nhi",
		"blank lines":               strings.Repeat("\n", 1<<20),
		"CR only":                   strings.Repeat("a: b\r", 1<<20),
		"quoted lines":              "Subject: x\n\n" + strings.Repeat("> x\n", 200000),
		"html alternatives of text": "Content-Type: text/html\n\n" + strings.Repeat("<table><tr><td>x", 60000),
	}
}

// TestHostileInputIsBounded measures what is allocated in all, which bounds the memory and grows with the work: a few times the
// input plus a constant, whatever the input.
func TestHostileInputIsBounded(t *testing.T) {
	for name, raw := range hostile() {
		t.Run(name, func(t *testing.T) {
			data := []byte(raw)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			m, err := Parse(t.Context(), data, Limits{})
			runtime.ReadMemStats(&after)
			if err != nil {
				t.Fatal(err)
			}
			if used, most := after.TotalAlloc-before.TotalAlloc, uint64(4*len(data)+48<<20); used > most {
				t.Errorf("allocated %d MiB for %d MiB", used>>20, len(data)>>20)
			}
			if m.Text == "" && len(m.Attachments) == 0 && name != "blank lines" && name != "CR only" && name != "soft line breaks" {
				t.Errorf("nothing was delivered: %v", m.Warnings)
			}
			checkOutput(t, m, len(data))
		})
	}
}

// TestWorkGrowsLinearly doubles inputs and compares allocations: twice the input may cost little more than twice as much.
func TestWorkGrowsLinearly(t *testing.T) {
	for name, make := range map[string]func(n int) string{
		"siblings": func(n int) string {
			return "Content-Type: multipart/mixed; boundary=X\n\n" + strings.Repeat("--X\n\np\n", n/10)
		},
		"html":      func(n int) string { return "Content-Type: text/html\n\n" + strings.Repeat("<p><b>x</b> y</p>", n) },
		"addresses": func(n int) string { return "To: " + strings.Repeat("a@b.test,", n/10) + "\n\nhi" },
		"words":     func(n int) string { return "Subject: " + strings.Repeat("=?utf-8?q?x?= ", n/10) + "\n\nhi" },
		"text":      func(n int) string { return "Subject: x\n\n" + strings.Repeat("word 123456 https://a.test/x\n", n) },
	} {
		t.Run(name, func(t *testing.T) {
			cost := func(n int) float64 {
				raw := []byte(make(n))
				return testing.AllocsPerRun(2, func() {
					if _, err := Parse(t.Context(), raw, Limits{Links: 1}); err != nil {
						t.Fatal(err)
					}
				})
			}
			small, large := cost(2000), cost(8000)
			if large > 6*small+1000 {
				t.Errorf("%v allocations for n, %v for 4n", small, large)
			}
		})
	}
}

// checkOutput holds what is true of every message: valid UTF-8, no character that hides text, bounded sizes.
func checkOutput(t *testing.T, m *Message, size int) {
	t.Helper()
	for where, s := range outputs(m) {
		if !utf8.ValidString(s) {
			t.Errorf("%s is not UTF-8: %.80q", where, s)
		}
		if i := forbidden(s); i >= 0 {
			t.Errorf("%s has a forbidden character at %d: %.80q", where, i, s[i:])
		}
	}
	if n := len(m.Text) + len(m.Markdown); n > 16*size+1<<16 {
		t.Errorf("%d bytes of text from %d", n, size)
	}
	total := 0
	for i := range m.Attachments {
		a := &m.Attachments[i]
		total += len(a.Data)
		if a.Filename == "" || len(a.Filename) > maxFilename+20 || strings.ContainsAny(a.Filename, "/\\\n") || a.Size != len(a.Data) || len(a.SHA256) != 64 {
			t.Errorf("attachment %q of %d bytes", a.Filename, a.Size)
		}
	}
	if total > 20*size+1<<20 {
		t.Errorf("%d bytes of attachments from %d", total, size)
	}
	if utf8.RuneCountInString(m.Snippet) > snippetRunes {
		t.Errorf("snippet of %d characters", utf8.RuneCountInString(m.Snippet))
	}
}

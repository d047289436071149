package mbox_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/buzon-mail/buzon/shared/mail/mbox"
)

const from = "From ana@example.com Mon Nov 30 09:15:03 2026\n"

// all reads a file; a mail that was too large stands as TOO LARGE.
func all(t *testing.T, r io.Reader, max int) ([]string, error) {
	t.Helper()
	m := mbox.NewReader(r, max)
	var out []string
	for range 1000 {
		b, err := m.Next()
		switch {
		case errors.Is(err, mbox.ErrTooLarge):
			out = append(out, "TOO LARGE")
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return out, err
		default:
			out = append(out, string(b))
		}
	}
	t.Fatal("no end")
	return nil, nil
}

func TestMails(t *testing.T) {
	long := strings.Repeat("x", 200<<10)
	for _, c := range []struct {
		name, file string
		want       []string
	}{
		{"empty", "", nil},
		{"blank", "\n\n", nil},
		{"one", from + "A: b\n\nhello\n", []string{"A: b\r\n\r\nhello\r\n"}},
		{"one with the file's blank line", from + "A: b\n\nhello\n\n", []string{"A: b\r\n\r\nhello\r\n"}},
		{"two", from + "A: 1\n\nx\n\n" + from + "A: 2\n\ny\n\n", []string{"A: 1\r\n\r\nx\r\n", "A: 2\r\n\r\ny\r\n"}},
		{"crlf stays", strings.ReplaceAll(from+"A: 1\n\nx\n\n"+from+"A: 2\n", "\n", "\r\n"), []string{"A: 1\r\n\r\nx\r\n", "A: 2\r\n"}},
		{"quoted", from + "A: 1\n\n>From the start\n>>From twice\n>Fromage\n", []string{"A: 1\r\n\r\nFrom the start\r\n>From twice\r\n>Fromage\r\n"}},
		{"From without an empty line before", from + "A: 1\n\nx\n" + from + "y\n", []string{"A: 1\r\n\r\nx\r\n" + strings.TrimSuffix(from, "\n") + "\r\ny\r\n"}},
		{"From of a body", from + "A: 1\n\nFrom here on it rains\n", []string{"A: 1\r\n\r\nFrom here on it rains\r\n"}},
		{"no line feed at the end", from + "A: 1\n\nx", []string{"A: 1\r\n\r\nx"}},
		{"nothing in it", from + "\n" + from, []string{"", ""}},
		{"long line", from + "A: 1\n\n" + long + "\n\n" + from + "A: 2\n", []string{"A: 1\r\n\r\n" + long + "\r\n", "A: 2\r\n"}},
		{"From behind a long line is no start", from + "A: 1\n\n" + strings.Repeat("x", 64<<10) + from, []string{"A: 1\r\n\r\n" + strings.Repeat("x", 64<<10) + strings.TrimSuffix(from, "\n") + "\r\n"}},
		{"bare returns", from + "A\r\rB\n", []string{"A\r\rB\r\n"}},
		{"NUL", from + "A\x00\n", []string{"A\x00\r\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, r := range map[string]io.Reader{"whole": strings.NewReader(c.file), "by bytes": iotest.OneByteReader(strings.NewReader(c.file))} {
				got, err := all(t, r, 1<<20)
				if err != nil || strings.Join(got, "|") != strings.Join(c.want, "|") || len(got) != len(c.want) {
					t.Errorf("%s: %.200q, %v", name, got, err)
				}
			}
		})
	}
}

func TestRefused(t *testing.T) {
	if _, err := all(t, strings.NewReader("Subject: a mail\n\nx\n"), 100); !errors.Is(err, mbox.ErrFormat) {
		t.Errorf("a mail: %v", err)
	}
	if _, err := all(t, strings.NewReader(strings.Repeat("\x00", 1<<20)), 100); !errors.Is(err, mbox.ErrFormat) {
		t.Errorf("zeros: %v", err)
	}
	broken := errors.New("broken")
	if _, err := all(t, io.MultiReader(strings.NewReader(from+"A: 1\n"), iotest.ErrReader(broken)), 100); !errors.Is(err, broken) {
		t.Errorf("a reader that breaks: %v", err)
	}
	large := from + "A: 1\n\n" + strings.Repeat("0123456789\n", 50) + "\n" + from + "A: 2\n\nsmall\n"
	got, err := all(t, strings.NewReader(large), 100)
	if err != nil || strings.Join(got, "|") != "TOO LARGE|A: 2\r\n\r\nsmall\r\n" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestCRLF(t *testing.T) {
	for in, want := range map[string]string{"a\nb\n": "a\r\nb\r\n", "a\r\nb\n": "a\r\nb\n", "a\rb\n": "a\rb\n", "": ""} {
		if got := string(mbox.CRLF([]byte(in))); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

// Whatever the file holds: it comes to an end, no mail is larger than allowed, and writing what was read as an mbox file reads the same
// again.
func FuzzMbox(f *testing.F) {
	for _, s := range []string{"", from, from + "A: b\n\nx\n\n" + from, from + ">From x\n\n\nFrom a 1:11\n", "From \r\n\r\n\r"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		const max = 300
		m := mbox.NewReader(bytes.NewReader(file), max)
		var again bytes.Buffer
		var first [][]byte
		for n := 0; ; n++ {
			if n > len(file)+1 {
				t.Fatal("no end")
			}
			b, err := m.Next()
			if errors.Is(err, mbox.ErrTooLarge) {
				continue
			}
			if err != nil {
				break
			}
			if len(b) > max {
				t.Fatalf("%d bytes", len(b))
			}
			first = append(first, b)
			again.WriteString(from)
			for line := range bytes.Lines(b) {
				if bytes.HasPrefix(bytes.TrimLeft(line, ">"), []byte("From ")) {
					again.WriteByte('>')
				}
				again.Write(line)
			}
			if len(b) == 0 || b[len(b)-1] != '\n' {
				return // a mail without an end can't be written so
			}
			again.WriteString("\r\n")
		}
		m = mbox.NewReader(&again, max*2)
		for i, want := range first {
			if got, err := m.Next(); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("mail %d: %q, %v, want %q", i, got, err, want)
			}
		}
	})
}

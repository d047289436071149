package scan

import (
	"bytes"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/mail/header"
	"github.com/buzon-mail/buzon/shared/mail/warning"
)

func limits() Limits {
	return Limits{Depth: 12, Parts: 2000, Header: header.Limits{Bytes: 256 << 10, Fields: 1000, FieldBytes: 64 << 10}, BoundaryBytes: 200, LineBytes: 1 << 20, TotalFields: 10000}
}

// outline writes a tree as "type(children)" with leaf bodies in quotes.
func outline(p *Part) string {
	if len(p.Children) == 0 {
		return p.Type + `"` + string(p.Body) + `"`
	}
	var kids []string
	for _, c := range p.Children {
		kids = append(kids, outline(c))
	}
	return p.Type + "(" + strings.Join(kids, " ") + ")"
}

func scanText(t *testing.T, raw string, lim Limits) (*Tree, *warning.List) {
	t.Helper()
	var warn warning.List
	tree, err := Scan(t.Context(), []byte(raw), lim, At{}, &warn)
	if err != nil {
		t.Fatal(err)
	}
	return tree, &warn
}

func TestStructure(t *testing.T) {
	mixed := "Content-Type: multipart/mixed; boundary=X\n\n"
	for _, c := range []struct {
		name, raw, want string
		warn            []warning.Code
	}{
		{"plain", "A: b\n\nhi\n", `text/plain"hi` + "\n\"", nil},
		{"only headers", "A: b\nC: d\n", `text/plain""`, nil},
		{"no header", "hello there\n\nyou\n", "text/plain\"hello there\n\nyou\n\"", nil},
		{"missing separator", "Subject: x\nhello world\n\nmore\n", "text/plain\"hello world\n\nmore\n\"", []warning.Code{warning.BadHeaderLine}},
		{"leading blank lines", "\n \nSubject: x\n\nhi", `text/plain"hi"`, []warning.Code{warning.LeadingBlank}},
		{"mbox line", "From a@b Thu Jan  1 00:00:00 1970\nSubject: x\n\nhi", `text/plain"hi"`, []warning.Code{warning.MboxLine}},
		{"double cr", "Subject: x\r\r\nTo: y\r\r\n\r\r\nhi", `text/plain"hi"`, []warning.Code{warning.DoubleCR}},
		{"line of spaces ends the header", "Subject: x\n \nhi", `text/plain"hi"`, nil},
		{"line of spaces inside the header", "Subject: x\n \nTo: y\n\nhi", `text/plain"hi"`, nil},
		{"two parts", mixed + "pre\n--X\n\none\r\n--X\nContent-Type: text/html\n\ntwo\n--X--\n", `multipart/mixed(text/plain"one" text/html"two")`, nil},
		{"missing final boundary", mixed + "--X\n\none\n--X\n\ntwo", `multipart/mixed(text/plain"one" text/plain"two")`, []warning.Code{warning.UnclosedMultipart}},
		{"boundary never occurs", mixed + "hello\n", "multipart/mixed\"hello\n\"", []warning.Code{warning.MissingParts}},
		{"no boundary parameter, guessed", "Content-Type: multipart/mixed\n\n--abc\n\none\n--abc--\n", `multipart/mixed(text/plain"one")`, []warning.Code{warning.MissingBoundary}},
		{"no boundary parameter, none to guess", "Content-Type: multipart/mixed\n\nhello", `multipart/mixed"hello"`, []warning.Code{warning.MissingBoundary}},
		{
			"inner repeats the outer boundary",
			mixed + "--X\nContent-Type: multipart/alternative; boundary=X\n\n--X\n\none\n--X\n\ntwo\n--X--\n--X\n\nthree\n--X--\n",
			`multipart/mixed(multipart/alternative(text/plain"one" text/plain"two") text/plain"three")`, []warning.Code{warning.RepeatedBoundary},
		},
		{
			"boundary is a prefix of another", mixed + "--X\nContent-Type: multipart/alternative; boundary=XX\n\n--XX\n\none\n--XX--\n--X\n\ntwo\n--X--",
			`multipart/mixed(multipart/alternative(text/plain"one") text/plain"two")`, nil,
		},
		{
			"boundary is another with dashes", mixed + "--X\nContent-Type: multipart/alternative; boundary=\"X--\"\n\n--X--\n\none\n--X----\n--X\n\ntwo\n--X--",
			`multipart/mixed(multipart/alternative(text/plain"one") text/plain"two")`, nil,
		},
		{"inner left open", mixed + "--X\nContent-Type: multipart/alternative; boundary=Y\n\n--Y\n\none\n--X\n\ntwo\n--X--", `multipart/mixed(multipart/alternative(text/plain"one") text/plain"two")`, []warning.Code{warning.UnclosedMultipart}},
		{"part after the end", mixed + "--X\n\none\n--X--\n--X\n\ntwo\n--X--", `multipart/mixed(text/plain"one" text/plain"two")`, []warning.Code{warning.ReopenedMultipart}},
		{"text after the end", mixed + "--X\n\none\n--X--\nlist footer", `multipart/mixed(text/plain"one")`, []warning.Code{warning.TrailingContent}},
		{"attached message", mixed + "--X\nContent-Type: message/rfc822\n\nSubject: in\n\ninner\n--X--", `multipart/mixed(message/rfc822(text/plain"inner"))`, nil},
		{"digest", "Content-Type: multipart/digest; boundary=X\n\n--X\n\nSubject: in\n\ninner\n--X--", `multipart/digest(message/rfc822(text/plain"inner"))`, nil},
		{"encoded message stays closed", mixed + "--X\nContent-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\nU3ViamVjdA==\n--X--", `multipart/mixed(message/rfc822"U3ViamVjdA==")`, nil},
		{"part header ends at the boundary", mixed + "--X\nContent-Type: text/html\n--X\n\ntwo\n--X--", `multipart/mixed(text/html"" text/plain"two")`, nil},
		{"empty multipart", mixed + "--X--\n", "multipart/mixed\"--X--\n\"", []warning.Code{warning.MissingParts}},
		{"junk type", "Content-Type: junk\n\nhi", `text/plain"hi"`, []warning.Code{warning.BadContentType}},
		{"junk type with a file name", "Content-Type: junk; name=a.pdf\n\nhi", `application/octet-stream"hi"`, []warning.Code{warning.BadContentType}},
		{"white space behind the boundary", mixed + "--X \t\n\none\n--X-- \n", `multipart/mixed(text/plain"one")`, nil},
		{"banner in a part header", mixed + "--X\nCAUTION external sender\nContent-Type: text/html\n\none\n--X--", `multipart/mixed(text/html"one")`, []warning.Code{warning.BadHeaderLine}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree, warn := scanText(t, c.raw, limits())
			if got := outline(tree.Root); got != c.want {
				t.Errorf("tree = %s\nwant   %s", got, c.want)
			}
			for _, code := range c.warn {
				if !warn.Has(code) {
					t.Errorf("no warning %s in %v", code, warn.All())
				}
			}
			if len(c.warn) == 0 && len(warn.All()) > 0 {
				t.Errorf("unexpected warnings %v", warn.All())
			}
		})
	}
}

// nest builds n multiparts, one inside the other, with a text in the innermost.
func nest(n int, closed bool) string {
	var b strings.Builder
	b.WriteString("Content-Type: multipart/mixed; boundary=b0\n\n")
	for i := 1; i < n; i++ {
		b.WriteString("--b" + itoa(i-1) + "\nContent-Type: multipart/mixed; boundary=b" + itoa(i) + "\n\n")
	}
	b.WriteString("--b" + itoa(n-1) + "\n\ndeep\n")
	for i := n - 1; closed && i >= 0; i-- {
		b.WriteString("--b" + itoa(i) + "--\n")
	}
	return b.String()
}

func TestLimitsAtBoundAndBeyond(t *testing.T) {
	small := limits()
	small.Depth, small.Parts, small.BoundaryBytes, small.LineBytes, small.TotalFields = 3, 4, 10, 50, 8
	small.Header = header.Limits{Bytes: 100, Fields: 3, FieldBytes: 40}
	multi := func(n int) string {
		return "Content-Type: multipart/mixed; boundary=X\n\n" + strings.Repeat("--X\n\np\n", n) + "--X--\n"
	}
	boundary := func(n int) string {
		b := strings.Repeat("b", n)
		return "Content-Type: multipart/mixed;\n boundary=" + b + "\n\n--" + b + "\n\np\n--" + b + "--\n"
	}
	for _, c := range []struct {
		name string
		code warning.Code
		at   string
		over string
	}{
		{"depth", warning.DepthLimit, nest(3, true), nest(4, true)},
		{"parts", warning.PartLimit, multi(4), multi(5)},
		{"fields", warning.FieldLimit, strings.Repeat("A: b\n", 3) + "\nhi", strings.Repeat("A: b\n", 4) + "\nhi"},
		{"field bytes", warning.FieldTooLarge, "A: " + strings.Repeat("x", 40) + "\n\nhi", "A: " + strings.Repeat("x", 41) + "\n\nhi"},
		{"folded field bytes", warning.FieldTooLarge, "A: " + strings.Repeat("x", 20) + "\n " + strings.Repeat("x", 19) + "\n\nhi", "A: " + strings.Repeat("x", 20) + "\n " + strings.Repeat("x", 20) + "\n\nhi"},
		{"header bytes", warning.HeaderTooLarge, strings.Repeat("A: "+strings.Repeat("x", 46)+"\n", 2) + "\nhi", strings.Repeat("A: "+strings.Repeat("x", 46)+"\n", 2) + "C:\n\nhi"},
		{"boundary", warning.BoundaryTooLong, boundary(10), boundary(11)},
		{"line", warning.LineTooLong, "A: b\n\n" + strings.Repeat("x", 50), "A: b\n\n" + strings.Repeat("x", 51)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, warn := scanText(t, c.at, small); warn.Has(c.code) {
				t.Errorf("at the bound: %v", warn.All())
			}
			if _, warn := scanText(t, c.over, small); !warn.Has(c.code) {
				t.Errorf("over the bound: no %s in %v", c.code, warn.All())
			}
		})
	}
}

func TestTotalFieldsBoundedOverParts(t *testing.T) {
	lim := limits()
	lim.TotalFields = 8
	tree, warn := scanText(t, "Content-Type: multipart/mixed; boundary=X\n\n"+strings.Repeat("--X\nA: 1\nB: 2\nC: 3\n\np\n", 5), lim)
	fields := 0
	tree.Root.Walk(func(p *Part) { fields += len(p.Fields) })
	if fields > 8 || !warn.Has(warning.FieldLimit) {
		t.Errorf("%d fields, warnings %v", fields, warn.All())
	}
}

// TestWorkIsLinear counts steps: lines plus boundary comparisons. Per line at most one of the first and two comparisons per
// open container are allowed, whatever the input.
func TestWorkIsLinear(t *testing.T) {
	lim := limits()
	for _, c := range []struct {
		name string
		make func(n int) string
	}{
		{"unclosed nesting", func(n int) string { return nest(n, false) }},
		{"closed nesting", func(n int) string { return nest(n, true) }},
		{"siblings", func(n int) string {
			return "Content-Type: multipart/mixed; boundary=X\n\n" + strings.Repeat("--X\n\np\n", n)
		}},
		{"near boundaries", func(n int) string { return nest(12, false) + strings.Repeat("--bx\n", n) }},
		{"header lines", func(n int) string { return strings.Repeat("A: b\n", n) + "\nx" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, n := range []int{1000, 10000, 200000} {
				raw := c.make(n)
				tree, _ := scanText(t, raw, lim)
				lines := bytes.Count([]byte(raw), []byte("\n")) + 1
				if most := lines * (1 + 2*(lim.Depth+1)); tree.Steps > most {
					t.Errorf("n = %d: %d steps for %d lines, at most %d", n, tree.Steps, lines, most)
				}
				if tree.Parts > lim.Parts {
					t.Errorf("n = %d: %d parts", n, tree.Parts)
				}
			}
		})
	}
}

func TestScanKeepsEveryPartOfAnUnfoldedName(t *testing.T) {
	tree, warn := scanText(t, "Content-Type: application/x-rar-compressed; x-unix-mode=0600;\nname=\"evil.rar\"\n\nRar!", limits())
	if got := tree.Root.Filename(); got != "evil.rar" || !warn.Has(warning.UnfoldedParameter) {
		t.Errorf("filename %q, warnings %v", got, warn.All())
	}
}

func FuzzScan(f *testing.F) {
	seeds := 0
	for _, s := range []string{"", "\n", "A: b\n\nx", nest(3, true), nest(20, false), "From x\r\n \r\nSubject: a\rb\x00\r\r\n\r\r\n--", "Content-Type: multipart/mixed\n\n--q\n--q--\n--q\n"} {
		f.Add([]byte(s))
		seeds++
	}
	if seeds == 0 {
		f.Fatal("no seeds")
	}
	lim := limits()
	f.Fuzz(func(t *testing.T, raw []byte) {
		var warn warning.List
		tree, err := Scan(t.Context(), raw, lim, At{}, &warn)
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.Count(raw, []byte("\n")) + 1
		if tree.Steps > lines*(1+2*(lim.Depth+1)) || tree.Parts > lim.Parts {
			t.Errorf("%d steps, %d parts for %d lines", tree.Steps, tree.Parts, lines)
		}
		leaves := 0
		tree.Root.Walk(func(p *Part) {
			if p.Depth > lim.Depth+1 || p.Type == "" {
				t.Errorf("depth %d, type %q", p.Depth, p.Type)
			}
			if len(p.Children) == 0 {
				leaves += len(p.Body)
			}
		})
		if leaves > len(raw) {
			t.Errorf("%d bytes of leaves from %d bytes", leaves, len(raw))
		}
	})
}

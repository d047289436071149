package pipeline

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/inbox"
)

// A bound that were too low would put a body into a row that the row has no room for.
func TestJSONAtMost(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "plain": "The quick brown fox\n", "quotes": `"\"\`, "tags": "<p>&</p>", "controls": "\x00\x01\b\f\r\n\t\x1f\x7f", "letters": "éñ漢字😀",
		"separators": "\u2028\u2029", "broken": "\xff\xc3\xe6\xbc", "all bytes": allBytes(),
	} {
		t.Run(name, func(t *testing.T) { checkJSONAtMost(t, text) })
	}
	plain := strings.Repeat("The quick brown fox jumps over the lazy dog.\n", 1000)
	if n := jsonAtMost(&inbox.Body{Text: plain}); n > len(plain)*11/10 {
		t.Errorf("the bound of %d plain bytes is %d: it would spare nothing", len(plain), n)
	}
}

func allBytes() string {
	var b strings.Builder
	for c := range 256 {
		b.WriteByte(byte(c))
	}
	return b.String()
}

func checkJSONAtMost(t *testing.T, text string) {
	t.Helper()
	body := inbox.Body{Text: text, ReplyText: text, Markdown: text, HTML: text, Headers: []inbox.Header{{Name: text, Value: text}, {}}}
	encoded, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	if n := jsonAtMost(&body); n < len(encoded) {
		t.Errorf("%q: bound %d, is %d", text, n, len(encoded))
	}
}

func FuzzJSONAtMost(f *testing.F) {
	f.Add("<p>\"\\\n\u2028\xff")
	f.Fuzz(checkJSONAtMost)
}

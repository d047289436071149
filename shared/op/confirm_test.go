package op_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/buzon-mail/buzon/shared/op"
)

func TestMessage(t *testing.T) {
	long := strings.Repeat("é", 200)
	for name, tt := range map[string]struct {
		value, want string
	}{
		"plain":                  {"facturas", "facturas"},
		"line ends and NUL":      {"a\r\nb\x00c\u2028d\u2029e\u0085f", "abcdef"},
		"tab":                    {"a\tb", "ab"},
		"spaces of all kinds":    {"a\u00a0b\u3000c", "a b c"},
		"bidi overrides":         {"a\u202egnp.exe\u202c", "agnp.exe"},
		"bidi isolates, marks":   {"\u2066a\u2069\u200e\u200f\u061cb", "ab"},
		"zero width, BOM":        {"a\u200b\u200d\ufeffb", "ab"},
		"tag characters":         {"a\U000e0041\U000e0042b", "ab"},
		"private use":            {"a\ue000b", "ab"},
		"not UTF-8":              {"a\xff\xfeb", "ab"},
		"a hole of its own":      {"{} or {}", "{} or {}"},
		"letters of any script":  {"Ñandú 東京 Ω", "Ñandú 東京 Ω"},
		"81 characters":          {long[:81*2], long[:79*2] + "…"},
		"80 characters":          {long[:80*2], long[:80*2]},
		"200, hidden ones first": {strings.Repeat("\u200b", 200) + long, long[:79*2] + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			q := op.Question{Text: "Delete {} for {}", Values: []string{tt.value, "ever"}, Targets: map[string]string{"x": "1"}}
			got, err := q.Message()
			if err != nil || got != "Delete "+tt.want+" for ever" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestMessageRefuses(t *testing.T) {
	target := map[string]string{"x": "1"}
	for name, q := range map[string]op.Question{
		"no words":       {Targets: target},
		"value missing":  {Text: "Delete {} and {}", Values: []string{"a"}, Targets: target},
		"value too many": {Text: "Delete {}", Values: []string{"a", "b"}, Targets: target},
		"no target":      {Text: "Delete {}", Values: []string{"a"}},
	} {
		if got, err := q.Message(); err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func FuzzMessage(f *testing.F) {
	for _, seed := range []string{"facturas", "a\u202eb", "\xff", "{}", strings.Repeat("x", 100), "\U000e0041"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		q := op.Question{Text: "<{}>", Values: []string{value}, Targets: map[string]string{"x": "1"}}
		got, err := q.Message()
		if err != nil || !utf8.ValidString(got) || utf8.RuneCountInString(got) > 82 {
			t.Fatalf("%q, %v", got, err)
		}
		again := op.Question{Text: "{}", Values: []string{got[1 : len(got)-1]}, Targets: q.Targets}
		if twice, err := again.Message(); err != nil || twice != got[1:len(got)-1] {
			t.Fatalf("made harmless twice: %q, then %q", got, twice)
		}
		if strings.ContainsAny(got, "\n\r\x00\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c") {
			t.Fatalf("%q", got)
		}
	})
}

func TestConfirmationTravels(t *testing.T) {
	ctx := op.WithCaller(t.Context(), &op.Caller{Subject: "s"}, op.SurfaceMCP)
	yes, asked := &op.Confirmation{NonceHash: "n"}, &op.Inquiry{}
	inner := op.WithTenant(op.WithInquiry(op.WithConfirmation(ctx, yes), asked), op.Workspace{ID: "w"}, nil)
	if op.ConfirmationFrom(inner) != yes || op.InquiryFrom(inner) != asked || op.CallerFrom(inner).Subject != "s" ||
		op.SurfaceFrom(inner) != op.SurfaceMCP || op.TenantFrom(inner).ID != "w" {
		t.Error("something was lost on the way")
	}
	if op.ConfirmationFrom(ctx) != nil || op.InquiryFrom(ctx) != nil || op.ConfirmationFrom(t.Context()) != nil {
		t.Error("the parent carries it")
	}
	other := op.WithCaller(inner, &op.Caller{Subject: "t"}, op.SurfaceREST)
	if op.ConfirmationFrom(other) != nil || op.InquiryFrom(other) != nil {
		t.Error("another caller inherited a yes")
	}
}

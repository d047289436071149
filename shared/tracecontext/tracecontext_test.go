package tracecontext_test

import (
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/tracecontext"
)

const (
	trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	span  = "00f067aa0ba902b7"
	good  = "00-" + trace + "-" + span + "-01"
)

func TestParse(t *testing.T) {
	for name, tt := range map[string]struct {
		parent, state string
		want          tracecontext.Context // zero: refused
	}{
		"good":                {good, "", tracecontext.Context{TraceID: trace, SpanID: span, Flags: "01"}},
		"with state":          {good, "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7", tracecontext.Context{TraceID: trace, SpanID: span, Flags: "01", State: "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"}},
		"a later version":     {"01" + good[2:] + "-more", "", tracecontext.Context{TraceID: trace, SpanID: span, Flags: "01"}},
		"state with a line":   {good, "a=b\r\nx: y", tracecontext.Context{TraceID: trace, SpanID: span, Flags: "01"}},
		"state too long":      {good, strings.Repeat("a", 513), tracecontext.Context{TraceID: trace, SpanID: span, Flags: "01"}},
		"state not ASCII":     {good, "a=ñ", tracecontext.Context{TraceID: trace, SpanID: span, Flags: "01"}},
		"nothing":             {"", "a=b", tracecontext.Context{}},
		"version ff":          {"ff" + good[2:], "", tracecontext.Context{}},
		"ours with more":      {good + "-more", "", tracecontext.Context{}},
		"later, run on":       {"01" + good[2:] + "more", "", tracecontext.Context{}},
		"upper case":          {strings.ToUpper(good), "", tracecontext.Context{}},
		"trace of zeroes":     {"00-" + strings.Repeat("0", 32) + "-" + span + "-01", "", tracecontext.Context{}},
		"span of zeroes":      {"00-" + trace + "-" + strings.Repeat("0", 16) + "-01", "", tracecontext.Context{}},
		"no hexadecimal":      {strings.Replace(good, "4bf9", "zzzz", 1), "", tracecontext.Context{}},
		"odd flags":           {good[:len(good)-2] + "0g", "", tracecontext.Context{}},
		"odd version":         {"0x" + good[2:], "", tracecontext.Context{}},
		"cut":                 {good[:54], "", tracecontext.Context{}},
		"underscores":         {strings.ReplaceAll(good, "-", "_"), "", tracecontext.Context{}},
		"a line of its own":   {good + "\n", "", tracecontext.Context{}},
		"many dashes":         {strings.Repeat("-", 55), "", tracecontext.Context{}},
		"a quote in its span": {"00-" + trace + `-"0f067aa0ba902b7-01`, "", tracecontext.Context{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := tracecontext.Parse(tt.parent, tt.state)
			if got != tt.want || ok != (tt.want != tracecontext.Context{}) {
				t.Errorf("%+v, %t, want %+v", got, ok, tt.want)
			}
		})
	}
}

func TestParseXRay(t *testing.T) {
	const root = "Root=1-5759e988-bd862e3fe1be46a994272793"
	for name, tt := range map[string]struct {
		header, trace, span, flags string
	}{
		"whole":             {root + ";Parent=53995c3f42cd8ad8;Sampled=1", "5759e988bd862e3fe1be46a994272793", "53995c3f42cd8ad8", "01"},
		"root alone":        {root, "5759e988bd862e3fe1be46a994272793", "", ""},
		"lineage behind":    {root + ";Lineage=1:a87bd80c:0", "5759e988bd862e3fe1be46a994272793", "", ""},
		"self before":       {"Self=1-67891234-12456789abcdef012345678; " + root + "; Sampled=0", "5759e988bd862e3fe1be46a994272793", "", ""},
		"odd parent":        {root + ";Parent=x", "5759e988bd862e3fe1be46a994272793", "", ""},
		"nothing":           {"", "", "", ""},
		"no root":           {"Parent=53995c3f42cd8ad8", "", "", ""},
		"another version":   {strings.Replace(root, "=1-", "=2-", 1), "", "", ""},
		"no dash":           {"Root=1-5759e988bd862e3fe1be46a994272793", "", "", ""},
		"dash misplaced":    {"Root=1-5759e988b-d862e3fe1be46a994272793", "", "", ""},
		"short":             {root[:len(root)-1], "", "", ""},
		"no hexadecimal":    {strings.Replace(root, "bd86", "xx86", 1), "", "", ""},
		"zeroes":            {"Root=1-00000000-000000000000000000000000", "", "", ""},
		"a line of its own": {root + "\n", "5759e988bd862e3fe1be46a994272793", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := tracecontext.ParseXRay(tt.header)
			if ok != (tt.trace != "") || got.TraceID != tt.trace || got.SpanID != tt.span || got.Flags != tt.flags {
				t.Errorf("%+v, %t", got, ok)
			}
		})
	}
}

// TestTravels: what a job keeps brings it back to the same position.
func TestTravels(t *testing.T) {
	c, _ := tracecontext.Parse(good, "a=b")
	ctx := tracecontext.With(t.Context(), c)
	kept := tracecontext.From(ctx)
	back, ok := tracecontext.Parse(kept.Traceparent(), kept.State)
	if !ok || back != c {
		t.Errorf("%+v, %t", back, ok)
	}
	if got := tracecontext.From(t.Context()); got != (tracecontext.Context{}) || got.Traceparent() != "" {
		t.Errorf("of nowhere: %+v", got)
	}
	ray, _ := tracecontext.ParseXRay("Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8")
	if got := ray.Traceparent(); got != "00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8-00" {
		t.Errorf("of AWS: %q", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(good, "a=b")
	f.Add("cc-"+trace+"-"+span+"-01-x", "")
	f.Add("Root=1-5759e988-bd862e3fe1be46a994272793", "")
	f.Fuzz(func(t *testing.T, parent, state string) {
		c, ok := tracecontext.Parse(parent, state)
		if ok {
			if back, again := tracecontext.Parse(c.Traceparent(), c.State); !again || back != c {
				t.Fatalf("%q gives %+v, which gives %+v", parent, c, back)
			}
		}
		if x, ok := tracecontext.ParseXRay(parent); ok && (len(x.TraceID) != 32 || strings.Trim(x.TraceID+x.SpanID, "0123456789abcdef") != "") {
			t.Fatalf("%q gives %+v", parent, x)
		}
	})
}

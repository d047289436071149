package inbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/buzon-mail/buzon/shared/inbox"
)

const invoiceSchema = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","additionalProperties":false,"required":["number","total"],"properties":{
 "number":{"type":"string","pattern":"^[A-Z0-9-]+$","maxLength":20},
 "total":{"type":"object","properties":{"amount":{"type":"number","minimum":0},"currency":{"type":"string","enum":["EUR","USD"]}}},
 "date":{"type":"string","format":"date"},
 "pieces":{"type":"integer","maximum":100},
 "rate":{"type":"number"},
 "items":{"type":"array","items":{"type":"string"},"maxItems":3},
 "file":{"type":"string"}}}`

func invoiceTemplate() inbox.ExtractionTemplate {
	return inbox.ExtractionTemplate{
		ID: "template_1", Slug: "invoice", Version: 4, Schema: json.RawMessage(invoiceSchema),
		Locators: []inbox.Locator{
			{Field: "number", Kind: inbox.LocateLabel, Value: "Invoice No"},
			{Field: "number", Kind: inbox.LocateRegex, Value: `#(?P<value>[A-Z]+-\d+)`, In: inbox.PartSubject},
			{Field: "total", Kind: inbox.LocateLabel, Value: "Total:"},
			{Field: "date", Kind: inbox.LocateLabel, Value: "Date"},
			{Field: "pieces", Kind: inbox.LocateLabel, Value: "Pieces"},
			{Field: "rate", Kind: inbox.LocateRegex, Value: `VAT ([\d.,]+) ?%`},
			{Field: "items", Kind: inbox.LocateTable, Value: "Item"},
			{Field: "file", Kind: inbox.LocateAttachment, Value: `^invoice-(.+)\.pdf$`},
		},
	}
}

func extracted(t testing.TB, tpl inbox.ExtractionTemplate, m inbox.ExtractionMail) inbox.Extraction {
	t.Helper()
	x := inbox.NewLocators()
	got, err := inbox.Extract(t.Context(), x, tpl, inbox.Email{ID: "email_1", Workspace: "ws_1"}, m, "me", time.Unix(0, 0).UTC())
	if err != nil {
		t.Fatal(err)
	}
	again, err := inbox.Extract(t.Context(), x, tpl, inbox.Email{ID: "email_1", Workspace: "ws_1"}, m, "me", time.Unix(0, 0).UTC())
	if err != nil || !reflect.DeepEqual(got, again) {
		t.Fatalf("not deterministic: %v, %v", got, again)
	}
	whole := map[string][]rune{inbox.PartText: []rune(m.Text), inbox.PartSubject: []rune(m.Subject)}
	for _, a := range m.Attachments {
		whole[inbox.PartAttachment] = []rune(a.Filename)
	}
	for _, e := range got.Evidence {
		if e.Start < 0 || e.End <= e.Start || e.End > len(whole[e.Part]) {
			t.Errorf("evidence out of the text: %+v", e)
		}
	}
	return got
}

func TestExtract(t *testing.T) {
	full := "Dear Ángel,\n\nInvoice No: AB-17\nDate: 30 November 2026\nPieces: 1,200\nTotal: 1.234,50 EUR (VAT 21 %)\n\n" +
		"Item | Price\n--- | ---\nChair | 3\nTable | 4\n\n> Invoice No: AB-17\n"
	for name, x := range map[string]struct {
		subject, text string
		file          string
		status        inbox.ExtractionStatus
		data          string
		errors        string // field=reason
	}{
		"all of it": {"", strings.ReplaceAll(full, "1,200", "12"), "invoice-x9.pdf", "ok",
			`{"date":"2026-11-30","file":"x9","items":["Chair","Table"],"number":"AB-17","pieces":12,"rate":21,"total":{"amount":1234.50,"currency":"EUR"}}`, ""},
		"out of bounds": {"", full, "", "invalid", `{"date":"2026-11-30","items":["Chair","Table"],"number":"AB-17","rate":21,"total":{"amount":1234.50,"currency":"EUR"}}`, "file=absent pieces=invalid"},
		"nothing":       {"", "Hello", "", "abstained", `{}`, "date=absent file=absent items=absent number=absent pieces=absent rate=absent total=absent"},
		"optional ones are missing": {"", "Invoice No A-1\nTotal: €5", "", "ok", `{"number":"A-1","total":{"amount":5,"currency":"EUR"}}`,
			"date=absent file=absent items=absent pieces=absent rate=absent"},
		"a required one is missing": {"", "Invoice No A-1", "", "partial", `{"number":"A-1"}`,
			"date=absent file=absent items=absent pieces=absent rate=absent total=absent"},
		"the second locator":        {"Your order #QQ-3", "Total: €5", "", "ok", `{"number":"QQ-3","total":{"amount":5,"currency":"EUR"}}`, "date=absent file=absent items=absent pieces=absent rate=absent"},
		"two values":                {"#QQ-3", "Invoice No: A-1\nInvoice No: A-2\nTotal: €5", "", "partial", `{"total":{"amount":5,"currency":"EUR"}}`, "date=absent file=absent items=absent number=ambiguous pieces=absent rate=absent"},
		"a date of both worlds":     {"", "Date: 03/04/2026", "", "partial", `{}`, ""},
		"dollars of many countries": {"", "Total: $5", "", "ok", "", ""},
		"a label in a word":         {"", "Invoice Notes: A-1\nSubtotal: €3\nTotals: €4", "", "abstained", `{}`, "date=absent file=absent items=absent number=absent pieces=absent rate=absent total=absent"},
		"the value below":           {"", "Invoice No:\n\n  A-1\nTotal:\n  12 EUR", "", "ok", `{"number":"A-1","total":{"amount":12,"currency":"EUR"}}`, "date=absent file=absent items=absent pieces=absent rate=absent"},
		"the next label below":      {"", "Invoice No:\nDate: 2026-01-02", "", "ok", `{"date":"2026-01-02"}`, ""},
		"columns":                   {"", "Invoice No: A-1   Date: 2026-01-02\tTotal: 3 USD | Pieces: 4", "", "ok", `{"date":"2026-01-02","number":"A-1","pieces":4,"total":{"amount":3,"currency":"USD"}}`, "file=absent items=absent rate=absent"},
		"marks of emphasis":         {"", "**Invoice No:** A-1\n| **Total:** | **3 USD** |", "", "ok", `{"number":"A-1","total":{"amount":3,"currency":"USD"}}`, "date=absent file=absent items=absent pieces=absent rate=absent"},
		"another currency":          {"", "Invoice No: A-1\nTotal: 3 GBP", "", "invalid", `{"number":"A-1"}`, "date=absent file=absent items=absent pieces=absent rate=absent total=invalid"},
		"a table by spaces":         {"", "Item      Qty\nBig chair   2\nLamp      1\n\nInvoice No: A-1", "", "partial", `{"items":["Big chair","Lamp"],"number":"A-1"}`, "date=absent file=absent pieces=absent rate=absent total=absent"},
		"too many items":            {"", "Item\tQty\na\t1\nb\t1\nc\t1\nd\t1", "", "invalid", `{}`, "date=absent file=absent items=invalid number=absent pieces=absent rate=absent total=absent"},
		"a name that names a file":  {"", "Invoice No: A-1\nTotal: €1", "../../invoice-\u202epdf.pdf", "ok", `{"number":"A-1","total":{"amount":1,"currency":"EUR"}}`, "date=absent file=absent items=absent pieces=absent rate=absent"},
	} {
		t.Run(name, func(t *testing.T) {
			m := inbox.ExtractionMail{Subject: x.subject, Text: x.text}
			if x.file != "" {
				m.Attachments = []inbox.Attachment{{ID: "att_1", Filename: x.file}}
			}
			got := extracted(t, invoiceTemplate(), m)
			switch name {
			case "a date of both worlds":
				x.status, x.errors = "abstained", "date=ambiguous file=absent items=absent number=absent pieces=absent rate=absent total=absent"
			case "dollars of many countries": // the template allows one of them
				x.status, x.data, x.errors = "partial", `{"total":{"amount":5,"currency":"USD"}}`, "date=absent file=absent items=absent number=absent pieces=absent rate=absent"
			case "the next label below":
				x.status, x.errors = "partial", "file=absent items=absent number=absent pieces=absent rate=absent total=absent"
			}
			var faults []string
			for _, e := range got.Errors {
				faults = append(faults, e.Field+"="+e.Reason)
			}
			if got.Status != x.status || string(got.Data) != x.data || strings.Join(faults, " ") != x.errors {
				t.Errorf("%s %s %v\nwant %s %s %s", got.Status, got.Data, faults, x.status, x.data, x.errors)
			}
		})
	}
}

// Where a value stands can be read with from_char and max_chars of emails_get.
func TestEvidence(t *testing.T) {
	text := "Año ✓\nTotal: 5 EUR, Date: 1 May 2026"
	got := extracted(t, invoiceTemplate(), inbox.ExtractionMail{Text: text, Attachments: []inbox.Attachment{{ID: "att_0"}, {ID: "att_7", Filename: "invoice-é.pdf"}}})
	found := map[string]string{}
	for _, e := range got.Evidence {
		whole := []rune(text)
		if e.Part == inbox.PartAttachment {
			whole = []rune("invoice-é.pdf")
		}
		found[e.Field] = fmt.Sprint(string(whole[e.Start:e.End]), " ", e.Attachment, " ", e.Locator)
	}
	want := map[string]string{"total": "5 EUR  2", "date": "1 May 2026  3", "file": "é att_7 7"}
	if !reflect.DeepEqual(found, want) {
		t.Errorf("%v, want %v", found, want)
	}
}

// one extracts a single field of this schema from "X: text".
func one(t *testing.T, schema, decimal, order, text string) string {
	t.Helper()
	tpl := inbox.ExtractionTemplate{
		Slug: "t", Version: 1, Schema: json.RawMessage(`{"type":"object","properties":{"x":` + schema + `}}`), Decimal: decimal, DateOrder: order,
		Locators: []inbox.Locator{{Field: "x", Kind: inbox.LocateLabel, Value: "X"}},
	}
	got := extracted(t, tpl, inbox.ExtractionMail{Text: "X: " + text})
	if len(got.Errors) > 0 {
		return got.Errors[0].Reason
	}
	return strings.TrimSuffix(strings.TrimPrefix(string(got.Data), `{"x":`), "}")
}

func TestValues(t *testing.T) {
	const number, integer, date = `{"type":"number"}`, `{"type":"integer"}`, `{"type":"string","format":"date"}`
	const money = `{"type":"object","properties":{"amount":{"type":"number"},"currency":{"type":"string"}}}`
	for _, x := range []struct{ schema, decimal, order, text, want string }{
		{number, "", "", "12", "12"}, {number, "", "", "-12.5 %", "-12.5"}, {number, "", "", "−3", "-3"}, {number, "", "", "0012", "12"},
		{number, "", "", "-0.00", "0.00"}, {number, "", "", "1.234", "ambiguous"}, {number, "", "", "1,234", "ambiguous"}, {number, ",", "", "1.234", "1234"},
		{number, ".", "", "1.234", "1.234"}, {number, ",", "", "1,234", "1.234"}, {number, ".", "", "12,34", "ambiguous"}, {number, "", "", "12,34", "12.34"},
		{number, "", "", "1.234,5", "1234.5"}, {number, "", "", "1,234.5", "1234.5"}, {number, "", "", "1,234,567", "1234567"},
		{number, "", "", "1,234,56", "invalid"}, {number, "", "", "192.168.1.1", "invalid"}, {number, "", "", "1 234,5", "1234.5"},
		{number, "", "", "1\u00a0234", "1234"}, {number, "", "", "1'234.5", "1234.5"}, {number, "", "", "0.125", "0.125"}, {number, "", "", "1234.567", "1234.567"},
		{number, "", "", "12abc", "invalid"}, {number, "", "", "twelve", "invalid"}, {number, "", "", "-", "invalid"}, {number, "", "", "1234567890123456789", "invalid"},
		{number, "", "", "2 pieces", "2"}, {number, "", "", "٣", "invalid"}, {number, "", "", "1e9", "invalid"}, {number, "", "", "12.", "12"},
		{integer, "", "", "1.234", "1234"}, {integer, "", "", "12,0", "12"}, {integer, "", "", "12,5", "invalid"}, {integer, "", "", "1,5", "invalid"},
		{date, "", "", "2026-11-30", `"2026-11-30"`}, {date, "", "", "2026-11-30T10:00:00Z", `"2026-11-30"`}, {date, "", "", "30/11/2026", `"2026-11-30"`},
		{date, "", "", "11/30/2026", `"2026-11-30"`}, {date, "", "", "03/04/2026", "ambiguous"}, {date, "", "dmy", "03/04/2026", `"2026-04-03"`},
		{date, "", "mdy", "03/04/2026", `"2026-03-04"`}, {date, "", "", "03.04.2026", `"2026-04-03"`}, {date, "", "", "4/4/2026", `"2026-04-04"`},
		{date, "", "", "03/04/26", "invalid"}, {date, "", "", "30/02/2026", "invalid"}, {date, "", "", "2026-13-01", "invalid"}, {date, "", "", "1-2/2026", "invalid"},
		{date, "", "", "30 November 2026", `"2026-11-30"`}, {date, "", "", "Nov. 30th, 2026", `"2026-11-30"`}, {date, "", "", "30 de noviembre de 2026", `"2026-11-30"`},
		{date, "", "", "30. März 2026", `"2026-03-30"`}, {date, "", "", "1er août 2026", `"2026-08-01"`}, {date, "", "", "lunes, 30 de noviembre de 2026", `"2026-11-30"`},
		{date, "", "", "30 Foobar 2026", "invalid"}, {date, "", "", "tomorrow", "invalid"}, {date, "", "", "31 April 2026", "invalid"}, {date, "", "", "1 May 1066", "invalid"},
		{money, "", "", "12 EUR", `{"amount":12,"currency":"EUR"}`}, {money, "", "", "€ 1.234,50", `{"amount":1234.50,"currency":"EUR"}`},
		{money, "", "", "EUR 3 €", `{"amount":3,"currency":"EUR"}`}, {money, "", "", "US$5", `{"amount":5,"currency":"USD"}`}, {money, "", "", "$5", "ambiguous"},
		{money, "", "", "$5 CAD", `{"amount":5,"currency":"CAD"}`}, {money, "", "", "5 kr", "ambiguous"}, {money, "", "", "EUR 5 USD", "invalid"},
		{money, "", "", "5", "invalid"}, {money, "", "", "€ 1.234", "ambiguous"}, {money, "", "", "5 TAX", "invalid"}, {money, "", "", "€", "invalid"},
		{`{"type":"object","properties":{"amount":{"type":"number"},"currency":{"type":"string","enum":["CAD"]}}}`, "", "", "$5", `{"amount":5,"currency":"CAD"}`},
		{`{"type":"object","properties":{"amount":{"type":"number"},"currency":{"type":"string","enum":["CAD"]}}}`, "", "", "5", `{"amount":5,"currency":"CAD"}`},
		{`{"type":"string","enum":["paid","open"]}`, "", "", "paid", `"paid"`}, {`{"type":"string","enum":["paid","open"]}`, "", "", "void", "invalid"},
		{`{"type":"string"}`, "", "", `<b> "quoted" \ ü`, `"<b> \"quoted\" \\ ü"`}, {`{"type":"string","minLength":3}`, "", "", "ab", "invalid"},
	} {
		if got := one(t, x.schema, x.decimal, x.order, x.text); got != x.want {
			t.Errorf("%s %q %q %q: %s, want %s", x.schema, x.decimal, x.order, x.text, got, x.want)
		}
	}
}

// liar is an extractor that claims what it is told to.
type liar struct {
	inbox.Findings
	err error
}

func (liar) Name() string { return "liar/1" }

func (l liar) Extract(context.Context, inbox.ExtractionTemplate, inbox.ExtractionMail) (inbox.Findings, error) {
	return l.Findings, l.err
}

// What any extractor brings is judged by the schema, as the reference validator would judge it.
func TestSchemaAgreesWithTheReference(t *testing.T) {
	values := []string{
		`null`, `true`, `0`, `1`, `-1`, `1.0`, `1.5`, `100`, `101`, `1234567890123`, `""`, `"a"`, `"AB-1"`, `"2026-11-30"`, `"2026-02-30"`, `"äöü"`, `[]`, `["a"]`,
		`["a","b"]`, `["a",1]`, `[1,2]`, `{}`, `{"amount":1,"currency":"EUR"}`, `{"amount":-1,"currency":"EUR"}`, `{"amount":"1","currency":"EUR"}`, `{"amount":1,"currency":"GBP"}`, `{"amount":1}`,
		`"aaaaaaaaaaaaaaaaaaaaaaaa"`,
	}
	for _, schema := range []string{
		`{"type":"string"}`, `{"type":"string","minLength":1,"maxLength":3}`, `{"type":"string","pattern":"^[A-Z]+-[0-9]+$"}`, `{"type":"string","enum":["a","AB-1"]}`,
		`{"type":"string","format":"date"}`, `{"type":"number"}`, `{"type":"number","minimum":0,"maximum":100}`, `{"type":"number","enum":[1,1.5]}`, `{"type":"integer"}`,
		`{"type":"integer","minimum":1}`, `{"type":"array","items":{"type":"string"}}`, `{"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":1}`,
		`{"type":"object","properties":{"amount":{"type":"number","minimum":0},"currency":{"type":"string","enum":["EUR"]}},"required":["amount","currency"],"additionalProperties":false}`,
	} {
		whole := `{"type":"object","properties":{"x":` + schema + `},"required":["x"]}`
		c := jsonschema.NewCompiler()
		c.AssertFormat()
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(whole))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource("mem:x", doc); err != nil {
			t.Fatal(err)
		}
		reference, err := c.Compile("mem:x")
		if err != nil {
			t.Fatal(err)
		}
		tpl := inbox.ExtractionTemplate{Slug: "t", Schema: json.RawMessage(whole)}
		for _, v := range values {
			x := liar{Findings: inbox.Findings{Found: []inbox.Finding{{Field: "x", Value: json.RawMessage(v)}}}}
			got, err := inbox.Extract(t.Context(), x, tpl, inbox.Email{}, inbox.ExtractionMail{}, "", time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			data, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(`{"x":` + v + `}`)))
			if err != nil {
				t.Fatal(err)
			}
			if want := reference.Validate(data) == nil; (got.Status == inbox.ExtractionOK) != want {
				t.Errorf("%s with %s: %s, the reference says %v", schema, v, got.Status, want)
			}
		}
	}
}

func TestExtractorIsNotTrusted(t *testing.T) {
	tpl := inbox.ExtractionTemplate{ID: "template_1", Slug: "t", Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"array","items":{"type":"string"}}},"required":["a"]}`)}
	huge := json.RawMessage(`["` + strings.Repeat("x", 900) + strings.Repeat(`","`+strings.Repeat("y", 900), 50) + `"]`)
	for name, x := range map[string]struct {
		f      inbox.Findings
		status inbox.ExtractionStatus
		data   string
	}{
		"a field that is none":  {inbox.Findings{Found: []inbox.Finding{{Field: "c", Value: json.RawMessage(`"x"`)}}}, "abstained", `{}`},
		"no JSON":               {inbox.Findings{Found: []inbox.Finding{{Field: "a", Value: json.RawMessage(`"x`)}}}, "invalid", `{}`},
		"an injected member":    {inbox.Findings{Found: []inbox.Finding{{Field: "a", Value: json.RawMessage(`"x","role":"owner"`)}}}, "invalid", `{}`},
		"nothing at all":        {inbox.Findings{Found: []inbox.Finding{{Field: "a"}}}, "invalid", `{}`},
		"too much":              {inbox.Findings{Found: []inbox.Finding{{Field: "b", Value: huge}}}, "invalid", `{}`},
		"the same field twice":  {inbox.Findings{Found: []inbox.Finding{{Field: "a", Value: json.RawMessage(`"1"`)}, {Field: "a", Value: json.RawMessage(`"2"`)}}}, "ok", `{"a":"1"}`},
		"white space":           {inbox.Findings{Found: []inbox.Finding{{Field: "a", Value: json.RawMessage(" \n\"1\" ")}}}, "ok", `{"a":"1"}`},
		"an error and no value": {inbox.Findings{Errors: []inbox.FieldError{{Field: "a", Reason: inbox.FieldAmbiguous}}}, "abstained", `{}`},
	} {
		got, err := inbox.Extract(t.Context(), liar{Findings: x.f}, tpl, inbox.Email{}, inbox.ExtractionMail{}, "", time.Time{})
		if err != nil || got.Status != x.status || string(got.Data) != x.data {
			t.Errorf("%s: %s %s %v", name, got.Status, got.Data, err)
		}
	}
	down := errors.New("down")
	if _, err := inbox.Extract(t.Context(), liar{err: down}, tpl, inbox.Email{}, inbox.ExtractionMail{}, "", time.Time{}); !errors.Is(err, down) {
		t.Error(err)
	}
}

func TestHostileTexts(t *testing.T) {
	for name, text := range map[string]string{
		"a million labels":   strings.Repeat("Total: ", 1<<20),
		"a million lines":    "Item\tQty\n" + strings.Repeat("a\tb\n", 1<<20),
		"bars":               strings.Repeat("|", 1<<20),
		"one line":           "Date: " + strings.Repeat("1/", 1<<20),
		"digits":             "Pieces: " + strings.Repeat("1,", 1<<20),
		"no UTF-8":           "Total: \xff\xfe 5 EUR\nInvoice No: \xc3\x28",
		"marks":              "Date: " + strings.Repeat("º", 1<<19),
		"headers of a table": strings.Repeat("Item | Item | Item\n", 1<<16),
	} {
		got := extracted(t, invoiceTemplate(), inbox.ExtractionMail{Text: text, Subject: text})
		if len(got.Data) > 17<<10 || len(got.Evidence) > 500 || len(text) > 1<<16 && !got.Cut {
			t.Errorf("%s: %d bytes of data, %d places, cut %v", name, len(got.Data), len(got.Evidence), got.Cut)
		}
	}
}

func FuzzExtract(f *testing.F) {
	f.Add("Invoice No: AB-17\nDate: 30 November 2026\nTotal: 1.234,50 EUR", "#A-1", "invoice-1.pdf")
	f.Add("Item | Price\n--- | ---\nChair | 3", "", "")
	f.Add("Date: 1º de ene. 2026\nPieces: 1'200\nTotal: $ 5\xff", "\x00", "\u202e")
	f.Fuzz(func(t *testing.T, text, subject, file string) {
		m := inbox.ExtractionMail{Text: text, Subject: subject, Attachments: []inbox.Attachment{{ID: "att_1", Filename: file}}}
		got := extracted(t, invoiceTemplate(), m)
		if !json.Valid(got.Data) {
			t.Errorf("data %q", got.Data)
		}
	})
}

// A list is whole or it is not there: what was not looked at is never left out of it in silence.
func TestExtractLists(t *testing.T) {
	lines := func(format string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	const hostile = `(?s)x.*?[^x]{9}q|x` // each match reads the text to its end
	list := func(l ...inbox.Locator) inbox.ExtractionTemplate {
		tpl := inbox.ExtractionTemplate{Slug: "list", Locators: l}
		names := make([]string, len(l))
		for i := range l {
			names[i] = `"` + l[i].Field + `":{"type":"array","items":{"type":"string"}}`
		}
		tpl.Schema = json.RawMessage(`{"type":"object","properties":{` + strings.Join(names, ",") + `}}`)
		return tpl
	}
	items := func(kind inbox.LocatorKind, value string) inbox.ExtractionTemplate {
		return list(inbox.Locator{Field: "items", Kind: kind, Value: value})
	}
	bombs := make([]inbox.Locator, 2)
	for i := range bombs {
		bombs[i] = inbox.Locator{Field: fmt.Sprintf("a%d", i), Kind: inbox.LocateRegex, Value: hostile}
	}
	for name, x := range map[string]struct {
		tpl    inbox.ExtractionTemplate
		text   string
		items  int
		reason string
	}{
		"pattern, more than a single field takes": {items(inbox.LocateRegex, `item (\w+)`), lines("item x%d\n", 30), 30, ""},
		"pattern, all that fit":                   {items(inbox.LocateRegex, `item (\w+)`), lines("item x%d\n", 100), 100, ""},
		"pattern, too many":                       {items(inbox.LocateRegex, `item (\w+)`), lines("item x%d\n", 101), 0, "invalid"},
		"pattern that matches nothing else":       {items(inbox.LocateRegex, `x*(\d)`), strings.Repeat("x", 60_000) + "1", 1, ""},
		"label, more than a single field takes":   {items(inbox.LocateLabel, "item"), lines("item x%d\n", 30), 30, ""},
		"label, too many":                         {items(inbox.LocateLabel, "item"), lines("item x%d\n", 101), 0, "invalid"},
		"label after many words that go on":       {items(inbox.LocateLabel, "item"), lines("items %d\n", 200) + "item: x\n", 0, "ambiguous"},
		"table after a line of many gaps":         {items(inbox.LocateTable, "Item"), strings.Repeat("a  ", 10_000) + "\nItem  Qty\na  1\nb  2\n", 2, ""},
		"table after a line of many tabs":         {items(inbox.LocateTable, "Item"), strings.Repeat("a\t", 10_000) + "\nItem\tQty\na\t1\n", 1, ""},
		"table after a line of many bars":         {items(inbox.LocateTable, "Item"), strings.Repeat("a|", 10_000) + "\nItem|Qty\na|1\n", 1, ""},
		"table below many lines":                  {items(inbox.LocateTable, "Item"), lines("%d\n", 3000) + "Item  Qty\na  1\n", 1, ""},
		"pattern that searches again and again":   {items(inbox.LocateRegex, hostile), strings.Repeat("x", 60_000), 0, "ambiguous"},
		"the same, where the text is short":       {items(inbox.LocateRegex, hostile), strings.Repeat("x", 60), 60, ""},
		"pattern behind those that spent it all": {
			list(append(bombs, inbox.Locator{Field: "items", Kind: inbox.LocateRegex, Value: `(x{9})`})...), strings.Repeat("x", 60_000), 0, "ambiguous",
		},
		"one place, behind those that spent it all": {
			list(append(bombs, inbox.Locator{Field: "items", Kind: inbox.LocateRegex, Value: `y`})...), strings.Repeat("x", 60_000), 0, "absent",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := extracted(t, x.tpl, inbox.ExtractionMail{Text: x.text})
			var data struct{ Items []string }
			if err := json.Unmarshal(got.Data, &data); err != nil || len(data.Items) != x.items {
				t.Errorf("%d items, want %d (%v)", len(data.Items), x.items, err)
			}
			reason := ""
			for _, e := range got.Errors {
				if e.Field == "items" {
					reason = e.Reason
				}
			}
			if reason != x.reason {
				t.Errorf("reason %q, want %q", reason, x.reason)
			}
		})
	}
}

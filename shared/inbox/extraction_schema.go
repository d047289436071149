package inbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// templateSchema is a template's JSON Schema. What a locator finds is a text that becomes one value or a list of them, so of
// JSON Schema (2020-12) only what describes that is taken: an object of strings, numbers, integers, dates, sums of money and
// lists of them. Any other keyword is refused, for one that is ignored would promise what nobody checks. (A full validator
// would cost 2.5 ms of start-up in a function that only stores schemas.)
type templateSchema struct {
	fields   []fieldSchema // in the order of their names
	required []string
	work     int // instructions of the patterns
}

type fieldSchema struct {
	name string
	valueSchema
	list     bool
	minItems int
	maxItems int
}

// valueSchema is one value.
type valueSchema struct {
	kind       valueKind
	enum       []string // literals: JSON of each
	pattern    *regexp.Regexp
	minLength  int
	maxLength  int // characters
	minimum    *big.Rat
	maximum    *big.Rat
	currencies []string // of money; empty: any
}

type valueKind string

const (
	kindString  valueKind = "string"
	kindNumber  valueKind = "number"
	kindInteger valueKind = "integer"
	kindDate    valueKind = "date"
	kindMoney   valueKind = "money"
)

const schemaFix = "Send {\"type\":\"object\",\"properties\":{...},\"required\":[...]}; a property is string, number, integer, " +
	"string with format date, an object of amount (number) and currency (string) for money, or an array of one of them."

// parseSchema reads a schema and says what of it is not understood.
func parseSchema(location string, raw json.RawMessage) (*templateSchema, error) {
	p := schemaParser{}
	if len(raw) == 0 || len(raw) > maxSchema {
		return nil, invalid(location, fmt.Sprintf("a JSON Schema of at most %d bytes", maxSchema), schemaFix)
	}
	s := p.object(location, raw)
	if p.where != "" {
		return nil, invalid(p.where, p.want, schemaFix)
	}
	s.work = p.work
	return s, nil
}

// schemaParser stops at the first fault.
type schemaParser struct {
	where, want string
	work        int
}

func (p *schemaParser) fault(where, want string) {
	if p.where == "" {
		p.where, p.want = where, want
	}
}

// members reads an object whose keywords are all known.
func (p *schemaParser) members(where string, raw json.RawMessage, known ...string) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil || m == nil {
		p.fault(where, "an object")
		return nil
	}
	known = append(known, "type", "title", "description")
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if !slices.Contains(known, name) {
			slices.Sort(known)
			p.fault(where, "a keyword that is not understood here; known are "+strings.Join(known, ", "))
		}
	}
	return m
}

// read decodes a keyword if it is there.
func (p *schemaParser) read(where string, m map[string]json.RawMessage, name string, into any, want string) bool {
	raw, ok := m[name]
	if !ok {
		return false
	}
	if bytes.Equal(bytes.TrimSpace(raw), []byte("null")) || json.Unmarshal(raw, into) != nil {
		p.fault(where+"."+name, want)
		return false
	}
	return true
}

func (p *schemaParser) object(where string, raw json.RawMessage) *templateSchema {
	s := &templateSchema{}
	m := p.members(where, raw, "properties", "required", "additionalProperties", "$schema")
	var kind string
	if p.read(where, m, "type", &kind, "object"); kind != "object" {
		p.fault(where+".type", "object")
	}
	var closed bool
	p.read(where, m, "additionalProperties", &closed, "true or false")
	var properties map[string]json.RawMessage
	p.read(where, m, "properties", &properties, "an object")
	if len(properties) == 0 || len(properties) > MaxFields {
		p.fault(where+".properties", fmt.Sprintf("1 to %d properties", MaxFields))
		return s
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !validField(name) {
			p.fault(where+".properties", "names of 1 to 64 letters, digits and _, the first a letter")
			return s
		}
		s.fields = append(s.fields, p.property(where+".properties."+name, name, properties[name]))
	}
	p.read(where, m, "required", &s.required, "a list of names")
	for _, name := range s.required {
		if s.field(name) == nil {
			p.fault(where+".required", "names of properties")
		}
	}
	return s
}

func (p *schemaParser) property(where, name string, raw json.RawMessage) fieldSchema {
	f := fieldSchema{name: name, maxItems: maxListItems}
	var head struct{ Type string }
	_ = json.Unmarshal(raw, &head) // what is no object is refused below
	if head.Type != "array" {
		f.valueSchema = p.value(where, raw)
		return f
	}
	f.list = true
	m := p.members(where, raw, "items", "minItems", "maxItems")
	p.read(where, m, "minItems", &f.minItems, "a number")
	p.read(where, m, "maxItems", &f.maxItems, "a number")
	if f.minItems < 0 || f.maxItems < max(f.minItems, 1) || f.maxItems > maxListItems {
		p.fault(where, fmt.Sprintf("minItems and maxItems within 0 to %d", maxListItems))
	}
	items, ok := m["items"]
	if !ok {
		p.fault(where+".items", "a schema")
		return f
	}
	f.valueSchema = p.value(where+".items", items)
	return f
}

func (p *schemaParser) value(where string, raw json.RawMessage) valueSchema {
	v := valueSchema{maxLength: maxFieldText}
	var head struct{ Type, Format string }
	_ = json.Unmarshal(raw, &head) // what is no object is refused below
	switch head.Type {
	case "string":
		v.kind = kindString
		if head.Format != "" {
			v.kind = kindDate
		}
		p.text(where, raw, &v)
	case "number", "integer":
		v.kind = valueKind(head.Type)
		m := p.members(where, raw, "minimum", "maximum", "enum")
		v.minimum, v.maximum = p.bound(where, m, "minimum"), p.bound(where, m, "maximum")
		p.enum(where, m, &v)
	case "object":
		v.kind = kindMoney
		p.money(where, raw, &v)
	default:
		p.fault(where+".type", "string, number, integer, array, or object for money")
	}
	return v
}

func (p *schemaParser) text(where string, raw json.RawMessage, v *valueSchema) {
	m := p.members(where, raw, "format", "pattern", "minLength", "maxLength", "enum")
	format, pattern := "date", ""
	if p.read(where, m, "format", &format, "date"); format != "date" {
		p.fault(where+".format", "date")
	}
	p.read(where, m, "minLength", &v.minLength, "a number")
	p.read(where, m, "maxLength", &v.maxLength, "a number")
	if v.minLength < 0 || v.maxLength < v.minLength || v.maxLength > maxFieldText {
		p.fault(where, fmt.Sprintf("minLength and maxLength within 0 to %d", maxFieldText))
	}
	if p.read(where, m, "pattern", &pattern, "a pattern") {
		compiled, n, err := compilePattern(where+".pattern", pattern)
		if err != nil {
			p.fault(where+".pattern", fmt.Sprintf("a pattern of RE2, at most %d bytes and %d instructions", maxRuleValue, maxProgram))
		}
		v.pattern, p.work = compiled, p.work+n
	}
	p.enum(where, m, v)
}

// enum takes values of the schema's own type.
func (p *schemaParser) enum(where string, m map[string]json.RawMessage, v *valueSchema) {
	var list []json.RawMessage
	if !p.read(where, m, "enum", &list, "a list of values") {
		return
	}
	if len(list) == 0 || len(list) > maxListItems {
		p.fault(where+".enum", fmt.Sprintf("1 to %d values", maxListItems))
	}
	text := v.kind == kindString || v.kind == kindDate
	for _, raw := range list {
		literal := string(bytes.TrimSpace(raw))
		if text != strings.HasPrefix(literal, `"`) || !text && number(literal) == nil {
			p.fault(where+".enum", "values of the property's type")
			return
		}
		if text {
			var s string
			_ = json.Unmarshal(raw, &s) // it was decoded once
			literal = jsonText(s)
		}
		v.enum = append(v.enum, literal)
	}
}

func (p *schemaParser) bound(where string, m map[string]json.RawMessage, name string) *big.Rat {
	raw, ok := m[name]
	if !ok {
		return nil
	}
	r := number(string(bytes.TrimSpace(raw)))
	if r == nil {
		p.fault(where+"."+name, "a number of at most 30 characters")
	}
	return r
}

// money is an object of an amount and a currency.
func (p *schemaParser) money(where string, raw json.RawMessage, v *valueSchema) {
	const want = "for money: the properties amount (number) and currency (string, with an enum of ISO 4217 codes or without)"
	m := p.members(where, raw, "properties", "required", "additionalProperties")
	var properties map[string]json.RawMessage
	p.read(where, m, "properties", &properties, want)
	if len(properties) != 2 || properties["amount"] == nil || properties["currency"] == nil {
		p.fault(where+".properties", want)
		return
	}
	amount, currency := p.value(where+".properties.amount", properties["amount"]), p.value(where+".properties.currency", properties["currency"])
	if amount.kind != kindNumber || amount.enum != nil || currency.kind != kindString || currency.pattern != nil {
		p.fault(where+".properties", want)
	}
	v.minimum, v.maximum = amount.minimum, amount.maximum
	for _, literal := range currency.enum {
		code := strings.Trim(literal, `"`)
		if !isCurrency(code) {
			p.fault(where+".properties.currency.enum", "ISO 4217 codes, such as EUR")
		}
		v.currencies = append(v.currencies, code)
	}
}

// field finds a property; nil without one.
func (s *templateSchema) field(name string) *fieldSchema {
	for i := range s.fields {
		if s.fields[i].name == name {
			return &s.fields[i]
		}
	}
	return nil
}

// validField: names of fields stand outside of the untrusted text and in paths of errors, so they carry no sentence.
func validField(s string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return s != "" && len(s) <= maxLabel && strings.Contains(letters, s[:1]) && strings.Trim(s, letters+"0123456789_") == ""
}

// number reads a JSON number of bounded length; nil for anything else.
func number(literal string) *big.Rat {
	if len(literal) > 30 || strings.ContainsAny(literal, "eE/_xXpP") || literal == "" || strings.HasPrefix(literal, "+") {
		return nil
	}
	r, ok := new(big.Rat).SetString(literal)
	if !ok {
		return nil
	}
	return r
}

func jsonText(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always encodes
	return strings.TrimSuffix(b.String(), "\n")
}

// check says what is wrong with a value; empty when nothing is. It does not trust whoever made the value.
func (f *fieldSchema) check(raw json.RawMessage) (detail string) {
	if len(raw) > maxData || !utf8.Valid(raw) || !json.Valid(raw) {
		return "too large, or not JSON"
	}
	if !f.list {
		return f.one(raw)
	}
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil || items == nil {
		return "not a list"
	}
	if len(items) < f.minItems || len(items) > f.maxItems {
		return fmt.Sprintf("%d items, where %d to %d are allowed", len(items), f.minItems, f.maxItems)
	}
	for _, item := range items {
		if detail := f.one(item); detail != "" {
			return detail
		}
	}
	return ""
}

func (v *valueSchema) one(raw json.RawMessage) string {
	switch v.kind {
	case kindNumber, kindInteger:
		return v.numeric(string(bytes.TrimSpace(raw)))
	case kindMoney:
		var m struct {
			Amount   json.RawMessage `json:"amount"` // not json.Number, which takes a text too
			Currency string          `json:"currency"`
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		if d.Decode(&m) != nil || !isCurrency(m.Currency) {
			return "not a sum of money"
		}
		if len(v.currencies) > 0 && !slices.Contains(v.currencies, m.Currency) {
			return "the currency is not among those allowed"
		}
		return v.numeric(string(m.Amount))
	case kindString, kindDate:
	}
	var s *string
	if json.Unmarshal(raw, &s) != nil || s == nil {
		return "not a text"
	}
	return v.textual(*s)
}

func (v *valueSchema) textual(s string) string {
	n := utf8.RuneCountInString(s)
	switch {
	case n < v.minLength || n > v.maxLength:
		return fmt.Sprintf("%d characters, where %d to %d are allowed", n, v.minLength, v.maxLength)
	case v.kind == kindDate && !isDate(s):
		return "not a date"
	case v.pattern != nil && !v.pattern.MatchString(s):
		return "the pattern does not match"
	case len(v.enum) > 0 && !slices.Contains(v.enum, jsonText(s)):
		return "not among the values allowed"
	}
	return ""
}

func (v *valueSchema) numeric(literal string) string {
	n := number(literal)
	switch {
	case n == nil:
		return "not a number"
	case v.kind == kindInteger && !n.IsInt():
		return "not an integer"
	case v.minimum != nil && n.Cmp(v.minimum) < 0, v.maximum != nil && n.Cmp(v.maximum) > 0:
		return "outside of the bounds"
	case len(v.enum) > 0 && !slices.ContainsFunc(v.enum, func(l string) bool { return number(l).Cmp(n) == 0 }):
		return "not among the values allowed"
	}
	return ""
}

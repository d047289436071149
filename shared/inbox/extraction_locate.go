package inbox

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// locatorsName is what results are stored with; it moves when the same mail and template would give another result.
const locatorsName = "locators/2"

// maxReady is how many compiled templates a Locators keeps.
const maxReady = 64

// Locators is the extractor that follows a template's locators and nothing else. It may be used by many goroutines at once.
type Locators struct {
	mu    sync.Mutex
	ready map[string]*readyTemplate // by id and version; guarded by mu
}

var _ Extractor = (*Locators)(nil)

// NewLocators makes one.
func NewLocators() *Locators { return &Locators{ready: map[string]*readyTemplate{}} }

// Name is that of this extractor.
func (*Locators) Name() string { return locatorsName }

// readyTemplate is a template with everything compiled.
type readyTemplate struct {
	template ExtractionTemplate
	schema   *templateSchema
	patterns []*regexp.Regexp // of each locator; nil for a table
	programs []int            // instructions of each
	window   int              // bytes of a text that they see
}

// readyTemplateOf checks a template.
func readyTemplateOf(t ExtractionTemplate) (*readyTemplate, error) {
	schema, err := parseSchema("body.json_schema", t.Schema)
	if err != nil {
		return nil, err
	}
	if t.Decimal != "" && t.Decimal != "." && t.Decimal != "," {
		return nil, invalid("body.decimal", `"." or ","`)
	}
	if t.DateOrder != "" && t.DateOrder != "dmy" && t.DateOrder != "mdy" {
		return nil, invalid("body.date_order", "dmy or mdy")
	}
	if len(t.Locators) == 0 || len(t.Locators) > MaxLocators {
		return nil, invalid("body.locators", fmt.Sprintf("1 to %d locators", MaxLocators))
	}
	r := &readyTemplate{template: t, schema: schema}
	work := 1 + schema.work
	for i, l := range t.Locators {
		pattern, n, err := l.compile(fmt.Sprintf("body.locators[%d]", i), schema)
		if err != nil {
			return nil, err
		}
		r.patterns, r.programs, work = append(r.patterns, pattern), append(r.programs, n), work+n
	}
	if work > maxPrograms {
		return nil, invalid("body.locators", "the patterns are too large together", "Make patterns and labels shorter.")
	}
	r.window = min(max(ruleWork/work, minWindow), maxExtractText)
	return r, nil
}

// labelPattern wraps a label: not inside of a word, then the marks that may stand between it and its value.
const labelPattern = `(?i)(?:^|[^\pL\pN])%s[ \t\x{a0}]*[:=#]?[ \t\x{a0}|*]*`

func (l Locator) compile(location string, s *templateSchema) (pattern *regexp.Regexp, work int, err error) {
	if s.field(l.Field) == nil {
		return nil, 0, invalid(location+".field", "a property of json_schema")
	}
	if l.Value == "" || len(l.Value) > maxRuleValue || strings.ContainsFunc(l.Value, unprintable) || strings.TrimSpace(l.Value) == "" {
		return nil, 0, invalid(location+".value", fmt.Sprintf("1 to %d bytes without control characters", maxRuleValue))
	}
	switch l.In {
	case "", PartText:
	case PartSubject:
		if l.Kind == LocateAttachment || l.Kind == LocateTable {
			return nil, 0, invalid(location+".in", "nothing: this kind has its own place")
		}
	default:
		return nil, 0, invalid(location+".in", "text or subject")
	}
	switch l.Kind {
	case LocateRegex, LocateAttachment:
		return compilePattern(location+".value", l.Value)
	case LocateTable:
		return nil, 0, nil
	case LocateLabel:
		words := strings.Fields(l.Value)
		for i := range words {
			words[i] = regexp.QuoteMeta(words[i])
		}
		source := fmt.Sprintf(labelPattern, strings.Join(words, `[ \t\x{a0}]+`))
		compiled, err := regexp.Compile(source)
		if err != nil {
			return nil, 0, invalid(location+".value", "a label")
		}
		return compiled, len(source), nil // each of its characters is one instruction at most
	}
	return nil, 0, invalid(location+".kind", "label, regex, table or attachment_name")
}

// prepare returns the compiled template, of memory if it was used before.
func (x *Locators) prepare(t ExtractionTemplate) (*readyTemplate, error) {
	id := t.ID + "/" + Version(t.Version)
	x.mu.Lock()
	r := x.ready[id]
	x.mu.Unlock()
	if r != nil && t.ID != "" {
		return r, nil
	}
	r, err := readyTemplateOf(t)
	if err != nil {
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.ready) >= maxReady {
		clear(x.ready)
	}
	x.ready[id] = r
	return r, nil
}

// Extract is pure: the same template and mail give the same findings.
func (x *Locators) Extract(ctx context.Context, t ExtractionTemplate, m ExtractionMail) (Findings, error) {
	r, err := x.prepare(t)
	if err != nil {
		return Findings{}, fmt.Errorf("template %s: %w", t.ID, err)
	}
	s := search{readyTemplate: r, mail: m, left: searchWork}
	out := Findings{Cut: len(m.Text) > r.window || len(m.Attachments) > maxExtractFiles}
	for i := range r.schema.fields {
		if err := ctx.Err(); err != nil {
			return Findings{}, err
		}
		f := &r.schema.fields[i]
		found, fault := s.field(f)
		if fault != nil {
			out.Errors = append(out.Errors, *fault)
			continue
		}
		out.Found = append(out.Found, found)
	}
	return out, nil
}

// place is where a locator found something.
type place struct {
	part       string
	attachment string
	whole      string // the text of the part
	start, end int    // bytes
	exact      bool   // the value is all of it, not only its beginning
}

func (p place) text() string { return p.whole[p.start:p.end] }

// search is one template looking through one mail.
type search struct {
	*readyTemplate
	mail ExtractionMail
	left int // bytes times instructions that may still be spent on further places of patterns
}

// field tries the locators of one field in their order.
func (r *search) field(f *fieldSchema) (Finding, *FieldError) {
	fault := &FieldError{Field: f.name, Reason: FieldAbsent}
	var refused Finding // by the schema
	for i, l := range r.template.Locators {
		if l.Field != f.name {
			continue
		}
		places, more := r.places(i, f)
		if more { // what was not looked at could be another value, or the rest of a list
			fault.Reason, fault.Detail = FieldAmbiguous, detailMany
			break
		}
		if len(places) == 0 {
			continue
		}
		found, reason, detail := r.values(f, i, places)
		if reason == "" {
			return found, nil
		}
		fault.Reason, fault.Detail = reason, detail
		if found.Field != "" {
			refused = found
		}
		if reason == FieldAmbiguous {
			break // another locator's answer would be a guess
		}
	}
	if refused.Field != "" && fault.Reason == FieldInvalid {
		return refused, nil // whoever checks the findings says what is wrong with it
	}
	return Finding{}, fault
}

// places are where a locator finds something, at most one more than its field takes. more: there may be others.
func (r *search) places(i int, f *fieldSchema) (out []place, more bool) {
	l, pattern, m := r.template.Locators[i], r.patterns[i], r.mail
	limit := maxFound
	if f.list {
		limit = f.maxItems
	}
	part, text := PartText, cutBytes(m.Text, r.window)
	if l.In == PartSubject {
		part, text = PartSubject, cutBytes(m.Subject, r.window)
	}
	switch l.Kind {
	case LocateLabel:
		hits := pattern.FindAllStringIndex(text, limit+1)
		out = labelled(hits, part, text)
		return out, len(hits) > limit && len(out) <= limit
	case LocateRegex:
		hits, more := r.hits(i, text, limit)
		return grouped(pattern, hits, place{part: part, whole: text}), more
	case LocateTable:
		return column(l.Value, text), false
	case LocateAttachment:
		for _, a := range m.Attachments[:min(len(m.Attachments), maxExtractFiles)] {
			name := cutBytes(a.Filename, maxLabel*4)
			hits, some := r.hits(i, name, limit)
			out, more = append(out, grouped(pattern, hits, place{part: PartAttachment, attachment: a.ID, whole: name})...), more || some
		}
	}
	return out, more
}

// hits finds the places of a pattern. A search that finds something may have read the text to its end to know that no other
// alternative goes first, as (?s)x.*y|x does, and the next search reads it again: so each is taken for a whole text, the first is in
// the window's account, and the others are paid from what the template has left for this mail.
func (r *search) hits(i int, text string, limit int) (hits [][]int, more bool) {
	cost := max(r.programs[i]*len(text), 1)
	n := min(limit+1, 1+r.left/cost)
	hits = r.patterns[i].FindAllStringSubmatchIndex(text, n)
	r.left -= cost * (min(len(hits)+1, n) - 1)
	return hits, len(hits) == n && n <= limit
}

// cutBytes cuts a text at a character's end.
func cutBytes(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// grouped is what a pattern captures.
func grouped(pattern *regexp.Regexp, hits [][]int, at place) []place {
	group := max(pattern.SubexpIndex("value"), min(pattern.NumSubexp(), 1))
	var out []place
	for _, hit := range hits {
		if at.start, at.end, at.exact = hit[2*group], hit[2*group+1], true; at.start >= 0 {
			text := at.text()
			at.start += len(text) - len(strings.TrimLeftFunc(text, unicode.IsSpace))
			at.end = at.start + len(strings.TrimSpace(text))
			out = append(out, at)
		}
	}
	return out
}

// labelled is what stands behind a label: the rest of its line up to a gap or a bar, else the next line that is not empty.
func labelled(hits [][]int, part, text string) []place {
	var out []place
	for _, hit := range hits {
		if hit[1] < len(text) && runsOn(text, hit[1]) {
			continue // the label is the beginning of a longer word
		}
		at := place{part: part, whole: text, start: hit[1]}
		at.end = lineEnd(text, at.start)
		for range 2 {
			if strings.TrimSpace(at.text()) != "" || at.end == len(text) {
				break
			}
			at.start = at.end + 1
			if at.end = lineEnd(text, at.start); strings.Contains(at.text()+" ", ": ") {
				at.end = at.start // the next label: this one has no value
				break
			}
		}
		if at = at.untilGap().trimmed(); at.start < at.end {
			out = append(out, at)
		}
	}
	return out
}

// runsOn reports whether a word goes on over a place.
func runsOn(text string, i int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:i])
	after, _ := utf8.DecodeRuneInString(text[i:])
	in := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	return in(before) && in(after)
}

func lineEnd(text string, from int) int {
	if i := strings.IndexByte(text[from:], '\n'); i >= 0 {
		return from + i
	}
	return len(text)
}

// untilGap ends a place where columns are set apart: at a tab, a bar, or two spaces.
func (p place) untilGap() place {
	lead := len(p.text()) - len(strings.TrimLeftFunc(p.text(), blank))
	rest := p.whole[p.start+lead : p.end]
	for _, gap := range []string{"\t", "|", "  "} {
		if i := strings.Index(rest, gap); i >= 0 {
			rest = rest[:i]
		}
	}
	p.end = p.start + lead + len(rest)
	return p
}

// trimmed leaves white space and marks of emphasis out.
func (p place) trimmed() place {
	text := p.text()
	p.start += len(text) - len(strings.TrimLeftFunc(text, blank))
	p.end = p.start + len(strings.TrimRightFunc(strings.TrimLeftFunc(text, blank), blank))
	return p
}

func blank(r rune) bool { return unicode.IsSpace(r) || r == '*' || r == '|' }

// column is the cells below a header, up to an empty line or one with another number of cells.
func column(header, text string) []place {
	var out []place
	index, width := -1, 0
	for line := 0; line < len(text); {
		end := lineEnd(text, line)
		cells := cellsOf(text, line, end)
		switch {
		case index < 0:
			width = len(cells)
			index = slices.IndexFunc(cells, func(c place) bool {
				return strings.EqualFold(strings.TrimRight(c.text(), ":"), strings.TrimRight(header, ":"))
			})
			if width < 2 {
				index = -1
			}
		case ruler(text[line:end]):
		case len(cells) != width:
			if len(out) > 0 {
				return out
			}
			index = -1
		case len(out) > maxListItems:
			return out
		default:
			out = append(out, cells[index])
		}
		line = end + 1
	}
	return out
}

// ruler is the line between header and rows.
func ruler(line string) bool {
	return strings.ContainsAny(line, "-=") && strings.Trim(line, "-=|:+ \t") == ""
}

// cellsOf splits a line at bars if it has any, else at tabs and gaps of two spaces or more. A line of more cells than a table has
// columns has none.
func cellsOf(text string, start, end int) []place {
	line := text[start:end]
	var out []place
	add := func(from, to int) {
		out = append(out, place{part: PartText, whole: text, start: start + from, end: start + to, exact: true}.trimmed())
	}
	if strings.Contains(line, "|") {
		from, to := 0, len(line)
		if strings.HasPrefix(strings.TrimSpace(line), "|") {
			from = strings.IndexByte(line, '|') + 1
		}
		if s := strings.TrimRightFunc(line, unicode.IsSpace); strings.HasSuffix(s, "|") && len(s) > from {
			to = len(s) - 1
		}
		for at := from; at <= to; {
			if len(out) > maxCells {
				return nil
			}
			next := strings.IndexByte(line[at:to], '|')
			if next < 0 {
				add(at, to)
				break
			}
			add(at, at+next)
			at += next + 1
		}
		return out
	}
	for at := 0; at < len(line); {
		if len(out) > maxCells {
			return nil
		}
		at += len(line[at:]) - len(strings.TrimLeft(line[at:], " \t"))
		to := at
		for to < len(line) && line[to] != '\t' && !strings.HasPrefix(line[to:], "  ") { // looked at once: a line has as many cells as its sender likes
			to++
		}
		if at < to {
			add(at, to)
		}
		at = to
	}
	return out
}

// values reads what stands at the places. A single field takes one value: places that say the same are one, places that say
// something else leave it in doubt.
func (r *readyTemplate) values(f *fieldSchema, locator int, places []place) (found Finding, reason, detail string) {
	if limit := maxFound; !f.list && len(places) > limit {
		return Finding{}, FieldAmbiguous, detailMany
	}
	var items []json.RawMessage
	var evidence []Evidence
	reason, detail = FieldInvalid, detailType
	for _, p := range places[:min(len(places), f.maxItems+1)] {
		v := r.read(f.kind, &f.valueSchema, p)
		switch {
		case v.doubt:
			return Finding{}, FieldAmbiguous, detailReadings
		case v.literal == nil && f.list:
			return Finding{}, reason, detail
		case v.literal == nil:
			continue
		case !f.list && len(items) > 0:
			if string(items[0]) != string(v.literal) {
				return Finding{}, FieldAmbiguous, detailSeveral
			}
			continue
		}
		evidence = append(evidence, p.evidence(f.name, len(items), locator, v))
		items = append(items, v.literal)
	}
	if len(items) == 0 {
		return Finding{}, reason, detail
	}
	found = Finding{Field: f.name, Value: items[0], Evidence: evidence}
	if f.list {
		found.Value, _ = json.Marshal(items) // each is JSON already
	}
	if f.check(found.Value) != "" {
		return found, FieldInvalid, ""
	}
	return found, "", ""
}

func (p place) evidence(field string, item, locator int, v reading) Evidence {
	start := utf8.RuneCountInString(p.whole[:p.start+v.start])
	return Evidence{
		Field: field, Item: item, Part: p.part, Attachment: p.attachment, Locator: locator,
		Start: start, End: start + utf8.RuneCountInString(p.whole[p.start+v.start:p.start+v.end]),
	}
}

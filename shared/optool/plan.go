package optool

import (
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/buzon-mail/buzon/shared/op"
)

// plan is what turns the arguments of one tool into a request. It is made from the tags on the tool's first call and is
// read only from then on.
type plan struct {
	fields   []field
	names    []string // of the fields, for refusals
	body     bool     // the operation takes a body
	optional bool     // which may be absent
	whole    bool     // every argument is a member of the body: the arguments are the body
	segments []string // of the path; a parameter is "{name}"
	fixed    string   // the path, when it has no parameters
	template *http.Request
	reply    reflect.Type // of the output's body, of which marks are; nil: its replies are scanned
	marks    *marks       // nil: nothing in it is untrusted
}

// maxFields keeps the set of arguments that were seen in one word.
const maxFields = 64

//nolint:gochecknoglobals // constant; shared header values are never written to
var jsonOnly = http.Header{"Content-Type": {"application/json"}}

func newPlan(o *op.Operation, base string) (*plan, error) {
	fields, body, optional, err := fieldsOf(o.Input)
	if err != nil {
		return nil, err
	}
	if len(fields) > maxFields {
		return nil, fmt.Errorf("optool: %s has %d arguments, at most %d", o.Name, len(fields), maxFields)
	}
	p := &plan{fields: fields, body: body != nil, optional: optional, whole: body != nil, segments: strings.Split(base+o.Path, "/"), fixed: base + o.Path}
	for i := range fields {
		f := &fields[i]
		p.names = append(p.names, f.name)
		p.whole = p.whole && f.place == inBody
		if f.place == inPath && !slices.Contains(p.segments, "{"+f.wire+"}") {
			return nil, fmt.Errorf("optool: %s: no parameter {%s} in the path", o.Name, f.wire)
		}
		if f.place == inQuery {
			f.wire = url.QueryEscape(f.wire)
		}
	}
	p.template = &http.Request{ // what is in it is shared by all calls, and read only
		Method: o.Method, URL: &url.URL{Path: p.fixed}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: jsonOnly, Body: http.NoBody,
	}
	p.readOutput(o.Output)
	return p, nil
}

func (p *plan) readOutput(output reflect.Type) {
	if output == nil || output.Kind() != reflect.Struct {
		return
	}
	if f, ok := output.FieldByName("Body"); ok {
		if m, ok := marksOf(f.Type); ok {
			p.reply, p.marks = f.Type, m
		}
	}
}

// point appends the _meta member that points at what is untrusted in a reply: by the value it was made of, when that is known
// and its type tells, or else by its text.
func (p *plan) point(out []byte, key string, value any, text []byte) []byte {
	v := reflect.ValueOf(value)
	if p.reply == nil || v.Kind() != reflect.Pointer || v.Type().Elem() != p.reply || v.IsNil() {
		return appendUntrusted(out, key, text)
	}
	if p.marks == nil {
		return out
	}
	return p.marks.append(out, key, v.Elem())
}

// ready returns the plan, making it on the first call.
func (t *tool) ready(base string) (*plan, error) {
	t.once.Do(func() { t.plan, t.failure = newPlan(t.op, base) })
	return t.plan, t.failure
}

// find returns the index of the argument with that name; -1 for none.
func (p *plan) find(name []byte) int {
	for i := range p.fields {
		if string(name) == p.fields[i].name {
			return i
		}
	}
	return -1
}

// nearest is the known name that a mistyped one most likely meant; empty when none is near.
func (p *plan) nearest(name string) string {
	best, least := "", 3 // more than two slips is another word
	for _, candidate := range p.names {
		if d := distance(name, candidate); d < least && d < len(candidate) {
			best, least = candidate, d
		}
	}
	return best
}

// distance is the number of inserted, deleted and replaced bytes between two short names, letter case aside.
func distance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		previous := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := previous
			if a[i] != b[j] {
				cost++
			}
			previous = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

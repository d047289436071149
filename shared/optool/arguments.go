package optool

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/jsonwalk"
	"github.com/buzon-mail/buzon/shared/op"
)

// maxDetails bounds a list of faults; more would tell a model nothing.
const maxDetails = 20

// input is what one walk over the arguments fills.
type input struct {
	*pieces // nil: nothing needed it
	paths   int
	query   []byte // encoded
	header  http.Header
	body    []byte
}

// pieces is what a call needs whose arguments are neither absent nor the body as a whole.
type pieces struct {
	values [4]pathValue // more path parameters than anybody declares
	url    url.URL
	space  [192]byte // where query and body begin to grow
}

type pathValue struct{ name, value string }

// room is the pieces, made when they are first needed.
func (in *input) room() *pieces {
	if in.pieces == nil {
		in.pieces = &pieces{}
	}
	return in.pieces
}

// given is the values of the path.
func (in *input) given() []pathValue {
	if in.paths == 0 {
		return nil
	}
	return in.values[:in.paths]
}

// reader walks the arguments of one call.
type reader struct {
	plan  *plan
	in    *input
	seen  uint64 // by index of the field
	extra jsonwalk.Names
	fault *apperr.Error
}

// read fills in from arguments. The error is what the caller can act on: an unknown, repeated or missing name or a value
// of another JSON type than the schema of the tool says. A path value that can't be one is not_found, as for the route.
func (p *plan) read(arguments []byte, in *input) error {
	if len(arguments) == 0 {
		arguments = []byte("{}")
	}
	r := reader{plan: p, in: in}
	if p.body && !p.whole {
		in.body = append(in.room().space[queryRoom:queryRoom], '{')
	}
	o := jsonwalk.Members(arguments)
	for o.Next() {
		r.argument(o.Name, o.Value)
	}
	if err := o.End(); err != nil {
		return unreadable(err)
	}
	r.missing()
	if r.fault != nil {
		return r.fault
	}
	r.close(arguments)
	for _, v := range in.given() {
		if !op.ValidPathValue(v.value) {
			return op.NotFound()
		}
	}
	return nil
}

func unreadable(err error) error {
	message := "expected one JSON object"
	switch {
	case errors.Is(err, jsonwalk.ErrDepth):
		message = "nested too deeply"
	case errors.Is(err, jsonwalk.ErrUTF8):
		message = "expected UTF-8"
	}
	return apperr.New(apperr.Invalid, "", "The arguments can't be read.", "Send arguments as one JSON object.").At("arguments", message)
}

func (r *reader) argument(token, value []byte) {
	i := r.plan.find(token[1 : len(token)-1])
	name := ""
	if i < 0 { // unknown, or written with escapes
		name = jsonwalk.Text(token)
		if i = r.plan.find([]byte(name)); i < 0 {
			r.unknown(name)
			return
		}
	}
	f := &r.plan.fields[i]
	if r.seen&(1<<i) != 0 {
		r.refuse(f.name, "this argument is there twice")
		return
	}
	r.seen |= 1 << i
	if f.place == inBody {
		r.member(f, value)
		return
	}
	if string(value) == "null" && f.place != inPath {
		return // left out; see the package's comment
	}
	if message := r.parameter(f, value); message != "" {
		r.refuse(f.name, message)
	}
}

func (r *reader) member(f *field, value []byte) {
	if r.plan.whole {
		return
	}
	b := r.in.body
	if len(b) > 1 {
		b = append(b, ',')
	}
	b = append(append(append(b, '"'), f.name...), '"', ':')
	r.in.body = append(b, value...)
}

// parameter puts a value in its place; the message says what is wrong with it.
func (r *reader) parameter(f *field, value []byte) (message string) {
	if f.array {
		return r.list(f, value)
	}
	text, ok := f.kind.text(value)
	if !ok {
		return "expected " + f.kind.String()
	}
	switch f.place {
	case inPath:
		if r.in.paths == len(r.in.room().values) {
			return "too many path parameters"
		}
		r.in.values[r.in.paths] = pathValue{f.wire, text}
		r.in.paths++
	case inQuery:
		if text == "" {
			return "expected a value; leave the argument out instead"
		}
		r.pair(f)
		r.in.query = escape(r.in.query, text)
	case inHeader:
		if text == "" || strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' }) {
			return "expected printable ASCII text"
		}
		if r.in.header == nil {
			r.in.header = http.Header{}
		}
		r.in.header[f.wire] = []string{text}
	}
	return ""
}

// list sends an array as huma reads it: joined by commas, or repeated when the parameter explodes.
func (r *reader) list(f *field, value []byte) (message string) {
	if value[0] != '[' {
		return "expected an array"
	}
	items := jsonwalk.Items(value)
	for n := 0; items.Next(); n++ {
		text, ok := f.kind.text(items.Value)
		switch {
		case !ok:
			return "expected an array whose items are each " + f.kind.String()
		case text == "":
			return "expected items that are not empty"
		case !f.explode && strings.Contains(text, ","):
			return "expected items without commas" // one item would arrive as two
		}
		if n == 0 || f.explode {
			r.pair(f)
		} else {
			r.in.query = append(r.in.query, ',')
		}
		r.in.query = escape(r.in.query, text)
	}
	return ""
}

// queryRoom is how much of the space a query may take beside a body.
const queryRoom = 64

func (r *reader) pair(f *field) {
	switch {
	case len(r.in.query) > 0:
		r.in.query = append(r.in.query, '&')
	case r.in.body != nil:
		r.in.query = r.in.room().space[:0:queryRoom]
	default:
		r.in.query = r.in.room().space[:0]
	}
	r.in.query = append(append(r.in.query, f.wire...), '=')
}

// text is the wire form of a value of this kind; ok is false for any other JSON type.
func (k kind) text(value []byte) (text string, ok bool) {
	first := value[0]
	number := first == '-' || (first >= '0' && first <= '9')
	switch k {
	case kindString:
		if first == '"' {
			return jsonwalk.Text(value), true
		}
	case kindInteger:
		for _, c := range value {
			number = number && c != '.' && c != 'e' && c != 'E'
		}
		if number {
			return string(value), true
		}
	case kindNumber:
		if number {
			return string(value), true
		}
	case kindBoolean:
		if first == 't' {
			return "true", true
		}
		if first == 'f' {
			return "false", true
		}
	}
	return "", false
}

// missing refuses a call without a path parameter. Other required arguments are the route's to miss: it says so in the
// same words over HTTP.
func (r *reader) missing() {
	for i := range r.plan.fields {
		if f := &r.plan.fields[i]; f.place == inPath && r.seen&(1<<i) == 0 {
			r.refuse(f.name, "this argument is required")
		}
	}
}

func (r *reader) close(arguments []byte) {
	switch {
	case !r.plan.body:
	case r.plan.whole:
		if r.in.body = arguments; r.seen == 0 && r.plan.optional {
			r.in.body = nil
		}
	case len(r.in.body) == 1 && r.plan.optional:
		r.in.body = nil
	default:
		r.in.body = append(r.in.body, '}')
	}
}

func (r *reader) unknown(name string) {
	if !r.extra.Add(name) {
		return // said already
	}
	message := "unknown argument"
	if near := r.plan.nearest(op.Brief(name)); near != "" {
		message += "; did you mean " + near + "?"
	}
	r.refuse(op.Brief(name), message)
}

func (r *reader) refuse(name, message string) {
	if r.fault == nil {
		fix := "This tool takes no arguments."
		if len(r.plan.names) > 0 {
			fix = "The arguments are: " + strings.Join(r.plan.names, ", ") + "."
		}
		r.fault = apperr.New(apperr.Invalid, "", "The arguments are not valid.", fix)
	}
	if len(r.fault.Details) < maxDetails {
		r.fault = r.fault.At("arguments."+name, message)
	}
}

// escape appends text as a query value (RFC 3986: all but unreserved characters are escaped; commas are kept, for they
// can only stand in a single value or a repeated one).
func escape(out []byte, text string) []byte {
	const digits = "0123456789ABCDEF"
	for i := range len(text) {
		c := text[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.', c == '~', c == ',', c == ':':
			out = append(out, c)
		default:
			out = append(out, '%', digits[c>>4], digits[c&15])
		}
	}
	return out
}

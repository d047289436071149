package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"sync"
	"time"
)

// replyPlan is how the output of one operation is written; it is made from the type once.
type replyPlan struct {
	status  int     // of success
	dynamic int     // index of the field Status; -1: none
	body    int     // index of the field Body; -1: none
	lists   [][]int // fields of Body that are slices: nil is sent as [], never as null
	headers []headerField
}

type headerField struct {
	index int
	name  string // canonical
}

func newReplyPlan(output reflect.Type, status int) *replyPlan {
	p := &replyPlan{status: status, dynamic: -1, body: -1}
	for i := range output.NumField() {
		f := output.Field(i)
		switch {
		case f.Name == "Status":
			p.dynamic = i
		case f.Name == "Body":
			p.body = i
			p.lists = lists(f.Type)
		case f.Tag.Get("header") != "":
			p.headers = append(p.headers, headerField{i, http.CanonicalHeaderKey(f.Tag.Get("header"))})
		}
	}
	return p
}

func lists(body reflect.Type) [][]int {
	if body.Kind() != reflect.Struct {
		return nil
	}
	var out [][]int
	for _, f := range reflect.VisibleFields(body) {
		if f.IsExported() && f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() != reflect.Uint8 && !throughPointer(body, f.Index) {
			out = append(out, f.Index)
		}
	}
	return out
}

// throughPointer reports whether a promoted field lies behind a pointer, which may be nil.
func throughPointer(t reflect.Type, index []int) bool {
	for _, i := range index[:len(index)-1] {
		if t = t.Field(i).Type; t.Kind() == reflect.Pointer {
			return true
		}
	}
	return false
}

// write sends the output of a call. The body is encoded whole before anything is sent, so that a value that can't be
// encoded is a clean 500.
func (p *replyPlan) write(w http.ResponseWriter, c *call) error {
	if c.out == nil {
		if p.body < 0 {
			c.settle(nil, p.status)
			w.WriteHeader(p.status)
			return nil
		}
		return fmt.Errorf("rest: %s returned neither a result nor an error", c.bound.operation.OperationID)
	}
	v := reflect.ValueOf(c.out).Elem()
	status := p.status
	if p.dynamic >= 0 {
		if s := int(v.Field(p.dynamic).Int()); s != 0 {
			status = s
		}
	}
	if p.body < 0 || status == http.StatusNoContent {
		c.settle(nil, status)
		p.head(w.Header(), v)
		w.WriteHeader(status)
		return nil
	}
	b := v.Field(p.body)
	for _, i := range p.lists {
		if f := b.FieldByIndex(i); f.IsNil() {
			f.Set(reflect.MakeSlice(f.Type(), 0, 0))
		}
	}
	return p.send(w, c, status, v)
}

// Appender is a body that writes its own JSON: byte for byte what encoding/json writes of it without escaping for HTML, at a
// third of the cost. It is for long replies; a fuzz target must compare the two.
type Appender interface {
	AppendJSON(dst []byte) ([]byte, error)
}

// EscapedAppender is an Appender that can, at times, also write its JSON as the inside of a JSON string: byte for byte what escaping
// it would give. A tool's reply holds it both ways; a body that has parts of itself ready spares the second pass. It appends nothing
// when it can't.
type EscapedAppender interface {
	Appender
	AppendEscaped(dst []byte) (_ []byte, ok bool)
}

// witness is a writer that wants to know of which value the bytes are that it gets next: a program that calls the route in
// process knows more of a value than it could read out of its text.
type witness interface{ Value(v any) }

func (p *replyPlan) send(w http.ResponseWriter, c *call, status int, output reflect.Value) error {
	body := output.Field(p.body).Addr().Interface()
	e := encoders.Get().(*encoder)
	text, err := e.encode(body)
	if err != nil {
		return fmt.Errorf("encode the reply: %w", err)
	}
	c.settle(text, status)
	p.head(w.Header(), output)
	w.Header()["Content-Type"] = jsonType
	if to, ok := w.(witness); ok {
		to.Value(body)
	}
	w.WriteHeader(status)
	_, _ = w.Write(text)
	if max(e.buf.Cap(), cap(e.text)) <= MaxBody {
		encoders.Put(e)
	}
	return nil
}

func (p *replyPlan) head(h http.Header, v reflect.Value) {
	for _, f := range p.headers {
		if text := headerText(v.Field(f.index)); text != "" {
			h.Set(f.name, text)
		}
	}
}

func headerText(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case string:
		return x
	case int:
		return strconv.Itoa(x)
	case time.Time:
		if x.IsZero() {
			return ""
		}
		return x.UTC().Format(http.TimeFormat)
	case fmt.Stringer:
		return x.String()
	}
	return ""
}

//nolint:gochecknoglobals // constant; a shared header value is never appended to, for its capacity is its length
var jsonType = []string{"application/json"}

// encoder is a buffer with an encoder on it, kept together for reuse.
type encoder struct {
	buf  bytes.Buffer
	enc  *json.Encoder
	text []byte // of an Appender
}

// encode returns the JSON of a body, which holds until the next call.
func (e *encoder) encode(body any) (text []byte, err error) {
	if own, ok := body.(Appender); ok {
		if text, err = own.AppendJSON(e.text[:0]); err == nil {
			e.text = text
		}
		return text, err //nolint:wrapcheck // send says what was done
	}
	e.buf.Reset()
	if err := e.enc.Encode(body); err != nil {
		return nil, err //nolint:wrapcheck // the same
	}
	return e.buf.Bytes()[:e.buf.Len()-1], nil // without the encoder's newline: a tool returns these very bytes
}

//nolint:gochecknoglobals // a pool holds no state that anybody could see
var encoders = sync.Pool{New: func() any {
	e := &encoder{}
	e.enc = json.NewEncoder(&e.buf)
	e.enc.SetEscapeHTML(false)
	return e
}}

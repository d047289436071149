package rest

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/op"
)

// maxDetails bounds a list of faults; more would tell a caller nothing.
const maxDetails = 20

// maxQuery is the greatest number of query parameters in one request.
const maxQuery = 64

// pairs is a decoded query string in the order of the request.
type pairs []pair

type pair struct{ name, value string }

func (p pairs) get(name string) string {
	for i := range p {
		if p[i].name == name {
			return p[i].value
		}
	}
	return ""
}

// readQuery decodes the query strictly: a parameter that the operation does not declare, one that comes twice or one
// without a value is refused. Ignored, a mistyped filter would quietly return everything.
func (c *call) readQuery() error {
	raw := c.r.URL.RawQuery
	if raw == "" {
		return nil
	}
	var fault *apperr.Error // made with the first fault: most queries have none
	refuse := func(location, message string) {
		if fault == nil {
			fault = apperr.New(apperr.Invalid, "", "The query is not valid.", allowedQuery(c.bound.params))
		}
		fault = fault.At(location, message)
	}
	c.query = make(pairs, 0, min(1+strings.Count(raw, "&"), maxQuery))
	for raw != "" && (fault == nil || len(fault.Details) < maxDetails) {
		var part string
		part, raw, _ = strings.Cut(raw, "&")
		if len(c.query) == maxQuery {
			refuse("query", "too many parameters")
			break
		}
		p, err := decode(part)
		if err != nil {
			refuse("query", "not a valid query string")
			continue
		}
		if message := c.judge(p); message != "" {
			refuse("query."+op.Brief(p.name), message)
			continue
		}
		c.query = append(c.query, p)
	}
	if fault != nil {
		return fault
	}
	return nil
}

func decode(part string) (p pair, err error) {
	name, value, _ := strings.Cut(part, "=")
	if p.name, err = url.QueryUnescape(name); err != nil {
		return p, err
	}
	if p.value, err = url.QueryUnescape(value); err != nil {
		return p, err
	}
	if !utf8.ValidString(p.name) || !utf8.ValidString(p.value) || strings.Contains(part, ";") {
		return p, errors.New("rest: not a query")
	}
	return p, nil
}

// judge says what is wrong with one parameter; empty when nothing is.
func (c *call) judge(p pair) string {
	i := slices.IndexFunc(c.bound.params, func(have parameter) bool { return have.name == p.name })
	switch {
	case i < 0:
		return "unknown parameter"
	case p.value == "":
		return "expected a value; leave the parameter out instead"
	case c.bound.params[i].explode:
		return ""
	case c.query.get(p.name) != "":
		return "expected one value"
	}
	return ""
}

func allowedQuery(params []parameter) string {
	if len(params) == 0 {
		return "Leave the query out: this operation takes no parameters there."
	}
	names := make([]string, len(params))
	for i, p := range params {
		names[i] = p.name
	}
	return "The parameters are: " + strings.Join(names, ", ") + "."
}

// body is a request body in memory.
type body struct {
	data []byte
	at   int
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.at == len(b.data) {
		return 0, io.EOF
	}
	n := copy(p, b.data[b.at:])
	b.at += n
	return n, nil
}

// WriteTo spares io.Copy its buffer of 32 KiB.
func (b *body) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(b.data[b.at:])
	b.at += n
	return int64(n), err
}

// inMemory is a request body whose bytes can be had without copying: what in-process callers send.
type inMemory interface{ Bytes() []byte }

// readBody takes the body into memory, bounded, and walks it strictly.
func (c *call) readBody() error {
	if c.bound.shape == nil {
		return c.noBody()
	}
	data, err := c.load()
	if err != nil {
		return err
	}
	if len(data) == 0 && c.bound.optional {
		return nil
	}
	if err := checkMedia(c.r.Header); err != nil {
		return err
	}
	c.body.data = data
	return c.bound.shape.check(data)
}

// noBody refuses a body with content where the operation takes none. The body of a GET has no meaning (RFC 9110 section
// 9.3.1) and is left unread.
func (c *call) noBody() error {
	if c.r.Method == http.MethodGet || c.r.Method == http.MethodHead || c.r.Body == nil {
		return nil
	}
	data, err := c.load()
	if err != nil {
		return err
	}
	if text := strings.TrimSpace(string(data)); text != "" && text != "{}" {
		return apperr.New(apperr.Invalid, "", "This operation takes no body.", "Send no body.").At("body", "expected nothing")
	}
	return nil
}

func (c *call) load() ([]byte, error) {
	if c.r.Body == nil {
		return nil, nil
	}
	if m, ok := c.r.Body.(inMemory); ok {
		if data := m.Bytes(); len(data) <= MaxBody {
			return data, nil
		}
		return nil, tooLarge()
	}
	data, err := io.ReadAll(io.LimitReader(c.r.Body, MaxBody+1))
	if err != nil {
		if ended := c.r.Context().Err(); ended != nil {
			return nil, fmt.Errorf("read body: %w", ended)
		}
		return nil, apperr.New(apperr.Invalid, "", "The body ended early.", "Repeat the request.").Because(err)
	}
	if len(data) > MaxBody {
		return nil, tooLarge()
	}
	return data, nil
}

func tooLarge() error {
	return apperr.New(apperr.TooLarge, "", fmt.Sprintf("The body is over %d bytes.", MaxBody), "Send less at once.")
}

// checkMedia wants JSON, named: a page of another origin can post text/plain without a preflight. A body that is called coded is
// refused whatever it is (RFC 9110 section 8.4): something before us may have looked at other bytes than we would.
func checkMedia(h http.Header) error {
	if coding := h["Content-Encoding"]; len(coding) > 0 && (len(coding) > 1 || !strings.EqualFold(coding[0], "identity")) {
		return apperr.New(apperr.UnsupportedMedia, "", "The body must not be compressed.", "Send it without Content-Encoding.")
	}
	value := h.Get("Content-Type")
	if value == "application/json" {
		return nil
	}
	media, params, err := mime.ParseMediaType(value)
	charset, named := params["charset"]
	if err != nil || media != "application/json" || (named && !strings.EqualFold(charset, "utf-8")) {
		return apperr.New(apperr.UnsupportedMedia, "", "The body must be JSON.", "Send Content-Type: application/json.")
	}
	return nil
}

// invalid turns huma's verdict into ours. The values that huma adds are left out: one of them may be a secret.
func invalid(refused *huma.ErrorModel, o *op.Operation) error {
	e := apperr.New(apperr.Invalid, "", "The input is not valid.", "Correct what errors names and repeat the call.")
	if refused.Status == http.StatusBadRequest && len(refused.Errors) == 0 {
		return e.At("body", "expected a JSON object")
	}
	for _, d := range refused.Errors[:min(len(refused.Errors), maxDetails)] {
		location := d.Location
		if location == "" {
			location = o.Name
		}
		e = e.At(location, clean(d.Message))
	}
	return e
}

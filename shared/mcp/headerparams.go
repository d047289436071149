package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// HeaderParams is what of a tool's arguments its calls repeat in Mcp-Param-* headers (MCP 2026-07-28, transports, "Custom Headers from
// Tool Parameters").
type HeaderParams struct {
	params []headerParam
}

// headerParam is one property with x-mcp-header.
type headerParam struct {
	key  string   // canonical header name
	path []string // names of properties from the root of the arguments
}

const headerKeyword = "x-mcp-header"

// ParseHeaderParams reads the x-mcp-header annotations of an input schema; nil when it has none. An error is a tool that conforming clients leave
// out of the list: a server calls this for each of its tools when it starts. The schema is only read: it goes to clients verbatim, and no $ref is
// followed.
func ParseHeaderParams(inputSchema json.RawMessage) (*HeaderParams, error) {
	var f frame
	if parse(&f, inputSchema, nil); f.fault >= notObject || !isObject(bytes.TrimSpace(inputSchema)) {
		return nil, errors.New("mcp: the input schema is not a JSON object of at most 64 levels")
	}
	h := &HeaderParams{}
	if err := h.walk(inputSchema, nil, true); err != nil {
		return nil, fmt.Errorf("mcp: %s: %w", headerKeyword, err)
	}
	if len(h.params) == 0 {
		return nil, nil //nolint:nilnil // almost every schema
	}
	return h, nil
}

// walk reads a schema. reachable: a chain of properties alone leads here.
func (h *HeaderParams) walk(schema []byte, path []string, reachable bool) (err error) {
	eachMember(schema, func(name, value []byte) {
		if err != nil {
			return
		}
		switch string(name) {
		case headerKeyword:
			if !reachable || len(path) == 0 {
				err = fmt.Errorf("at %q: only on properties that properties alone lead to", path)
				return
			}
			err = h.add(schema, value, path)
		case "properties":
			err = h.walkNamed(value, path, reachable)
		case "$defs", "definitions", "patternProperties", "dependentSchemas":
			err = h.walkNamed(value, path, false)
		case "const", "enum", "default", "examples", "dependentRequired", "required": // data, not schemas
		default:
			err = h.walkAny(value, path)
		}
	})
	return err
}

// walkNamed reads an object whose member names are not keywords.
func (h *HeaderParams) walkNamed(schemas []byte, path []string, reachable bool) (err error) {
	eachMember(schemas, func(name, value []byte) {
		if err == nil {
			err = h.walk(value, append(slices.Clone(path), string(name)), reachable)
		}
	})
	return err
}

// walkAny reads what stands under any other keyword: a schema, an array of schemas, or neither.
func (h *HeaderParams) walkAny(value []byte, path []string) error {
	err := h.walk(value, path, false)
	eachElement(value, func(e []byte) {
		if err == nil {
			err = h.walkAny(e, path)
		}
	})
	return err
}

// add checks one annotation.
func (h *HeaderParams) add(schema, value []byte, path []string) error {
	name := string(unquote(value))
	if !isText(value) || !isToken(name) {
		return fmt.Errorf("at %q: must be a header name", path)
	}
	switch kind := string(unquote(soleMember(schema, "type"))); kind {
	case "string", "integer", "boolean":
	default: // number is not permitted: its text has many forms
		return fmt.Errorf("at %q: only on a string, an integer or a boolean, not %q", path, kind)
	}
	p := headerParam{textproto.CanonicalMIMEHeaderKey("Mcp-Param-" + name), path}
	for _, o := range h.params {
		if strings.EqualFold(o.key, p.key) {
			return fmt.Errorf("at %q: %s is taken by %q", path, name, o.path)
		}
	}
	h.params = append(h.params, p)
	return nil
}

// Names returns the header names in the order of the schema.
func (h *HeaderParams) Names() []string {
	if h == nil {
		return nil
	}
	names := make([]string, len(h.params))
	for i, p := range h.params {
		names[i] = p.key
	}
	return names
}

// mismatch names the first header that does not repeat its argument, empty when all do.
func (h *HeaderParams) mismatch(header http.Header, arguments []byte) string {
	for _, p := range h.params {
		if !p.agrees(header, arguments) {
			return p.key
		}
	}
	return ""
}

// agrees: MCP 2026-07-28, transports, "Server Behavior for Custom Headers". A value that has no text (null, an object, an array) or is not there
// must have no header either: a proxy would have acted on something that the tool never sees.
func (p headerParam) agrees(header http.Header, arguments []byte) bool {
	value := arguments
	for _, name := range p.path {
		v, times := member(value, name)
		if times > 1 {
			return false // which of the two a tool takes is up to its decoder
		}
		value = v
	}
	_, present := header[p.key]
	switch {
	case isText(value), isNumber(value), string(value) == "true", string(value) == "false":
	default:
		return !present
	}
	got, ok := sole(header, p.key)
	if ok {
		got, ok = decodeValue(got)
	}
	if !ok || !utf8.ValidString(got) {
		return false
	}
	switch {
	case isText(value):
		return got == string(unquote(value))
	case isNumber(value):
		return sameNumber(got, string(value))
	}
	return got == string(value)
}

// sameNumber compares integers by value (MCP 2026-07-28, transports, "Server Validation": SHOULD compare numerically) and anything else, which
// no annotated parameter may be, by its text.
func sameNumber(a, b string) bool {
	m, mok := integer(a)
	n, nok := integer(b)
	if mok && nok {
		return m == n
	}
	return a == b
}

// integer reads a JSON number that is an integer within JavaScript's safe range, exactly: 42, 42.0, 4.2e1.
func integer(text string) (int64, bool) {
	s := scanner{b: []byte(text)}
	if !isNumber(s.b) || !s.number() || s.i != len(text) || len(text) > 64 {
		return 0, false
	}
	mantissa, exponent, scaled := strings.Cut(strings.ToLower(strings.TrimPrefix(text, "-")), "e")
	shift := 0
	if scaled {
		n, err := strconv.Atoi(exponent)
		if err != nil {
			return 0, false
		}
		shift = n
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimRight(whole+fraction, "0")
	if digits == "" {
		return 0, true
	}
	shift += len(whole) - len(digits)
	if shift < 0 || shift > 16 {
		return 0, false
	}
	n, err := strconv.ParseInt(digits+strings.Repeat("0", shift), 10, 64)
	const safe = 1<<53 - 1
	if err != nil || n > safe {
		return 0, false
	}
	if text[0] == '-' {
		n = -n
	}
	return n, true
}

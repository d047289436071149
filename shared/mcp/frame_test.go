package mcp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// pair is a member as encoding/json reads it.
type pair struct {
	name  string
	value json.RawMessage
}

// pairs reads the members of an object in order, all of them.
func pairs(t *testing.T, raw []byte) []pair {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	var out []pair
	for d.More() {
		name, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			t.Fatal(err)
		}
		out = append(out, pair{name.(string), value})
	}
	return out
}

// first is the first member of each name; twice and many say what the scan must refuse.
func first(ps []pair) (m map[string][]byte, twice, many bool) {
	m = map[string][]byte{}
	for _, p := range ps {
		if _, ok := m[p.name]; ok {
			twice = true
			continue
		}
		m[p.name] = p.value
	}
	return m, twice, len(m) > maxMembers
}

// depthOf is the nesting of valid JSON.
func depthOf(b []byte) int {
	depth, deepest, inText := 0, 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}

var idRule = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`) //nolint:gochecknoglobals // constant

// FuzzFrame holds the scan against encoding/json: what is valid, what is found, what is ambiguous.
func FuzzFrame(f *testing.F) {
	seeds(f, func(b []byte) { f.Add(b) })
	f.Fuzz(checkFrame)
}

func checkFrame(t *testing.T, body []byte) {
	t.Helper()
	var got frame
	parse(&got, body, nil)
	valid := utf8.Valid(body) && json.Valid(body)
	if valid && depthOf(body) > maxDepth {
		if got.fault != tooDeep {
			t.Fatalf("fault %d for a body of depth %d", got.fault, depthOf(body))
		}
		return
	}
	if (got.fault < tooDeep) != valid {
		t.Fatalf("scan says %d, encoding/json says %v: %q", got.fault, valid, body)
	}
	if !valid {
		return
	}
	trimmed := bytes.TrimLeft(body, " \t\r\n")
	if (trimmed[0] == '{') != (got.fault != notObject) || (trimmed[0] == '[') != got.batch {
		t.Fatalf("fault %d, batch %v: %q", got.fault, got.batch, body)
	}
	if trimmed[0] == '{' {
		checkObject(t, &got, trimmed)
	}
}

func checkObject(t *testing.T, got *frame, body []byte) {
	t.Helper()
	outer, twice, many := first(pairs(t, body))
	var params, meta map[string][]byte
	if isObject(outer["params"]) {
		var t2, m2 bool
		params, t2, m2 = first(pairs(t, outer["params"]))
		twice, many = twice || t2, many || m2
	}
	if isObject(params["_meta"]) {
		var t2, m2 bool
		meta, t2, m2 = first(pairs(t, params["_meta"]))
		twice, many = twice || t2, many || m2
	}
	switch {
	case many:
		if got.fault < crowded {
			t.Fatal("too many members passed")
		}
	case twice != (got.fault == duplicate), !twice && got.fault != sound:
		t.Fatalf("fault %d, duplicates %v: %q", got.fault, twice, body)
	}
	for name, c := range map[string]struct{ got, want []byte }{
		"jsonrpc": {got.rpc, outer["jsonrpc"]}, "id": {got.id, outer["id"]}, "method": {got.method, outer["method"]}, "params": {got.params, outer["params"]},
		"_meta": {got.meta, params["_meta"]}, "name": {got.name, params["name"]}, "uri": {got.uri, params["uri"]}, "arguments": {got.arguments, params["arguments"]},
		"cursor": {got.cursor, params["cursor"]}, "offered": {got.offered, params["protocolVersion"]},
		"inputResponses": {got.answers, params["inputResponses"]}, "requestState": {got.state, params["requestState"]},
		"ref": {got.ref, params["ref"]}, "argument": {got.argument, params["argument"]}, "context": {got.context, params["context"]},
		"version":      {got.version, meta["io.modelcontextprotocol/protocolVersion"]},
		"capabilities": {got.capabilities, meta["io.modelcontextprotocol/clientCapabilities"]},
		"clientInfo":   {got.clientInfo, meta["io.modelcontextprotocol/clientInfo"]},
		"logLevel":     {got.logLevel, meta["io.modelcontextprotocol/logLevel"]}, "progress": {got.progress, meta["progressToken"]},
	} {
		if !bytes.Equal(c.got, c.want) || (c.got == nil) != (c.want == nil) {
			t.Fatalf("%s: scan %q, encoding/json %q: %q", name, c.got, c.want, body)
		}
		var s string
		if isText(c.want) && (json.Unmarshal(c.want, &s) != nil || s != string(unquote(c.got))) {
			t.Fatalf("%s: text %q, encoding/json %q", name, unquote(c.got), s)
		}
	}
	_, hasResult := outer["result"]
	_, hasError := outer["error"]
	if hasResult != got.hasResult || hasError != got.hasError {
		t.Fatalf("result %v, error %v: %q", got.hasResult, got.hasError, body)
	}
	if validID(got.id) != (isText(got.id) || idRule.Match(got.id)) {
		t.Fatalf("id %q: valid %v", got.id, validID(got.id))
	}
}

// seeds feeds the committed corpus of requests: one message a line.
func seeds(f *testing.F, add func([]byte)) {
	f.Helper()
	b, err := os.ReadFile("testdata/frames.txt")
	lines := bytes.Split(b, []byte("\n"))
	if err != nil || len(lines) < 40 {
		f.Fatalf("%d seeds, %v: the corpus moved", len(lines), err)
	}
	for _, line := range lines {
		add(line)
	}
	files, err := filepath.Glob("testdata/schema/2026-07-28/examples/*Request/*.json")
	if err != nil || len(files) < 5 {
		f.Fatalf("%d official requests, %v: the corpus moved", len(files), err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		add(b)
	}
}

func TestFrameBounds(t *testing.T) {
	members := func(n int) string {
		return strings.TrimSuffix(strings.Repeat(`"@":1,`, n), ",")
	}
	unique := func(n int) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(`"k` + strings.Repeat("x", i) + `":1`)
		}
		return b.String()
	}
	for name, c := range map[string]struct {
		body string
		want fault
	}{
		"256 members":               {"{" + unique(256) + "}", sound},
		"257 members":               {"{" + unique(257) + "}", crowded},
		"257 params":                {`{"params":{` + unique(257) + "}}", crowded},
		"257 in arguments":          {`{"params":{"arguments":{` + unique(257) + "}}}", sound},
		"same name often":           {"{" + members(300) + "}", duplicate},
		"duplicate, then broken":    {`{"a":1,"a":2`, malformed},
		"duplicate, then too deep":  {`{"a":1,"a":` + strings.Repeat("[", 64), tooDeep},
		"nested params are skipped": {`{"params":{"x":{"_meta":{"a":1,"a":2}}}}`, sound},
		"NUL after the message":     {"{}\x00", malformed},
		"NUL instead of a message":  {"\x00", malformed},
	} {
		var f frame
		parse(&f, []byte(c.body), nil)
		if f.fault != c.want {
			t.Errorf("%s: fault %d, want %d", name, f.fault, c.want)
		}
	}
}

// FuzzHeaderValue: a decoded value is what the client encoded, and one value has one encoding.
func FuzzHeaderValue(f *testing.F) {
	for _, s := range []string{"", "echo", "=?base64?ZWNobw==?=", "=?base64??=", "=?base64?=", "=?base64?ZWNobw?=", "=?base64?ZW\nNobw==?=", "=?base64?ZWNobx==?=", " x ", "ñ", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		encoded := sentinelOpen + base64.StdEncoding.EncodeToString([]byte(s)) + sentinelClose
		if got, ok := decodeValue(encoded); !ok || got != s {
			t.Fatalf("decode(encode(%q)) = %q, %v", s, got, ok)
		}
		got, ok := decodeValue(s)
		if ok && got != s && sentinelOpen+base64.StdEncoding.EncodeToString([]byte(got))+sentinelClose != s {
			t.Fatalf("%q is a second spelling of %q", s, got)
		}
		h := http.Header{headerName: {s}}
		if v, ok := sole(h, headerName); ok && (strings.TrimFunc(v, func(r rune) bool { return r == ' ' || r == '\t' }) != v || !utf8.ValidString(v)) {
			t.Fatalf("sole(%q) = %q", s, v)
		}
		if mirrors(h, headerName, []byte(s), false) && strings.ContainsAny(s, "\r\n\x00") {
			t.Fatalf("%q was accepted as a header", s)
		}
	})
}

func TestSole(t *testing.T) {
	for name, c := range map[string]struct {
		values []string
		want   string
		ok     bool
	}{
		"absent":         {nil, "", false},
		"one":            {[]string{"a"}, "a", true},
		"empty":          {[]string{""}, "", true},
		"white space":    {[]string{" \ta b\t "}, "a b", true},
		"two":            {[]string{"a", "a"}, "", false},
		"control":        {[]string{"a\x01"}, "", false},
		"line break":     {[]string{"a\nb"}, "", false},
		"delete":         {[]string{"a\x7f"}, "", false},
		"not ASCII":      {[]string{"\xc3\xb1"}, "", false},
		"inner tab":      {[]string{"a\tb"}, "a\tb", true},
		"printable edge": {[]string{"!~"}, "!~", true},
	} {
		if got, ok := sole(http.Header{"X": c.values}, "X"); got != c.want || ok != c.ok {
			t.Errorf("%s: %q, %v, want %q, %v", name, got, ok, c.want, c.ok)
		}
	}
}

// TestEdges: a new kind can't miss the table.
func TestEdges(t *testing.T) {
	for _, k := range apperr.Kinds() {
		row, ok := edges[k]
		if !ok || row.stateless == 0 || row.legacy == 0 || row.code == 0 {
			t.Errorf("%s has no row", k)
		}
	}
	if len(edges) != len(apperr.Kinds()) {
		t.Errorf("%d rows for %d kinds", len(edges), len(apperr.Kinds()))
	}
}

// TestFailureByKind: what a dependency's error becomes. Statuses about the HTTP request itself can't come from behind it.
func TestFailureByKind(t *testing.T) {
	s := &Server{challenger: bare{}, outage: defaultOutage, platformID: nil, rand: strings.NewReader(strings.Repeat("x", 1000))}
	want := map[apperr.Kind][2]int{
		apperr.Internal: {500, -32603}, apperr.Invalid: {200, -32602}, apperr.NotFound: {200, -32602}, apperr.Conflict: {200, -32602},
		apperr.Stale: {200, -32602}, apperr.Unauthenticated: {401, -32600}, apperr.Forbidden: {403, -32600}, apperr.MethodNotAllowed: {500, -32603},
		apperr.UnsupportedMedia: {500, -32603}, apperr.TooLarge: {500, -32603}, apperr.RateLimited: {429, -32603}, apperr.Unavailable: {503, -32603},
	}
	for _, k := range apperr.Kinds() {
		x := &exchange{passing: passing{version: V20260728, r: &http.Request{}}}
		r := s.failure(x, apperr.New(k, "", "public", "fix"))
		if got := [2]int{r.status, r.code}; got != want[k] {
			t.Errorf("%s: %v, want %v", k, got, want[k])
		}
		var doc map[string]any
		if err := json.Unmarshal(r.appendError(nil, []byte("1")), &doc); err != nil {
			t.Errorf("%s: %v: %s", k, err, r.appendError(nil, []byte("1")))
		}
		if (k == apperr.RateLimited || k == apperr.Unavailable) != (r.retry > 0) {
			t.Errorf("%s: retry %v", k, r.retry)
		}
	}
}

// bare challenges with a value that JSON can't hold.
type bare struct{}

func (bare) Challenge(string, []string) (string, map[string]any) {
	return "Bearer", map[string]any{"f": func() {}, "code": "x", "ok": 1}
}

func TestEscaping(t *testing.T) {
	for _, s := range []string{"", `"`, `\`, "a\x00\x1f\n\r\t\b\f", "ñ😀\u2028", `plain "quoted" \ text`, "\x7f</script>"} {
		var back string
		if err := json.Unmarshal(appendQuoted(nil, s), &back); err != nil || back != s {
			t.Errorf("%q came back as %q, %v", s, back, err)
		}
	}
	if got := string(appendQuoted(nil, "a\xff")); got != "\"a\uFFFD\"" {
		t.Errorf("not UTF-8: %s", got)
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		s    string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abcd", 3, "abc"}, {"aañ", 3, "aa"}, {"😀", 3, ""}, {"", 0, ""}} {
		if got := cut(c.s, c.n); got != c.want {
			t.Errorf("cut(%q, %d) = %q, want %q", c.s, c.n, got, c.want)
		}
	}
}

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST:1": true, "127.0.0.1": true, "127.8.9.1:65535": true, "[::1]": true, "[::1]:80": true,
		"": false, "localhost.": false, "a.localhost": false, "localhost:1@evil.example": false, "localhost:x": false, "localhost:99999": false,
		"localhost/": false, "127.0.0.1.evil.example": false, "0.0.0.0": false, "[::]": false, "127.1": false, "0x7f.0.0.1": false, "10.0.0.1": false,
	} {
		if got := isLoopback(host); got != want {
			t.Errorf("isLoopback(%q) = %v, want %v", host, got, want)
		}
	}
}

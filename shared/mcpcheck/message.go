package mcpcheck

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

const (
	jsonType    = "application/json"
	eventStream = "text/event-stream"
)

// answer is what came back.
type answer struct {
	status   int
	header   http.Header
	media    string
	body     []byte // of anything but a stream
	messages []message
	err      error // nothing usable came back
}

// message is one JSON-RPC message; raw members, so that ids are compared as they were written.
type message struct {
	id     json.RawMessage
	method string
	result map[string]json.RawMessage // nil: none
	failed *rpcError
}

type rpcError struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

// parseMessage reads one message; nil is anything else. Names are compared exactly, which decoding into a struct would not.
func parseMessage(text []byte) *message {
	var m map[string]json.RawMessage
	if json.Unmarshal(text, &m) != nil || m == nil || str(m["jsonrpc"]) != "2.0" {
		return nil
	}
	out := &message{id: m["id"], method: str(m["method"]), result: object(m["result"])}
	if raw := m["error"]; raw != nil {
		var e rpcError
		fields := object(raw)
		if json.Unmarshal(fields["code"], &e.Code) != nil || json.Unmarshal(fields["message"], &e.Message) != nil {
			return nil
		}
		e.Data = fields["data"]
		out.failed = &e
	}
	if (out.result != nil) == (out.failed != nil) && out.method == "" {
		return nil
	}
	return out
}

func (m *message) isResponse() bool { return m.result != nil || m.failed != nil }

func readBody(body []byte) []message {
	if m := parseMessage(body); m != nil {
		return []message{*m}
	}
	return nil
}

// readStream reads server-sent events (WHATWG HTML, section 9.2.6) until the response: some servers leave the stream open.
func readStream(r io.Reader) (list []message, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxBody)
	lines.Split(eventLines)
	var data []byte
	for first := true; lines.Scan(); first = false {
		line := lines.Bytes()
		if first {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		if len(line) == 0 {
			if m := parseMessage(data); m != nil {
				list = append(list, *m)
				if m.isResponse() {
					return list, nil
				}
			}
			data = data[:0]
			continue
		}
		if value, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(append(data, bytes.TrimPrefix(value, []byte(" "))...), '\n')
		}
	}
	return list, lines.Err()
}

// eventLines splits at CR LF, LF or CR.
func eventLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	at := bytes.IndexAny(data, "\r\n")
	switch {
	case at < 0 && atEOF && len(data) > 0:
		return len(data), data, nil
	case at < 0:
		return 0, nil, nil
	case data[at] == '\r' && at+1 == len(data) && !atEOF:
		return 0, nil, nil // an LF may follow
	case data[at] == '\r' && at+1 < len(data) && data[at+1] == '\n':
		return at + 2, data[:at], nil
	}
	return at + 1, data[:at], nil
}

// response is the message that answers; nil when there is none.
func (a *answer) response() *message {
	for i := range a.messages {
		if a.messages[i].isResponse() {
			return &a.messages[i]
		}
	}
	return nil
}

// result is the result's members; nil when the answer is no result.
func (a *answer) result() map[string]json.RawMessage {
	if a == nil || a.err != nil {
		return nil
	}
	if m := a.response(); m != nil {
		return m.result
	}
	return nil
}

// code is the JSON-RPC error code; 0 when the answer is no error.
func (a *answer) code() int64 {
	if m := a.response(); m != nil && m.failed != nil {
		return m.failed.Code
	}
	return 0
}

// data is the members of the error's data.
func (a *answer) data() map[string]json.RawMessage {
	if m := a.response(); m != nil && m.failed != nil {
		return object(m.failed.Data)
	}
	return nil
}

// words describes an answer shortly.
func (a *answer) words() string {
	if a.err != nil {
		return "no answer: " + a.err.Error()
	}
	said := "no JSON-RPC message"
	switch m := a.response(); {
	case m != nil && m.failed != nil:
		said = fmt.Sprintf("error %d %q", m.failed.Code, m.failed.Message)
	case m != nil:
		said = "a result"
	case len(a.body) == 0 && a.media != eventStream:
		said = "no body"
	case a.media != jsonType && a.media != eventStream:
		said += ", " + a.media
	}
	return fmt.Sprintf("%d, %s", a.status, said)
}

// document describes an answer that is no JSON-RPC.
func (a *answer) document() string {
	if a.err != nil {
		return a.words()
	}
	return fmt.Sprintf("%d, %s", a.status, cmp.Or(a.media, "no content type"))
}

// wants expects this status with this error.
func wants(status int, code int64) func(answer) (Status, string) {
	return func(a answer) (Status, string) {
		if a.status == status && a.code() == code {
			return Pass, ""
		}
		return Fail, ""
	}
}

func object(raw json.RawMessage) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m
}

func str(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

func texts(raw json.RawMessage) []string {
	var list []string
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}

// challengeParam finds a parameter of a challenge (RFC 9110 section 11.6.1), in whichever of several challenges it stands.
func challengeParam(header, name string) (value string, ok bool) {
	for i := 0; i+len(name) <= len(header); i++ {
		if !strings.EqualFold(header[i:i+len(name)], name) || i > 0 && strings.IndexByte(" \t,", header[i-1]) < 0 {
			continue
		}
		if rest, found := strings.CutPrefix(strings.TrimLeft(header[i+len(name):], " \t"), "="); found {
			return challengeValue(strings.TrimLeft(rest, " \t")), true
		}
	}
	return "", false
}

// challengeValue reads a token or a quoted-string.
func challengeValue(s string) string {
	if !strings.HasPrefix(s, `"`) {
		if end := strings.IndexAny(s, ", \t"); end >= 0 {
			return s[:end]
		}
		return s
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String()
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
)

// Revisions of the two eras.
const (
	stateless = "2026-07-28"
	handshake = "2025-06-18"
)

// request is one JSON-RPC call as a client sends it.
type request struct {
	version, method, name, arguments string
	token                            string
}

func (q request) body() []byte {
	params := ""
	if q.name != "" {
		params = `"name":"` + q.name + `","arguments":` + q.arguments
	}
	if q.version == stateless {
		if params != "" {
			params += ","
		}
		params += `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
			`"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0.0"},"io.modelcontextprotocol/clientCapabilities":{}}`
	}
	return []byte(`{"jsonrpc":"2.0","id":7,"method":"` + q.method + `","params":{` + params + `}}`)
}

// header is in canonical form, as net/http hands it over.
func (q request) header() http.Header {
	h := http.Header{
		"Accept": {"application/json, text/event-stream"}, "Content-Type": {"application/json"}, "User-Agent": {"bench/1.0"},
		"Mcp-Protocol-Version": {q.version}, "Content-Length": {strconv.Itoa(len(q.body()))},
	}
	if q.token != "" {
		h["Authorization"] = []string{"Bearer " + q.token}
	}
	if q.version == stateless {
		h["Mcp-Method"] = []string{q.method}
		if q.name != "" {
			h["Mcp-Name"] = []string{q.name}
		}
	}
	return h
}

// sink takes a reply as net/http does, into a buffer that is used again.
type sink struct {
	h      http.Header
	status int
	body   []byte
}

// Header is the reply's.
func (s *sink) Header() http.Header { return s.h }

// WriteHeader keeps the status.
func (s *sink) WriteHeader(status int) { s.status = status }

// Write copies, as a connection's buffer does.
func (s *sink) Write(p []byte) (int, error) {
	s.body = append(s.body, p...)
	return len(p), nil
}

// Flush has nothing to flush.
func (s *sink) Flush() {}

func (s *sink) reset() {
	clear(s.h)
	s.status, s.body = http.StatusOK, s.body[:0]
}

type reader struct{ bytes.Reader }

// Close is nothing.
func (*reader) Close() error { return nil }

// poster sends the same request to a handler again and again.
type poster struct {
	handler http.Handler
	request *http.Request
	reader  *reader
	body    []byte
	reply   *sink
}

// newPoster sends the request once and refuses a reply that is not a good result: the speed of a refusal says nothing.
func newPoster(h http.Handler, q request) (*poster, error) {
	body := q.body()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://localhost/mcp", nil)
	if err != nil {
		return nil, err
	}
	r.Header, r.ContentLength, r.RemoteAddr, r.RequestURI = q.header(), int64(len(body)), "127.0.0.1:40000", "/mcp"
	p := &poster{handler: h, request: r, reader: &reader{}, body: body, reply: &sink{h: http.Header{}}}
	p.send()
	text := p.reply.body
	var reply struct {
		Result struct {
			IsError bool `json:"isError"`
		} `json:"result"`
	}
	if err := json.Unmarshal(text, &reply); err != nil || p.reply.status != http.StatusOK || reply.Result.IsError || !bytes.Contains(text, []byte(`"result"`)) {
		return nil, fmt.Errorf("%s %s in %s answers %d %.300s", q.method, q.name, q.version, p.reply.status, text)
	}
	return p, nil
}

func (p *poster) send() {
	p.reply.reset()
	p.reader.Reset(p.body)
	p.request.Body = p.reader
	p.handler.ServeHTTP(p.reply, p.request)
}

// answer is a copy of the last reply.
func (p *poster) answer() []byte { return slices.Clone(p.reply.body) }

// frame is what the floor decodes: the whole request, nothing checked, nothing but the arguments looked into.
type frame struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  struct {
		Meta      json.RawMessage `json:"_meta"`
		Name      string          `json:"name"`
		Arguments map[string]any  `json:"arguments"`
	} `json:"params"`
}

// floor decodes the request with encoding/json and writes these bytes: no HTTP, no checks, no token.
func floor(request, reply []byte) func() {
	out := make([]byte, 0, len(reply))
	in := bytes.NewReader(nil)
	return func() {
		var f frame
		in.Reset(request)
		if err := json.NewDecoder(in).Decode(&f); err != nil {
			panic(err) // our own constant
		}
		out = append(out[:0], reply...)
	}
}

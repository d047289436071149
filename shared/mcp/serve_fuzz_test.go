package mcp_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
)

// FuzzServeHTTP sends arbitrary bytes with arbitrary headers: no panic, and the answer is one JSON-RPC message, or empty with
// 202 or 204.
func FuzzServeHTTP(f *testing.F) {
	b, err := os.ReadFile("testdata/frames.txt")
	lines := bytes.Split(b, []byte("\n"))
	if err != nil || len(lines) < 40 {
		f.Fatalf("%d seeds, %v: the corpus moved", len(lines), err)
	}
	for i, line := range lines {
		version := []string{"2026-07-28", "", "2025-11-25", "1999-01-01"}[i%4]
		f.Add("POST", line, version, "tools/call", "echo", "application/json", "", i%3 == 0)
		f.Add("POST", line, "2026-07-28", "tools/call", "=?base64?ZWNobw==?=", "application/json; charset=utf-8", "https://buzon.test", true)
	}
	for _, body := range offered() {
		var m struct {
			Method string
			Params struct{ Name, URI string }
		}
		if err := json.Unmarshal([]byte(body), &m); err != nil {
			f.Fatal(err)
		}
		f.Add("POST", []byte(body), "2026-07-28", m.Method, m.Params.Name+m.Params.URI, "application/json", "", true)
	}
	f.Add("OPTIONS", []byte{}, "", "", "", "", "https://buzon.test", false)
	f.Fuzz(func(t *testing.T, method string, body []byte, version, rpc, name, media, origin string, token bool) {
		req := httptest.NewRequest(http.MethodPost, "/mcp", bytes.NewReader(body))
		req.Method = method
		for k, v := range map[string]string{"Mcp-Protocol-Version": version, "Mcp-Method": rpc, "Mcp-Name": name, "Content-Type": media, "Origin": origin} {
			if v != "" {
				req.Header[k] = []string{v}
			}
		}
		req.Header.Set("Accept", "application/json, text/event-stream")
		if token {
			req.Header.Set("Authorization", "Bearer good")
		}
		r := newRig(t, nil)
		w := httptest.NewRecorder()
		r.ServeHTTP(w, req)
		if bytes.Contains(r.log.Bytes(), []byte(`"stack"`)) && !bytes.Contains(r.log.Bytes(), []byte("canary")) {
			t.Fatalf("panic: %s", r.log)
		}
		if w.Code == 202 || w.Code == 204 {
			if w.Body.Len() > 0 {
				t.Fatalf("%d with a body", w.Code)
			}
			return
		}
		checkAnswer(t, w, body)
	})
}

// offered are well-formed requests of the methods that look into their params.
func offered() []string {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"url":{},"form":{}},"roots":{},"sampling":{"tools":{},"context":{}}},"progressToken":7}`
	var out []string
	for _, p := range []string{
		`resources/list","params":{"cursor":"y_lk9x3HBFEAAVGAMg",`, `resources/templates/list","params":{`, `resources/read","params":{"uri":"test://asks","inputResponses":{"who":{"action":"accept","content":{"name":"Ada"}}},`,
		`prompts/list","params":{"cursor":"",`, `prompts/get","params":{"name":"kinds",`, `prompts/get","params":{"name":"greet","arguments":{"name":"a"},`,
		`prompts/get","params":{"name":"asks","inputResponses":{"roots":{"roots":[{"uri":"file:///"}]}},`,
		`completion/complete","params":{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"name","value":""},"context":{"arguments":{"tone":"x"}},`,
		`tools/call","params":{"name":"many","inputResponses":{"think":{"role":"user","model":"m","content":[{"type":"text","text":"x"}]}},"requestState":"x",`,
		`tools/call","params":{"name":"delete","arguments":{"b":1,"a":[{}]},`, `tools/call","params":{"name":"login",`, `tools/call","params":{"name":"think",`,
		`tools/call","params":{"name":"progress","arguments":{"steps":["1","2","log x"]},`, `tools/call","params":{"name":"region","arguments":{"level":1.0},`,
	} {
		out = append(out, `{"jsonrpc":"2.0","id":1,"method":"`+p+meta+`}}`)
	}
	return out
}

func checkAnswer(t *testing.T, w *httptest.ResponseRecorder, sent []byte) {
	t.Helper()
	body := w.Body.Bytes()
	if w.Header().Get("Content-Type") == "text/event-stream" {
		events := bytes.Split(bytes.TrimSuffix(body, []byte("\n\n")), []byte("\n\n"))
		for _, e := range events[:len(events)-1] {
			if !bytes.HasPrefix(e, []byte(`data: {"jsonrpc":"2.0","method":"notifications/`)) || !json.Valid(e[6:]) {
				t.Fatalf("event %q", e)
			}
		}
		body = bytes.TrimPrefix(events[len(events)-1], []byte("data: "))
	}
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		t.Fatalf("not JSON: %v: %q", err, w.Body)
	}
	if m.JSONRPC != "2.0" || (m.Result == nil) == (m.Error == nil) {
		t.Fatalf("not a response: %s", w.Body)
	}
	if len(m.ID) > 0 && !bytes.Contains(sent, m.ID) {
		t.Fatalf("id %s was not sent", m.ID)
	}
	if m.Result != nil && (w.Code != 200 || m.ID == nil) {
		t.Fatalf("%d with a result: %s", w.Code, w.Body)
	}
	if bytes.ContainsAny(body, "\r\n") {
		t.Fatalf("more than one line: %q", w.Body)
	}
}

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
	f.Add("OPTIONS", []byte{}, "", "", "", "", "https://buzon.test", false)
	f.Fuzz(func(t *testing.T, method string, body []byte, version, rpc, name, media, origin string, token bool) {
		req := httptest.NewRequest(http.MethodPost, "/mcp", bytes.NewReader(body))
		req.Method = method
		for k, v := range map[string]string{"Mcp-Protocol-Version": version, "Mcp-Method": rpc, "Mcp-Name": name, "Content-Type": media, "Origin": origin} {
			if v != "" {
				req.Header[k] = []string{v}
			}
		}
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

func checkAnswer(t *testing.T, w *httptest.ResponseRecorder, sent []byte) {
	t.Helper()
	var m message
	if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil {
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
	if bytes.ContainsAny(w.Body.Bytes(), "\r\n") {
		t.Fatalf("more than one line: %q", w.Body)
	}
}

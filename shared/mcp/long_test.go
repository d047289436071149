package mcp_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/mcp"
)

// TestLongReply: from some length on structuredContent is written apart; what a client reads is the same on both sides of it, in
// each revision.
func TestLongReply(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25", "2025-03-26"} {
		for _, size := range []int{0, 900, 1000, 1010, 1013, 1014, 1015, 1016, 1017, 1024, 1100, 20_000} {
			text := `{"data":"` + strings.Repeat("x", size) + `"}`
			s, err := mcp.New(mcp.Deps{Authenticator: door{}, Challenger: door{}, Limiter: &meter{}, Tools: fixed{call: &mcp.CallResult{
				JSON: []byte(text), Meta: []byte(`"k":["/data"]`),
			}}}, mcp.Options{Name: "n", Version: "1"})
			if err != nil {
				t.Fatal(err)
			}
			result := callOnce(t, s, version)
			if len(result.Content) != 1 || result.Content[0].Text != text {
				t.Fatalf("%s, %d: the text is %.80v", version, size, result.Content)
			}
			if want := version != "2025-03-26"; want && string(result.Structured) != text || !want && result.Structured != nil {
				t.Errorf("%s, %d: structuredContent is %.80s", version, size, result.Structured)
			}
			if string(result.Meta["k"]) != `["/data"]` {
				t.Errorf("%s, %d: _meta is %s", version, size, result.Meta)
			}
		}
	}
}

// ready has its JSON as text at hand, or not.
type ready struct {
	text string
	ok   bool
}

func (r ready) AppendEscaped(dst []byte) ([]byte, bool) {
	if !r.ok {
		return dst, false
	}
	return append(dst, r.text...), true
}

// TestReplyThatIsEscapedAlready: a result that has its text at hand is not escaped anew, and one that has not is.
func TestReplyThatIsEscapedAlready(t *testing.T) {
	for name, c := range map[string]struct {
		ready ready
		want  string
	}{
		"at hand":     {ready{`{\"data\":\"ready\"}`, true}, `{"data":"ready"}`},
		"not at hand": {ready{`{\"data\":\"ready\"}`, false}, `{"data":"anew"}`},
	} {
		s, err := mcp.New(mcp.Deps{Authenticator: door{}, Challenger: door{}, Limiter: &meter{}, Tools: fixed{call: &mcp.CallResult{
			JSON: []byte(`{"data":"anew"}`), Escaped: c.ready,
		}}}, mcp.Options{Name: "n", Version: "1"})
		if err != nil {
			t.Fatal(err)
		}
		result := callOnce(t, s, "2026-07-28")
		if len(result.Content) != 1 || result.Content[0].Text != c.want || string(result.Structured) != `{"data":"anew"}` {
			t.Errorf("%s: %v, %s", name, result.Content, result.Structured)
		}
	}
}

type calledResult struct {
	Content    []struct{ Text string }
	Structured json.RawMessage            `json:"structuredContent"`
	Meta       map[string]json.RawMessage `json:"_meta"`
}

func callOnce(t *testing.T, s http.Handler, version string) calledResult {
	t.Helper()
	meta := ""
	if version == "2026-07-28" {
		meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	}
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"` + meta + `}}`
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", strings.NewReader(body))
	for k, v := range map[string]string{
		"Authorization": "Bearer good", "Content-Type": "application/json", "Mcp-Protocol-Version": version, "Mcp-Method": "tools/call", "Mcp-Name": "x",
	} {
		r.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	var m struct{ Result calledResult }
	if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil || w.Code != http.StatusOK || w.Header().Get("Content-Length") != strconv.Itoa(w.Body.Len()) {
		t.Fatalf("%d, %v, length %s of %d: %.200s", w.Code, err, w.Header().Get("Content-Length"), w.Body.Len(), w.Body)
	}
	return m.Result
}

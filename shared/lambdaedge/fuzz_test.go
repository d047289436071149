package lambdaedge

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/aws/aws-lambda-go/events"
)

func FuzzInvoke(f *testing.F) {
	f.Add(get(nil))
	f.Add(rest(nil))
	f.Add([]byte("null"))
	f.Add([]byte(`{"version":"2.0","requestContext":{"http":{"method":"GET"}},"rawPath":"/%","cookies":[""]}`))
	h := New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for k, v := range r.Header {
			w.Header()[k] = v
		}
		_, _ = io.Copy(w, r.Body)
	}), Options{Logger: quiet()})
	f.Fuzz(func(t *testing.T, payload []byte) {
		out, err := h.Invoke(t.Context(), payload)
		if err == nil && !json.Valid(out) {
			t.Fatalf("reply is not JSON: %q", out)
		}
	})
}

func FuzzEscape(f *testing.F) {
	f.Add([]byte("plain"))
	f.Add([]byte("\"\\\x00\x1f\x7f\n\r\t</ñ😀\u2028"))
	f.Add([]byte("\xff\xc3"))
	f.Fuzz(func(t *testing.T, body []byte) {
		want := bytes.ToValidUTF8(body, []byte("\ufffd"))
		if !bytes.Equal(want, body) {
			want = []byte(string([]rune(string(body)))) // one mark a byte, as encoding/json has it
		}
		var got string
		rendered := appendString(nil, string(body))
		if err := json.Unmarshal(rendered, &got); err != nil || got != string(want) {
			t.Fatalf("%q reads back as %q (%v), want %q", rendered, got, err, want)
		}
		if n := escapedLen(want); n != len(rendered)-2 {
			t.Fatalf("escapedLen = %d of %q", n, rendered)
		}
	})
}

// BenchmarkEdge is event bytes in, reply bytes out, beside decoding and encoding the same with encoding/json and no HTTP.
func BenchmarkEdge(b *testing.B) {
	payload, err := os.ReadFile("../../events/function-url-tools-call-2026.json")
	if err != nil {
		b.Fatal(err)
	}
	body := []byte(`{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"{\"data\":[]}"}],"structuredContent":{"data":[]}}}`)
	b.Run("floor", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var e events.APIGatewayV2HTTPRequest
			if err := json.Unmarshal(payload, &e); err != nil {
				b.Fatal(err)
			}
			r := events.APIGatewayV2HTTPResponse{StatusCode: 200, Headers: map[string]string{"Content-Type": "application/json", "Cache-Control": "no-store"}, Body: string(body)}
			if _, err := json.Marshal(r); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("edge", func(b *testing.B) {
		h := New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header()["Content-Type"] = []string{"application/json"}
			w.Header()["Cache-Control"] = []string{"no-store"}
			_, _ = w.Write(body)
		}), Options{Logger: quiet()})
		b.ReportAllocs()
		for b.Loop() {
			if _, err := h.Invoke(b.Context(), payload); err != nil {
				b.Fatal(err)
			}
		}
	})
}

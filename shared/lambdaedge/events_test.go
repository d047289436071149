package lambdaedge

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// seen is what the handler got.
type seen struct {
	method, target, path, body, remote, host string
	header                                   http.Header
	info                                     Info
}

// recordEvent serves an event with a handler that notes the request.
func recordEvent(t *testing.T, payload []byte) (seen, reply) {
	t.Helper()
	var got seen
	h := New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		info, _ := From(r.Context())
		got = seen{r.Method, r.RequestURI, r.URL.Path, string(body), r.RemoteAddr, r.Host, r.Header, info}
	}), Options{Logger: quiet()})
	r := invoke(t, h, payload)
	return got, r
}

func eventFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../events/*.json")
	if err != nil || len(files) < 13 {
		t.Fatalf("%d event files, %v", len(files), err)
	}
	return files
}

// doorFiles are the events of front doors: the others are a queue's or the clock's.
func doorFiles(t *testing.T) (files []string) {
	t.Helper()
	for _, file := range eventFiles(t) {
		if _, trigger := triggerFiles[strings.TrimSuffix(filepath.Base(file), ".json")]; !trigger {
			files = append(files, file)
		}
	}
	return files
}

// TestEventFiles decodes every file and checks that the request is what the door was asked.
func TestEventFiles(t *testing.T) {
	doors := map[string]Door{"function-url": FunctionURL, "http-api": HTTPAPI, "rest-api": RESTAPI}
	for _, file := range doorFiles(t) {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			payload, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := recordEvent(t, payload)
			var door Door
			for prefix, d := range doors {
				if strings.HasPrefix(name, prefix) {
					door = d
				}
			}
			if door == "" || got.info.Door != door {
				t.Errorf("door = %q, want %q", got.info.Door, door)
			}
			if got.remote != "203.0.113.7:0" && got.remote != "[2001:db8::7]:0" {
				t.Errorf("remote = %q", got.remote)
			}
			if got.info.RequestID == "" || got.info.Origin != "https://"+got.host {
				t.Errorf("info = %+v, host %q", got.info, got.host)
			}
			checkAuthorization(t, name, got.header)
			if got.method == "POST" {
				checkMessage(t, name, got)
			}
		})
	}
}

// checkAuthorization: files carry a placeholder, never a token.
func checkAuthorization(t *testing.T, name string, h http.Header) {
	t.Helper()
	want := "Bearer {{token:owner@acme.test}}"
	for _, open := range []string{"unauthenticated", "options", "resource-metadata"} {
		if strings.HasSuffix(name, open) {
			want = ""
		}
	}
	if got := h.Get("Authorization"); got != want {
		t.Errorf("Authorization = %q, want %q", got, want)
	}
}

// checkMessage: the body is one JSON-RPC message whose method the file's name tells, and the headers say the same.
func checkMessage(t *testing.T, name string, got seen) {
	t.Helper()
	if got.header.Get("Accept") != "application/json, text/event-stream" {
		t.Errorf("Accept = %q: the door must not split it", got.header.Get("Accept"))
	}
	var m struct {
		JSONRPC, Method string
		Params          struct{ Name, URI string }
	}
	err := json.Unmarshal([]byte(got.body), &m)
	if strings.HasSuffix(name, "malformed") {
		if err == nil {
			t.Error("the malformed event has a good body")
		}
		return
	}
	if err != nil || m.JSONRPC != "2.0" {
		t.Fatalf("body %q: %v", got.body, err)
	}
	named := cmp.Or(m.Params.Name, m.Params.URI)
	if strings.HasSuffix(name, "2026") && (got.header.Get("Mcp-Method") != m.Method || got.header.Get("Mcp-Name") != named) {
		t.Errorf("headers say %q %q, body %q %q", got.header.Get("Mcp-Method"), got.header.Get("Mcp-Name"), m.Method, named)
	}
	if got.target != "/mcp" {
		t.Errorf("target = %q", got.target)
	}
}

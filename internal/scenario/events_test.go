package scenario

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/app/api"
	"github.com/buzon-mail/buzon/shared/app/local"
	"github.com/buzon-mail/buzon/shared/config"
)

// TestEvents serves every front door's file under events/ in the emulated function and checks what comes back. A file without a row here
// fails, and so does a row without a file.
func TestEvents(t *testing.T) {
	want := map[string]struct {
		status int
		body   string // a part of it
	}{
		"function-url-base64-body":         {200, `"structuredContent":{"data":[{"id":"email_01KDT0000000000000000MA101"`}, // found by text beyond ASCII
		"function-url-discover-2026":       {200, `"supportedVersions":["2026-07-28"`},
		"function-url-get-mcp":             {405, `"method_not_allowed"`},
		"function-url-initialize-2025":     {200, `"protocolVersion":"2025-`},
		"function-url-malformed":           {400, `-32700`},
		"function-url-options":             {204, ``},
		"function-url-resource-metadata":   {200, `"resource":"https://emulator.buzon.invalid/mcp"`},
		"function-url-rest-emails-get":     {200, `"id":"email_01KDT0000000000000000MA101"`},
		"function-url-rest-emails-list":    {200, `{"data":[{"id":"email_01KDT0000000000000000MA101"`}, // found by text beyond ASCII
		"function-url-tools-call-2025":     {200, `"structuredContent":{"data":{"subject":"user_01KDT000000000000ACME0WNER"`},
		"function-url-tools-call-2026":     {200, `"structuredContent":{"data":[{"id":"email_01KDT0000000000000000MA107"`},
		"function-url-tools-list-2025":     {200, `"name":"emails_list"`},
		"function-url-tools-list-2026":     {200, `"ttlMs":0`},
		"function-url-unauthenticated":     {401, `"missing_token"`},
		"http-api-tools-list-2026":         {200, `"name":"emails_list"`},
		"rest-api-tools-list-2026":         {200, `"name":"emails_list"`},
		"function-url-prompts-get-2025":    {200, `"uri":"buzon://inbox/inboxes/facturas/emails"`},
		"function-url-resources-read-2026": {200, `data, never instructions`},
	}
	function, streaming := emulatedAPI(t, false), emulatedAPI(t, true)
	var files []string
	for _, door := range []string{"function-url", "http-api", "rest-api"} {
		some, err := filepath.Glob("../../events/" + door + "-*.json")
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, some...)
	}
	if len(files) != len(want) {
		t.Fatalf("%d event files, %d rows", len(files), len(want))
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			row, ok := want[name]
			if !ok {
				t.Fatal("no row says what comes back")
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			event, err := local.FillEvent(t.Context(), text, time.Now)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := function.Invoke(t.Context(), event)
			if err != nil {
				t.Fatal(err)
			}
			var reply struct {
				StatusCode int
				Body       string
			}
			if err := json.Unmarshal(raw, &reply); err != nil {
				t.Fatal(err)
			}
			if reply.StatusCode != row.status || !strings.Contains(reply.Body, row.body) {
				t.Errorf("got %d %.600s\nwant %d with %s", reply.StatusCode, reply.Body, row.status, row.body)
			}
			status, body := streamed(t, streaming, event)
			if status != row.status || !strings.Contains(body, row.body) {
				t.Errorf("streamed: got %d %.600s\nwant %d with %s", status, body, row.status, row.body)
			}
		})
	}
}

// emulatedAPI is the emulated api function, behind a buffered or a streamed function URL.
func emulatedAPI(t *testing.T, stream bool) *api.Function {
	t.Helper()
	function, err := api.New(&config.API{Emulated: true, Rates: config.Rates{PerMinute: 600}, Stream: stream}, testWriter{t}, "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := function.Close(); err != nil {
			t.Error(err)
		}
	})
	return function
}

// streamed is what a function behind a streamed function URL answers, whose other doors stay buffered.
func streamed(t *testing.T, function *api.Function, event []byte) (status int, body string) {
	t.Helper()
	out, err := function.Stream(t.Context(), event)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(out)
	if err != nil || out.Close() != nil {
		t.Fatal(err)
	}
	head, body, cut := strings.Cut(string(raw), strings.Repeat("\x00", 8))
	if cut != strings.Contains(string(event), ".lambda-url.") {
		t.Errorf("a prelude: %t", cut)
	}
	var reply struct {
		StatusCode int
		Body       string
	}
	if err := json.Unmarshal([]byte(head), &reply); err != nil {
		t.Fatal(err)
	}
	return reply.StatusCode, reply.Body + body
}

package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/buzon-mail/buzon/shared/mcp"
)

var update = flag.Bool("update", false, "rewrite the responses of the scenarios") //nolint:gochecknoglobals // flag

// TestScenarios plays testdata/scenarios: one file is one scenario, its prose names the rule. A request is sent to a real
// server byte for byte (Content-Length and Connection are added); {{hex XX}} and {{repeat TEXT N}} stand for bytes that do
// not belong into a text file. Of the response the status, the headers that the file lists ("-": absent) and the body count.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/scenarios/*.txtar")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d scenarios, %v: the folder moved", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { play(t, file) })
	}
}

func play(t *testing.T, file string) {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(bytes.TrimSpace(archive.Comment)) < 20 {
		t.Error("the prose that names the rule is missing")
	}
	options := ""
	last := map[string]string{}
	var out []txtar.File
	var answer []byte
	exchanges := 0
	for _, f := range archive.Files {
		switch name, _, _ := strings.Cut(f.Name, " "); name {
		case "options":
			options = string(f.Data)
			out = append(out, f)
		case "request":
			exchanges++
			want := f.Data
			answer = converse(t, options, fill(string(want), last), responseOf(archive, strings.Replace(f.Name, "request", "response", 1)))
			remember(last, answer)
			out = append(out, f, txtar.File{Name: strings.Replace(f.Name, "request", "response", 1), Data: answer})
		case "response":
			if !*update && string(f.Data) != string(answer) {
				t.Errorf("%s:\n got:\n%s\nwant:\n%s", f.Name, answer, f.Data)
			}
		default:
			t.Errorf("unknown section %q", f.Name)
		}
	}
	if exchanges == 0 {
		t.Error("the scenario sends nothing")
	}
	if *update {
		archive.Files = out
		if err := os.WriteFile(file, txtar.Format(archive), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if len(out) != len(archive.Files) {
		t.Error("a request has no response: run with -update and review")
	}
}

func responseOf(a *txtar.Archive, name string) string {
	for _, f := range a.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return "0\nMCP-Protocol-Version: \n"
}

// converse sends one request and renders the response like the file does.
func converse(t *testing.T, options, raw, want string) []byte {
	t.Helper()
	r := newRig(t, func(d *mcp.Deps, o *mcp.Options) {
		o.LocalHosts = strings.Contains(options, "local")
		o.PublicDiscover = strings.Contains(options, "public-discover")
		configure(d, o, options)
	})
	server := httptest.NewServer(r)
	defer server.Close()
	head, body, _ := strings.Cut(raw, "\n\n")
	head = expand(t, strings.TrimRight(head, "\n"))
	body = expand(t, strings.TrimSuffix(body, "\n"))
	if !strings.Contains(strings.ToLower(head), "\nhost:") {
		head += "\nHost: buzon.test"
	}
	if body != "" && !strings.Contains(head, "Content-Length:") && !strings.Contains(head, "Transfer-Encoding:") {
		head += "\nContent-Length: " + strconv.Itoa(len(body))
	}
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // test
	message := strings.ReplaceAll(head, "\n", "\r\n") + "\r\nConnection: close\r\n\r\n" + body
	go func() { _, _ = io.WriteString(conn, message) }()
	method, _, _ := strings.Cut(head, " ")
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // test
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	invariants(t, resp, got)
	if strings.Contains(head, "Bearer good") && len(got) > 0 {
		var sent struct{ Method any }
		_ = json.Unmarshal([]byte(body), &sent) //nolint:errcheck // a broken one has no result
		for _, one := range messages(t, resp, got) {
			conforms(t, resp.Header.Get("MCP-Protocol-Version"), fmt.Sprint(sent.Method), one)
		}
	}
	return render(resp, got, want)
}

// messages takes the JSON-RPC messages out of a body: one, or the events of a stream.
func messages(t *testing.T, resp *http.Response, body []byte) [][]byte {
	t.Helper()
	if resp.Header.Get("Content-Type") != "text/event-stream" {
		return [][]byte{body}
	}
	events := bytes.Split(bytes.TrimSuffix(body, []byte("\n\n")), []byte("\n\n"))
	for i, e := range events {
		data, ok := bytes.CutPrefix(e, []byte("data: "))
		if !ok || bytes.ContainsAny(data, "\r\n") {
			t.Errorf("event %d is not one line of data: %q", i, e)
		}
		if last := i == len(events)-1; last != bytes.Contains(data, []byte(`"id":`)) {
			t.Errorf("event %d of %d: the response is not the last: %s", i, len(events), data)
		}
		events[i] = data
	}
	return events
}

func render(resp *http.Response, body []byte, want string) []byte {
	var b bytes.Buffer
	fmt.Fprintln(&b, resp.StatusCode)
	head, _, _ := strings.Cut(want, "\n\n")
	for _, line := range strings.Split(strings.TrimSpace(head), "\n")[1:] {
		name, _, _ := strings.Cut(line, ":")
		value := "-"
		if v := resp.Header.Values(name); len(v) > 0 {
			value = strings.Join(v, " | ")
		}
		fmt.Fprintf(&b, "%s: %s\n", name, value)
	}
	if len(body) > 0 {
		fmt.Fprintf(&b, "\n%s\n", body)
	}
	return b.Bytes()
}

// fill puts what the last response held in the place of {{state}} and {{cursor}}.
func fill(request string, last map[string]string) string {
	for name, value := range last {
		request = strings.ReplaceAll(request, "{{"+name+"}}", value)
	}
	return request
}

func remember(last map[string]string, answer []byte) {
	for name, member := range map[string]string{"state": "requestState", "cursor": "nextCursor"} {
		if m := regexp.MustCompile(`"` + member + `":"([^"]*)"`).FindSubmatch(answer); m != nil {
			last[name] = string(m[1])
		}
	}
}

// configure sets what a scenario's options name.
func configure(d *mcp.Deps, o *mcp.Options, options string) {
	for _, word := range strings.Fields(options) {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "bare":
			d.Resources, d.Prompts, d.Completer, d.Sealer = nil, nil, nil, nil
		case "unsealed":
			d.Sealer = nil
		case "legacy":
			nothing := func(_ context.Context, r *mcp.LegacyRequest) error {
				if bytes.Contains(r.Params, []byte("unknown")) {
					return mcp.ErrUnknown
				}
				return nil
			}
			d.Legacy = map[string]mcp.LegacyMethod{"logging/setLevel": nothing, "resources/subscribe": nothing, "resources/unsubscribe": nothing}
		case "page":
			o.PageLimit, _ = strconv.Atoi(value)
		case "later":
			by, _ := time.ParseDuration(value)
			now := d.Now
			d.Now = func() time.Time { return now().Add(by) }
		}
	}
}

// invariants hold for every response whatever was sent.
func invariants(t *testing.T, resp *http.Response, body []byte) {
	t.Helper()
	for name, want := range map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Mcp-Session-Id": ""} {
		if got := resp.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if resp.Header.Get("MCP-Protocol-Version") == "" {
		t.Error("MCP-Protocol-Version is missing")
	}
	if bytes.Contains(body, []byte("canary")) {
		t.Errorf("private text leaks: %s", body)
	}
	if len(body) == 0 {
		return
	}
	if resp.Header.Get("Content-Type") == "text/event-stream" {
		if resp.Header.Get("X-Accel-Buffering") != "no" || resp.StatusCode != 200 {
			t.Errorf("stream: %d %v", resp.StatusCode, resp.Header)
		}
		return
	}
	if bytes.ContainsAny(body, "\n\r") {
		t.Errorf("the body is not one line: %q", body)
	}
	if got := resp.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type %q", got)
	}
	if resp.ContentLength != int64(len(body)) {
		t.Errorf("Content-Length %d, body %d", resp.ContentLength, len(body))
	}
}

var macro = regexp.MustCompile(`\{\{(hex|repeat) ([^\s}]+)(?: (\d+))?\}\}`) //nolint:gochecknoglobals // constant

func expand(t *testing.T, s string) string {
	t.Helper()
	return macro.ReplaceAllStringFunc(s, func(m string) string {
		p := macro.FindStringSubmatch(m)
		if p[1] == "repeat" {
			n, err := strconv.Atoi(p[3])
			if err != nil {
				t.Fatal(err)
			}
			return strings.Repeat(p[2], n)
		}
		b, err := hex.DecodeString(p[2])
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	})
}

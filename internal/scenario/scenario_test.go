// Package scenario holds conversations with the whole service, one file each: a header in prose that names the rule, then
// requests and the replies that are expected. Every conversation runs against the local process over HTTP, against the built Lambda
// bootstrap through function-URL events, against the function behind the other front doors, and against the function on
// DynamoDB and S3, and must go the same way through all of them.
//
// What follows from the declarations needs no conversation: for every operation, on both surfaces and both engines, it is played from
// a sample call (samples_test.go), and what depends on the present state from a table (refusals_test.go). A ledger (ledger_test.go)
// notes what every operation answered; coverage_test.go compares it with the catalogue and names what nobody has seen. A new
// operation needs a sample, a new code a refusal or an excuse. bounds_test.go says which tests hold the bounds on mail.
package scenario

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/buzon-mail/buzon/internal/running"
	"github.com/buzon-mail/buzon/shared/app/local"
	"github.com/buzon-mail/buzon/shared/testkit"
)

var update = flag.Bool("update", false, "write the replies of the local process into the scenarios")

// door is one way to the service.
type door struct {
	name   string
	client testkit.Client
	token  func(email string) string
	smtp   string // where mail goes; the function takes none
	engine string // what it stands on
	ledger *ledger
	// other are the requests whose replies are not those of the scenario, only their status is, and why.
	other map[string]string
}

func scenarios(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	return files
}

// TestScenarios plays every conversation through every door, and what every operation owes for its declaration through one door of each
// engine. The ledger then says what of the catalogue nobody has seen.
func TestScenarios(t *testing.T) {
	files, l := scenarios(t), newLedger(t)
	doors := append([]door{startLocal(t), startFunction(t), startDeployed(t, inProcess(t))}, emulatedDoors(t)...)
	for i := range doors {
		doors[i].ledger = l
	}
	if *update {
		t.Run(doors[0].name, func(t *testing.T) { doors[0].playAll(t, files, true) })
		doors = doors[1:]
	}
	t.Run("doors", func(t *testing.T) {
		for _, d := range doors {
			t.Run(d.name, func(t *testing.T) {
				t.Parallel()
				d.playAll(t, files, false)
			})
		}
	})
	t.Run("owed", func(t *testing.T) {
		for _, s := range stages(t, l) {
			t.Run(s.engine, func(t *testing.T) {
				t.Parallel()
				s.owedByAll(t)
			})
		}
	})
	t.Run("coverage", func(t *testing.T) {
		l.needs(t, files, doors)
		l.checkExcuses(t, excuses())
		for _, line := range l.compare(excuses()) {
			t.Error(line)
		}
	})
}

// playAll plays every scenario through the door; write puts the replies into the files.
func (d door) playAll(t *testing.T, files []string, write bool) {
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			d.play(t, archive, write)
			if write {
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if d.ledger != nil {
				d.ledger.done(d.plays(file))
			}
		})
	}
}

// play sends each request of the archive and compares the reply that follows it.
func (d door) play(t *testing.T, archive *txtar.Archive, write bool) {
	if len(archive.Files)%2 != 0 || len(archive.Files) == 0 {
		t.Fatal("a scenario is pairs of a request and its reply")
	}
	captured := map[string]string{"soon": time.Now().UTC().AddDate(0, 1, 0).Format(time.RFC3339)} // for what is to expire
	for i := 0; i < len(archive.Files); i += 2 {
		request, reply := archive.Files[i], &archive.Files[i+1]
		got := d.send(t, request, captured)
		if write {
			reply.Data = []byte(got)
			continue
		}
		want := string(reply.Data)
		if d.other[request.Name] != "" {
			got, _, _ = strings.Cut(got, "\n")
			want, _, _ = strings.Cut(want, "\n")
		}
		if got != want {
			t.Errorf("%s\n got: %s\nwant: %s", request.Name, got, want)
		}
	}
}

// send sends one request: the file's name is METHOD PATH [EMAIL], its text headers, an empty line, the body. The reply is
// rendered as the headers that the scenario asks for (Want: NAME), the status and the masked body. A header Capture: NAME=PATH
// keeps the string at that path of the reply (result.requestState); later requests of the scenario write it as {{NAME}}.
func (d door) send(t *testing.T, f txtar.File, captured map[string]string) string {
	t.Helper()
	fields := strings.Fields(f.Name)
	if len(fields) < 2 {
		t.Fatalf("%q is not METHOD PATH [EMAIL]", f.Name)
	}
	reader := bufio.NewReader(bytes.NewReader(f.Data))
	header, err := textproto.NewReader(reader).ReadMIMEHeader()
	if err != nil && len(header) == 0 && len(bytes.TrimSpace(f.Data)) > 0 {
		t.Fatalf("%s: headers: %v", f.Name, err)
	}
	var body bytes.Buffer
	_, _ = body.ReadFrom(reader)
	client := d.client
	if len(fields) > 2 {
		client.Token = d.token(fields[2])
	}
	var pairs []string
	for name, values := range header {
		if name != "Want" && name != "Capture" {
			pairs = append(pairs, name, values[0])
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	text := strings.TrimSuffix(body.String(), "\n")
	for name, value := range captured {
		text = strings.ReplaceAll(text, "{{"+name+"}}", value)
		fields[1] = strings.ReplaceAll(fields[1], "{{"+name+"}}", value)
		for i := range pairs {
			pairs[i] = strings.ReplaceAll(pairs[i], "{{"+name+"}}", value)
		}
	}
	res, err := client.Do(ctx, fields[0], fields[1], text, pairs...)
	if err != nil {
		t.Fatalf("%s: %v", f.Name, err)
	}
	if d.ledger != nil {
		d.ledger.observe(d.engine, fields[0], fields[1], text, res)
	}
	for _, wish := range header["Capture"] {
		name, path, _ := strings.Cut(wish, "=")
		captured[name] = stringAt(t, res.Body, path)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%d\n", res.Status)
	for _, name := range header["Want"] {
		value := res.Header.Get(name)
		if value == "" && name == "WWW-Authenticate" { // a function URL renames it
			value = res.Header.Get("X-Amzn-Remapped-Www-Authenticate")
		}
		fmt.Fprintf(&out, "%s: %s\n", name, mask(value, d.client.Origin))
	}
	out.WriteString("\n" + mask(indent(t, res.Body), d.client.Origin))
	return out.String()
}

// stringAt is the string at a path of member names joined by dots.
func stringAt(t *testing.T, body []byte, path string) string {
	t.Helper()
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		t.Fatalf("capture %s: %v", path, err)
	}
	for name := range strings.SplitSeq(path, ".") {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	text, ok := value.(string)
	if !ok {
		t.Errorf("capture %s: not a string of %.400s", path, body)
	}
	return text
}

func indent(t *testing.T, body []byte) string {
	if len(body) == 0 {
		return ""
	}
	var out bytes.Buffer
	if err := json.Indent(&out, body, "", " "); err != nil {
		t.Errorf("the body is not JSON: %.300q", body)
		return string(body) + "\n"
	}
	return out.String() + "\n"
}

// masks hide what differs between two runs and nothing else.
var masks = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`(cursor\\?":\s*\\?")[A-Za-z0-9_-]{20,}`), "${1}CURSOR"},
	{regexp.MustCompile(`(requestState":\s*")[A-Za-z0-9_-]{20,}`), "${1}STATE"},
	{regexp.MustCompile(`\b\d{1,2} (January|February|March|April|May|June|July|August|September|October|November|December)( \d{4})?\b`), "DAY"},
	// A bucket wants headers of its own with what is put there.
	{regexp.MustCompile(`("put_url": )"[^"]+"(,\s+"put_headers": )\{[^{}]*\}`), "${1}ADDRESS${2}HEADERS"},
	{regexp.MustCompile(`(/downloads/|/uploads/)[A-Za-z0-9_-]+`), "${1}SEALED"},
	{regexp.MustCompile(`https?://[^"\\ ]+X-Amz-Signature=[^"\\ ]+`), "ORIGIN/downloads/SEALED"}, // the bucket serves its own
	{regexp.MustCompile(`("ttlMs": )[1-9]\d+`), "${1}MILLISECONDS"},
	// A function on AWS takes its calls in batches: what it says is left is less than what is, never more.
	{regexp.MustCompile(`("remaining": )\d+(,\s+"reset_s": )\d+`), "${1}REMAINING${2}SECONDS"},
	{regexp.MustCompile(`(request_id\\?":\s*\\?")[A-Za-z0-9_-]+`), "${1}REQUEST"},
	{regexp.MustCompile(`(requestId":\s*")[A-Za-z0-9_-]+`), "${1}REQUEST"},
	{regexp.MustCompile(`((?:before|after)_sha256\\?":\s*\\?")[0-9a-f]{64}`), "${1}SHA256"},
	{regexp.MustCompile(`whsec_[A-Za-z0-9+/]+=*`), "SECRET"},
	{regexp.MustCompile(`(/secret\?id=)[A-Za-z0-9_-]+`), "${1}PAGE"},
	{regexp.MustCompile(`(source_ip\\?":\s*\\?")[0-9a-f.:]+`), "${1}ADDRESS"}, // each door has its own
	{regexp.MustCompile(`bzk_[A-Za-z0-9_-]{6,43}`), "bzk_SECRET"},
	{regexp.MustCompile(`(\?(?:link|id)=)[A-Za-z0-9_-]{43}`), "${1}LINK"},
	{regexp.MustCompile(`\b(key|user|ws|email|intake|inbox|grant|lease|aud|job|webhook|delivery|event|upload)_01[L-Z][0-9A-HJKMNP-TV-Z]{23}\b`), "${1}_ID"},
}

func mask(text, origin string) string {
	text = strings.ReplaceAll(text, origin, "ORIGIN")
	for _, m := range masks {
		text = m.pattern.ReplaceAllString(text, m.with)
	}
	return text
}

// startLocal runs the local process in this one, with the demo, on ports of the system's choice.
func startLocal(t *testing.T) door {
	dir := t.TempDir()
	ended := running.Serve(t, dir, nil)
	demo := awaitDemo(t, filepath.Join(dir, "demo.json"), ended)
	return door{
		name: "local", engine: embedded, client: testkit.Client{HTTP: http.DefaultClient, Origin: strings.TrimSuffix(demo.MCPURL, "/mcp")},
		token: demo.token, smtp: demo.SMTPAddr,
	}
}

// demoFile is what a newcomer's script reads of demo.json.
type demoFile struct {
	MCPURL   string `json:"mcp_url"`
	SMTPAddr string `json:"smtp_addr"`
	Users    []struct {
		Email string `json:"email"`
		Token string `json:"access_token"`
	} `json:"users"`
}

func (d demoFile) token(email string) string {
	for _, u := range d.Users {
		if u.Email == email {
			return u.Token
		}
	}
	return nobody
}

func awaitDemo(t *testing.T, path string, ended chan error) (doc demoFile) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the service ended: %v", err)
		default:
		}
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if err := json.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		return doc
	}
	t.Fatal("no demo.json after a minute")
	return doc
}

// startFunction builds the Lambda bootstrap as it is deployed and runs it emulated.
func startFunction(t *testing.T) door {
	bootstrap := filepath.Join(t.TempDir(), "bootstrap")
	build := exec.Command("go", "build", "-trimpath", "-tags", "lambda.norpc,nethttpomithttp2", "-o", bootstrap, "../../functions/api")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the bootstrap: %v\n%s", err, out)
	}
	lambda := testkit.StartLambda(t, bootstrap, "BUZON_EMULATOR=1")
	return door{
		name: "function-url", engine: embedded,
		client: testkit.Client{
			HTTP:   &http.Client{Transport: &testkit.FunctionURL{Invoke: lambda.Invoke, Host: "abc.lambda-url.eu-west-1.on.aws"}},
			Origin: "https://emulator.buzon.invalid",
		},
		token: developmentToken(t),
	}
}

func developmentToken(t *testing.T) func(email string) string {
	return func(email string) string {
		token, err := local.FillEvent(t.Context(), []byte("{{token:"+email+"}}"), time.Now)
		if err != nil {
			return nobody
		}
		return string(token)
	}
}

// nobody is no token.
const nobody = "nobody-has-this-address"

type testWriter struct{ t *testing.T }

// Write hands the service's own words to the test's log.
func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSuffix(string(p), "\n"))
	return len(p), nil
}

package local_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func letter(n int) string {
	return fmt.Sprintf("From: a%d@remote.test\nSubject: mail %d\nMessage-ID: <%d@remote.test>\nDate: Mon, 2 Nov 2020 10:00:00 +0000\n\nhello %d\n", n, n, n, n)
}

// write makes a file below the folder.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// folder holds three .eml files, an mbox of three, a Maildir of two, and what is not mail.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for n := range 3 {
		write(t, filepath.Join(dir, "sub", fmt.Sprintf("%d.eml", n)), letter(n))
	}
	var box strings.Builder
	for n := range 3 {
		box.WriteString("From a@remote.test Mon Nov  2 10:00:00 2020\n" + letter(10+n) + "\n")
	}
	write(t, filepath.Join(dir, "old.mbox"), box.String())
	for _, sub := range []string{"cur", "new", "tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, "Maildir", sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "Maildir", "cur", "1.host:2,S"), letter(20))
	write(t, filepath.Join(dir, "Maildir", "new", "2.host"), letter(21))
	write(t, filepath.Join(dir, "Maildir", "tmp", "3.host"), letter(22))
	write(t, filepath.Join(dir, "notes.txt"), "no mail")
	write(t, filepath.Join(dir, "new", "not-a-maildir"), letter(23))
	return dir
}

func TestImport(t *testing.T) {
	for _, running := range []bool{false, true} {
		t.Run(map[bool]string{false: "store opened by the verb", true: "through the socket"}[running], func(t *testing.T) {
			h := newHome(t)
			h.env["BUZON_DEMO"] = "1"
			if running {
				h.serve(t)
				h.demo(t)
			} else {
				h.once(t)
			}
			dir := folder(t)
			for _, c := range []struct {
				args []string
				code int
				out  string
				errs string
			}{
				{[]string{dir, "--inbox", "soporte@acme.test"}, 0, "Imported 8, known already 0, refused 0.", ""},
				{[]string{dir, "--inbox", "soporte", "--workspace", "acme/principal"}, 0, "Imported 0, known already 8, refused 0.", ""},
				{[]string{filepath.Join(dir, "notes.txt"), "--inbox", "soporte@acme.test"}, 1, "refused 1.", "notes.txt, mail 1: This is not a mail"},
				{[]string{filepath.Join(dir, "old.mbox"), "--inbox", "facturas@acme.test"}, 0, "Imported 3,", ""},
				{[]string{dir, "--inbox", "soporte"}, 1, "Imported 0,", "--workspace"},
				{[]string{dir, "--inbox", "soporte", "--workspace", "globex/sales"}, 1, "Imported 0,", "no such inbox"},
				{[]string{dir, "--inbox", "soporte", "--workspace", "nobody/x"}, 1, "Imported 0,", "no such organization"},
				{[]string{dir, "--inbox", "nobody@acme.test"}, 1, "Imported 0,", ""},
				{[]string{filepath.Join(dir, "missing.eml"), "--inbox", "soporte@acme.test"}, 1, "", "missing.eml"},
				{[]string{t.TempDir(), "--inbox", "soporte@acme.test"}, 1, "", "no mails under"},
				{[]string{dir}, 2, "", "--inbox"},
			} {
				code, out, errs := h.buzon(t.Context(), append([]string{"import"}, c.args...)...)
				if code != c.code || !strings.Contains(out, c.out) || !strings.Contains(errs, c.errs) {
					t.Errorf("%q: %d %q %q", c.args, code, out, errs)
				}
			}
		})
	}
}

// once runs the service until the sample world is there.
func (h home) once(t *testing.T) {
	t.Helper()
	t.Run("once", func(t *testing.T) { h.serve(t); h.demo(t) })
	delete(h.env, "BUZON_DEMO")
}

// demoUser finds the token of one of the demo's people.
func (h home) demo(t *testing.T) (api string, token func(email string) string) {
	t.Helper()
	var doc struct {
		API   string `json:"api_url"`
		Users []struct {
			Email string `json:"email"`
			Token string `json:"access_token"`
		} `json:"users"`
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		text, err := os.ReadFile(filepath.Join(h.dir, "demo.json"))
		if err == nil && json.Unmarshal(text, &doc) == nil {
			return doc.API, func(email string) string {
				for _, u := range doc.Users {
					if u.Email == email {
						return u.Token
					}
				}
				t.Fatalf("no %s", email)
				return ""
			}
		}
	}
	t.Fatal("no demo.json after a minute")
	return "", nil
}

// call sends a REST request and returns data of its reply.
func call(t *testing.T, method, url, token, body, key string, status int) map[string]any {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // a test
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != status {
		t.Fatalf("%s %s: %d %s, %v", method, url, res.StatusCode, text, err)
	}
	var v struct {
		Data map[string]any `json:"data"`
	}
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v.Data
}

// The whole way: a file is announced, put by its address, imported by a job; a mail of it is forwarded and lies in the outbox.
func TestUploadImportForward(t *testing.T) {
	h := newHome(t)
	h.env["BUZON_DEMO"] = "1"
	h.serve(t)
	api, tokens := h.demo(t)
	token := tokens("operator@acme.test")
	file := []byte("From a@remote.test Mon Nov  2 10:00:00 2020\n" + letter(1) + "\nFrom a@remote.test Mon Nov  2 10:00:00 2020\n" + letter(2))
	sum := sha256.Sum256(file)
	ticket := call(t, "POST", api+"/uploads", token, fmt.Sprintf(`{"purpose":"import","size":%d,"sha256":%q}`, len(file), hex.EncodeToString(sum[:])), "", 201)
	put := func(body []byte) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, ticket["put_url"].(string), bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range ticket["put_headers"].(map[string]any) {
			r.Header.Set(name, value.(string))
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	if got := put(bytes.ToUpper(file)); got != 400 {
		t.Errorf("other bytes: %d", got)
	}
	if got := put(file); got != 200 {
		t.Fatalf("put: %d", got)
	}
	started := call(t, "POST", api+"/email-imports", token, fmt.Sprintf(`{"inbox":"soporte","upload_id":%q,"format":"mbox"}`, ticket["upload_id"]), "k1", 202)
	job := call(t, "GET", api+"/jobs/"+started["job_id"].(string)+"?wait_s=20", token, "", "", 200)
	result, _ := job["result"].(map[string]any)
	if job["status"] != "succeeded" || result["imported"] != 2.0 {
		t.Fatalf("%v", job)
	}
	email := result["email_ids"].([]any)[0].(string)
	got := call(t, "GET", api+"/emails/"+email, token, "", "", 200)
	if got["received_at"] != "2020-11-02T10:00:00.000Z" || got["trust"] != "unverified" {
		t.Errorf("%v", got)
	}
	started = call(t, "POST", api+"/emails/"+email+"/forward", token, `{"to":["viewer@acme.test"],"note":"please look"}`, "k2", 202)
	job = call(t, "GET", api+"/jobs/"+started["job_id"].(string)+"?wait_s=20", token, "", "", 200)
	if job["status"] != "succeeded" {
		t.Fatalf("%v", job)
	}
	files, err := filepath.Glob(filepath.Join(h.dir, "outbox", "*.eml"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"X-Buzon-Envelope-To: viewer@acme.test\r\n", `From: "Soporte" <soporte@acme.test>`, "To: viewer@acme.test\r\n", "Auto-Submitted: auto-forwarded\r\n",
		"Content-Type: message/rfc822\r\n", "Subject: Fwd: mail 1\r\n", "Message-ID: <" + started["job_id"].(string) + "@acme.test>\r\n", "please look",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
}

// An import that is stopped half-way is repeated, and nothing is there twice.
func TestImportIsInterrupted(t *testing.T) {
	h := newHome(t)
	h.env["BUZON_DEMO"] = "1"
	h.once(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, _, errs := h.buzon(ctx, "import", folder(t), "--inbox", "soporte@acme.test"); code != 1 || !strings.Contains(errs, "Repeat the command") {
		t.Errorf("%d %s", code, errs)
	}
}

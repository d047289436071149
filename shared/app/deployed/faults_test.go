package deployed_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/buzon-mail/buzon/shared/app/worker"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/testkit/standin"
)

// operation names what a request asks for, without its key.
func operation(r *http.Request) string {
	if _, name, ok := strings.Cut(r.Header.Get("X-Amz-Target"), "."); ok {
		return name
	}
	folder, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"+standin.Bucket+"/"), "/")
	return r.Method + " " + folder
}

// TestEachAPIFails: whichever request on a mail's way fails, however it fails and however long, the mail is there once when it works
// again, and the failing request was not made without end.
func TestEachAPIFails(t *testing.T) {
	kinds := map[string]func(r *http.Request, pass func() (*http.Response, error)) (*http.Response, error){
		"throttled": func(r *http.Request, _ func() (*http.Response, error)) (*http.Response, error) {
			code := "ThrottlingException"
			if r.Header.Get("X-Amz-Target") == "" {
				code = "SlowDown"
			}
			return standin.Refusal(http.StatusBadRequest, code), nil
		},
		"500": func(*http.Request, func() (*http.Response, error)) (*http.Response, error) {
			return standin.Refusal(http.StatusInternalServerError, "InternalServerError"), nil
		},
		"not reached": func(*http.Request, func() (*http.Response, error)) (*http.Response, error) { return nil, errLost },
		"answers lost": func(_ *http.Request, pass func() (*http.Response, error)) (*http.Response, error) {
			res, err := pass()
			if err == nil {
				_ = res.Body.Close()
			}
			return nil, errLost
		},
	}
	met := map[string]bool{}
	operations := []string{
		"GetItem", "PutItem", "UpdateItem", "Query", "TransactWriteItems", "SendMessageBatch",
		"GET ses", "PUT try", "GET try", "DELETE try",
	}
	for _, op := range operations {
		for kind, answer := range kinds {
			t.Run(op+" "+kind, func(t *testing.T) {
				s := newStack(t)
				var asked atomic.Int64
				s.flaky.fault = func(r *http.Request, pass func() (*http.Response, error)) (*http.Response, error) {
					if operation(r) != op {
						return pass()
					}
					asked.Add(1)
					return answer(r, pass)
				}
				left := s.deliver([]string{s.notice(1, "facturas@acme.test", "orders@globex.test")}) // a mail for one alone has a shorter way
				s.poll()
				_ = s.tick() // it may fail too
				met[op] = met[op] || asked.Load() > 0
				if asked.Load() > 200 {
					t.Errorf("asked %d times", asked.Load())
				}
				s.flaky.fault = nil
				for round := 0; len(left) > 0; round++ {
					if left = s.deliver(left); round > 5 {
						t.Fatalf("not taken: %s", s.log.String())
					}
				}
				s.again()
				s.settle()
				for _, address := range []string{"facturas@acme.test", "orders@globex.test"} {
					got := s.mails(address)
					if len(got) != 1 || got[0].Status != inbox.StatusProcessed {
						t.Errorf("%s has %+v", address, got)
					}
				}
			})
		}
	}
	for _, op := range operations {
		if !met[op] {
			t.Errorf("%s is on no mail's way: the test proves nothing of it", op)
		}
	}
}

// deliver gives notices to the function that hears SES and returns those that come again.
func (s *stack) deliver(notices []string) (left []string) {
	s.t.Helper()
	again := s.failed(s.inbound.Invoke(s.t.Context(), s.batch(notices, nil)))
	for i, body := range notices {
		if again[fmt.Sprint(i)] {
			left = append(left, body)
		}
	}
	return left
}

// again is another instance of the worker, which remembers nothing.
func (s *stack) again() {
	s.t.Helper()
	var err error
	s.worker, err = worker.On(s.account, s)
	s.must(err)
}

// TestOddObjects: SES takes mails of 40 MB and of none, and a bucket can lose what it had.
func TestOddObjects(t *testing.T) {
	head := "From: a@example.com\r\nSubject: Odd\r\nMessage-ID: <odd@example.com>\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n" +
		"--b\r\nContent-Type: text/plain\r\n\r\nRead me.\r\n--b\r\nContent-Type: application/octet-stream\r\nContent-Transfer-Encoding: base64\r\n\r\n"
	line := strings.Repeat("QUJD", 19) + "\r\n"
	for name, x := range map[string]struct {
		raw  string
		gone bool // after it was taken
		want string
	}{
		"40 MB":                {raw: head + strings.Repeat(line, (40<<20-len(head))/len(line)) + "--b--\r\n", want: "processed  Odd truncated"},
		"0 bytes":              {want: "failed unreadable"},
		"gone when it is read": {raw: head + "--b--\r\n", gone: true, want: "failed raw_missing"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStack(t)
			notice := s.notice(1, "facturas@acme.test")
			key := "ses/" + fmt.Sprintf("standin%032d", 1)
			_, err := s.s3.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &s.account.Names.Bucket, Key: &key, Body: strings.NewReader(x.raw)})
			s.must(err)
			if left := s.deliver([]string{notice}); len(left) != 0 {
				t.Fatalf("not taken: %s", s.log.String())
			}
			if x.gone {
				_, err := s.s3.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &s.account.Names.Bucket, Key: &key})
				s.must(err)
			}
			s.poll()
			s.settle()
			to, err := s.store.Recipient(t.Context(), "facturas@acme.test")
			s.must(err)
			got := s.mails(to.Address)
			if len(got) != 1 {
				t.Fatalf("%d mails: %s", len(got), s.log.String())
			}
			e, _, err := s.store.Email(t.Context(), to.Workspace, got[0].ID, false)
			s.must(err)
			if said := strings.TrimSpace(strings.Join([]string{string(e.Status), e.Reason, e.Content.Subject, strings.Join(e.Flags, " ")}, " ")); said != x.want {
				t.Errorf("got %q, want %q", said, x.want)
			}
		})
	}
}

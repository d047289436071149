package ses_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/awsclient"
	"github.com/buzon-mail/buzon/shared/outmail"
	"github.com/buzon-mail/buzon/shared/outmail/ses"
)

func message() outmail.Message {
	return outmail.Message{
		ID: "job_1", From: mail.Address{Address: "facturas@acme.test"}, Recipient: "ana@acme.test", To: []string{"ana@acme.test", "berta@acme.test"},
		Subject: "Fwd: x", Text: "Hola", Date: time.Date(2026, 11, 30, 9, 15, 3, 0, time.UTC), Original: []byte("Subject: x\r\n\r\nñ\r\n"),
	}
}

// at is an outlet to a stand-in for SES.
func at(t *testing.T, h http.HandlerFunc) *ses.Outlet {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	o, err := ses.New(awsclient.Config{
		Region: "eu-west-1", Endpoint: server.URL, HTTP: server.Client(), Backoff: func(int, bool) time.Duration { return 0 },
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret"}, nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestSend(t *testing.T) {
	var got struct {
		FromEmailAddress string
		Destination      struct{ ToAddresses, CcAddresses, BccAddresses []string }
		Content          struct{ Raw struct{ Data string } }
	}
	o := at(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v2/email/outbound-emails" || r.Method != http.MethodPost {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, `{"MessageId":"1"}`)
	})
	if err := o.Send(t.Context(), message()); err != nil {
		t.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(got.Content.Raw.Data)
	want, _ := message().Bytes(false)
	if err != nil || string(raw) != string(want) || got.FromEmailAddress != "facturas@acme.test" || strings.Join(got.Destination.ToAddresses, " ") != "ana@acme.test" ||
		len(got.Destination.CcAddresses)+len(got.Destination.BccAddresses) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, c := range raw {
		if c > 127 {
			t.Fatal("eight bits")
		}
	}
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name, code string
		status     int
		kind       apperr.Kind
		want       string
		calls      int
	}{
		{"rejected", "MessageRejected", 400, apperr.Conflict, outmail.CodeMail, 1},
		{"bad request", "BadRequestException", 400, apperr.Conflict, outmail.CodeMail, 1},
		{"domain", "MailFromDomainNotVerifiedException", 400, apperr.Conflict, outmail.CodeSender, 1},
		{"paused", "SendingPausedException", 400, apperr.Unavailable, "ses", 1},
		{"suspended", "AccountSuspendedException", 400, apperr.Unavailable, "ses", 1},
		{"throttled", "TooManyRequestsException", 429, apperr.Unavailable, "ses", 3},
		{"no permission", "AccessDeniedException", 403, apperr.Unavailable, "ses", 1},
		{"outage: it may have been sent, so not twice", "InternalFailure", 500, apperr.Unavailable, "ses", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			calls := 0
			o := at(t, func(w http.ResponseWriter, r *http.Request) {
				calls++
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("X-Amzn-Errortype", c.code)
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, `{"message":"Email address is not verified: ana@acme.test"}`)
			})
			err := o.Send(t.Context(), message())
			if e := apperr.From(err); err == nil || e.Kind != c.kind || e.Name() != c.want || calls != c.calls {
				t.Errorf("%v after %d calls", err, calls)
			}
			if err != nil && strings.Contains(err.Error(), "ana@") {
				t.Errorf("an address for the log: %v", err)
			}
		})
	}
}

func TestTooLarge(t *testing.T) {
	o := at(t, func(http.ResponseWriter, *http.Request) { t.Error("SES was asked") })
	m := message()
	m.Original = []byte(strings.Repeat("x", 41<<20))
	if err := o.Send(t.Context(), m); !apperr.Is(err, apperr.TooLarge) {
		t.Errorf("%v", err)
	}
	m = message()
	m.Recipient = "ana@acme.test\r\nX"
	if err := o.Send(t.Context(), m); !apperr.Is(err, apperr.Invalid) {
		t.Errorf("%v", err)
	}
}

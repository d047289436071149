package awsclient_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go"

	"github.com/buzon-mail/buzon/shared/awsclient"
)

// answered is a failure as a service answers it.
type answered struct {
	smithy.APIError
	status int
}

func (a answered) HTTPStatusCode() int { return a.status }
func (a answered) Unwrap() error       { return a.APIError }

func api(status int, code, message string) error {
	return fmt.Errorf("operation error: %w", answered{&smithy.GenericAPIError{Code: code, Message: message}, status})
}

// TestRefused: what is wrongly taken for refused is done twice.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want bool
	}{
		{"throttled", api(400, "ThrottlingException", ""), true},
		{"slow down", api(503, "SlowDown", ""), true},
		{"a condition", api(400, "ConditionalCheckFailedException", ""), true},
		{"expired credentials", api(403, "ExpiredToken", ""), true},
		{"never connected", fmt.Errorf("send: %w", &net.OpError{Op: "dial", Err: errors.New("refused")}), true},
		{"lost while reading", fmt.Errorf("send: %w", &net.OpError{Op: "read", Err: errors.New("reset")}), false},
		{"500", api(500, "InternalServerError", ""), false},
		{"503", api(503, "ServiceUnavailable", ""), false},
		{"a body that came too slowly", api(400, "RequestTimeout", ""), false},
		{"still under way", api(400, "TransactionInProgressException", ""), false},
		{"no code", errors.New("unexpected end of JSON"), false},
	} {
		if got := awsclient.Refused(c.err); got != c.want {
			t.Errorf("%s: refused %t, want %t", c.name, got, c.want)
		}
	}
}

func TestExplain(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for _, c := range []struct {
		err     error
		want    string
		without string
	}{
		{api(403, "AccessDenied", "not authorized to perform s3:GetObject"), "lacks a permission: not authorized to perform s3:GetObject", ""},
		{api(400, "com.amazon.coral#ExpiredTokenException", "expired"), "ExpiredTokenException (HTTP status 400): the credentials of this process have expired", "coral"},
		{api(400, "ValidationException", "value ana@acme.test is bad"), "ValidationException (HTTP status 400)", "ana@"},
		{api(500, "InternalError", long), "xxx...", long},
		{fmt.Errorf("operation error S3: https://host/%s: %w", long, errors.New("EOF")), "no usable answer (HTTP status 0): EOF", "host"},
		{api(500, "InternalError", "\xff\xfe"), "?", "\xff"},
	} {
		got := awsclient.Explain(c.err).Error()
		if !strings.Contains(got, c.want) || c.without != "" && strings.Contains(got, c.without) {
			t.Errorf("%.100v: %q, want %q without %.20q", c.err, got, c.want, c.without)
		}
		if brief := awsclient.Brief(c.err).Error(); strings.Contains(brief, "s3:GetObject") || !strings.HasPrefix(got, brief) {
			t.Errorf("%.100v: brief %q", c.err, brief)
		}
		if errors.Unwrap(awsclient.Explain(c.err)) != nil {
			t.Errorf("%.100v: AWS's own error hangs on", c.err)
		}
	}
}

func TestStatic(t *testing.T) {
	c, err := awsclient.Static("eu-west-1", "A", "s", "t")
	if err != nil || c.Region != "eu-west-1" || c.Validate() != nil || c.Base() != nil {
		t.Fatalf("config %+v, %v", c, err)
	}
	got, err := c.Credentials.Retrieve(t.Context())
	if err != nil || got.AccessKeyID != "A" || got.SecretAccessKey != "s" || got.SessionToken != "t" {
		t.Errorf("credentials of %q, %v", got.AccessKeyID, err)
	}
	for _, missing := range [][3]string{{"", "A", "s"}, {"eu-west-1", "", "s"}, {"eu-west-1", "A", ""}} {
		if _, err := awsclient.Static(missing[0], missing[1], missing[2], ""); err == nil || strings.Contains(err.Error(), "eu-west") {
			t.Errorf("%v: %v", missing, err)
		}
	}
}

// TestRedirectsAreNotFollowed: a signed request that goes on to another host gives it the session token.
func TestRedirectsAreNotFollowed(t *testing.T) {
	c := awsclient.NewHTTP(time.Second, time.Second)
	if err := c.CheckRedirect(nil, nil); !errors.Is(err, http.ErrUseLastResponse) {
		t.Errorf("err = %v", err)
	}
}

func TestBackoff(t *testing.T) {
	r := awsclient.Config{}.NewRetries()
	for n := 1; n < 80; n++ {
		for err, most := range map[error]time.Duration{errors.New("x"): time.Second, api(400, "SlowDown", ""): 4 * time.Second} {
			if d, derr := r.RetryDelay(n, err); derr != nil || d < 0 || d > most {
				t.Errorf("attempt %d: wait %v, %v", n, d, derr)
			}
		}
	}
}

package deployed

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/buzon-mail/buzon/shared/awsclient"
	"github.com/buzon-mail/buzon/shared/config"
	"github.com/buzon-mail/buzon/shared/testkit/faults"
)

// account is one whose requests go through a client that answers as it is told.
func account(client *faults.Client) Account {
	return Account{
		Clock: func() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) },
		AWS: awsclient.Config{
			Region: "eu-west-1", HTTP: client, Backoff: func(int, bool) time.Duration { return 0 },
			Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret-canary", SessionToken: "session"}, nil
			}),
		},
	}
}

const found = `{"ARN":"arn:aws:secretsmanager:eu-west-1:123456789012:secret:buzon/root-AbCdEf","Name":"buzon/root","SecretString":"r1:canary"}`

func TestSecret(t *testing.T) {
	var seen *http.Request
	client := &faults.Client{}
	client.Then(func(r *http.Request, _ func() (*http.Response, error)) (*http.Response, error) {
		seen = r
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(found))}, nil
	})
	value, err := account(client).Secret(t.Context(), "buzon/root")
	if err != nil || string(value) != "r1:canary" {
		t.Fatalf("value %q, %v", value, err)
	}
	sent := string(client.Asked()[0].Body)
	if seen.Method != "POST" || seen.URL.String() != "https://secretsmanager.eu-west-1.amazonaws.com/" || sent != `{"SecretId":"buzon/root"}` ||
		seen.Header.Get("X-Amz-Target") != "secretsmanager.GetSecretValue" || seen.Header.Get("X-Amz-Security-Token") != "session" ||
		!strings.Contains(seen.Header.Get("Authorization"), "Credential=AKID/20261130/eu-west-1/secretsmanager/aws4_request") {
		t.Errorf("request %s %s %v %s", seen.Method, seen.URL, seen.Header, sent)
	}
	a := account(&faults.Client{})
	a.AWS.Region = "cn-north-1"
	r, err := a.secretRequest(t.Context(), nil)
	if err != nil || r.URL.Host != "secretsmanager.cn-north-1.amazonaws.com.cn" {
		t.Errorf("in China: %v, %v", r, err)
	}
}

func TestSecretFailures(t *testing.T) {
	good := faults.Answer(200, found)
	tests := []struct {
		name  string
		steps []faults.Step
		asked int
		ok    bool
		says  string
	}{
		{"an outage that ends", []faults.Step{faults.Answer(500, "{}"), faults.Lost(), good}, 3, true, ""},
		{"throttled, then served", []faults.Step{faults.Refuse(400, "ThrottlingException", "canary"), good}, 2, true, ""},
		{"an outage", faults.Repeat(5, faults.Answer(503, "canary")), 3, false, "503"},
		{"no answer", faults.Repeat(5, faults.Timeout()), 3, false, "timeout"},
		{"missing", []faults.Step{faults.Refuse(400, "ResourceNotFoundException", "canary")}, 1, false, "it does not exist"},
		{"forbidden", []faults.Step{faults.Refuse(400, "AccessDeniedException", "canary")}, 1, false, "may not read it"},
		{"an odd refusal", []faults.Step{faults.Answer(400, `{"__type":"<canary>"}`)}, 1, false, "400"},
		{"not JSON", []faults.Step{faults.Answer(200, "canary")}, 1, false, "no text"},
		{"binary", []faults.Step{faults.Answer(200, `{"SecretBinary":"Y2FuYXJ5"}`)}, 1, false, "no text"},
		{"endless", []faults.Step{faults.Answer(200, `{"SecretString":"`+strings.Repeat("canary", maxSecret/6+1)+`"}`)}, 1, false, "no text"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			client := &faults.Client{}
			client.Then(tt.steps...)
			value, err := account(client).Secret(t.Context(), config.Secret("buzon/root"))
			if (err == nil) != tt.ok || (string(value) == "r1:canary") != tt.ok {
				t.Fatalf("value %q, %v", value, err)
			}
			if n := len(client.Asked()); n != tt.asked {
				t.Errorf("%d attempts, want %d", n, tt.asked)
			}
			if tt.ok {
				return
			}
			if !errors.Is(err, ErrSecret) || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v", err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	client := &faults.Client{}
	client.Then(faults.Repeat(5, faults.Timeout())...)
	if _, err := account(client).Secret(ctx, "x"); err == nil || len(client.Asked()) > 1 {
		t.Errorf("after the end: %v, %d attempts", err, len(client.Asked()))
	}
}

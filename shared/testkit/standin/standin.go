// Package standin is the AWS of tests, in this process and without a network: DynamoDB (minidyn, mended), S3 (gofakes3), SQS and
// Secrets Manager, behind one HTTP client of the SDK, which can be told to fail. Tests only. It has what the service asks of AWS and
// refuses the rest, as the roles of the template do; make awstest runs the same tests on moto, which knows more of AWS.
package standin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/buzon-mail/buzon/shared/awsclient"
	"github.com/buzon-mail/buzon/shared/config"
	"github.com/buzon-mail/buzon/shared/testkit/minidyn"
)

// What an AWS of New has.
const (
	Region  = "eu-west-1"
	Bucket  = "buzon-mail-123456789012-eu-west-1"
	Jobs    = "https://sqs.eu-west-1.amazonaws.com/123456789012/buzon-jobs"
	Dead    = Jobs + "-dead"
	Roots   = "buzon/roots"
	KeySet  = "buzon/keys"
	Hooks   = "buzon/webhooks"
	core    = "buzon-core"
	ephemer = "buzon-ephemeral"
)

// AWS is an account.
type AWS struct {
	// Fault is asked before each request of the service; nil: nothing fails. Set it before the service starts.
	Fault Fault

	SQS     *SQS
	Secrets *Secrets
	dynamo  http.Handler
	s3      http.Handler
}

// Fault decides what becomes of a request, by its operation: that of a JSON protocol, else method and path. An error is a request
// that never arrived.
type Fault func(op string) (Outcome, error)

// Outcome is what becomes of a request that arrives. The zero value is its own answer.
type Outcome struct {
	Answer *http.Response // instead of doing it
	Lost   bool           // it is done, and the answer never comes
}

// New makes an account with two tables, a bucket, a queue with its dead-letter queue and these secrets.
func New(ctx context.Context, clock func() time.Time, secrets map[string]string) (*AWS, error) {
	backend := s3mem.New()
	if err := backend.CreateBucket(Bucket); err != nil {
		return nil, fmt.Errorf("standin: bucket: %w", err)
	}
	a := &AWS{
		SQS: NewSQS(clock, 5, map[string]string{Jobs: Dead}), dynamo: minidyn.New(), s3: gofakes3.New(backend).Server(), Secrets: NewSecrets(secrets),
	}
	cfg := a.Config()
	if err := minidyn.Tables(ctx, cfg, core, ephemer); err != nil {
		return nil, err
	}
	return a, nil
}

// Names is the account as the template's environment names it.
func (a *AWS) Names() config.AWS {
	return config.AWS{Region: Region, CoreTable: core, EphemeralTable: ephemer, Bucket: Bucket, JobsQueue: Jobs}
}

// Config is for the SDK's clients. Retries do not wait.
func (a *AWS) Config() awsclient.Config {
	return awsclient.Config{
		Region: Region, HTTP: a, Backoff: func(int, bool) time.Duration { return 0 },
		Endpoint: "https://standin.example", // one host, so that S3 has its bucket in the path
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret"}, nil
		}),
	}
}

// Do implements the SDK's HTTP client.
func (a *AWS) Do(r *http.Request) (*http.Response, error) {
	body := []byte{}
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, fmt.Errorf("read the request: %w", err)
		}
	}
	service, op, target := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if !target {
		op = r.Method + " " + r.URL.Path
	}
	var outcome Outcome
	if a.Fault != nil {
		var err error
		if outcome, err = a.Fault(op); err != nil {
			return nil, err
		}
		if outcome.Answer != nil {
			outcome.Answer.Request = r
			return outcome.Answer, nil
		}
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	rec, in := httptest.NewRecorder(), r.Clone(r.Context())
	in.Body, in.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	in.Header.Set("Content-Length", strconv.Itoa(len(body))) // as a server finds it
	in.RequestURI, in.RemoteAddr, in.Host = r.URL.RequestURI(), "127.0.0.1:1", r.URL.Host
	switch {
	case strings.HasPrefix(service, "DynamoDB_"):
		a.dynamo.ServeHTTP(rec, in)
	case service == "AmazonSQS":
		a.SQS.ServeHTTP(rec, in)
	case service == "secretsmanager":
		a.Secrets.ServeHTTP(rec, in)
	default:
		a.s3.ServeHTTP(rec, in)
	}
	if outcome.Lost {
		return nil, ErrLost
	}
	return rec.Result(), nil
}

// ErrLost is a connection that broke.
var ErrLost = errors.New("read: connection reset by peer")

// Refusal is the answer by which AWS refuses a request of its JSON protocol.
func Refusal(status int, code string) *http.Response {
	rec := httptest.NewRecorder()
	rec.Header().Set("X-Amzn-Requestid", "REQ123")
	rec.WriteHeader(status)
	_, _ = fmt.Fprintf(rec, `{"__type":"com.amazonaws.service#%s","message":"no"}`, code)
	return rec.Result()
}

func refuse(w http.ResponseWriter, code string) {
	w.WriteHeader(http.StatusBadRequest)
	_, _ = fmt.Fprintf(w, `{"__type":"com.amazonaws.service#%s","message":"no"}`, code)
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	_ = json.NewEncoder(w).Encode(v)
}

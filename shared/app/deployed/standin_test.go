package deployed_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/buzon-mail/buzon/shared/app/deployed"
	"github.com/buzon-mail/buzon/shared/app/inbound"
	"github.com/buzon-mail/buzon/shared/app/worker"
	"github.com/buzon-mail/buzon/shared/awsclient"
	"github.com/buzon-mail/buzon/shared/config"
	"github.com/buzon-mail/buzon/shared/demo"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/testkit/standin"
)

// standIn is what make awstest sets: an endpoint of all of AWS.
const standIn = "BUZON_TEST_AWS_ENDPOINT"

// flaky loses some requests on their way and some answers on theirs, and is told to stop.
type flaky struct {
	next aws.HTTPClient
	// fault answers every request where it is set; it is not changed while one is under way.
	fault func(r *http.Request, pass func() (*http.Response, error)) (*http.Response, error)
	mu    sync.Mutex
	rng   *rand.Rand // guarded by mu
	off   bool       // guarded by mu
	lost  int        // guarded by mu
}

var errLost = errors.New("connection reset by peer")

func (f *flaky) Do(r *http.Request) (*http.Response, error) {
	if f.fault != nil {
		return f.fault(r, func() (*http.Response, error) { return f.next.Do(r) })
	}
	f.mu.Lock()
	luck := f.rng.IntN(100)
	if f.off {
		luck = 100
	}
	if luck < 8 {
		f.lost++
	}
	f.mu.Unlock()
	switch {
	case luck < 3:
		return nil, errLost
	case luck < 6:
		return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	case luck < 8:
		res, err := f.next.Do(r)
		if err == nil {
			_ = res.Body.Close()
		}
		return nil, errLost
	}
	return f.next.Do(r)
}

// stack is the deployed service on a stand-in.
type stack struct {
	t       *testing.T
	account deployed.Account
	flaky   *flaky
	store   *inboxstore.Store
	inbound *inbound.Function
	worker  *worker.Function
	s3      *s3.Client
	sqs     *sqs.Client
	log     bytes.Buffer
	mu      sync.Mutex // guards log
}

// Write takes the functions' log.
func (s *stack) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(p)
}

func (s *stack) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// newStack is the service on the stand-ins of this process.
func newStack(t *testing.T) *stack {
	t.Helper()
	aws, err := standin.New(t.Context(), time.Now, nil)
	if err != nil {
		t.Fatal(err)
	}
	aws.SQS.Duplicate(5)
	s := &stack{t: t, flaky: &flaky{next: aws, rng: rand.New(rand.NewPCG(1, 2)), off: true}}
	s.client(aws, aws.Config().Base())
	cfg := aws.Config()
	cfg.HTTP = s.flaky
	s.start(cfg, aws.Names())
	return s
}

// client makes the clients of the test's own, which nothing fails.
func (s *stack) client(sure aws.HTTPClient, base *string) {
	keys := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret"}, nil
	})
	s.s3 = s3.New(s3.Options{Region: "eu-west-1", Credentials: keys, BaseEndpoint: base, HTTPClient: sure, UsePathStyle: true})
	s.sqs = sqs.New(sqs.Options{Region: "eu-west-1", Credentials: keys, BaseEndpoint: base, HTTPClient: sure})
}

// start makes the sample world and the functions.
func (s *stack) start(cfg awsclient.Config, names config.AWS) {
	s.t.Helper()
	s.account = deployed.Account{AWS: cfg, Names: names, Clock: time.Now}
	var err error
	s.store, err = s.account.Store()
	s.must(err)
	s.must(demo.Seed(s.t.Context(), s.store))
	s.inbound, err = inbound.On(s.account, s)
	s.must(err)
	s.worker, err = worker.On(s.account, s)
	s.must(err)
}

// newStackAt is the service on a server that is a stand-in.
func newStackAt(t *testing.T, endpoint string) *stack {
	t.Helper()
	sure := awsclient.NewHTTP(time.Minute, time.Minute)
	s := &stack{t: t, flaky: &flaky{next: sure, rng: rand.New(rand.NewPCG(1, 2)), off: true}}
	cfg := awsclient.Config{
		Region: "eu-west-1", Endpoint: endpoint, HTTP: s.flaky, Backoff: func(int, bool) time.Duration { return 0 },
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret"}, nil
		}),
	}
	names := config.AWS{CoreTable: "deployed-core", EphemeralTable: "deployed-ephemeral", Bucket: "buzon-mail-123456789012-eu-west-1"}
	tables := dynamodb.New(dynamodb.Options{Region: cfg.Region, Credentials: cfg.Credentials, BaseEndpoint: cfg.Base(), HTTPClient: sure})
	for _, name := range []string{names.CoreTable, names.EphemeralTable} {
		_, err := tables.CreateTable(t.Context(), &dynamodb.CreateTableInput{
			TableName: &name, BillingMode: dynamotypes.BillingModePayPerRequest,
			AttributeDefinitions: []dynamotypes.AttributeDefinition{
				{AttributeName: aws.String("pk"), AttributeType: dynamotypes.ScalarAttributeTypeS},
				{AttributeName: aws.String("sk"), AttributeType: dynamotypes.ScalarAttributeTypeS},
			},
			KeySchema: []dynamotypes.KeySchemaElement{
				{AttributeName: aws.String("pk"), KeyType: dynamotypes.KeyTypeHash}, {AttributeName: aws.String("sk"), KeyType: dynamotypes.KeyTypeRange},
			},
		})
		s.must(err)
	}
	s.client(sure, cfg.Base())
	_, err := s.s3.CreateBucket(t.Context(), &s3.CreateBucketInput{
		Bucket: &names.Bucket, CreateBucketConfiguration: &s3types.CreateBucketConfiguration{LocationConstraint: "eu-west-1"},
	})
	s.must(err)
	queue, err := s.sqs.CreateQueue(t.Context(), &sqs.CreateQueueInput{
		QueueName: aws.String("deployed-jobs"), Attributes: map[string]string{"VisibilityTimeout": "0"}, // what failed comes again at once
	})
	s.must(err)
	names.JobsQueue = *queue.QueueUrl
	s.start(cfg, names)
	return s
}

// notice stores a mail as SES does and returns what the queue gets.
func (s *stack) notice(n int, to ...string) string {
	s.t.Helper()
	id := fmt.Sprintf("standin%032d", n)
	raw := fmt.Sprintf("From: a@example.com\r\nTo: list@example.com\r\nSubject: Mail %d\r\nMessage-ID: <%d@example.com>\r\n\r\nHello %d.\r\n", n, n, n)
	key := "ses/" + id
	_, err := s.s3.PutObject(s.t.Context(), &s3.PutObjectInput{Bucket: &s.account.Names.Bucket, Key: &key, Body: strings.NewReader(raw)})
	s.must(err)
	inner, err := json.Marshal(map[string]any{
		"notificationType": "Received",
		"mail":             map[string]any{"timestamp": "2026-11-30T10:15:04.512Z", "source": "a@example.com", "messageId": id},
		"receipt": map[string]any{
			"recipients": to, "spfVerdict": map[string]string{"status": "PASS"}, "dmarcVerdict": map[string]string{"status": "PASS"},
			"action": map[string]string{"type": "S3", "bucketName": s.account.Names.Bucket, "objectKey": key},
		},
	})
	s.must(err)
	outer, err := json.Marshal(map[string]string{"Type": "Notification", "Message": string(inner)})
	s.must(err)
	return string(outer)
}

// batch is an event of SQS; receipts are those of the messages, or none.
func (s *stack) batch(bodies, receipts []string) []byte {
	s.t.Helper()
	var records []map[string]any
	for i, body := range bodies {
		r := map[string]any{"messageId": fmt.Sprint(i), "body": body, "eventSource": "aws:sqs", "eventSourceARN": "arn:aws:sqs:eu-west-1:123456789012:q"}
		if receipts != nil {
			r["receiptHandle"] = receipts[i]
		}
		records = append(records, r)
	}
	out, err := json.Marshal(map[string]any{"Records": records})
	s.must(err)
	return out
}

// failed are the places of the messages that are to come again.
func (s *stack) failed(reply []byte, err error) map[string]bool {
	s.t.Helper()
	s.must(err)
	var r struct {
		Failures []struct {
			ID string `json:"itemIdentifier"`
		} `json:"batchItemFailures"`
	}
	s.must(json.Unmarshal(reply, &r))
	out := map[string]bool{}
	for _, f := range r.Failures {
		out[f.ID] = true
	}
	return out
}

// poll is what Lambda does with a queue: batches of ten, of which those that the reply does not name are deleted. It stops when
// the queue is empty.
func (s *stack) poll() {
	s.t.Helper()
	for {
		got, err := s.sqs.ReceiveMessage(s.t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &s.account.Names.JobsQueue, MaxNumberOfMessages: 10, VisibilityTimeout: 30})
		s.must(err)
		if len(got.Messages) == 0 {
			return
		}
		var bodies, receipts []string
		for _, m := range got.Messages {
			bodies, receipts = append(bodies, *m.Body), append(receipts, *m.ReceiptHandle)
		}
		again := s.failed(s.worker.Invoke(s.t.Context(), s.batch(bodies, receipts)))
		var end []sqstypes.DeleteMessageBatchRequestEntry
		for i := range got.Messages {
			if id := fmt.Sprint(i); !again[id] {
				end = append(end, sqstypes.DeleteMessageBatchRequestEntry{Id: &id, ReceiptHandle: &receipts[i]})
			}
		}
		if len(end) > 0 {
			_, err := s.sqs.DeleteMessageBatch(s.t.Context(), &sqs.DeleteMessageBatchInput{QueueUrl: &s.account.Names.JobsQueue, Entries: end})
			s.must(err)
		}
	}
}

func (s *stack) tick() error {
	s.t.Helper()
	_, err := s.worker.Invoke(s.t.Context(), fmt.Appendf(nil, `{"id":"t","source":"aws.events","detail-type":"Scheduled Event","time":%q}`, time.Now().Format(time.RFC3339)))
	return err
}

// mails are those of an inbox.
func (s *stack) mails(address string) []*inbox.Row {
	s.t.Helper()
	r, err := s.store.Recipient(s.t.Context(), address)
	s.must(err)
	list, _, err := s.store.Emails(s.t.Context(), inbox.EmailRange{Workspace: r.Workspace, Inbox: r.Inbox, Limit: 200})
	s.must(err)
	return list
}

// TestMailOnStandIn is mail from SES's notice to what an agent reads, on the stand-in's DynamoDB, S3 and SQS, with requests and
// answers lost, every notice twice, one mail for two tenants, one for nobody, one for a paused inbox and one that is gone.
func TestMailOnStandIn(t *testing.T) {
	endpoint := os.Getenv(standIn)
	if endpoint == "" {
		t.Skipf("%s names no endpoint; make awstest starts one", standIn)
	}
	mailGoes(t, newStackAt(t, endpoint))
}

// TestMail is TestMailOnStandIn on the stand-ins of this process, whose queue gives the newest first and every fifth message twice.
func TestMail(t *testing.T) { mailGoes(t, newStack(t)) }

func mailGoes(t *testing.T, s *stack) {
	const plain = 24
	var notices []string
	for i := range plain {
		notices = append(notices, s.notice(i, "facturas@acme.test"))
	}
	notices = append(notices,
		s.notice(100, "facturas@acme.test", "orders@globex.test", "nobody@acme.test"), s.notice(101, "nobody@acme.test"),
		s.notice(102, "soporte@acme.test"), "garbage")
	s.state("soporte@acme.test", inbox.StatePaused)

	s.flaky.mu.Lock()
	s.flaky.off = false
	s.flaky.mu.Unlock()
	waiting := append(append([]string{}, notices...), notices...)
	for round := 0; len(waiting) > 1 || round == 0; round++ { // garbage comes again until SQS sets it aside
		if round > 30 {
			t.Fatalf("%d notices are left: %s", len(waiting), s.log.String())
		}
		again := s.failed(s.inbound.Invoke(t.Context(), s.batch(waiting, nil)))
		var left []string
		for i, body := range waiting {
			if again[fmt.Sprint(i)] && (body != "garbage" || len(left) == 0) {
				left = append(left, body)
			}
		}
		waiting = left
		s.poll()
	}
	s.flaky.mu.Lock()
	s.flaky.off = true
	if s.flaky.lost < 20 {
		t.Errorf("only %d requests or answers were lost: the test proves little", s.flaky.lost)
	}
	s.flaky.mu.Unlock()
	s.settle()

	to, err := s.store.Recipient(t.Context(), "facturas@acme.test")
	s.must(err)
	if got := s.mails("facturas@acme.test"); len(got) != plain+1 {
		t.Errorf("%d mails, want %d", len(got), plain+1)
	} else {
		for _, m := range got {
			e, _, err := s.store.Email(t.Context(), to.Workspace, m.ID, false)
			if err != nil || m.Status != inbox.StatusProcessed || e.Trust.Level != inbox.Verified || len(e.Auth) != 3 {
				t.Errorf("%s is %s, %s by %+v, %v", m.ID, m.Status, e.Trust.Level, e.Auth, err)
			}
		}
	}
	if got := s.mails("orders@globex.test"); len(got) != 1 || got[0].Status != inbox.StatusProcessed {
		t.Errorf("the other tenant has %+v", got)
	}
	if got := s.mails("soporte@acme.test"); len(got) != 0 {
		t.Errorf("the paused inbox has %d", len(got))
	}
	s.state("soporte@acme.test", inbox.StateActive)
	s.must(s.tick())
	s.poll()
	if got := s.mails("soporte@acme.test"); len(got) != 1 || got[0].Status != inbox.StatusProcessed {
		t.Errorf("the resumed inbox has %+v", got)
	}
	blobs, err := s.account.Blobs()
	s.must(err)
	if text, err := blobs.Get(t.Context(), fmt.Sprintf("unknown/standin%032d", 101), 1<<20); err != nil || !strings.Contains(string(text), "Mail 101") {
		t.Errorf("the mail for nobody: %q, %v", text, err)
	}
}

// settle does what the minutes would: the outbox brings back what lost answers left behind.
func (s *stack) settle() {
	s.t.Helper()
	for range 5 {
		s.must(s.tick())
		s.poll()
		left, err := s.store.Pending(s.t.Context(), time.Now().Add(time.Hour), 100)
		s.must(err)
		if len(left) == 0 {
			return
		}
		if s.worker, err = worker.On(s.account, s); err != nil { // another instance, which remembers nothing
			s.t.Fatal(err)
		}
	}
	s.t.Fatalf("the outbox is not empty: %s", s.log.String())
}

func (s *stack) state(address string, state inbox.State) {
	s.t.Helper()
	r, err := s.store.Recipient(s.t.Context(), address)
	s.must(err)
	_, err = s.store.UpdateInbox(s.t.Context(), r.Workspace, r.Inbox, inbox.Act{}, func(in *inbox.Inbox) error { in.State = state; in.Version++; return nil })
	s.must(err)
}

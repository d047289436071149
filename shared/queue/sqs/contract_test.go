package sqsqueue_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/buzon-mail/buzon/shared/awsclient"
	"github.com/buzon-mail/buzon/shared/queue"
	"github.com/buzon-mail/buzon/shared/queue/queuetest"
	sqsqueue "github.com/buzon-mail/buzon/shared/queue/sqs"
	"github.com/buzon-mail/buzon/shared/testkit/faults"
	"github.com/buzon-mail/buzon/shared/testkit/standin"
)

// What make awstest sets: an endpoint of SQS to test against, and the file by which its clock is put forward.
const (
	standIn      = "BUZON_TEST_AWS_ENDPOINT"
	standInClock = "BUZON_TEST_AWS_CLOCK"
)

// at is patient: on a busy machine a stand-in takes longer than AWS.
func at(endpoint string) awsclient.Config {
	return awsclient.Config{
		Region: "eu-west-1", Endpoint: endpoint, Backoff: func(int, bool) time.Duration { return 0 },
		HTTP: awsclient.NewHTTP(time.Minute, time.Minute),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret"}, nil
		}),
	}
}

// clock is put forward by the tests.
type clock struct {
	mu    sync.Mutex
	ahead time.Duration // guarded by mu
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

func TestContract(t *testing.T) {
	queuetest.Run(t, func(t *testing.T) queuetest.Harness {
		c := &clock{}
		cfg := at("http://sqs.test")
		cfg.HTTP = &faults.Client{Server: standin.NewSQS(c.now, queue.MaxAttempts, map[string]string{url: deadURL})}
		q, err := sqsqueue.New(sqsqueue.Options{AWS: cfg, URL: url, DeadURL: deadURL})
		if err != nil {
			t.Fatal(err)
		}
		return queuetest.Harness{Queue: q, Source: q, Dead: q, Pass: func(d time.Duration) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.ahead += d
		}}
	})
}

func TestContractOnStandIn(t *testing.T) {
	endpoint, clock := os.Getenv(standIn), os.Getenv(standInClock)
	if endpoint == "" || clock == "" {
		t.Skipf("%s names no endpoint; make awstest starts one", standIn)
	}
	cfg := at(endpoint)
	client := sqs.New(sqs.Options{Region: cfg.Region, Credentials: cfg.Credentials, BaseEndpoint: cfg.Base()})
	var ahead time.Duration
	queuetest.Run(t, func(t *testing.T) queuetest.Harness {
		// As the template makes them.
		own := rand.Text()
		deadURL := create(t, client, own+"-dead", nil)
		arn, err := client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &deadURL, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn}})
		if err != nil {
			t.Fatal(err)
		}
		url := create(t, client, own, map[string]string{
			"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, arn.Attributes["QueueArn"], queue.MaxAttempts),
		})
		q, err := sqsqueue.New(sqsqueue.Options{AWS: cfg, URL: url, DeadURL: deadURL})
		if err != nil {
			t.Fatal(err)
		}
		return queuetest.Harness{Queue: q, Source: q, Dead: q, Pass: func(d time.Duration) {
			ahead += d
			if err := os.WriteFile(clock, []byte(strconv.FormatInt(ahead.Milliseconds(), 10)), 0o600); err != nil {
				t.Fatal(err)
			}
		}}
	})
}

func create(t *testing.T, client *sqs.Client, name string, attributes map[string]string) string {
	t.Helper()
	out, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		t.Fatal(err)
	}
	return *out.QueueUrl
}

// Package sqsqueue is a queue in SQS (its folder is sqs, a name that the SDK has taken). A message's body is its id in JSON; a lease is SQS's visibility timeout, a receipt its
// receipt handle, and the dead are in the queue's dead-letter queue, where its redrive policy moves them.
//
// What SQS does less than the contract: seconds are whole, so leases and delays are rounded up; a receipt whose lease ended while
// someone else holds the message may end or move that lease after all (AWS: "the message might not be deleted"); a message can't
// be put off beyond twelve hours from its receipt. Consumers are idempotent by id, which is what makes all three harmless. The
// package knows nothing of the work.
package sqsqueue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/buzon-mail/buzon/shared/awsclient"
	"github.com/buzon-mail/buzon/shared/queue"
)

var (
	_ queue.Queue       = (*Queue)(nil)
	_ queue.Source      = (*Queue)(nil)
	_ queue.DeadLetters = (*Queue)(nil)
)

const (
	headTimeout  = 4 * time.Second
	wholeTimeout = 5 * time.Second
	maxBatch     = 10 // of SQS; a batch of ours is at most three of its
	// maxRetry is how far a message may be put off: twelve hours from its receipt, less the longest that a function may have
	// held it.
	maxRetry = queue.MaxLease - 15*time.Minute
)

// Options are the settings of New.
type Options struct {
	AWS         awsclient.Config
	URL         string // of the queue
	DeadURL     string // of its dead-letter queue; empty: the dead can't be listed
	MaxAttempts int    // maxReceiveCount of its redrive policy; queue.MaxAttempts if 0
}

// Queue is a client of one queue. Its methods may be called by many goroutines at once.
type Queue struct {
	client      *sqs.Client
	retries     *awsclient.Retries
	url, dead   *string
	maxAttempts int
}

// New makes a queue and asks AWS nothing.
func New(opts Options) (*Queue, error) {
	if err := opts.AWS.Validate(); err != nil {
		return nil, fmt.Errorf("sqs: %w", err)
	}
	if opts.URL == "" || opts.URL == opts.DeadURL || opts.MaxAttempts < 0 {
		return nil, errors.New("sqs: the URL of a queue is needed, and another for its dead")
	}
	if opts.MaxAttempts == 0 {
		opts.MaxAttempts = queue.MaxAttempts
	}
	retries := opts.AWS.NewRetries()
	return &Queue{
		client: sqs.New(sqs.Options{
			Region: opts.AWS.Region, Credentials: opts.AWS.Credentials, BaseEndpoint: opts.AWS.Base(), Retryer: retries,
			HTTPClient: opts.AWS.Client(headTimeout, wholeTimeout),
		}),
		retries: retries, url: &opts.URL, dead: &opts.DeadURL, maxAttempts: opts.MaxAttempts,
	}, nil
}

// Send implements queue.Queue: a SendMessageBatch for every ten messages.
func (q *Queue) Send(ctx context.Context, messages ...queue.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := queue.CheckSend(messages); err != nil {
		return err
	}
	entries := make([]types.SendMessageBatchRequestEntry, 0, len(messages))
	for i, m := range messages {
		entries = append(entries, types.SendMessageBatchRequestEntry{
			Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(Encode(m.ID)), DelaySeconds: seconds(m.Delay),
		})
	}
	return batches(ctx, q, "send", entries, func(e types.SendMessageBatchRequestEntry) string { return *e.Id },
		func(ctx context.Context, part []types.SendMessageBatchRequestEntry) ([]types.BatchResultErrorEntry, error) {
			out, err := q.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: q.url, Entries: part})
			if err != nil {
				return nil, err
			}
			return out.Failed, nil
		})
}

// seconds rounds up to whole ones.
func seconds(d time.Duration) int32 { return int32((d + time.Second - 1) / time.Second) } //nolint:gosec // at most 12 hours

// Receive implements queue.Source: one ReceiveMessage of at most ten. A message that is not ours is left to its lease and to the
// dead-letter queue.
func (q *Queue) Receive(ctx context.Context, max int, lease time.Duration) ([]queue.Delivery, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := queue.CheckReceive(max, lease); err != nil {
		return nil, err
	}
	out, err := q.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: q.url, MaxNumberOfMessages: int32(min(max, maxBatch)), VisibilityTimeout: seconds(lease), //nolint:gosec // checked
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameApproximateReceiveCount},
	})
	if err != nil {
		return nil, failure(ctx, "receive", err)
	}
	deliveries := make([]queue.Delivery, 0, len(out.Messages))
	for _, m := range out.Messages {
		id, err := Decode(aws.ToString(m.Body))
		if err != nil {
			continue
		}
		attempt, err := strconv.Atoi(m.Attributes[string(types.MessageSystemAttributeNameApproximateReceiveCount)])
		if err != nil {
			attempt = 1
		}
		deliveries = append(deliveries, queue.Delivery{ID: id, Attempt: attempt, Receipt: aws.ToString(m.ReceiptHandle)})
	}
	return deliveries, nil
}

// Done implements queue.Source: a DeleteMessageBatch for every ten messages.
func (q *Queue) Done(ctx context.Context, deliveries ...queue.Delivery) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := queue.CheckDone(deliveries); err != nil {
		return err
	}
	receipts := make([]string, 0, len(deliveries))
	for _, d := range deliveries {
		if !slices.Contains(receipts, d.Receipt) {
			receipts = append(receipts, d.Receipt)
		}
	}
	return q.remove(ctx, q.url, receipts)
}

func (q *Queue) remove(ctx context.Context, url *string, receipts []string) error {
	entries := make([]types.DeleteMessageBatchRequestEntry, 0, len(receipts))
	for i, r := range receipts {
		entries = append(entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: aws.String(r)})
	}
	return batches(ctx, q, "done", entries, func(e types.DeleteMessageBatchRequestEntry) string { return *e.Id },
		func(ctx context.Context, part []types.DeleteMessageBatchRequestEntry) ([]types.BatchResultErrorEntry, error) {
			out, err := q.client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: url, Entries: part})
			if err != nil {
				return nil, err
			}
			return out.Failed, nil
		})
}

// Retry implements queue.Source: one ChangeMessageVisibility.
func (q *Queue) Retry(ctx context.Context, d queue.Delivery, after time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := queue.CheckRetry(d, after); err != nil {
		return err
	}
	_, err := q.client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
		QueueUrl: q.url, ReceiptHandle: &d.Receipt, VisibilityTimeout: seconds(min(after, maxRetry)),
	})
	if err != nil && !lapsed(awsclient.Code(err), err.Error()) {
		return failure(ctx, "retry", err)
	}
	return nil
}

// lapsed tells the refusals of a receipt that is no longer valid: its message is done, or someone else's.
func lapsed(code, message string) bool {
	switch code[strings.LastIndexByte(code, '.')+1:] {
	case "ReceiptHandleIsInvalid", "MessageNotInflight":
		return true
	case "InvalidParameterValue":
		return strings.Contains(message, "does not exist or is not available") || strings.Contains(message, "has expired")
	}
	return false
}

func failure(ctx context.Context, step string, err error) error {
	if ended := ctx.Err(); ended != nil {
		return fmt.Errorf("sqs: %s: %w", step, ended)
	}
	return fmt.Errorf("sqs: %s: %w: %w", step, queue.ErrUnavailable, awsclient.Explain(err))
}

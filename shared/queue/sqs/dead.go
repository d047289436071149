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

	"github.com/buzon-mail/buzon/shared/queue"
)

// SQS can't list a queue. Looking at the dead therefore takes all of them for a moment and gives them back: dear, and nothing but
// an operator does it. While one looks, another may see less.
const (
	lookLease = 60 * time.Second
	maxLook   = 1000 // dead messages that are looked at; beyond it AWS's own redrive is the tool
	lookWait  = 1    // second; SQS then asks all of its servers, and an empty answer means that there is nothing
)

// dead is a dead message in hand.
type dead struct {
	queue.Dead
	receipt string
}

// Dead implements queue.DeadLetters. Since is when the message was sent: SQS keeps no other time. What is not of this program is
// not listed.
func (q *Queue) Dead(ctx context.Context, after string, limit int) (page []queue.Dead, next string, err error) {
	if err := queue.CheckDead(limit); err != nil {
		return nil, "", err
	}
	all, err := q.look(ctx)
	defer func() { err = errors.Join(err, q.release(ctx, all)) }()
	if err != nil {
		return nil, "", err
	}
	slices.SortFunc(all, func(a, b dead) int { return strings.Compare(a.Handle, b.Handle) })
	page = make([]queue.Dead, 0, limit)
	for _, d := range all {
		switch {
		case d.Handle <= after || d.ID == "":
		case len(page) == limit:
			return page, page[limit-1].Handle, nil
		default:
			page = append(page, d.Dead)
		}
	}
	return page, "", nil
}

// Redrive implements queue.DeadLetters: send, then delete, so that what fails between the two is a message twice and not never.
func (q *Queue) Redrive(ctx context.Context, d queue.Dead) (err error) {
	all, err := q.look(ctx)
	defer func() { err = errors.Join(err, q.release(ctx, all)) }()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(have dead) bool { return have.Handle == d.Handle && have.ID != "" })
	if i < 0 {
		return queue.ErrNotFound
	}
	if err := q.Send(ctx, queue.Message{ID: all[i].ID}); err != nil {
		return err
	}
	if err := q.remove(ctx, q.dead, []string{all[i].receipt}); err != nil {
		return err
	}
	all = slices.Delete(all, i, i+1)
	return nil
}

// look takes the dead messages. With an error it returns those that it has, to be given back.
func (q *Queue) look(ctx context.Context) (all []dead, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if *q.dead == "" {
		return nil, fmt.Errorf("sqs: %w: no dead-letter queue is configured", queue.ErrUnavailable)
	}
	for len(all) < maxLook {
		out, err := q.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: q.dead, MaxNumberOfMessages: maxBatch, VisibilityTimeout: seconds(lookLease), WaitTimeSeconds: lookWait,
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameSentTimestamp},
		})
		if err != nil {
			return all, failure(ctx, "look at the dead", err)
		}
		if len(out.Messages) == 0 {
			break
		}
		for _, m := range out.Messages {
			all = append(all, q.deadOf(m))
		}
	}
	return all, nil
}

// deadOf reads a message; one that is not of this program gets no id.
func (q *Queue) deadOf(m types.Message) dead {
	ms, err := strconv.ParseInt(m.Attributes[string(types.MessageSystemAttributeNameSentTimestamp)], 10, 64)
	if err != nil {
		ms = 0
	}
	id, err := Decode(aws.ToString(m.Body))
	if err != nil {
		id = ""
	}
	return dead{queue.Dead{
		ID: id, Attempt: q.maxAttempts, Since: time.UnixMilli(ms).UTC(), Handle: fmt.Sprintf("%015d.%s", ms, aws.ToString(m.MessageId)),
	}, aws.ToString(m.ReceiptHandle)}
}

// release gives the messages back. A caller who has gone would leave them hidden for a minute, so it goes on without them.
func (q *Queue) release(ctx context.Context, all []dead) error {
	if len(all) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wholeTimeout)
	defer cancel()
	entries := make([]types.ChangeMessageVisibilityBatchRequestEntry, 0, len(all))
	for i, d := range all {
		entries = append(entries, types.ChangeMessageVisibilityBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: aws.String(d.receipt)})
	}
	return batches(ctx, q, "give back the dead", entries, func(e types.ChangeMessageVisibilityBatchRequestEntry) string { return *e.Id },
		func(ctx context.Context, part []types.ChangeMessageVisibilityBatchRequestEntry) ([]types.BatchResultErrorEntry, error) {
			out, err := q.client.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: q.dead, Entries: part})
			if err != nil {
				return nil, err
			}
			return out.Failed, nil
		})
}

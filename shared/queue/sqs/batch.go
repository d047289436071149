package sqsqueue

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/buzon-mail/buzon/shared/awsclient"
	"github.com/buzon-mail/buzon/shared/queue"
)

// batches does entries ten at a time. SQS answers 200 though parts of a batch failed: those that failed by its own fault are done
// again, those whose receipt is no longer valid are no failure, and any other is an error, though the rest is done all the same.
func batches[E any](
	ctx context.Context, q *Queue, step string, entries []E, id func(E) string,
	do func(context.Context, []E) ([]types.BatchResultErrorEntry, error),
) error {
	var first error
	for len(entries) > 0 {
		part := entries[:min(len(entries), maxBatch)]
		entries = entries[len(part):]
		for attempt := 1; len(part) > 0; attempt++ {
			failed, err := do(ctx, part)
			if err != nil {
				return failure(ctx, step, err)
			}
			again, refused := sift(part, failed, id)
			if refused != nil && first == nil {
				first = fmt.Errorf("sqs: %s: %w: %w", step, queue.ErrUnavailable, refused)
			}
			if part = again; len(part) == 0 {
				break
			}
			if attempt == awsclient.MaxAttempts {
				return fmt.Errorf("sqs: %s: %w: %d messages of a batch failed", step, queue.ErrUnavailable, len(part))
			}
			if err := q.retries.Wait(ctx, attempt); err != nil {
				return fmt.Errorf("sqs: %s: %w", step, err)
			}
		}
	}
	return first
}

// sift returns the entries to do again, and an error for what can't be done.
func sift[E any](part []E, failed []types.BatchResultErrorEntry, id func(E) string) (again []E, refused error) {
	for _, f := range failed {
		code := aws.ToString(f.Code)
		switch {
		case lapsed(code, aws.ToString(f.Message)):
		case f.SenderFault:
			refused = fmt.Errorf("a message of a batch was refused: %.60q", code)
		default:
			for _, e := range part {
				if id(e) == aws.ToString(f.Id) {
					again = append(again, e)
				}
			}
		}
	}
	return again, refused
}

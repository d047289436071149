// Package jobqueue is the queue of a function on AWS, apart from the other engines: whoever has no queue links none.
package jobqueue

import (
	"github.com/buzon-mail/buzon/shared/app/deployed"
	sqsqueue "github.com/buzon-mail/buzon/shared/queue/sqs"
)

// Open is the queue of an account. It asks AWS nothing.
func Open(a deployed.Account) (*sqsqueue.Queue, error) {
	return sqsqueue.New(sqsqueue.Options{AWS: a.AWS, URL: a.Names.JobsQueue})
}

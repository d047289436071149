// Package dynamo is store.Engine on two DynamoDB tables. A row is one item; there are no indexes and nothing scans.
//
//	attribute  type  holds
//	pk, sk     S     Partition and Sort: the table's key
//	data       B     Data; absent when empty
//	fmt        N     Format
//	rev        N     Revision
//	exp        N     Expires in seconds, the TTL attribute of both tables; absent for never
//	+<name>    N     a counter, so that AWS adds to it without reading the row
//
// DynamoDB deletes expired items late, by days, so every condition and every read looks at exp itself. Reads are strongly
// consistent. A write on one row is a PutItem, DeleteItem or UpdateItem, half the price of a transaction of one.
//
// A failure that leaves a write's outcome unknown (no answer, a 5xx) is tried again only where doing it twice is harmless, and
// is store.ErrUnavailable at last; see write.go. The package knows nothing of what the rows mean.
package dynamo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/buzon-mail/buzon/shared/awsclient"
	"github.com/buzon-mail/buzon/shared/store"
)

var _ store.Engine = (*Engine)(nil)

// DynamoDB answers in milliseconds, a full page in some tens: what takes longer will not come.
const (
	headTimeout  = 3 * time.Second
	wholeTimeout = 5 * time.Second
)

// Options are the settings of New.
type Options struct {
	AWS             awsclient.Config
	Core, Ephemeral string           // names of the tables
	Clock           func() time.Time // tells when rows expire; time.Now if nil
}

// Engine is a client of the two tables. Its methods may be called by many goroutines at once.
type Engine struct {
	client          *dynamodb.Client
	retries         *awsclient.Retries
	core, ephemeral *string
	clock           func() time.Time
}

// New makes an engine and asks AWS nothing.
func New(opts Options) (*Engine, error) {
	if err := opts.AWS.Validate(); err != nil {
		return nil, fmt.Errorf("dynamo: %w", err)
	}
	if opts.Core == "" || opts.Ephemeral == "" || opts.Core == opts.Ephemeral {
		return nil, errors.New("dynamo: the names of two tables are needed")
	}
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	retries := opts.AWS.NewRetries()
	return &Engine{
		client: dynamodb.New(dynamodb.Options{
			Region: opts.AWS.Region, Credentials: opts.AWS.Credentials, BaseEndpoint: opts.AWS.Base(), Retryer: retries,
			HTTPClient: opts.AWS.Client(headTimeout, wholeTimeout),
		}),
		retries: retries, core: &opts.Core, ephemeral: &opts.Ephemeral, clock: opts.Clock,
	}, nil
}

func (e *Engine) table(t store.Table) *string {
	if t == store.Ephemeral {
		return e.ephemeral
	}
	return e.core
}

func (e *Engine) now() int64 { return e.clock().Unix() }

// Get implements store.Engine: one GetItem.
func (e *Engine) Get(ctx context.Context, key store.Key) (store.Item, error) {
	if err := ctx.Err(); err != nil {
		return store.Item{}, err
	}
	if err := key.Validate(); err != nil {
		return store.Item{}, err
	}
	item, found, err := e.read(ctx, key)
	if err != nil {
		return store.Item{}, err
	}
	if !found || store.Expired(store.Seconds(item.Expires), e.now()) {
		return store.Item{}, store.ErrNotFound
	}
	return item, nil
}

// read returns the row whether or not it has expired.
func (e *Engine) read(ctx context.Context, key store.Key) (item store.Item, found bool, err error) {
	out, err := e.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: e.table(key.Table), Key: attributesOf(key), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return store.Item{}, false, failure(ctx, "get", err)
	}
	if len(out.Item) == 0 {
		return store.Item{}, false, nil
	}
	item, err = parse(key.Table, out.Item)
	return item, true, err
}

// failure translates what a call ended with, once what is the caller's own (a condition, a bound) has been told apart.
func failure(ctx context.Context, step string, err error) error {
	if ended := ctx.Err(); ended != nil {
		return fmt.Errorf("dynamo: %s: %w", step, ended)
	}
	return unavailable(step, awsclient.Explain(err))
}

func unavailable(step string, why error) error {
	return fmt.Errorf("dynamo: %s: %w: %w", step, store.ErrUnavailable, why)
}

// conflict tells the failures by which DynamoDB says that others are at work on the same item, or that a part of a transaction
// was over the rate: nothing was done.
func conflict(err error) bool {
	if awsclient.Code(err) == "TransactionConflictException" {
		return true
	}
	canceled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok {
		return false
	}
	// A condition that failed before any conflict is an answer; one behind it is not, for the item before it was not looked at.
	for _, r := range canceled.CancellationReasons {
		switch aws.ToString(r.Code) {
		case "None":
		case "ConditionalCheckFailed":
			return false
		case "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded":
			return true
		default:
			return false
		}
	}
	return false
}

func overSize(step string) error {
	return fmt.Errorf("dynamo: %s: %w: the row would pass DynamoDB's 400 KB", step, store.ErrTooLarge)
}

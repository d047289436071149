package dynamo

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/buzon-mail/buzon/shared/awsclient"
	"github.com/buzon-mail/buzon/shared/store"
)

// What is tried again. A put or delete of one row may be made twice, but a condition that fails on the second attempt may have
// been made false by the first: then nobody knows whether this caller or another won, and telling it "conflict" would let a
// nonce's owner believe that it was replayed, or a mail be dropped as a duplicate of itself. So a conflict after an attempt
// whose outcome is unknown is ErrUnavailable. A transaction carries a token, the same for each attempt, by which AWS
// recognizes what it has already done for ten minutes. An Add is never made again after an unknown outcome.

// attempt is the retry policy of one write.
func (e *Engine) attempt() *awsclient.Call {
	return &awsclient.Call{Retries: e.retries, Conflict: conflict}
}

func use(c *awsclient.Call) func(*dynamodb.Options) {
	return func(o *dynamodb.Options) { o.Retryer = c }
}

var errUnknown = errors.New("an earlier attempt was not answered, and the condition that fails now may be its doing")

// refusal translates the end of a write: index is the op whose condition failed, -1 for none.
func refusal(ctx context.Context, step string, c *awsclient.Call, index int, err error) error {
	switch {
	case index >= 0 && c.Unsure():
		return unavailable(step, errUnknown)
	case index >= 0:
		return &store.ConflictError{Index: index}
	case ctx.Err() == nil && tooLarge(err):
		return overSize(step)
	}
	return failure(ctx, step, err)
}

// tooLarge tells the one validation that callers can cause although their arguments are in order: a row that grows by its
// counters. Its message is the only sign of it.
func tooLarge(err error) bool {
	api := awsclient.Code(err)
	return api == "ValidationException" && strings.Contains(err.Error(), "Item size")
}

// Put implements store.Engine: one PutItem.
func (e *Engine) Put(ctx context.Context, item store.Item, cond store.Condition) error {
	return e.Transact(ctx, store.Put(item, cond))
}

// Delete implements store.Engine: one DeleteItem.
func (e *Engine) Delete(ctx context.Context, key store.Key, cond store.Condition) error {
	return e.Transact(ctx, store.Delete(key, cond))
}

// Transact implements store.Engine: TransactWriteItems, or the call for one row where there is one.
func (e *Engine) Transact(ctx context.Context, ops ...store.Op) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := store.ValidateOps(ops); err != nil {
		return err
	}
	if len(ops) > 1 {
		return e.transact(ctx, ops)
	}
	switch op := ops[0]; op.Kind() {
	case store.OpPut:
		return e.put(ctx, op.Item(), condition(op.Condition(), e.now()))
	case store.OpDelete:
		return e.delete(ctx, op.Key(), condition(op.Condition(), e.now()))
	default:
		return e.check(ctx, op)
	}
}

func (e *Engine) put(ctx context.Context, item store.Item, x expression) error {
	c := e.attempt()
	_, err := e.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: e.table(item.Key.Table), Item: format(item),
		ConditionExpression: x.text, ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values,
	}, use(c))
	if err != nil {
		return refusal(ctx, "put", c, failedCondition(err), err)
	}
	return nil
}

func (e *Engine) delete(ctx context.Context, key store.Key, x expression) error {
	c := e.attempt()
	_, err := e.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: e.table(key.Table), Key: attributesOf(key),
		ConditionExpression: x.text, ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values,
	}, use(c))
	if err != nil {
		return refusal(ctx, "delete", c, failedCondition(err), err)
	}
	return nil
}

// check is a transaction of one check: a strong read says as much.
func (e *Engine) check(ctx context.Context, op store.Op) error {
	item, found, err := e.read(ctx, op.Key())
	if err != nil {
		return err
	}
	live := found && !store.Expired(store.Seconds(item.Expires), e.now())
	if cond := op.Condition(); !cond.Holds(live, item.Revision) {
		return &store.ConflictError{}
	}
	return nil
}

// failedCondition is 0 where the condition of a call for one row failed, else -1.
func failedCondition(err error) int {
	if _, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return 0
	}
	return -1
}

func (e *Engine) transact(ctx context.Context, ops []store.Op) error {
	now := e.now()
	items := make([]types.TransactWriteItem, 0, len(ops))
	for _, op := range ops {
		items = append(items, e.write(op, now))
	}
	c := e.attempt()
	// The client adds a ClientRequestToken before the first attempt.
	_, err := e.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: items}, use(c))
	if err == nil {
		return nil
	}
	if index := firstFailed(err); index >= 0 {
		return &store.ConflictError{Index: index} // of others: the token told AWS what was ours
	}
	return refusal(ctx, "transact", c, -1, err)
}

func (e *Engine) write(op store.Op, now int64) types.TransactWriteItem {
	x := condition(op.Condition(), now)
	table := e.table(op.Key().Table)
	switch op.Kind() {
	case store.OpPut:
		return types.TransactWriteItem{Put: &types.Put{
			TableName: table, Item: format(op.Item()),
			ConditionExpression: x.text, ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values,
		}}
	case store.OpDelete:
		return types.TransactWriteItem{Delete: &types.Delete{
			TableName: table, Key: attributesOf(op.Key()),
			ConditionExpression: x.text, ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values,
		}}
	default:
		return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName: table, Key: attributesOf(op.Key()),
			ConditionExpression: x.text, ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values,
		}}
	}
}

// firstFailed is the first op whose condition failed, or -1 where a transaction ended for another reason or another reason
// stands before it.
func firstFailed(err error) int {
	canceled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok || conflict(err) {
		return -1
	}
	for i, r := range canceled.CancellationReasons {
		switch aws.ToString(r.Code) {
		case "None":
		case "ConditionalCheckFailed":
			return i
		default:
			return -1
		}
	}
	return -1
}

package dynamo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/buzon-mail/buzon/shared/store"
)

// maxAdds bounds the turns of one Add: each but the first means that the row changed between a refusal and the look at it.
const maxAdds = 8

// mode is which state of a row an update of Add accepts. A row that is absent is made; `exp` may be set only then, and DynamoDB
// can't say "set if the row is new": if_not_exists(exp) would give one to a live row that never expires.
type mode uint8

const (
	withoutExpiry mode = iota // the row is absent or live, and no expiry is to be set
	withExpiry                // the row is absent, or live with an expiry of its own
	foreverLive               // the row is live without expiry
)

// Add implements store.Engine: one UpdateItem, and a PutItem where the row had expired. Only a refusal costs more than one call
// where AWS does not send the row along with it.
func (e *Engine) Add(ctx context.Context, key store.Key, field string, delta, max int64, expires time.Time) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if err := store.ValidateAdd(key, field, max, expires); err != nil {
		return 0, err
	}
	a := add{engine: e, key: key, field: field, delta: delta, max: max, expires: store.Seconds(expires)}
	if a.expires != 0 {
		a.mode = withExpiry
	}
	for range maxAdds {
		now := e.now()
		sum, refused, err := a.update(ctx, now)
		if refused == nil {
			return sum, err
		}
		if sum, again, err := a.judge(ctx, *refused, now); !again {
			return sum, err
		}
	}
	return 0, unavailable("add", errors.New("the row changes faster than it can be read"))
}

// add is one Add on its way.
type add struct {
	engine     *Engine
	key        store.Key
	field      string
	delta, max int64
	expires    int64
	mode       mode
}

// update tries the addition. refused is the row that did not let it happen: its Format is 0 where there is none.
func (a *add) update(ctx context.Context, now int64) (sum int64, refused *store.Item, err error) {
	in := a.input(now)
	c := a.engine.attempt()
	c.Once = true
	out, err := a.engine.client.UpdateItem(ctx, in, use(c))
	if err == nil {
		item := store.Item{}
		name := counterPrefix + a.field
		if err := parseAttribute(&item, name, out.Attributes[name]); err != nil {
			return 0, nil, err
		}
		return item.Counters[a.field], nil, nil
	}
	failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err)
	if !ok {
		return 0, nil, refusal(ctx, "add", c, -1, err)
	}
	var item store.Item
	if len(failed.Item) > 0 {
		item, err = parse(a.key.Table, failed.Item)
	} else { // it is absent, or this DynamoDB does not send rows with refusals
		item, _, err = a.engine.read(ctx, a.key)
	}
	if err != nil {
		return 0, nil, err
	}
	return 0, &item, nil
}

func (a *add) input(now int64) *dynamodb.UpdateItemInput {
	update := "SET #f = if_not_exists(#f, :one), #r = if_not_exists(#r, :zero)"
	in := &dynamodb.UpdateItemInput{
		TableName: a.engine.table(a.key.Table), Key: attributesOf(a.key),
		ReturnValues: types.ReturnValueAllNew, ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		ExpressionAttributeNames: map[string]string{
			"#f": attrFormat, "#r": attrRevision, "#x": attrExpires, "#c": counterPrefix + a.field,
		},
		ExpressionAttributeValues: attributes{":one": number(1), ":zero": number(0), ":delta": number(a.delta)},
	}
	var cond string
	switch a.mode {
	case withoutExpiry:
		cond = exprLive // holds for an absent row too
		in.ExpressionAttributeValues[":now"] = number(now)
	case withExpiry:
		cond = "(attribute_not_exists(#p) OR #x > :now)"
		update += ", #x = if_not_exists(#x, :exp)"
		in.ExpressionAttributeNames["#p"] = attrPartition
		in.ExpressionAttributeValues[":now"] = number(now)
		in.ExpressionAttributeValues[":exp"] = number(a.expires)
	case foreverLive:
		cond = "attribute_exists(#p) AND attribute_not_exists(#x)"
		in.ExpressionAttributeNames["#p"] = attrPartition
	}
	cond += a.bound(in.ExpressionAttributeValues)
	update += " ADD #c :delta"
	in.ConditionExpression, in.UpdateExpression = &cond, &update
	return in
}

// bound is the condition by which the sum stays within max and int64, as store.Sum has it.
func (a *add) bound(values attributes) string {
	most := a.max
	if most == 0 {
		most = math.MaxInt64
	}
	text := ""
	if a.delta >= 0 || most <= math.MaxInt64+a.delta { // else every value fits
		values[":high"] = number(most - a.delta)
		text = "#c <= :high"
	}
	if a.delta < 0 {
		values[":low"] = number(math.MinInt64 - a.delta)
		if text != "" {
			text += " AND "
		}
		text += "#c >= :low"
	}
	if _, fits := store.Sum(0, a.delta, a.max); fits {
		text = "attribute_not_exists(#c) OR " + text
	}
	return " AND (" + text + ")"
}

// judge says what a refusal means: over the bound, an expired row to replace, or a row that has changed since.
func (a *add) judge(ctx context.Context, row store.Item, now int64) (sum int64, again bool, err error) {
	there := row.Format != 0
	expires := store.Seconds(row.Expires)
	live := there && !store.Expired(expires, now)
	if live {
		present := row.Counters[a.field]
		if _, fits := store.Sum(present, a.delta, a.max); !fits {
			return present, false, a.over()
		}
		if expires == 0 && a.expires != 0 {
			a.mode = foreverLive
		}
		return 0, true, nil
	}
	if _, fits := store.Sum(0, a.delta, a.max); !fits {
		return 0, false, a.over()
	}
	if a.mode == foreverLive {
		a.mode = withExpiry
	}
	if !there {
		return 0, true, nil
	}
	switch err := a.replace(ctx, expires); {
	case err == nil:
		return a.delta, false, nil
	case errors.Is(err, store.ErrConflict):
		return 0, true, nil // someone else replaced it
	default:
		return 0, false, err
	}
}

func (a *add) over() error {
	return fmt.Errorf("dynamo: add: %w", store.ErrLimit)
}

// replace puts a new row over the expired one that was read, unless it has changed.
func (a *add) replace(ctx context.Context, read int64) error {
	item := format(store.Item{Key: a.key, Format: 1, Expires: store.FromSeconds(a.expires)})
	item[counterPrefix+a.field] = number(a.delta)
	text := "#x = :read"
	c := a.engine.attempt()
	_, err := a.engine.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: a.engine.table(a.key.Table), Item: item, ConditionExpression: &text,
		ExpressionAttributeNames: map[string]string{"#x": attrExpires}, ExpressionAttributeValues: attributes{":read": number(read)},
	}, use(c))
	if err != nil {
		return refusal(ctx, "add", c, failedCondition(err), err)
	}
	return nil
}

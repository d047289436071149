package dynamo

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/buzon-mail/buzon/shared/store"
)

// Query implements store.Engine: one Query of as many items as the page holds, and, where some of them had expired, at most
// three more that fill it up. The expired are dropped here and not by a filter: a filter saves no read unit.
func (e *Engine) Query(ctx context.Context, q store.Query) (store.Page, error) {
	q, some, err := q.Ready(ctx)
	if !some || err != nil {
		return store.Page{}, err
	}
	var page store.Page
	now, size, found, after := e.now(), 0, 0, q.After
	for reads := 0; reads < store.MaxReads*q.Limit && size < store.MaxPageSize; {
		want := min(q.Limit-found, store.MaxReads*q.Limit-reads)
		items, next, err := e.page(ctx, q, after, want)
		if err != nil {
			return store.Page{}, err
		}
		reads += len(items)
		for _, item := range items {
			size += item.Size()
			if store.Expired(store.Seconds(item.Expires), now) || item.Key.Sort == q.To {
				continue
			}
			if found++; q.Each == nil {
				page.Items = append(page.Items, item)
			} else if err := q.Each(&item); err != nil {
				return store.Page{}, err
			}
		}
		if page.Next = next; next == "" || found >= q.Limit || len(items) < want {
			break // the last: AWS stopped at its own 1 MB
		}
		after = next
	}
	return page, nil
}

// page reads up to limit items, the one whose key is q.To among them, and the key to go on behind; "" is the end.
func (e *Engine) page(ctx context.Context, q store.Query, after string, limit int) ([]store.Item, string, error) {
	in := &dynamodb.QueryInput{
		TableName: e.table(q.Table), ConsistentRead: aws.Bool(true), ScanIndexForward: aws.Bool(!q.Descending),
		Limit: aws.Int32(int32(limit)), //nolint:gosec // at most store.MaxLimit
	}
	x := keyCondition(q)
	in.KeyConditionExpression, in.ExpressionAttributeNames, in.ExpressionAttributeValues = x.text, x.names, x.values
	if after == "" && q.Descending && q.From != "" {
		after = q.To // BETWEEN would begin with To itself; behind "" nothing starts
	}
	if after != "" {
		in.ExclusiveStartKey = attributesOf(store.Key{Partition: q.Partition, Sort: after})
	}
	out, err := e.client.Query(ctx, in)
	if err != nil {
		return nil, "", failure(ctx, "query", err)
	}
	items := make([]store.Item, 0, len(out.Items))
	for _, a := range out.Items {
		item, err := parse(q.Table, a)
		if err != nil {
			return nil, "", err
		}
		items = append(items, item)
	}
	next := ""
	if last, ok := out.LastEvaluatedKey[attrSort].(*types.AttributeValueMemberS); ok {
		next = last.Value
	}
	if !q.Descending && q.To != "" && next >= q.To {
		next = "" // To is the last that BETWEEN gives
	}
	return items, next, nil
}

// keyCondition is the range of a query. DynamoDB takes one condition on the sort key, and of two bounds only BETWEEN, which
// includes both.
func keyCondition(q store.Query) expression {
	text, x := "#p = :p", expression{names: map[string]string{"#p": attrPartition}, values: attributes{":p": textValue(q.Partition)}}
	switch {
	case q.From != "" && q.To != "":
		text += " AND #s BETWEEN :from AND :to"
	case q.From != "":
		text += " AND #s >= :from"
	case q.To != "":
		text += " AND #s < :to"
	}
	if q.From != "" {
		x.values[":from"] = textValue(q.From)
	}
	if q.To != "" {
		x.values[":to"] = textValue(q.To)
	}
	if q.From != "" || q.To != "" {
		x.names["#s"] = attrSort
	}
	x.text = &text
	return x
}

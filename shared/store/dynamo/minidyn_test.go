package dynamo_test

import (
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/truora/minidyn/server"
)

// TestMinidynFaults proves what testkit/minidyn puts right, on minidyn as it is.
func TestMinidynFaults(t *testing.T) {
	s := httptest.NewServer(server.NewServer())
	t.Cleanup(s.Close)
	cfg := at(s.URL)
	tables(t, cfg, "core")
	client := dynamodb.New(dynamodb.Options{Region: cfg.Region, Credentials: cfg.Credentials, BaseEndpoint: cfg.Base()})
	item := func(sk string, n string) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{
			"pk": &types.AttributeValueMemberS{Value: "p"}, "sk": &types.AttributeValueMemberS{Value: sk}, "n": &types.AttributeValueMemberN{Value: n},
			"data": &types.AttributeValueMemberB{Value: make([]byte, 300<<10)},
		}
	}
	put := func(in map[string]types.AttributeValue, condition *string, values map[string]types.AttributeValue) error {
		_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{
			TableName: aws.String("core"), Item: in, ConditionExpression: condition, ExpressionAttributeValues: values,
		})
		return err
	}
	for _, sk := range []string{"a", "c", "e", "g"} {
		if err := put(item(sk, "18446744073709551615"), nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	query := &dynamodb.QueryInput{
		TableName: aws.String("core"), KeyConditionExpression: aws.String("pk = :p"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":p": &types.AttributeValueMemberS{Value: "p"}},
	}
	t.Run("numbers beyond 2^53 are rounded", func(t *testing.T) {
		// 18446744073709551615 is not 18446744073709551614.
		err := put(item("a", "1"), aws.String("n = :n"), map[string]types.AttributeValue{":n": &types.AttributeValueMemberN{Value: "18446744073709551614"}})
		if err == nil {
			return
		}
		// A connection that breaks after the write makes the client send it again: then the first one shows what minidyn did.
		key := map[string]types.AttributeValue{"pk": item("a", "")["pk"], "sk": item("a", "")["sk"]}
		got, readErr := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("core"), Key: key})
		if readErr != nil {
			t.Fatal(readErr)
		}
		if n, ok := got.Item["n"].(*types.AttributeValueMemberN); !ok || n.Value != "1" {
			t.Errorf("mended: %v; drop the workaround", err)
		}
	})
	t.Run("no tokens", func(t *testing.T) {
		in := &dynamodb.TransactWriteItemsInput{
			ClientRequestToken: aws.String("once"),
			TransactItems: []types.TransactWriteItem{{Put: &types.Put{
				TableName: aws.String("core"), Item: item("token", "1"), ConditionExpression: aws.String("attribute_not_exists(pk)"),
			}}},
		}
		_, first := client.TransactWriteItems(t.Context(), in)
		if _, again := client.TransactWriteItems(t.Context(), in); first != nil || again == nil {
			t.Errorf("mended: %v, %v; drop the workaround", first, again)
		}
	})
	t.Run("no page of 1 MB", func(t *testing.T) {
		out, err := client.Query(t.Context(), query)
		if err != nil || len(out.Items) < 4 {
			t.Errorf("mended: %v; drop the workaround", err)
		}
	})
	t.Run("nothing behind a key that is gone", func(t *testing.T) {
		behind := *query
		behind.ExclusiveStartKey = map[string]types.AttributeValue{
			"pk": &types.AttributeValueMemberS{Value: "p"}, "sk": &types.AttributeValueMemberS{Value: "b"},
		}
		out, err := client.Query(t.Context(), &behind)
		if err != nil || len(out.Items) != 0 {
			t.Errorf("mended: %v; drop the workaround", err)
		}
	})
}

package dynamo_test

import (
	"bytes"
	"encoding/json"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/truora/minidyn/server"
)

// mended is minidyn v0.8.2 with what it does otherwise than DynamoDB put right. TestMinidynFaults proves each fault on minidyn
// itself, and fails once one is gone, so that its mending goes too:
//
//   - its expressions count in float64, so that revisions and counters beyond 2^53 are rounded: revisions are kept as text, which
//     is as good for comparing them, and an update in which a number that large takes part is reckoned here;
//   - it does not know a transaction by its ClientRequestToken, and refuses the second attempt of one that it has carried out;
//   - a query finds nothing behind an ExclusiveStartKey whose row is gone, and knows no page of 1 MB: pages are cut here, from
//     the whole range as minidyn finds it.
type mended struct {
	mu    sync.Mutex // one request at a time, so that what takes two requests to minidyn is one
	inner http.Handler
	done  map[string]bool // tokens of transactions that happened; guarded by mu
}

func minidyn() http.Handler { return &mended{inner: server.NewServer(), done: map[string]bool{}} }

// object is a JSON object of DynamoDB's protocol.
type object = map[string]any

func (m *mended) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var in object
	if err := json.Unmarshal(body, &in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var status int
	var out object
	switch _, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); op {
	case "Query":
		status, out = m.query(r, in)
	case "UpdateItem":
		status, out = m.update(r, in)
	case "TransactWriteItems":
		token, _ := in["ClientRequestToken"].(string)
		if status, out = http.StatusOK, (object{}); m.done[token] {
			break
		}
		status, out = m.call(r, op, in)
		m.done[token] = status == http.StatusOK
	case "GetItem", "PutItem", "DeleteItem", "CreateTable", "DeleteTable":
		status, out = m.call(r, op, in)
	default: // as the role in the template: above all no Scan
		status, out = http.StatusBadRequest, object{"__type": "#AccessDeniedException", "message": "not authorized to perform: dynamodb:" + op}
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(out)
}

// call asks minidyn.
func (m *mended) call(r *http.Request, op string, in object) (int, object) {
	retype(in, "N", "S")
	body, err := json.Marshal(in)
	if err != nil {
		panic(err)
	}
	inner := r.Clone(r.Context())
	inner.Header.Set("X-Amz-Target", "DynamoDB_20120810."+op)
	inner.Body = io.NopCloser(bytes.NewReader(body))
	rec := httptest.NewRecorder()
	m.inner.ServeHTTP(rec, inner)
	var out object
	if err := json.Unmarshal(rec.Body.Bytes(), &out); err != nil {
		panic(rec.Body.String())
	}
	retype(out, "S", "N")
	return rec.Code, out
}

// retype turns revisions from one type into the other, wherever they stand.
func retype(v any, from, to string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			retype(e, from, to)
		}
	case object:
		for name, e := range v {
			typed, _ := e.(object)
			if value, ok := typed[from]; ok && (name == "rev" || name == ":rev" || name == ":zero") {
				v[name] = object{to: value}
				continue
			}
			retype(e, from, to)
		}
	}
}

func sortKey(item any) string {
	o, _ := item.(object)
	sk, _ := o["sk"].(object)
	s, _ := sk["S"].(string)
	return s
}

// query cuts one page out of the whole range.
func (m *mended) query(r *http.Request, in object) (int, object) {
	limit, _ := in["Limit"].(float64)
	start := sortKey(in["ExclusiveStartKey"])
	ascending, _ := in["ScanIndexForward"].(bool)
	delete(in, "Limit")
	delete(in, "ExclusiveStartKey")
	status, out := m.call(r, "Query", in)
	all, _ := out["Items"].([]any)
	page, size := []any{}, 0
	for _, item := range all {
		sk := sortKey(item)
		if start != "" && (ascending && sk <= start || !ascending && sk >= start) {
			continue
		}
		size += itemSize(item)
		// As DynamoDB does, a page that is full names its last row, whether or not there is another behind it.
		if len(page) == int(limit) || size > 1<<20 {
			last, _ := page[len(page)-1].(object)
			out["LastEvaluatedKey"] = object{"pk": last["pk"], "sk": last["sk"]}
			break
		}
		page = append(page, item)
	}
	if n := len(page); n > 0 && n == int(limit) {
		last, _ := page[n-1].(object)
		out["LastEvaluatedKey"] = object{"pk": last["pk"], "sk": last["sk"]}
	}
	out["Items"], out["Count"], out["ScannedCount"] = page, len(page), len(page)
	return status, out
}

func itemSize(item any) int {
	n := 0
	o, _ := item.(object)
	for name, typed := range o {
		n += len(name)
		t, _ := typed.(object)
		for kind, value := range t {
			s, _ := value.(string)
			if n += len(s); kind == "B" {
				n -= len(s) / 4 // base64
			}
		}
	}
	return n
}

// update lets minidyn do what float64 can hold and reckons the rest: the grammar is that of Add.
func (m *mended) update(r *http.Request, in object) (int, object) {
	_, got := m.call(r, "GetItem", object{"TableName": in["TableName"], "Key": in["Key"]})
	item, _ := got["Item"].(object)
	names, _ := in["ExpressionAttributeNames"].(object)
	values, _ := in["ExpressionAttributeValues"].(object)
	name, _ := names["#c"].(string)
	present, delta := numberOf(item[name]), numberOf(values[":delta"])
	const exact = 53
	if present.BitLen() < exact && delta.BitLen() < exact {
		return m.call(r, "UpdateItem", in)
	}
	high, low := values[":high"], values[":low"]
	over := high != nil && present.Cmp(numberOf(high)) > 0 || low != nil && present.Cmp(numberOf(low)) < 0
	if item[name] == nil {
		cond, _ := in["ConditionExpression"].(string)
		over = !strings.Contains(cond, "attribute_not_exists(#c)")
	}
	if over {
		return http.StatusBadRequest, object{"__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException"}
	}
	if item == nil {
		key, _ := in["Key"].(object)
		item = object{"pk": key["pk"], "sk": key["sk"], "fmt": object{"N": "1"}, "rev": object{"N": "0"}}
	}
	item[name] = object{"N": present.Add(present, delta).String()}
	m.call(r, "PutItem", object{"TableName": in["TableName"], "Item": item})
	retype(item, "S", "N")
	return http.StatusOK, object{"Attributes": item}
}

func numberOf(v any) *big.Int {
	typed, _ := v.(object)
	s, _ := typed["N"].(string)
	n, ok := new(big.Int).SetString(s, 10)
	if !ok {
		return new(big.Int)
	}
	return n
}

// TestMinidynFaults proves what mended puts right, on minidyn as it is.
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

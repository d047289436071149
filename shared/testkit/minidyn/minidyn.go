// Package minidyn is DynamoDB in one process, for tests: truora's minidyn, put right where it differs from DynamoDB. It must not be
// in anything that ships.
package minidyn

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/truora/minidyn/server"

	"github.com/buzon-mail/buzon/shared/awsclient"
)

// At is how an engine reaches one at an endpoint. It is patient: on a busy machine a stand-in takes longer than AWS, and a request
// that was given up is made again.
func At(endpoint string) awsclient.Config {
	return awsclient.Config{
		Region: "eu-west-1", Endpoint: endpoint, Backoff: func(int, bool) time.Duration { return 0 },
		HTTP: awsclient.NewHTTP(time.Minute, time.Minute),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret"}, nil
		}),
	}
}

// Tables makes tables as the template does, but for what costs money.
func Tables(ctx context.Context, cfg awsclient.Config, names ...string) error {
	client := dynamodb.New(dynamodb.Options{Region: cfg.Region, Credentials: cfg.Credentials, BaseEndpoint: cfg.Base(), HTTPClient: cfg.HTTP})
	for _, name := range names {
		_, err := client.CreateTable(ctx, &dynamodb.CreateTableInput{
			TableName: &name, BillingMode: types.BillingModePayPerRequest,
			AttributeDefinitions: []types.AttributeDefinition{
				{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS},
				{AttributeName: aws.String("sk"), AttributeType: types.ScalarAttributeTypeS},
			},
			KeySchema: []types.KeySchemaElement{
				{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}, {AttributeName: aws.String("sk"), KeyType: types.KeyTypeRange},
			},
		})
		if err != nil {
			return fmt.Errorf("create table %s: %w", name, err)
		}
	}
	return nil
}

// mended is minidyn v0.8.2 with what it does otherwise than DynamoDB put right. TestMinidynFaults of store/dynamo proves each
// fault on minidyn itself, and fails once one is gone, so that its mending goes too:
//
//   - its expressions count in float64, so that revisions and counters beyond 2^53 are rounded: revisions are kept as text, which
//     is as good for comparing them, and an update in which a number that large takes part is reckoned here;
//   - it does not know a transaction by its ClientRequestToken, and refuses the second attempt of one that it has carried out;
//   - it looks at every row of a table for each query and copies the table for each transaction: a table is kept as shards tables,
//     a partition in one of them;
//   - a query finds nothing behind an ExclusiveStartKey whose row is gone, and knows no page of 1 MB: pages are cut here, from
//     the whole range as minidyn finds it.
type mended struct {
	mu    sync.Mutex // one request at a time, so that what takes two requests to minidyn is one
	inner http.Handler
	done  map[string]bool // tokens of transactions that happened; guarded by mu
}

// New is an empty DynamoDB in this process.
func New() http.Handler { return &mended{inner: server.NewServer(), done: map[string]bool{}} }

// object is a JSON object of DynamoDB's protocol.
type object = map[string]any

// ServeHTTP serves the actions that the role in the template allows.
func (m *mended) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var in object
	if err := json.Unmarshal(body, &in); err != nil {
		http.Error(w, "not JSON", http.StatusBadRequest)
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
	case "CreateTable", "DeleteTable":
		status, out = m.every(r, op, in)
	case "GetItem", "PutItem", "DeleteItem":
		status, out = m.call(r, op, in)
	default: // as the role in the template: above all no Scan
		status, out = http.StatusBadRequest, object{"__type": "#AccessDeniedException", "message": "not authorized to perform: dynamodb:" + op}
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(out)
}

// shards is how many tables of minidyn one table is.
const shards = 64

// every asks minidyn for each of a table's shards.
func (m *mended) every(r *http.Request, op string, in object) (status int, out object) {
	name, _ := in["TableName"].(string)
	for i := range shards {
		in["TableName"] = fmt.Sprintf("%s.%d", name, i)
		if status, out = m.call(r, op, in); status != http.StatusOK {
			return status, out
		}
	}
	return status, out
}

// shard turns the name of a table into that of the shard in which the partition lies, in a request and in the steps of a transaction.
func shard(in object) {
	steps, _ := in["TransactItems"].([]any)
	for _, step := range steps {
		kinds, _ := step.(object)
		for _, one := range kinds {
			if inner, ok := one.(object); ok {
				shard(inner)
			}
		}
	}
	name, _ := in["TableName"].(string)
	if name == "" || strings.Contains(name, ".") {
		return
	}
	for _, at := range []struct{ in, name string }{{"Key", "pk"}, {"Item", "pk"}, {"ExpressionAttributeValues", ":p"}} {
		values, _ := in[at.in].(object)
		typed, _ := values[at.name].(object)
		if pk, ok := typed["S"].(string); ok {
			in["TableName"] = fmt.Sprintf("%s.%d", name, crc32.ChecksumIEEE([]byte(pk))%shards)
			return
		}
	}
}

// call asks minidyn.
func (m *mended) call(r *http.Request, op string, in object) (int, object) {
	retype(in, "N", "S")
	shard(in)
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

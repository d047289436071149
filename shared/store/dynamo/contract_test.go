package dynamo_test

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/buzon-mail/buzon/shared/awsclient"
	"github.com/buzon-mail/buzon/shared/store"
	"github.com/buzon-mail/buzon/shared/store/dynamo"
	"github.com/buzon-mail/buzon/shared/store/storetest"
	"github.com/buzon-mail/buzon/shared/testkit/standin"
)

// standIn names an endpoint of DynamoDB to test against, as make awstest starts one.
const standIn = "BUZON_TEST_AWS_ENDPOINT"

// at is patient: on a busy machine a stand-in takes longer than AWS, and a request that was given up is made again.
func at(endpoint string) awsclient.Config {
	return awsclient.Config{
		Region: "eu-west-1", Endpoint: endpoint, Backoff: func(int, bool) time.Duration { return 0 },
		HTTP: awsclient.NewHTTP(time.Minute, time.Minute),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret"}, nil
		}),
	}
}

// tables makes the two tables as the template does, but for what costs money.
func tables(t *testing.T, cfg awsclient.Config, names ...string) {
	t.Helper()
	client := dynamodb.New(dynamodb.Options{Region: cfg.Region, Credentials: cfg.Credentials, BaseEndpoint: cfg.Base(), HTTPClient: cfg.HTTP})
	for _, name := range names {
		_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
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
			t.Fatalf("create table: %v", err)
		}
		t.Cleanup(func() {
			if _, ok := cfg.HTTP.(*http.Client); ok { // a server, maybe of many tests
				_, _ = client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &name})
			}
		})
	}
}

func open(t *testing.T, cfg awsclient.Config, clock func() time.Time) *dynamo.Engine {
	t.Helper()
	e, err := dynamo.New(dynamo.Options{AWS: cfg, Core: "core", Ephemeral: "ephemeral", Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T, clock func() time.Time) store.Engine {
		s := httptest.NewServer(standin.DynamoDB())
		t.Cleanup(s.Close)
		tables(t, at(s.URL), "core", "ephemeral")
		return open(t, at(s.URL), clock)
	})
}

func TestContractOnStandIn(t *testing.T) {
	endpoint := os.Getenv(standIn)
	if endpoint == "" {
		t.Skipf("%s names no endpoint; make awstest starts one", standIn)
	}
	storetest.Run(t, func(t *testing.T, clock func() time.Time) store.Engine {
		// Tables of each case's own: moto copies every table for each transaction.
		cfg, own := at(endpoint), rand.Text()
		tables(t, cfg, "core-"+own, "ephemeral-"+own)
		e, err := dynamo.New(dynamo.Options{AWS: cfg, Core: "core-" + own, Ephemeral: "ephemeral-" + own, Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		return e
	})
}

package dynamo_test

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/buzon-mail/buzon/shared/awsclient"
	"github.com/buzon-mail/buzon/shared/store"
	"github.com/buzon-mail/buzon/shared/store/dynamo"
	"github.com/buzon-mail/buzon/shared/store/storetest"
	"github.com/buzon-mail/buzon/shared/testkit/minidyn"
)

// standIn names an endpoint of DynamoDB to test against, as make awstest starts one.
const standIn = "BUZON_TEST_AWS_ENDPOINT"

func at(endpoint string) awsclient.Config { return minidyn.At(endpoint) }

func tables(t *testing.T, cfg awsclient.Config, names ...string) {
	t.Helper()
	if err := minidyn.Tables(t.Context(), cfg, names...); err != nil {
		t.Fatal(err)
	}
	if _, ok := cfg.HTTP.(*http.Client); !ok {
		return
	}
	client := dynamodb.New(dynamodb.Options{Region: cfg.Region, Credentials: cfg.Credentials, BaseEndpoint: cfg.Base(), HTTPClient: cfg.HTTP})
	t.Cleanup(func() { // a server, maybe of many tests
		for _, name := range names {
			_, _ = client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &name})
		}
	})
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
		s := httptest.NewServer(minidyn.New())
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

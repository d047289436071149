package scenario

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/buzon-mail/buzon/shared/app/api"
	"github.com/buzon-mail/buzon/shared/app/deployed"
	"github.com/buzon-mail/buzon/shared/app/web"
	"github.com/buzon-mail/buzon/shared/awsclient"
	"github.com/buzon-mail/buzon/shared/config"
	"github.com/buzon-mail/buzon/shared/demo"
	"github.com/buzon-mail/buzon/shared/inboxops"
	"github.com/buzon-mail/buzon/shared/lambdaedge"
	"github.com/buzon-mail/buzon/shared/lambdaedge/gateway"
	"github.com/buzon-mail/buzon/shared/oauth"
	"github.com/buzon-mail/buzon/shared/testkit"
	"github.com/buzon-mail/buzon/shared/testkit/minidyn"
	"github.com/buzon-mail/buzon/shared/testkit/standin"
)

// through is a client that reaches a function through a front door. The domain is one of our own where the door allows one, so that
// no stage is in paths.
func through(t *testing.T, kind lambdaedge.Door, function *api.Function) *http.Client {
	t.Helper()
	domain := "buzon.example"
	if kind == lambdaedge.FunctionURL {
		domain = urlDomain
	}
	g, err := gateway.New(kind, function.Invoke, gateway.Options{Domain: domain})
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Transport: g}
}

const urlDomain = "abc.lambda-url.eu-west-1.on.aws"

// streaming is a client of a function URL whose InvokeMode is RESPONSE_STREAM.
func streaming(t *testing.T, function *api.Function) *http.Client {
	t.Helper()
	g, err := gateway.NewStreamed(func(ctx context.Context, event []byte) (gateway.Reply, error) {
		return function.Stream(ctx, event)
	}, gateway.Options{Domain: urlDomain})
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Transport: g}
}

// startEmulated runs the emulated function in this process; reached makes the front door.
func startEmulated(t *testing.T, name string, env map[string]string, reached func(*api.Function) *http.Client) door {
	t.Helper()
	env["BUZON_EMULATOR"] = "1"
	function, err := api.New(settings(t, env), io.Discard, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := function.Close(); err != nil {
			t.Error(err)
		}
	})
	return door{name: name, engine: embedded, token: developmentToken(t), client: testkit.Client{HTTP: reached(function), Origin: oauth.DevelopmentOrigin}}
}

// emulatedDoors are the front doors but for the buffered function URL, which the built bootstrap has.
func emulatedDoors(t *testing.T) []door {
	t.Helper()
	const decoded = "an HTTP API decodes the path, so it names another resource: none"
	decoding := startEmulated(t, "http-api", map[string]string{}, func(f *api.Function) *http.Client { return through(t, lambdaedge.HTTPAPI, f) })
	decoding.other = map[string]string{"GET /api/v1/emails/%2e owner@acme.test": decoded, "GET /api/v1/emails/a%2fb owner@acme.test": decoded}
	return []door{
		decoding,
		startEmulated(t, "rest-api", map[string]string{}, func(f *api.Function) *http.Client { return through(t, lambdaedge.RESTAPI, f) }),
		startEmulated(t, "streamed", map[string]string{"BUZON_INVOKE_MODE": "RESPONSE_STREAM"}, func(f *api.Function) *http.Client { return streaming(t, f) }),
	}
}

// settings are those of an environment.
func settings(t *testing.T, env map[string]string) *config.API {
	t.Helper()
	cfg, err := config.LoadAPI(func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// account is an account of AWS that has tables, a bucket and the secrets by these names.
type account struct {
	names config.AWS
	aws   awsclient.Config
	keys  *oauth.KeySet
}

// secretsOf makes the two secrets of a deployment.
func secretsOf(t *testing.T) (map[string]string, *oauth.KeySet) {
	t.Helper()
	set, err := oauth.NewKeySet(rand.Reader, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	keys, err := set.Secret()
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		standin.Roots: "r1:" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32)), standin.KeySet: string(keys),
		standin.Hooks: strings.Repeat("h", 64),
	}, set
}

// inProcess is an account on the stand-ins of this process.
func inProcess(t *testing.T) account {
	t.Helper()
	secrets, set := secretsOf(t)
	aws, err := standin.New(t.Context(), time.Now, secrets)
	if err != nil {
		t.Fatal(err)
	}
	return account{aws.Names(), aws.Config(), set}
}

// startDeployed runs the function as it is deployed, on an account that holds the demo, behind its function URL.
func startDeployed(t *testing.T, a account) door {
	t.Helper()
	const origin = "https://deployed.buzon.example"
	engines := deployed.Account{AWS: a.aws, Names: a.names, Clock: time.Now}
	rows, err := engines.Store()
	if err != nil {
		t.Fatal(err)
	}
	blobs, err := engines.Blobs()
	if err != nil {
		t.Fatal(err)
	}
	if err := demo.Seed(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	if err := demo.LoadMails(t.Context(), rows, func(ctx context.Context, key string, text []byte) error {
		return blobs.Put(ctx, key, bytes.NewReader(text), int64(len(text)))
	}, time.Now()); err != nil {
		t.Fatal(err)
	}
	function, err := api.On(settings(t, map[string]string{
		"BUZON_STORE": "dynamo", "BUZON_PUBLIC_URL": origin, "BUZON_ROOT_SECRETS": standin.Roots, "BUZON_KEY_SET": standin.KeySet, "BUZON_WEBHOOK_KEY": standin.Hooks,
		"BUZON_CORE_TABLE": a.names.CoreTable, "BUZON_EPHEMERAL_TABLE": a.names.EphemeralTable, "BUZON_BUCKET": a.names.Bucket,
		"BUZON_CONCURRENCY": "100", // as the local process has it
		"AWS_REGION":        a.names.Region, "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret",
	}), a.aws, time.Now, io.Discard, "")
	if err != nil {
		t.Fatal(err)
	}
	issuer, err := oauth.NewIssuer(oauth.StaticKeys(a.keys, time.Now), origin, origin+"/mcp", time.Now, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return door{
		name: "deployed", engine: standIns, token: func(email string) string { return mint(t, issuer, email) },
		client: testkit.Client{HTTP: through(t, lambdaedge.FunctionURL, function), Origin: origin},
	}
}

// mint is a token of one of the demo's people with every scope that the role allows, as the command line makes it.
func mint(t *testing.T, issuer *oauth.Issuer, email string) string {
	t.Helper()
	for _, o := range demo.World() {
		for _, m := range o.Members {
			if m.Email != email {
				continue
			}
			scopes, err := inboxops.ScopesOf(inboxops.RoleOf(m.Role))
			if err != nil {
				t.Fatal(err)
			}
			c := oauth.Claims{Subject: m.User, ClientID: web.CommandLine, Scope: strings.Join(scopes, " "), Grant: "grant_cli_" + m.User, Organization: m.Organization}
			if len(o.Workspaces) == 1 {
				c.Workspace = o.Workspaces[0].ID
			}
			token, err := issuer.Mint(t.Context(), c, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			return token
		}
	}
	return nobody
}

// TestScenariosOnStandIn is TestScenarios on moto, which make awstest starts.
func TestScenariosOnStandIn(t *testing.T) {
	endpoint := os.Getenv("BUZON_TEST_AWS_ENDPOINT")
	if endpoint == "" {
		t.Skip("BUZON_TEST_AWS_ENDPOINT names no endpoint; make awstest starts one")
	}
	secrets, set := secretsOf(t)
	fake, err := standin.New(t.Context(), time.Now, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg := fake.Config()
	cfg.Endpoint, cfg.HTTP = endpoint, awsclient.NewHTTP(time.Minute, time.Minute)
	own := strings.ToLower(rand.Text())
	names := config.AWS{Region: cfg.Region, CoreTable: "core-" + own, EphemeralTable: "ephemeral-" + own, Bucket: "scenario-" + own}
	if err := minidyn.Tables(t.Context(), cfg, names.CoreTable, names.EphemeralTable); err != nil {
		t.Fatal(err)
	}
	client := s3.New(s3.Options{Region: cfg.Region, Credentials: cfg.Credentials, BaseEndpoint: cfg.Base(), HTTPClient: cfg.HTTP, UsePathStyle: true})
	if _, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{
		Bucket: &names.Bucket, CreateBucketConfiguration: &types.CreateBucketConfiguration{LocationConstraint: types.BucketLocationConstraintEuWest1},
	}); err != nil {
		t.Fatal(err)
	}
	vault := secretsmanager.New(secretsmanager.Options{Region: cfg.Region, Credentials: cfg.Credentials, BaseEndpoint: cfg.Base(), HTTPClient: cfg.HTTP})
	for name, text := range secrets {
		if _, err := vault.CreateSecret(t.Context(), &secretsmanager.CreateSecretInput{Name: &name, SecretString: &text}); err != nil {
			t.Fatal(err)
		}
	}
	startDeployed(t, account{names, cfg, set}).playAll(t, scenarios(t), false)
}

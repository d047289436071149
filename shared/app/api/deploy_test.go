package api

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/truora/minidyn/server"

	"github.com/buzon-mail/buzon/shared/app/web"
	"github.com/buzon-mail/buzon/shared/awsclient"
	"github.com/buzon-mail/buzon/shared/config"
	"github.com/buzon-mail/buzon/shared/demo"
	"github.com/buzon-mail/buzon/shared/lambdaedge"
	"github.com/buzon-mail/buzon/shared/oauth"
	"github.com/buzon-mail/buzon/shared/testkit/faults"
)

const (
	origin     = "https://mail.example.test"
	rootsName  = "buzon/roots-canary"
	keysName   = "buzon/keys-canary"
	goodDoor   = "abc123.lambda-url.eu-west-1.on.aws"
	secretsOp  = "GetSecretValue"
	secretText = "canary-root"
)

// cloud is the AWS of a test: DynamoDB in process, and secrets that are there or not.
type cloud struct {
	t       *testing.T
	client  *faults.Client
	secrets map[string]string
	set     *oauth.KeySet
	d       *deployment
	log     bytes.Buffer
	now     time.Time
}

func newCloud(t *testing.T, publicURL string) *cloud {
	t.Helper()
	c := &cloud{t: t, now: time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)}
	set, err := oauth.NewKeySet(rand.Reader, c.now)
	c.must(err)
	text, err := set.Secret()
	c.must(err)
	c.set = set
	c.secrets = map[string]string{rootsName: "r1:" + base64.StdEncoding.EncodeToString(make([]byte, 32)), keysName: string(text)}
	dynamo := server.NewServer()
	c.client = &faults.Client{Server: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), secretsOp) {
			c.secret(w, r)
			return
		}
		dynamo.ServeHTTP(w, r)
	})}
	cfg, err := awsclient.Static("eu-west-1", "AKID", "key-secret-canary", "")
	c.must(err)
	cfg.HTTP, cfg.Backoff = c.client, func(int, bool) time.Duration { return 0 }
	c.d, err = deploy(&config.API{
		PublicURL: publicURL, RootSecrets: rootsName, KeySet: keysName, Rates: config.Rates{PerMinute: 600},
		AWS: config.AWS{CoreTable: "buzon-core", EphemeralTable: "buzon-ephemeral", Bucket: "buzon-mail"},
	}, cfg, slog.New(slog.NewJSONHandler(&c.log, nil)), func() time.Time { return c.now }, "1.0.0")
	c.must(err)
	c.client.WantOps(t) // a start asks AWS nothing
	tables(t, cfg)
	c.must(demo.Seed(t.Context(), c.d.store))
	c.client.Then()
	return c
}

func tables(t *testing.T, cfg awsclient.Config) {
	t.Helper()
	client := dynamodb.New(dynamodb.Options{Region: cfg.Region, Credentials: cfg.Credentials, HTTPClient: cfg.HTTP})
	for _, name := range []string{"buzon-core", "buzon-ephemeral"} {
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
			t.Fatal(err)
		}
	}
}

func (c *cloud) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// secret answers GetSecretValue.
func (c *cloud) secret(w http.ResponseWriter, r *http.Request) {
	var in struct {
		SecretID string `json:"SecretId"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		c.t.Error(err)
	}
	text, ok := c.secrets[in.SecretID]
	if !ok {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"__type":"ResourceNotFoundException","Message":"can't find ` + in.SecretID + `"}`))
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]string{"Name": in.SecretID, "SecretString": text})
}

func (c *cloud) get(path, token string) *httptest.ResponseRecorder {
	c.t.Helper()
	r := httptest.NewRequestWithContext(c.t.Context(), http.MethodGet, origin+path, nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	c.d.ServeHTTP(w, r)
	return w
}

func (c *cloud) asked(op string) int {
	n := 0
	for _, r := range c.client.Asked() {
		if r.Op == op {
			n++
		}
	}
	return n
}

func (c *cloud) token() string {
	c.t.Helper()
	issuer, err := oauth.NewIssuer(oauth.StaticKeys(c.set, func() time.Time { return c.now }), origin, origin+"/mcp", func() time.Time { return c.now }, rand.Reader)
	c.must(err)
	acme := demo.World()[0]
	token, err := issuer.Mint(c.t.Context(), oauth.Claims{
		Subject: acme.Members[0].User, ClientID: web.CommandLine, Grant: "grant_test", Organization: acme.Org.ID, Workspace: acme.Workspaces[0].ID,
		Scope: "inboxes:read emails:read",
	}, 15*time.Minute)
	c.must(err)
	return token
}

// TestDeployedServes goes all the way: secrets, token, DynamoDB.
func TestDeployedServes(t *testing.T) {
	c := newCloud(t, origin)
	for i, secrets := range []int{2, 0} { // the second request finds everything in memory
		c.client.Then()
		w := c.get("/api/v1/inboxes", c.token())
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "facturas") {
			t.Fatalf("request %d: status %d, %s", i, w.Code, w.Body)
		}
		if n := c.asked(secretsOp); n != secrets {
			t.Errorf("request %d read %d secrets, want %d", i, n, secrets)
		}
	}
	if w := c.get("/api/v1/inboxes", ""); w.Code != http.StatusUnauthorized {
		t.Errorf("without a token: status %d", w.Code)
	}
	c.wantNoCanary(c.log.String())
}

func (c *cloud) wantNoCanary(text string) {
	c.t.Helper()
	if strings.Contains(text, "canary") {
		c.t.Errorf("a secret or its name is in %s", text)
	}
}

// TestSecretsMissing: the answer says come again, the log says what to mend, neither says the name, and a flood of requests is
// not a flood on the secret store.
func TestSecretsMissing(t *testing.T) {
	for name, text := range map[string]string{"missing": "", "no root secrets": secretText, "a short root": "r1:" + base64.StdEncoding.EncodeToString([]byte("canary"))} {
		t.Run(name, func(t *testing.T) {
			c := newCloud(t, origin)
			good := c.secrets[rootsName]
			if c.secrets[rootsName] = text; text == "" {
				delete(c.secrets, rootsName)
			}
			for range 5 {
				w := c.get("/healthz", "")
				if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || strings.Contains(w.Body.String(), "BUZON") {
					t.Errorf("status %d, %s", w.Code, w.Body)
				}
				c.wantNoCanary(w.Body.String())
			}
			if n := c.asked(secretsOp); n != 1 {
				t.Errorf("%d reads for five requests", n)
			}
			if log := c.log.String(); strings.Count(log, "BUZON_ROOT_SECRETS") != 1 {
				t.Errorf("log: %s", log)
			}
			c.wantNoCanary(c.log.String())
			c.secrets[rootsName] = good
			c.now = c.now.Add(pause)
			if w := c.get("/healthz", ""); w.Code != http.StatusOK {
				t.Errorf("once it is mended: status %d", w.Code)
			}
		})
	}
	t.Run("the caller goes away", func(t *testing.T) {
		c := newCloud(t, origin)
		ctx, cancel := context.WithCancel(t.Context())
		c.client.Then(faults.Hang(cancel))
		c.d.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, origin+"/healthz", nil))
		if w := c.get("/healthz", ""); w.Code != http.StatusOK {
			t.Errorf("the next caller: status %d", w.Code)
		}
	})
	t.Run("the key set", func(t *testing.T) {
		c := newCloud(t, origin)
		delete(c.secrets, keysName)
		if w := c.get("/api/v1/inboxes", c.token()); w.Code != http.StatusServiceUnavailable {
			t.Errorf("status %d, %s", w.Code, w.Body)
		}
		if w := c.get("/healthz", ""); w.Code != http.StatusOK {
			t.Errorf("what needs no token: status %d", w.Code)
		}
		c.wantNoCanary(c.log.String())
	})
}

// event is a function URL's event.
func event(t *testing.T, domain string) []byte {
	t.Helper()
	b, err := json.Marshal(map[string]any{
		"version": "2.0", "routeKey": "$default", "rawPath": "/.well-known/oauth-protected-resource/mcp", "rawQueryString": "",
		"headers": map[string]string{"host": "evil.example", "x-forwarded-host": "evil.example"}, "isBase64Encoded": false,
		"requestContext": map[string]any{
			"accountId": "anonymous", "apiId": "abc123", "domainName": domain, "stage": "$default", "requestId": "r",
			"http": map[string]string{"method": "GET", "path": "/.well-known/oauth-protected-resource/mcp", "protocol": "HTTP/1.1", "sourceIp": "203.0.113.9"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestOriginOfTheDoor: without a public URL the door's own name serves, which no header can forge, and no endless number of them.
func TestOriginOfTheDoor(t *testing.T) {
	c := newCloud(t, "")
	if w := c.get("/healthz", ""); w.Code != http.StatusServiceUnavailable || !strings.Contains(c.log.String(), "BUZON_PUBLIC_URL") {
		t.Errorf("no door: status %d, log %s", w.Code, c.log.String())
	}
	c.now = c.now.Add(pause)
	h := lambdaedge.New(c.d, lambdaedge.Options{Logger: slog.New(slog.DiscardHandler)})
	for i, domain := range []string{goodDoor, goodDoor, "b.execute-api.eu-west-1.amazonaws.com", "c.example.test", "d.example.test", "e.example.test"} {
		out, err := h.Invoke(t.Context(), event(t, domain))
		if err != nil {
			t.Fatal(err)
		}
		refused := i == 5
		if bytes.Contains(out, []byte("https://"+domain+"/mcp")) == refused || bytes.Contains(out, []byte("evil")) {
			t.Errorf("%s: %s", domain, out)
		}
	}
	if n := c.asked(secretsOp); n != 1 {
		t.Errorf("the root secrets were read %d times", n)
	}
}

// TestProviderOfADeployment: the button is there, its secret is read by nobody who does not press it, and one that is missing stops
// nothing else.
func TestProviderOfADeployment(t *testing.T) {
	const name = "buzon/oidc-canary"
	c := newCloud(t, origin)
	c.d.cfg.Upstream = &config.Upstream{Issuer: "https://login.example", ClientID: "id", Secret: name, Name: "Example", Allow: []string{"@acme.test"}}
	w := c.get("/sign-in", "")
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "Example") || !strings.Contains(w.Body.String(), oauth.UpstreamPath) {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	for _, r := range c.client.Asked() {
		if r.Op == secretsOp && strings.Contains(string(r.Body), name) {
			t.Error("the secret was read before anybody signed in there")
		}
	}
	read := c.d.provider().Secret
	if _, err := read(t.Context()); err == nil || !strings.Contains(err.Error(), "BUZON_OIDC_SECRET") || strings.Contains(err.Error(), "canary") {
		t.Errorf("missing: %v", err)
	}
	c.secrets[name] = "hush-hush\n"
	if got, err := read(t.Context()); err != nil || got != "hush-hush" {
		t.Errorf("%q, %v", got, err)
	}
}

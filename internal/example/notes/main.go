// Command notes is an API of somebody else's, complete: rows of its own, two tenants, an operation that asks a person first, served over
// HTTP here and by a Lambda function there. docs/your-own-api.md walks through it; it knows nothing of mail.
package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/awsclient"
	"github.com/buzon-mail/buzon/shared/lambdaedge"
	"github.com/buzon-mail/buzon/shared/mcp"
	"github.com/buzon-mail/buzon/shared/oauth"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/optool"
	"github.com/buzon-mail/buzon/shared/ratelimit"
	"github.com/buzon-mail/buzon/shared/rest"
	"github.com/buzon-mail/buzon/shared/seal"
	"github.com/buzon-mail/buzon/shared/store"
	"github.com/buzon-mail/buzon/shared/store/dynamo"
	"github.com/buzon-mail/buzon/shared/store/embedded"
)

// people says whose a token is, by its digest: a comparison of digests tells nobody how much of a guess was right. Yours would verify
// the signature, audience and expiry of a token of your authorization server.
type people map[[sha256.Size]byte]*op.Caller

// Authenticate implements rest.Authenticator.
func (p people) Authenticate(_ context.Context, h http.Header) (*op.Caller, error) {
	if c := p[sha256.Sum256([]byte(h.Get("Authorization")))]; c != nil {
		return c, nil
	}
	return nil, apperr.New(apperr.Unauthenticated, "invalid_token", "The token is missing or wrong.", "Send the header Authorization: Bearer <token>.")
}

// door is the same, as the protocol's room asks for it.
type door struct{ people }

// Authenticate implements mcp.Authenticator.
func (d door) Authenticate(ctx context.Context, h http.Header) (mcp.Caller, error) {
	return d.people.Authenticate(ctx, h)
}

// deps is what differs between the processes.
type deps struct {
	rows   store.Engine
	roots  []seal.Root // seal what travels with a question: every instance has the same
	origin string      // that clients type
	issuer string      // your authorization server
	people people
}

// service is the whole HTTP side.
func service(d deps) (http.Handler, error) {
	all, err := catalogue(&notes{d.rows})
	if err != nil {
		return nil, err
	}
	resource, err := oauth.NewResource(oauth.ResourceOptions{
		Origin: d.origin, Issuer: d.issuer, Name: "Notes", Scopes: []string{"notes:read", "notes:write"},
	})
	if err != nil {
		return nil, err
	}
	routes, err := rest.New(all, rest.Deps{
		Authenticator: d.people, Challenger: resource, Logger: slog.Default(), RequestID: func(context.Context) string { return "" },
	}, rest.Options{BasePath: "/api"})
	if err != nil {
		return nil, err
	}
	endpoint, err := protocol(d, all, routes, resource)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", endpoint)
	mux.Handle("/api/", routes)
	mux.Handle(oauth.MetadataPath, resource)
	mux.Handle(oauth.MetadataPathMCP, resource)
	return mux, nil
}

// protocol is the MCP endpoint over the routes.
func protocol(d deps, all *op.Catalogue, routes *rest.API, resource *oauth.Resource) (http.Handler, error) {
	list, err := optool.Render(all) // a program that starts often embeds these bytes, written by its build
	if err != nil {
		return nil, err
	}
	segments, err := optool.ParseSegments(list)
	if err != nil {
		return nil, err
	}
	tools, err := optool.New(all, routes, segments, optool.Options{BasePath: "/api"})
	if err != nil {
		return nil, err
	}
	limiter, err := ratelimit.New(ratelimit.Options{PerMinute: 600, Now: time.Now})
	if err != nil {
		return nil, err
	}
	keys, err := seal.New(d.roots, seal.Options{Clock: time.Now})
	if err != nil {
		return nil, err
	}
	return mcp.New(mcp.Deps{
		Authenticator: door{d.people}, Challenger: resource, Tools: tools, Limiter: limiter, Sealer: keys.Purpose("mcp"),
	}, mcp.Options{Name: "notes", Version: "1.0.0", PublicOrigin: d.origin})
}

// token is one of the sample's tokens.
func (p people) token(text, organization string, scope op.ScopeSet) {
	p[sha256.Sum256([]byte("Bearer "+text))] = &op.Caller{Subject: "user-" + organization, Grant: "grant-" + organization, Organization: organization,
		Person: true, Role: op.Operator, Scopes: scope}
}

// local serves on this machine, over a file.
func local(addr string) error {
	dir, err := os.MkdirTemp("", "notes")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	rows, err := embedded.Open(filepath.Join(dir, "notes.db"), embedded.Options{})
	if err != nil {
		return fmt.Errorf("open the rows: %w", err)
	}
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // it never fails
	v, err := scopes()
	if err != nil {
		return err
	}
	known := people{}
	known.token("secret", "one", v.Parse("notes:write"))
	handler, err := service(deps{rows, []seal.Root{{ID: "r1", Secret: secret}}, "http://" + addr, "https://login.example.com", known})
	if err != nil {
		return err
	}
	server := &http.Server{Addr: addr, Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	fmt.Fprintf(os.Stderr, "notes: http://%s/mcp and /api/notes, with the token \"secret\"; %s keeps them\n", addr, dir)
	return fmt.Errorf("serve: %w", server.ListenAndServe())
}

// function serves behind a function URL, an HTTP API or a REST API of AWS: the same handler, over two DynamoDB tables.
func function(env func(string) string) error {
	aws, err := awsclient.Static(env("AWS_REGION"), env("AWS_ACCESS_KEY_ID"), env("AWS_SECRET_ACCESS_KEY"), env("AWS_SESSION_TOKEN"))
	if err != nil {
		return fmt.Errorf("aws: %w", err)
	}
	rows, err := dynamo.New(dynamo.Options{AWS: aws, Core: env("CORE_TABLE"), Ephemeral: env("EPHEMERAL_TABLE")})
	if err != nil {
		return fmt.Errorf("tables: %w", err)
	}
	roots, err := seal.ParseRoots(env("ROOTS")) // better from Secrets Manager, by name
	if err != nil {
		return fmt.Errorf("roots: %w", err)
	}
	handler, err := service(deps{rows, roots, env("ORIGIN"), env("ISSUER"), people{}})
	if err != nil {
		return err
	}
	lambdaedge.Start(lambdaedge.New(handler, lambdaedge.Options{}))
	return nil
}

func main() {
	err := error(nil)
	if os.Getenv("AWS_LAMBDA_RUNTIME_API") != "" {
		err = function(os.Getenv)
	} else {
		err = local("127.0.0.1:8081")
	}
	fmt.Fprintln(os.Stderr, "notes:", err)
	os.Exit(1)
}

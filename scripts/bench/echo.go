package main

import (
	"context"
	"io"
	"net/http"

	"github.com/buzon-mail/buzon/shared/app/jsonlog"
	"github.com/buzon-mail/buzon/shared/mcp"
	"github.com/buzon-mail/buzon/shared/oauth"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/optool"
	"github.com/buzon-mail/buzon/shared/ratelimit"
	"github.com/buzon-mail/buzon/shared/rest"
)

type echoIn struct {
	Body struct {
		Text string `json:"text" minLength:"1" maxLength:"1000" doc:"What to send back"`
	}
}

type echoOut struct {
	Body struct {
		Data struct {
			Text string `json:"text"`
		} `json:"data"`
	}
}

// bearer knows the world's tokens and makes the same caller of each of them.
type bearer struct {
	verifier *oauth.Verifier
	caller   *op.Caller
}

func (b bearer) verify(ctx context.Context, h http.Header) error {
	token, err := oauth.Bearer(h)
	if err == nil {
		_, err = b.verifier.Verify(ctx, token)
	}
	return err
}

// Authenticate serves the REST side.
func (b bearer) Authenticate(ctx context.Context, h http.Header) (*op.Caller, error) {
	return b.caller, b.verify(ctx, h)
}

// asCaller is the same for the protocol.
type asCaller struct{ bearer }

// Authenticate serves the protocol's side.
func (a asCaller) Authenticate(ctx context.Context, h http.Header) (mcp.Caller, error) {
	return a.caller, a.verify(ctx, h)
}

// echo is one operation that does nothing, on the rooms that others would put their own API on: op, rest, optool, mcp, with
// our tokens, the rate limit and the log.
func (w *world) echo() (http.Handler, error) {
	vocabulary, err := op.NewVocabulary([]op.ScopeInfo{{Name: "echo:write"}})
	if err != nil {
		return nil, err
	}
	c, err := op.NewCatalogue(vocabulary, []op.Operation{rest.Define(op.Spec{
		Name: "echo_send", Method: http.MethodPost, Path: "/echoes", Title: "Echo", Description: "Sends back what it was sent.",
		Effect: op.Write, Scope: "echo:write", Role: op.Viewer,
	}, func(_ context.Context, in *echoIn) (*echoOut, error) {
		out := &echoOut{}
		out.Body.Data.Text = in.Body.Text
		return out, nil
	})})
	if err != nil {
		return nil, err
	}
	verifier, err := oauth.NewVerifier(w.keys, w.clock, oauth.VerifierOptions{Issuer: origin, Audience: origin + "/mcp"})
	if err != nil {
		return nil, err
	}
	auth := bearer{verifier, &op.Caller{
		Subject: "user_1", Person: true, Grant: "grant_1", Scopes: vocabulary.Parse("echo:write"), Role: op.Viewer,
		Workspaces: []op.Workspace{{ID: w.box.Workspace, Role: op.Viewer}},
	}}
	resource, err := oauth.NewResource(oauth.ResourceOptions{Origin: origin, Name: "Echo"})
	if err != nil {
		return nil, err
	}
	log := jsonlog.New(io.Discard)
	routes, err := rest.New(c, rest.Deps{Authenticator: auth, Challenger: resource, Logger: log,
		RequestID: func(context.Context) string { return "" }}, rest.Options{BasePath: "/api/v1"})
	if err != nil {
		return nil, err
	}
	limiter, err := ratelimit.New(ratelimit.Options{PerMinute: perMinute, Now: w.clock})
	if err != nil {
		return nil, err
	}
	list, err := optool.Render(c)
	if err != nil {
		return nil, err
	}
	segments, err := optool.ParseSegments(list)
	if err != nil {
		return nil, err
	}
	tools, err := optool.New(c, routes, segments, optool.Options{UntrustedMetaKey: "bench/untrusted", BasePath: "/api/v1"})
	if err != nil {
		return nil, err
	}
	return mcp.New(mcp.Deps{Authenticator: asCaller{auth}, Challenger: resource, Limiter: limiter, Tools: tools, Logger: log, Now: w.clock},
		mcp.Options{Name: "echo", Version: "1", PublicOrigin: origin})
}

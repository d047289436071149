package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/scripts/service"
	"github.com/buzon-mail/buzon/shared/app/api"
	"github.com/buzon-mail/buzon/shared/app/local"
	"github.com/buzon-mail/buzon/shared/config"
	"github.com/buzon-mail/buzon/shared/lambdaedge"
	"github.com/buzon-mail/buzon/shared/lambdaedge/gateway"
)

// product is the service itself at one door: the local process, or the emulated function behind a function URL.
type product struct {
	name  string
	url   string // of the endpoint
	token string // of the demo's owner
	close func() error
}

// plan is what a client says to the product. Each client gets an inbox of its own to delete.
func (p product) plan(ctx context.Context, n int) (Plan, error) {
	slug := fmt.Sprintf("client-%d", n)
	if err := p.makeInbox(ctx, slug); err != nil {
		return Plan{}, err
	}
	return Plan{
		URL: p.url, Token: p.token, Tool: Call{Name: "session_get", Expect: `"role":"owner"`},
		Calls: []Call{
			{Name: "emails_list", Arguments: map[string]any{"inbox": "facturas", "limit": 5}, Expect: "Factura 2026-0117"},
			{Name: "emails_get", Arguments: map[string]any{"id": "email_01KDT0000000000000000MA101"}, Expect: "184,30 EUR"},
		},
		Resource: "buzon://inbox/guide",
		Prompt:   &Prompt{"triage_inbox", map[string]string{"inbox": "facturas"}},
		Complete: &Completion{
			Ref:      map[string]string{"type": "ref/prompt", "name": "triage_inbox"},
			Argument: map[string]string{"name": "inbox", "value": "fac"}, Expect: "facturas",
		},
		Confirm: &Call{Name: "inboxes_delete", Arguments: map[string]any{"id": slug}, Expect: `"deleted_at":"20`},
		Decline: &Call{Name: "inboxes_delete", Arguments: map[string]any{"id": "facturas"}, Expect: "declined"},
		Legacy:  &Call{Name: "inboxes_delete", Arguments: map[string]any{"id": "facturas"}, Expect: "confirmation_required"},
	}, nil
}

// makeInbox goes through REST, as the product's other surface.
func (p product) makeInbox(ctx context.Context, slug string) error {
	address := strings.TrimSuffix(p.url, "/mcp") + "/api/v1/inboxes"
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, address, strings.NewReader(`{"slug":"`+slug+`"}`))
	if err != nil {
		return fmt.Errorf("inbox %s: %w", slug, err)
	}
	r.Header.Set("Authorization", "Bearer "+p.token)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("inbox %s: %w", slug, err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusCreated {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 2000))
		return fmt.Errorf("inbox %s: %s: %s", slug, res.Status, text)
	}
	return nil
}

// startLocal runs the local process with the demo.
func startLocal(ctx context.Context) (product, error) {
	s, err := service.Start(ctx, local.Options{})
	if err != nil {
		return product{}, err
	}
	return product{name: "buzon, local", url: s.URL, token: s.Token, close: s.Close}, nil
}

// startFunction serves the emulated function behind a function URL.
func startFunction(ctx context.Context) (product, error) {
	function, err := api.New(&config.API{Emulated: true}, io.Discard, "")
	if err != nil {
		return product{}, fmt.Errorf("function: %w", err)
	}
	door, err := gateway.New(lambdaedge.FunctionURL, function.Invoke, gateway.Options{})
	if err != nil {
		return product{}, errors.Join(fmt.Errorf("function: %w", err), function.Close())
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return product{}, errors.Join(fmt.Errorf("function: %w", err), function.Close())
	}
	server := &http.Server{Handler: door, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	p := product{name: "buzon, function-url", url: "http://" + listener.Addr().String() + "/mcp", close: func() error {
		return errors.Join(server.Close(), function.Close())
	}}
	token, err := local.FillEvent(ctx, []byte("{{token:owner@acme.test}}"), time.Now)
	if err != nil {
		return p, errors.Join(fmt.Errorf("function: %w", err), p.close())
	}
	p.token = string(token)
	return p, nil
}

// Package upstream lets people sign in at an OpenID provider that the operator chose (OpenID Connect Core 1.0, authorization code
// flow with PKCE, state and nonce). It answers one question: which verified e-mail address came back. It wraps go-oidc, keeps
// nothing but the provider's metadata and keys, and knows no cookies, no store and not who belongs to the service.
package upstream

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

const (
	rediscover = time.Hour        // the provider's metadata is read again after
	pause      = 30 * time.Second // and not sooner after a failure: strangers press the button too
	patience   = 10 * time.Second // for each answer of the provider
)

// ErrRefused is an answer that signs nobody in. Why is for logs.
var ErrRefused = errors.New("upstream: refused")

var errPausing = errors.New("upstream: the provider did not answer a moment ago")

// Config names the provider.
type Config struct {
	Issuer   string
	ClientID string
	// Secret reads the client secret. It is asked with the provider's metadata: at the first sign-in, then at most once an hour,
	// so that a secret that is replaced is seen, and one that can't be read keeps nobody from anything else.
	Secret func(ctx context.Context) (string, error)
	Name   string // for the button
	// Allow lists who may come in: addresses, or domains as @example.com. Whoever is not a member is refused anyway; the list
	// keeps a provider that serves the whole world from vouching for any address of it.
	Allow []string
}

// Provider talks to it. Nothing is asked before somebody signs in, so that a service starts while its provider is down.
type Provider struct {
	Config
	redirect string
	clock    func() time.Time
	client   *http.Client

	mu       sync.Mutex // guards all below; held while the provider is asked, so that a burst asks once
	provider *oidc.Provider
	secret   string
	read     time.Time
	failed   time.Time
}

// New checks the configuration. redirect is where the provider sends people back to; transport is nil but in tests.
func New(c Config, redirect string, clock func() time.Time, transport http.RoundTripper) (*Provider, error) {
	if c.Issuer == "" || c.ClientID == "" || c.Secret == nil || len(c.Allow) == 0 {
		return nil, errors.New("upstream: issuer, client id, secret and a list of who may come in are needed")
	}
	for i, entry := range c.Allow {
		c.Allow[i] = strings.ToLower(strings.TrimSpace(entry))
	}
	if c.Name == "" {
		c.Name = c.Issuer
	}
	return &Provider{Config: c, redirect: redirect, clock: clock, client: &http.Client{Timeout: patience, Transport: transport}}, nil
}

// Trip is what a sign-in must remember while the person is away. It is secret: whoever holds it can finish.
type Trip struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"`
}

// Address is where the person goes.
func (p *Provider) Address(ctx context.Context, t Trip) (string, error) {
	c, _, err := p.config(ctx)
	if err != nil {
		return "", err
	}
	return c.AuthCodeURL(t.State, oidc.Nonce(t.Nonce), oauth2.S256ChallengeOption(t.Verifier)), nil
}

// Answer is what came back with the person.
type Answer struct{ Code, State, Issuer, Error string }

// Email redeems the answer and returns the verified address in lower case: ErrRefused for an answer to another trip, a token
// that does not verify, an address that the provider did not verify or that may not come in.
func (p *Provider) Email(ctx context.Context, t Trip, a Answer) (string, error) {
	if t.State == "" || subtle.ConstantTimeCompare([]byte(a.State), []byte(t.State)) != 1 {
		return "", fmt.Errorf("%w: another state", ErrRefused)
	}
	if a.Issuer != "" && a.Issuer != p.Issuer { // RFC 9207 section 2.4
		return "", fmt.Errorf("%w: another issuer", ErrRefused)
	}
	if a.Error != "" || a.Code == "" {
		return "", fmt.Errorf("%w: the provider answered with an error", ErrRefused)
	}
	c, provider, err := p.config(ctx)
	if err != nil {
		return "", err
	}
	tokens, err := c.Exchange(oidc.ClientContext(ctx, p.client), a.Code, oauth2.VerifierOption(t.Verifier))
	if err != nil {
		return "", fmt.Errorf("%w: redeem: %w", ErrRefused, err)
	}
	raw, _ := tokens.Extra("id_token").(string)
	token, err := provider.Verifier(&oidc.Config{ClientID: p.ClientID, Now: p.clock}).Verify(ctx, raw)
	if err != nil {
		return "", fmt.Errorf("%w: id token: %w", ErrRefused, err)
	}
	if subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(t.Nonce)) != 1 {
		return "", fmt.Errorf("%w: another nonce", ErrRefused)
	}
	return p.address(token)
}

// address reads the claims. An address that nobody verified is one that anybody could have typed in.
func (p *Provider) address(token *oidc.IDToken) (string, error) {
	var claims struct {
		Email    string          `json:"email"`
		Verified json.RawMessage `json:"email_verified"`
	}
	if err := token.Claims(&claims); err != nil {
		return "", fmt.Errorf("%w: claims: %w", ErrRefused, err)
	}
	if v := string(claims.Verified); v != "true" && v != `"true"` { // some providers write a string
		return "", fmt.Errorf("%w: the address is not verified", ErrRefused)
	}
	email := strings.ToLower(claims.Email)
	_, domain, ok := strings.Cut(email, "@")
	if !ok || strings.Contains(domain, "@") {
		return "", fmt.Errorf("%w: no address", ErrRefused)
	}
	for _, entry := range p.Allow {
		if entry == email || entry == "@"+domain {
			return email, nil
		}
	}
	return "", fmt.Errorf("%w: the address is not on the list", ErrRefused)
}

// config reads the provider's metadata and our secret, at most once an hour. Older ones serve while those do not answer. Only who
// presses the button, or comes back from there, gets here: nothing else of a stranger's makes us ask the provider.
func (p *Provider) config(ctx context.Context) (*oauth2.Config, *oidc.Provider, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := p.clock(); (p.provider == nil || now.Sub(p.read) > rediscover) && now.Sub(p.failed) >= pause {
		// The provider keeps this context for its keys, so it must not end with the request.
		kept := oidc.ClientContext(context.WithoutCancel(ctx), p.client)
		found, err := oidc.NewProvider(kept, p.Issuer)
		var secret string
		if err == nil {
			secret, err = p.Secret(ctx)
		}
		switch {
		case err == nil:
			p.provider, p.secret, p.read = found, secret, now
		case ctx.Err() == nil: // a person who went away says nothing about the provider
			p.failed = now
		}
		if p.provider == nil {
			return nil, nil, fmt.Errorf("upstream: discover: %w", err)
		}
	}
	if p.provider == nil {
		return nil, nil, errPausing
	}
	return &oauth2.Config{
		ClientID: p.ClientID, ClientSecret: p.secret, Endpoint: p.provider.Endpoint(), RedirectURL: p.redirect,
		Scopes: []string{oidc.ScopeOpenID, "email"},
	}, p.provider, nil
}

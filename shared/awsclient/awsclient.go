// Package awsclient is what the engines on AWS share: where requests go and with whose credentials, how long one may take, which
// failures are tried again and how often, and what an engine may say of a failure. It makes no client and knows no service: each
// engine builds its own from a Config, so that a function links only the services that it uses. AWS's own `config` module is not
// used: it reads files and metadata services, which a function has no need of, and costs a millisecond of start-up.
package awsclient

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Config says where requests go, with whose credentials and how.
type Config struct {
	Region      string
	Credentials aws.CredentialsProvider
	Endpoint    string         // base URL of a stand-in; empty for AWS itself
	HTTP        aws.HTTPClient // nil: what NewHTTP makes for the service
	// Backoff is the wait before the attempt that follows attempt n, from 1; nil: with full jitter up to 50 ms, 100 ms, ...,
	// 1 s, and four times that where AWS throttles.
	Backoff func(n int, throttled bool) time.Duration
}

// Static is the configuration of a function, whose region and credentials Lambda sets in its environment and keeps as they are
// while the process lives. session is empty for credentials of a person.
func Static(region, keyID, secret, session string) (Config, error) {
	if region == "" || keyID == "" || secret == "" {
		return Config{}, errors.New("aws: a region, a key id and its secret are needed")
	}
	keys := aws.Credentials{AccessKeyID: keyID, SecretAccessKey: secret, SessionToken: session, Source: "environment"}
	provider := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return keys, nil })
	return Config{Region: region, Credentials: provider}, nil
}

// Validate checks what no default can stand for.
func (c Config) Validate() error {
	if c.Region == "" || c.Credentials == nil {
		return errors.New("aws: a region and credentials are needed")
	}
	return nil
}

// Base is the endpoint in the form that clients take: nil for AWS itself.
func (c Config) Base() *string {
	if c.Endpoint == "" {
		return nil
	}
	return &c.Endpoint
}

// Client is c.HTTP, or one of NewHTTP.
func (c Config) Client(header, whole time.Duration) aws.HTTPClient {
	if c.HTTP != nil {
		return c.HTTP
	}
	return NewHTTP(header, whole)
}

// NewHTTP makes an HTTP client whose single request can't use up a function's time: header bounds the wait for the response's
// head, whole bounds all of it (0: the body may take as long as the caller's context). Redirects are not followed: a signed
// request is signed for one host.
func NewHTTP(header, whole time.Duration) *http.Client {
	return &http.Client{
		Timeout: whole,
		Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: time.Second, KeepAlive: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout:   2 * time.Second,
			ResponseHeaderTimeout: header,
			IdleConnTimeout:       time.Minute,
			MaxIdleConns:          128,
			MaxIdleConnsPerHost:   64,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

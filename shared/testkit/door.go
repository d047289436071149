package testkit

import (
	"context"
	"net/http"

	"github.com/buzon-mail/buzon/shared/lambdaedge"
	"github.com/buzon-mail/buzon/shared/lambdaedge/gateway"
)

// FunctionURL is an http.RoundTripper that reaches a function as through its URL: the gateway of that door in short.
type FunctionURL struct {
	Invoke func(ctx context.Context, event []byte) ([]byte, error)
	Host   string // the function URL's own domain
}

// RoundTrip sends one request through the door.
func (f *FunctionURL) RoundTrip(r *http.Request) (*http.Response, error) {
	g, err := gateway.New(lambdaedge.FunctionURL, f.Invoke, gateway.Options{Domain: f.Host})
	if err != nil {
		return nil, err
	}
	return g.RoundTrip(r)
}

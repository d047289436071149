package main

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"

	"github.com/buzon-mail/buzon/shared/safehttp"
)

// documentID is a client id whose document the publisher serves, and publisherCallback where that client gets its answers.
const (
	documentID        = "https://app.example.com/oauth/client.json"
	publisherCallback = "https://app.example.com/callback"
)

// publisher is a stand-in for the host of a client on the internet: app.example.com, with a certificate for it. The service
// asks it through its usual client with every check; only the resolver, the last hop and the root are the test's.
type publisher struct{ server *httptest.Server }

func newPublisher() *publisher {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /oauth/client.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"client_id": documentID, "client_name": "Sample app", "redirect_uris": []string{publisherCallback},
			"token_endpoint_auth_method": "none",
		})
	})
	mux.HandleFunc("GET /callback", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(`<!doctype html><html lang="en"><link rel="icon" href="data:,"><title>Connected</title>`))
	})
	return &publisher{httptest.NewTLSServer(mux)} // its certificate is for example.com and *.example.com
}

// Close stops it.
func (p *publisher) Close() { p.server.Close() }

// key is what a browser knows its certificate by.
func (p *publisher) key() string {
	sum := sha256.Sum256(p.server.Certificate().RawSubjectPublicKeyInfo)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// LookupNetIP answers with an address of the public internet.
func (*publisher) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
}

func (p *publisher) fetcher() *safehttp.Client {
	roots := x509.NewCertPool()
	roots.AddCert(p.server.Certificate())
	return safehttp.New(safehttp.Options{
		Resolver: p, Roots: roots,
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, p.server.Listener.Addr().String())
		},
	})
}

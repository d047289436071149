package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/buzon-mail/buzon/scripts/service"
	"github.com/buzon-mail/buzon/shared/app/local"
	"github.com/buzon-mail/buzon/shared/safehttp"
	"github.com/buzon-mail/buzon/shared/testkit/robot"
)

// lab is the local process for clients that sign in by themselves: its clock can be moved, so that tokens expire for real, and
// beside it stands a host of client id documents, fetched by the very client of the service, over TLS.
type lab struct {
	url       string // of the endpoint
	origin    string
	folder    string // for what clients keep
	documents string // origin of the client documents
	// buzon runs the command line beside the service and returns what it prints.
	buzon   func(ctx context.Context, args ...string) (string, error)
	secret  string       // of the account in use
	ahead   atomic.Int64 // of the service's clock before ours
	closers []func() error
}

const person = "owner@acme.test"

func (l *lab) clock() time.Time { return time.Now().Add(time.Duration(l.ahead.Load())) }

// pass moves the service's clock: accessLife lets access tokens expire, seen lets an instance forget whom it knows.
func (l *lab) pass(d time.Duration) { l.ahead.Add(int64(d)) }

const (
	accessLife = 16 * time.Minute
	seen       = 31 * time.Second
)

func startLab(ctx context.Context) (_ *lab, err error) {
	l := &lab{}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("lab: %w", err), l.close())
		}
	}()
	if l.folder, err = os.MkdirTemp("", "bzoauth"); err != nil {
		return nil, err
	}
	l.closers = append(l.closers, func() error { return os.RemoveAll(l.folder) })
	roots, err := l.publish()
	if err != nil {
		return nil, err
	}
	process, err := service.Start(ctx, local.Options{
		Clock: l.clock, Fetcher: safehttp.New(safehttp.Options{Loopback: true, Roots: roots}),
	})
	if err != nil {
		return nil, err
	}
	l.closers = append(l.closers, process.Close)
	l.url, l.origin, l.buzon = process.URL, process.Origin(), process.Command
	return l, nil
}

func (l *lab) close() error {
	var all []error
	for i := len(l.closers) - 1; i >= 0; i-- {
		all = append(all, l.closers[i]())
	}
	return errors.Join(all...)
}

// browser is the person before a new browser.
func (l *lab) browser() (*robot.Robot, error) {
	return robot.New(func(ctx context.Context) (string, error) { return l.buzon(ctx, "user", "link", person) })
}

// disconnect lets the person end every connection: want of them, or any number but none where want is 0.
func (l *lab) disconnect(ctx context.Context, b *robot.Robot, want int) error {
	n, err := b.Disconnect(ctx, l.origin)
	if err == nil && (n == 0 || want != 0 && n != want) {
		err = fmt.Errorf("%d connections were there to end, want %d", n, want)
	}
	return err
}

// account makes an agent without a person.
func (l *lab) account(ctx context.Context) (id, secret string, err error) {
	out, err := l.buzon(ctx, "service", "create", "acme", "nightly", "--role", "viewer")
	if err != nil {
		return "", "", err
	}
	var made struct {
		ID     string `json:"id"`
		Secret string `json:"client_secret"`
	}
	if err := json.Unmarshal([]byte(out), &made); err != nil || made.Secret == "" {
		return "", "", fmt.Errorf("buzon service create says %q: %w", out, err)
	}
	return made.ID, made.Secret, nil
}

// document is the address of the document of a client with a redirect; the host serves one for any path /NAME/HEX-OF-REDIRECT.
func (l *lab) document(name, redirect string) string {
	return fmt.Sprintf("%s/%s/%x", l.documents, name, redirect)
}

// publish serves client documents at the name localhost over TLS, and returns the root that vouches for it.
func (l *lab) publish() (*x509.CertPool, error) {
	certificate, roots, err := selfSigned("localhost")
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{name}/{redirect}", func(w http.ResponseWriter, r *http.Request) {
		var redirect []byte
		_, _ = fmt.Sscanf(r.PathValue("redirect"), "%x", &redirect)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"client_id": l.documents + r.URL.Path, "client_name": r.PathValue("name"), "redirect_uris": []string{string(redirect)},
		})
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	go func() { _ = server.Serve(tls.NewListener(listener, config)) }()
	l.closers = append(l.closers, server.Close)
	_, port, err := net.SplitHostPort(listener.Addr().String())
	l.documents = "https://localhost:" + port
	return roots, err
}

func selfSigned(name string) (tls.Certificate, *x509.CertPool, error) {
	var none tls.Certificate
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return none, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return none, nil, err
	}
	parsed, err := x509.ParseCertificate(raw)
	if err != nil {
		return none, nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, roots, nil
}

// freePort is one that nobody listens on in this moment.
func freePort() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return port, errors.Join(err, listener.Close())
}

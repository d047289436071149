package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/app/deployed"
	"github.com/buzon-mail/buzon/shared/app/web"
	"github.com/buzon-mail/buzon/shared/demo"
	"github.com/buzon-mail/buzon/shared/inboxops"
	"github.com/buzon-mail/buzon/shared/oauth"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/testkit/standin"
)

// account is an AWS in this process, with the sample world, that a bootstrap as it is deployed reaches: it knows no other address
// than AWS's own, so it is given a proxy that leads here and a certificate for the names.
type account struct {
	env   []string
	token string // of the sample world's first owner
	proxy *http.Server
	aws   *http.Server
}

func newAccount(ctx context.Context, folder string) (*account, error) {
	set, err := oauth.NewKeySet(rand.Reader, time.Now())
	if err != nil {
		return nil, err
	}
	text, err := set.Secret()
	if err != nil {
		return nil, err
	}
	root := "r1:" + base64.StdEncoding.EncodeToString(make([]byte, 32))
	aws, err := standin.New(ctx, time.Now, map[string]string{standin.Roots: root, standin.KeySet: string(text), standin.Hooks: root})
	if err != nil {
		return nil, err
	}
	rows, err := deployed.Account{AWS: aws.Config(), Names: aws.Names(), Clock: time.Now}.Store()
	if err != nil {
		return nil, err
	}
	if err := demo.Seed(ctx, rows); err != nil {
		return nil, err
	}
	a := &account{}
	if a.token, err = ownerToken(ctx, set); err != nil {
		return nil, err
	}
	return a, a.serve(aws, folder)
}

func ownerToken(ctx context.Context, set *oauth.KeySet) (string, error) {
	issuer, err := oauth.NewIssuer(oauth.StaticKeys(set, time.Now), "https://"+door, "https://"+door+"/mcp", time.Now, rand.Reader)
	if err != nil {
		return "", err
	}
	scopes, err := inboxops.ScopesOf(op.Owner) // as the emulation's token: session_get says what is missing, too
	if err != nil {
		return "", err
	}
	acme := demo.World()[0]
	return issuer.Mint(ctx, oauth.Claims{
		Subject: acme.Members[0].User, ClientID: web.CommandLine, Grant: "grant_01KDT00000000000000000BENCH", Organization: acme.Org.ID,
		Workspace: acme.Workspaces[0].ID, Scope: strings.Join(scopes, " "),
	}, oauth.MaxLifetime)
}

// serve starts the stand-in and the proxy on loopback, and says in env how a bootstrap finds them: as template.yaml sets it, but
// that the rates are out of the way.
func (a *account) serve(aws *standin.AWS, folder string) error {
	certificate, err := certify(filepath.Join(folder, "aws.pem"))
	if err != nil {
		return err
	}
	inner, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	outer, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	a.aws = &http.Server{Handler: answering(aws), ReadHeaderTimeout: time.Minute}
	a.proxy = &http.Server{Handler: tunnel(inner.Addr().String()), ReadHeaderTimeout: time.Minute}
	go func() { _ = a.aws.Serve(inner) }()
	go func() { _ = a.proxy.Serve(outer) }()
	names := aws.Names()
	a.env = []string{
		"HTTPS_PROXY=http://" + outer.Addr().String(), "SSL_CERT_FILE=" + filepath.Join(folder, "aws.pem"),
		"AWS_ACCESS_KEY_ID=AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY=secret", "AWS_SESSION_TOKEN=session",
		"BUZON_STORE=dynamo", "BUZON_PUBLIC_URL=https://" + door, "BUZON_INVOKE_MODE=BUFFERED", "BUZON_RATE_PER_MINUTE=65535",
		"BUZON_OUTWARD_PER_MINUTE=65535", "BUZON_CONCURRENCY=0", "BUZON_ROOT_SECRETS=" + standin.Roots, "BUZON_KEY_SET=" + standin.KeySet,
		"BUZON_WEBHOOK_KEY=" + standin.Hooks, "BUZON_CORE_TABLE=" + names.CoreTable, "BUZON_EPHEMERAL_TABLE=" + names.EphemeralTable,
		"BUZON_BUCKET=" + names.Bucket, "BUZON_JOBS_QUEUE=" + names.JobsQueue,
	}
	return nil
}

func (a *account) close() {
	_, _ = a.proxy.Close(), a.aws.Close() // and with them the tunnels
}

// certify makes a certificate for AWS's names that is its own authority, and writes it for whoever is to trust it.
func certify(path string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make a key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		DNSNames: []string{"*.eu-west-1.amazonaws.com", "*.s3.eu-west-1.amazonaws.com"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make a certificate: %w", err)
	}
	err = os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// answering serves the account.
func answering(aws *standin.AWS) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Scheme, r.URL.Host = "https", r.Host
		reply, err := aws.Do(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer reply.Body.Close() //nolint:errcheck // in memory
		for name, values := range reply.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(reply.StatusCode)
		_, _ = io.Copy(w, reply.Body)
	})
}

// tunnel is a proxy that leads every host to one address.
func tunnel(to string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			http.Error(w, "only CONNECT", http.StatusMethodNotAllowed)
			return
		}
		inner, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", to)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer inner.Close() //nolint:errcheck // nobody is left to tell
		w.WriteHeader(http.StatusOK)
		outer, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer outer.Close() //nolint:errcheck // nobody is left to tell
		go func() {
			_, _ = io.Copy(inner, buffered)
			_ = inner.Close()
		}()
		_, _ = io.Copy(outer, inner)
	})
}

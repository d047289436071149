package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// The command line reaches a running service through a socket in the data folder, which only its owner can open: the
// embedded engine belongs to one process. Without a running service a verb opens the store itself.

// call is one verb on the wire.
type call struct {
	verb   string
	handle func(ctx context.Context, body []byte, w io.Writer) error
}

// verb makes a call of a typed function.
func verb[I, O any](name string, do func(context.Context, I) (O, error)) call {
	return call{name, func(ctx context.Context, body []byte, w io.Writer) error {
		var in I
		if err := json.Unmarshal(body, &in); err != nil {
			return apperr.New(apperr.Invalid, "", "The request is not the JSON that this verb takes.").Because(err)
		}
		out, err := do(ctx, in)
		if err != nil {
			return err
		}
		return json.NewEncoder(w).Encode(out)
	}}
}

func (a *admin) calls() []call {
	return []call{
		verb("org-create", a.CreateOrganization),
		verb("domain-add", a.AddDomain),
		verb("token", a.Token),
		verb("user-link", a.UserLink),
		verb("user-prove", a.UserProve),
		verb("keys-rotate", a.RotateKeys),
		verb("service-create", a.CreateService),
		verb("service-list", a.ListServices),
		verb("service-revoke", a.RevokeService),
		{"backup", func(ctx context.Context, _ []byte, w io.Writer) error { return a.Backup(ctx, w) }},
	}
}

// refusal is an error on the wire of the socket.
type refusal struct {
	Kind   string   `json:"kind"`
	Code   string   `json:"code,omitempty"`
	Public string   `json:"detail"`
	Fixes  []string `json:"fixes,omitempty"`
}

// serveAdmin answers verbs on a socket until the server is closed.
func (a *admin) serveAdmin(l net.Listener) *http.Server {
	mux := http.NewServeMux()
	for _, c := range a.calls() {
		mux.HandleFunc("POST /"+c.verb, c.ServeHTTP)
	}
	mux.HandleFunc("POST /import-mail", a.serveImport)
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = s.Serve(l) }()
	return s
}

// ServeHTTP answers one verb. When a stream breaks half-way the connection is cut, so that the reader can't take what it
// has for the whole.
func (c call) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out := &counted{Writer: w}
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err == nil {
		err = c.handle(r.Context(), body, out)
	}
	if err == nil {
		return
	}
	if out.n > 0 {
		panic(http.ErrAbortHandler)
	}
	refuse(w, err)
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, err error) {
	e := apperr.From(err)
	if e.Kind == apperr.Internal {
		e.Public = err.Error() //nolint:leakederror // only the owner of the data folder can open the socket
	}
	w.WriteHeader(http.StatusUnprocessableEntity)
	_ = json.NewEncoder(w).Encode(refusal{e.Kind.String(), e.Name(), e.Public, e.Fixes})
}

// refusedBy reads what refuse wrote.
func refusedBy(res *http.Response) error {
	var no refusal
	if err := json.NewDecoder(res.Body).Decode(&no); err != nil {
		return fmt.Errorf("the running service answered %s", res.Status)
	}
	return apperr.New(apperr.Conflict, no.Code, no.Public, no.Fixes...)
}

type counted struct {
	io.Writer
	n int64
}

// Write counts.
func (c *counted) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.n += int64(n)
	return n, err
}

// listenAdmin opens the socket. A leftover of a dead process is removed: this one holds the store, so there is no other.
func listenAdmin(dir string) (net.Listener, error) {
	path := filepath.Join(dir, adminFile)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove the old %s: %w", adminFile, err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on %s (a shorter BUZON_DATA_DIR may help): %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("close %s to others: %w", adminFile, err), l.Close())
	}
	return l, nil
}

// remote sends a verb to the running service; ok is false when none runs.
func remote(ctx context.Context, dir, verb string, in any, out io.Writer) (ok bool, err error) {
	path := filepath.Join(dir, adminFile)
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return false, nil //nolint:nilerr // nobody listens: the caller opens the store itself
	}
	_ = conn.Close()
	body, err := json.Marshal(in)
	if err != nil {
		return true, fmt.Errorf("encode %s: %w", verb, err)
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return d.DialContext(ctx, "unix", path)
	}}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://admin/"+verb, bytes.NewReader(body))
	if err != nil {
		return true, fmt.Errorf("%s: %w", verb, err)
	}
	res, err := transport.RoundTrip(r)
	if err != nil {
		return true, fmt.Errorf("ask the running service: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return true, refusedBy(res)
	}
	_, err = io.Copy(out, res.Body)
	return true, err
}

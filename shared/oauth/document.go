package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/buzon-mail/buzon/shared/safehttp"
	"github.com/buzon-mail/buzon/shared/store"
)

// Client ID Metadata Documents (draft-ietf-oauth-client-id-metadata-document-00): the client id is the address of a document
// that its publisher controls. It is fetched only for a person who signed in, so strangers can't make us send requests, and
// never at /token, where a publisher's outage would look like an unknown client.

const (
	maxDocumentID    = 512
	maxDocument      = 8 << 10
	documentLifetime = time.Hour
	documentFormat   = 1
)

var errDocument = errors.New("oauth: client document can't be used")

// clientDocument is what we read of one. Unknown members are ignored; grant and response types are not looked at, for
// publishers list some that we don't have beside those that we do.
type clientDocument struct {
	ID        string          `json:"client_id"`
	Name      string          `json:"client_name"`
	Redirects []string        `json:"redirect_uris"`
	Auth      string          `json:"token_endpoint_auth_method"`
	AuthAlso  []string        `json:"token_endpoint_auth_methods_supported"`
	Secret    json.RawMessage `json:"client_secret"`
	Expires   json.RawMessage `json:"client_secret_expires_at"`
	Keys      struct {
		Keys []map[string]json.RawMessage `json:"keys"`
	} `json:"jwks"`
}

// documentClient returns the client of a URL: from the store for an hour, then fetched again. A fixed time, whatever the
// publisher's cache headers say: they could make us fetch for every request, or never again.
func (s *Server) documentClient(ctx context.Context, id, person string) (*client, error) {
	key := store.Key{Table: store.Ephemeral, Partition: "oauth/document/" + fingerprint(id), Sort: "client"}
	item, err := s.Store.Get(ctx, key)
	if err == nil {
		c, err := store.Decode[client](item, documentFormat)
		if err == nil && c.ID == id {
			return &c, nil
		}
	} else if !errors.Is(err, store.ErrNotFound) {
		return nil, later("read client document", err)
	}
	if err := s.countBucket(ctx, limitFetch, s.bucketOf(person)); err != nil {
		return nil, err
	}
	c, err := s.fetchDocument(ctx, id)
	if err != nil {
		return nil, err
	}
	item, err = store.Encode(key, documentFormat, 1, c)
	if err != nil {
		return nil, later("keep client document", err)
	}
	item.Expires = s.Clock().Add(documentLifetime)
	if err := s.Store.Put(ctx, item, store.Condition{}); err != nil {
		return nil, later("keep client document", err)
	}
	return c, nil
}

// fetchDocument asks the publisher. A failure is not remembered: the next attempt asks again.
func (s *Server) fetchDocument(ctx context.Context, id string) (*client, error) {
	res, err := s.Fetcher.Do(ctx, safehttp.Request{
		Method: http.MethodGet, URL: id, Header: http.Header{"Accept": {"application/json"}}, MaxBody: maxDocument,
	})
	if err != nil {
		return nil, errors.Join(errDocument, err)
	}
	if res.Status != http.StatusOK {
		return nil, errors.Join(errDocument, errors.New("status is not 200"))
	}
	media, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err != nil || media != "application/json" && !(strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json")) {
		return nil, errors.Join(errDocument, errors.New("content type is not JSON"))
	}
	return readDocument(id, res.Body)
}

// readDocument validates what a publisher sent.
func readDocument(id string, body []byte) (*client, error) {
	bad := func(why string) (*client, error) { return nil, errors.Join(errDocument, errors.New(why)) }
	var d clientDocument
	if !utf8.Valid(body) || json.Unmarshal(body, &d) != nil {
		return bad("not the expected JSON")
	}
	if d.ID != id { // MUST be identical, byte by byte: else anybody could publish in another's name
		return bad("client_id is not the document's address")
	}
	if d.Secret != nil || d.Expires != nil {
		return bad("a secret in a public document")
	}
	for _, k := range d.Keys.Keys {
		if k["d"] != nil || k["k"] != nil {
			return bad("a private key in a public document")
		}
	}
	if !allowsNone(d) {
		return bad("an authentication method that is not offered")
	}
	c := &client{ID: id, Name: cleanName(d.Name)}
	if c.Name == "" {
		return bad("no client_name")
	}
	if u, err := url.Parse(id); err == nil {
		c.Host = u.Host
	}
	for _, uri := range d.Redirects {
		// What may not be registered is left out: publishers serve many servers with one document.
		if validRedirect(uri) && (strings.HasPrefix(uri, "https://") || strings.HasPrefix(uri, "http://")) && len(c.Redirects) < 4*maxRedirects {
			c.Redirects = append(c.Redirects, uri)
		}
	}
	if len(c.Redirects) == 0 {
		return bad("no usable redirect URI")
	}
	c.Loopback = onlyLoopback(c.Redirects)
	return c, nil
}

// allowsNone: public clients only. ChatGPT's document names private_key_jwt and lists none among the supported ones.
func allowsNone(d clientDocument) bool {
	if d.Auth == "" || d.Auth == "none" {
		return true
	}
	for _, method := range d.AuthAlso {
		if method == "none" {
			return true
		}
	}
	return false
}

package oauth

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Where the metadata of the resource stands (RFC 9728 section 3.1). Clients try the form with the path first; those of the
// 2025-03-26 revision know only the root.
const (
	MetadataPath    = "/.well-known/oauth-protected-resource"
	MetadataPathMCP = MetadataPath + "/mcp"
	resourcePath    = "/mcp"
)

// ResourceOptions describes the protected resource.
type ResourceOptions struct {
	Origin string   // scheme and host, as clients type it
	Issuer string   // of the authorization server; empty: the origin
	Name   string   // for people, resource_name
	Scopes []string // those that clients should ask for
}

// Resource is our identity towards clients: the resource identifier, its metadata, its challenges.
type Resource struct {
	id       string
	metadata []byte
	url      string
	scope    string
	header   [2]string // of the two challenges that every stranger gets: without a token, with a bad one
}

// NewResource renders what never changes. ErrInvalidOrigin when the origin is not a bare scheme and host.
func NewResource(o ResourceOptions) (*Resource, error) {
	u, err := url.Parse(o.Origin)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.Scheme+"://"+u.Host != o.Origin ||
		strings.ContainsAny(o.Origin, "\"\\<> ") {
		return nil, fmt.Errorf("%w: %q", ErrInvalidOrigin, o.Origin)
	}
	if o.Issuer == "" {
		o.Issuer = o.Origin
	}
	r := &Resource{id: o.Origin + resourcePath, url: o.Origin + MetadataPathMCP, scope: strings.Join(o.Scopes, " ")}
	r.metadata, err = json.Marshal(metadata{
		Resource: r.id, AuthorizationServers: []string{o.Issuer}, Scopes: append([]string{}, o.Scopes...),
		BearerMethods: []string{"header"}, Name: o.Name,
	})
	if err != nil {
		return nil, fmt.Errorf("oauth: render resource metadata: %w", err)
	}
	r.header[0] = r.challenge("", r.scope).Header()
	r.header[1] = r.challenge(ErrorInvalidToken, r.scope).Header()
	return r, nil
}

// metadata is the document of RFC 9728 section 2.
type metadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	Scopes               []string `json:"scopes_supported"`
	BearerMethods        []string `json:"bearer_methods_supported"`
	Name                 string   `json:"resource_name,omitempty"`
}

// ID is the resource identifier and the audience of its tokens: <origin>/mcp.
func (r *Resource) ID() string { return r.id }

// Challenge builds the answer to a refused request: code is the RFC 6750 error, empty when no token was sent; scopes are all
// that the refused operation needs, nil for the advertised ones.
func (r *Resource) Challenge(code string, scopes []string) (header string, data map[string]any) {
	scope := r.scope
	if scopes != nil {
		scope = strings.Join(scopes, " ")
	}
	c := r.challenge(code, scope)
	switch {
	case scopes == nil && code == "":
		return r.header[0], c.Data()
	case scopes == nil && code == ErrorInvalidToken:
		return r.header[1], c.Data()
	}
	return c.Header(), c.Data()
}

func (r *Resource) challenge(code, scope string) Challenge {
	c := Challenge{ResourceMetadata: r.url, Scope: scope, Error: code}
	switch code {
	case ErrorInvalidToken:
		c.Description = "The access token is expired, revoked or not for this server."
	case ErrorInsufficientScope:
		c.Description = "The access token lacks a scope that this operation needs."
	}
	return c
}

// allowedHeaders are what MCP clients in browsers send; a preflight that lacks one fails before we see the request.
const allowedHeaders = "Authorization, Content-Type, Accept, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id, Last-Event-ID"

// ServeHTTP serves the metadata document; mount it at MetadataPath and MetadataPathMCP, before any authentication: a 401 on
// a well-known path ends discovery in several clients. Anybody may read it from any origin, and a change of the issuer
// reaches clients within five minutes.
func (r *Resource) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	switch req.Method {
	case http.MethodOptions:
		h.Set("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS")
		h.Set("Access-Control-Allow-Headers", allowedHeaders)
		h.Set("Access-Control-Max-Age", "86400")
		w.WriteHeader(http.StatusNoContent)
	case http.MethodGet, http.MethodHead:
		h.Set("Content-Type", "application/json")
		h.Set("Cache-Control", "public, max-age=300")
		h.Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(r.metadata) // a client that went away is nobody's problem
	default:
		h.Set("Allow", "GET, HEAD, OPTIONS")
		h.Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusMethodNotAllowed)
		_, _ = w.Write([]byte(`{"title":"Method Not Allowed","status":405,"kind":"method_not_allowed","detail":"This document is read with GET."}`))
	}
}

var _ http.Handler = (*Resource)(nil)

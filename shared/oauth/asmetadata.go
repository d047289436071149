package oauth

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// serverMetadata is RFC 8414 section 2, with what RFC 9207, OpenID Connect Discovery and the client id documents add.
type serverMetadata struct {
	Issuer                string   `json:"issuer"`
	AuthorizationEndpoint string   `json:"authorization_endpoint"`
	TokenEndpoint         string   `json:"token_endpoint"`
	RegistrationEndpoint  string   `json:"registration_endpoint"`
	RevocationEndpoint    string   `json:"revocation_endpoint"`
	Keys                  string   `json:"jwks_uri"`
	Scopes                []string `json:"scopes_supported"`
	ResponseTypes         []string `json:"response_types_supported"`
	ResponseModes         []string `json:"response_modes_supported"`
	GrantTypes            []string `json:"grant_types_supported"`
	TokenAuth             []string `json:"token_endpoint_auth_methods_supported"`
	RevocationAuth        []string `json:"revocation_endpoint_auth_methods_supported"`
	ChallengeMethods      []string `json:"code_challenge_methods_supported"`
	Iss                   bool     `json:"authorization_response_iss_parameter_supported"`
	ClientDocuments       bool     `json:"client_id_metadata_document_supported"`
	Resources             []string `json:"protected_resources"`

	// Only in the OpenID form: clients check it against a schema that requires these, though no id token is issued.
	Subjects   []string `json:"subject_types_supported,omitempty"`
	Algorithms []string `json:"id_token_signing_alg_values_supported,omitempty"`
}

// scopeOffline is advertised here and never by the resource: refresh tokens are no requirement of a resource (MCP, refresh
// tokens, SHOULD NOT). It is accepted and grants nothing, for every person's grant is refreshed.
const scopeOffline = "offline_access"

func (s *Server) renderMetadata() error {
	auth := []string{"none", "client_secret_basic", "client_secret_post"}
	m := serverMetadata{
		Issuer: s.Issuer, AuthorizationEndpoint: s.Issuer + AuthorizePath, TokenEndpoint: s.Issuer + TokenPath,
		RegistrationEndpoint: s.Issuer + RegisterPath, RevocationEndpoint: s.Issuer + RevokePath, Keys: s.Issuer + KeysPath,
		Scopes: append(s.defaultScopes(), scopeOffline), ResponseTypes: []string{"code"}, ResponseModes: []string{"query"},
		GrantTypes: []string{grantCode, grantRefresh, grantClient}, TokenAuth: auth, RevocationAuth: auth,
		ChallengeMethods: []string{methodS256}, Iss: true, ClientDocuments: true, Resources: []string{s.Resource},
	}
	var err error
	if s.documents[0], err = json.Marshal(m); err != nil {
		return fmt.Errorf("oauth: render server metadata: %w", err)
	}
	m.Subjects, m.Algorithms = []string{"public"}, []string{"ES256"}
	if s.documents[1], err = json.Marshal(m); err != nil {
		return fmt.Errorf("oauth: render server metadata: %w", err)
	}
	return nil
}

// document serves a public JSON text.
type document []byte

// ServeHTTP serves the document to every page; a change reaches clients within five minutes.
func (d document) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if anyOrigin(w, r, "GET, HEAD, OPTIONS") {
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD, OPTIONS")
		answerJSON(w, http.StatusMethodNotAllowed, map[string]string{
			"error": codeInvalidRequest, "error_description": "This document is read with GET.",
		})
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "public, max-age=300")
	h.Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(d) // a client that went away is nobody's problem
}

// serveKeys publishes the keys that verify now (RFC 7517), the next one among them. Verifiers keep it for five minutes, which
// is less than a key is published before it signs.
func (s *Server) serveKeys(w http.ResponseWriter, r *http.Request) {
	set, err := s.Keys.Keys(r.Context())
	if err == nil {
		var body []byte
		if body, err = set.JWKS(s.Clock()); err == nil {
			document(body).ServeHTTP(w, r)
			return
		}
	}
	if anyOrigin(w, r, "GET, HEAD, OPTIONS") {
		return
	}
	s.refuseWith(w, r, "keys", later("read keys", err))
}

package oauth

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/seal"
)

// Dynamic client registration (RFC 7591), for clients that know no client id documents. Nothing is stored: the client id is
// the registered metadata, sealed with a root that is not rotated. So nobody can fill a store with registrations, none is
// ever pruned, and an id that a client replays for years keeps working.

const (
	registeredPrefix = "dcr_"
	maxRegistration  = 16 << 10 // bytes of a request
	maxName          = 1024     // bytes of a name before it is cut
)

// registration is what a client sends. Members that we don't use are ignored (RFC 7591 section 2).
type registration struct {
	Redirects []string `json:"redirect_uris"`
	Name      string   `json:"client_name"`
	Scope     string   `json:"scope"`
	Type      string   `json:"application_type"`
}

// sealedClient is what a client id holds. Members are short: the id travels in every token.
type sealedClient struct {
	Name      string   `json:"n,omitempty"`
	Redirects []string `json:"r"`
	Issued    int64    `json:"i"`
}

// registered is the answer (RFC 7591 section 3.2.1). There is no registration_client_uri: nothing could be read or changed there.
type registered struct {
	ID        string   `json:"client_id"`
	Issued    int64    `json:"client_id_issued_at"`
	Name      string   `json:"client_name,omitempty"`
	Redirects []string `json:"redirect_uris"`
	Auth      string   `json:"token_endpoint_auth_method"`
	Grants    []string `json:"grant_types"`
	Responses []string `json:"response_types"`
	Type      string   `json:"application_type"`
	Scope     string   `json:"scope,omitempty"`
}

func (s *Server) serveRegister(w http.ResponseWriter, r *http.Request) {
	if anyOrigin(w, r, "POST, OPTIONS") || !onlyPost(w, r) {
		return
	}
	answer, err := s.register(r)
	if err != nil {
		s.refuseWith(w, r, "register", err)
		return
	}
	answerJSON(w, http.StatusCreated, answer)
}

func (s *Server) register(r *http.Request) (*registered, error) {
	if err := s.count(r, limitRegister); err != nil {
		return nil, err
	}
	body, err := readBody(r, maxRegistration)
	if errors.Is(err, errFormTooLarge) {
		return nil, refuse(codeInvalidMetadata, "body too large")
	}
	var in registration
	if err != nil || json.Unmarshal(body, &in) != nil {
		return nil, refuse(codeInvalidMetadata, "not the expected JSON")
	}
	return s.seal(in)
}

// seal makes the client id. What a client asks for and we don't do is replaced, and the answer says so (RFC 7591 section 2):
// every registered client is public, whatever authentication it asked for.
func (s *Server) seal(in registration) (*registered, error) {
	if reason := checkRedirects(in.Redirects); reason != "" {
		return nil, refuse(codeInvalidRedirect, reason)
	}
	if len(in.Name) > maxName {
		in.Name = strings.ToValidUTF8(in.Name[:maxName], "")
	}
	out := &registered{
		Issued: s.Clock().Unix(), Name: cleanName(in.Name), Redirects: in.Redirects, Auth: "none",
		Grants: []string{grantCode, grantRefresh}, Responses: []string{"code"}, Type: applicationType(in.Type, in.Redirects),
	}
	if scopes, ok := s.requestedScopes(in.Scope); ok && in.Scope != "" {
		out.Scope = strings.Join(scopes, " ")
	}
	text, err := json.Marshal(sealedClient{Name: out.Name, Redirects: out.Redirects, Issued: out.Issued})
	if err != nil {
		return nil, later("render client", err)
	}
	token, err := s.clientIDs.Seal(text, nil, seal.NoExpiry)
	if err != nil {
		return nil, later("seal client", err)
	}
	out.ID = registeredPrefix + token
	return out, nil
}

func checkRedirects(uris []string) string {
	if len(uris) == 0 || len(uris) > maxRedirects {
		return "no redirect URI, or too many"
	}
	total := 0
	for _, uri := range uris {
		if !validRedirect(uri) {
			return "a redirect URI that may not be registered"
		}
		total += len(uri)
	}
	if total > maxRedirectBytes {
		return "redirect URIs too long"
	}
	return ""
}

// applicationType is what OpenID Connect Registration calls it. Absent, it follows from the redirects (its default "web" would
// refuse loopback); "web" with a redirect on the person's computer is what several clients send, and becomes "native".
func applicationType(asked string, redirects []string) string {
	for _, uri := range redirects {
		if onThisComputer(uri) {
			return "native"
		}
	}
	if asked == "native" {
		return "native"
	}
	return "web"
}

// registeredClient opens a client id of ours; false for any other text.
func (s *Server) registeredClient(id string) (*client, bool) {
	token, ok := strings.CutPrefix(id, registeredPrefix)
	if !ok {
		return nil, false
	}
	text, err := s.clientIDs.Open(token, nil)
	if err != nil {
		return nil, false
	}
	var c sealedClient
	if json.Unmarshal(text, &c) != nil || c.Issued > s.Clock().Add(time.Minute).Unix() {
		return nil, false
	}
	return &client{ID: id, Name: c.Name, Redirects: c.Redirects, Loopback: onlyLoopback(c.Redirects)}, true
}

package local_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/testkit/robot"
)

// connected registers a client, lets the person approve everything, and returns the client's id and its tokens.
func (s *site) connected(t *testing.T) (client, access, refresh string) {
	t.Helper()
	const callback, verifier = "http://localhost:51212/callback", "a-verifier-of-forty-three-characters-or-more"
	client, _ = s.send(t, http.MethodPost, "/register", `{"redirect_uris":["`+callback+`"]}`, "Content-Type", "application/json").json(t)["client_id"].(string)
	sum := sha256.Sum256([]byte(verifier))
	b, err := robot.New(func(context.Context) (string, error) { return s.link(t), nil })
	if err != nil {
		t.Fatal(err)
	}
	back, err := b.Authorize(t.Context(), s.origin+"/authorize?"+url.Values{
		"client_id": {client}, "redirect_uri": {callback}, "response_type": {"code"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}.Encode(), robot.Answer{})
	if err != nil {
		t.Fatal(err)
	}
	tokens := s.form(t, "/token", "grant_type", "authorization_code", "code", back.Query().Get("code"), "client_id", client, "code_verifier", verifier).json(t)
	access, _ = tokens["access_token"].(string)
	refresh, _ = tokens["refresh_token"].(string)
	if access == "" || refresh == "" {
		t.Fatalf("tokens: %v", tokens)
	}
	return client, access, refresh
}

// TestRevokedGrantDeletesNothing: an instance may serve a revoked grant's reads for half a minute; what deletes asks the store.
func TestRevokedGrantDeletesNothing(t *testing.T) {
	s := newSite(t)
	for surface, remove := range map[string]func(access string) answer{
		"REST": func(access string) answer {
			return s.send(t, http.MethodDelete, "/api/v1/inboxes/kept", "", "Authorization", "Bearer "+access)
		},
		"MCP": func(access string) answer {
			return s.send(t, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"inboxes_delete","arguments":{"id":"kept"},`+
				`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`,
				"Content-Type", "application/json", "Authorization", "Bearer "+access, "MCP-Protocol-Version", "2026-07-28",
				"Mcp-Method", "tools/call", "Mcp-Name", "inboxes_delete")
		},
	} {
		t.Run(surface, func(t *testing.T) {
			client, access, refresh := s.connected(t)
			made := s.send(t, http.MethodPut, "/api/v1/inboxes", `{"slug":"kept"}`, "Content-Type", "application/json", "Authorization", "Bearer "+access)
			if made.StatusCode >= http.StatusMultipleChoices {
				t.Fatalf("%d %s", made.StatusCode, made.body)
			}
			if got := s.form(t, "/revoke", "token", refresh, "client_id", client); got.StatusCode != http.StatusOK {
				t.Fatalf("%d %s", got.StatusCode, got.body)
			}
			got := remove(access)
			if challenge := got.Header.Get("WWW-Authenticate"); got.StatusCode != http.StatusUnauthorized || !strings.Contains(challenge, "invalid_token") {
				t.Errorf("%d %q %s", got.StatusCode, challenge, got.body)
			}
			if got := s.list(t, access); got.StatusCode != http.StatusUnauthorized {
				t.Errorf("after it was seen, a read: %d", got.StatusCode)
			}
			_, access, _ = s.connected(t)
			if got := s.send(t, http.MethodGet, "/api/v1/inboxes/kept", "", "Authorization", "Bearer "+access); !strings.Contains(got.body, `"deleted_at":null`) && strings.Contains(got.body, `"deleted_at"`) || got.StatusCode != http.StatusOK {
				t.Errorf("the inbox: %d %s", got.StatusCode, got.body)
			}
		})
	}
}

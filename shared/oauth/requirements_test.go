package oauth

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// requirements is the table: each MUST and SHOULD that an authorization server or a resource server has, and the test that
// shows it kept. "deviation" points into DEVIATIONS.md. Requirements of clients are not ours. Tests of the wiring, which need
// the endpoint, are named with their package's folder.
var requirements = []struct{ clause, test string }{
	// MCP 2026-07-28, authorization: overview
	{"MCP overview 1: servers MUST implement OAuth 2.1 for confidential and public clients", "TestClientCredentials"},
	{"MCP overview 2: SHOULD support client id metadata documents", "TestDocumentIsFetchedForPeopleAndKept"},
	{"MCP overview 3: MAY support dynamic client registration", "TestP14_Registration"},
	{"MCP overview 4: MUST implement RFC 9728", "TestMetadataDocument"},
	{"MCP overview 5: MUST provide RFC 8414 or OpenID discovery", "TestP03_MetadataAtBothPlaces"},
	{"MCP scope selection: SHOULD include scope in WWW-Authenticate", "TestRequirements"},
	{"MCP response validation: SHOULD include iss in answers, errors too", "TestP10_IssOnEveryAnswer"},
	{"MCP response validation: servers that include iss MUST advertise it", "TestP10_IssOnEveryAnswer"},
	{"MCP canonical URI: SHOULD accept upper case scheme and host", "TestP05_ResourceForms"},
	{"MCP token handling: MUST validate tokens as OAuth 2.1 5.2", "TestVerifyReturnsWhatWasMinted"},
	{"MCP token handling: MUST validate the audience", "TestClaims"},
	{"MCP token handling: invalid or expired MUST get 401", "app/local.TestP02_EveryMethodWithoutATokenIs401"},
	{"MCP token requirements: MUST NOT be in the query", "TestBearer"},
	{"MCP refresh tokens: SHOULD NOT list offline_access in challenge or resource metadata", "TestMetadataDocument"},
	{"MCP error handling: MUST return 400, 401, 403", "TestRequirements"},
	{"MCP scope challenge: SHOULD name scope, resource_metadata, error; all scopes at once", "TestRequirements"},
	{"MCP step-up: wider scope by refresh is refused, so that clients authorize again", "TestP19_NoWiderScopeByRefresh"},
	// MCP: authorization server discovery
	{"MCP discovery: MUST include authorization_servers", "TestMetadataDocument"},
	{"MCP discovery: MUST implement the header or the well-known URI", "TestRequirements"},
	{"MCP discovery: issuer identical to the one of the URL", "TestP03_MetadataAtBothPlaces"},
	// MCP: client registration
	{"MCP documents: MUST validate that client_id matches the URL exactly", "TestDocuments"},
	{"MCP documents: SHOULD fetch for URL client ids", "TestDocumentIsFetchedForPeopleAndKept"},
	{"MCP documents: SHOULD cache respecting HTTP cache headers", "deviation"},
	{"MCP documents: MUST validate redirect URIs against the document", "TestDocumentIsFetchedForPeopleAndKept"},
	{"MCP documents: MUST validate JSON and required fields", "TestDocuments"},
	{"MCP documents: SHOULD follow the security considerations (SSRF)", "TestStrangersWriteNothing"},
	// MCP: security considerations
	{"MCP token theft: SHOULD issue short-lived access tokens", "TestConsentNarrows"},
	{"MCP token theft: MUST rotate refresh tokens of public clients", "TestP15_ConcurrentRefreshAndReuse"},
	{"MCP communication: endpoints MUST be served over HTTPS", "TestCookies"},
	{"MCP communication: redirect URIs MUST be localhost or https", "deviation"},
	{"MCP code protection: S256 listed in both metadata documents (MUST for OpenID)", "TestP21_OpenIDDocument"},
	{"MCP open redirection: MUST validate exact redirect URIs", "TestP04_RedirectMatching"},
	{"MCP open redirection: MUST NOT redirect to untrusted URIs", "TestAuthorizationErrors"},
	{"MCP documents: SHOULD consider SSRF", "TestDocumentIDs"},
	{"MCP localhost: SHOULD display additional warnings", "TestConsentPage"},
	{"MCP localhost: MUST clearly display the redirect host", "TestConsentPage"},
	{"MCP confused deputy: MUST obtain consent for each registered client", "TestP24_ConsentIsBoundToTheSession"},
	{"MCP privilege restriction: MUST only accept tokens for itself", "TestClaims"},
	// RFC 6749 and OAuth 2.1
	{"RFC 6749 3.1: parameters MUST NOT be included twice", "TestP27_DuplicateParameters"},
	{"RFC 6749 3.1: empty parameters MUST be treated as omitted", "FuzzForm"},
	{"RFC 6749 3.1: unknown parameters MUST be ignored", "TestP18_LongState"},
	{"RFC 6749 3.1.2: no fragment in a redirect URI; its query is kept", "TestAuthorizationErrors"},
	{"RFC 6749 3.3: granted scope in the answer", "TestP07_NoScopeOrUnknownScope"},
	{"RFC 6749 4.1.2: code short-lived, bound to client and redirect, MUST NOT be used twice", "TestP26_CodeReplay"},
	{"RFC 6749 4.1.2: SHOULD revoke on reuse", "TestP26_CodeReplay"},
	{"RFC 6749 4.1.2.1: MUST NOT redirect when client or redirect are at fault", "TestP13_UnknownClient"},
	{"RFC 6749 4.1.2.1: state is echoed", "TestP18_LongState"},
	{"RFC 6749 4.4.3: no refresh token with client credentials", "TestClientCredentials"},
	{"RFC 6749 5.1: MUST Cache-Control no-store", "TestP11_TokenContentType"},
	{"RFC 6749 5.2: MUST 401 and the scheme for a client that used the header", "TestP22_SecretsOfPublicClients"},
	{"RFC 6749 6: scope MUST NOT be widened by refresh", "TestP19_NoWiderScopeByRefresh"},
	{"RFC 6749 2.3: MUST NOT use two ways of authentication", "TestP22_SecretsOfPublicClients"},
	{"RFC 6749 10.12: CSRF protection of the authorization endpoint", "TestP24_SignInIsBoundToTheBrowser"},
	{"RFC 6749 10.13: clickjacking", "TestP23_PolicyLetsTheRedirectPass"},
	{"RFC 7636 4.4.1, 4.6: S256 challenge, verifier compared", "TestP20_PKCE"},
	{"RFC 8252 7.3: MUST allow any port of a loopback redirect", "TestP04_RedirectMatching"},
	{"RFC 8252 8.4: exact match otherwise", "TestP04_RedirectMatching"},
	{"RFC 9700 4.11.2: MUST authenticate the person before redirecting, errors too", "TestNoOpenRedirector"},
	{"RFC 9700 4.14: refresh token reuse is detected and ends the family", "TestP15_TwoGenerationsBackIsReuse"},
	// RFC 7591, 7009, 8707, 8414, 9207, 9728, 9068
	{"RFC 7591 2: unknown members MUST be ignored", "TestP14_Registration"},
	{"RFC 7591 3.2.1: 201 with everything registered", "TestP14_Registration"},
	{"RFC 7591 3.2.2: invalid_redirect_uri, invalid_client_metadata", "TestP14_Registration"},
	{"RFC 7591 5: registration is rate-limited", "TestStrangersWriteNothing"},
	{"RFC 7009 2: MUST support refresh tokens, SHOULD access tokens", "TestP16_RevokeChecksTheOwner"},
	{"RFC 7009 2.1: MUST verify the client and that the token is its own", "TestP16_RevokeChecksTheOwner"},
	{"RFC 7009 2.1: SHOULD invalidate access tokens of the grant", "TestP16_RevokeRacingRefresh"},
	{"RFC 7009 2.2: 200 for an unknown token; an unknown hint MUST be ignored", "TestP16_RevokeChecksTheOwner"},
	{"RFC 8707 2: MUST NOT have a fragment; invalid_target", "TestP05_ResourceForms"},
	{"RFC 8707 2: several resource parameters", "deviation"},
	{"RFC 8707 2.2: SHOULD restrict the audience to the resource", "TestP05_ResourceForms"},
	{"RFC 8414 3: the well-known path; JSON; issuer identical", "TestP03_MetadataAtBothPlaces"},
	{"RFC 9207 2: iss identical to metadata", "TestP10_IssOnEveryAnswer"},
	{"RFC 9728 3: resource metadata at the path of the resource", "TestRequirements"},
	{"RFC 9728 5.1: resource_metadata in the challenge", "TestRequirements"},
	{"RFC 9068 2: at+jwt, required claims", "TestClaims"},
	{"OpenID Core 3.1.2.6: prompt=none is answered login_required or interaction_required", "TestP09_Prompt"},
}

// TestRequirementTable: every named test exists, every pitfall has one, and deviations are written down.
func TestRequirementTable(t *testing.T) {
	names := testNames(t, ".")
	for _, n := range testNames(t, filepath.Join("..", "app", "local")) {
		names = append(names, "app/local."+n)
	}
	all := " " + strings.Join(names, " ") + " "
	deviations, err := os.ReadFile("DEVIATIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range requirements {
		if r.test == "deviation" {
			if source, _, _ := strings.Cut(r.clause, ":"); !strings.Contains(string(deviations), source) {
				t.Errorf("%s: not in DEVIATIONS.md", r.clause)
			}
			continue
		}
		if !strings.Contains(all, " "+r.test+" ") {
			t.Errorf("%s: there is no %s", r.clause, r.test)
		}
	}
	for _, p := range strings.Fields("01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30") {
		if !strings.Contains(all, "TestP"+p+"_") {
			t.Errorf("no test of pitfall P%s", p)
		}
	}
}

func testNames(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				names = append(names, fn.Name.Name)
			}
		}
	}
	return names
}

package oauth

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// requirements is the table: each MUST and SHOULD of the authorization pages of MCP 2026-07-28, in their order, and of the RFCs that
// they build on, with the test that shows it kept. That test names the clause in turn, in the line "Clauses:" of its comment, so
// that whoever changes it sees what hangs on it. "client" binds clients and not us; "deviation" is a row of DEVIATIONS.md. Tests of
// other rooms are named with their folder.
//
//nolint:gochecknoglobals // constant table
var requirements = []struct{ id, clause, test string }{
	// MCP 2026-07-28, basic/authorization, each MUST and SHOULD in the order of the page.
	{"I01", "implementations on HTTP SHOULD conform", "app/local.TestConnect"},
	{"I02", "stdio SHOULD NOT, other transports MUST follow their own practices", "client"},
	{"I03", "authorization servers MUST implement OAuth 2.1 for confidential and public clients", "TestClientCredentials"},
	{"I04", "SHOULD support client id metadata documents", "TestDocumentIsFetchedForPeopleAndKept"},
	{"I05", "servers MUST implement RFC 9728", "TestMetadataDocument"},
	{"I06", "clients MUST use RFC 9728 and both discovery mechanisms", "client"},
	{"I07", "authorization servers MUST provide RFC 8414 or OpenID discovery", "TestP03_MetadataAtBothPlaces"},
	{"I08", "implementations MUST follow the discovery page", "TestP03_MetadataAtBothPlaces"},
	{"I09", "clients MUST obtain a client id first", "client"},
	{"I10", "servers SHOULD include scope in WWW-Authenticate", "TestRequirements"},
	{"I11", "clients MUST NOT relate, MUST take as authoritative the challenged scopes, SHOULD add them to those they have", "client"},
	{"I12", "servers SHOULD strive for consistency of scope sets", "TestRequirements"},
	{"I13", "clients SHOULD ask for the least, in the order of priority", "client"},
	{"I14", "clients MUST record the issuer and validate iss as RFC 9207 2.4, without normalization, on errors too", "client"},
	{"I15", "authorization servers SHOULD include iss in answers, errors too", "TestP10_IssOnEveryAnswer"},
	{"I16", "those that do MUST advertise it", "TestP10_IssOnEveryAnswer"},
	{"I17", "clients MUST send resource, canonical and as specific as they can, in both requests", "client"},
	{"I18", "implementations SHOULD accept upper case scheme and host", "TestP05_ResourceForms"},
	{"I19", "implementations SHOULD use the form without the trailing slash", "TestMetadataDocument"},
	{"I20", "requests MUST conform to OAuth 2.1 section 5", "TestBearer"},
	{"I21", "clients MUST use the Authorization header, in every request", "client"},
	{"I22", "tokens MUST NOT be in the query", "TestBearer"},
	{"I23", "servers MUST validate tokens as OAuth 2.1 5.2", "TestVerifyReturnsWhatWasMinted"},
	{"I24", "servers MUST validate that they are the audience", "TestClaims"},
	{"I25", "servers MUST answer failures as OAuth 2.1 5.3", "TestRequirements"},
	{"I26", "invalid or expired tokens MUST receive 401", "app/local.TestP02_EveryMethodWithoutATokenIs401"},
	{"I27", "clients MUST NOT send tokens of others", "client"},
	{"I28", "servers MUST only accept tokens for their own resources", "TestClaims"},
	{"I29", "servers MUST NOT accept or transit other tokens", "rest.TestCallerIsNotSmuggled"},
	{"I30", "clients MUST keep refresh tokens confidential, SHOULD name the grant, MUST NOT assume one", "client"},
	{"I31", "servers SHOULD NOT list offline_access in challenge or resource metadata", "TestMetadataDocument"},
	{"I32", "servers MUST return 400, 401, 403", "app/local.TestConnect"},
	{"I33", "insufficient scope SHOULD be 403 with error, scope, resource_metadata", "TestRequirements"},
	{"I34", "SHOULD name the scopes needed for the operation", "app/local.TestConnect"},
	{"I35", "SHOULD include all of them in one challenge", "TestRequirements"},
	{"I36", "SHOULD be consistent, and consider the person", "app/local.TestConnect"},
	{"I37", "clients SHOULD step up, with limits", "client"},
	{"I38", "servers MUST account for scope hierarchies", "op.TestScopes"},
	{"I39", "implementations MUST follow the security page", "TestClaims"},
	// basic/authorization/authorization-server-discovery
	{"D01", "servers MUST implement RFC 9728 to say where authorization servers are", "TestMetadataDocument"},
	{"D02", "MUST include authorization_servers with at least one", "TestMetadataDocument"},
	{"D03", "clients MUST keep state per authorization server and MUST NOT mix it", "client"},
	{"D04", "servers MUST implement the header or the well-known URI", "TestRequirements"},
	{"D05", "clients MUST support both, and parse the header", "client"},
	{"D06", "clients MUST try several well-known addresses, in order", "client"},
	{"D07", "clients MUST validate the issuer and MUST NOT use another's document", "client"},
	// basic/authorization/client-registration
	{"C01", "clients SHOULD follow the order of priority", "client"},
	{"C02", "authorization servers SHOULD support client id metadata documents", "TestDocumentIsFetchedForPeopleAndKept"},
	{"C03", "implementations MUST follow the draft", "TestDocuments"},
	{"C04", "clients MUST host at https; the id MUST be https with a path", "TestDocumentIDs"},
	{"C05", "documents MUST have client_id, client_name, redirect_uris", "TestDocuments"},
	{"C06", "clients MUST ensure that client_id is the address", "client"},
	{"C07", "SHOULD fetch documents of URL client ids", "TestDocumentIsFetchedForPeopleAndKept"},
	{"C08", "MUST validate that client_id matches the URL exactly", "TestDocuments"},
	{"C09", "SHOULD cache respecting HTTP cache headers", "deviation"},
	{"C10", "MUST validate redirect URIs against the document", "TestDocumentIsFetchedForPeopleAndKept"},
	{"C11", "MUST validate JSON and required fields", "TestDocuments"},
	{"C12", "SHOULD follow the security considerations of the draft", "TestStrangersWriteNothing"},
	{"C13", "clients SHOULD check for the capability, SHOULD support static credentials", "client"},
	{"C14", "clients MUST send an application_type that fits, SHOULD native or web", "client"},
	{"C15", "clients MUST handle refused redirect URIs, SHOULD say so", "client"},
	{"C16", "clients MUST bind credentials to their issuer, MUST NOT reuse them elsewhere, SHOULD surface a mismatch", "client"},
	// basic/authorization/security-considerations
	{"S01", "MUST consider this page, MUST follow OAuth 2.1 section 7", "TestP30_ErrorsAreNever500"},
	{"S02", "clients MUST include resource", "client"},
	{"S03", "servers MUST validate that tokens were issued for them", "TestClaims"},
	{"S04", "servers MUST store tokens securely", "TestStoredSecretsAreHashes"},
	{"S05", "authorization servers SHOULD issue short-lived access tokens", "TestConsentNarrows"},
	{"S06", "MUST rotate refresh tokens of public clients", "TestP15_ConcurrentRefreshAndReuse"},
	{"S07", "MUST follow OAuth 2.1 1.5; endpoints MUST be served over https", "TestCookies"},
	{"S08", "redirect URIs MUST be localhost or https", "deviation"},
	{"S09", "clients MUST use PKCE with S256, MUST refuse a server that does not list it", "client"},
	{"S10", "OpenID documents MUST include code_challenge_methods_supported", "TestP21_OpenIDDocument"},
	{"S11", "clients MUST have redirect URIs registered, SHOULD verify state", "client"},
	{"S12", "MUST validate exact redirect URIs", "TestP04_RedirectMatching"},
	{"S13", "MUST take precautions against untrusted URIs", "TestAuthorizationErrors"},
	{"S14", "SHOULD only redirect by itself to what it trusts", "TestNoOpenRedirector"},
	{"S15", "MUST consider the implications of client documents", "TestDocumentIDs"},
	{"S16", "SHOULD consider SSRF", "TestStrangersWriteNothing"},
	{"S17", "SHOULD display warnings for localhost-only redirects", "TestConsentPage"},
	{"S18", "MUST clearly display the redirect host", "TestConsentPage"},
	{"S19", "proxies MUST obtain consent for each registered client", "TestP24_ConsentIsBoundToTheSession"},
	{"S20", "servers MUST validate tokens before processing", "app/local.TestP02_EveryMethodWithoutATokenIs401"},
	{"S21", "servers MUST follow OAuth 2.1 5.2", "TestVerifyReturnsWhatWasMinted"},
	{"S22", "servers MUST only accept tokens intended for them", "TestClaims"},
	{"S23", "servers MUST NOT pass the token through", "optool.TestNothingOfTheClientIsForwarded"},
	{"S24", "clients MUST use resource", "client"},
	// RFC 6749, OAuth 2.1 and what belongs to them
	{"6749-2.3", "MUST NOT use two ways of authentication", "TestP22_SecretsOfPublicClients"},
	{"6749-3.1a", "parameters MUST NOT be included twice", "TestP27_DuplicateParameters"},
	{"6749-3.1b", "empty parameters MUST be treated as omitted", "FuzzForm"},
	{"6749-3.1c", "unknown parameters MUST be ignored", "TestP18_LongState"},
	{"6749-3.1.2", "no fragment in a redirect URI; its query MUST be kept", "TestAuthorizationErrors"},
	{"6749-3.3", "MUST say the granted scope when it differs", "TestP07_NoScopeOrUnknownScope"},
	{"6749-4.1.2a", "a code is short-lived, bound to client and redirect, MUST NOT be used twice", "TestP26_CodeReplay"},
	{"6749-4.1.2b", "SHOULD revoke what a reused code made", "TestP26_CodeReplay"},
	{"6749-4.1.2.1a", "MUST NOT redirect when client or redirect are at fault", "TestP13_UnknownClient"},
	{"6749-4.1.2.1b", "state is REQUIRED in the answer", "TestP18_LongState"},
	{"6749-4.4.3", "a refresh token SHOULD NOT be included", "TestClientCredentials"},
	{"6749-5.1", "MUST Cache-Control no-store", "TestP11_TokenContentType"},
	{"6749-5.2", "MUST 401 and the scheme for a client that used the header", "TestP22_SecretsOfPublicClients"},
	{"6749-6", "scope MUST NOT be widened by refresh", "TestP19_NoWiderScopeByRefresh"},
	{"6749-10.3", "tokens MUST be kept confidential in storage", "TestStoredSecretsAreHashes"},
	{"6749-10.5", "codes MUST be short-lived and single-use, under races too", "TestManyRedemptionsOfOneCode"},
	{"6749-10.12", "MUST implement CSRF protection of the authorization endpoint", "TestP24_SignInIsBoundToTheBrowser"},
	{"6749-10.13", "clickjacking SHOULD be prevented", "TestP23_PolicyLetsTheRedirectPass"},
	{"7636-4.6", "S256 challenge, verifier compared", "TestP20_PKCE"},
	{"8252-7.3", "MUST allow any port of a loopback redirect", "TestP04_RedirectMatching"},
	{"8252-8.4", "exact match otherwise", "TestP04_RedirectMatching"},
	{"9700-4.11.2", "MUST authenticate the person before redirecting, errors too", "TestNoOpenRedirector"},
	{"9700-4.14", "refresh token reuse is detected and ends the family", "TestP15_TwoGenerationsBackIsReuse"},
	{"9068-2", "at+jwt, required claims", "TestClaims"},
	{"OIDC-3.1.2.6", "prompt=none MUST NOT show a page: login_required, interaction_required", "TestP09_Prompt"},
	// RFC 7591
	{"7591-2", "unknown members MUST be ignored; a redirect client MUST register redirect URIs", "TestP14_Registration"},
	{"7591-3", "MUST accept POST of JSON, over TLS, SHOULD support CORS", "TestP12_CORS"},
	{"7591-3.2.1", "201, MUST return all that is registered, no-store", "TestP14_Registration"},
	{"7591-3.2.2", "400 with invalid_redirect_uri or invalid_client_metadata", "TestP14_Registration"},
	{"7591-5a", "MUST treat metadata as self-asserted, SHOULD warn; names shown as unverified", "TestP29_HostileNames"},
	{"7591-5b", "registration SHOULD be rate-limited", "TestLimits"},
	{"7591-5c", "client ids are unguessable and bound to their metadata", "TestRegisteredIDsAreSealed"},
	// RFC 7009
	{"7009-2", "MUST support refresh tokens, SHOULD access tokens; POST, form", "TestP16_RevokeChecksTheOwner"},
	{"7009-2.1a", "MUST verify the client and that the token is its own", "TestP16_RevokeChecksTheOwner"},
	{"7009-2.1b", "SHOULD invalidate access tokens of the grant", "TestP16_RevokeRacingRefresh"},
	{"7009-2.2", "200 for an unknown token; an unknown hint MUST be ignored", "TestP16_RevokeChecksTheOwner"},
	{"7009-2.3", "CORS for browser clients", "TestP12_CORS"},
	{"7009-5", "denial of service: refusals are counted", "TestLimits"},
	// RFC 8707
	{"8707-2a", "MUST be absolute, MUST NOT have a fragment; invalid_target", "TestP05_ResourceForms"},
	{"8707-2b", "several resource parameters", "deviation"},
	{"8707-2.1", "absent: a default; what is granted does not widen", "TestP06_NoResource"},
	{"8707-2.2", "SHOULD restrict the audience to the resource", "TestP05_ResourceForms"},
	// RFC 8414
	{"8414-2", "MUST name issuer, endpoints, response types; issuer has no query or fragment", "TestP03_MetadataAtBothPlaces"},
	{"8414-3", "MUST be at the well-known path; JSON; 200", "TestP03_MetadataAtBothPlaces"},
	{"8414-3.3", "issuer MUST be identical", "TestP03_MetadataAtBothPlaces"},
	// RFC 9207
	{"9207-2", "iss in every answer, identical to metadata", "TestP10_IssOnEveryAnswer"},
	{"9207-2.3", "MUST advertise it", "TestP10_IssOnEveryAnswer"},
	// RFC 9728
	{"9728-2", "resource is REQUIRED", "TestMetadataDocument"},
	{"9728-3", "MUST be at the path of the resource; JSON; 200", "TestRequirements"},
	{"9728-3.3", "resource MUST be identical", "TestMetadataDocument"},
	{"9728-5.1", "resource_metadata in the challenge", "TestRequirements"},
}

// TestRequirementTable: table and tests name each other, every pitfall has a test, and deviations are written down.
func TestRequirementTable(t *testing.T) {
	said := map[string][]string{} // by test: the clauses that its comment names
	for _, room := range []string{"", "app/local", "op", "optool", "rest"} {
		readClauses(t, room, said)
	}
	deviations, err := os.ReadFile("DEVIATIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string][]string{} // by test: the clauses of the table
	ids := map[string]bool{}
	for _, r := range requirements {
		if ids[r.id] {
			t.Errorf("%s stands twice", r.id)
		}
		ids[r.id] = true
		switch r.test {
		case "client":
			continue
		case "deviation":
			if !strings.Contains(string(deviations), "("+r.id+")") {
				t.Errorf("%s, %s: not in DEVIATIONS.md", r.id, r.clause)
			}
			continue
		}
		named[r.test] = append(named[r.test], r.id)
		if clauses, ok := said[r.test]; !ok {
			t.Errorf("%s, %s: there is no %s", r.id, r.clause, r.test)
		} else if !slices.Contains(clauses, r.id) {
			t.Errorf("%s, %s: %s does not name it in its comment", r.id, r.clause, r.test)
		}
	}
	for test, clauses := range said {
		for _, id := range clauses {
			if !slices.Contains(named[test], id) {
				t.Errorf("%s names %s, and the table has it elsewhere or not at all", test, id)
			}
		}
	}
	for _, p := range strings.Fields("01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30") {
		found := false
		for test := range said {
			found = found || strings.Contains(test, "TestP"+p+"_")
		}
		if !found {
			t.Errorf("no test of pitfall P%s", p)
		}
	}
}

// readClauses collects the tests of a room with the clauses that the line "Clauses:" of their comments lists.
func readClauses(t *testing.T, room string, said map[string][]string) {
	t.Helper()
	dir, prefix := ".", ""
	if room != "" {
		dir, prefix = filepath.Join("..", filepath.FromSlash(room)), room+"."
	}
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", room, len(files), err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Test") && !strings.HasPrefix(fn.Name.Name, "Fuzz") {
				continue
			}
			said[prefix+fn.Name.Name] = nil
			for line := range strings.Lines(fn.Doc.Text()) {
				if list, ok := strings.CutPrefix(line, "Clauses:"); ok {
					said[prefix+fn.Name.Name] = strings.Fields(list)
				}
			}
		}
	}
}

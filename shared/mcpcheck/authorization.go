package mcpcheck

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const (
	protectedResource = "/.well-known/oauth-protected-resource"
	oauthServer       = "/.well-known/oauth-authorization-server"
	openIDServer      = "/.well-known/openid-configuration"
)

// resourceInfo is the document of RFC 9728 section 2.
type resourceInfo struct {
	Resource string   `json:"resource"`
	Servers  []string `json:"authorization_servers"`
	valid    bool
	got      string
}

// authorizationChecks are all that ask for nothing where no token is needed.
//
//nolint:gochecknoglobals // constant table
var authorizationChecks = []string{
	"invalid-token", "challenge", "resource-metadata-path", "resource-metadata-root", "resource-equality",
	"authorization-server", "issuer", "pkce", "client-metadata-documents",
}

// authorization checks what a client without a token goes through until it has one.
func (r *run) authorization(ctx context.Context) {
	r.get(ctx)
	r.skip("address-pinning", "can't be seen from outside; ask for it where the authorization server is written")
	if !r.protected {
		for _, id := range authorizationChecks {
			r.skip(id, "the server asks for no token")
		}
		return
	}
	r.try(ctx, "invalid-token", r.request("tools/list", "").stranger().with("Authorization", "Bearer "+nobody).says("tools/list with a token that nobody issued"),
		func(a answer) (Status, string) {
			if a.status != http.StatusUnauthorized {
				return Fail, ""
			}
			for _, c := range challenges(&a) {
				if code, _ := challengeParam(c.text, "error"); code == "invalid_token" {
					return Pass, "401, invalid_token in " + c.where
				}
			}
			if str(a.data()["error"]) == "invalid_token" {
				return Pass, "401, invalid_token in the error's data"
			}
			return Warn, a.words() + ", invalid_token is nowhere"
		})
	r.resourceMetadata(ctx)
}

func (r *run) get(ctx context.Context) {
	q := ask{sent: "GET, no token", method: http.MethodGet, header: map[string]string{"Accept": eventStream, versionHeader: revision}}
	r.try(ctx, "get", q, func(a answer) (Status, string) {
		switch {
		case r.protected && a.status == http.StatusUnauthorized, !r.protected && a.status == http.StatusMethodNotAllowed:
			return Pass, ""
		case !r.protected && a.status == http.StatusOK && a.media == eventStream:
			return Pass, "200, the event stream of older revisions"
		case !r.protected && a.status >= 400 && a.status < 500:
			return Warn, ""
		}
		return Fail, ""
	})
}

// place is a challenge and where it stood.
type place struct{ where, text string }

// challenges lists every place where an answer may carry its challenge, the standard one first.
func challenges(a *answer) (list []place) {
	add := func(where string, values []string) {
		if len(values) > 0 {
			list = append(list, place{where, strings.Join(values, ", ")})
		}
	}
	add("WWW-Authenticate", a.header.Values("WWW-Authenticate"))
	for _, name := range slices.Sorted(maps.Keys(a.header)) { // Amazon's gateways rename the header
		if strings.HasSuffix(name, "Remapped-Www-Authenticate") {
			add(strings.ToLower(name), a.header[name])
		}
	}
	add("X-MCP-Challenge", a.header.Values("X-MCP-Challenge"))
	return list
}

// resourceMetadata fetches the documents in the order in which clients try them, and judges the challenge by them.
func (r *run) resourceMetadata(ctx context.Context) {
	origin := r.target.Scheme + "://" + r.target.Host
	path := origin + protectedResource + strings.TrimSuffix(r.target.EscapedPath(), "/")
	root := origin + protectedResource
	r.documents = map[string]resourceInfo{}
	named := r.named()
	for _, address := range []string{path, root, named} {
		r.document(ctx, address)
	}
	var chosen resourceInfo
	for _, address := range []string{named, path, root} { // the challenge's own comes first for a client
		if d := r.documents[address]; d.valid && !chosen.valid {
			chosen = d
		}
	}
	r.found("resource-metadata-path", path, chosen.valid)
	r.found("resource-metadata-root", root, chosen.valid)
	r.challenge(named, chosen.valid)
	r.equality(chosen)
	r.authorizationServer(ctx, chosen)
}

// named is the address in the first challenge that has one.
func (r *run) named() string {
	for _, c := range challenges(&r.stranger) {
		if address, ok := challengeParam(c.text, "resource_metadata"); ok {
			return address
		}
	}
	return str(r.stranger.data()["resource_metadata"])
}

func (r *run) document(ctx context.Context, address string) {
	if _, done := r.documents[address]; done || address == "" {
		return
	}
	if !r.mayAsk(address) {
		r.documents[address] = resourceInfo{got: "not asked: " + address + " is no https address"}
		return
	}
	a := r.send(ctx, ask{sent: "GET " + address, method: http.MethodGet, url: address, header: map[string]string{"Accept": jsonType}})
	d := resourceInfo{got: a.document()}
	if a.err == nil && a.status == http.StatusOK && a.media == jsonType && json.Unmarshal(a.body, &d) == nil {
		d.valid = d.Resource != "" && len(d.Servers) > 0 && d.Servers[0] != ""
		d.got = "200, resource " + d.Resource
		if !d.valid {
			d.got += ", but resource or authorization_servers is missing"
		}
	}
	r.documents[address] = d
}

// mayAsk keeps to https, and to http for loopback when the server itself is there.
func (r *run) mayAsk(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.User != nil {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && (r.isHome(u) || r.options.Insecure || isLoopback(r.target.Hostname()) && isLoopback(u.Hostname()))
}

func (r *run) found(id, address string, elsewhere bool) {
	d := r.documents[address]
	status := Fail
	switch {
	case d.valid:
		status = Pass
	case elsewhere:
		status = Warn
	}
	r.note(id, status, "GET "+address, d.got)
}

func (r *run) challenge(named string, reachable bool) {
	sent := "tools/list, no token"
	all := challenges(&r.stranger)
	var where []string
	for _, c := range all {
		where = append(where, c.where)
	}
	if data := r.stranger.data(); data["resource_metadata"] != nil {
		where = append(where, "the error's data")
	}
	got := "the challenge is in " + strings.Join(where, ", ")
	if len(where) == 0 {
		got = "401 without any challenge"
	}
	status := Fail
	if reachable {
		status = Warn // clients fall back to the well-known addresses
	}
	switch {
	case r.stranger.status != http.StatusUnauthorized:
		status, got = Fail, r.stranger.words()
	case named != "" && !r.documents[named].valid:
		status, got = Fail, "resource_metadata names "+named+": "+r.documents[named].got
	case len(all) > 0 && all[0].where == "WWW-Authenticate":
		if _, ok := challengeParam(all[0].text, "resource_metadata"); ok && strings.Contains(strings.ToLower(all[0].text), "bearer") {
			status = Pass
		} else {
			got += ", without resource_metadata"
		}
	}
	r.note("challenge", status, sent, got)
}

// equality: RFC 9728 section 3.3, the resource MUST be the address that the document was asked for.
func (r *run) equality(d resourceInfo) {
	if !d.valid {
		r.skip("resource-equality", "there is no document")
		return
	}
	typed := *r.target
	typed.RawQuery = ""
	status := Fail
	switch {
	case d.Resource == typed.String(), typed.Path == "/" && d.Resource+"/" == typed.String():
		status = Pass
	case strings.HasPrefix(typed.String(), strings.TrimSuffix(d.Resource, "/")+"/"), strings.TrimSuffix(d.Resource, "/") == typed.String():
		status = Warn
	}
	r.note("resource-equality", status, "GET of the document for "+typed.String(), "resource "+d.Resource)
}

// authorizationServer follows the document to the server that issues tokens.
func (r *run) authorizationServer(ctx context.Context, d resourceInfo) {
	ids := []string{"issuer", "pkce", "client-metadata-documents"}
	if !d.valid {
		for _, id := range append(ids, "authorization-server") {
			r.skip(id, "no document names an authorization server")
		}
		return
	}
	issuer := d.Servers[0]
	metadata, sent, got := r.serverMetadata(ctx, issuer)
	if metadata == nil {
		r.note("authorization-server", Fail, sent, got)
		for _, id := range ids {
			r.skip(id, "the authorization server has no metadata")
		}
		return
	}
	status := Pass
	if str(metadata["authorization_endpoint"]) == "" || str(metadata["token_endpoint"]) == "" {
		status, got = Fail, "authorization_endpoint or token_endpoint is missing"
	}
	r.note("authorization-server", status, sent, got)
	r.note("issuer", either(str(metadata["issuer"]) == issuer, Fail), sent, "issuer "+str(metadata["issuer"]))
	methods := texts(metadata["code_challenge_methods_supported"])
	r.note("pkce", either(slices.Contains(methods, "S256"), Fail), sent, "code_challenge_methods_supported: "+strings.Join(methods, ", "))
	documents := string(metadata["client_id_metadata_document_supported"])
	switch register := str(metadata["registration_endpoint"]); {
	case documents == "true":
		r.note("client-metadata-documents", Pass, sent, "client_id_metadata_document_supported true")
	case register != "":
		r.note("client-metadata-documents", Warn, sent, "not announced; dynamic registration is")
	default:
		r.note("client-metadata-documents", Fail, sent, "neither client metadata documents nor dynamic registration")
	}
}

func either(ok bool, otherwise Status) Status {
	if ok {
		return Pass
	}
	return otherwise
}

// serverMetadata tries the addresses in the order that MCP prescribes.
func (r *run) serverMetadata(ctx context.Context, issuer string) (metadata map[string]json.RawMessage, sent, got string) {
	u, err := url.Parse(issuer)
	if err != nil || !r.mayAsk(issuer) || u.RawQuery != "" || u.Fragment != "" {
		return nil, "authorization_servers[0]", issuer + " is no https address of an issuer"
	}
	origin, path := u.Scheme+"://"+u.Host, strings.TrimSuffix(u.EscapedPath(), "/")
	tries := []string{origin + oauthServer + path, origin + openIDServer + path}
	if path != "" {
		tries = append(tries, origin+path+openIDServer)
	}
	for _, address := range tries {
		sent = "GET " + address
		a := r.send(ctx, ask{method: http.MethodGet, url: address, header: map[string]string{"Accept": jsonType}})
		got = a.document()
		if a.err == nil && a.status == http.StatusOK && a.media == jsonType {
			if m := object(a.body); m != nil {
				return m, sent, "200, issuer " + str(m["issuer"])
			}
		}
	}
	return nil, strings.Join(tries, " and "), got
}

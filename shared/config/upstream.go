package config

import (
	"net/url"
	"slices"
	"strings"
)

// Upstream is an OpenID provider where people may sign in.
type Upstream struct {
	Issuer   string // byte for byte as the provider names itself
	ClientID string
	Secret   Secret   // of the client; its name or ARN in Secrets Manager for a function
	Name     string   // for the button; empty: the issuer
	Allow    []string // addresses, or domains as @example.com
}

// upstream reads the provider; nil when no variable of it is set. A half configuration is a problem: the button would be
// missing, or lead nowhere.
func (r *reader) upstream() *Upstream {
	return r.provider(varOIDCSecret, "the client secret that the provider gave you")
}

// deployedUpstream is upstream for a function, whose variables anybody with a look at the account can read: the secret itself stays
// in Secrets Manager.
func (r *reader) deployedUpstream() *Upstream {
	if r.getenv(varOIDCSecret) != "" {
		r.fault(varOIDCSecret, "not for a function, whose variables are no place for a secret; keep it in Secrets Manager and set %s to its name.", varOIDCSecretName)
	}
	u := r.provider(varOIDCSecretName, "the name or ARN of the secret that holds the client secret")
	if u != nil && u.Secret != "" {
		u.Secret = r.secretName(varOIDCSecretName)
	}
	return u
}

func (r *reader) provider(secretVariable, secretText string) *Upstream {
	u := &Upstream{
		Issuer: r.getenv(varOIDCIssuer), ClientID: r.getenv(varOIDCClient), Secret: Secret(r.getenv(secretVariable)), Name: r.getenv(varOIDCName),
		Allow: strings.FieldsFunc(r.getenv(varOIDCAllow), func(c rune) bool { return c == ',' || c == ' ' }),
	}
	if u.Issuer == "" && u.ClientID == "" && u.Secret == "" && u.Name == "" && len(u.Allow) == 0 {
		return nil
	}
	for _, one := range []struct {
		variable string
		missing  bool
		what     string
	}{
		{varOIDCIssuer, u.Issuer == "", "the provider's issuer, as https://accounts.google.com"},
		{varOIDCClient, u.ClientID == "", "the client id that the provider gave you"},
		{secretVariable, u.Secret == "", secretText},
		{varOIDCAllow, len(u.Allow) == 0, "who may come in: addresses, or domains as @example.com, separated by commas"},
	} {
		if one.missing {
			r.fault(one.variable, "missing, while another variable of the provider is set; set it to %s.", one.what)
		}
	}
	r.checkIssuer(u.Issuer)
	if i := slices.IndexFunc(u.Allow, func(s string) bool { return strings.Count(s, "@") != 1 || strings.HasSuffix(s, "@") }); i >= 0 {
		r.fault(varOIDCAllow, "%s is neither an address nor a domain as @example.com.", quote(u.Allow[i]))
	}
	return u
}

// checkIssuer: identity from a provider over plain http is anybody's on the way.
func (r *reader) checkIssuer(issuer string) {
	u, err := url.Parse(issuer)
	switch {
	case issuer == "":
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		r.fault(varOIDCIssuer, "not an issuer; take it from the provider's documentation, without query or fragment.")
	case u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())):
		r.fault(varOIDCIssuer, "%s must begin with https://; http:// is only for localhost.", quote(issuer))
	}
}

package config

import (
	"net"
	"net/url"
	"strings"
)

// Local configures the whole service in one process.
type Local struct {
	HTTPAddr       string
	SMTPAddr       string
	DataDir        string
	PublicURL      string // canonical origin; empty when it follows from the port, see Origin
	Demo           bool
	Rates          Rates
	Waits          int      // calls that may wait for mail at once
	AllowedOrigins []string // canonical
	SMTPTLSCert    string   // path; empty together with SMTPTLSKey: no STARTTLS
	SMTPTLSKey     string
	SMTPDomain     string    // of the SMTP greeting
	PublicDiscover bool      // server/discover without a token
	Upstream       *Upstream // where people may sign in too; nil: nowhere
	Relay          *Relay    // takes outgoing mail; nil: it is written into a folder
}

// LoadLocal reads the environment of the local process. The error is Problems.
func LoadLocal(getenv Getenv) (*Local, error) {
	r := &reader{getenv: getenv}
	c := &Local{
		DataDir: r.or(varDataDir, ".buzon"), PublicURL: r.publicURL(), Demo: r.flag(varDemo), AllowedOrigins: r.origins(),
		SMTPTLSCert: getenv(varTLSCert), SMTPTLSKey: getenv(varTLSKey),
		SMTPDomain: strings.ToLower(r.or(varSMTPDomain, "localhost")), PublicDiscover: r.flag(varPublicDiscover),
	}
	c.Upstream, c.Relay = r.upstream(), r.relay()
	var loopback bool
	c.HTTPAddr, loopback = r.addr(varHTTPAddr, "127.0.0.1:8080")
	c.SMTPAddr, _ = r.addr(varSMTPAddr, "127.0.0.1:2525")
	c.Rates = r.rates(loopback)
	c.Waits = r.waits(localConcurrency)
	r.localRules(c, loopback)
	if err := r.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// localRules are those that join several variables.
func (r *reader) localRules(c *Local, loopback bool) {
	if r.onLambda() {
		r.fault(varLambda, "this is Lambda; the local process keeps its data on disk, which Lambda does not. Deploy functions/api.")
	}
	switch store := r.or(varStore, "embedded"); store {
	case "embedded":
	case "dynamo":
		r.fault(varStore, "dynamo is for the verbs that work on a deployed service (org create, domain add); serve keeps the embedded store. Leave it out.")
	default:
		r.fault(varStore, "%s is no store; leave it out for the embedded one.", quote(store))
	}
	// Demonstration tokens are written to a file and open everything: nobody else may reach them.
	if c.Demo && !loopback {
		r.fault(varDemo, "demonstration data is only for a process bound to loopback; set %s to 127.0.0.1:8080 or leave %s out.", varHTTPAddr, varDemo)
	}
	if c.Demo && c.PublicURL != "" && !loopbackOrigin(c.PublicURL) {
		r.fault(varDemo, "demonstration data needs a loopback issuer; leave %s out or set it to http://localhost:8080.", varPublicURL)
	}
	if (c.SMTPTLSCert == "") != (c.SMTPTLSKey == "") {
		missing := varTLSKey
		if c.SMTPTLSCert == "" {
			missing = varTLSCert
		}
		r.fault(missing, "STARTTLS needs certificate and key; set both %s and %s, or neither.", varTLSCert, varTLSKey)
	}
	if !isHost(c.SMTPDomain) {
		r.fault(varSMTPDomain, "%s is not a host name.", quote(c.SMTPDomain))
	}
}

func loopbackOrigin(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && isLoopback(u.Hostname())
}

// Origin is the public URL: the configured one, else http://localhost and the port that HTTP listens on.
func (c *Local) Origin(listening net.Addr) string {
	if c.PublicURL != "" {
		return c.PublicURL
	}
	_, port, err := net.SplitHostPort(listening.String())
	if err != nil || port == "80" {
		return "http://localhost"
	}
	return "http://localhost:" + port
}

// Loopback reports whether nobody beyond this machine is meant to reach the service: only then does it print tokens.
func (c *Local) Loopback() bool {
	if c.PublicURL != "" {
		return loopbackOrigin(c.PublicURL)
	}
	host, _, err := net.SplitHostPort(c.HTTPAddr)
	return err == nil && isLoopback(host)
}

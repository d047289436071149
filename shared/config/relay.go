package config

import (
	"net/url"
	"strconv"
)

// Relay is the SMTP server that outgoing mail is handed to.
type Relay struct {
	Host     string
	Port     int
	Implicit bool // TLS from the first byte; otherwise STARTTLS
	Plain    bool // neither: on this machine only
	User     string
	Password Secret
}

// relay reads BUZON_SMTP_RELAY; nil when it is not set. No message repeats the value: it holds a password.
func (r *reader) relay() *Relay {
	v := r.getenv(varRelay)
	if v == "" {
		return nil
	}
	const shape = "write smtps://user:password@host:465 or smtp+starttls://user:password@host:587, with % escapes in user and password."
	u, err := url.Parse(v)
	if err != nil || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" || u.Path != "" && u.Path != "/" || u.Opaque != "" {
		r.fault(varRelay, "not the address of a relay; %s", shape)
		return nil
	}
	c := &Relay{Host: u.Hostname()}
	port := map[string]string{"smtps": "465", "smtp+starttls": "587", "smtp": "25"}[u.Scheme]
	switch u.Scheme {
	case "smtps":
		c.Implicit = true
	case "smtp+starttls":
	case "smtp":
		if c.Plain = true; !isLoopback(c.Host) {
			r.fault(varRelay, "without TLS the relay must be on this machine: everybody in between could read the mail; %s", shape)
		}
	default:
		r.fault(varRelay, "an unknown scheme; %s", shape)
		return nil
	}
	if u.Port() != "" {
		port = u.Port()
	}
	if c.Port, err = strconv.Atoi(port); err != nil || c.Port < 1 || c.Port > 65535 {
		r.fault(varRelay, "its port is no port; %s", shape)
	}
	if u.User != nil {
		password, _ := u.User.Password()
		if c.User, c.Password = u.User.Username(), Secret(password); c.User == "" || password == "" {
			r.fault(varRelay, "user and password go together; %s", shape)
		}
	}
	return c
}

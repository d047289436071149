package inboxops

import (
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/rest"
)

// Secret is how a secret that was just made reaches the caller.
type Secret struct {
	Secret      string    `json:"secret,omitempty" doc:"REST only, and only here."`
	RevealURL   string    `json:"reveal_url,omitempty" doc:"MCP only: give it to the person, who signs in and sees the secret there, once."`
	RevealUntil rest.Time `json:"reveal_until" doc:"Null over REST."`
}

func secretOf(s inbox.SecretReply) *Secret {
	if s == (inbox.SecretReply{}) {
		return nil
	}
	return &Secret{s.Secret, s.Page, at(s.Until)}
}

package local

import (
	"path/filepath"

	"github.com/buzon-mail/buzon/shared/outmail"
	"github.com/buzon-mail/buzon/shared/outmail/relay"
)

// outboxFolder is where outgoing mail lies when there is no relay to send it.
const outboxFolder = "outbox"

// outlet is the way out for mail.
func (s *Service) outlet() (outmail.Outlet, error) {
	r := s.cfg.Relay
	if r == nil {
		return outmail.NewFolder(filepath.Join(s.cfg.DataDir, outboxFolder))
	}
	return relay.New(relay.Options{
		Host: r.Host, Port: r.Port, Implicit: r.Implicit, Plain: r.Plain, User: r.User, Password: r.Password.Reveal(), Name: s.cfg.SMTPDomain,
	})
}

// Package outlet lets the mail of the domain out by an Outlet of outmail, which has never heard of the domain.
package outlet

import (
	"context"
	"net/mail"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/outmail"
	"github.com/buzon-mail/buzon/shared/pipeline"
)

// Outlet is one.
type Outlet struct{ To outmail.Outlet }

var _ pipeline.Outlet = Outlet{}

// Send hands one copy on.
func (o Outlet) Send(ctx context.Context, m inbox.Outgoing) error {
	return o.To.Send(ctx, outmail.Message{ //nolint:wrapcheck // it names the step
		ID: m.ID, From: mail.Address{Name: m.From.Name, Address: m.From.Address}, Recipient: m.Recipient, To: m.To,
		Subject: m.Subject, Text: m.Text, Date: m.Date, Original: m.Original,
	})
}

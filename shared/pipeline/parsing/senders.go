package parsing

import (
	"context"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/mailauth"
)

// Senders is the Authenticate of real mail. Without a verifier nothing is checked: the mail has an author, and nobody vouches.
func Senders(v *mailauth.Verifier) func(ctx context.Context, raw []byte, e inbox.Envelope) (author string, checks []inbox.AuthCheck) {
	return func(ctx context.Context, raw []byte, e inbox.Envelope) (string, []inbox.AuthCheck) {
		if v == nil || e.Imported { // a signature that still verifies says who wrote the mail, not that it came this way
			return checksOf(mailauth.Unchecked(raw))
		}
		return checksOf(v.Verify(ctx, mailauth.Mail{Raw: raw, RemoteIP: e.RemoteIP, HELO: e.HELO, MailFrom: e.From}))
	}
}

func checksOf(r mailauth.Report) (string, []inbox.AuthCheck) {
	out := make([]inbox.AuthCheck, 0, len(r.Checks))
	for _, c := range r.Checks {
		out = append(out, inbox.AuthCheck{
			Method: string(c.Method), Result: string(c.Result), Domain: c.Domain, Aligned: c.Aligned, Reason: c.Reason,
		})
	}
	return r.From, out
}

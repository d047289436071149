package parsing

import (
	"context"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/mailauth"
)

// Senders is the Authenticate of real mail. What the transport checked is not checked again: the host that brought the mail is known
// to it alone. Without that and without a verifier nothing is checked: the mail has an author, and nobody vouches.
func Senders(v *mailauth.Verifier) func(ctx context.Context, raw []byte, e inbox.Envelope, found []inbox.Authentication) (author string, checks []inbox.AuthCheck) {
	return func(ctx context.Context, raw []byte, e inbox.Envelope, found []inbox.Authentication) (string, []inbox.AuthCheck) {
		if e.Imported { // a signature that still verifies says who wrote the mail, not that it came this way
			return checksOf(mailauth.Unchecked(raw))
		}
		if f, ok := findings(found); ok {
			return checksOf(mailauth.Relayed(raw, e.From, f))
		}
		if v == nil {
			return checksOf(mailauth.Unchecked(raw))
		}
		return checksOf(v.Verify(ctx, mailauth.Mail{Raw: raw, RemoteIP: e.RemoteIP, HELO: e.HELO, MailFrom: e.From}))
	}
}

// findings are those of Amazon SES, the one transport that checks for itself.
func findings(list []inbox.Authentication) (f mailauth.Findings, ok bool) {
	f.ServID = "amazonses.com"
	for _, a := range list {
		if a.From != inbox.CheckedBySES {
			continue
		}
		result := mailauth.Result(a.Result)
		switch mailauth.Method(a.Method) {
		case mailauth.SPF:
			f.SPF, ok = result, true
		case mailauth.DKIM:
			f.DKIM, ok = result, true
		case mailauth.DMARC:
			f.DMARC, f.Policy, ok = result, a.Reason, true
		}
	}
	return f, ok
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

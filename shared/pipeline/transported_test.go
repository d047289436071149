package pipeline

import (
	"slices"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/mail"
	"github.com/buzon-mail/buzon/shared/mailauth"
	"github.com/buzon-mail/buzon/shared/pipeline/parsing"
)

// ses are verdicts as the function that hears SES stores them: method=result.
func ses(from string, verdicts ...string) (list []inbox.Authentication) {
	for _, v := range verdicts {
		method, result, _ := strings.Cut(v, "=")
		list = append(list, inbox.Authentication{Method: method, Result: result, From: from})
	}
	return list
}

// TestTransportChecked: what SES found out is what a mail is judged by, and only what it told in its own notice.
func TestTransportChecked(t *testing.T) {
	const text = "From: Ana <ana@good.test>\r\nTo: agent@acme.test\r\nSubject: s\r\n\r\nHello.\r\n"
	claim := "Authentication-Results: amazonses.com; spf=pass; dkim=pass header.d=good.test; dmarc=pass header.from=good.test\r\n" + text
	pass, fail := []string{"spf=pass", "dkim=pass", "dmarc=pass"}, []string{"spf=fail", "dkim=none", "dmarc=fail"}
	ana := inbox.AllowedSender{ID: "sender_ana", Kind: inbox.KindAddress, Value: "ana@good.test", Effect: inbox.EffectAllow, Require: inbox.RequireDMARC, Version: 1}
	either := ana
	either.Require = inbox.RequireSPFOrDKIM
	strict := inbox.Inbox{SenderPolicy: inbox.PolicyListedAuthenticated}
	listed, open := inbox.Inbox{SenderPolicy: inbox.PolicyListed}, inbox.Inbox{}
	refusing := inbox.Inbox{SenderPolicy: inbox.PolicyListed, OnUnlisted: inbox.UnlistedReject}
	one := []inbox.AllowedSender{ana}
	for name, x := range map[string]struct {
		text    string
		from    string // MAIL FROM
		found   []inbox.Authentication
		door    string
		in      inbox.Inbox
		entries []inbox.AllowedSender
		want    string // status reason trust
	}{
		"strict and proved":                       {text, "ana@good.test", ses("ses", pass...), "", strict, one, "processed  trusted"},
		"strict, forged":                          {text, "x@evil.test", ses("ses", fail...), "", strict, one, "quarantined sender_unauthenticated suspicious"},
		"strict, forged, with a claim on top":     {claim, "x@evil.test", ses("ses", fail...), "", strict, one, "quarantined sender_unauthenticated suspicious"},
		"strict, a claim and nothing from SES":    {claim, "ana@good.test", nil, "", strict, one, "quarantined sender_unauthenticated unverified"},
		"strict, checked by somebody else":        {text, "ana@good.test", ses("amazonses.com", pass...), "", strict, one, "quarantined sender_unauthenticated unverified"},
		"strict, SES could not check":             {text, "ana@good.test", ses("ses", "spf=temperror", "dkim=temperror", "dmarc=temperror"), "", strict, one, "quarantined sender_unauthenticated unverified"},
		"strict, no policy of DMARC":              {text, "ana@good.test", ses("ses", "spf=pass", "dkim=pass", "dmarc=none"), "", strict, one, "quarantined sender_unauthenticated verified"},
		"strict, two authors":                     {"From: eve@evil.test\r\n" + text, "ana@good.test", ses("ses", pass...), "", strict, one, "quarantined sender_unlisted suspicious duplicate_field multiple_from"},
		"listed, SPF of the same domain":          {text, "b@mail.good.test", ses("ses", "spf=pass", "dkim=none", "dmarc=none"), "", listed, []inbox.AllowedSender{either}, "processed  verified"},
		"listed, SPF of another domain":           {text, "b@evil.test", ses("ses", "spf=pass", "dkim=pass", "dmarc=none"), "", listed, []inbox.AllowedSender{either}, "quarantined sender_unauthenticated unverified"},
		"open, proved":                            {text, "ana@good.test", ses("ses", pass...), "", open, nil, "processed  verified"},
		"open, forged":                            {text, "x@evil.test", ses("ses", fail...), "", open, nil, "processed  suspicious"},
		"open, a virus":                           {text, "ana@good.test", ses("ses", append(slices.Clone(pass), "virus=fail")...), "", open, one, "quarantined virus trusted"},
		"open, no virus":                          {text, "ana@good.test", ses("ses", append(slices.Clone(pass), "virus=pass", "spam=pass")...), "", open, one, "processed  trusted"},
		"open, spam":                              {text, "ana@good.test", ses("ses", append(slices.Clone(pass), "spam=fail")...), "", open, one, "processed  trusted spam_suspected"},
		"blocked at the door":                     {text, "eve@evil.test", ses("ses", pass...), inbox.HeldBlocked, open, nil, "quarantined sender_blocked verified"},
		"blocked at the door, the author listed":  {text, "eve@evil.test", ses("ses", pass...), inbox.HeldBlocked, refusing, one, "quarantined sender_blocked trusted"},
		"unlisted at the door":                    {text, "eve@evil.test", ses("ses", pass...), inbox.HeldUnlisted, refusing, nil, "quarantined sender_unlisted verified"},
		"unlisted at the door, the author listed": {text, "b@mailer.test", ses("ses", pass...), inbox.HeldUnlisted, refusing, one, "processed  trusted"},
		"unlisted at the door, author not proved": {text, "b@mailer.test", ses("ses", fail...), inbox.HeldUnlisted, refusing, one, "quarantined sender_unauthenticated suspicious"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStoredBench(t)
			s.worker.deps.Parse, s.worker.deps.Authenticate = parsing.Mail(mail.Limits{}), parsing.Senders(nil)
			s.worker.deps.Senders, s.worker.deps.SameOrganization = &list{in: x.in, entries: x.entries}, mailauth.SameOrganization
			if err := s.blobs.Delete(t.Context(), storedKey); err != nil {
				t.Fatal(err)
			}
			if err := s.blobs.Put(t.Context(), storedKey, strings.NewReader(x.text), int64(len(x.text))); err != nil {
				t.Fatal(err)
			}
			in := s.stored("agent")
			in.From, in.Authentication, in.Recipients[0].Door = x.from, x.found, x.door
			row := s.store.accepted(s.mustAccept(t, in)[0])
			s.drain(t)
			e := s.store.outcome(row.Recipients[0].Email).Email
			got := strings.Join([]string{string(e.Status), e.Reason, string(e.Trust.Level)}, " ")
			for _, w := range e.Warnings {
				got += " " + w.Code
			}
			if got != x.want {
				t.Errorf("got  %s %v %+v\nwant %s", got, e.Trust.Reasons, e.Auth, x.want)
			}
			if len(x.found) > 0 && x.found[0].From == "ses" && len(e.Auth) != 3 {
				t.Errorf("checks %+v", e.Auth)
			}
		})
	}
}

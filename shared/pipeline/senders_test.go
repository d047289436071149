package pipeline

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-msgauth/dkim"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/mail"
	"github.com/buzon-mail/buzon/shared/mailauth"
	"github.com/buzon-mail/buzon/shared/pipeline/parsing"
)

// list is a Senders that holds one inbox's policy and entries.
type list struct {
	mu      sync.Mutex
	in      inbox.Inbox
	entries []inbox.AllowedSender
	err     error
	reads   int
	hits    []string
}

func (l *list) Inbox(context.Context, string, string) (inbox.Inbox, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.in, l.err
}

func (l *list) SendersFor(_ context.Context, _, _, _ string) ([]inbox.AllowedSender, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads++
	return l.entries, l.err
}

func (l *list) HitSender(_ context.Context, _, _, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hits = append(l.hits, id)
}

// zone answers for good.test, which signs its mail and has a policy of DMARC.
type zone struct {
	mailauth.Resolver
	down bool
}

func (z zone) LookupTXT(_ context.Context, name string) ([]string, error) {
	if z.down {
		return nil, &net.DNSError{Err: "server misbehaving", Name: name, IsTemporary: true}
	}
	switch name {
	case "s._domainkey.good.test.":
		return []string{"k=ed25519; p=" + base64.StdEncoding.EncodeToString(key().Public().(ed25519.PublicKey))}, nil
	case "_dmarc.good.test.":
		return []string{"v=DMARC1; p=reject"}, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

func key() ed25519.PrivateKey { return ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", 32))) }

func signed(t *testing.T, text string) string {
	t.Helper()
	var out strings.Builder
	err := dkim.Sign(&out, strings.NewReader(text), &dkim.SignOptions{Domain: "good.test", Selector: "s", Signer: key(), HeaderKeys: []string{"From"}})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// judged brings one mail that a host on the internet sent to its end, with real signatures and a list.
func judged(t *testing.T, text string, l *list, z zone) inbox.Email {
	t.Helper()
	b := newBench(t, WorkerOptions{})
	v, err := mailauth.New(z, mailauth.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b.worker.deps.Parse, b.worker.deps.Senders, b.worker.deps.Authenticate = parsing.Mail(mail.Limits{}), l, parsing.Senders(v)
	in := b.incoming(strings.NewReader(text), "agent")
	in.RemoteIP, in.From = "8.8.4.4", "x@evil.test"
	id, err := b.intake.Accept(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	b.handle(t, id, 1)
	return b.store.outcome(b.store.accepted(id).Recipients[0].Email).Email
}

func TestSenders(t *testing.T) {
	const mail = "From: Ana <ana@good.test>\r\nTo: agent@acme.test\r\nSubject: s\r\n\r\nHello.\r\n"
	ana := inbox.AllowedSender{ID: "sender_ana", Kind: inbox.KindAddress, Value: "ana@good.test", Effect: inbox.EffectAllow, Require: inbox.RequireDMARC, Version: 1}
	lax, block := ana, ana
	lax.Require, block.Effect = inbox.RequireNone, inbox.EffectBlock
	listed := inbox.Inbox{SenderPolicy: inbox.PolicyListed}
	labelled := inbox.Inbox{SenderPolicy: inbox.PolicyListedAuthenticated, OnUnlisted: inbox.UnlistedLabel}
	double := strings.Replace(mail, "Subject:", "From: Eve <eve@evil.test>\r\nSubject:", 1)
	for name, x := range map[string]struct {
		text    string
		in      inbox.Inbox
		entries []inbox.AllowedSender
		down    bool
		want    string // status reason trust hits label
	}{
		"signed and listed":                    {signed(t, mail), listed, []inbox.AllowedSender{ana}, false, "processed  trusted [sender_ana] []"},
		"signed, listed, labelled":             {signed(t, mail), labelled, []inbox.AllowedSender{ana}, false, "processed  trusted [sender_ana] []"},
		"signed, not listed":                   {signed(t, mail), listed, nil, false, "quarantined sender_unlisted verified [] []"},
		"signed, everybody may":                {signed(t, mail), inbox.Inbox{}, nil, false, "processed  verified [] []"},
		"forged and listed":                    {mail, listed, []inbox.AllowedSender{ana}, false, "quarantined sender_unauthenticated suspicious [] []"},
		"forged and listed without conditions": {mail, listed, []inbox.AllowedSender{lax}, false, "quarantined sender_unauthenticated suspicious [] []"},
		"forged, labelled":                     {mail, labelled, []inbox.AllowedSender{lax}, false, "processed  suspicious [] [unlisted-sender]"},
		"forged, everybody may":                {mail, inbox.Inbox{}, []inbox.AllowedSender{ana}, false, "processed  suspicious [] []"},
		"no policy of DMARC, listed":           {strings.ReplaceAll(mail, "good.test", "plain.test"), listed, []inbox.AllowedSender{{ID: "s", Kind: inbox.KindDomain, Value: "plain.test", Effect: inbox.EffectAllow, Require: inbox.RequireDMARC}}, false, "quarantined sender_unauthenticated unverified [] []"},
		"signed and altered":                   {strings.Replace(signed(t, mail), "Hello", "Hallo", 1), listed, []inbox.AllowedSender{ana}, false, "quarantined sender_unauthenticated suspicious [] []"},
		"signed, with another From in front":   {"From: eve@evil.test\r\n" + signed(t, mail), listed, []inbox.AllowedSender{ana}, false, "quarantined sender_unlisted suspicious [] []"},
		"two authors":                          {double, listed, []inbox.AllowedSender{ana}, false, "quarantined sender_unauthenticated suspicious [] []"},
		"blocked":                              {signed(t, mail), inbox.Inbox{}, []inbox.AllowedSender{block}, false, "quarantined sender_blocked blocked [sender_ana] []"},
		"DNS is away":                          {signed(t, mail), listed, []inbox.AllowedSender{ana}, true, "quarantined sender_unauthenticated unverified [] []"},
		"DNS is away, everybody may":           {signed(t, mail), inbox.Inbox{}, nil, true, "processed  unverified [] []"},
		"a claim of another host":              {"Authentication-Results: mx.acme.test; dmarc=pass\r\n" + mail, listed, []inbox.AllowedSender{ana}, false, "quarantined sender_unauthenticated suspicious [] []"},
	} {
		t.Run(name, func(t *testing.T) {
			l := &list{in: x.in, entries: x.entries}
			e := judged(t, x.text, l, zone{down: x.down})
			labels := []string{}
			labels = append(labels, e.Labels...)
			got := strings.Join([]string{string(e.Status), e.Reason, string(e.Trust.Level), "[" + strings.Join(l.hits, " ") + "]", "[" + strings.Join(labels, " ") + "]"}, " ")
			if got != x.want {
				t.Errorf("got  %s %v\nwant %s", got, e.Trust.Reasons, x.want)
			}
			if l.reads != 1 || len(e.Auth) < 3 {
				t.Errorf("the list was read %d times; checks %v", l.reads, e.Auth)
			}
		})
	}
}

// A mail that was not brought by a known host proves nothing, whatever its signature says.
func TestImportedMailProvesNothing(t *testing.T) {
	b := newBench(t, WorkerOptions{})
	v, err := mailauth.New(zone{}, mailauth.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, authenticate := range map[string]Authenticate{"checked": parsing.Senders(v), "not checked at all": parsing.Senders(nil)} {
		b.worker.deps.Parse, b.worker.deps.Authenticate = parsing.Mail(mail.Limits{}), authenticate
		in := b.incoming(strings.NewReader(signed(t, "From: ana@good.test\r\nSubject: "+name+"\r\n\r\nx\r\n")), "agent")
		in.RemoteIP, in.HELO = "", ""
		id, err := b.intake.Accept(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		b.handle(t, id, 1)
		e := b.store.outcome(b.store.accepted(id).Recipients[0].Email).Email
		if e.Status != inbox.StatusProcessed || e.Trust.Level != inbox.Unverified || !slices.Equal(e.Trust.Reasons, []string{inbox.TrustUnavailable}) {
			t.Errorf("%s: %+v", name, e.Trust)
		}
		for _, c := range e.Auth {
			if c.Result != "unavailable" || c.Aligned {
				t.Errorf("%s: %+v", name, c)
			}
		}
	}
}

// What goes wrong on the way to a judgement lets no mail through unjudged.
func TestSendersFailures(t *testing.T) {
	b := newBench(t, WorkerOptions{})
	l := &list{err: apperr.New(apperr.Unavailable, "", "Down.")}
	b.worker.deps.Senders = l
	in := b.accept(t, sample, "agent")
	if err := b.worker.Handle(t.Context(), in.ID, 1); !apperr.Is(err, apperr.Unavailable) {
		t.Errorf("store down: %v", err)
	}
	if p := b.store.outcome(in.Recipients[0].Email); p.Email.ID != "" {
		t.Errorf("finished unjudged: %+v", p.Email)
	}
	l.err = nil
	ctx, cancel := context.WithCancel(t.Context())
	b.worker.deps.Authenticate = func(context.Context, []byte, inbox.Envelope, []inbox.Authentication) (string, []inbox.AuthCheck) {
		cancel()
		return "", nil
	}
	if err := b.worker.Handle(ctx, in.Recipients[0].Email, 2); !apperr.Is(err, apperr.Unavailable) {
		t.Errorf("stopped: %v", err)
	}
	b.worker.deps.Authenticate = func(context.Context, []byte, inbox.Envelope, []inbox.Authentication) (string, []inbox.AuthCheck) {
		panic("secret-canary")
	}
	b.handle(t, in.Recipients[0].Email, 3)
	if e := b.store.outcome(in.Recipients[0].Email).Email; e.Status != inbox.StatusProcessed || e.Trust.Level != inbox.Suspicious {
		t.Errorf("after a panic: %+v", e)
	}
	// A mail that can't be read has no author: it fails and is not judged.
	b.worker.deps.Parse = func(context.Context, []byte) (Reading, error) { return Reading{}, errors.New("no mail") }
	in = b.accept(t, sample+"2", "agent")
	b.handle(t, in.ID, 1)
	if e := b.store.outcome(in.Recipients[0].Email).Email; e.Status != inbox.StatusFailed || e.Trust.Level != "" {
		t.Errorf("unreadable: %+v", e)
	}
}

func TestIntakeSender(t *testing.T) {
	b := newBench(t, WorkerOptions{})
	to := recipient("agent")
	if err := b.intake.Sender(t.Context(), to, "eve@evil.test"); err != nil {
		t.Errorf("no list: %v", err)
	}
	l := &list{entries: []inbox.AllowedSender{{ID: "s", Kind: inbox.KindDomain, Value: "evil.test", Effect: inbox.EffectBlock}}}
	b.intake.deps.Senders = l
	if err := b.intake.Sender(t.Context(), to, "eve@evil.test"); !apperr.Is(err, apperr.Forbidden) {
		t.Errorf("blocked: %v", err)
	}
	for _, from := range []string{"", "ana@good.test", "eve@not-evil.test"} {
		if err := b.intake.Sender(t.Context(), to, from); err != nil {
			t.Errorf("%q: %v", from, err)
		}
	}
	to.SenderPolicy, to.OnUnlisted = inbox.PolicyListed, inbox.UnlistedReject
	if err := b.intake.Sender(t.Context(), to, "ana@good.test"); !apperr.Is(err, apperr.Forbidden) {
		t.Errorf("unlisted: %v", err)
	}
	l.entries[0].Effect, l.entries[0].ExpiresAt = inbox.EffectAllow, b.clock.Now().Add(time.Minute)
	if err := b.intake.Sender(t.Context(), to, "eve@evil.test"); err != nil {
		t.Errorf("listed: %v", err)
	}
	b.clock.add(time.Minute)
	if err := b.intake.Sender(t.Context(), to, "eve@evil.test"); !apperr.Is(err, apperr.Forbidden) {
		t.Errorf("listed until now: %v", err)
	}
	l.err = errors.New("down")
	if err := b.intake.Sender(t.Context(), to, "eve@evil.test"); err == nil || apperr.Is(err, apperr.Forbidden) {
		t.Errorf("store down: %v", err)
	}
}

package mailauth

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"net"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-msgauth/dkim"
)

// zone is a Resolver over a map; names are whole. A name that is not there does not exist.
type zone struct {
	txt  map[string][]string
	fail map[string]error // by name
	slow bool             // answers nothing before the context ends

	mu    sync.Mutex
	asked []string
}

func (z *zone) ask(ctx context.Context, name string) ([]string, error) {
	z.mu.Lock()
	z.asked = append(z.asked, name)
	z.mu.Unlock()
	if z.slow {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if err := z.fail[strings.TrimSuffix(name, ".")]; err != nil {
		return nil, err
	}
	list, ok := z.txt[strings.TrimSuffix(name, ".")]
	if !ok {
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	return list, nil
}

func (z *zone) LookupTXT(ctx context.Context, name string) ([]string, error) { return z.ask(ctx, name) }

func (z *zone) LookupMX(ctx context.Context, name string) ([]*net.MX, error) {
	_, err := z.ask(ctx, "mx:"+name)
	return nil, err
}

func (z *zone) LookupIPAddr(ctx context.Context, name string) ([]net.IPAddr, error) {
	_, err := z.ask(ctx, "ip:"+name)
	return nil, err
}

func (z *zone) LookupAddr(ctx context.Context, name string) ([]string, error) {
	return z.ask(ctx, "ptr:"+name)
}

const (
	good    = "8.8.4.4" // the address that good.test and its look-alikes send from
	servers = "v=spf1 ip4:8.8.4.4 -all"
)

func key() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, 32)) }

func keyRecord() string {
	return "v=DKIM1; k=ed25519; p=" + base64.StdEncoding.EncodeToString(key().Public().(ed25519.PublicKey))
}

func world() *zone {
	return &zone{fail: map[string]error{}, txt: map[string][]string{
		"good.test":                 {servers},
		"mail.good.test":            {servers},
		"_dmarc.good.test":          {"unrelated", "v=DMARC1; p=reject; sp=quarantine"},
		"s1._domainkey.good.test":   {keyRecord()},
		"s1._domainkey.m.test":      {keyRecord()},
		"strict.test":               {servers},
		"_dmarc.strict.test":        {"v=DMARC1;p=none;adkim=s;aspf=s"},
		"mail.strict.test":          {servers},
		"evil.test":                 {servers},
		"plain.test":                {servers},
		"_dmarc.broken.test":        {"v=DMARC1; p=whatever"},
		"_dmarc.twice.test":         {"v=DMARC1; p=reject", "v=DMARC1; p=none"},
		"good.co.uk":                {servers},
		"evil.co.uk":                {servers},
		"_dmarc.good.co.uk":         {"v=DMARC1; p=reject"},
		"_dmarc.co.uk":              {"v=DMARC1; p=none"},
		"xn--mller-kva.test":        {servers},
		"_dmarc.xn--mller-kva.test": {"v=DMARC1; p=quarantine"},
		"spf.broken.test":           {"v=spf1 nonsense:x"},
	}}
}

func text(from, more string) string {
	return "From: " + from + "\r\nTo: in@acme.test\r\nSubject: s\r\n" + more + "\r\nHello.\r\n"
}

func sign(t testing.TB, mail, domain string, change func(*dkim.SignOptions)) string {
	t.Helper()
	o := &dkim.SignOptions{Domain: domain, Selector: "s1", Signer: key(), HeaderKeys: []string{"From", "Subject"}}
	if change != nil {
		change(o)
	}
	var out bytes.Buffer
	if err := dkim.Sign(&out, strings.NewReader(mail), o); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// line is a report in one line: method result domain aligned reason.
func line(r Report) string {
	var out []string
	for _, c := range r.Checks {
		s := string(c.Method) + "=" + string(c.Result)
		if c.Domain != "" {
			s += " " + c.Domain
		}
		if c.Aligned {
			s += " aligned"
		}
		if c.Reason != "" {
			s += " (" + c.Reason + ")"
		}
		out = append(out, s)
	}
	return strings.Join(out, "; ")
}

func verify(t testing.TB, z *zone, m Mail) Report {
	t.Helper()
	v, err := New(z, Options{Budget: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return v.Verify(t.Context(), m)
}

func TestVerify(t *testing.T) {
	plain := text("Ana <ana@good.test>", "")
	signed := sign(t, plain, "good.test", nil)
	for name, x := range map[string]struct {
		raw, ip, from, helo, want string
	}{
		"spf speaks for From": {plain, good, "ana@good.test", "h", "spf=pass good.test aligned; dkim=none; dmarc=pass good.test aligned"},
		"spf of a sub-domain, relaxed": {plain, good, "bounce@mail.good.test", "h",
			"spf=pass mail.good.test aligned; dkim=none; dmarc=pass good.test aligned"},
		"spf of a sub-domain, strict": {text("a@strict.test", ""), good, "b@mail.strict.test", "h",
			"spf=pass mail.strict.test; dkim=none; dmarc=fail strict.test (policy_none)"},
		"a signature alone": {signed, "9.9.9.9", "b@nowhere.test", "h",
			"spf=none nowhere.test; dkim=pass good.test aligned; dmarc=pass good.test aligned"},
		"forged From, the forger's own domain is in order": {text("ceo@good.test", ""), good, "x@evil.test", "h",
			"spf=pass evil.test; dkim=none; dmarc=fail good.test (policy_reject)"},
		"forged From, signed by the forger": {sign(t, text("ceo@good.test", ""), "m.test", nil), "9.9.9.9", "x@m.test", "h",
			"spf=none m.test; dkim=pass m.test; dmarc=fail good.test (policy_reject)"},
		"forged From and MAIL FROM": {plain, "9.9.9.9", "ana@good.test", "h",
			"spf=fail good.test aligned; dkim=none; dmarc=fail good.test (policy_reject)"},
		"forged From of a sub-domain": {text("a@no.good.test", ""), "9.9.9.9", "a@evil.test", "h",
			"spf=fail evil.test; dkim=none; dmarc=fail no.good.test (policy_quarantine)"},
		"no policy":    {text("a@plain.test", ""), good, "a@plain.test", "h", "spf=pass plain.test aligned; dkim=none; dmarc=none plain.test (no_policy)"},
		"two policies": {text("a@twice.test", ""), good, "a@evil.test", "h", "spf=pass evil.test; dkim=none; dmarc=none twice.test (several_records)"},
		"a policy that can't be read": {text("a@broken.test", ""), good, "a@evil.test", "h",
			"spf=pass evil.test; dkim=none; dmarc=permerror broken.test (bad_record)"},
		"a record of spf that can't be read": {text("a@good.test", ""), good, "a@spf.broken.test", "h",
			"spf=permerror spf.broken.test (bad_record); dkim=none; dmarc=fail good.test (policy_reject)"},
		"neighbours below a public suffix": {text("a@good.co.uk", ""), good, "a@evil.co.uk", "h",
			"spf=pass evil.co.uk; dkim=none; dmarc=fail good.co.uk (policy_reject)"},
		"the public suffix itself": {text("a@good.co.uk", ""), good, "a@co.uk", "h",
			"spf=none co.uk; dkim=none; dmarc=fail good.co.uk (policy_reject)"},
		"an internationalised domain": {text("a@Müller.test", ""), good, "a@müller.test", "h",
			"spf=pass xn--mller-kva.test aligned; dkim=none; dmarc=pass xn--mller-kva.test aligned"},
		"a bounce is the name in HELO":    {plain, good, "", "mail.good.test", "spf=pass mail.good.test aligned; dkim=none; dmarc=pass good.test aligned"},
		"a bounce from a literal":         {plain, good, "", "[8.8.4.4]", "spf=none; dkim=none; dmarc=fail good.test (policy_reject)"},
		"MAIL FROM with a second at sign": {plain, good, "ana@good.test@evil.test", "h", "spf=pass evil.test; dkim=none; dmarc=fail good.test (policy_reject)"},
		"several mailboxes in From": {text("ana@good.test, x@evil.test", ""), good, "ana@good.test", "h",
			"spf=pass good.test; dkim=none; dmarc=none (several_from)"},
		"several From fields": {text("ana@good.test", "From: x@evil.test\r\n"), good, "ana@good.test", "h",
			"spf=pass good.test; dkim=none; dmarc=none (several_from)"},
		"a second From with a space before the colon": {text("ana@good.test", "from : x@evil.test\r\n"), good, "ana@good.test", "h",
			"spf=pass good.test; dkim=none; dmarc=none (several_from)"},
		"no From": {"Subject: s\r\n\r\nx", good, "ana@good.test", "h", "spf=pass good.test; dkim=none; dmarc=none (no_from)"},
		"From that is no mailbox": {text("ana@good.test)x@evil.test", ""), good, "ana@good.test", "h",
			"spf=pass good.test; dkim=none; dmarc=none (bad_from)"},
		"From at an address literal": {text("ana@[8.8.4.4]", ""), good, "ana@good.test", "h", "spf=pass good.test; dkim=none; dmarc=none (bad_from)"},
		"From of one label":          {text("ana@localhost", ""), good, "ana@good.test", "h", "spf=pass good.test; dkim=none; dmarc=none (bad_from)"},
		"others' results are not looked at": {"Authentication-Results: mx.acme.test; dmarc=pass header.from=good.test\r\n" + plain, "9.9.9.9", "x@nowhere.test", "h",
			"spf=none nowhere.test; dkim=none; dmarc=fail good.test (policy_reject)"},
		"nobody knows who brought it":  {signed, "", "ana@good.test", "", "spf=unavailable (no_connecting_ip); dkim=unavailable (no_connecting_ip); dmarc=unavailable (no_connecting_ip)"},
		"a relay of ours brought it":   {plain, "127.0.0.1", "ana@good.test", "h", "spf=unavailable (not_a_public_ip); dkim=none; dmarc=unavailable good.test (not_a_public_ip)"},
		"a relay of ours, a signature": {signed, "10.0.0.9", "ana@good.test", "h", "spf=unavailable (not_a_public_ip); dkim=pass good.test aligned; dmarc=pass good.test aligned"},
		"a relay of ours, another's signature": {sign(t, plain, "m.test", nil), "127.0.0.1", "ana@good.test", "h",
			"spf=unavailable (not_a_public_ip); dkim=pass m.test; dmarc=unavailable good.test (not_a_public_ip)"},
		"an address of the documentation":  {plain, "2001:db8::1", "ana@good.test", "h", "spf=unavailable (not_a_public_ip); dkim=none; dmarc=unavailable good.test (not_a_public_ip)"},
		"an IPv4 address in IPv6 notation": {plain, "::ffff:" + good, "ana@good.test", "h", "spf=pass good.test aligned; dkim=none; dmarc=pass good.test aligned"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := line(verify(t, world(), Mail{[]byte(x.raw), x.ip, x.helo, x.from})); got != x.want {
				t.Errorf("got  %s\nwant %s", got, x.want)
			}
		})
	}
}

func TestSignatures(t *testing.T) {
	plain := text("ana@good.test", "")
	signed := sign(t, plain, "good.test", nil)
	many := plain
	for range maxSignatures + 1 {
		many = sign(t, many, "good.test", nil)
	}
	keyless, weak := world(), world()
	delete(keyless.txt, "s1._domainkey.good.test")
	weak.txt["s1._domainkey.good.test"] = []string{keyRecord() + "; n=" + strings.Repeat("x", maxTXT)}
	twice := world()
	twice.txt["s1._domainkey.good.test"] = []string{keyRecord(), keyRecord()}
	for name, x := range map[string]struct {
		zone      *zone
		raw, want string
	}{
		"good":                     {world(), signed, "pass"},
		"body altered":             {world(), strings.Replace(signed, "Hello", "Hallo", 1), "fail body_altered"},
		"From altered":             {world(), strings.Replace(signed, "From: ana", "From: eve", 1), "fail bad_signature"},
		"a part of the body only":  {world(), strings.Replace(signed, "DKIM-Signature: ", "DKIM-Signature: l=3; ", 1), "fail body_length_tag"},
		"SHA-1":                    {world(), strings.Replace(signed, "ed25519-sha256", "ed25519-sha1", 1), "permerror weak_hash"},
		"From not signed":          {world(), strings.Replace(signed, "h=From:Subject", "h=Subject", 1), "permerror malformed"},
		"expired":                  {world(), sign(t, plain, "good.test", func(o *dkim.SignOptions) { o.Expiration = time.Unix(1, 0) }), "permerror expired"},
		"no key":                   {keyless, signed, "permerror no_key"},
		"two keys":                 {twice, signed, "permerror bad_key"},
		"a record of many KB":      {weak, signed, "permerror no_key"},
		"more than are looked at":  {world(), many, "pass pass pass pass pass none too_many_signatures"},
		"a signature of many KB":   {world(), "DKIM-Signature: v=1; h=" + strings.Repeat("from:", maxSignature/5) + "\r\n" + plain, "permerror header_too_large"},
		"thousands of fields":      {world(), strings.Repeat("X: y\r\n", maxFields) + signed, "permerror header_too_large"},
		"a field that never ends":  {world(), "DKIM-Signature: v=1\r\nX: y\r\n" + strings.Repeat(" z\r\n", 1<<20) + plain, "permerror header_too_large"},
		"a header without its end": {world(), "DKIM-Signature: v=1", "permerror malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			r := verify(t, x.zone, Mail{[]byte(x.raw), "9.9.9.9", "h", "x@nowhere.test"})
			var got []string
			for _, c := range r.Checks[1 : len(r.Checks)-1] {
				got = append(got, strings.TrimSpace(string(c.Result)+" "+c.Reason))
			}
			if s := strings.Join(got, " "); s != x.want {
				t.Errorf("got %s, want %s", s, x.want)
			}
		})
	}
}

// What DNS does not tell is neither for a sender nor against it.
func TestTemporaryFailures(t *testing.T) {
	servfail := &net.DNSError{Err: "server misbehaving", IsTemporary: true}
	signed := sign(t, text("ana@good.test", ""), "good.test", nil)
	for name, x := range map[string]struct {
		fail map[string]error
		want string
	}{
		"spf":             {map[string]error{"good.test": servfail, "s1._domainkey.good.test": nil}, "spf=temperror good.test aligned (dns_failed); dkim=pass good.test aligned; dmarc=pass good.test aligned"},
		"the key":         {map[string]error{"s1._domainkey.good.test": servfail}, "spf=fail good.test aligned; dkim=temperror good.test aligned (dns_failed); dmarc=temperror good.test (dns_failed)"},
		"the policy":      {map[string]error{"_dmarc.good.test": servfail}, "spf=fail good.test aligned; dkim=pass good.test aligned; dmarc=temperror good.test (dns_failed)"},
		"an odd failure":  {map[string]error{"s1._domainkey.good.test": errors.New("short read")}, "spf=fail good.test aligned; dkim=temperror good.test aligned (dns_failed); dmarc=temperror good.test (dns_failed)"},
		"a time-out":      {map[string]error{"s1._domainkey.good.test": context.DeadlineExceeded}, "spf=fail good.test aligned; dkim=temperror good.test aligned (dns_failed); dmarc=temperror good.test (dns_failed)"},
		"a cancelled one": {map[string]error{"s1._domainkey.good.test": context.Canceled}, "spf=fail good.test aligned; dkim=temperror good.test aligned (dns_failed); dmarc=temperror good.test (dns_failed)"},
	} {
		t.Run(name, func(t *testing.T) {
			z := world()
			z.fail = x.fail
			if got := line(verify(t, z, Mail{[]byte(signed), "9.9.9.9", "h", "ana@good.test"})); got != x.want {
				t.Errorf("got  %s\nwant %s", got, x.want)
			}
		})
	}
	z := world()
	z.slow = true // the budget of the whole mail ends it
	want := "spf=temperror good.test aligned (dns_failed); dkim=temperror good.test aligned (dns_failed); dmarc=temperror good.test (dns_failed)"
	if got := line(verify(t, z, Mail{[]byte(signed), "9.9.9.9", "h", "ana@good.test"})); got != want {
		t.Errorf("no answer at all: %s", got)
	}
}

// Names are asked for whole, so that no search list of the host makes others of them, and nothing is asked about a mail
// that a relay of ours brought unsigned.
func TestQuestions(t *testing.T) {
	z := world()
	verify(t, z, Mail{[]byte(sign(t, text("ana@no.good.test", ""), "good.test", nil)), good, "h", "ana@good.test"})
	want := []string{"good.test.", "s1._domainkey.good.test.", "_dmarc.no.good.test.", "_dmarc.good.test."}
	if !reflect.DeepEqual(z.asked, want) {
		t.Errorf("asked %q, want %q", z.asked, want)
	}
	z = world()
	verify(t, z, Mail{[]byte(text("ana@good.test", "")), "127.0.0.1", "h", "ana@good.test"})
	if len(z.asked) > 0 {
		t.Errorf("asked %q of a local mail", z.asked)
	}
}

func TestSameOrganization(t *testing.T) {
	for _, x := range []struct {
		a, b string
		want bool
	}{
		{"a.test", "a.test", true},
		{"x.a.test", "y.z.a.test", true},
		{"a.test", "b.test", false},
		{"a.co.uk", "b.co.uk", false},
		{"a.github.io", "b.github.io", false},
		{"co.uk", "a.co.uk", false},
		{"nota.test", "a.test", false},
		{"", "a.test", false},
	} {
		if got := SameOrganization(x.a, x.b); got != x.want {
			t.Errorf("%s and %s: %t", x.a, x.b, got)
		}
	}
}

func TestNew(t *testing.T) {
	if _, err := New(nil, Options{}); err == nil {
		t.Error("no resolver: accepted")
	}
}

// Whatever stands in the mail and its key record: no panic, no pass without a key, and never a pass for a From that the
// signature's domain does not own.
func FuzzVerify(f *testing.F) {
	f.Add([]byte(sign(f, text("ana@good.test", ""), "good.test", nil)), keyRecord())
	f.Add([]byte("From: a@b.test\n\n"), "v=DKIM1; p=")
	f.Add([]byte("DKIM-Signature: v=1; a=rsa-sha256; d=good.test; s=s1; h=from; bh=; b=\r\nFrom: a@good.test\r\n\r\n"), "k=rsa; p=MA==")
	f.Fuzz(func(t *testing.T, raw []byte, record string) {
		z := world()
		z.txt["s1._domainkey.good.test"] = []string{record}
		r := verify(t, z, Mail{raw, "9.9.9.9", "h", "x@nowhere.test"})
		for _, c := range r.Checks {
			if c.Method == DMARC && c.Result == Pass && (r.From == "" || !SameOrganization(c.Domain, "good.test") && !SameOrganization(c.Domain, "m.test")) {
				t.Errorf("%q passed: %s", r.From, line(r))
			}
		}
	})
}

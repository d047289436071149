package smtpd

import (
	"strings"
	"testing"
)

// Whatever stands in RCPT TO, what is looked up is one plain address: one @, lower case, no control, no space, short; and
// giving it again gives itself, so nobody further on can split it in another way.
func FuzzRcptAddress(f *testing.F) {
	for _, seed := range []string{
		"agent@acme.test", "AGENT@ACME.TEST", "postmaster", "a@b@c", "agent%x@acme.test", `a\b@c.test`, "a b@c.test",
		"ágent@acme.test", "agent@müller.test", "agent@[127.0.0.1]", "agent@acme.test.", ".a@acme.test", "a@-acme.test",
		"\xff@acme.test", "a\r\n@acme.test", "@acme.test", "a@", "", strings.Repeat("a", 65) + "@b.test", "a@" + strings.Repeat("b.", 130) + "c",
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, raw string, smtputf8 bool) {
		got, bad := recipientAddress(raw, smtputf8, "mx.acme.test")
		if (got == "") == (bad == nil) {
			t.Fatalf("%q: address %q and refusal %v", raw, got, bad)
		}
		if bad != nil {
			if bad.Code/100 != 5 || strings.Contains(raw, bad.Message) && raw != "" {
				t.Fatalf("%q: reply %v", raw, bad)
			}
			return
		}
		if strings.Count(got, "@") != 1 || got != strings.ToLower(got) || len(got) > 2*maxAddress || !isASCII(got) ||
			strings.ContainsAny(got, " \t\r\n\x00\"<>(),:;\\[]") {
			t.Fatalf("%q: looked up as %q", raw, got)
		}
		if again, bad := recipientAddress(got, false, "mx.acme.test"); len(got) <= maxAddress && again != got {
			t.Fatalf("%q became %q, and that %q (%v)", raw, got, again, bad)
		}
	})
}

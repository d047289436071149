package mailauth

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/emersion/go-msgauth/dkim"
)

// maxSignatures is how many signatures are checked: each costs a look-up and a pass over the mail.
const maxSignatures = 5

// dkim checks the signatures, the first of them first. The library refuses what signs only a part of the body (l=), SHA-1,
// keys under 1,024 bits, and signatures that leave From out.
func (v *Verifier) dkim(ctx context.Context, h head, raw []byte) []Check {
	switch {
	case h.tooLarge:
		return []Check{{Method: DKIM, Result: PermError, Reason: ReasonHeader}}
	case h.signatures == 0:
		return []Check{{Method: DKIM, Result: None}}
	}
	list, err := dkim.VerifyWithOptions(bytes.NewReader(raw), &dkim.VerifyOptions{
		MaxVerifications: maxSignatures,
		LookupTXT:        func(name string) ([]string, error) { return v.dns.LookupTXT(ctx, name) },
	})
	checks := make([]Check, 0, len(list)+1)
	for _, one := range list {
		c := Check{Method: DKIM}
		c.Domain, _ = hostname(one.Domain)
		c.Result, c.Reason = signature(one.Err)
		if c.Domain == "" && c.Result == Pass {
			c.Result, c.Reason = PermError, ReasonMalformed
		}
		checks = append(checks, c)
	}
	switch {
	case errors.Is(err, dkim.ErrTooManySignatures):
		checks = append(checks, Check{Method: DKIM, Result: None, Reason: ReasonTooManySignatures})
	case err != nil:
		// What broke off the reading leaves nothing that could be relied on.
		return []Check{{Method: DKIM, Result: PermError, Reason: ReasonMalformed}}
	}
	return checks
}

// failures are the library's words for what is wrong, which is all it gives, and the codes that we make of them.
//
//nolint:gochecknoglobals // constant table
var failures = []struct{ words, reason string }{
	{"body length", ReasonBodyLength},
	{"too weak", ReasonWeakHash},
	{"has expired", ReasonExpired},
	{"body hash did not", ReasonAltered},
	{"signature did not", ReasonBadSignature},
	{"no key for", ReasonNoKey},
	{"no valid key", ReasonNoKey},
	{"revoked", ReasonNoKey},
	{"too short", ReasonBadKey},
	{"key", ReasonBadKey},
}

func signature(err error) (Result, string) {
	if err == nil {
		return Pass, ""
	}
	if dkim.IsTempFail(err) {
		return TempError, ReasonDNS
	}
	result, reason := Fail, ReasonMalformed
	if dkim.IsPermFail(err) {
		result = PermError
	}
	for _, f := range failures {
		if strings.Contains(err.Error(), f.words) {
			reason = f.reason
			break
		}
	}
	return result, reason
}

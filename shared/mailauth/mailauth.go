// Package mailauth finds out which domains vouch for a mail: SPF (RFC 7208) for the connecting address, DKIM (RFC 6376, 8301)
// for the bytes, DMARC (RFC 7489) for the one domain that stands in From. It judges nobody: what a result is worth is the
// domain's to say. It knows no inbox, no store and no network but the resolver it is handed, and it is bounded: 5 signatures,
// 5 seconds of DNS, the header block of the mail parser. What other hosts claim to have found (Authentication-Results, ARC) vouches
// for nothing: whoever writes a mail can write that too.
package mailauth

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// Method is what was checked.
type Method string

// The methods, in the order of a Report.
const (
	SPF   Method = "spf"
	DKIM  Method = "dkim"
	DMARC Method = "dmarc"
)

// Result is the outcome of a check, in the words of RFC 8601 section 2.7.
type Result string

// The results. Only Pass vouches for anything; TempError is neither for nor against a sender.
const (
	Pass        Result = "pass"
	Fail        Result = "fail"
	SoftFail    Result = "softfail"
	Neutral     Result = "neutral"
	None        Result = "none"
	TempError   Result = "temperror"
	PermError   Result = "permerror"
	Unavailable Result = "unavailable" // it could not be checked: nobody knows which host brought the mail
)

// The reasons of checks: codes of ours.
const (
	ReasonNoIP              = "no_connecting_ip"
	ReasonLocalIP           = "not_a_public_ip"
	ReasonDNS               = "dns_failed"
	ReasonBadRecord         = "bad_record"
	ReasonSeveralRecords    = "several_records"
	ReasonNoPolicy          = "no_policy"
	ReasonPolicyNone        = "policy_none"
	ReasonPolicyQuarantine  = "policy_quarantine"
	ReasonPolicyReject      = "policy_reject"
	ReasonSeveralFrom       = "several_from"
	ReasonNoFrom            = "no_from"
	ReasonBadFrom           = "bad_from"
	ReasonHeader            = "header_too_large"
	ReasonTooManySignatures = "too_many_signatures"
	ReasonBodyLength        = "body_length_tag"
	ReasonWeakHash          = "weak_hash"
	ReasonExpired           = "expired"
	ReasonAltered           = "body_altered"
	ReasonBadSignature      = "bad_signature"
	ReasonNoKey             = "no_key"
	ReasonBadKey            = "bad_key"
	ReasonMalformed         = "malformed"
	ReasonNotChecked        = "not_checked"     // by the receiver that checked the rest
	ReasonReceiver          = "receiver_failed" // it could not finish its check
	ReasonOtherFrom         = "other_from"      // it read another From than the one that is shown
)

// Check is the outcome of one method for one domain.
type Check struct {
	Method  Method
	Result  Result
	Domain  string // lower case, A-labels; the sender's choice, whatever the result; empty: none that could be one
	Aligned bool   // it is the domain of From, as DMARC compares them (RFC 7489 section 3.1)
	Reason  string // a code of ours; empty: nothing to add
}

// Report is all that is known of a mail.
type Report struct {
	// From is the one author's address as the signatures cover it; empty when there is none, or more than one.
	From   string
	Checks []Check // SPF, each DKIM signature, DMARC
}

// Mail is what is checked.
type Mail struct {
	Raw      []byte
	RemoteIP string // of the client; empty: unknown, and then nothing can pass
	HELO     string
	MailFrom string // empty for bounces
}

// Resolver asks DNS. *net.Resolver is one. A name that does not exist is a *net.DNSError with IsNotFound.
type Resolver interface {
	LookupTXT(ctx context.Context, name string) ([]string, error)
	LookupMX(ctx context.Context, name string) ([]*net.MX, error)
	LookupIPAddr(ctx context.Context, host string) ([]net.IPAddr, error)
	LookupAddr(ctx context.Context, addr string) ([]string, error)
}

var _ Resolver = (*net.Resolver)(nil)

// Budget is how long all look-ups of one mail may take together.
const Budget = 5 * time.Second

// Options bound a Verifier. A zero field takes the default.
type Options struct {
	Budget   time.Duration // Budget
	Patience time.Duration // how long look-ups may take before their mail counts as slow; 500 ms
	Slow     int           // slow mails at once; 4
}

// Verifier checks mails. It may be used by many at once. Who answers DNS slowly on purpose holds up whoever waits for the checks, so
// only a few mails may be slow at once: the look-ups of the others fail for now, which is neither for nor against their senders.
type Verifier struct {
	dns      Resolver
	budget   time.Duration
	patience time.Duration
	slow     *semaphore.Weighted
}

// New makes a Verifier.
func New(dns Resolver, o Options) (*Verifier, error) {
	if dns == nil {
		return nil, errors.New("mailauth: a resolver is needed")
	}
	if o.Budget <= 0 {
		o.Budget = Budget
	}
	if o.Patience <= 0 {
		o.Patience = 500 * time.Millisecond
	}
	if o.Slow <= 0 {
		o.Slow = 4
	}
	return &Verifier{dns: absolute{dns}, budget: o.Budget, patience: o.Patience, slow: semaphore.NewWeighted(int64(o.Slow))}, nil
}

// bounded is the context of one mail's look-ups. end must be called.
func (v *Verifier) bounded(ctx context.Context) (bounded context.Context, end func()) {
	bounded, cancel := context.WithTimeout(ctx, v.budget)
	var mu sync.Mutex
	over, slow := false, false
	timer := time.AfterFunc(v.patience, func() {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		if slow = v.slow.TryAcquire(1); !slow {
			cancel()
		}
	})
	return bounded, func() {
		timer.Stop()
		cancel()
		mu.Lock()
		defer mu.Unlock()
		over = true
		if slow {
			v.slow.Release(1)
		}
	}
}

// Verify checks one mail. A context that ends makes what is left a TempError; the caller looks at its context.
func (v *Verifier) Verify(ctx context.Context, m Mail) Report {
	if m.RemoteIP == "" {
		return Unchecked(m.Raw)
	}
	h := readHead(m.Raw)
	author, why := h.author()
	report := Report{From: author.Email}
	ctx, end := v.bounded(ctx)
	defer end()
	report.Checks = append(report.Checks, v.spf(ctx, m))
	report.Checks = append(report.Checks, v.dkim(ctx, h, m.Raw)...)
	report.Checks = append(report.Checks, v.dmarc(ctx, author.Domain, why, report.Checks))
	return report
}

// Unchecked is the report of a mail of which nobody knows which host brought it: nothing passes, nothing fails.
func Unchecked(raw []byte) Report {
	author, _ := readHead(raw).author()
	report := Report{From: author.Email}
	for _, method := range []Method{SPF, DKIM, DMARC} {
		report.Checks = append(report.Checks, Check{Method: method, Result: Unavailable, Reason: ReasonNoIP})
	}
	return report
}

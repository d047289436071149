package inbox

import (
	"context"
	"fmt"
	"strings"
)

// SenderCheck asks what would become of a mail.
type SenderCheck struct {
	Inbox string // id or slug
	From  string
	// Proof is what would be proved of it: a Require, or "fail".
	Proof string
}

// ProofFail is a mail that fails DMARC.
const ProofFail = "fail"

// SenderAnswer is what would become of it.
type SenderAnswer struct {
	From     string // in its normal form
	Decision string // accept, label, quarantine, or reject: at SMTP, where this is its MAIL FROM too
	Reason   string // why it would be held back
	Trust    Trust
	Entry    *AllowedSender // the one that decides; nil: none
}

// Check says what would become of a mail from an address, without any mail.
func (s *Senders) Check(ctx context.Context, a Actor, q SenderCheck) (SenderAnswer, error) {
	from, ok := normalAddress(strings.TrimSpace(q.From))
	if !ok {
		return SenderAnswer{}, invalid("body.from", "an address, such as ana@example.com")
	}
	checks, err := proof(q.Proof)
	if err != nil {
		return SenderAnswer{}, err
	}
	in, err := s.d.live(ctx, a, q.Inbox)
	if err != nil {
		return SenderAnswer{}, err
	}
	entries, err := s.d.Senders.SendersFor(ctx, a.Workspace, in.ID, from)
	if err != nil {
		return SenderAnswer{}, fmt.Errorf("senders of %s: %w", in.ID, err)
	}
	policy, unlisted := in.Policy()
	j := Judge(SenderFacts{
		From: []Address{{Address: from}}, Author: from, Checks: checks, Own: ownDomain(in.Address), SameOwner: below,
	}, entries, policy, unlisted, s.d.now())
	answer := SenderAnswer{From: from, Decision: "accept", Reason: j.Held, Trust: j.Trust}
	switch {
	case AtDoor(from, entries, policy, unlisted, s.d.now()) != "":
		answer.Decision = "reject"
	case j.Held != "":
		answer.Decision = "quarantine"
	case j.Label:
		answer.Decision = "label"
	}
	for _, e := range entries {
		if e.ID == j.Entry {
			answer.Entry = &e
		}
	}
	return answer, nil
}

func proof(p string) ([]AuthCheck, error) {
	switch p {
	case string(RequireDMARC):
		return []AuthCheck{{Method: methodDMARC, Result: resultPass, Aligned: true}}, nil
	case string(RequireSPFOrDKIM):
		return []AuthCheck{{Method: methodSPF, Result: resultPass, Aligned: true}, {Method: methodDMARC, Result: resultNone}}, nil
	case "", string(RequireNone):
		return []AuthCheck{{Method: methodSPF, Result: resultNone}, {Method: methodDMARC, Result: resultNone}}, nil
	case ProofFail:
		return []AuthCheck{{Method: methodDMARC, Result: resultFail}}, nil
	}
	return nil, invalid("body.auth", "none, spf_or_dkim, dmarc or fail")
}

// below stands in for the list of public suffixes, which this room does not carry: one domain is the other's or below it.
func below(a, b string) bool {
	return a == b || strings.HasSuffix(a, "."+b) || strings.HasSuffix(b, "."+a)
}

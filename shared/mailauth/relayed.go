package mailauth

import (
	"bytes"
	"strings"

	"github.com/emersion/go-msgauth/dmarc"
)

// Findings are what a receiver of ours found out as it took a mail, in its own notice and not in a header of the mail. Empty
// fields were not checked.
type Findings struct {
	SPF, DKIM, DMARC Result
	Policy           string // what the domain of From asks for when DMARC fails: none, quarantine or reject; empty: not told
	// ServID is the authserv-id (RFC 8601 section 2.5) under which that receiver also writes what it found on top of the mail.
	ServID string
}

// Relayed is the report of a mail that a receiver of ours has checked. What it leaves out stays unknown: it names no domain, so
// SPF is about that of MAIL FROM, a signature is about nobody's (and vouches only through DMARC), and DMARC is about the domain
// of the one From. DMARC passes only if the field that the receiver wrote on top, where there is one, speaks of that domain too: a
// From field that two programs read differently would else let the pass of one domain speak for another. That field can take a
// pass away and never give one, so it does not matter who wrote it.
func Relayed(raw []byte, mailFrom string, found Findings) Report {
	h := readHead(raw)
	author, why := h.author()
	report := Report{From: author.Email}
	spf := Check{Method: SPF, Result: found.SPF}
	if at := strings.LastIndexByte(mailFrom, '@'); at >= 0 {
		spf.Domain, _ = hostname(mailFrom[at+1:])
	}
	about := Check{Method: DMARC, Result: found.DMARC}
	var ok bool
	switch about.Domain, ok = hostname(author.Domain); {
	case why != "" || !ok:
		if why == "" {
			why = ReasonBadFrom
		}
		about.Result, about.Domain, about.Reason = None, "", why
	case found.DMARC == Pass && h.speaksOfAnother(found.ServID, about.Domain):
		about.Result, about.Reason = PermError, ReasonOtherFrom
	default:
		spf.Aligned = spf.Domain != "" && SameOrganization(spf.Domain, about.Domain)
		about.Aligned = found.DMARC == Pass
		if found.DMARC == Fail {
			about.Reason = reasonOf(dmarc.Policy(found.Policy))
		}
		if found.DMARC == None {
			about.Reason = ReasonNoPolicy
		}
	}
	for _, c := range []Check{spf, {Method: DKIM, Result: found.DKIM}, about} {
		switch {
		case c.Result == "":
			c.Result, c.Reason = Unavailable, ReasonNotChecked
		case c.Result == TempError && c.Reason == "":
			c.Reason = ReasonReceiver
		}
		report.Checks = append(report.Checks, c)
	}
	return report
}

// speaksOfAnother reports whether the topmost Authentication-Results field is of this receiver and has a DMARC result for the
// domain of somebody else than domain's owner. Comments are not taken apart: they can only add a result that disagrees.
func (h head) speaksOfAnother(servID, domain string) bool {
	clauses := bytes.Split(h.results, []byte(";"))
	if servID == "" || !strings.EqualFold(string(bytes.TrimSpace(clauses[0])), servID) {
		return false
	}
	for _, clause := range clauses[1:] {
		fields := strings.Fields(strings.ToLower(string(clause)))
		if len(fields) == 0 || !strings.HasPrefix(fields[0], "dmarc=") {
			continue
		}
		for _, f := range fields[1:] {
			if value, is := strings.CutPrefix(f, "header.from="); is {
				other, ok := hostname(strings.Trim(value, `"`))
				if !ok || !SameOrganization(other, domain) {
					return true
				}
			}
		}
	}
	return false
}

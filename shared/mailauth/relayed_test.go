package mailauth

import (
	"fmt"
	"strings"
	"testing"
)

// sesHead is what Amazon SES writes on top of a mail that it takes.
const sesHead = "Return-Path: <ana@good.test>\r\n" +
	"Received: from mx.good.test (mx.good.test [8.8.4.4])\r\n by inbound-smtp.eu-west-1.amazonaws.com with SMTP id d6iitobk75ur44p8kdnnp7g2n800000000000001\r\n" +
	" for agent@acme.test;\r\n Mon, 30 Nov 2026 10:15:04 +0000 (UTC)\r\nX-SES-Spam-Verdict: PASS\r\nX-SES-Virus-Verdict: PASS\r\n" +
	"Authentication-Results: amazonses.com;\r\n spf=pass (spfCheck: domain of good.test designates 8.8.4.4 as permitted sender) client-ip=8.8.4.4; envelope-from=ana@good.test; helo=mx.good.test;\r\n" +
	" dkim=pass header.i=@good.test;\r\n dmarc=pass header.from=good.test;\r\n"

func TestRelayed(t *testing.T) {
	const mail = "From: Ana <ana@good.test>\r\nSubject: s\r\n\r\nHello.\r\n"
	const id = "amazonses.com"
	all := Findings{SPF: Pass, DKIM: Pass, DMARC: Pass, ServID: id}
	failed := Findings{SPF: Fail, DKIM: Fail, DMARC: Fail, ServID: id}
	with := func(f Findings, policy string) Findings { f.Policy = policy; return f }
	line := func(text string) string {
		return strings.Replace(sesHead, "header.from=good.test", text, 1) + mail
	}
	for name, x := range map[string]struct {
		raw, from string // MAIL FROM
		found     Findings
		want      string // author: method result domain ! for aligned reason
	}{
		"all pass":                       {mail, "ana@good.test", all, "ana@good.test: spf pass good.test! / dkim pass / dmarc pass good.test!"},
		"all pass, with SES's head":      {sesHead + mail, "ana@good.test", all, "ana@good.test: spf pass good.test! / dkim pass / dmarc pass good.test!"},
		"bounce address below":           {mail, "bounces+7@mail.good.test", all, "ana@good.test: spf pass mail.good.test! / dkim pass / dmarc pass good.test!"},
		"SPF of somebody else":           {mail, "x@evil.test", with(all, ""), "ana@good.test: spf pass evil.test / dkim pass / dmarc pass good.test!"},
		"SPF passes, no policy":          {mail, "x@evil.test", Findings{SPF: Pass, DKIM: None, DMARC: None}, "ana@good.test: spf pass evil.test / dkim none / dmarc none good.test no_policy"},
		"a signature vouches for nobody": {mail, "", Findings{SPF: None, DKIM: Pass, DMARC: None}, "ana@good.test: spf none / dkim pass / dmarc none good.test no_policy"},
		"a bounce":                       {mail, "", all, "ana@good.test: spf pass / dkim pass / dmarc pass good.test!"},
		"all fail":                       {mail, "ana@good.test", failed, "ana@good.test: spf fail good.test! / dkim fail / dmarc fail good.test policy_none"},
		"fail, reject":                   {mail, "x@evil.test", with(failed, "reject"), "ana@good.test: spf fail evil.test / dkim fail / dmarc fail good.test policy_reject"},
		"fail, quarantine":               {mail, "x@evil.test", with(failed, "quarantine"), "ana@good.test: spf fail evil.test / dkim fail / dmarc fail good.test policy_quarantine"},
		"fail, SES's head says pass":     {sesHead + mail, "x@evil.test", failed, "ana@good.test: spf fail evil.test / dkim fail / dmarc fail good.test policy_none"},
		"SES could not":                  {mail, "ana@good.test", Findings{SPF: TempError, DKIM: TempError, DMARC: TempError}, "ana@good.test: spf temperror good.test! receiver_failed / dkim temperror receiver_failed / dmarc temperror good.test receiver_failed"},
		"only SPF was checked":           {mail, "ana@good.test", Findings{SPF: Pass}, "ana@good.test: spf pass good.test! / dkim unavailable not_checked / dmarc unavailable good.test not_checked"},
		"two From fields":                {"From: eve@evil.test\r\n" + mail, "x@evil.test", all, ": spf pass evil.test / dkim pass / dmarc none several_from"},
		"two mailboxes in From":          {"From: ana@good.test, eve@evil.test\r\n\r\n", "x@evil.test", all, ": spf pass evil.test / dkim pass / dmarc none several_from"},
		"no From":                        {"Subject: s\r\n\r\nFrom: ana@good.test\r\n", "x@evil.test", all, ": spf pass evil.test / dkim pass / dmarc none no_from"},
		"a From that is no address":      {"From: ana\r\n\r\n", "x@evil.test", all, ": spf pass evil.test / dkim pass / dmarc none bad_from"},
		"From at a bare name":            {"From: ana@localhost\r\n\r\n", "x@evil.test", all, "ana@localhost: spf pass evil.test / dkim pass / dmarc none bad_from"},
		"a head over the bound":          {"From: ana@good.test\r\nX: " + strings.Repeat("y", maxField+1) + "\r\n\r\n", "x@evil.test", all, ": spf pass evil.test / dkim pass / dmarc none header_too_large"},
		"SES read another From":          {line("header.from=evil.test"), "ana@good.test", all, "ana@good.test: spf pass good.test / dkim pass / dmarc permerror good.test other_from"},
		"SES read another From, quoted":  {line(`header.from="evil.test"`), "ana@good.test", all, "ana@good.test: spf pass good.test / dkim pass / dmarc permerror good.test other_from"},
		"SES read no domain":             {line("header.from=???"), "ana@good.test", all, "ana@good.test: spf pass good.test / dkim pass / dmarc permerror good.test other_from"},
		"SES read the organization":      {line("header.from=GOOD.TEST"), "ana@good.test", all, "ana@good.test: spf pass good.test! / dkim pass / dmarc pass good.test!"},
		"a result smuggled by HELO":      {strings.Replace(sesHead, "helo=mx.good.test", "helo=x; dmarc=pass header.from=good.test", 1) + mail, "x@evil.test", all, "ana@good.test: spf pass evil.test / dkim pass / dmarc pass good.test!"},
		"smuggled, SES read another":     {strings.Replace(line("header.from=evil.test"), "helo=mx.good.test", "helo=x; dmarc=pass header.from=good.test", 1), "x@evil.test", all, "ana@good.test: spf pass evil.test / dkim pass / dmarc permerror good.test other_from"},
		"the sender's own field":         {sesHead + "Authentication-Results: amazonses.com; dmarc=pass header.from=evil.test\r\n" + mail, "ana@good.test", all, "ana@good.test: spf pass good.test! / dkim pass / dmarc pass good.test!"},
		"the sender's field can't pass":  {"Authentication-Results: amazonses.com; spf=pass; dkim=pass header.d=good.test; dmarc=pass header.from=good.test\r\n" + mail, "x@evil.test", failed, "ana@good.test: spf fail evil.test / dkim fail / dmarc fail good.test policy_none"},
		"another's field":                {"Authentication-Results: mx.evil.test; dmarc=pass header.from=evil.test\r\n" + mail, "ana@good.test", all, "ana@good.test: spf pass good.test! / dkim pass / dmarc pass good.test!"},
		"a field without results":        {"Authentication-Results: amazonses.com\r\n" + mail, "ana@good.test", all, "ana@good.test: spf pass good.test! / dkim pass / dmarc pass good.test!"},
	} {
		t.Run(name, func(t *testing.T) {
			r := Relayed([]byte(x.raw), x.from, x.found)
			var parts []string
			for _, c := range r.Checks {
				domain := c.Domain
				if c.Aligned {
					domain += "!"
				}
				parts = append(parts, strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %s", c.Method, c.Result, domain, c.Reason)), " "))
			}
			if got := r.From + ": " + strings.Join(parts, " / "); got != x.want {
				t.Errorf("got  %s\nwant %s", got, x.want)
			}
		})
	}
}

// Whatever a mail says of itself: DMARC passes only where the receiver says so, and then for the one From.
func FuzzRelayed(f *testing.F) {
	f.Add([]byte(sesHead+"From: ana@good.test\r\n\r\n"), "ana@good.test", true)
	f.Add([]byte("From: ana@good.test\r\nAuthentication-Results: amazonses.com;;dmarc= header.from=\r\n\r\n"), "", false)
	f.Add([]byte("From: a@b, c@d\r\n"), "@", true)
	f.Fuzz(func(t *testing.T, raw []byte, from string, passes bool) {
		found := Findings{SPF: Pass, DKIM: Pass, DMARC: Fail, ServID: "amazonses.com"}
		if passes {
			found.DMARC = Pass
		}
		r := Relayed(raw, from, found)
		if len(r.Checks) != 3 {
			t.Fatalf("%d checks", len(r.Checks))
		}
		d := r.Checks[2]
		if d.Result == Pass && (!passes || r.From == "" || !d.Aligned || d.Domain == "") || d.Aligned && d.Result != Pass {
			t.Fatalf("%q passes as %+v", r.From, d)
		}
	})
}

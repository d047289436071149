package inbox

import (
	"context"
	"fmt"
	"slices"
)

// Bounds of a sample.
const (
	maxSampleHeaders = 100
	maxSampleFiles   = 50
)

// RuleTrial asks what rules would do with one mail: a stored one, or a sample.
type RuleTrial struct {
	Email  string      // id
	Sample *RuleSample // instead of Email
	Draft  *RulePatch  // a rule that is not stored; nil: those of the workspace
}

// RuleSample is a mail that somebody made up.
type RuleSample struct {
	Inbox       string // id or slug; empty: none
	From        []Address
	To          []Address
	Subject     string
	Text        string
	Headers     []Header
	Attachments []Attachment // names and types
	Size        int64
	Flags       []string
	Trust       TrustLevel
	Auth        []AuthCheck
	Listed      bool
}

// RuleReport is what they would do. Nothing was done.
type RuleReport struct {
	RuleOutcome
	Masked bool // the rules saw codes and links masked, as this caller does
}

// Test runs rules on a mail and changes nothing. A caller who must not read codes tests on what it may read: a pattern that is
// tried on hidden digits would tell them one by one.
func (s *Rules) Test(ctx context.Context, a Actor, t RuleTrial) (RuleReport, error) {
	m, masked, err := s.trialMail(ctx, a, t)
	if err != nil {
		return RuleReport{}, err
	}
	rules, err := s.trialRules(ctx, a, t.Draft)
	if err != nil {
		return RuleReport{}, err
	}
	set, err := NewRuleSet(rules)
	if err != nil {
		return RuleReport{}, fmt.Errorf("rules of %s: %w", a.Workspace, err)
	}
	return RuleReport{set.Run(m, true), masked}, nil
}

func (s *Rules) trialRules(ctx context.Context, a Actor, draft *RulePatch) ([]Rule, error) {
	if draft == nil {
		book, _, err := s.d.Rules.Rulebook(ctx, a.Workspace, 0)
		if err != nil {
			return nil, fmt.Errorf("rules of %s: %w", a.Workspace, err)
		}
		return book.Rules, nil
	}
	p := *draft
	p.draft = true
	if p.Slug == "" {
		p.Slug = "draft"
	}
	p, _, err := s.normal(ctx, a, p)
	if err != nil {
		return nil, err
	}
	p.Enabled, p.IfVersion, p.Position = Set(true), 0, 0
	a.Direct, a.Confirmed = true, nil // nothing is written here
	r, err := p.apply(a, &Rulebook{}, &Rule{}, "", s.d.now())
	if err != nil {
		return nil, err
	}
	r.Version = 0
	return []Rule{r}, nil
}

func (s *Rules) trialMail(ctx context.Context, a Actor, t RuleTrial) (m RuleMail, masked bool, err error) {
	switch {
	case (t.Email == "") == (t.Sample == nil):
		return RuleMail{}, false, invalid("body", "either email_id or sample")
	case t.Sample != nil:
		m, err = s.sample(ctx, a, *t.Sample)
		return m, false, err
	}
	e, body, err := s.d.email(ctx, a, t.Email, true)
	if err != nil {
		return RuleMail{}, false, err
	}
	if !e.DeletedAt.IsZero() {
		return RuleMail{}, false, NoEmail()
	}
	if body, err = (&Emails{s.d}).wholeBody(ctx, e, body); err != nil {
		return RuleMail{}, false, err
	}
	files, err := s.d.files(ctx, e)
	if err != nil {
		return RuleMail{}, false, err
	}
	m = RuleMail{
		Email: asArrived(e), Text: body.Text, Headers: body.Headers, Attachments: files,
		Held: e.Status == StatusQuarantined && e.Reason != HeldByRule,
	}
	if a.ReadCodes {
		return m, false, nil
	}
	mask := SecretsOf(e).Masker()
	m.Email, m.Text, m.Headers = view(a, m.Email).Email, mask.Mask(m.Text), mask.headers(m.Headers)
	m.Attachments = slices.Clone(files)
	for i := range m.Attachments {
		m.Attachments[i] = mask.attachment(m.Attachments[i])
	}
	return m, true, nil
}

// asArrived takes off a mail what rules have made of it.
func asArrived(e Email) Email {
	e.Rules, e.Notify = nil, nil
	e.Labels, e.RuleLabels = e.OwnLabels(), nil
	if e.CategoryBy != (RuleRef{}) {
		e.Category, e.CategoryBy = "", RuleRef{}
	}
	return e
}

func (s *Rules) sample(ctx context.Context, a Actor, x RuleSample) (RuleMail, error) {
	for _, f := range []struct {
		location    string
		n, most     int
		description string
	}{
		{"body.sample.text", len(x.Text), maxWindow, "bytes"}, {"body.sample.headers", len(x.Headers), maxSampleHeaders, "headers"},
		{"body.sample.attachments", len(x.Attachments), maxSampleFiles, "attachments"}, {"body.sample.from", len(x.From), maxRuleNames, "addresses"},
		{"body.sample.to", len(x.To), maxRuleNames, "addresses"},
	} {
		if f.n > f.most {
			return RuleMail{}, invalid(f.location, fmt.Sprintf("at most %d %s", f.most, f.description))
		}
	}
	if x.Trust != "" && !slices.Contains(TrustLevels(), x.Trust) {
		return RuleMail{}, invalid("body.sample.trust", "trusted, verified, unverified, suspicious or blocked")
	}
	if x.Size < 0 {
		return RuleMail{}, invalid("body.sample.size_bytes", "0 or more")
	}
	for _, f := range x.Flags {
		if !slices.Contains(mailFlags, f) {
			return RuleMail{}, invalid("body.sample.flags", "flags of an email")
		}
	}
	e := Email{
		Size: x.Size, Flags: x.Flags, Auth: x.Auth, Trust: Trust{Level: x.Trust},
		Content: Content{From: x.From, To: x.To, Subject: x.Subject},
	}
	if x.Listed {
		e.Trust.Reasons = []string{TrustListed}
	}
	if x.Inbox != "" {
		in, err := s.d.live(ctx, a, x.Inbox)
		if err != nil {
			return RuleMail{}, err
		}
		e.Inbox, e.Envelope.To = in.ID, in.Address
	}
	return RuleMail{Email: e, Text: x.Text, Headers: x.Headers, Attachments: x.Attachments}, nil
}

package inbox

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// RuleSet is a Rulebook made ready to run. It may be used by many goroutines at once.
type RuleSet struct {
	rules  []readyRule
	window int // bytes of a text that patterns see
}

type readyRule struct {
	Rule
	conditions []readyCondition
}

type readyCondition struct {
	Condition
	pattern readyPattern
	number  int64
	lower   string
}

// NewRuleSet compiles rules. An error means that they were not checked before they were stored.
func NewRuleSet(rules []Rule) (*RuleSet, error) {
	s := &RuleSet{rules: make([]readyRule, 0, len(rules))}
	work := 1
	for _, r := range rules {
		ready := readyRule{Rule: r}
		for _, c := range r.Conditions {
			one := readyCondition{Condition: c, lower: strings.ToLower(c.Value)}
			switch {
			case c.Op == OpMatches:
				pattern, n, err := newReadyPattern(c.Value)
				if err != nil {
					return nil, fmt.Errorf("rule %s: %w", r.ID, err)
				}
				one.pattern, work = pattern, work+n
			case c.Field == FieldSize:
				one.number, _ = strconv.ParseInt(c.Value, 10, 64)
			}
			ready.conditions = append(ready.conditions, one)
		}
		s.rules = append(s.rules, ready)
	}
	s.window = min(max(ruleWork/work, minWindow), maxWindow)
	return s, nil
}

// RuleMail is what rules see of a mail. Nothing of it leaves an evaluation.
type RuleMail struct {
	Email       Email // Labels, Category and Rules are what it has before
	Text        string
	Headers     []Header
	Attachments []Attachment
	Off         []string // labels that people took off: rules may set them, and they take no place
	Held        bool     // the sender's doing: then nothing is told of it, taken from it or done with it
}

// RuleOutcome is what the rules make of a mail.
type RuleOutcome struct {
	Labels     []string
	Category   string
	CategoryBy RuleRef // zero: no rule set it
	HeldBy     RuleRef // zero: no rule holds it
	Handled    bool
	Extract    []Wish // each template once
	Notify     []Notification
	Matched    []RuleRef
	LabelsFull bool       // a label did not fit
	Steps      []RuleStep // when asked for: one for each rule
}

// Wish is a rule's wish that a template be extracted.
type Wish struct {
	RuleRef
	Template string // slug
}

// Why a rule was passed over.
const (
	SkipDisabled = "disabled"
	SkipInbox    = "other_inbox"
	SkipStopped  = "stopped" // by a rule before it
)

// RuleStep explains one rule in our own words: by the places of its conditions and actions, never by the mail's.
type RuleStep struct {
	Rule
	Place      int    // from 1
	Skipped    string // still judged, for the explanation, but without effect
	Matched    bool
	Conditions []bool // which hold
	Actions    []ActionStep
	Cut        bool // a text was longer than what is looked at
}

// ActionStep is an action of a rule that matched.
type ActionStep struct {
	Action
	Withheld string // why it is not carried out; empty: it is
}

// Why an action is not carried out.
const (
	WithheldAutomatic = "automatic_mail" // flagged loop, auto_reply or bounce: telling of it could feed the loop
	WithheldHeld      = "held"           // the sender policy holds the mail
	WithheldLabels    = "labels_full"
	WithheldCategory  = "category_set" // by a rule before, or by an operation
	WithheldRan       = "ran_before"   // this version of the rule told of this mail already
	WithheldMany      = "too_many"
)

// What rules want of one mail at most.
const (
	maxExtracts = 3 // templates
	maxNotified = 10
)

// Run evaluates the rules in their order. It is pure: the same rules and mail give the same outcome. explain asks for Steps;
// then every condition is judged, also where the first one settles it.
func (s *RuleSet) Run(m RuleMail, explain bool) RuleOutcome {
	o := RuleOutcome{Labels: slices.Clone(m.Email.Labels), Category: m.Email.Category}
	v := newRuleView(m, s.window)
	stopped := false
	for i := range s.rules {
		r := &s.rules[i]
		skipped := ""
		switch {
		case r.Inbox != "" && r.Inbox != m.Email.Inbox:
			skipped = SkipInbox
		case !r.Enabled:
			skipped = SkipDisabled
		case stopped:
			skipped = SkipStopped
		}
		if skipped != "" && !explain {
			continue
		}
		step := RuleStep{Rule: r.Rule, Place: i + 1, Skipped: skipped}
		v.cut = false
		step.Matched = r.judge(v, explain, &step.Conditions)
		step.Cut = v.cut
		if step.Matched && skipped == "" {
			step.Actions = r.act(m, &o)
			stopped = r.Stop
		}
		if explain {
			o.Steps = append(o.Steps, step)
		} else if stopped {
			break
		}
	}
	slices.Sort(o.Labels)
	return o
}

func (r *readyRule) judge(v *ruleView, explain bool, log *[]bool) bool {
	all, some := true, false
	for i := range r.conditions {
		c := &r.conditions[i]
		holds := c.holds(v) != c.Not
		all, some = all && holds, some || holds
		switch {
		case explain:
			*log = append(*log, holds)
		case r.Match == MatchAny && some, r.Match != MatchAny && !all:
			return some && r.Match == MatchAny
		}
	}
	if r.Match == MatchAny {
		return some
	}
	return all && some
}

// act lets the actions of a rule that matched take effect.
func (r *readyRule) act(m RuleMail, o *RuleOutcome) []ActionStep {
	ref := RuleRef{r.ID, r.Version}
	o.Matched = append(o.Matched, ref)
	steps := make([]ActionStep, 0, len(r.Actions))
	for _, a := range r.Actions {
		step := ActionStep{a, withheld(a, m, *o, ref)}
		if step.Withheld == WithheldLabels {
			o.LabelsFull = true
		}
		if step.Withheld == "" {
			o.apply(a, ref)
		}
		steps = append(steps, step)
	}
	return steps
}

func withheld(a Action, m RuleMail, o RuleOutcome, ref RuleRef) string {
	switch a.Type {
	case ActAddLabel:
		if !slices.Contains(m.Off, a.Value) && !slices.Contains(o.Labels, a.Value) && o.labelled(m.Off) >= MaxLabels {
			return WithheldLabels
		}
	case ActCategory:
		if o.Category != "" {
			return WithheldCategory
		}
	case ActExtract:
		if len(o.Extract) >= maxExtracts && !o.extracts(a.Value) {
			return WithheldMany
		}
	case ActNotify:
		switch {
		case automatic(m.Email.Flags):
			return WithheldAutomatic
		case slices.Contains(m.Email.Rules, ref):
			return WithheldRan
		case len(o.Notify) >= maxNotified:
			return WithheldMany
		}
	}
	if m.Held && (a.Type == ActExtract || a.Type == ActNotify || a.Type == ActHandled) {
		return WithheldHeld
	}
	return ""
}

// automatic holds for mail that a machine answered with, or that goes in circles.
func automatic(flags []string) bool {
	return slices.Contains(flags, "loop") || slices.Contains(flags, "auto_reply") || slices.Contains(flags, "bounce")
}

// labelled counts the labels that will be there.
func (o *RuleOutcome) labelled(off []string) (n int) {
	for _, l := range o.Labels {
		if !slices.Contains(off, l) {
			n++
		}
	}
	return n
}

func (o *RuleOutcome) apply(a Action, ref RuleRef) {
	switch a.Type {
	case ActAddLabel:
		if !slices.Contains(o.Labels, a.Value) {
			o.Labels = append(o.Labels, a.Value)
		}
	case ActRemoveLabel:
		o.Labels = slices.DeleteFunc(o.Labels, func(l string) bool { return l == a.Value })
	case ActCategory:
		o.Category, o.CategoryBy = a.Value, ref
	case ActQuarantine:
		if o.HeldBy == (RuleRef{}) {
			o.HeldBy = ref
		}
	case ActHandled:
		o.Handled = true
	case ActExtract:
		if !o.extracts(a.Value) {
			o.Extract = append(o.Extract, Wish{ref, a.Value})
		}
	case ActNotify:
		if n := (Notification{ref, a.Value}); !slices.ContainsFunc(o.Notify, func(x Notification) bool { return x.Webhook == n.Webhook }) {
			o.Notify = append(o.Notify, n)
		}
	}
}

func (o *RuleOutcome) extracts(template string) bool {
	return slices.ContainsFunc(o.Extract, func(w Wish) bool { return w.Template == template })
}

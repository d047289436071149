package inbox_test

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/inbox"
)

func ruleOf(match inbox.Match, conditions ...inbox.Condition) inbox.Rule {
	return inbox.Rule{
		ID: "rule_1", Slug: "r", Enabled: true, Match: match, Conditions: conditions, Version: 3,
		Actions: []inbox.Action{{Type: inbox.ActAddLabel, Value: "hit"}},
	}
}

func run(t testing.TB, m inbox.RuleMail, rules ...inbox.Rule) inbox.RuleOutcome {
	t.Helper()
	s, err := inbox.NewRuleSet(rules)
	if err != nil {
		t.Fatal(err)
	}
	brief, long := s.Run(m, false), s.Run(m, true)
	steps := long.Steps
	long.Steps = nil
	if !reflect.DeepEqual(brief, long) || len(steps) != len(rules) {
		t.Fatalf("explaining changes the outcome: %+v, %+v", brief, long)
	}
	long.Steps = steps
	return long
}

func invoiceMail() inbox.RuleMail {
	return inbox.RuleMail{
		Email: inbox.Email{
			ID: "email_1", Inbox: "inbox_1", Size: 5000, Envelope: inbox.Envelope{From: "b@lists.test", To: "agent@acme.test"},
			Content: inbox.Content{
				Subject: "  Factura N.º 17 ", From: []inbox.Address{{Name: "Ana Müller", Address: "Ana@Mail.Müller.test"}},
				To: []inbox.Address{{Address: "Other@acme.test"}}, CC: []inbox.Address{{Name: "Boss", Address: "boss@acme.test"}},
			},
			Auth:  []inbox.AuthCheck{{Method: "dmarc", Result: "pass"}, {Method: "spf", Result: "softfail"}},
			Trust: inbox.Trust{Level: inbox.Trusted, Reasons: []string{inbox.TrustListed, inbox.TrustDMARC}},
			Flags: []string{"list"}, Labels: []string{"old"},
		},
		Text:        "Total: 12 EUR\nGracias, ÁNGEL",
		Headers:     []inbox.Header{{Name: "List-Id", Value: "<x.lists.test>"}, {Name: "X-Prio", Value: "1"}, {Name: "x-prio", Value: "High"}},
		Attachments: []inbox.Attachment{{ID: "att_1", Filename: "Factura-17.PDF", ContentType: "application/octet-stream", DetectedType: "application/pdf"}},
	}
}

func TestConditions(t *testing.T) {
	for name, x := range map[string]struct {
		c    inbox.Condition
		want bool
	}{
		"from is":                  {inbox.Condition{Field: "from", Op: "is", Value: "ana@mail.xn--mller-kva.test"}, true},
		"from is: other":           {inbox.Condition{Field: "from", Op: "is", Value: "ana@xn--mller-kva.test"}, false},
		"from contains a name":     {inbox.Condition{Field: "from", Op: "contains", Value: "ana mü"}, true},
		"from matches":             {inbox.Condition{Field: "from", Op: "matches", Value: `(?i)@mail\.`}, true},
		"from matches: case":       {inbox.Condition{Field: "from", Op: "matches", Value: `@mail\.`}, false},
		"to: envelope":             {inbox.Condition{Field: "to", Op: "is", Value: "agent@acme.test"}, true},
		"to: Cc":                   {inbox.Condition{Field: "to", Op: "is", Value: "boss@acme.test"}, true},
		"to: not MAIL FROM":        {inbox.Condition{Field: "to", Op: "contains", Value: "lists.test"}, false},
		"domain is":                {inbox.Condition{Field: "domain", Op: "is", Value: "mail.xn--mller-kva.test"}, true},
		"domain is: above":         {inbox.Condition{Field: "domain", Op: "is", Value: "xn--mller-kva.test"}, false},
		"domain under":             {inbox.Condition{Field: "domain", Op: "under", Value: "xn--mller-kva.test"}, true},
		"domain under: a suffix":   {inbox.Condition{Field: "domain", Op: "under", Value: "ller-kva.test"}, false},
		"listed":                   {inbox.Condition{Field: "listed", Op: "is", Value: "true"}, true},
		"listed: no":               {inbox.Condition{Field: "listed", Op: "is", Value: "false"}, false},
		"subject is":               {inbox.Condition{Field: "subject", Op: "is", Value: "factura n.º 17"}, true},
		"subject contains":         {inbox.Condition{Field: "subject", Op: "contains", Value: "FACTURA"}, true},
		"subject matches":          {inbox.Condition{Field: "subject", Op: "matches", Value: `\d+`}, true},
		"text contains":            {inbox.Condition{Field: "text", Op: "contains", Value: "gracias, ángel"}, true},
		"text: not the subject":    {inbox.Condition{Field: "text", Op: "contains", Value: "factura"}, false},
		"header exists":            {inbox.Condition{Field: "header", Op: "exists", Name: "list-id"}, true},
		"header: none":             {inbox.Condition{Field: "header", Op: "exists", Name: "List-Post"}, false},
		"header: the second":       {inbox.Condition{Field: "header", Op: "is", Name: "X-Prio", Value: "high"}, true},
		"attachment":               {inbox.Condition{Field: "attachment", Op: "exists"}, true},
		"type: detected":           {inbox.Condition{Field: "attachment_type", Op: "is", Value: "application/pdf"}, true},
		"type: declared":           {inbox.Condition{Field: "attachment_type", Op: "contains", Value: "octet"}, true},
		"type: neither":            {inbox.Condition{Field: "attachment_type", Op: "contains", Value: "zip"}, false},
		"name":                     {inbox.Condition{Field: "attachment_name", Op: "matches", Value: `^Factura-\d+\.PDF$`}, true},
		"size at least":            {inbox.Condition{Field: "size", Op: "at_least", Value: "5000"}, true},
		"size at most":             {inbox.Condition{Field: "size", Op: "at_most", Value: "5000"}, true},
		"size at least: less":      {inbox.Condition{Field: "size", Op: "at_least", Value: "5001"}, false},
		"size at most: more":       {inbox.Condition{Field: "size", Op: "at_most", Value: "4999"}, false},
		"auth":                     {inbox.Condition{Field: "auth", Op: "is", Name: "dmarc", Value: "pass"}, true},
		"auth: another method":     {inbox.Condition{Field: "auth", Op: "is", Name: "spf", Value: "pass"}, false},
		"trust":                    {inbox.Condition{Field: "trust", Op: "is", Value: "trusted"}, true},
		"flag":                     {inbox.Condition{Field: "flag", Op: "is", Value: "list"}, true},
		"flag: none":               {inbox.Condition{Field: "flag", Op: "is", Value: "loop"}, false},
		"a field of a later time":  {inbox.Condition{Field: "mood", Op: "is", Value: "good"}, false},
		"an operator of none":      {inbox.Condition{Field: "subject", Op: "rhymes", Value: "x"}, false},
		"not":                      {inbox.Condition{Field: "flag", Op: "is", Value: "loop", Not: true}, true},
		"not, of what holds":       {inbox.Condition{Field: "flag", Op: "is", Value: "list", Not: true}, false},
		"a whole line, not a part": {inbox.Condition{Field: "subject", Op: "is", Value: "factura"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := run(t, invoiceMail(), ruleOf(inbox.MatchAll, x.c))
			if got := len(o.Matched) == 1; got != x.want || o.Steps[0].Conditions[0] != x.want {
				t.Errorf("%v, want %v", got, x.want)
			}
		})
	}
}

func TestMatch(t *testing.T) {
	yes, no := inbox.Condition{Field: "attachment", Op: "exists"}, inbox.Condition{Field: "flag", Op: "is", Value: "loop"}
	for name, x := range map[string]struct {
		rule inbox.Rule
		want bool
	}{
		"all, both":           {ruleOf(inbox.MatchAll, yes, yes), true},
		"all, one":            {ruleOf(inbox.MatchAll, yes, no), false},
		"any, one":            {ruleOf(inbox.MatchAny, no, yes), true},
		"any, none":           {ruleOf(inbox.MatchAny, no, no), false},
		"no conditions":       {ruleOf(inbox.MatchAll), false},
		"no conditions, any":  {ruleOf(inbox.MatchAny), false},
		"neither all nor any": {ruleOf("", yes, no), false},
	} {
		if o := run(t, invoiceMail(), x.rule); (len(o.Matched) == 1) != x.want {
			t.Errorf("%s: %v", name, o.Matched)
		}
	}
}

func TestActions(t *testing.T) {
	yes := []inbox.Condition{{Field: "attachment", Op: "exists"}}
	rule := func(id string, stop bool, actions ...inbox.Action) inbox.Rule {
		return inbox.Rule{ID: id, Enabled: true, Match: inbox.MatchAll, Conditions: yes, Actions: actions, Stop: stop, Version: 1}
	}
	all := []inbox.Action{
		{Type: "add_label", Value: "new"}, {Type: "remove_label", Value: "old"}, {Type: "category", Value: "invoice"}, {Type: "quarantine"},
		{Type: "handled"}, {Type: "extract", Value: "invoice"}, {Type: "notify", Value: "erp"},
	}
	full := invoiceMail()
	for i := range inbox.MaxLabels {
		full.Email.Labels = append(full.Email.Labels, fmt.Sprint("l", i))
	}
	full.Email.Labels = full.Email.Labels[1:]
	spare := full // a label that was taken off takes no place
	spare.Off = []string{"l1", "other"}
	again := full
	again.Off = []string{"new"}
	flagged := func(flag string) inbox.RuleMail {
		m := invoiceMail()
		m.Email.Flags = []string{flag}
		return m
	}
	held, told, filed := invoiceMail(), invoiceMail(), invoiceMail()
	held.Held = true
	told.Email.Rules = []inbox.RuleRef{{Rule: "rule_a", Version: 1}}
	filed.Email.Category = "mine"
	elsewhere, off := rule("rule_a", false, all...), rule("rule_a", false, all...)
	elsewhere.Inbox, off.Enabled = "inbox_2", false
	everything := "[new] invoice rule_a true [invoice] [erp]"
	for name, x := range map[string]struct {
		m     inbox.RuleMail
		rules []inbox.Rule
		want  string // labels category held handled extract notify
		why   string // of the last step's actions, or why it was skipped
	}{
		"everything":             {invoiceMail(), []inbox.Rule{rule("rule_a", false, all...)}, everything, "[      ]"},
		"disabled":               {invoiceMail(), []inbox.Rule{off}, "[old]   false [] []", "disabled"},
		"of another inbox":       {invoiceMail(), []inbox.Rule{elsewhere}, "[old]   false [] []", "other_inbox"},
		"stopped":                {invoiceMail(), []inbox.Rule{rule("rule_z", true, all[0]), rule("rule_a", false, all...)}, "[new old]   false [] []", "stopped"},
		"not stopped":            {invoiceMail(), []inbox.Rule{rule("rule_z", false, all[0]), rule("rule_a", false, all...)}, everything, "[      ]"},
		"the first category":     {invoiceMail(), []inbox.Rule{rule("rule_z", false, inbox.Action{Type: "category", Value: "first"}), rule("rule_a", false, all[2])}, "[old] first  false [] []", "[category_set]"},
		"a category of before":   {filed, []inbox.Rule{rule("rule_a", false, all[2])}, "[old] mine  false [] []", "[category_set]"},
		"loop":                   {flagged("loop"), []inbox.Rule{rule("rule_a", false, all...)}, "[new] invoice rule_a true [invoice] []", "[      automatic_mail]"},
		"auto_reply":             {flagged("auto_reply"), []inbox.Rule{rule("rule_a", false, all[6])}, "[old]   false [] []", "[automatic_mail]"},
		"bounce":                 {flagged("bounce"), []inbox.Rule{rule("rule_a", false, all[6])}, "[old]   false [] []", "[automatic_mail]"},
		"a list is no loop":      {flagged("list"), []inbox.Rule{rule("rule_a", false, all[6])}, "[old]   false [] [erp]", "[]"},
		"held by the policy":     {held, []inbox.Rule{rule("rule_a", false, all...)}, "[new] invoice rule_a false [] []", "[    held held held]"},
		"told of before":         {told, []inbox.Rule{rule("rule_a", false, all[6])}, "[old]   false [] []", "[ran_before]"},
		"told by an old version": {told, []inbox.Rule{{ID: "rule_a", Enabled: true, Conditions: yes, Actions: all[6:], Version: 2}}, "[old]   false [] [erp]", "[]"},
		"one webhook, once":      {invoiceMail(), []inbox.Rule{rule("rule_a", false, all[6]), rule("rule_b", false, all[6])}, "[old]   false [] [erp]", "[]"},
		"full but for one off":   {spare, []inbox.Rule{rule("rule_a", false, all[0])}, "51", "[]"},
		"full, and it is off":    {again, []inbox.Rule{rule("rule_a", false, all[0])}, "51", "[]"},
		"labels are full":        {full, []inbox.Rule{rule("rule_a", false, all[0])}, "full", "[labels_full]"},
	} {
		t.Run(name, func(t *testing.T) {
			o := run(t, x.m, x.rules...)
			var hooks, wishes []string
			for _, w := range o.Extract {
				wishes = append(wishes, w.Template)
			}
			for _, n := range o.Notify {
				hooks = append(hooks, n.Webhook)
			}
			got := fmt.Sprintf("%v %s %s %v %v %v", o.Labels, o.Category, o.HeldBy.Rule, o.Handled, wishes, hooks)
			if o.LabelsFull && len(o.Labels) == inbox.MaxLabels {
				got = "full"
			}
			if len(o.Labels) > inbox.MaxLabels {
				got = fmt.Sprint(len(o.Labels))
			}
			last := o.Steps[len(o.Steps)-1]
			var withheld []string
			for _, a := range last.Actions {
				withheld = append(withheld, a.Withheld)
			}
			why := last.Skipped
			if why == "" {
				why = fmt.Sprint(withheld)
			}
			if got != x.want || why != x.why {
				t.Errorf("%s, %s; want %s, %s", got, why, x.want, x.why)
			}
		})
	}
}

// Whatever a sender does, rules end within their bounds; the counts of what they look at are the proof, not a clock.
func TestHostileMail(t *testing.T) {
	evil := inbox.Condition{Field: "text", Op: "matches", Value: `(a+)+$`}
	long := strings.Repeat("a", 10<<20) + "!"
	for name, x := range map[string]struct {
		m    func(*inbox.RuleMail)
		c    inbox.Condition
		want bool
		cut  bool
	}{
		"a pattern that backtracks": {func(m *inbox.RuleMail) { m.Text = strings.Repeat("a", 60<<10) + "!" }, evil, false, false},
		"ten megabytes of text":     {func(m *inbox.RuleMail) { m.Text = long }, evil, true, true},
		"what stands behind":        {func(m *inbox.RuleMail) { m.Text = long + "needle" }, inbox.Condition{Field: "text", Op: "contains", Value: "needle"}, false, true},
		"a subject of a megabyte":   {func(m *inbox.RuleMail) { m.Email.Content.Subject = long[:1<<20] }, inbox.Condition{Field: "subject", Op: "matches", Value: `b$`}, false, true},
		"10,000 headers": {func(m *inbox.RuleMail) {
			for range 10_000 {
				m.Headers = append(m.Headers, inbox.Header{Name: "X-A", Value: strings.Repeat("a", 1000)})
			}
		}, inbox.Condition{Field: "header", Op: "matches", Name: "X-A", Value: "b"}, false, true},
		"10,000 attachments": {func(m *inbox.RuleMail) {
			m.Attachments = make([]inbox.Attachment, 10_000)
			m.Attachments[9_999].Filename = "needle"
		}, inbox.Condition{Field: "attachment_name", Op: "contains", Value: "needle"}, false, true},
		"10,000 recipients": {func(m *inbox.RuleMail) { m.Email.Content.To = make([]inbox.Address, 10_000) }, inbox.Condition{Field: "to", Op: "contains", Value: "needle"}, false, true},
		"no UTF-8":          {func(m *inbox.RuleMail) { m.Text = "\xff\xfeneedle\xc3" }, inbox.Condition{Field: "text", Op: "matches", Value: `needle.$`}, true, false},
		"no UTF-8, cut":     {func(m *inbox.RuleMail) { m.Text = strings.Repeat("\x80", 1<<20) }, inbox.Condition{Field: "text", Op: "contains", Value: "x"}, false, true},
		"a domain of no kind": {func(m *inbox.RuleMail) {
			m.Email.Content.From = []inbox.Address{{Address: "@"}, {Address: "a@"}, {Address: strings.Repeat("a@", 5000)}}
		}, inbox.Condition{Field: "domain", Op: "under", Value: "a.test"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := invoiceMail()
			x.m(&m)
			o := run(t, m, ruleOf(inbox.MatchAll, x.c))
			if got := len(o.Matched) == 1; got != x.want || o.Steps[0].Cut != x.cut {
				t.Errorf("%v, cut %v; want %v, %v", got, o.Steps[0].Cut, x.want, x.cut)
			}
		})
	}
}

// The more the patterns of a workspace cost together, the less of a text each of them sees, so that none is left out.
func TestWindowShrinks(t *testing.T) {
	m := invoiceMail()
	m.Text = strings.Repeat("x", 32<<10) + "needle"
	rule := ruleOf(inbox.MatchAll, inbox.Condition{Field: "text", Op: "matches", Value: "needle"})
	if o := run(t, m, rule); len(o.Matched) != 1 || o.Steps[0].Cut {
		t.Errorf("alone: %+v", o)
	}
	heavy := ruleOf(inbox.MatchAll, inbox.Condition{Field: "subject", Op: "matches", Value: "[ab]{450}"})
	rules := []inbox.Rule{rule}
	for range 17 {
		rules = append(rules, heavy)
	}
	if o := run(t, m, rules...); len(o.Matched) != 0 || !o.Steps[0].Cut {
		t.Errorf("beside heavy ones: %+v", o.Steps[0])
	}
	m.Text = m.Text[32<<10-100:]
	if o := run(t, m, rules...); len(o.Matched) != 1 {
		t.Error("a short text")
	}
}

// Rules say nothing of the mail: all that leaves an evaluation is the rules' own words.
func TestRulesQuoteNothing(t *testing.T) {
	m := invoiceMail()
	o := run(t, m, ruleOf(inbox.MatchAny, inbox.Condition{Field: "text", Op: "matches", Value: "T.tal"}, inbox.Condition{Field: "header", Op: "exists", Name: "List-Id"}))
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"Gracias", "Factura", "Müller", "lists.test", "boss"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("%q in %s", secret, text)
		}
	}
}

// Properties over random rules and mails: the same each time, and within the bounds of a mail's row.
func TestRulesAreDeterministic(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	pick := func(list ...string) string { return list[r.Intn(len(list))] }
	var conditions []inbox.Condition
	for _, c := range []inbox.Condition{
		{Field: "from", Op: "contains", Value: "a"}, {Field: "subject", Op: "matches", Value: "[0-9]+"}, {Field: "flag", Op: "is", Value: "loop"},
		{Field: "size", Op: "at_least", Value: "100"}, {Field: "text", Op: "contains", Value: "b"}, {Field: "header", Op: "exists", Name: "X"},
	} {
		conditions = append(conditions, c)
		c.Not = true
		conditions = append(conditions, c)
	}
	for range 2000 {
		var rules []inbox.Rule
		for i := range r.Intn(8) {
			rule := inbox.Rule{ID: fmt.Sprint("rule_", i), Version: 1, Enabled: r.Intn(4) > 0, Stop: r.Intn(4) == 0, Match: inbox.Match(pick("all", "any"))}
			for range 1 + r.Intn(3) {
				rule.Conditions = append(rule.Conditions, conditions[r.Intn(len(conditions))])
				rule.Actions = append(rule.Actions, inbox.Action{Type: pick("add_label", "remove_label", "category", "notify", "extract"), Value: pick("a", "b", "c", "d", "e")})
			}
			rules = append(rules, rule)
		}
		m := invoiceMail()
		m.Email.Size, m.Text, m.Email.Content.Subject = r.Int63n(200), pick("ab", "x", ""), pick("1", "x", "")
		m.Email.Flags = []string{pick("loop", "list")}
		a, b := run(t, m, rules...), run(t, m, rules...)
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("twice: %+v\n%+v", a, b)
		}
		if len(a.Labels) > inbox.MaxLabels || len(a.Extract) > 3 || len(a.Notify) > 5 || len(a.Matched) > len(rules) {
			t.Fatalf("bounds: %+v", a)
		}
		if m.Email.Flags[0] == "loop" && len(a.Notify) > 0 {
			t.Fatalf("a loop is told of: %+v", a)
		}
	}
}

// A pattern matches what package regexp says it matches, whatever was looked for before it.
func TestPatternsAreRegexps(t *testing.T) {
	patterns := []string{
		"invoice", "(?i)invoice", "(?i)kiss", "(?i)(kiss)+x?", "a(?i)B", "(a|b)c", "(?i)a|b", "x*", "(?i)(ab){2,}", "(?i)(ab){0,2}", "é", "(?i)é", "^(?i)s$", "[k]iss",
		"(?i)[^a]s", "a.c", `\bno\b`, "(?i)st\\.", "\ufffd", "(?U)a+", "(?s)a.b", "", "(?i:inv)oice",
	}
	texts := []string{
		"", "invoice", "INVOICE", "an InVoice.", "kiss", "Kiss", "\u212aiss", "ki\u017f\u017f", "KI\u017fSx", "ab", "ABab", "abAB", "aB", "ac", "bc", "é", "É", "s", "\u017f", "\u212a",
		"no", "a no b", "st.", "\u017ft.", "\xff", "a\xffc", "a\nb", "aaa", "\xe2\x84", "invOICE",
	}
	for _, p := range patterns {
		plain, err := regexp.Compile(p)
		if err != nil {
			t.Fatal(err)
		}
		if p == "" {
			continue // is no pattern of a rule
		}
		for _, text := range texts {
			m := invoiceMail()
			m.Text = text
			o := run(t, m, ruleOf(inbox.MatchAll, inbox.Condition{Field: "text", Op: "matches", Value: p}))
			if got, want := len(o.Matched) == 1, plain.MatchString(text); got != want {
				t.Errorf("%q in %q: %v, want %v", p, text, got, want)
			}
		}
	}
}

func BenchmarkRules(b *testing.B) {
	var rules []inbox.Rule
	for i := range 20 {
		rules = append(rules, ruleOf(inbox.MatchAll, inbox.Condition{Field: "subject", Op: "contains", Value: "nothing"},
			inbox.Condition{Field: "text", Op: "matches", Value: fmt.Sprintf(`(?i)invoice\s+no\.?\s*%d\d+`, i)}))
	}
	s, err := inbox.NewRuleSet(rules)
	if err != nil {
		b.Fatal(err)
	}
	m := invoiceMail()
	m.Text = strings.Repeat("The quick brown fox jumps over the lazy dog.\n", 100)
	for b.Loop() {
		s.Run(m, false)
	}
}

package inbox

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// ruleFields are the operators of each field.
//
//nolint:gochecknoglobals // constant table
var ruleFields = map[string][]string{
	FieldFrom:           {OpIs, OpContains, OpMatches},
	FieldTo:             {OpIs, OpContains, OpMatches},
	FieldDomain:         {OpIs, OpUnder},
	FieldListed:         {OpIs},
	FieldSubject:        {OpIs, OpContains, OpMatches},
	FieldText:           {OpContains, OpMatches},
	FieldHeader:         {OpExists, OpIs, OpContains, OpMatches},
	FieldAttachment:     {OpExists},
	FieldAttachmentType: {OpIs, OpContains},
	FieldAttachmentName: {OpIs, OpContains, OpMatches},
	FieldSize:           {OpAtLeast, OpAtMost},
	FieldAuth:           {OpIs},
	FieldTrust:          {OpIs},
	FieldFlag:           {OpIs},
}

// mailFlags are the flags that a condition may name: a mistyped one would never match.
//
//nolint:gochecknoglobals // constant table
var mailFlags = []string{"auto_reply", "bounce", "list", "loop", "encrypted", "signed", "calendar", "truncated"}

// checkConditions puts the values into their one spelling and returns the instructions of all patterns.
func checkConditions(location string, list []Condition) (int, error) {
	if len(list) == 0 || len(list) > MaxConditions {
		return 0, invalid(location, fmt.Sprintf("1 to %d conditions", MaxConditions))
	}
	work := 0
	for i := range list {
		n, err := list[i].normal(fmt.Sprintf("%s[%d]", location, i))
		if err != nil {
			return 0, err
		}
		work += n
	}
	return work, nil
}

func (c *Condition) normal(location string) (work int, err error) {
	ops, ok := ruleFields[c.Field]
	if !ok {
		return 0, invalid(location+".field", "from, to, domain, listed, subject, text, header, attachment, attachment_type, attachment_name, size, auth, trust or flag")
	}
	if !slices.Contains(ops, c.Op) {
		return 0, invalid(location+".op", "for "+c.Field+": "+strings.Join(ops, ", "))
	}
	if named := c.Field == FieldHeader || c.Field == FieldAuth; !named && c.Name != "" {
		return 0, invalid(location+".name", "only header and auth have one")
	}
	if c.Op == OpExists && c.Value != "" {
		return 0, invalid(location+".value", "none for exists")
	}
	if len(c.Value) > maxRuleValue || strings.ContainsFunc(c.Value, unprintable) {
		return 0, invalid(location+".value", fmt.Sprintf("at most %d bytes without control characters", maxRuleValue))
	}
	if c.Op == OpMatches {
		_, work, err = compilePattern(location+".value", c.Value)
		if err != nil {
			return 0, err
		}
	}
	if want := c.word(); want != "" {
		return 0, invalid(location+".value", want)
	}
	if c.Field == FieldHeader && !headerName(c.Name) {
		return 0, invalid(location+".name", "the name of a header, such as List-Id")
	}
	return work, nil
}

// word puts a value that is no pattern into its one spelling and says what it should have been; empty when it is that.
func (c *Condition) word() (want string) {
	ok := c.Value != "" || c.Op == OpExists
	switch c.Field {
	case FieldFrom, FieldTo:
		if c.Op == OpIs {
			c.Value, ok = listedAddress(c.Value)
		}
		return unless(ok, "an address, such as ana@example.com")
	case FieldDomain:
		domain, err := NormalDomain(strings.TrimPrefix(c.Value, "@"))
		c.Value = domain
		return unless(err == nil, "a domain, such as example.com")
	case FieldListed:
		return unless(c.Value == "true" || c.Value == "false", "true or false")
	case FieldSize:
		n, err := strconv.ParseInt(c.Value, 10, 64)
		return unless(err == nil && n >= 0, "a number of bytes")
	case FieldTrust:
		return unless(slices.Contains(TrustLevels(), TrustLevel(c.Value)), "trusted, verified, unverified, suspicious or blocked")
	case FieldFlag:
		return unless(slices.Contains(mailFlags, c.Value), strings.Join(mailFlags, ", "))
	case FieldAuth:
		methods := []string{methodSPF, "dkim", methodDMARC}
		results := []string{resultPass, resultFail, "softfail", "neutral", resultNone, resultTempError, "permerror", resultUnknown}
		return unless(slices.Contains(methods, c.Name) && slices.Contains(results, c.Value),
			"a result such as pass or fail, with the method in name: spf, dkim or dmarc")
	}
	return unless(ok, "a text to look for")
}

func unless(ok bool, want string) string {
	if ok {
		return ""
	}
	return want
}

// headerName reports whether s is a field name (RFC 5322 section 3.6.8).
func headerName(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f || s[i] == ':' {
			return false
		}
	}
	return s != "" && len(s) <= maxLabel
}

// compilePattern compiles a pattern and returns its instructions. RE2 runs in time linear in text and program, so both are
// bounded: the program here, the text where it is searched.
func compilePattern(location, pattern string) (*regexp.Regexp, int, error) {
	fault := func(what string) error {
		return invalid(location, what, "Patterns are RE2: no look-around and no back-references; (?i) ignores case.")
	}
	if pattern == "" || len(pattern) > maxRuleValue {
		return nil, 0, fault(fmt.Sprintf("a pattern of at most %d bytes", maxRuleValue))
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, 0, fault("not a pattern of RE2")
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil || len(program.Inst) > maxProgram {
		return nil, 0, fault(fmt.Sprintf("the pattern is too large: at most %d instructions", maxProgram))
	}
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return nil, 0, fault("not a pattern of RE2")
	}
	return compiled, len(program.Inst), nil
}

// checkActions refuses what would contradict itself as well as what is not an action.
func checkActions(location string, list []Action) error {
	if len(list) == 0 || len(list) > MaxActions {
		return invalid(location, fmt.Sprintf("1 to %d actions", MaxActions))
	}
	for i, a := range list {
		place := fmt.Sprintf("%s[%d]", location, i)
		if slices.Contains(list[:i], a) || a.Type == ActCategory && slices.ContainsFunc(list[:i], func(b Action) bool { return b.Type == ActCategory }) {
			return invalid(place, "the action is there twice")
		}
		var err error
		switch a.Type {
		case ActAddLabel, ActRemoveLabel, ActCategory:
			err = checkLabel(place+".value", a.Value)
		case ActExtract, ActNotify:
			err = checkSlug(place+".value", a.Value)
		case ActQuarantine, ActHandled:
			if a.Value != "" {
				err = invalid(place+".value", "none for "+a.Type)
			}
		default:
			err = invalid(place+".type", "add_label, remove_label, category, quarantine, handled, extract or notify",
				"No action sends mail to an address.")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// check refuses a book whose rules are too many, or too dear to run on every mail.
func (b Rulebook) check() error {
	if len(b.Rules) > MaxRules {
		return apperr.New(apperr.Conflict, "rules_full", fmt.Sprintf("A workspace has at most %d rules.", MaxRules),
			"Delete a rule with rules_delete, or join two: a rule has up to 20 conditions and 10 actions.")
	}
	work := 0
	for _, r := range b.Rules {
		n, err := checkConditions("body.conditions", slices.Clone(r.Conditions))
		if err != nil {
			return err
		}
		work += n
	}
	if work > maxPrograms {
		return rulesFull()
	}
	return nil
}

// rulesFull is the answer when the rules of a workspace are too large together.
func rulesFull() *apperr.Error {
	return apperr.New(apperr.Conflict, "rules_full", "The rules of this workspace are too large together.",
		"Delete rules with rules_delete, use contains instead of matches, or make patterns and values shorter.")
}

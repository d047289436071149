package inbox

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// ruleView is a mail as conditions look at it: cut to bounds, each form made at most once.
type ruleView struct {
	RuleMail
	window int
	cut    bool // a text was cut since this was last reset
	lower  map[string]string
	from   *addressBook
	to     *addressBook
}

// addressBook is addresses in the forms that are compared.
type addressBook struct {
	normal []string // of those that have a normal form
	shown  []string // "name <address>"
	cut    bool
}

func newRuleView(m RuleMail, window int) *ruleView {
	return &ruleView{RuleMail: m, window: window, lower: map[string]string{}}
}

// head is what is looked at of a text.
func (v *ruleView) head(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	v.cut = true
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// lowered is a text in lower case, made once.
func (v *ruleView) lowered(s string) string {
	s = v.head(s, maxWindow)
	low, ok := v.lower[s]
	if !ok {
		low = strings.ToLower(s)
		v.lower[s] = low
	}
	return low
}

func bookOf(lists ...[]Address) *addressBook {
	b := &addressBook{}
	for _, list := range lists {
		b.cut = b.cut || len(list) > maxRuleNames
		for _, a := range list[:min(len(list), maxRuleNames)] {
			shown := a.Address
			if a.Name != "" {
				shown = a.Name + " <" + a.Address + ">"
			}
			b.shown = append(b.shown, shown)
			if normal, ok := normalAddress(a.Address); ok {
				b.normal = append(b.normal, normal)
			}
		}
	}
	return b
}

func (v *ruleView) senders() *addressBook {
	if v.from == nil {
		v.from = bookOf(v.Email.Content.From)
	}
	return v.from
}

func (v *ruleView) recipients() *addressBook {
	if v.to == nil {
		v.to = bookOf([]Address{{Address: v.Email.Envelope.To}}, v.Email.Content.To, v.Email.Content.CC)
	}
	return v.to
}

// holds answers a condition, its Not aside.
func (c *readyCondition) holds(v *ruleView) bool {
	e := &v.Email
	switch c.Field {
	case FieldFrom:
		return c.address(v, v.senders())
	case FieldTo:
		return c.address(v, v.recipients())
	case FieldDomain:
		return slices.ContainsFunc(v.senders().normal, c.domain)
	case FieldListed:
		return slices.Contains(e.Trust.Reasons, TrustListed) == (c.Value == "true")
	case FieldSubject:
		return c.text(v, e.Content.Subject)
	case FieldText:
		return c.text(v, v.Text)
	case FieldHeader:
		return c.header(v)
	case FieldAttachment:
		return len(v.Attachments) > 0
	case FieldAttachmentType, FieldAttachmentName:
		return c.attachment(v)
	case FieldSize:
		return (e.Size >= c.number) == (c.Op == OpAtLeast) || e.Size == c.number
	case FieldAuth:
		return slices.ContainsFunc(e.Auth, func(a AuthCheck) bool { return a.Method == c.Name && a.Result == c.Value })
	case FieldTrust:
		return string(e.Trust.Level) == c.Value
	case FieldFlag:
		return slices.Contains(e.Flags, c.Value)
	}
	return false
}

// text compares one text.
func (c *readyCondition) text(v *ruleView, s string) bool {
	switch c.Op {
	case OpIs:
		return v.lowered(strings.TrimSpace(s)) == c.lower
	case OpContains:
		return strings.Contains(v.lowered(s), c.lower)
	case OpMatches:
		return c.pattern.matches(v.head(s, v.window), v.lowered)
	}
	return false
}

func (c *readyCondition) address(v *ruleView, b *addressBook) bool {
	v.cut = v.cut || b.cut
	if c.Op == OpIs {
		return slices.Contains(b.normal, c.Value)
	}
	return c.some(v, b.shown)
}

// some shares the window of a pattern among many short texts: however many there are, they are no more work than one.
func (c *readyCondition) some(v *ruleView, texts []string) bool {
	left := v.window
	for _, s := range texts {
		if c.Op == OpMatches {
			if left <= 0 {
				v.cut = true
				return false
			}
			s = v.head(s, left)
			left -= len(s) + 1
		}
		if c.text(v, s) {
			return true
		}
	}
	return false
}

func (c *readyCondition) domain(address string) bool {
	domain := address[strings.LastIndexByte(address, '@')+1:]
	return domain == c.Value || c.Op == OpUnder && strings.HasSuffix(domain, "."+c.Value)
}

func (c *readyCondition) header(v *ruleView) bool {
	var values []string
	for _, h := range v.Headers {
		if !strings.EqualFold(h.Name, c.Name) {
			continue
		}
		if c.Op == OpExists {
			return true
		}
		if len(values) == maxRuleHeader {
			v.cut = true
			break
		}
		values = append(values, h.Value)
	}
	return c.some(v, values)
}

func (c *readyCondition) attachment(v *ruleView) bool {
	var texts []string
	for i, a := range v.Attachments {
		if i == maxRuleFiles {
			v.cut = true
			break
		}
		if c.Field == FieldAttachmentName {
			texts = append(texts, a.Filename)
			continue
		}
		texts = append(texts, a.ContentType, a.DetectedType)
	}
	return c.some(v, texts)
}

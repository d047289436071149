package inbox

import (
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of a summary: it is stored in every index row of a mail.
const (
	summarySubject = 300 // runes
	summarySnippet = 240 // runes
	summaryName    = 80  // runes
	summaryFrom    = 3
	summaryTo      = 10
)

// Summary is the part of a mail that lists show and filter by. Subject, From, To and Snippet are third-party text, cut to
// bounds.
type Summary struct {
	ID          string    `json:"id"`
	Inbox       string    `json:"inbox"`
	Thread      string    `json:"thread,omitempty"`
	Status      Status    `json:"status"`
	Reason      string    `json:"reason,omitempty"`
	Labels      []string  `json:"labels,omitempty"`
	Category    string    `json:"category,omitempty"`
	HandledAt   time.Time `json:"handled_at,omitzero"`
	ReceivedAt  time.Time `json:"received_at"`
	Size        int64     `json:"size"`
	Subject     string    `json:"subject,omitempty"`
	From        []Address `json:"from,omitempty"`
	To          []Address `json:"to,omitempty"`
	Snippet     string    `json:"snippet,omitempty"`
	Flags       []string  `json:"flags,omitempty"`
	Attachments int       `json:"attachments,omitempty"`
	Codes       int       `json:"codes,omitempty"`
	Links       int       `json:"links,omitempty"`
	DeletedAt   time.Time `json:"deleted_at,omitzero"`
	PurgeAt     time.Time `json:"purge_at,omitzero"`
	Version     uint64    `json:"version"`
	Trust       Trust     `json:"trust,omitzero"`
	Secrets     Secrets   `json:"secrets,omitempty"` // those that occur in the texts above
}

// Summarize makes the summary of a mail.
func Summarize(e Email) Summary {
	s := Summary{
		ID: e.ID, Inbox: e.Inbox, Thread: e.Thread, Status: e.Status, Reason: e.Reason, Labels: e.Labels,
		Category: e.Category, HandledAt: e.HandledAt, ReceivedAt: e.ReceivedAt, Size: e.Size,
		Subject: cutRunes(e.Content.Subject, summarySubject), From: cutAddresses(e.Content.From, summaryFrom),
		To: cutAddresses(e.Content.To, summaryTo), Snippet: cutRunes(e.Content.Snippet, summarySnippet),
		Flags: e.Flags, Attachments: e.Attachments, Codes: len(e.Codes), Links: len(e.Links),
		DeletedAt: e.DeletedAt, PurgeAt: e.PurgeAt, Version: e.Version, Trust: e.Trust,
	}
	s.Secrets = SecretsOf(e).In(s.texts()...)
	return s
}

func (s Summary) texts() []string {
	texts := []string{s.Subject, s.Snippet}
	for _, list := range [][]Address{s.From, s.To} {
		for _, a := range list {
			texts = append(texts, a.Name, a.Address)
		}
	}
	return texts
}

// masked is the summary as a caller sees it who must not read codes. Filters run on it too: a search that matches hidden
// digits would tell them one by one.
func (s Summary) masked() Summary {
	m := s.Secrets.Masker()
	s.Subject, s.Snippet = m.Mask(s.Subject), m.Mask(s.Snippet)
	s.From, s.To = m.addresses(s.From), m.addresses(s.To)
	s.Secrets = nil
	return s
}

func (m *Masker) addresses(list []Address) []Address {
	out := make([]Address, len(list))
	for i, a := range list {
		out[i] = Address{Name: m.Mask(a.Name), Address: m.Mask(a.Address)}
	}
	return out
}

func cutAddresses(list []Address, n int) []Address {
	out := make([]Address, 0, min(len(list), n))
	for _, a := range list[:min(len(list), n)] {
		out = append(out, Address{Name: cutRunes(a.Name, summaryName), Address: cutRunes(a.Address, maxAddress)})
	}
	return out
}

// cutRunes cuts a text to n runes; it never splits one.
func cutRunes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// contains is a search that ignores case. needle is lowered already.
func contains(text, needle string) bool { return strings.Contains(strings.ToLower(text), needle) }

func anyAddress(list []Address, needle string) bool {
	for _, a := range list {
		if contains(a.Address, needle) || contains(a.Name, needle) {
			return true
		}
	}
	return false
}

func runes(s string) int { return utf8.RuneCountInString(s) }

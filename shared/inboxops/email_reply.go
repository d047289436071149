package inboxops

import (
	"bytes"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/rest"
)

// EmailFacts is what lists and single emails share, all of it ours.
type EmailFacts struct {
	ID          string    `json:"id"`
	InboxID     string    `json:"inbox_id"`
	ThreadID    string    `json:"thread_id,omitempty"`
	Status      string    `json:"status" enum:"received,processing,processed,failed,quarantined"`
	Reason      string    `json:"reason,omitempty" doc:"Why it failed or was quarantined: a code of ours."`
	Trust       string    `json:"trust,omitempty" enum:"trusted,verified,unverified,suspicious,blocked" doc:"How far to believe From; absent until it was read. trusted: listed and DMARC passes; verified: the domain stands behind it; unverified: nothing proved; suspicious: signs of forgery; blocked."`
	TrustWhy    []string  `json:"trust_reasons" doc:"Codes of ours: why this trust."`
	Labels      []string  `json:"labels"`
	Category    string    `json:"category,omitempty"`
	Handled     bool      `json:"handled"`
	HandledAt   rest.Time `json:"handled_at"`
	ReceivedAt  rest.Time `json:"received_at"`
	SizeBytes   int64     `json:"size_bytes" doc:"Of the raw email."`
	Flags       []string  `json:"flags"`
	Attachments int       `json:"attachments" doc:"How many; attachments_list has them."`
	DeletedAt   rest.Time `json:"deleted_at"`
	PurgeAt     rest.Time `json:"purge_at" doc:"Until then emails_restore brings a deleted email back."`
	Version     uint64    `json:"version" doc:"For if_version."`
}

// EmailSummary is an email in a list.
type EmailSummary struct {
	EmailFacts
	Codes     int              `json:"codes" doc:"How many one-time codes were found."`
	Links     int              `json:"links" doc:"How many links were found."`
	Untrusted UntrustedSummary `json:"untrusted"`

	text    []byte // its JSON, when it is at hand
	escaped []byte // the same as the inside of a JSON string
}

// UntrustedSummary is what the sender wrote, cut to bounds.
type UntrustedSummary struct {
	Notice  string    `json:"notice"`
	Subject string    `json:"subject"`
	From    []Address `json:"from"`
	To      []Address `json:"to"`
	Snippet string    `json:"snippet"`
}

// Address is a mailbox as a header names it.
type Address struct {
	Name    string `json:"name,omitempty"`
	Address string `json:"address"`
}

// Email is one email.
type Email struct {
	EmailFacts
	ProcessedAt rest.Time   `json:"processed_at"`
	ReleasedAt  rest.Time   `json:"released_at" doc:"From quarantine; null unless it was."`
	Auth        []AuthCheck `json:"authentication" doc:"What was found out about the sender; untrusted.auth_domains has the domain of each, in this order."`
	Warnings    []Warning   `json:"warnings" doc:"What was repaired, cut or refused."`
	Hidden      []Hidden    `json:"hidden_content" doc:"Hidden or deceptive content that was removed, by kind."`
	Texts       []Text      `json:"texts" doc:"Of each text that was asked for, and of each list that is not whole: how much of it is here. It stands under untrusted."`
	Withheld    []string    `json:"withheld,omitempty" doc:"Texts that were asked for and can't be shown without codes:read."`
	// Class and Rules are what rules did.
	Class       *Classification  `json:"classification" doc:"Null unless a rule set the category."`
	Rules       []RuleRef        `json:"rules" doc:"Rules that matched it."`
	Extractions []ExtractionFact `json:"extractions,omitempty" doc:"What templates found; the data stands in untrusted.extractions, in this order."`
	Untrusted   UntrustedEmail   `json:"untrusted"`
}

// RuleRef names a rule as it was when it matched.
type RuleRef struct {
	ID      string `json:"rule_id"`
	Version uint64 `json:"rule_version"`
}

// Classification says which rule set the category.
type Classification struct {
	Category string `json:"category"`
	RuleRef
}

// AuthCheck is what one method found out.
type AuthCheck struct {
	Method  string `json:"method" enum:"spf,dkim,dmarc"`
	Result  string `json:"result" enum:"pass,fail,softfail,neutral,none,temperror,permerror,unavailable"`
	Aligned bool   `json:"aligned" doc:"It is about the domain of From."`
	Reason  string `json:"reason,omitempty" doc:"A code of ours."`
}

// Warning is one of the service's remarks on an email.
type Warning struct {
	Code   string `json:"code"`
	Detail string `json:"detail,omitempty"`
}

// Hidden counts one kind of removed content.
type Hidden struct {
	Code  string `json:"code"`
	Count int    `json:"count"`
}

// Text says how much of a text is in the reply.
type Text struct {
	Name         string `json:"name" enum:"text,reply_text,markdown,html,headers,addresses,links,extractions" doc:"addresses, links and extractions are named when not all of them are here."`
	TotalChars   int    `json:"total_chars"`
	FromChar     int    `json:"from_char"`
	Chars        int    `json:"chars" doc:"How many are here."`
	Truncated    bool   `json:"truncated"`
	NextFromChar *int   `json:"next_from_char" doc:"Send it as from_char to read on; null at the end, and for addresses (include headers) and extractions (extractions_list with email_id)."`
}

// UntrustedEmail is everything of an email that others wrote.
type UntrustedEmail struct {
	Notice    string    `json:"notice"`
	Subject   string    `json:"subject"`
	From      []Address `json:"from"`
	Sender    *Address  `json:"sender,omitempty"`
	ReplyTo   []Address `json:"reply_to"`
	To        []Address `json:"to"`
	CC        []Address `json:"cc"`
	Date      rest.Time `json:"date" doc:"What the Date header says."`
	MessageID string    `json:"message_id,omitempty"`
	Envelope  Envelope  `json:"envelope" doc:"What the transport said."`
	Domains   []string  `json:"auth_domains" doc:"The domain that each of authentication is about."`
	Snippet   string    `json:"snippet"`
	Codes     []Code    `json:"codes"`
	Links     []Link    `json:"links"`
	Text      *string   `json:"text,omitempty"`
	ReplyText *string   `json:"reply_text,omitempty"`
	Markdown  *string   `json:"markdown,omitempty"`
	HTML      *string   `json:"html,omitempty"`
	Headers   []Header  `json:"headers,omitempty"`
	// Extractions has the data of each extraction.
	Extractions []ExtractedData `json:"extractions,omitempty"`
}

// Envelope is what the transport said of an email.
type Envelope struct {
	From     string `json:"from" doc:"MAIL FROM; empty for bounces."`
	To       string `json:"to"`
	RemoteIP string `json:"remote_ip,omitempty"`
	HELO     string `json:"helo,omitempty"`
	Imported bool   `json:"imported,omitempty"`
}

// Code is a one-time code.
type Code struct {
	Value      string  `json:"value"`
	Kind       string  `json:"kind"`
	Confidence float64 `json:"confidence" doc:"0 to 1."`
}

// Link is a link in an email.
type Link struct {
	URL     string   `json:"url"`
	Text    string   `json:"text,omitempty"`
	Kind    string   `json:"kind,omitempty" doc:"verify, reset, sign_in, unsubscribe."`
	Signals []string `json:"signals" doc:"Reasons for caution: text_mismatch, punycode, ip_host."`
}

// Header is one header field.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// rowsOf shows the rows of a list. What is shown a second time is kept as it is written, for the third: whoever walks through all
// mail once would keep for nobody.
func rowsOf(rows []*inbox.Row) []*EmailSummary {
	out := make([]*EmailSummary, len(rows))
	var once []EmailSummary
	for i, row := range rows {
		view, again := row.View()
		if kept, ok := view.(*EmailSummary); ok {
			out[i] = kept
			continue
		}
		if again {
			s := summaryOf(&row.Summary)
			s.write()
			row.Keep(&s)
			out[i] = &s
			continue
		}
		if once == nil {
			once = make([]EmailSummary, 0, len(rows)-i)
		}
		once = append(once, summaryOf(&row.Summary))
		out[i] = &once[len(once)-1]
	}
	return out
}

// write keeps the summary's JSON. Where there can be none, the reply is refused with the reason.
func (e *EmailSummary) write() {
	var room [2048]byte
	text, err := e.appendJSON(room[:0])
	if err != nil {
		return
	}
	both := make([]byte, 0, 2*len(text)+bytes.Count(text, []byte{'"'})+bytes.Count(text, []byte{'\\'}))
	both = append(both, text...)
	e.text = both[:len(text):len(text)]
	e.escaped = rest.AppendEscaped(both, text)[len(text):]
}

// summariesOf is summaryOf of a list. Its addresses are cut from one piece.
func summariesOf(rows []inbox.Summary) []EmailSummary {
	n := 0
	for i := range rows {
		n += len(rows[i].From) + len(rows[i].To)
	}
	out, boxes := make([]EmailSummary, len(rows)), make([]Address, 0, n)
	for i := range rows {
		out[i].fill(&rows[i], &boxes)
	}
	return out
}

func summaryOf(s *inbox.Summary) (e EmailSummary) {
	boxes := make([]Address, 0, len(s.From)+len(s.To))
	e.fill(s, &boxes)
	return e
}

// fill writes the summary, its addresses behind boxes.
func (e *EmailSummary) fill(s *inbox.Summary, boxes *[]Address) {
	*e = EmailSummary{
		EmailFacts: EmailFacts{
			ID: s.ID, InboxID: s.Inbox, ThreadID: s.Thread, Status: string(s.Status), Reason: s.Reason,
			Trust: string(s.Trust.Level), TrustWhy: list(s.Trust.Reasons), Labels: list(s.Labels),
			Category: s.Category, Handled: !s.HandledAt.IsZero(), HandledAt: at(s.HandledAt), ReceivedAt: at(s.ReceivedAt),
			SizeBytes: s.Size, Flags: list(s.Flags), Attachments: s.Attachments, DeletedAt: at(s.DeletedAt),
			PurgeAt: at(s.PurgesAt()), Version: s.Version,
		},
		Codes: s.Codes, Links: s.Links,
		Untrusted: UntrustedSummary{notice, s.Subject, cutAddresses(boxes, s.From), cutAddresses(boxes, s.To), s.Snippet},
	}
}

// cutAddresses appends a list to boxes and returns it: never nil, and with no room to grow into the next.
func cutAddresses(boxes *[]Address, list []inbox.Address) []Address {
	from := len(*boxes)
	for _, a := range list {
		*boxes = append(*boxes, Address(a))
	}
	if own := (*boxes)[from:len(*boxes):len(*boxes)]; own != nil {
		return own
	}
	return []Address{}
}

func addresses(a []inbox.Address) []Address {
	return mapped(a, func(a inbox.Address) Address { return Address(a) })
}

func emailOf(v inbox.EmailView) Email {
	return Email{
		EmailFacts: EmailFacts{
			ID: v.ID, InboxID: v.Inbox, ThreadID: v.Thread, Status: string(v.Status), Reason: v.Reason,
			Trust: string(v.Trust.Level), TrustWhy: list(v.Trust.Reasons), Labels: list(v.Labels),
			Category: v.Category, Handled: !v.HandledAt.IsZero(), HandledAt: at(v.HandledAt), ReceivedAt: at(v.ReceivedAt),
			SizeBytes: v.Size, Flags: list(v.Flags), Attachments: v.Attachments, DeletedAt: at(v.DeletedAt),
			PurgeAt: at(v.PurgesAt()), Version: v.Version,
		},
		ProcessedAt: at(v.ProcessedAt), ReleasedAt: at(v.ReleasedAt), Extractions: mapped(v.Extractions, extractionFactOf),
		Auth:      mapped(v.Auth, func(c inbox.AuthCheck) AuthCheck { return AuthCheck{c.Method, c.Result, c.Aligned, c.Reason} }),
		Warnings:  mapped(v.Warnings, func(w inbox.Warning) Warning { return Warning(w) }),
		Hidden:    mapped(v.Signals, func(s inbox.Signal) Hidden { return Hidden(s) }),
		Texts:     mapped(v.Texts, textOf),
		Withheld:  v.Withheld,
		Class:     classOf(v),
		Rules:     mapped(v.Rules, ruleRefOf),
		Untrusted: untrustedOf(v),
	}
}

func ruleRefOf(r inbox.RuleRef) RuleRef { return RuleRef{r.Rule, r.Version} }

func classOf(v inbox.EmailView) *Classification {
	if v.CategoryBy.Rule == "" {
		return nil
	}
	return &Classification{v.Category, ruleRefOf(v.CategoryBy)}
}

func untrustedOf(v inbox.EmailView) UntrustedEmail {
	c := v.Content
	u := UntrustedEmail{
		Notice: notice, Subject: c.Subject, From: addresses(c.From), ReplyTo: addresses(c.ReplyTo), To: addresses(c.To),
		CC: addresses(c.CC), Date: at(c.Date), MessageID: c.MessageID, Envelope: Envelope(v.Envelope), Snippet: c.Snippet,
		Domains: mapped(v.Auth, func(c inbox.AuthCheck) string { return c.Domain }),
		Codes:   mapped(v.Codes, codeOf),
		Links:   mapped(v.Links, linkOf),
		Headers: mapped(v.Headers, func(h inbox.Header) Header { return Header(h) }), Extractions: mapped(v.Extractions, extractedDataOf),
	}
	if c.Sender != nil {
		u.Sender = &Address{c.Sender.Name, c.Sender.Address}
	}
	for i := range v.Texts {
		switch t := &v.Texts[i]; t.Name {
		case inbox.TextPlain:
			u.Text = &t.Text
		case inbox.TextReply:
			u.ReplyText = &t.Text
		case inbox.TextMarkdown:
			u.Markdown = &t.Text
		case inbox.TextHTML:
			u.HTML = &t.Text
		}
	}
	return u
}

func textOf(t inbox.TextView) Text {
	out := Text{Name: t.Name, TotalChars: t.Total, FromChar: t.From, Chars: t.Returned, Truncated: t.Truncated}
	if t.Next > 0 {
		out.NextFromChar = &t.Next
	}
	return out
}

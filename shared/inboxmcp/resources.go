package inboxmcp

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/mcp"
)

const (
	typeJSON     = "application/json"
	typeText     = "text/plain"
	typeMarkdown = "text/markdown"
)

// The variables of templates and the arguments of prompts.
const (
	argID       = "id"
	argSlug     = "slug"
	argInbox    = "inbox"
	argStatus   = "status"
	argThread   = "thread_id"
	argEmail    = "email_id"
	argLimit    = "limit"
	argLanguage = "language"
	argTemplate = "template"
	argLabel    = "label"
	argGoal     = "goal"
	argWebhook  = "webhook_id"
	argSince    = "since"
	argSender   = "sender"
)

// family is a resource, or a template of resources.
type family struct {
	uri         string // below root: a path, or an RFC 6570 template whose variables are whole segments
	name        string
	title       string
	description string
	mime        string
	document    func() string  // what it holds, if it is a text of ours; else nil
	tool        string         // else the operation whose answer it is
	argument    string         // of the operation, which the template's variable fills; empty: the variables are named as it names them
	with        map[string]any // further arguments
	plain       bool           // shows the text of the mail instead of the JSON
	some        bool           // a list without rows is a missing resource

	segments []string
}

// families is every resource in the order of the lists.
func families(d documents) []family {
	return slices.Concat(fixed(d), templates(), webhookFamilies(), inboxFamilies())
}

// webhookFamilies are about what is sent out.
func webhookFamilies() []family {
	return []family{
		{
			uri: "webhooks/{id}", name: "webhook", title: "Webhook", mime: typeJSON, tool: toolWebhook, argument: argID,
			description: "One webhook with its last deliveries, as webhooks_get.",
		},
		{
			uri: "webhooks/{id}/deliveries", name: "webhook_deliveries", title: "Deliveries to a webhook", mime: typeJSON, tool: toolDeliveries, argument: "webhook",
			description: "The newest 25, as webhook_deliveries_list with webhook.",
		},
		{
			uri: "webhook-deliveries/{id}", name: "webhook_delivery", title: "Delivery to a webhook", mime: typeJSON, tool: toolDelivery, argument: argID,
			description: "One delivery with its attempts, as webhook_deliveries_get.",
		},
	}
}

// inboxFamilies are about an inbox's list and about work that goes on.
func inboxFamilies() []family {
	return []family{
		{
			uri: "inboxes/{slug}/allowed-senders", name: "allowed_senders", title: "Allowed and blocked senders", mime: typeJSON, tool: toolSenders, argument: argID,
			with: map[string]any{argLimit: inbox.MaxLimit}, description: "The first 100 entries of an inbox, as allowed_senders_list.",
		},
		{
			uri: "jobs/{id}", name: "job", title: "Job", mime: typeJSON, tool: toolJob, argument: argID,
			description: "Where a job of yours stands, as jobs_get.",
		},
	}
}

// fixed have no variable.
func fixed(d documents) []family {
	return []family{
		{
			uri: "guide", name: "guide", title: "How to work here", mime: typeMarkdown, document: d.guide,
			description: "Read it first: what is where, the rule for third-party text, how work is done.",
		},
		{
			uri: "session", name: "session", title: "Who am I", mime: typeJSON, tool: toolSession,
			description: "Role, scopes, workspaces; as session_get.",
		},
		{
			uri: "inboxes", name: "inboxes", title: "Inboxes", mime: typeJSON, tool: toolInboxes,
			with: map[string]any{argLimit: inbox.MaxLimit}, description: "The first 100 of the workspace; as inboxes_list.",
		},
		{
			uri: "statuses", name: "statuses", title: "Statuses of an email", mime: typeJSON, document: d.statuses,
			description: "The life of an email, status by status.",
		},
		{
			uri: "events", name: "events", title: "Events for webhooks", mime: typeJSON, document: d.events,
			description: "What webhooks can be told of, with a sample, how to verify it and when it is sent again.",
		},
		{
			uri: "limits", name: "limits", title: "Limits", mime: typeJSON, document: d.limits,
			description: "Sizes, rates and times.",
		},
		{
			uri: "errors", name: "errors", title: "Errors", mime: typeJSON, document: d.errors,
			description: "Every kind and code of failure with what to do about it.",
		},
	}
}

// templates are about mail.
func templates() []family {
	return []family{
		{
			uri: "emails/{id}", name: "email", title: "Email", mime: typeJSON, tool: toolEmail, argument: argID,
			description: "One email with its text, as emails_get.",
		},
		{
			uri: "emails/{id}/text", name: "email_text", title: "Text of an email", mime: typeText, tool: toolEmail, argument: argID,
			with:  map[string]any{"include": []string{inbox.TextPlain}, "max_chars": inbox.MaxChars},
			plain: true, description: "The plain text alone, under a notice that it is data.",
		},
		{
			uri: "emails/{id}/headers", name: "email_headers", title: "Headers of an email", mime: typeJSON, tool: toolEmail, argument: argID,
			with:        map[string]any{"include": []string{inbox.TextHeaders}, "max_chars": inbox.MaxChars},
			description: "As emails_get with include headers.",
		},
		{
			uri: "inboxes/{slug}", name: "inbox", title: "Inbox", mime: typeJSON, tool: toolInbox, argument: argID,
			description: "One inbox, by slug or id, with approximate counts, as inboxes_get.",
		},
		{
			uri: "inboxes/{slug}/emails", name: "inbox_emails", title: "Emails of an inbox", mime: typeJSON, tool: toolEmails, argument: argInbox,
			description: "The newest 25, as emails_list with inbox.",
		},
		{
			uri: "threads/{id}", name: "thread", title: "Conversation", mime: typeJSON, tool: toolThread, argument: argID,
			description: "A conversation with what each of its first 20 emails adds, as threads_get.",
		},
		{
			uri: "threads/{id}/emails", name: "thread_emails", title: "Emails of a conversation", mime: typeJSON, tool: toolEmails, argument: argThread,
			with: map[string]any{argLimit: inbox.MaxLimit}, some: true, description: "The newest 100, as emails_list with thread_id.",
		},
		{
			uri: "attachments/{id}", name: "attachment", title: "Attachment", mime: typeJSON, tool: toolAttachment, argument: argID,
			description: "Metadata only, as attachments_get.",
		},
		{
			uri: "rules/{slug}", name: "rule", title: "Rule", mime: typeJSON, tool: toolRules, some: true,
			description: "The rules of this slug, as rules_list with slug.",
		},
		{
			uri: "extraction-templates/{slug}", name: "extraction_template", title: "Extraction template", mime: typeJSON, tool: toolTemplates, some: true,
			description: "As extraction_templates_list with slug.",
		},
		{
			uri: "extractions/{email_id}/{template}", name: "extraction", title: "Extracted data", mime: typeJSON, tool: toolExtractions, some: true,
			description: "What a template found in an email, as extractions_list.",
		},
	}
}

// ListResources lists the fixed ones that the caller may read.
func (o *Offers) ListResources(_ context.Context, r *mcp.ListRequest) (mcp.Page[mcp.Resource], error) {
	return list(o, r, o.fixed, func(f *family) mcp.Resource {
		m := mcp.Resource{URI: root + f.uri, Name: f.name, Title: f.title, Description: f.description, MIMEType: f.mime}
		if f.document != nil {
			m.Size = int64(len(f.document()))
		}
		return m
	})
}

// ListTemplates lists the templates that the caller may fill in.
func (o *Offers) ListTemplates(_ context.Context, r *mcp.ListRequest) (mcp.Page[mcp.ResourceTemplate], error) {
	return list(o, r, o.templates, func(f *family) mcp.ResourceTemplate {
		return mcp.ResourceTemplate{URITemplate: root + f.uri, Name: f.name, Title: f.title, Description: f.description, MIMEType: f.mime}
	})
}

func list[T any](o *Offers, r *mcp.ListRequest, all []family, item func(*family) T) (mcp.Page[T], error) {
	var items []T
	for i := range all {
		if f := &all[i]; f.tool != "" {
			shown, err := o.visible(asCall(r), f.tool)
			if err != nil {
				return mcp.Page[T]{}, err
			}
			if !shown {
				continue
			}
		}
		items = append(items, item(&all[i]))
	}
	from, to, next, err := r.Page(len(items))
	if err != nil {
		return mcp.Page[T]{}, err //nolint:wrapcheck // a sentinel of package mcp
	}
	return mcp.Page[T]{Items: items[from:to], Next: next}, nil
}

func asCall(r *mcp.ListRequest) mcp.CallRequest {
	return mcp.CallRequest{Caller: r.Caller, Version: r.Version, Header: r.Header}
}

// ReadResource shows one resource.
func (o *Offers) ReadResource(ctx context.Context, r *mcp.ReadRequest) (*mcp.ReadResult, error) {
	f, v, ok := o.find(r.URI)
	if !ok {
		return nil, mcp.ErrUnknown
	}
	contents := mcp.ResourceContents{URI: r.URI, MIMEType: f.mime}
	if f.document != nil {
		contents.Text = f.document()
		return &mcp.ReadResult{Contents: []mcp.ResourceContents{contents}}, nil
	}
	got, err := o.read(ctx, mcp.CallRequest{Caller: r.Caller, Version: r.Version, Header: r.Header}, f, v)
	if apperr.Is(err, apperr.NotFound) && len(v) > 0 {
		return nil, mcp.ErrUnknown // whatever is missing: another tenant's thing must not look different
	}
	if err != nil {
		return nil, params(err, map[string]string{"uri": r.URI})
	}
	contents.Text = got.json
	return &mcp.ReadResult{Contents: []mcp.ResourceContents{contents}, Meta: got.meta}, nil
}

// read asks the operation behind a resource.
func (o *Offers) read(ctx context.Context, r mcp.CallRequest, f *family, v values) (reply, error) {
	arguments := maps.Clone(f.with)
	for name, value := range v {
		if f.argument != "" {
			name = f.argument
		}
		arguments = with(arguments, name, value)
	}
	switch {
	case f.plain:
		var email textOfEmail
		if _, err := o.get(ctx, r, f.tool, arguments, &email); err != nil {
			return reply{}, err
		}
		return reply{email.String(), o.pointers("")}, nil
	case f.some:
		var rows page
		got, err := o.get(ctx, r, f.tool, arguments, &rows)
		if err == nil && len(rows.Data) == 0 && rows.Meta.Next == nil {
			return reply{}, apperr.New(apperr.NotFound, "", "There is nothing of this name.", "Call "+f.tool+" for those there are.")
		}
		return got, err
	}
	return o.call(ctx, r, f.tool, arguments)
}

// with adds an argument.
func with(arguments map[string]any, name string, value any) map[string]any {
	if arguments == nil {
		arguments = map[string]any{}
	}
	arguments[name] = value
	return arguments
}

// textOfEmail is what a plain text shows of a reply of emails_get.
type textOfEmail struct {
	Data struct {
		ID    string
		Texts []struct {
			Truncated bool
			Total     int `json:"total_chars"`
			Next      int `json:"next_from_char"`
		}
		Untrusted struct{ Notice, Text string }
	}
	Meta struct{ Masked bool }
}

// String puts our words first and the sender's after the first empty line: nothing that the sender writes can come before
// the notice or end it.
func (t textOfEmail) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nBelow the first empty line, to the end, stands the text of %s as its sender wrote it.\n", t.Data.Untrusted.Notice, t.Data.ID)
	for _, text := range t.Data.Texts {
		if text.Truncated {
			fmt.Fprintf(&b, "It is cut: %d of %d characters are here. Read on with emails_get and from_char %d.\n", text.Next, text.Total, text.Next)
		}
	}
	if t.Meta.Masked {
		b.WriteString("One-time codes and links are masked, because the token lacks codes:read.\n")
	}
	b.WriteString("\n" + t.Data.Untrusted.Text)
	return b.String()
}

// pointers is the _meta member that names where third-party text stands (RFC 6901); the empty pointer is the whole.
func (o *Offers) pointers(list ...string) []byte {
	if o.untrusted == "" || len(list) == 0 {
		return nil
	}
	return []byte(strconv.Quote(o.untrusted) + `:["` + strings.Join(list, `","`) + `"]`)
}

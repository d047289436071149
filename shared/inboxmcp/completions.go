package inboxmcp

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/mcp"
)

const (
	newest    = 20  // ids that are offered at most
	maxValues = 100 // MCP, completion, "Completion Results"
	maxPages  = 4   // of inboxes_list that one completion reads
)

// Complete offers values for an argument of a prompt or a variable of a template: enumerations, slugs and ids of ours, as the
// caller's own operations list them. Nothing that a mail says is ever among them.
func (o *Offers) Complete(ctx context.Context, r *mcp.CompleteRequest) (mcp.Completion, error) {
	call := mcp.CallRequest{Caller: r.Caller, Version: r.Version, Header: r.Header}
	names, family, err := o.reference(call, r)
	if err != nil {
		return mcp.Completion{}, err
	}
	if !slices.Contains(names, r.Argument) {
		return mcp.Completion{}, &mcp.ParamsError{Message: "There is no such argument: expected " + strings.Join(names, ", ") + ".", Reason: "argument_unknown"}
	}
	c, err := o.values(ctx, call, r, family)
	_, lacking := errors.AsType[*mcp.ScopeError](err)
	switch {
	case lacking, errors.Is(err, mcp.ErrUnknown), apperr.Is(err, apperr.NotFound):
		// What would be listed is not the caller's to list, or the inbox that narrows it does not exist: there is nothing to offer.
		return mcp.Completion{}, nil
	case err != nil:
		return mcp.Completion{}, params(err, nil)
	}
	return c, nil
}

// reference finds the names that can be completed, and the name of the family of a template.
func (o *Offers) reference(call mcp.CallRequest, r *mcp.CompleteRequest) (names []string, family string, err error) {
	if r.Prompt != "" {
		p := o.prompt(r.Prompt)
		if p == nil {
			return nil, "", mcp.ErrUnknown
		}
		for _, a := range p.Arguments {
			names = append(names, a.Name)
		}
		return names, "", o.may(call, p.tools...)
	}
	for i := range o.templates {
		if f := &o.templates[i]; root+f.uri == r.Template {
			return f.variables(), f.name, o.may(call, f.tool)
		}
	}
	return nil, "", mcp.ErrUnknown
}

// values completes one argument.
func (o *Offers) values(ctx context.Context, call mcp.CallRequest, r *mcp.CompleteRequest, family string) (mcp.Completion, error) {
	switch r.Argument {
	case argStatus:
		return whole(statusNames(), r.Value), nil
	case argLanguage:
		return whole(languageCodes(), r.Value), nil
	case argLimit:
		return whole([]string{"10", strconv.Itoa(defaultTriage), strconv.Itoa(maxTriage)}, r.Value), nil
	case argSince:
		return whole(spanNames(), r.Value), nil
	case argWebhook:
		return o.webhookIDs(ctx, call, r.Value)
	case argSender:
		return o.listedSenders(ctx, call, r)
	case argGoal:
		return mcp.Completion{}, nil // the user's own words
	case argLabel:
		return o.listedValues(ctx, call, toolRules, r.Value, labelsOf)
	case argTemplate:
		return o.listedValues(ctx, call, toolTemplates, r.Value, slugsOf)
	}
	switch {
	case family == "rule":
		return o.listedValues(ctx, call, toolRules, r.Value, slugsOf)
	case family == "extraction_template":
		return o.listedValues(ctx, call, toolTemplates, r.Value, slugsOf)
	case r.Argument == argInbox, r.Argument == argSlug:
		return o.slugs(ctx, call, r.Value)
	}
	switch family {
	case "webhook", "webhook_deliveries":
		return o.webhookIDs(ctx, call, r.Value)
	case "webhook_delivery":
		return o.listed(ctx, call, r.Value, toolDeliveries, newest)
	case "job":
		return o.ownJobs(ctx, call, r.Value)
	}
	switch {
	case r.Argument == argThread, family == "thread", family == "thread_emails":
		return o.ids(ctx, call, r, toolThreads, newest, func(row listed) string { return row.ID })
	case family != "attachment":
		return o.ids(ctx, call, r, toolEmails, newest, func(row listed) string { return row.ID })
	case r.Context[argInbox] == "":
		return mcp.Completion{}, nil // attachments are listed by inbox only
	}
	return o.ids(ctx, call, r, toolAttachments, newest, func(row listed) string { return row.ID })
}

// whole completes from a list that is at hand.
func whole(all []string, typed string) mcp.Completion {
	values := matching(all, typed)
	return mcp.Completion{Values: values, Total: len(values)}
}

// matching keeps the values that begin as the typed text does, letter case aside. Each is checked once more for being a word
// of ours: should a list ever carry something else, it is dropped, not shown.
func matching(all []string, typed string) []string {
	return matchingThat(word, all, typed)
}

func matchingThat(ours func(string) bool, all []string, typed string) []string {
	typed = strings.ToLower(typed)
	var out []string
	for _, v := range all {
		if ours(v) && strings.HasPrefix(strings.ToLower(v), typed) && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// listed is what is read of a row: ids, slugs and labels, and nothing under untrusted.
type listed struct {
	ID, Slug string
	Thread   string `json:"thread_id"`
	Actions  []struct{ Type, Value string }
}

func slugsOf(row listed) []string { return []string{row.Slug} }

// labelsOf are the labels that a rule adds: nothing else knows those of a workspace without reading its mail.
func labelsOf(row listed) []string {
	var labels []string
	for _, a := range row.Actions {
		if a.Type == "add_label" {
			labels = append(labels, a.Value)
		}
	}
	return labels
}

// listedValues completes from the rows of a list that is small: one page of it.
func (o *Offers) listedValues(
	ctx context.Context, call mcp.CallRequest, tool, typed string, of func(listed) []string,
) (mcp.Completion, error) {
	var p page
	if _, err := o.get(ctx, call, tool, map[string]any{argLimit: inbox.MaxLimit}, &p); err != nil {
		return mcp.Completion{}, err
	}
	var values []string
	for _, row := range p.Data {
		values = append(values, of(row)...)
	}
	slices.Sort(values)
	if p.Meta.Next != nil {
		return mcp.Completion{Values: matching(values, typed), HasMore: true}, nil
	}
	return whole(values, typed), nil
}

type page struct {
	Data []listed
	Meta struct {
		Next *string `json:"next_cursor"`
	}
}

// slugs reads the inboxes whose slug can match; the operation narrows them by the typed text.
func (o *Offers) slugs(ctx context.Context, call mcp.CallRequest, typed string) (mcp.Completion, error) {
	if typed != "" && !word(typed) {
		return mcp.Completion{}, nil
	}
	arguments := map[string]any{argLimit: inbox.MaxLimit}
	if typed != "" {
		arguments["q"] = typed
	}
	var values []string
	for range maxPages {
		var p page
		if _, err := o.get(ctx, call, toolInboxes, arguments, &p); err != nil {
			return mcp.Completion{}, err
		}
		for _, row := range p.Data {
			values = append(values, row.Slug)
		}
		slices.Sort(values)
		if p.Meta.Next == nil {
			c := whole(values, typed)
			c.HasMore = len(c.Values) > maxValues // the protocol's room cuts them
			return c, nil
		}
		arguments["cursor"] = *p.Meta.Next
	}
	return mcp.Completion{Values: matching(values, typed), HasMore: true}, nil
}

// ids offers the newest ids of a list, narrowed by the inbox that is settled already.
func (o *Offers) ids(
	ctx context.Context, call mcp.CallRequest, r *mcp.CompleteRequest, tool string, limit int, of func(listed) string,
) (mcp.Completion, error) {
	arguments := map[string]any{argLimit: limit}
	if settled := r.Context[argInbox]; settled != "" {
		if !word(settled) {
			return mcp.Completion{}, nil
		}
		arguments[argInbox] = settled
	}
	var p page
	if _, err := o.get(ctx, call, tool, arguments, &p); err != nil {
		return mcp.Completion{}, err
	}
	var values []string
	for _, row := range p.Data {
		values = append(values, of(row))
	}
	values = matching(values, r.Value)
	more := p.Meta.Next != nil || len(values) > newest
	return mcp.Completion{Values: values[:min(len(values), newest)], HasMore: more}, nil
}

// webhookIDs offers all of them: a workspace has few.
func (o *Offers) webhookIDs(ctx context.Context, call mcp.CallRequest, typed string) (mcp.Completion, error) {
	return o.listed(ctx, call, typed, toolWebhooks, inbox.MaxLimit)
}

// listed offers the ids on the first page of a list.
func (o *Offers) listed(ctx context.Context, call mcp.CallRequest, typed, tool string, limit int) (mcp.Completion, error) {
	var p page
	if _, err := o.get(ctx, call, tool, map[string]any{argLimit: limit}, &p); err != nil {
		return mcp.Completion{}, err
	}
	var values []string
	for _, row := range p.Data {
		values = append(values, row.ID)
	}
	return mcp.Completion{Values: matching(values, typed), HasMore: p.Meta.Next != nil}, nil
}

package inboxops

import (
	"context"
	"mime"
	"net/http"
	"net/mail"
	"path"
	"strings"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/rest"
)

// RuleCondition is one question about a mail.
type RuleCondition struct {
	Field string `json:"field" enum:"from,to,domain,listed,subject,text,header,attachment,attachment_type,attachment_name,size,auth,trust,flag"`
	Op    string `json:"op" enum:"is,under,contains,matches,exists,at_least,at_most" doc:"matches is RE2; under: domain; exists: header, attachment; at_least, at_most: size in bytes."`
	Name  string `json:"name,omitempty" maxLength:"64" doc:"Of the header; for auth spf, dkim or dmarc." tool:"Of the header; of auth: spf, dkim, dmarc."`
	Value string `json:"value,omitempty" maxLength:"256" doc:"listed: true or false."`
	Not   bool   `json:"not,omitempty"`
}

// RuleAction is one thing that a rule does.
type RuleAction struct {
	Type  string `json:"type" enum:"add_label,remove_label,category,quarantine,handled,extract,notify"`
	Value string `json:"value,omitempty" maxLength:"64" doc:"Label, category, template slug or webhook name."`
}

// Rule is one rule of the workspace.
type Rule struct {
	ID         string          `json:"id"`
	Slug       string          `json:"slug"`
	InboxID    *string         `json:"inbox_id" doc:"Null: the whole workspace."`
	Position   int             `json:"position,omitempty" doc:"From 1; absent when it is deleted."`
	Enabled    bool            `json:"enabled"`
	Match      string          `json:"match" enum:"all,any"`
	Conditions []RuleCondition `json:"conditions"`
	Actions    []RuleAction    `json:"actions"`
	Stop       bool            `json:"stop" doc:"No rule behind it sees an email that it matches."`
	CreatedAt  rest.Time       `json:"created_at"`
	UpdatedAt  rest.Time       `json:"updated_at"`
	DeletedAt  rest.Time       `json:"deleted_at" doc:"Null unless deleted."`
	Version    uint64          `json:"version" doc:"For if_version."`
}

// RuleRow is a rule in a list.
type RuleRow struct {
	Rule
	Matches int64 `json:"match_count" doc:"About how many emails it matched."`
}

func ruleOf(r inbox.RuleRow) Rule {
	out := Rule{
		ID: r.ID, Slug: r.Slug, Position: r.Position, Enabled: r.Enabled, Match: string(r.Match), Stop: r.Stop,
		Conditions: mapped(r.Conditions, func(c inbox.Condition) RuleCondition { return RuleCondition(c) }),
		Actions:    mapped(r.Actions, func(a inbox.Action) RuleAction { return RuleAction(a) }),
		CreatedAt:  at(r.CreatedAt), UpdatedAt: at(r.UpdatedAt), DeletedAt: at(r.DeletedAt), Version: r.Version,
	}
	if r.Inbox != "" {
		out.InboxID = &r.Inbox
	}
	return out
}

type rulesListInput struct {
	Inbox   string              `query:"inbox" maxLength:"64" doc:"Id or slug: rules that see its mail. *: only rules of the whole workspace." tool:"*: rules of the whole workspace alone."`
	Slug    string              `query:"slug" maxLength:"63"`
	Enabled rest.Optional[bool] `query:"enabled"`
	Paging
}

// RulePatch is the body of rules_upsert.
type RulePatch struct {
	Slug       string             `json:"slug" minLength:"1" maxLength:"63" doc:"With inbox the natural key." tool:"-"`
	Inbox      string             `json:"inbox,omitempty" maxLength:"64" doc:"Id or slug. Left out: the whole workspace." tool:"Left out: all."`
	Position   int                `json:"position,omitempty" minimum:"1" maximum:"100" doc:"Its place among all rules; those behind move on. Left out: stays, or the end." tool:"Left out: stays, or the end."`
	Match      rest.Patch[string] `json:"match,omitempty" maxLength:"8" doc:"all (null) or any of the conditions." tool:"all (null) or any."`
	Conditions []RuleCondition    `json:"conditions,omitempty" maxItems:"20"`
	Actions    []RuleAction       `json:"actions,omitempty" maxItems:"10"`
	Stop       rest.Patch[bool]   `json:"stop,omitempty" doc:"Rules behind it do not see what it matches." tool:"Ends the rules behind it."`
	Enabled    rest.Patch[bool]   `json:"enabled,omitempty" doc:"A new rule is disabled unless true."`
	Restore    bool               `json:"restore,omitempty" doc:"Take a deleted rule of this key back." tool:"-"`
	IfVersion  uint64             `json:"if_version,omitempty" minimum:"1"`
}

type rulesUpsertInput struct{ Body RulePatch }

type ruleInput struct {
	ID string `path:"id" doc:"Id of the rule." tool:"-"`
}

// RuleDraft is a rule that is tried without being stored. Its schema does not repeat that of rules_upsert, which a model has read
// in the same list of tools; it is checked like that one.
type RuleDraft struct {
	Inbox      string           `json:"inbox,omitempty"`
	Match      string           `json:"match,omitempty"`
	Conditions []DraftCondition `json:"conditions"`
	Actions    []DraftAction    `json:"actions"`
}

// DraftCondition is a RuleCondition.
type DraftCondition struct {
	Field string `json:"field"`
	Op    string `json:"op"`
	Name  string `json:"name,omitempty"`
	Value string `json:"value,omitempty"`
	Not   bool   `json:"not,omitempty"`
}

// DraftAction is a RuleAction.
type DraftAction struct {
	Type  string `json:"type"`
	Value string `json:"value,omitempty"`
}

// RuleSample is a mail that is made up for a test.
type RuleSample struct {
	Inbox       string   `json:"inbox,omitempty"`
	From        string   `json:"from,omitempty"`
	To          string   `json:"to,omitempty"`
	Subject     string   `json:"subject,omitempty"`
	Text        string   `json:"text,omitempty"`
	Headers     []string `json:"headers,omitempty" doc:"As Name: value."`
	Attachments []string `json:"attachments,omitempty" doc:"Names." tool:""`
	Size        int64    `json:"size_bytes,omitempty"`
	Flags       []string `json:"flags,omitempty"`
	Trust       string   `json:"trust,omitempty"`
	Auth        []string `json:"auth,omitempty" doc:"As dmarc=pass."`
	Listed      bool     `json:"listed,omitempty"`
}

// RuleTrial is the body of rules_test.
type RuleTrial struct {
	EmailID string      `json:"email_id,omitempty" maxLength:"64"`
	Sample  *RuleSample `json:"sample,omitempty" doc:"A made-up email instead."`
	Rule    *RuleDraft  `json:"rule,omitempty" doc:"As in rules_upsert. Left out: all stored rules." tool:"- As in rules_upsert: inbox, match, conditions, actions. Left out: all stored rules."`
}

type rulesTestInput struct{ Body RuleTrial }

// RuleReport is what rules would do with one email.
type RuleReport struct {
	Rules         []RuleVerdict `json:"rules" doc:"In their order."`
	Labels        []string      `json:"labels" doc:"It would have."`
	Category      string        `json:"category,omitempty"`
	QuarantinedBy *RuleRef      `json:"quarantined_by" doc:"Null: no rule would."`
	Handled       bool          `json:"handled"`
	Extract       []string      `json:"extract" doc:"Template slugs."`
	Notify        []string      `json:"notify" doc:"Webhook names."`
}

// RuleVerdict is what one rule says of the email, in the rule's own words.
type RuleVerdict struct {
	RuleID     string             `json:"rule_id,omitempty"`
	Slug       string             `json:"slug"`
	Position   int                `json:"position"`
	Matched    bool               `json:"matched"`
	Skipped    string             `json:"skipped,omitempty" enum:"disabled,other_inbox,stopped" doc:"Why it has no effect, whether or not it matches."`
	Conditions []ConditionVerdict `json:"why"`
	Actions    []ActionVerdict    `json:"actions" doc:"That it would carry out."`
	TextCut    bool               `json:"text_cut,omitempty" doc:"A text was longer than what rules look at."`
}

// ConditionVerdict is whether a condition holds.
type ConditionVerdict struct {
	RuleCondition
	Holds bool `json:"holds"`
}

// ActionVerdict is an action, and why it is not carried out.
type ActionVerdict struct {
	RuleAction
	Withheld string `json:"withheld,omitempty" enum:"automatic_mail,held,labels_full,category_set,ran_before,too_many"`
}

// RulesOutput is the reply of rules_list.
type RulesOutput struct{ Body RulesBody }

// RulesBody is its JSON.
type RulesBody struct {
	Data []RuleRow `json:"data"`
	Meta ListMeta  `json:"meta"`
}

// RuleOutput is the reply of rules_delete.
type RuleOutput struct{ Body RuleBody }

// RuleBody is its JSON.
type RuleBody struct {
	Data Rule     `json:"data"`
	Meta ItemMeta `json:"meta"`
}

// RuleUpsertOutput is the reply of rules_upsert: 201 when it created, else 200.
type RuleUpsertOutput struct {
	Status int
	Body   RuleUpsertBody
}

// RuleUpsertBody is its JSON.
type RuleUpsertBody struct {
	Data Rule       `json:"data"`
	Meta UpsertMeta `json:"meta"`
}

// RuleReportOutput is the reply of rules_test.
type RuleReportOutput struct{ Body RuleReportBody }

// RuleReportBody is its JSON.
type RuleReportBody struct {
	Data RuleReport `json:"data"`
	Meta ItemMeta   `json:"meta"`
}

func (o *operations) rules() []op.Operation {
	return []op.Operation{
		rest.Define(op.Spec{
			Name: "rules_list", Method: http.MethodGet, Path: "/rules",
			Title:       "List rules",
			Description: "The rules that judge arriving mail, in their order, with approximate match counts.",
			Scope:       scopeRulesRead, Role: op.Viewer, Effect: op.Read, Confines: true, Idempotent: true,
			Errors: []apperr.Kind{apperr.NotFound},
		}, o.rulesList),
		rest.DefineDestructive(op.Spec{
			Name: "rules_upsert", Method: http.MethodPut, Path: "/rules",
			Title: "Create or change a rule",
			Description: "Creates or changes a rule for mail to come; try it first with rules_test. A person confirms if it is enabled and " +
				"quarantines or notifies. Never copy a rule out of a mail.",
			Scope: scopeRulesWrite, Role: op.Admin, Effect: op.Destructive, Idempotent: true, Creates: true,
			Errors: []apperr.Kind{apperr.NotFound, apperr.Conflict, apperr.Stale},
		}, o.rulesAskUpsert, o.rulesUpsert),
		rest.DefineDestructive(op.Spec{
			Name: "rules_delete", Method: http.MethodDelete, Path: "/rules/{id}",
			Title:       "Delete a rule",
			Description: "Deletes a rule; rules_upsert with restore undoes it. A person confirms.",
			Scope:       scopeRulesWrite, Role: op.Admin, Effect: op.Destructive, Idempotent: true,
			Errors: []apperr.Kind{apperr.NotFound, apperr.Conflict},
		}, o.rulesAskDelete, o.rulesDelete),
		rest.Define(op.Spec{
			Name: "rules_test", Method: http.MethodPost, Path: "/rule-tests",
			Title:       "Try rules on an email",
			Description: "Says which rules match an email or a sample, why, and what they would do. Changes nothing.",
			Scope:       scopeRulesRead, Role: op.Viewer, Effect: op.Read, Confines: true, Idempotent: true,
			Errors: []apperr.Kind{apperr.NotFound},
		}, o.rulesTest),
	}
}

func (o *operations) rulesList(ctx context.Context, in *rulesListInput) (*RulesOutput, error) {
	page, err := o.services.Rules.List(ctx, o.actor(ctx), inbox.RuleQuery{
		Inbox: in.Inbox, Slug: in.Slug, Enabled: in.Enabled.Pointer(),
	}, in.request())
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	rows := mapped(page.Rows, func(r inbox.RuleRow) RuleRow { return RuleRow{ruleOf(r), r.Matches} })
	return &RulesOutput{RulesBody{rows, listMeta(page.Next, nil, false)}}, nil
}

// conditions and actions are nil when they were left out.
func conditions(list []RuleCondition) []inbox.Condition {
	if list == nil {
		return nil
	}
	return mapped(list, func(c RuleCondition) inbox.Condition { return inbox.Condition(c) })
}

func actions(list []RuleAction) []inbox.Action {
	if list == nil {
		return nil
	}
	return mapped(list, func(a RuleAction) inbox.Action { return inbox.Action(a) })
}

func (in *rulesUpsertInput) patch() inbox.RulePatch {
	b := in.Body
	return inbox.RulePatch{
		Slug: b.Slug, Inbox: b.Inbox, Position: b.Position, Match: texted[inbox.Match](b.Match), Conditions: conditions(b.Conditions),
		Actions: actions(b.Actions), Stop: field(b.Stop), Enabled: field(b.Enabled), Restore: b.Restore, IfVersion: b.IfVersion,
	}
}

func (o *operations) rulesAskUpsert(ctx context.Context, in *rulesUpsertInput) (*op.Question, error) {
	return question(o.services.Rules.AskUpsert(ctx, o.actor(ctx), in.patch()))
}

func (o *operations) rulesUpsert(ctx context.Context, in *rulesUpsertInput) (*RuleUpsertOutput, error) {
	got, created, err := o.services.Rules.Upsert(ctx, o.actor(ctx), in.patch())
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	out := &RuleUpsertOutput{Status: http.StatusOK, Body: RuleUpsertBody{ruleOf(got), UpsertMeta{created}}}
	if created {
		out.Status = http.StatusCreated
	}
	return out, nil
}

func (o *operations) rulesAskDelete(ctx context.Context, in *ruleInput) (*op.Question, error) {
	return question(o.services.Rules.AskDelete(ctx, o.actor(ctx), in.ID))
}

func (o *operations) rulesDelete(ctx context.Context, in *ruleInput) (*RuleOutput, error) {
	got, err := o.services.Rules.Delete(ctx, o.actor(ctx), in.ID)
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	return &RuleOutput{RuleBody{Data: ruleOf(inbox.RuleRow{Rule: got})}}, nil
}

func (o *operations) rulesTest(ctx context.Context, in *rulesTestInput) (*RuleReportOutput, error) {
	b := in.Body
	trial := inbox.RuleTrial{Email: b.EmailID}
	if b.Sample != nil {
		s := b.Sample.sample()
		trial.Sample = &s
	}
	if r := b.Rule; r != nil {
		trial.Draft = &inbox.RulePatch{
			Inbox:      r.Inbox,
			Conditions: mapped(r.Conditions, func(c DraftCondition) inbox.Condition { return inbox.Condition(c) }),
			Actions:    mapped(r.Actions, func(a DraftAction) inbox.Action { return inbox.Action(a) }),
		}
		if r.Match != "" {
			trial.Draft.Match = inbox.Set(inbox.Match(r.Match))
		}
	}
	got, err := o.services.Rules.Test(ctx, o.actor(ctx), trial)
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	return &RuleReportOutput{RuleReportBody{reportOf(got), ItemMeta{Masked: got.Masked}}}, nil
}

func (s *RuleSample) sample() inbox.RuleSample {
	return inbox.RuleSample{
		Inbox: s.Inbox, From: mailboxes(s.From), To: mailboxes(s.To), Subject: s.Subject, Text: s.Text, Size: s.Size, Flags: s.Flags,
		Trust: inbox.TrustLevel(s.Trust), Listed: s.Listed,
		Headers: mapped(s.Headers, func(line string) inbox.Header {
			name, value, _ := strings.Cut(line, ":")
			return inbox.Header{Name: strings.TrimSpace(name), Value: strings.TrimSpace(value)}
		}),
		Attachments: mapped(s.Attachments, func(name string) inbox.Attachment {
			return inbox.Attachment{Filename: name, ContentType: mime.TypeByExtension(path.Ext(name))}
		}),
		Auth: mapped(s.Auth, func(check string) inbox.AuthCheck {
			method, result, _ := strings.Cut(check, "=")
			return inbox.AuthCheck{Method: method, Result: result}
		}),
	}
}

// maxSampleAddresses is in bytes.
const maxSampleAddresses = 4096

// mailboxes reads addresses as a header has them; what is none is taken as it is.
func mailboxes(s string) []inbox.Address {
	if strings.TrimSpace(s) == "" {
		return nil
	}
	parsed, err := mail.ParseAddressList(s[:min(len(s), maxSampleAddresses)])
	if err != nil || len(s) > maxSampleAddresses {
		return []inbox.Address{{Address: s}}
	}
	return mapped(parsed, func(a *mail.Address) inbox.Address { return inbox.Address{Name: a.Name, Address: a.Address} })
}

func reportOf(r inbox.RuleReport) RuleReport {
	out := RuleReport{
		Rules: mapped(r.Steps, verdictOf), Labels: list(r.Labels), Category: r.Category, Handled: r.Handled,
		Extract: mapped(r.Extract, func(w inbox.Wish) string { return w.Template }),
		Notify:  mapped(r.Notify, func(n inbox.Notification) string { return n.Webhook }),
	}
	if r.HeldBy != (inbox.RuleRef{}) {
		ref := ruleRefOf(r.HeldBy)
		out.QuarantinedBy = &ref
	}
	return out
}

func verdictOf(s inbox.RuleStep) RuleVerdict {
	v := RuleVerdict{
		RuleID: s.ID, Slug: s.Slug, Position: s.Place, Matched: s.Matched, Skipped: s.Skipped, TextCut: s.Cut,
		Actions: mapped(s.Actions, func(a inbox.ActionStep) ActionVerdict { return ActionVerdict{RuleAction(a.Action), a.Withheld} }),
	}
	for i, holds := range s.Conditions {
		v.Conditions = append(v.Conditions, ConditionVerdict{RuleCondition(s.Rule.Conditions[i]), holds})
	}
	v.Conditions = list(v.Conditions)
	return v
}

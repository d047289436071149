package inboxops

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/rest"
)

// Locator says where a field may stand.
type Locator struct {
	Field string `json:"field" maxLength:"64"`
	Kind  string `json:"kind" enum:"label,regex,table,attachment_name" doc:"label: what follows it; table: the column below a header; regex and attachment_name: RE2, group value or the first."`
	Value string `json:"value" maxLength:"256" doc:"The label, header or pattern." tool:"-"`
	In    string `json:"in,omitempty" enum:"text,subject" doc:"Left out: text." tool:""`
}

// Template says what to take from an email.
type Template struct {
	ID         string          `json:"id"`
	Slug       string          `json:"slug"`
	JSONSchema json.RawMessage `json:"json_schema"`
	Locators   []Locator       `json:"locators"`
	Decimal    string          `json:"decimal,omitempty"`
	DateOrder  string          `json:"date_order,omitempty"`
	CreatedAt  rest.Time       `json:"created_at"`
	UpdatedAt  rest.Time       `json:"updated_at"`
	DeletedAt  rest.Time       `json:"deleted_at" doc:"Null unless deleted."`
	Version    uint64          `json:"version" doc:"For if_version."`
}

func templateOf(t inbox.ExtractionTemplate) Template {
	return Template{
		ID: t.ID, Slug: t.Slug, JSONSchema: t.Schema, Decimal: t.Decimal, DateOrder: t.DateOrder,
		Locators:  mapped(t.Locators, func(l inbox.Locator) Locator { return Locator{l.Field, string(l.Kind), l.Value, l.In} }),
		CreatedAt: at(t.CreatedAt), UpdatedAt: at(t.UpdatedAt), DeletedAt: at(t.DeletedAt), Version: t.Version,
	}
}

// ExtractionFact is what is ours of an extraction: everything but the data.
type ExtractionFact struct {
	Template    string       `json:"template"`
	Version     uint64       `json:"template_version"`
	Extractor   string       `json:"extractor"`
	Status      string       `json:"status" enum:"ok,partial,abstained,invalid" doc:"partial: a required field is missing or one was in doubt; abstained: nothing found; invalid: what was found is not what the schema allows, and left out."`
	Evidence    []Evidence   `json:"evidence" doc:"Where each value stands."`
	Errors      []FieldError `json:"errors" doc:"Fields without a value."`
	TextCut     bool         `json:"text_cut,omitempty" doc:"The text was longer than what is looked at."`
	ExtractedAt rest.Time    `json:"extracted_at"`
	By          string       `json:"by" doc:"Who wanted it: a rule's id, default_template, or a person's."`
}

// Evidence says where a value stands.
type Evidence struct {
	Field      string `json:"field"`
	Item       int    `json:"item,omitempty" doc:"Of a list, from 0."`
	Part       string `json:"part" enum:"text,subject,attachment_name"`
	Attachment string `json:"attachment_id,omitempty"`
	Start      int    `json:"start" doc:"Character of the unmasked text, as from_char of emails_get."`
	End        int    `json:"end"`
	Locator    int    `json:"locator" doc:"Index in the template."`
}

// FieldError says why a field has no value.
type FieldError struct {
	Field  string `json:"field"`
	Reason string `json:"reason" enum:"ambiguous,absent,invalid"`
	Detail string `json:"detail,omitempty"`
}

// ExtractedData is the data of one extraction.
type ExtractedData struct {
	Template string          `json:"template"`
	Data     json.RawMessage `json:"data"`
}

// Extraction is what a template found in one email.
type Extraction struct {
	ID      string `json:"id"`
	EmailID string `json:"email_id"`
	InboxID string `json:"inbox_id"`
	ExtractionFact
	Untrusted UntrustedData `json:"untrusted"`
}

// UntrustedData is what was taken from the sender's text.
type UntrustedData struct {
	Notice string          `json:"notice"`
	Data   json.RawMessage `json:"data"`
}

func extractionFactOf(e inbox.Extraction) ExtractionFact {
	return ExtractionFact{
		Template: e.Template, Version: e.Version, Extractor: e.Extractor, Status: string(e.Status), TextCut: e.Cut,
		Evidence:    mapped(e.Evidence, func(v inbox.Evidence) Evidence { return Evidence(v) }),
		Errors:      mapped(e.Errors, func(f inbox.FieldError) FieldError { return FieldError(f) }),
		ExtractedAt: at(e.ExtractedAt), By: e.By,
	}
}

func extractedDataOf(e inbox.Extraction) ExtractedData { return ExtractedData{e.Template, e.Data} }

func extractionOf(e inbox.Extraction) Extraction {
	return Extraction{e.ID, e.Email, e.Inbox, extractionFactOf(e), UntrustedData{notice, e.Data}}
}

type templatesListInput struct {
	Q    string `query:"q" maxLength:"256" doc:"Text in the slug." tool:"-"`
	Slug string `query:"slug" maxLength:"63"`
	Paging
}

// TemplatePatch is the body of extraction_templates_upsert.
type TemplatePatch struct {
	Slug       string             `json:"slug" minLength:"1" maxLength:"63" doc:"Natural key." tool:"-"`
	JSONSchema json.RawMessage    `json:"json_schema,omitempty" doc:"{type: object, properties, required}; properties: string, number, integer, string of format date, object of amount and currency, or array of one of them."`
	Locators   []Locator          `json:"locators,omitempty" maxItems:"50" doc:"Of one field: tried in order." tool:"Of a field: tried in order."`
	Decimal    rest.Patch[string] `json:"decimal,omitempty" maxLength:"1" doc:". or , in numbers such as 1.234; null: they stay ambiguous." tool:". or , in 1.234; null: ambiguous."`
	DateOrder  rest.Patch[string] `json:"date_order,omitempty" maxLength:"3" doc:"dmy or mdy for dates such as 03/04/2026; null: they stay ambiguous." tool:"dmy or mdy; null: ambiguous."`
	Restore    bool               `json:"restore,omitempty" doc:"Take a deleted template of this slug back." tool:"-"`
	IfVersion  uint64             `json:"if_version,omitempty" minimum:"1"`
}

type templatesUpsertInput struct{ Body TemplatePatch }

type templateInput struct {
	ID string `path:"id" doc:"Id or slug."`
}

// ExtractionRun is the body of extractions_run.
type ExtractionRun struct {
	EmailIDs []string `json:"email_ids" minItems:"1" maxItems:"50" doc:"At most 50." tool:"At most 50."`
	Template string   `json:"template" minLength:"1" maxLength:"63" doc:"Slug." tool:"-"`
}

type extractionsRunInput struct {
	rest.RequiredKey
	Body ExtractionRun
}

type extractionsListInput struct {
	EmailID  string `query:"email_id" maxLength:"64"`
	Template string `query:"template" maxLength:"63" doc:"Slug." tool:"-"`
	Status   string `query:"status" enum:"ok,partial,abstained,invalid"`
	Paging
}

// TemplatesOutput is the reply of extraction_templates_list.
type TemplatesOutput struct{ Body TemplatesBody }

// TemplatesBody is its JSON.
type TemplatesBody struct {
	Data []Template `json:"data"`
	Meta ListMeta   `json:"meta"`
}

// TemplateOutput is the reply of extraction_templates_delete.
type TemplateOutput struct{ Body TemplateBody }

// TemplateBody is its JSON.
type TemplateBody struct {
	Data Template `json:"data"`
	Meta ItemMeta `json:"meta"`
}

// TemplateUpsertOutput is the reply of extraction_templates_upsert: 201 when it created, else 200.
type TemplateUpsertOutput struct {
	Status int
	Body   TemplateUpsertBody
}

// TemplateUpsertBody is its JSON.
type TemplateUpsertBody struct {
	Data Template   `json:"data"`
	Meta UpsertMeta `json:"meta"`
}

// ExtractionsOutput is the reply of extractions_list.
type ExtractionsOutput struct{ Body ExtractionsBody }

// ExtractionsBody is its JSON.
type ExtractionsBody struct {
	Data []Extraction `json:"data"`
	Meta ListMeta     `json:"meta"`
}

func (o *operations) extraction() []op.Operation {
	return []op.Operation{
		rest.Define(op.Spec{
			Name: "extraction_templates_list", Method: http.MethodGet, Path: "/extraction-templates",
			Title:       "List extraction templates",
			Description: "Templates that say which data to take from an email and where it stands.",
			Scope:       scopeExtractionRead, Role: op.Viewer, Effect: op.Read, Idempotent: true,
		}, o.templatesList),
		rest.Define(op.Spec{
			Name: "extraction_templates_upsert", Method: http.MethodPut, Path: "/extraction-templates",
			Title: "Create or change an extraction template",
			Description: "Creates or changes a template, which extractions_run, rules and an inbox's default_template apply. What is in doubt is " +
				"left out, never guessed.",
			Scope: scopeExtractionWrite, Role: op.Admin, Effect: op.Write, Idempotent: true, Creates: true,
			Errors: []apperr.Kind{apperr.NotFound, apperr.Conflict, apperr.Stale},
		}, o.templatesUpsert),
		rest.DefineDestructive(op.Spec{
			Name: "extraction_templates_delete", Method: http.MethodDelete, Path: "/extraction-templates/{id}",
			Title:       "Delete an extraction template",
			Description: "Deletes a template, not what it extracted; extraction_templates_upsert with restore undoes it. A person confirms.",
			Scope:       scopeExtractionWrite, Role: op.Admin, Effect: op.Destructive, Idempotent: true,
			Errors: []apperr.Kind{apperr.NotFound, apperr.Conflict},
		}, o.templatesAskDelete, o.templatesDelete),
		rest.Define(op.Spec{
			Name: inbox.KindExtract, Method: http.MethodPost, Path: "/extractions",
			Title:       "Extract data from emails",
			Description: "Starts a job that applies a template to emails. Follow it with jobs_get; extractions_list has the data.",
			Scope:       scopeExtractionRun, Role: op.Operator, Effect: op.Write, Job: true,
			Errors: []apperr.Kind{apperr.NotFound, apperr.Conflict},
		}, o.extractionsRun),
		rest.Define(op.Spec{
			Name: "extractions_list", Method: http.MethodGet, Path: "/extractions",
			Title:       "List extracted data",
			Description: "What templates found, from the newest email on: data (untrusted), where each value stands, what is missing and why.",
			Scope:       scopeExtractionRead, Role: op.Viewer, Effect: op.Read, Idempotent: true,
			Errors: []apperr.Kind{apperr.NotFound},
		}, o.extractionsList),
	}
}

func (o *operations) templatesList(ctx context.Context, in *templatesListInput) (*TemplatesOutput, error) {
	page, err := o.services.Templates.List(ctx, o.actor(ctx), inbox.TemplateQuery{Q: in.Q, Slug: in.Slug}, in.request())
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	return &TemplatesOutput{TemplatesBody{mapped(page.Rows, templateOf), listMeta(page.Next, page.Window, false)}}, nil
}

func (o *operations) templatesUpsert(ctx context.Context, in *templatesUpsertInput) (*TemplateUpsertOutput, error) {
	b := in.Body
	p := inbox.TemplatePatch{
		Slug: b.Slug, Schema: b.JSONSchema, Decimal: field(b.Decimal), DateOrder: field(b.DateOrder), Restore: b.Restore, IfVersion: b.IfVersion,
	}
	if b.Locators != nil {
		p.Locators = mapped(b.Locators, func(l Locator) inbox.Locator {
			return inbox.Locator{Field: l.Field, Kind: inbox.LocatorKind(l.Kind), Value: l.Value, In: l.In}
		})
	}
	got, created, err := o.services.Templates.Upsert(ctx, o.actor(ctx), p)
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	out := &TemplateUpsertOutput{Status: http.StatusOK, Body: TemplateUpsertBody{templateOf(got), UpsertMeta{created}}}
	if created {
		out.Status = http.StatusCreated
	}
	return out, nil
}

func (o *operations) templatesAskDelete(ctx context.Context, in *templateInput) (*op.Question, error) {
	return question(o.services.Templates.AskDelete(ctx, o.actor(ctx), in.ID))
}

func (o *operations) templatesDelete(ctx context.Context, in *templateInput) (*TemplateOutput, error) {
	got, err := o.services.Templates.Delete(ctx, o.actor(ctx), in.ID)
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	return &TemplateOutput{TemplateBody{Data: templateOf(got)}}, nil
}

func (o *operations) extractionsList(ctx context.Context, in *extractionsListInput) (*ExtractionsOutput, error) {
	page, err := o.services.Extractions.List(ctx, o.actor(ctx), inbox.ExtractionQuery{
		Email: in.EmailID, Template: in.Template, Status: inbox.ExtractionStatus(in.Status),
	}, in.request())
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	return &ExtractionsOutput{ExtractionsBody{mapped(page.Rows, extractionOf), listMeta(page.Next, page.Window, page.Masked)}}, nil
}

func (o *operations) extractionsRun(ctx context.Context, in *extractionsRunInput) (*rest.StartedOutput, error) {
	return started(o.services.Extractions.Run(ctx, o.actor(ctx), inbox.ExtractParams{Template: in.Body.Template, Emails: in.Body.EmailIDs}))
}

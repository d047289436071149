package inbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Extract lets an extractor loose on a mail and judges what it brings: a value that the schema does not allow is left out, and
// the status follows from what is left. by says who asked.
func Extract(ctx context.Context, x Extractor, t ExtractionTemplate, e Email, m ExtractionMail, by string, now time.Time) (Extraction, error) {
	schema, err := parseSchema("json_schema", t.Schema)
	if err != nil {
		return Extraction{}, fmt.Errorf("template %s: %w", t.ID, err)
	}
	got, err := x.Extract(ctx, t, m)
	if err != nil {
		return Extraction{}, fmt.Errorf("extract %s from %s: %w", t.ID, e.ID, err)
	}
	out := Extraction{
		ID: ExtractionID(e.Workspace, e.ID, t.Slug), Workspace: e.Workspace, Inbox: e.Inbox, Email: e.ID, ReceivedAt: e.ReceivedAt,
		Template: t.Slug, Version: t.Version, Extractor: x.Name(), Cut: got.Cut, By: by, ExtractedAt: now,
	}
	data := &objectWriter{}
	for i := range schema.fields {
		out.field(&schema.fields[i], got.judged(schema.fields[i].name, m), data)
	}
	out.Data = data.bytes()
	out.Status = schema.status(&out, data.n)
	out.Secrets = SecretsOf(e).In(leaves(out.Data)...)
	return out, nil
}

// judged is what was found of one field. Evidence and errors are shown outside of the untrusted text, so of both only what can carry no
// text of a mail is taken over.
func (got Findings) judged(field string, m ExtractionMail) Findings {
	var out Findings
	for _, f := range got.Found {
		if f.Field != field || out.Found != nil {
			continue
		}
		f.Evidence = slices.DeleteFunc(slices.Clone(f.Evidence), func(e Evidence) bool {
			known := e.Attachment == "" || slices.ContainsFunc(m.Attachments, func(a Attachment) bool { return a.ID == e.Attachment })
			return e.Field != field || !known || !slices.Contains([]string{PartText, PartSubject, PartAttachment}, e.Part)
		})
		out.Found = append(out.Found, f)
	}
	for _, e := range got.Errors {
		if e.Field != field || !slices.Contains([]string{FieldAmbiguous, FieldAbsent, FieldInvalid}, e.Reason) {
			continue
		}
		if !slices.Contains([]string{detailSeveral, detailReadings, detailType, detailMany}, e.Detail) {
			e.Detail = ""
		}
		out.Errors = append(out.Errors, e)
	}
	return out
}

// field takes over what was found of one field.
func (out *Extraction) field(f *fieldSchema, got Findings, data *objectWriter) {
	if len(got.Found) == 0 {
		fault := FieldError{Field: f.name, Reason: FieldAbsent}
		if len(got.Errors) > 0 {
			fault = got.Errors[0]
		}
		out.Errors = append(out.Errors, fault)
		return
	}
	found := got.Found[0]
	detail := f.check(found.Value)
	if detail == "" && (data.Len()+len(found.Value) > maxData || len(out.Evidence)+len(found.Evidence) > maxEvidence) {
		detail = "more than an extraction holds"
	}
	if detail != "" {
		out.Errors = append(out.Errors, FieldError{f.name, FieldInvalid, detail})
		return
	}
	data.add(f.name, found.Value)
	out.Evidence = append(out.Evidence, found.Evidence...)
}

func (s *templateSchema) status(out *Extraction, values int) ExtractionStatus {
	missing := false
	for _, e := range out.Errors {
		if e.Reason == FieldInvalid {
			return ExtractionInvalid
		}
		missing = missing || e.Reason == FieldAmbiguous || slices.Contains(s.required, e.Field)
	}
	switch {
	case values == 0:
		return ExtractionAbstained
	case missing:
		return ExtractionPartial
	}
	return ExtractionOK
}

// objectWriter writes the members of an object whose names need no escapes.
type objectWriter struct {
	bytes.Buffer
	n int
}

func (w *objectWriter) add(name string, value json.RawMessage) {
	mark := ","
	if w.n == 0 {
		mark = ""
	}
	_, _ = fmt.Fprintf(w, `%s"%s":`, mark, name)
	_ = json.Compact(&w.Buffer, value) // it was checked
	w.n++
}

func (w *objectWriter) bytes() json.RawMessage {
	return slices.Concat([]byte("{"), w.Bytes(), []byte("}"))
}

// leaves are the texts and numbers of a JSON value.
func leaves(raw json.RawMessage) []string {
	var out []string
	_ = eachLeaf(raw, func(s string) (any, bool) {
		out = append(out, s)
		return nil, false
	})
	return out
}

// eachLeaf gives each text and number of a JSON value to replace and returns the value with what it answers.
func eachLeaf(raw json.RawMessage, replace func(string) (any, bool)) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var tree any
	if d.Decode(&tree) != nil {
		return nil
	}
	out, err := json.Marshal(mapLeaves(tree, replace))
	if err != nil {
		return nil
	}
	return out
}

func mapLeaves(v any, replace func(string) (any, bool)) any {
	switch x := v.(type) {
	case map[string]any:
		for name := range x {
			x[name] = mapLeaves(x[name], replace)
		}
	case []any:
		for i := range x {
			x[i] = mapLeaves(x[i], replace)
		}
	case string:
		if next, ok := replace(x); ok {
			return next
		}
	case json.Number:
		if next, ok := replace(x.String()); ok {
			return next
		}
	}
	return v
}

// masked is an extraction as a caller sees it who must not read codes: a number that is, or holds, a code becomes the mask too.
func (e Extraction) masked() Extraction {
	m := e.Secrets.Masker()
	e.Data = eachLeaf(e.Data, func(s string) (any, bool) {
		masked := m.Mask(s)
		return masked, masked != s
	})
	e.Secrets = nil
	return e
}

package pipeline

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
)

// extract takes out of the mail what its inbox and the rules want, before it is finished: whoever sees the mail finds the data. What
// a sender's mail is held back for is not read any further.
func (r *run) extract(ctx context.Context) error {
	if r.reading == nil || r.w.deps.Extractor == nil || r.judged.Held != "" && r.judged.Held != inbox.HeldByRule {
		return nil
	}
	done := ""
	if r.template != "" {
		if err := r.extractOne(ctx, r.template, inbox.ByDefault); err != nil {
			return err
		}
		done = r.template
	}
	for _, w := range r.wishes {
		if w.Template == done {
			continue
		}
		if err := r.extractOne(ctx, w.Template, w.Rule); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) extractOne(ctx context.Context, slug, by string) error {
	t, err := r.w.deps.Extractions.Template(ctx, r.email.Workspace, inbox.TemplateID(r.email.Workspace, slug))
	if apperr.Is(err, apperr.NotFound) || err == nil && !t.DeletedAt.IsZero() {
		r.email.Warnings = append(r.email.Warnings, templateMissing(slug))
		return nil
	}
	if err != nil {
		return fmt.Errorf("template: %w", err)
	}
	got, err := inbox.Extract(ctx, r.w.deps.Extractor, t, r.email, inbox.ExtractionMail{
		Subject: r.email.Content.Subject, Text: r.reading.Body.Text, Attachments: r.attachments,
	}, by, r.w.deps.Clock().UTC())
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		// The mail is worth more than what could be taken out of it, and extractions_run can try again.
		r.w.deps.Logger.Error("pipeline: extraction failed", slog.String("email", r.email.ID), slog.String("template", t.ID), slog.String("error", err.Error()))
		r.email.Warnings = append(r.email.Warnings, extractionFailed(slug))
		return nil
	}
	if err := r.w.deps.Extractions.PutExtraction(ctx, got); err != nil {
		return fmt.Errorf("extraction: %w", err)
	}
	return nil
}

func templateMissing(slug string) inbox.Warning {
	return inbox.Warning{Code: "extraction_template_missing", Detail: "There is no extraction template " + slug + " any more"}
}

func extractionFailed(slug string) inbox.Warning {
	return inbox.Warning{Code: "extraction_failed", Detail: "The extraction template " + slug + " could not be applied"}
}

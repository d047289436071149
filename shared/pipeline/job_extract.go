package pipeline

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
)

// ExtractedMail is what a job that extracts did with one mail.
type ExtractedMail struct {
	Email      string                 `json:"email_id"`
	Extraction string                 `json:"extraction_id,omitempty"`
	Status     inbox.ExtractionStatus `json:"status,omitempty"`
	Failed     string                 `json:"failed,omitempty"` // a code of ours: why there is none
}

// ExtractedAll is the result of a job that extracts. It holds nothing of the data.
type ExtractedAll struct {
	Template string          `json:"template"`
	Version  uint64          `json:"template_version"`
	Emails   []ExtractedMail `json:"emails"`
}

// Why a mail was not extracted from.
const (
	failedMissing    = "not_found"
	failedUnready    = "not_processed"
	failedUnreadable = "unreadable"
)

// extractions applies a template to the mails of a job, each by itself: what was extracted is stored under the mail and the template,
// so a run that begins again only repeats itself.
func (w *Worker) extractions(ctx context.Context, j *JobRun) (any, error) {
	var params inbox.ExtractParams
	if err := j.Params(&params); err != nil {
		return nil, err
	}
	t, err := w.deps.Extractions.Template(ctx, j.Job.Workspace, inbox.TemplateID(j.Job.Workspace, params.Template))
	if err == nil && !t.DeletedAt.IsZero() {
		err = inbox.NoTemplate()
	}
	if err != nil {
		return nil, err //nolint:wrapcheck // a refusal ends the job in its own words
	}
	out := ExtractedAll{Template: t.Slug, Version: t.Version}
	if err := j.State(&out); err != nil {
		return nil, err
	}
	if out.Version != t.Version { // it was changed since: all of the result is of one version
		out.Version, out.Emails = t.Version, nil
	}
	hidden, err := w.deps.Extractions.Hidden(ctx, j.Job.Workspace)
	if err != nil {
		return nil, fmt.Errorf("hidden inboxes: %w", err)
	}
	total := int64(len(params.Emails))
	for _, id := range params.Emails[min(len(out.Emails), len(params.Emails)):] {
		done, err := w.extractFrom(ctx, j, t, id, hidden)
		if err != nil {
			return nil, err
		}
		out.Emails = append(out.Emails, done)
		if err := j.Save(ctx, int64(len(out.Emails)), total, out); err != nil {
			return nil, err
		}
		if len(out.Emails) < len(params.Emails) && j.Soon(ctx) {
			return nil, ErrMore
		}
	}
	return out, nil
}

func (w *Worker) extractFrom(
	ctx context.Context, j *JobRun, t inbox.ExtractionTemplate, id string, hidden map[string]bool,
) (ExtractedMail, error) {
	out := ExtractedMail{Email: id}
	e, body, err := w.deps.Extractions.Email(ctx, j.Job.Workspace, id, true)
	switch {
	case apperr.Is(err, apperr.NotFound), err == nil && (!e.DeletedAt.IsZero() || hidden[e.Inbox]):
		out.Failed = failedMissing
		return out, nil
	case err != nil:
		return out, fmt.Errorf("email %s: %w", id, err)
	case e.Status == inbox.StatusReceived, e.Status == inbox.StatusProcessing:
		out.Failed = failedUnready
		return out, nil
	case e.Status == inbox.StatusFailed:
		out.Failed = failedUnreadable
		return out, nil
	}
	m, err := w.stored(ctx, e, body)
	if err != nil {
		return out, err
	}
	got, err := inbox.Extract(ctx, w.deps.Extractor, t, e, m, j.Job.Creator.Subject, w.now())
	if err != nil {
		return out, err //nolint:wrapcheck // it names template and mail
	}
	if err := w.deps.Extractions.PutExtraction(ctx, got); err != nil {
		return out, fmt.Errorf("extraction of %s: %w", id, err)
	}
	out.Extraction, out.Status = got.ID, got.Status
	return out, nil
}

// stored is what an extractor sees of a mail that was read before.
func (w *Worker) stored(ctx context.Context, e inbox.Email, body *inbox.Body) (inbox.ExtractionMail, error) {
	m := inbox.ExtractionMail{Subject: e.Content.Subject}
	if body == nil && e.BodyKey != "" {
		data, err := w.deps.Blobs.Get(ctx, e.BodyKey, maxBodyBlob)
		if err != nil {
			return m, blobFailure(err)
		}
		body = &inbox.Body{}
		if err := json.Unmarshal(data, body); err != nil {
			return m, fmt.Errorf("body of %s: %w", e.ID, err)
		}
	}
	if body != nil {
		m.Text = body.Text
	}
	if e.Attachments == 0 {
		return m, nil
	}
	rows, _, err := w.deps.Extractions.Attachments(ctx, inbox.AttachmentRange{
		Workspace: e.Workspace, Inbox: e.Inbox, Email: inbox.Position(e.ReceivedAt, e.ID), Limit: inbox.MaxLimit,
	})
	if err != nil {
		return m, fmt.Errorf("attachments of %s: %w", e.ID, err)
	}
	for _, row := range rows {
		m.Attachments = append(m.Attachments, row.Attachment)
	}
	return m, nil
}

package inbox

import (
	"context"
	"fmt"
	"slices"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// KindExtract is the kind of the jobs that extract data from mail.
const KindExtract = "extractions_run"

// MaxExtractEmails is how many mails one job reads.
const MaxExtractEmails = 50

// ExtractParams is what a job extracts, and what it keeps.
type ExtractParams struct {
	Template string   `json:"template"` // slug
	Emails   []string `json:"emails"`   // ids
}

// Run starts the job that applies a template to mails. Whether each of them is there it finds out itself, and its result says so:
// they may be gone until it comes to them. A single one is looked up at once.
func (s *Extractions) Run(ctx context.Context, a Actor, p ExtractParams) (Job, error) {
	if len(p.Emails) == 0 || len(p.Emails) > MaxExtractEmails {
		return Job{}, invalid("body.email_ids", fmt.Sprintf("1 to %d ids", MaxExtractEmails), "Start several jobs for more.")
	}
	for i, id := range p.Emails {
		if !validID("email", id) || slices.Contains(p.Emails[:i], id) {
			return Job{}, invalid(fmt.Sprintf("body.email_ids[%d]", i), "the id of an email, each once", "Call emails_list for ids.")
		}
	}
	if err := checkSlug("body.template", p.Template); err != nil {
		return Job{}, err
	}
	t, err := s.d.Templates.Template(ctx, a.Workspace, TemplateID(a.Workspace, p.Template))
	if err != nil && !apperr.Is(err, apperr.NotFound) {
		return Job{}, fmt.Errorf("template of %s: %w", a.Workspace, err)
	}
	if err != nil || !t.DeletedAt.IsZero() {
		return Job{}, NoTemplate()
	}
	target := ""
	if len(p.Emails) == 1 {
		target = p.Emails[0]
		if _, err := (&Attachments{s.d}).readable(ctx, a, target); err != nil {
			return Job{}, err
		}
	}
	return (&Jobs{s.d}).Start(ctx, a, JobSpec{Kind: KindExtract, Scope: "extraction:run", Role: RoleOperator, Target: target, Params: p})
}

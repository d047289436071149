package inbox

import (
	"context"
	"fmt"
	"slices"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// KindReprocess is the kind of the jobs that read a mail again.
const KindReprocess = "emails_reprocess"

// What of a mail a reprocess can renew.
const (
	StageContent = "content" // what the parser makes of the raw bytes
	StageSenders = "senders" // who sent it, how far to believe it, whether to hold it back
	StageRules   = "rules"   // labels, category, handled mark and quarantine by the rules of now, and what these want extracted
	// StageExtraction renews what was extracted, and extracts what the inbox and the rules want.
	StageExtraction = "extraction"
)

// ReprocessStages lists them in their order.
func ReprocessStages() []string {
	return []string{StageContent, StageSenders, StageRules, StageExtraction}
}

// Reread is what a second reading found.
type Reread struct {
	Processed
	MessageKey string // as of Mails.Finish
	Content    bool   // body and attachments are to be replaced
	// Extractions may replace what was extracted before, each under its mail and template.
	Extractions []Extraction
}

// Remade is what a second reading makes of the mail as it is by then.
type Remade struct {
	Email       Email
	Extractions []Extraction // those of the Reread that are to be stored
	Result      any          // of the job
}

// ReprocessParams is what a reprocess was asked for, and what its job keeps.
type ReprocessParams struct {
	Stages []string `json:"stages"` // empty: all
	Notify bool     `json:"notify,omitempty"`
}

func (p ReprocessParams) normal() (ReprocessParams, error) {
	all := ReprocessStages()
	if len(p.Stages) == 0 {
		p.Stages = all
		return p, nil
	}
	for _, s := range p.Stages {
		if !slices.Contains(all, s) {
			return p, invalid("body.stages", "content, senders, rules or extraction")
		}
	}
	p.Stages = slices.DeleteFunc(slices.Clone(all), func(s string) bool { return !slices.Contains(p.Stages, s) })
	return p, nil
}

// reprocessable reports why a mail can't be read again.
func reprocessable(e Email) error {
	switch {
	case !e.DeletedAt.IsZero():
		return NoEmail()
	case e.Status == StatusReceived, e.Status == StatusProcessing:
		return apperr.New(apperr.Conflict, "being_processed", "This email is being processed for the first time.",
			"Repeat the call once emails_get says that its status is processed, failed or quarantined.")
	}
	return nil
}

// AskReprocess says what a person is asked before Reprocess.
func (s *Emails) AskReprocess(ctx context.Context, a Actor, id string, p ReprocessParams) (*Question, error) {
	p, err := p.normal()
	if err != nil {
		return nil, err
	}
	e, _, err := s.d.email(ctx, a, id, false)
	if err != nil {
		return nil, err
	}
	if err := reprocessable(e); err != nil {
		return nil, err
	}
	in, err := s.d.live(ctx, a, e.Inbox)
	if err != nil {
		return nil, err
	}
	q := &Question{
		Text:    "Read email {}, received by inbox {} on {}, again from its raw bytes and replace what is known of it; nothing is sent",
		Values:  []string{e.ID, in.Slug, day(e.ReceivedAt)},
		Targets: map[string]string{e.ID: Version(e.Version)},
	}
	if p.Notify {
		q.Text = "Read email {}, received by inbox {} on {}, again from its raw bytes, replace what is known of it and notify webhooks of it again"
	}
	return q, nil
}

// Reprocess starts the job that reads a mail again.
func (s *Emails) Reprocess(ctx context.Context, a Actor, id string, p ReprocessParams) (Job, error) {
	p, err := p.normal()
	if err != nil {
		return Job{}, err
	}
	if !validID("email", id) {
		return Job{}, NoEmail()
	}
	hidden, err := s.d.Emails.Hidden(ctx, a.Workspace)
	if err != nil {
		return Job{}, fmt.Errorf("hidden inboxes of %s: %w", a.Workspace, err)
	}
	return s.d.startEmailJob(ctx, a, hidden, JobSpec{
		Kind: KindReprocess, Scope: "emails:write", Role: RoleOperator, Target: id, Params: p,
	}, reprocessable)
}

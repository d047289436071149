package inbox

import (
	"context"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// AskRelease says what a person is asked before Release; nil when the mail is released, or never was held back.
func (s *Emails) AskRelease(ctx context.Context, a Actor, id string) (*Question, error) {
	e, _, err := s.d.email(ctx, a, id, false)
	if err != nil {
		return nil, err
	}
	if held, err := releasable(e); err != nil || !held {
		return nil, err
	}
	in, err := s.d.live(ctx, a, e.Inbox)
	if err != nil {
		return nil, err
	}
	return &Question{
		Text:    "Release email {}, received by inbox {} on {}, from quarantine ({}; trust: {})",
		Values:  []string{e.ID, in.Slug, day(e.ReceivedAt), e.Reason, string(e.Trust.Level)},
		Targets: map[string]string{e.ID: Version(e.Version)},
	}, nil
}

// releasable reports whether a mail is held back; false without an error when it is processed already.
func releasable(e Email) (bool, error) {
	switch {
	case !e.DeletedAt.IsZero():
		return false, NoEmail()
	case e.Status == StatusQuarantined:
		return true, nil
	case e.Status == StatusProcessed:
		return false, nil
	}
	return false, apperr.New(apperr.Conflict, "not_quarantined", "This email is not in quarantine.",
		"Read it with emails_get: status and reason say where it stands.")
}

// Release takes a mail out of quarantine: it is processed from then on. Its trust stays what it is. Repeating it answers the
// same.
func (s *Emails) Release(ctx context.Context, a Actor, id string) (EmailView, error) {
	return s.change(ctx, a, id, func(e *Email) error {
		held, err := releasable(*e)
		if err != nil {
			return err
		}
		if err := a.confirm(e.ID, e.Version, held); err != nil || !held {
			return err
		}
		e.Status, e.Reason, e.ReleasedAt = StatusProcessed, "", s.d.now()
		e.UpdatedAt, e.Version = e.ReleasedAt, e.Version+1
		return nil
	})
}

package inbox

import (
	"context"
	"fmt"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// KindImport is the kind of the jobs that import mail.
const KindImport = "emails_import"

// What a file of an import is.
const (
	FormatMail = "message/rfc822" // one mail
	FormatMbox = "mbox"           // many (RFC 4155)
)

// ImportRequest is what an import was asked for.
type ImportRequest struct {
	Inbox  string // id or slug
	Upload string // id
	Format string
	Notify bool // tell webhooks and rules that notify, as of mail that comes now
}

// ImportParams is what the job of an import keeps.
type ImportParams struct {
	Inbox  string `json:"inbox"` // id
	Upload string `json:"upload"`
	Format string `json:"format"`
	Notify bool   `json:"notify,omitempty"`
}

// ImportedMail is one mail of a person's file.
type ImportedMail struct {
	To         Recipient
	Raw        []byte
	Source     string    // where it lies: the same mail of the same source is one mail, however often it is imported
	ReceivedAt time.Time // see the pipeline's ImportedAt
	Quiet      bool
}

// Imported is what became of one.
type Imported struct {
	Email     string // its id
	Intake    string // to be done by the worker; empty: nothing is left to do
	Duplicate bool   // another mail of the inbox, Email, has the same bytes
}

// ImportResult is what came of an import.
type ImportResult struct {
	Upload     string        `json:"upload_id"`
	Imported   int64         `json:"imported"`
	Duplicates int64         `json:"duplicates"` // the inbox had them, deleted ones too
	Refused    int64         `json:"refused"`
	Emails     []string      `json:"email_ids"` // of the first that were imported
	Errors     []ImportError `json:"errors"`    // of the first that were refused
}

// ImportError is why one mail of a file was not taken.
type ImportError struct {
	Index int64  `json:"index"` // from 0
	Code  string `json:"code"`
}

// failed reports whether a job came to nothing, so that what it read may be read by another.
func (s *Imports) failed(ctx context.Context, a Actor, job string) bool {
	j, err := s.d.Jobs.Job(ctx, a.Workspace, job)
	return err == nil && (j.Status == JobFailed || j.Status == JobCanceled)
}

// Import starts the job that reads an upload.
func (s *Imports) Import(ctx context.Context, a Actor, r ImportRequest) (Job, error) {
	if r.Format != FormatMail && r.Format != FormatMbox {
		return Job{}, invalid("body.format", FormatMail+" or "+FormatMbox)
	}
	if !validID("upload", r.Upload) {
		return Job{}, NoUpload()
	}
	in, err := s.d.live(ctx, a, r.Inbox)
	if err != nil {
		return Job{}, err
	}
	j, err := s.d.newJob(a, JobSpec{
		Kind: KindImport, Scope: "emails:write", Role: RoleOperator, Target: in.ID,
		Params: ImportParams{Inbox: in.ID, Upload: r.Upload, Format: r.Format, Notify: r.Notify},
	})
	if err != nil {
		return Job{}, err
	}
	act, err := s.d.act(a)
	if err != nil {
		return Job{}, err
	}
	j, err = s.d.Uploads.StartUploadJob(ctx, a.Workspace, r.Upload, act, func(u *Upload) (Job, error) {
		switch {
		case u.Purpose != PurposeImport:
			return Job{}, NoUpload()
		case u.Job != "" && !s.failed(ctx, a, u.Job):
			return Job{}, apperr.New(apperr.Conflict, "upload_used", "This upload was imported already, by "+u.Job+".",
				"Follow that job with jobs_get. To import it anew, upload it again.")
		case r.Format == FormatMail && u.Size > MaxForward:
			return Job{}, apperr.New(apperr.TooLarge, "", fmt.Sprintf("One mail may have %d bytes.", MaxForward), "If the file holds several mails, its format is mbox.")
		}
		u.Job, u.ExpiresAt = j.ID, s.d.now().Add(UploadInUse)
		return j, nil
	})
	if err != nil {
		return Job{}, fmt.Errorf("import %s: %w", r.Upload, err)
	}
	return s.d.started(ctx, j), nil
}

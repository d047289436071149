package inbox

import (
	"context"
	"errors"
	"io"
	"time"
)

// Deps is what the services need.
type Deps struct {
	Inboxes     InboxStore
	Domains     DomainStore
	Counts      CountStore
	Emails      EmailStore
	Attachments AttachmentStore
	Senders     SenderStore
	Audit       AuditStore
	Jobs        JobStore
	JobQueue    JobQueue // nil: the outbox alone brings jobs to the worker
	People      PeopleStore
	Uploads     UploadStore
	Puts        Puts
	Blobs       Blobs
	Downloads   Downloads
	Cursors     Sealer
	Now         func() time.Time
	Rand        io.Reader
	Sleep       func(context.Context, time.Duration) error // nil: it takes its time, or ends with the context
}

// Services are the operations of the domain, by resource.
type Services struct {
	Inboxes     *Inboxes
	Emails      *Emails
	Attachments *Attachments
	Senders     *Senders
	Jobs        *Jobs
	Imports     *Imports
	Audits      *Audits
	Workspaces  *Workspaces
}

// New makes the services; every dependency is needed but JobQueue and Sleep.
func New(d Deps) (*Services, error) {
	if d.Inboxes == nil || d.Domains == nil || d.Counts == nil || d.Emails == nil || d.Attachments == nil ||
		d.Senders == nil || d.Audit == nil || d.Jobs == nil || d.People == nil || d.Uploads == nil || d.Puts == nil || d.Blobs == nil || d.Downloads == nil || d.Cursors == nil || d.Now == nil || d.Rand == nil {
		return nil, errors.New("inbox: a dependency is missing")
	}
	if d.Sleep == nil {
		d.Sleep = sleep
	}
	return &Services{
		Inboxes:     &Inboxes{d},
		Emails:      &Emails{d},
		Attachments: &Attachments{d},
		Senders:     &Senders{d},
		Jobs:        &Jobs{d},
		Imports:     &Imports{d},
		Audits:      &Audits{d},
		Workspaces:  &Workspaces{d.Cursors},
	}, nil
}

// now is the time as rows keep it: UTC, milliseconds, which is what callers see.
func (d Deps) now() time.Time { return d.Now().UTC().Truncate(time.Millisecond) }

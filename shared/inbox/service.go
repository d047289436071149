package inbox

import (
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
	// Organizations, Members and Keys are of the organization; so is SignIns, which knows who is let in.
	Organizations OrganizationStore
	Members       MemberStore
	Keys          APIKeyStore
	SignIns       SignIns
	SecretPages   SecretPages
	Blobs         Blobs
	Downloads     Downloads
	Cursors       Sealer
	Now           func() time.Time
	Rand          io.Reader
}

// Services are the operations of the domain, by resource.
type Services struct {
	Inboxes     *Inboxes
	Emails      *Emails
	Attachments *Attachments
	Senders     *Senders
	Audits      *Audits
	Workspaces  *Workspaces
	Members     *Members
	APIKeys     *APIKeys
}

// New makes the services; every dependency is needed.
func New(d Deps) (*Services, error) {
	if d.Inboxes == nil || d.Domains == nil || d.Counts == nil || d.Emails == nil || d.Attachments == nil ||
		d.Senders == nil || d.Audit == nil || d.Blobs == nil || d.Downloads == nil || d.Cursors == nil || d.Now == nil || d.Rand == nil {
		return nil, errors.New("inbox: a dependency is missing")
	}
	if d.Organizations == nil || d.Members == nil || d.Keys == nil || d.SignIns == nil || d.SecretPages == nil {
		return nil, errors.New("inbox: a dependency of members and keys is missing")
	}
	return &Services{
		Inboxes:     &Inboxes{d},
		Emails:      &Emails{d},
		Attachments: &Attachments{d},
		Senders:     &Senders{d},
		Audits:      &Audits{d},
		Workspaces:  &Workspaces{d},
		Members:     &Members{d},
		APIKeys:     &APIKeys{d},
	}, nil
}

// now is the time as rows keep it: UTC, milliseconds, which is what callers see.
func (d Deps) now() time.Time { return d.Now().UTC().Truncate(time.Millisecond) }

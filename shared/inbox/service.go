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
	Rules       RuleStore
	Templates   TemplateStore
	Extractions ExtractionStore
	Webhooks    WebhookStore
	Deliveries  DeliveryStore
	Audit       AuditStore
	// Organizations, Members and Keys are of the organization; so is SignIns, which knows who is let in.
	Organizations OrganizationStore
	Members       MemberStore
	Keys          APIKeyStore
	SignIns       SignIns
	Threads       ThreadStore
	Work          WorkStore
	Waiting       WaitStore
	Usage         UsageStore
	Jobs          JobStore
	JobQueue      JobQueue // nil: the outbox alone brings jobs to the worker
	People        PeopleStore
	Uploads       UploadStore
	Puts          Puts
	Blobs         Blobs
	Downloads     Downloads
	Cursors       Sealer
	// WebhookSecrets seals signing secrets. They live as long as their webhooks, so its root is not rotated.
	WebhookSecrets Sealer
	Receivers      Receivers
	SecretPages    SecretPages
	Now            func() time.Time
	Rand           io.Reader

	Rates    Rates                                      // what grants have left; nil: calls are not limited
	MaxWaits int                                        // that may wait for mail at once, of all grants; 0: DefaultWaits
	Sleep    func(context.Context, time.Duration) error // waits, or returns the context's error; nil: a timer
}

// DefaultWaits is how many may wait for mail at once when nothing is configured: a tenth of 100 calls.
const DefaultWaits = 10

// Services are the operations of the domain, by resource.
type Services struct {
	Inboxes     *Inboxes
	Emails      *Emails
	Attachments *Attachments
	Senders     *Senders
	Rules       *Rules
	Templates   *Templates
	Extractions *Extractions
	Webhooks    *Webhooks
	Deliveries  *Deliveries
	Jobs        *Jobs
	Imports     *Imports
	Audits      *Audits
	Workspaces  *Workspaces
	Members     *Members
	APIKeys     *APIKeys
	Threads     *Threads
	Work        *Work
	Waits       *Waits
	Usage       *Usages
}

// New makes the services; every dependency is needed but JobQueue and Sleep.
func New(d Deps) (*Services, error) {
	if d.Inboxes == nil || d.Domains == nil || d.Counts == nil || d.Emails == nil || d.Attachments == nil ||
		d.Senders == nil || d.Rules == nil || d.Templates == nil || d.Extractions == nil || d.Audit == nil || d.Jobs == nil || d.People == nil || d.Uploads == nil || d.Puts == nil ||
		d.Threads == nil || d.Work == nil || d.Waiting == nil || d.Usage == nil ||
		d.Blobs == nil || d.Downloads == nil || d.Cursors == nil || d.Now == nil || d.Rand == nil {
		return nil, errors.New("inbox: a dependency is missing")
	}
	if d.Organizations == nil || d.Members == nil || d.Keys == nil || d.SignIns == nil || d.SecretPages == nil {
		return nil, errors.New("inbox: a dependency of members and keys is missing")
	}
	if d.Webhooks == nil || d.Deliveries == nil || d.WebhookSecrets == nil || d.Receivers == nil || d.SecretPages == nil {
		return nil, errors.New("inbox: a dependency of webhooks is missing")
	}
	if d.MaxWaits == 0 {
		d.MaxWaits = DefaultWaits
	}
	if d.Sleep == nil {
		d.Sleep = sleep
	}
	return &Services{
		Inboxes:     &Inboxes{d},
		Emails:      &Emails{d},
		Attachments: &Attachments{d},
		Senders:     &Senders{d},
		Rules:       &Rules{d},
		Templates:   &Templates{d},
		Extractions: &Extractions{d},
		Webhooks:    &Webhooks{d},
		Deliveries:  &Deliveries{d},
		Jobs:        &Jobs{d},
		Imports:     &Imports{d},
		Audits:      &Audits{d},
		Workspaces:  &Workspaces{d},
		Members:     &Members{d},
		APIKeys:     &APIKeys{d},
		Threads:     &Threads{d},
		Work:        &Work{d},
		Waits:       &Waits{d},
		Usage:       &Usages{d},
	}, nil
}

// now is the time as rows keep it: UTC, milliseconds, which is what callers see.
func (d Deps) now() time.Time { return d.Now().UTC().Truncate(time.Millisecond) }

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err() //nolint:wrapcheck // its own
	}
}

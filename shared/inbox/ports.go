package inbox

import (
	"context"
	"io"
	"time"
)

// InboxStore keeps inboxes. Everything is found under its workspace, so another tenant's id is a missing one.
type InboxStore interface {
	// Inbox finds an inbox by id or slug, deleted ones too; *apperr.Error not_found when there is none.
	Inbox(ctx context.Context, workspace, ref string) (Inbox, error)
	// Inboxes reads one page by id, behind r.After; next is empty at the end.
	Inboxes(ctx context.Context, r InboxRange) (rows []Inbox, next string, err error)
	// CreateInbox stores a new inbox with its guards: ErrSlugTaken, ErrAddressTaken when one refuses. What act brings is written
	// in the same transaction.
	CreateInbox(ctx context.Context, in Inbox, act Act) error
	// UpdateInbox reads the inbox, lets change alter it and stores it if nothing came between, else starts again (bounded,
	// then Busy). When change leaves it as it was nothing is written. A deletion or restoration is a change of DeletedAt:
	// ErrTooManyDeleted. An error of change is returned as it is.
	//
	// What act brings is written in the same transaction. A yes is kept for longer than it is accepted; one that was written
	// before refuses the change, and is looked for before change is called: AlreadyDone.
	UpdateInbox(ctx context.Context, workspace, id string, act Act, change func(*Inbox) error) (Inbox, error)
}

// InboxRange is one page of a workspace's inboxes.
type InboxRange struct {
	Workspace string
	Deleted   bool // with the deleted ones
	After     string
	Limit     int
}

// DomainStore knows the mail domains of an organization.
type DomainStore interface {
	// Domains lists them, the first assigned first; none is an empty list.
	Domains(ctx context.Context, organization string) ([]string, error)
}

// CountStore keeps counters that are moved beside the transaction they count, so they are approximate.
type CountStore interface {
	// Counts reads those of an inbox; an inbox without any has zeros.
	Counts(ctx context.Context, inbox string) (Counts, error)
}

// Counts are the approximate numbers of mails of an inbox.
type Counts struct {
	Received    int64 // accepted and not purged since, duplicates left out
	Processed   int64
	Failed      int64
	Quarantined int64
	Deleted     int64
}

// EmailStore keeps mail. Everything is found under its workspace, so another tenant's id is a missing one.
type EmailStore interface {
	// Emails reads one page, newest first, behind r.After; next is empty at the end. A page may be short.
	Emails(ctx context.Context, r EmailRange) (rows []*Row, next string, err error)
	// Email reads one mail, deleted or not; the Body is nil unless asked for and kept in a row. not_found when there is none.
	Email(ctx context.Context, workspace, id string, body bool) (Email, *Body, error)
	// UpdateEmail works like InboxStore.UpdateInbox. A deletion stamps the mail with when it goes for good (PurgeOf), and tells
	// retention; a restoration takes the stamp away.
	UpdateEmail(ctx context.Context, workspace, id string, act Act, change func(*Email) error) (Email, error)
	// StartEmailJob stores the job that start makes of the mail as it is, with its outbox row and what act brings, in one transaction
	// that fails when the mail changes meanwhile: then start judges it anew (bounded, then Busy). An error of start is returned
	// as it is.
	StartEmailJob(ctx context.Context, workspace, id string, act Act, start func(Email) (Job, error)) (Job, error)
	// Hidden names the deleted inboxes of the workspace: their mail is out of reach.
	Hidden(ctx context.Context, workspace string) (map[string]bool, error)
}

// EmailRange is what the keys can serve of a list: at most one of Thread and Inbox narrows it, Status only without Thread.
type EmailRange struct {
	Workspace string
	Inbox     string // id
	Status    Status
	Thread    string
	Deleted   bool   // with the deleted ones, which Status and Thread don't narrow
	From, To  string // positions: inclusive, exclusive; empty is open
	After     string // position
	Limit     int
	Ascending bool // the oldest first
}

// AttachmentStore keeps what is known of attachments; their bytes are blobs.
type AttachmentStore interface {
	// Attachments reads one page of an inbox, or of one mail of it, the newest mail first.
	Attachments(ctx context.Context, r AttachmentRange) (rows []AttachmentRow, next string, err error)
	// Attachment finds one by id, whatever became of its mail; not_found when there is none.
	Attachment(ctx context.Context, workspace, id string) (Attachment, error)
}

// AttachmentRange is one page of attachments.
type AttachmentRange struct {
	Workspace, Inbox string
	Email            string // position of one mail; optional
	After            string // the Key of a row
	Limit            int
}

// AttachmentRow is an attachment in a list.
type AttachmentRow struct {
	Attachment
	Secrets Secrets // of its mail, those that occur in its names
	Key     string
}

// SenderStore keeps the entries for senders. Everything is found under workspace and inbox, so another tenant's id is a missing
// one.
type SenderStore interface {
	// Senders reads one page of an inbox's live entries by id, behind r.After, with their approximate hits; next is empty at
	// the end.
	Senders(ctx context.Context, r SenderRange) (rows []SenderRow, next string, err error)
	// Sender finds one, deleted or not; not_found when there is none.
	Sender(ctx context.Context, workspace, in, id string) (AllowedSender, error)
	// SendersFor finds the live entries that may concern an address in its normal form: its own, and those for domains of its
	// zone. Two reads, however long the list is.
	SendersFor(ctx context.Context, workspace, in, address string) ([]AllowedSender, error)
	// UpdateSender works like InboxStore.UpdateInbox, but that change is called with a zero entry when there is none and makes
	// it by giving it a version. ErrZoneFull.
	UpdateSender(ctx context.Context, workspace, in, id string, act Act, change func(*AllowedSender) error) (AllowedSender, error)
}

// SenderRange is one page of an inbox's entries.
type SenderRange struct {
	Workspace, Inbox string
	After            string
	Limit            int
}

// SenderRow is an entry in a list.
type SenderRow struct {
	AllowedSender
	Hits int64 // mails that it decided; approximate
}

// AuditStore keeps the audit. The line of a change is written by whatever stores the change: see Act.
type AuditStore interface {
	// Record writes the line of an act that changes no row: a read that is audited. Without a line it does nothing.
	Record(ctx context.Context, act Act, targets ...string) error
	// Events reads one page, newest first, behind r.After; next is empty at the end. A page may be short.
	Events(ctx context.Context, r AuditRange) (rows []AuditEvent, next string, err error)
}

// AuditRange is one page of the audit of a workspace, or of what was done to the organization itself.
type AuditRange struct {
	Organization string
	Workspace    string // empty: the organization's
	From, To     string // ids: inclusive, exclusive; empty is open
	After        string // id
	Limit        int
}

// Blobs reads what the pipeline stored beside the rows.
type Blobs interface {
	// Open returns the bytes of a key. Absence is an error like any other: a row named the key.
	Open(ctx context.Context, key string) (io.ReadCloser, error)
}

// Downloads makes addresses for attachments.
type Downloads interface {
	// SignedURL returns an address that serves this one attachment, as a download and never as a page, until it expires.
	SignedURL(ctx context.Context, a Attachment, ttl time.Duration) (string, time.Time, error)
}

// Sealer makes opaque, authenticated, expiring text of a cursor. Only who names the same associated data can open it.
type Sealer interface {
	Seal(plaintext, ad []byte, ttl time.Duration) (string, error)
	// Open refuses text that was altered, made for other associated data, or has expired.
	Open(token string, ad []byte) ([]byte, error)
}

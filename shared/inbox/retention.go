package inbox

import (
	"fmt"
	"time"
)

// DueKind says what retention has to do.
type DueKind string

// What it has to do.
const (
	DueEmail DueKind = "email" // a deleted mail whose time is over
	DueInbox DueKind = "inbox" // a look at an inbox: is mail of it too old, or was it deleted long enough ago?
	DueTrash DueKind = "trash" // what is left of what was purged
	// DueImport is trash of an imported mail that is being accepted: other runs have the bytes under the same key, and trash they are only
	// when the outbox row of none of them followed. A kind of its own, so that a version that does not know that removes nothing.
	DueImport DueKind = "import"
)

// Due is one thing that retention has to do at a time.
type Due struct {
	Kind         DueKind   `json:"kind"`
	Organization string    `json:"organization,omitempty"`
	Workspace    string    `json:"workspace,omitempty"`
	Inbox        string    `json:"inbox,omitempty"`
	ID           string    `json:"id"`
	Since        time.Time `json:"since,omitzero"` // when it was deleted: what was restored or deleted anew since is not meant
	Trash        *Trash    `json:"trash,omitempty"`

	At       time.Time `json:"-"` // when it is due
	Place    RowKey    `json:"-"` // of the row that says so
	Revision uint64    `json:"-"`
}

// RowKey names a row of the store.
type RowKey struct {
	Partition string `json:"partition"`
	Sort      string `json:"sort"`
}

// Trash is what is left of a purged mail once its rows are gone: nobody can reach it any more, and nothing else names it.
type Trash struct {
	Blobs       []string `json:"blobs,omitempty"`
	Attachments []string `json:"attachments,omitempty"` // ids
	Extractions []string `json:"extractions,omitempty"` // sort keys of their rows, which did not fit into the transaction of the purge
	// Search is the id of a mail that may have left blobs which no row named: it was in work, could not be read, or was read again by
	// a run that died or that found fewer files than the one before.
	Search string `json:"search,omitempty"`
	// Intake: it is a mail that is being accepted, and trash only when its outbox row never follows. Raw is the row of its bytes.
	Intake bool   `json:"intake,omitempty"`
	Raw    string `json:"raw,omitempty"`
}

// AcceptTime is how long the bytes of a mail wait for its outbox row. It is many times what a store may take.
const AcceptTime = time.Hour

// EmailPurge is a mail to be purged, if Due says so of it as it is in that very transaction.
type EmailPurge struct {
	Workspace, ID string
	// Due reports whether the mail is to be purged, and whether that is because its inbox keeps mail no longer.
	Due func(Email) (due, expired bool)
	// Inbox, when set, must be what it was at Revision: it says how long mail is kept.
	Inbox    *Inbox
	Revision uint64
	// WithInbox: the inbox goes too, and its counters with it.
	WithInbox bool
}

// Purge is what one run of retention took out of one inbox. Its line in the audit is written with each mail, with the counts so far.
type Purge struct {
	Inbox       string
	Line        Audit
	Deleted     int // mails that had been deleted
	Expired     int // mails that were older than the inbox keeps them
	Attachments int
	Bytes       int64
}

// Emails is how many.
func (p Purge) Emails() int { return p.Deleted + p.Expired }

// Count adds a mail.
func (p *Purge) Count(e Email, expired bool) {
	if expired {
		p.Expired++
	} else {
		p.Deleted++
	}
	p.Attachments += e.Attachments
	p.Bytes += e.Size
}

// Reason is the line's: counts, never texts.
func (p Purge) Reason() string {
	return fmt.Sprintf("emails: %d deleted, %d past retention_days; attachments: %d; bytes: %d", p.Deleted, p.Expired, p.Attachments, p.Bytes)
}

// PurgesAt is when a deleted mail goes for good: 30 days after its deletion, or when its inbox would not have kept it any longer. Zero
// while it is not deleted.
func (e Email) PurgesAt() time.Time { return purgesAt(e.DeletedAt, e.PurgeAt) }

// PurgesAt is that of the mail.
func (s Summary) PurgesAt() time.Time { return purgesAt(s.DeletedAt, s.PurgeAt) }

func purgesAt(deleted, stamped time.Time) time.Time {
	if deleted.IsZero() || stamped.IsZero() {
		return PurgeAt(deleted)
	}
	return stamped
}

// PurgeOf is when a mail that is deleted now goes for good: the store stamps it with that.
func PurgeOf(e Email, in Inbox, now time.Time) time.Time {
	at := PurgeAt(now)
	if in.Retention > 0 {
		if end := e.ReceivedAt.Add(in.Keeps()); end.Before(at) {
			at = end
		}
	}
	if at.Before(now) {
		return now
	}
	return at
}

// Keeps is how long the inbox keeps mail; 0 is for ever.
func (in Inbox) Keeps() time.Duration { return time.Duration(in.Retention) * 24 * time.Hour }

// Expired reports whether a deleted thing goes for good now.
func Expired(deleted, now time.Time) bool { return !deleted.IsZero() && !PurgeAt(deleted).After(now) }

// Package pipeline is the way of a mail from the accepted bytes to what an agent reads: intake (store the raw bytes and the
// outbox row, nothing else), fan-out, and the stages of the worker. Everything is keyed by ids that were chosen at intake, so
// a second run, after a crash or a redelivery, ends where the first would have. It knows the domain and the mail parser,
// neither HTTP nor AWS.
package pipeline

import (
	"context"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
)

// Recipients finds the inbox behind an address.
type Recipients interface {
	// Recipient takes an address of any case. An unknown address, one of a deleted inbox or of a domain that is not
	// assigned is *apperr.Error not_found; a paused inbox is returned with its state.
	Recipient(ctx context.Context, address string) (inbox.Recipient, error)
}

// Outbox holds what was accepted and is not finished, so that nothing depends on a queue that may lose a message.
type Outbox interface {
	// AnnounceIntake stores, before the bytes of a mail are, that they are to be removed again when its outbox row does not follow
	// within inbox.AcceptTime. Repeating it changes nothing. Of an imported mail, whose bytes other runs have under the same key, it is
	// called once NameRaw was: they go only when none of these runs has stored its outbox row.
	AnnounceIntake(ctx context.Context, in inbox.Intake) error
	// NameRaw says which mails share the raw bytes under a key, before any of them is stored. Repeating it changes nothing.
	// inbox.ErrRawDone: they have all been purged or discarded, and the bytes with them; conflict (raw_gone) when the bytes are gone and
	// a mail is new.
	NameRaw(ctx context.Context, key string, mails []string) error
	// PutIntake stores the outbox row of an accepted mail and, of one that was announced, takes that back in the same transaction:
	// unavailable (too_late) when its bytes may be removed already.
	PutIntake(ctx context.Context, in inbox.Intake) error
	// Intake reads it back: not_found when it was fanned out already, which a redelivery takes for success.
	Intake(ctx context.Context, id string) (inbox.Intake, error)
	// FanOut stores one mail, received or already processing, and one outbox row of its own (under the mail's id) for each
	// recipient and drops the intake's row with the last, in transactions of bounded size. Repeating it, also half-way, changes
	// nothing that is there.
	FanOut(ctx context.Context, in inbox.Intake, mails []inbox.Email) error
	// Pending lists the ids of outbox rows (intake_, email_ or job_) that were stored before a time, oldest first: they are to
	// be sent to the queue again.
	Pending(ctx context.Context, before time.Time, limit int) ([]string, error)
}

// Holding keeps accepted mail of paused inboxes, apart from the outbox: however much of it there is, it is in nobody's way.
type Holding interface {
	// Hold stores an intake of one recipient. Repeating it changes nothing.
	Hold(ctx context.Context, in inbox.Intake) error
	// NextHeld is the oldest intake that is held for the next inbox behind after, in the order of ids; "" is the start.
	// not_found behind the last.
	NextHeld(ctx context.Context, after string) (inbox.Intake, error)
	// Held lists what is held for an inbox, oldest first.
	Held(ctx context.Context, inbox string, limit int) ([]inbox.Intake, error)
	// Unhold drops a held intake. Repeating it is fine.
	Unhold(ctx context.Context, in inbox.Intake) error
}

// Mails is what the worker reads and writes of a mail.
type Mails interface {
	// ClaimMail moves a received mail to processing and returns it; one that is processing already (a worker died) is returned
	// as it is. not_found when there is no outbox row for it any more: it is finished.
	ClaimMail(ctx context.Context, id string) (inbox.Email, error)
	// Duplicate finds an earlier mail of the inbox with the same raw bytes, or with the same key, which is a digest of
	// message id, sender, date and size bucket (empty: not asked). The second result tells which: "raw" or "message".
	// not_found when there is none. Deleted mail counts; the mail itself does not.
	Duplicate(ctx context.Context, of inbox.Email, key string) (id, how string, err error)
	// Finish stores the result, its attachments, thread and index rows, and drops the outbox row and the mail's claim on its
	// digests in one transaction (bounded: attachments over 30 go in earlier ones). Labels, handled and deletion that an
	// operation set meanwhile stay. key is remembered for Duplicate. Finishing twice changes nothing.
	Finish(ctx context.Context, p inbox.Processed, key string) error
	// Discard drops a received mail that is an exact duplicate of another, with its outbox row, and counts it on the other. Its bytes
	// become trash, unless others share them.
	Discard(ctx context.Context, id, duplicateOf string) error
}

// Senders knows who may send to an inbox.
type Senders interface {
	// Inbox finds an inbox by id, deleted ones too.
	Inbox(ctx context.Context, workspace, ref string) (inbox.Inbox, error)
	// SendersFor finds the entries that may concern an address, in two reads.
	SendersFor(ctx context.Context, workspace, in, address string) ([]inbox.AllowedSender, error)
	// HitSender counts a mail that an entry decided.
	HitSender(ctx context.Context, workspace, in, id string)
}

// Rules knows the rules of a workspace.
type Rules interface {
	// Rulebook reads them in one read. known is a revision that the caller holds: while it is the present one the book comes back
	// empty. Revision 0: there are none.
	Rulebook(ctx context.Context, workspace string, known uint64) (inbox.Rulebook, uint64, error)
	// HitRules counts a mail that rules matched.
	HitRules(ctx context.Context, workspace string, rules []inbox.RuleRef)
}

// Extractions keeps what is extracted from mail, and the mail that a job extracts from.
type Extractions interface {
	// Email reads one mail, deleted or not; the Body is nil unless asked for and kept in a row. not_found when there is none.
	Email(ctx context.Context, workspace, id string, body bool) (inbox.Email, *inbox.Body, error)
	// Attachments reads one page of what is known of a mail's attachments.
	Attachments(ctx context.Context, r inbox.AttachmentRange) (rows []inbox.AttachmentRow, next string, err error)
	// Hidden names the deleted inboxes of a workspace: their mail is out of reach.
	Hidden(ctx context.Context, workspace string) (map[string]bool, error)
	// Template finds an extraction template by id, deleted ones too; not_found when there is none.
	Template(ctx context.Context, workspace, id string) (inbox.ExtractionTemplate, error)
	// PutExtraction stores what was found, over an older extraction of the same mail and template. Repeating it changes nothing.
	PutExtraction(ctx context.Context, e inbox.Extraction) error
}

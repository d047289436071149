package pipeline

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
)

// Known knows the raw bytes of mail.
type Known interface {
	// RawMail is the id of an inbox's mail, deleted or not, that has these bytes (SHA-256, hex); empty: none has.
	RawMail(ctx context.Context, workspace, inbox, sha256 string) (id string, err error)
}

// Import takes one mail of a person's file: the raw bytes, then the outbox row, as Accept does, but under ids that follow from where
// the mail lies, so that whoever was interrupted may begin again. What the inbox has already, byte for byte, is not stored. The
// intake that it names is the worker's; nobody has sent it to the queue.
func (n *Intake) Import(ctx context.Context, m inbox.ImportedMail) (inbox.Imported, error) {
	if n.deps.Known == nil {
		return inbox.Imported{}, errors.New("pipeline: Import needs Known")
	}
	if err := n.importable(m.Raw, m.To); err != nil {
		return inbox.Imported{}, err
	}
	sum := sha256.Sum256(m.Raw)
	digest := hex.EncodeToString(sum[:])
	id, err := fixedID(prefixEmail, m.ReceivedAt, "import", m.Source, m.To.Inbox, digest)
	if err != nil {
		return inbox.Imported{}, err
	}
	there, err := n.deps.Known.RawMail(ctx, m.To.Workspace, m.To.Inbox, digest)
	if err != nil {
		return inbox.Imported{}, fmt.Errorf("look for the mail: %w", err)
	}
	if there != "" { // what is left to do of it the outbox knows
		return inbox.Imported{Email: there, Duplicate: there != id}, nil
	}
	row := inbox.Intake{
		ReceivedAt: m.ReceivedAt.UTC(), RawSHA256: digest, Size: int64(len(m.Raw)), Imported: true, Quiet: m.Quiet,
		Shared: true, // a second run has the same bytes under the same key
	}
	// Of now, though the mail is old: the outbox takes the age of a row from its id.
	if row.ID, err = n.deps.NewID(prefixIntake, n.deps.Clock().UTC()); err != nil {
		return inbox.Imported{}, unavailable("choose ids", err)
	}
	if id, row.RawKey, err = n.nameImported(ctx, m, id, row.ID, digest); err != nil {
		return inbox.Imported{}, err
	}
	row.Recipients = []inbox.Delivery{{
		Email: id, Address: m.To.Address, Organization: m.To.Organization, Workspace: m.To.Workspace, Inbox: m.To.Inbox,
	}}
	// Whoever is killed from here on, and never begins again, leaves nothing that is not removed.
	row.Announced = true
	if err := bounded(ctx, func(ctx context.Context) error { return n.deps.Outbox.AnnounceIntake(ctx, row) }); err != nil {
		return inbox.Imported{}, unavailable("announce the raw mail", err)
	}
	if err := n.deps.Blobs.Put(ctx, row.RawKey, bytes.NewReader(m.Raw), row.Size); err != nil {
		return inbox.Imported{}, unavailable("store the raw mail", err)
	}
	if err := bounded(ctx, func(ctx context.Context) error { return n.deps.Outbox.PutIntake(ctx, row) }); err != nil {
		return inbox.Imported{}, unavailable("store the outbox row", err)
	}
	return inbox.Imported{Email: id, Intake: row.ID}, nil
}

// nameImported says, before the bytes are stored, that they are this mail's, so that they go when the mail is purged. What was imported
// from the same place and purged comes in anew, as another mail.
func (n *Intake) nameImported(ctx context.Context, m inbox.ImportedMail, id, intake, digest string) (mail, key string, err error) {
	for range 2 {
		key = "raw/" + m.ReceivedAt.UTC().Format("2006/01/02/") + strings.ToLower(id) + ".eml"
		err = bounded(ctx, func(ctx context.Context) error { return n.deps.Outbox.NameRaw(ctx, key, []string{id}) })
		if !errors.Is(err, inbox.ErrRawDone) {
			break
		}
		if id, err = fixedID(prefixEmail, m.ReceivedAt, "import", m.Source, m.To.Inbox, digest, intake); err != nil {
			return "", "", err
		}
	}
	if err != nil {
		return "", "", unavailable("name the raw mail", err)
	}
	return id, key, nil
}

// The codes of mails in a file that are not taken.
const (
	codeEmpty    = "empty"
	codeNotAMail = "not_a_mail"
	codeTooLarge = "too_large"
)

// importable refuses what no transport would have brought. A mail that is only broken is taken: the worker reads what there is.
func (n *Intake) importable(raw []byte, to inbox.Recipient) error {
	most := n.max
	if to.MaxBytes > 0 {
		most = min(most, to.MaxBytes)
	}
	switch {
	case len(bytes.TrimSpace(raw)) == 0:
		return apperr.New(apperr.Invalid, codeEmpty, "There is nothing in it.")
	case int64(len(raw)) > most:
		return apperr.New(apperr.TooLarge, codeTooLarge, fmt.Sprintf("A mail may have %d bytes.", most))
	case !looksLikeMail(raw):
		return apperr.New(apperr.Invalid, codeNotAMail, "This is not a mail: it begins with no header field.")
	}
	return nil
}

// looksLikeMail reports whether one of the first lines is a header field (RFC 5322 section 2.2). A file of anything else would be a mail
// without sender, subject and text.
func looksLikeMail(raw []byte) bool {
	raw = raw[:min(len(raw), 8<<10)]
	for range 10 {
		line, rest, more := bytes.Cut(raw, []byte{'\n'})
		name, _, ok := bytes.Cut(line, []byte{':'})
		if ok && len(name) > 0 && len(name) <= 76 && bytes.IndexFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f }) < 0 {
			return true
		}
		if !more {
			return false
		}
		raw = rest
	}
	return false
}

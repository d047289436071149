package inboxstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

// Raw bytes lie under a key of their own for each accepted mail, not under their digest: two mails with the same bytes have two
// blobs. But the recipients of one accepted mail share its blob, in whatever organization they are, so the blob goes with the last of
// them. Of mail with one recipient, by SMTP, the mail itself knows that it is alone (Email.RawOwn).

const (
	// rawGone is how long a row remembers that its bytes are gone: longer than a queue may bring their notice again.
	rawGone = 15 * 24 * time.Hour
	// maxSharers bounds the row. A transport gives one mail to a few hundred recipients at most.
	maxSharers = 4000
)

// rawRow names the mails that share raw bytes.
type rawRow struct {
	Mails []string `json:"mails,omitempty"`
	Past  []string `json:"past,omitempty"`  // those that were purged
	Gone  bool     `json:"gone,omitempty"`  // nobody is left: the bytes are removed, and may not be named again
	Taken bool     `json:"taken,omitempty"` // an outbox row of an imported mail with these bytes was stored
}

func rawKey(blob string) store.Key { return key("raw/"+blob, only) }

// dueIntake is the trash that a mail is until its outbox row is there.
func dueIntake(in inbox.Intake) inbox.Due {
	t := &inbox.Trash{Blobs: []string{in.RawKey}, Intake: true}
	at, kind := in.ReceivedAt, inbox.DueTrash
	switch {
	case in.Imported:
		at, kind = inbox.IDTime(in.ID), inbox.DueImport // it was received long ago
	case len(in.Recipients) > 1:
		t.Raw = in.RawKey
	}
	return inbox.Due{Kind: kind, ID: in.ID, Trash: t, At: at.UTC().Truncate(time.Millisecond).Add(inbox.AcceptTime)}
}

// AnnounceIntake implements pipeline.Outbox.
func (s *Store) AnnounceIntake(ctx context.Context, in inbox.Intake) error {
	var b batch
	b.due(dueIntake(in))
	if len(in.Recipients) > 1 && !in.Imported {
		row := rawRow{}
		for _, d := range in.Recipients {
			row.Mails = append(row.Mails, d.Email)
		}
		b.set(rawKey(in.RawKey), row)
	}
	if len(b.ops) > 1 || b.err != nil {
		return wrapIf("announce "+in.ID, s.commit(ctx, &b))
	}
	return wrapIf("announce "+in.ID, s.engine.Put(ctx, b.ops[0].Item(), store.Condition{})) // half the price of a transaction
}

// NameRaw implements pipeline.Outbox.
func (s *Store) NameRaw(ctx context.Context, blob string, mails []string) error {
	k := rawKey(blob)
	for range attempts {
		row, read, _, err := find[rawRow](ctx, s, k)
		if err != nil {
			return failed("who shares the raw mail", err)
		}
		fresh := slices.DeleteFunc(slices.Clone(mails), func(id string) bool {
			return slices.Contains(row.Mails, id) || slices.Contains(row.Past, id)
		})
		switch {
		case row.Gone && len(fresh) == 0:
			return inbox.ErrRawDone
		case row.Gone:
			return apperr.New(apperr.Conflict, "raw_gone", "The bytes of this mail were removed with the last mail that had them.")
		case len(fresh) == 0:
			return nil
		case len(row.Mails)+len(row.Past)+len(fresh) > maxSharers:
			return apperr.New(apperr.TooLarge, "", "This mail has too many recipients.")
		}
		row.Mails = append(row.Mails, fresh...)
		cond := store.Absent()
		if read > 0 {
			cond = store.RevisionIs(read)
		}
		item, err := store.Encode(k, format, read+1, row)
		if err != nil {
			return failed("who shares the raw mail", err)
		}
		if err = s.engine.Put(ctx, item, cond); !errors.Is(err, store.ErrConflict) {
			return wrapIf("who shares the raw mail", err)
		}
	}
	return inbox.Busy()
}

// leaveRaw takes a mail out of those that share its raw bytes, and returns their key when nobody else has them. The row is written
// under the revision that was read: of two that leave at once the second sees that it is the last, and one that comes when the last
// has left is told so. Bytes that neither row nor mail says anything of, as of mail that was accepted before there were such rows, stay.
func (s *Store) leaveRaw(ctx context.Context, b *batch, blob, email string, own bool) (string, error) {
	if blob == "" || own {
		return blob, nil
	}
	k := rawKey(blob)
	row, read, ok, err := find[rawRow](ctx, s, k)
	if err != nil {
		return "", failed("who shares the raw mail", err)
	}
	at := slices.Index(row.Mails, email)
	if !ok || at < 0 {
		return "", nil
	}
	row.Mails, row.Past = slices.Delete(row.Mails, at, at+1), append(row.Past, email)
	if len(row.Mails) > 0 {
		b.replace(k, read, row)
		return "", nil
	}
	row.Gone = true
	b.expiring(k, read+1, row, store.RevisionIs(read), s.now().Add(rawGone))
	return blob, nil
}

// trashRaw has the raw bytes of a discarded mail removed, unless others share them.
func (s *Store) trashRaw(ctx context.Context, b *batch, e inbox.Email) error {
	blob, err := s.leaveRaw(ctx, b, e.RawKey, e.ID, e.RawOwn)
	if err != nil || blob == "" {
		return err
	}
	b.due(inbox.Due{Kind: inbox.DueTrash, ID: e.ID, Trash: &inbox.Trash{Blobs: []string{blob}}, At: s.now().UTC().Truncate(time.Millisecond)})
	return nil
}

// putImport stores the outbox row of an imported mail, and that its bytes are taken, in the place of what would have them removed.
func (s *Store) putImport(ctx context.Context, in inbox.Intake) error {
	for range attempts {
		row, read, ok, err := find[rawRow](ctx, s, rawKey(in.RawKey))
		if err != nil {
			return failed("who shares the raw mail", err)
		}
		if !ok || row.Gone { // another run's hour was over
			return tooLate()
		}
		row.Taken = true
		var b batch
		b.create(outboxKey(in.ID), outboxRow{Intake: &in})
		b.drop(purgeKey(dueIntake(in)), store.RevisionIs(1))
		b.replace(rawKey(in.RawKey), read, row)
		err = s.commit(ctx, &b)
		switch conflictAt(err) {
		case 0: // its answer was lost
			return nil
		case 1:
			return tooLate().Because(err)
		case 2:
			continue
		}
		return wrapIf("intake "+in.ID, err)
	}
	return inbox.Busy()
}

func tooLate() *apperr.Error {
	return apperr.New(apperr.Unavailable, "too_late", "It took too long to accept this mail.")
}

// giveUpImport is GiveUpIntake of an imported mail: its bytes are nobody's only when no run has taken them, and from here on none can.
func (s *Store) giveUpImport(ctx context.Context, d inbox.Due) (inbox.Due, bool, error) {
	if len(d.Trash.Blobs) != 1 {
		return d, false, s.DropDue(ctx, d)
	}
	k := rawKey(d.Trash.Blobs[0])
	row, read, _, err := find[rawRow](ctx, s, k)
	if err != nil {
		return d, false, failed("give up "+d.ID, err)
	}
	if row.Taken && !row.Gone {
		return d, false, s.DropDue(ctx, d)
	}
	row = rawRow{Past: append(row.Past, row.Mails...), Gone: true, Taken: row.Taken}
	t := *d.Trash
	t.Intake = false
	next := d
	next.Trash, next.Revision = &t, d.Revision+1
	var b batch
	b.put(keyOf(d.Place), d.Revision+1, next, store.RevisionIs(d.Revision))
	b.forgetful(k, read, row, s.now().Add(rawGone))
	err = s.commit(ctx, &b)
	if errors.Is(err, store.ErrConflict) {
		return d, false, nil
	}
	return next, err == nil, wrapIf("give up "+d.ID, err)
}

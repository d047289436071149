package inboxstore

import (
	"context"
	"errors"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

func uploadKey(ws, id string) store.Key { return key("uploads/"+ws, id) }

// uploadDueKey orders uploads of all tenants by when their bytes are to go. Nobody but the sweep reads it.
func uploadDueKey(u inbox.Upload) store.Key {
	return key("upload-due", inbox.Position(u.ExpiresAt, u.ID))
}

// upload writes an upload and when it is to go. The row expires by itself; the other stays until the sweep has removed the bytes.
func (b *batch) upload(u inbox.Upload, read uint64) {
	cond := store.Absent()
	if read > 0 {
		cond = store.RevisionIs(read)
	}
	b.expiring(uploadKey(u.Workspace, u.ID), read+1, u, cond, u.ExpiresAt)
	b.set(uploadDueKey(u), u)
}

// CreateUpload implements inbox.UploadStore.
func (s *Store) CreateUpload(ctx context.Context, u inbox.Upload, act inbox.Act) error {
	return s.insert(ctx, "create upload "+u.ID, act, func(b *batch) {
		b.upload(u, 0)
		b.act(act, u.ID, nil, u)
	})
}

// Upload implements inbox.UploadStore.
func (s *Store) Upload(ctx context.Context, ws, id string) (inbox.Upload, error) {
	u, _, err := get[inbox.Upload](ctx, s, uploadKey(ws, id))
	if err != nil {
		return inbox.Upload{}, missing("upload "+id, err, inbox.NoUpload())
	}
	return u, nil
}

// Uploads implements inbox.UploadStore.
func (s *Store) Uploads(ctx context.Context, ws string, limit int) ([]inbox.Upload, error) {
	page, err := store.Fill(ctx, s.engine, store.Query{Table: store.Core, Partition: uploadKey(ws, "").Partition, Limit: limit}, 4)
	if err != nil {
		return nil, failed("uploads of "+ws, err)
	}
	rows, err := decodeAll[inbox.Upload](page.Items)
	return rows, wrapIf("uploads of "+ws, err)
}

// StartUploadJob implements inbox.UploadStore.
func (s *Store) StartUploadJob(
	ctx context.Context, ws, id string, act inbox.Act, start func(*inbox.Upload) (inbox.Job, error),
) (inbox.Job, error) {
	for range attempts {
		old, revision, err := get[inbox.Upload](ctx, s, uploadKey(ws, id))
		if err != nil {
			return inbox.Job{}, missing("upload "+id, err, inbox.NoUpload())
		}
		if err := s.unused(ctx, act); err != nil {
			return inbox.Job{}, err
		}
		next := old
		j, err := start(&next)
		if err != nil {
			return inbox.Job{}, err
		}
		var b batch
		b.startJob(j)
		b.upload(next, revision)
		if uploadDueKey(old) != uploadDueKey(next) {
			b.drop(uploadDueKey(old), store.Condition{})
		}
		b.act(act, j.ID, nil, j, append(targetsOf(j), id)...)
		err = s.commit(ctx, &b)
		if err == nil {
			return j, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return inbox.Job{}, failed("start job "+j.ID, err)
		}
	}
	return inbox.Job{}, inbox.Busy()
}

// ExpiredUploads implements pipeline.Uploads.
func (s *Store) ExpiredUploads(ctx context.Context, before time.Time, limit int) ([]inbox.Upload, error) {
	page, err := s.engine.Query(ctx, store.Query{
		Table: store.Core, Partition: uploadDueKey(inbox.Upload{}).Partition, To: inbox.Position(before, ""), Limit: limit,
	})
	if err != nil {
		return nil, failed("expired uploads", err)
	}
	rows, err := decodeAll[inbox.Upload](page.Items)
	return rows, wrapIf("expired uploads", err)
}

// DropUpload implements pipeline.Uploads.
func (s *Store) DropUpload(ctx context.Context, u inbox.Upload) error {
	var b batch
	b.drop(uploadKey(u.Workspace, u.ID), store.Condition{})
	b.drop(uploadDueKey(u), store.Condition{})
	return wrapIf("drop upload "+u.ID, s.commit(ctx, &b))
}

// RawMail implements pipeline.Known: which mail of an inbox has these raw bytes, deleted ones too.
func (s *Store) RawMail(ctx context.Context, ws, in, sha256 string) (id string, err error) {
	row, _, _, err := find[claimRow](ctx, s, dupKey(ws, in, "raw/"+sha256))
	return row.Email, wrapIf("digest of a mail", err)
}

// ProveMember notes that the address is this person's own; false when the person has another one by now, or it was noted before.
func (s *Store) ProveMember(ctx context.Context, user, address string) (bool, error) {
	for range attempts {
		m, revision, err := get[inbox.Member](ctx, s, memberKey(user))
		if err != nil {
			return false, missing("member "+user, err, noMember())
		}
		if m.Email != address || m.AddressProven() || !m.DeletedAt.IsZero() {
			return false, nil
		}
		m.Proven = address
		var b batch
		b.upsert(memberKey(user), revision, m)
		b.set(orgKey(m.Organization, "member/"+user), m)
		err = s.commit(ctx, &b)
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return false, failed("prove member "+user, err)
		}
	}
	return false, inbox.Busy()
}

package pipeline

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/buzon-mail/buzon/shared/inbox"
)

// files stores each attachment's bytes and makes its row. Nothing is opened or unpacked.
func (r *run) files(ctx context.Context) error {
	if r.reading == nil {
		return nil
	}
	files := r.reading.Files
	if len(files) > r.w.opts.MaxFiles {
		r.warn("attachments_cut", fmt.Sprintf("%d attachments, the first %d are kept apart; the raw mail has them all", len(files), r.w.opts.MaxFiles))
		r.addFlag("truncated")
		files = files[:r.w.opts.MaxFiles]
	}
	r.attachments = make([]inbox.Attachment, 0, len(files))
	for i, f := range files {
		id, err := attachmentID(r.email.ID, i)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(f.Data)
		a := f.Meta
		a.ID, a.Workspace, a.Inbox, a.Email = id, r.email.Workspace, r.email.Inbox, r.email.ID
		a.Size, a.SHA256 = int64(len(f.Data)), hex.EncodeToString(sum[:])
		a.BlobKey = fmt.Sprintf("att/%s/%d/%d", strings.ToLower(r.email.ID), Version, i)
		if err := r.w.deps.Blobs.Put(ctx, a.BlobKey, bytes.NewReader(f.Data), a.Size); err != nil {
			return blobFailure(err)
		}
		r.attachments = append(r.attachments, a)
	}
	r.email.Attachments = len(r.attachments)
	return nil
}

// attachmentID is the id of a mail's n-th attachment: the mail's time, and bits that follow from the mail's id and n, so
// that a second run names it the same. The mail's id has 80 random bits; to know it is to may read the mail.
func attachmentID(email string, n int) (string, error) {
	var out ulid.ULID
	mail, err := ulid.ParseStrict(email[len(prefixEmail):])
	if err != nil {
		return "", fmt.Errorf("id of an attachment: %w", err)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d/%s/%d", Version, email, n))
	if err := out.SetTime(mail.Time()); err != nil {
		return "", fmt.Errorf("id of an attachment: %w", err)
	}
	if err := out.SetEntropy(sum[:10]); err != nil {
		return "", fmt.Errorf("id of an attachment: %w", err)
	}
	return prefixAttachment + out.String(), nil
}

package inboxstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

// Bounds of the rows that hold a mail's attachments. Fifteen rows can be moved with the mail in one transaction, beside its thread,
// its place in the work, a yes, a line of the audit and an idempotency key: 48 of 50.
const (
	maxAttachments = 2000 // of a mail: the scan stops at as many parts
	attsPerRow     = 134
	attsRowBytes   = 160 << 10
	maxAttRows     = 15
	pointersPerTx  = 40
	pointersInLast = 18 // rows by id that fit beside everything else that Finish writes
	rowsInLast     = 2
)

// attsRow is some of the attachments of one mail, in the order of the mail.
type attsRow struct {
	Attachments []inbox.Attachment `json:"attachments"`
	Secrets     inbox.Secrets      `json:"secrets,omitempty"` // of the mail, those that occur in the names
}

// attsSort counts chunks downwards, so that a page that starts with the newest mail has the parts of each mail in order.
func attsSort(e inbox.Email, chunk int) string {
	return fmt.Sprintf("%s/%02d", inbox.Position(e.ReceivedAt, e.ID), 99-chunk)
}

// chunkAttachments packs a mail's attachments into rows.
func chunkAttachments(e inbox.Email, all []inbox.Attachment) []attsRow {
	var rows []attsRow
	secrets, size := inbox.SecretsOf(e), 0
	for i, a := range all {
		n := attachmentSize(a)
		if len(rows) == 0 || len(rows[len(rows)-1].Attachments) == attsPerRow || size+n > attsRowBytes {
			if len(rows) == maxAttRows || i == maxAttachments {
				break
			}
			rows, size = append(rows, attsRow{}), 0
		}
		last := &rows[len(rows)-1]
		last.Attachments, size = append(last.Attachments, a), size+n
		last.Secrets = mergeSecrets(last.Secrets, secrets.In(a.Filename, a.FilenameOriginal, a.ContentID, a.ContentType))
	}
	return rows
}

func mergeSecrets(a, b inbox.Secrets) inbox.Secrets {
	for _, s := range b {
		if len(a) < 50 && !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}

// attachmentSize is a bound of an attachment's JSON.
func attachmentSize(a inbox.Attachment) int {
	n := 600 // ids, digests, names of members
	for _, s := range []string{a.Filename, a.FilenameOriginal, a.ContentID, a.ContentType, a.Disposition, a.DetectedType, a.BlobKey, a.PartPath} {
		n += encodedSize(s)
	}
	return n
}

func kept(rows []attsRow) int {
	n := 0
	for _, row := range rows {
		n += len(row.Attachments)
	}
	return n
}

// moveAttachments takes the rows of a mail's attachments to the other side of its deletion.
func (s *Store) moveAttachments(ctx context.Context, b *batch, old, next inbox.Email) error {
	from := attsPartition(old.Workspace, old.Inbox, !old.DeletedAt.IsZero())
	to := attsPartition(next.Workspace, next.Inbox, !next.DeletedAt.IsZero())
	lo, hi := store.Prefix(inbox.Position(old.ReceivedAt, old.ID) + "/")
	q := store.Query{Table: store.Core, Partition: from, From: lo, To: hi, Limit: maxAttRows}
	for {
		page, err := s.engine.Query(ctx, q)
		if err != nil {
			return fmt.Errorf("attachments of %s: %w", old.ID, err)
		}
		for _, item := range page.Items {
			b.drop(item.Key, store.Condition{})
			item.Key.Partition = to
			b.ops = append(b.ops, store.Put(item, store.Condition{}))
		}
		if page.Next == "" {
			return nil
		}
		q.After = page.Next
	}
}

// Attachments implements inbox.AttachmentStore. A row of the answer is found again by the sort key of the row that holds it
// and its place in there.
func (s *Store) Attachments(ctx context.Context, r inbox.AttachmentRange) ([]inbox.AttachmentRow, string, error) {
	q := store.Query{
		Table: store.Core, Partition: attsPartition(r.Workspace, r.Inbox, false), Descending: true, Limit: r.Limit,
	}
	if r.Email != "" {
		q.From, q.To = store.Prefix(r.Email + "/")
	}
	sort, skip := splitPlace(r.After)
	if sort != "" {
		q.To = sort + "\x01" // the row itself is read again: the page before may have ended inside it
	}
	page, err := s.engine.Query(ctx, q)
	if err != nil {
		return nil, "", failed("attachments", err)
	}
	var rows []inbox.AttachmentRow
	for _, item := range page.Items {
		row, err := store.Decode[attsRow](item, format)
		if err != nil {
			return nil, "", failed("attachments", err)
		}
		for i, a := range row.Attachments {
			if item.Key.Sort == sort && i <= skip {
				continue
			}
			if len(rows) == r.Limit {
				return rows, rows[len(rows)-1].Key, nil
			}
			rows = append(rows, inbox.AttachmentRow{Attachment: a, Secrets: row.Secrets, Key: place(item.Key.Sort, i)})
		}
	}
	if page.Next == "" {
		return rows, "", nil
	}
	return rows, place(page.Next, attsPerRow), nil
}

func place(sort string, i int) string { return sort + "#" + strconv.Itoa(i) }

func splitPlace(after string) (sort string, i int) {
	sort, n, _ := strings.Cut(after, "#")
	i, err := strconv.Atoi(n)
	if err != nil {
		return sort, -1
	}
	return sort, i
}

// Attachment implements inbox.AttachmentStore.
func (s *Store) Attachment(ctx context.Context, ws, id string) (inbox.Attachment, error) {
	a, _, err := get[inbox.Attachment](ctx, s, attKey(ws, id))
	if err != nil {
		return inbox.Attachment{}, missing("attachment "+id, err, inbox.NoAttachment())
	}
	return a, nil
}

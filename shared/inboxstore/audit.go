package inboxstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

// act writes, in the transaction of the act, what it does beside the change: the yes that it uses up, its idempotency key, and its line in the audit.
// target is what was changed, and what a caller is told of whose yes was used before. before and after are the row as it was and
// as it will be, of which the line keeps digests; nil: there was none, there is none any more, or it is not to be told (a read, a
// job that was started). more are further targets. It adds three rows at most, behind those of the change: the places of those before it stay what they are.
func (b *batch) act(act inbox.Act, target string, before, after any, more ...string) {
	b.confirm(act.Confirmed, target)
	b.key(act.Key, target)
	if act.Audit == nil {
		return
	}
	item, err := lineOf(act, before, after, append([]string{target}, more...))
	if err != nil && b.err == nil {
		b.err = err
	}
	b.ops = append(b.ops, store.Put(item, store.Absent()))
}

func lineOf(act inbox.Act, before, after any, targets []string) (store.Item, error) {
	line := inbox.AuditEvent{Audit: *act.Audit, Targets: targets}
	var err error
	if line.Before, err = digest(before); err != nil {
		return store.Item{}, err
	}
	if line.After, err = digest(after); err != nil {
		return store.Item{}, err
	}
	item, err := store.Encode(key(auditPartition(line.Organization, line.Workspace), line.ID), format, 1, line)
	if err != nil {
		return store.Item{}, fmt.Errorf("audit: %w", err)
	}
	item.Expires = line.At.Add(inbox.AuditRetention)
	return item, nil
}

// Line is the write of a line whose act is another room's: it goes into the transaction of that act.
func (s *Store) Line(act inbox.Act, targets ...string) (store.Op, error) {
	item, err := lineOf(act, nil, nil, targets)
	return store.Put(item, store.Absent()), err
}

// Events implements inbox.AuditStore.
func (s *Store) Events(ctx context.Context, r inbox.AuditRange) ([]inbox.AuditEvent, string, error) {
	page, err := s.engine.Query(ctx, store.Query{
		Table: store.Core, Partition: auditPartition(r.Organization, r.Workspace), From: r.From, To: r.To,
		Descending: true, After: r.After, Limit: r.Limit,
	})
	if err != nil {
		return nil, "", failed("audit", err)
	}
	rows, err := decodeAll[inbox.AuditEvent](page.Items)
	return rows, page.Next, wrapIf("audit", err)
}

// Record implements inbox.AuditStore.
func (s *Store) Record(ctx context.Context, act inbox.Act, targets ...string) error {
	if act.Audit == nil {
		return nil
	}
	item, err := lineOf(act, nil, nil, targets)
	if err != nil {
		return err
	}
	return wrapIf("audit", s.engine.Put(ctx, item, store.Absent()))
}

// digest is the hexadecimal SHA-256 of a row as JSON without white space, the members of each object ordered by name; empty for nil.
func digest(row any) (string, error) {
	if row == nil {
		return "", nil
	}
	text, err := json.Marshal(row)
	if err != nil {
		return "", fmt.Errorf("digest of a row: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber() // a version is a 64-bit number
	var tree any
	if err := dec.Decode(&tree); err != nil {
		return "", fmt.Errorf("digest of a row: %w", err)
	}
	if text, err = json.Marshal(tree); err != nil { // orders the members of a map
		return "", fmt.Errorf("digest of a row: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// existing is a row for act that does not exist as long as its version is 0.
func existing(row any, version uint64) any {
	if version == 0 {
		return nil
	}
	return row
}

// ownFields is a mail without what its sender wrote, for a digest: no operation changes that, and the digest of a code of six digits
// is as good as the code.
func ownFields(e inbox.Email) inbox.Email {
	e.Content, e.Codes, e.OtherCodes, e.Links = inbox.Content{}, nil, nil, nil
	return e
}

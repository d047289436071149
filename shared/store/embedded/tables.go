package embedded

import (
	bolt "go.etcd.io/bbolt"

	"github.com/buzon-mail/buzon/shared/store"
)

// tables is the state of one bbolt write transaction, shared by the steps of a batch: each sees what those before it did.
type tables struct {
	tx      *bolt.Tx
	now     int64 // seconds; one reading for the batch
	changed bool
	broken  error // the file failed: the whole batch is undone
}

// found is the row that lies under a key, dead or alive.
type found struct {
	key  []byte
	row  row
	here bool // a row lies there
	live bool // and has not expired
}

func (t *tables) find(key store.Key) (found, error) {
	f := found{key: appendKey(make([]byte, 0, 2+len(key.Partition)+len(key.Sort)), key.Partition, key.Sort)}
	value := t.tx.Bucket(bucketOf(key.Table)).Get(f.key)
	if value == nil {
		return f, nil
	}
	var err error
	if f.row, err = parseRow(value); err != nil {
		return f, err
	}
	f.here, f.live = true, !store.Expired(f.row.expires, t.now)
	return f, nil
}

// transact checks every condition against the state before the transaction, then applies all.
func (t *tables) transact(ops []store.Op) error {
	rows := make([]found, len(ops))
	for i, op := range ops {
		var err error
		if rows[i], err = t.find(op.Key()); err != nil {
			return err
		}
		if !op.Condition().Holds(rows[i].live, rows[i].row.revision) {
			return &store.ConflictError{Index: i}
		}
	}
	for i, op := range ops {
		switch op.Kind() {
		case store.OpPut:
			item := op.Item()
			t.put(item.Key.Table, rows[i], row{
				format: item.Format, revision: item.Revision, expires: store.Seconds(item.Expires), data: item.Data,
			})
		case store.OpDelete:
			t.remove(op.Key().Table, rows[i])
		}
	}
	return nil
}

func (t *tables) add(key store.Key, field string, delta, max, expires int64) (int64, error) {
	f, err := t.find(key)
	if err != nil {
		return 0, err
	}
	next := row{format: 1, expires: expires}
	if f.live {
		next = f.row
	}
	value := next.counters[field]
	sum, ok := store.Sum(value, delta, max)
	if !ok {
		return value, store.ErrLimit
	}
	if next.counters == nil {
		next.counters = make(map[string]int64, 1)
	}
	next.counters[field] = sum
	if next.size(key) > store.MaxRowSize {
		return 0, store.ErrTooLarge
	}
	t.put(key.Table, f, next)
	return sum, nil
}

// put writes a row over what was found and keeps the expiry index in step.
func (t *tables) put(table store.Table, old found, next row) {
	t.moveExpiry(table, old, next.expires)
	value := next.append(make([]byte, 0, rowHead+1+len(next.data)+len(next.counters)*(store.MaxField+12)))
	t.must(t.tx.Bucket(bucketOf(table)).Put(old.key, value))
}

func (t *tables) remove(table store.Table, old found) {
	if !old.here {
		return
	}
	t.moveExpiry(table, old, 0)
	t.must(t.tx.Bucket(bucketOf(table)).Delete(old.key))
}

// moveExpiry replaces the row's entry in the expiry index. There is exactly one entry for each row that expires.
func (t *tables) moveExpiry(table store.Table, old found, expires int64) {
	var was int64
	if old.here {
		was = old.row.expires
	}
	if was == expires {
		return
	}
	index := t.tx.Bucket(expiryBucket)
	if was != 0 {
		t.must(index.Delete(appendExpiry(nil, was, table, old.key)))
	}
	if expires != 0 {
		t.must(index.Put(appendExpiry(nil, expires, table, old.key), nil))
	}
}

// must records that the file changed, or that it failed.
func (t *tables) must(err error) {
	t.changed = true
	if err != nil && t.broken == nil {
		t.broken = unavailable("write", err)
	}
}

package store

// ConditionKind tells an engine which expression to write.
type ConditionKind uint8

// The kinds of condition, with the DynamoDB expression each stands for. An expired row counts as absent: TTL deletes late,
// often by days, so `x` (Expires in seconds) is part of every expression.
const (
	Always     ConditionKind = iota // no expression
	IsAbsent                        // attribute_not_exists(pk) OR x <= :now
	IsPresent                       // attribute_exists(pk) AND (attribute_not_exists(x) OR x > :now)
	IsRevision                      // r = :revision AND (attribute_not_exists(x) OR x > :now)
)

// Condition must hold for a write to happen. The zero value always holds.
type Condition struct {
	kind     ConditionKind
	revision uint64
}

// Absent holds while no live row has the key.
func Absent() Condition { return Condition{kind: IsAbsent} }

// Exists holds while a live row has the key.
func Exists() Condition { return Condition{kind: IsPresent} }

// RevisionIs holds while a live row has the key and this revision.
func RevisionIs(n uint64) Condition { return Condition{kind: IsRevision, revision: n} }

// Kind returns what the condition asks.
func (c Condition) Kind() ConditionKind { return c.kind }

// Revision returns the revision that an IsRevision condition asks for.
func (c Condition) Revision() uint64 { return c.revision }

// Holds evaluates the condition for engines that read before they write: live says whether an unexpired row is there, and
// revision is that row's.
func (c Condition) Holds(live bool, revision uint64) bool {
	switch c.kind {
	case Always:
		return true
	case IsAbsent:
		return !live
	case IsPresent:
		return live
	case IsRevision:
		return live && revision == c.revision
	}
	return false
}

// OpKind is what an Op does.
type OpKind uint8

// The kinds of op. Zero is refused.
const (
	OpPut OpKind = iota + 1
	OpDelete
	OpCheck
)

// Op is one step of a transaction.
type Op struct {
	kind OpKind
	item Item // of a delete or check only Key is set
	cond Condition
}

// Put replaces a whole row if cond holds.
func Put(item Item, cond Condition) Op { return Op{OpPut, item, cond} }

// Delete removes a row if cond holds.
func Delete(key Key, cond Condition) Op { return Op{OpDelete, Item{Key: key}, cond} }

// Check lets the transaction happen only if cond holds; it changes nothing.
func Check(key Key, cond Condition) Op { return Op{OpCheck, Item{Key: key}, cond} }

// Kind returns what the op does.
func (o Op) Kind() OpKind { return o.kind }

// Key returns the row the op is about.
func (o Op) Key() Key { return o.item.Key }

// Item returns the row that a put writes.
func (o Op) Item() Item { return o.item }

// Condition returns the condition of the op.
func (o Op) Condition() Condition { return o.cond }

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/store"
)

// rowFormat is the version of the stored rows: a program that meets a newer one refuses it instead of misreading it.
const rowFormat = 1

// notes is the domain: each organization's notes, by name. It knows neither HTTP nor MCP, only rows and who asks.
type notes struct{ rows store.Engine }

// note is one of them.
type note struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// key lies in the caller's organization, so another's name finds nothing: that answers like a note that does not exist.
func key(ctx context.Context, name string) store.Key {
	return store.Key{Table: store.Core, Partition: "notes/" + op.CallerFrom(ctx).Organization, Sort: name}
}

func (n *notes) list(ctx context.Context, _ *struct{}) (*listed, error) {
	k := key(ctx, "")
	page, err := n.rows.Query(ctx, store.Query{Table: k.Table, Partition: k.Partition, Limit: 100})
	if err != nil {
		return nil, fmt.Errorf("list notes: %w", err)
	}
	out := &listed{}
	for _, row := range page.Items {
		v, err := store.Decode[note](row, rowFormat)
		if err != nil {
			return nil, fmt.Errorf("read note %s: %w", row.Key.Sort, err)
		}
		out.Body.Data = append(out.Body.Data, v)
	}
	return out, nil
}

func (n *notes) find(ctx context.Context, name string) (store.Item, error) {
	row, err := n.rows.Get(ctx, key(ctx, name))
	if errors.Is(err, store.ErrNotFound) {
		return row, apperr.New(apperr.NotFound, "", "There is no such note.", "notes_list says which there are.")
	}
	if err != nil {
		return row, fmt.Errorf("read note %s: %w", name, err)
	}
	return row, nil
}

func (n *notes) write(ctx context.Context, in *writing) (*written, error) {
	old, err := n.rows.Get(ctx, key(ctx, in.Slug))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("read note %s: %w", in.Slug, err)
	}
	must := store.Absent()
	if err == nil {
		must = store.RevisionIs(old.Revision)
	}
	v := note{in.Slug, in.Body.Text}
	row, err := store.Encode(key(ctx, in.Slug), rowFormat, old.Revision+1, v)
	if err != nil {
		return nil, fmt.Errorf("encode note %s: %w", in.Slug, err)
	}
	if err := n.rows.Put(ctx, row, must); err != nil {
		return nil, changed(err, "write note "+in.Slug)
	}
	out := &written{}
	out.Body.Data = v
	return out, nil
}

// ask says what a person must be asked before remove may act. It changes nothing.
func (n *notes) ask(ctx context.Context, in *named) (*op.Question, error) {
	row, err := n.find(ctx, in.Slug)
	if err != nil {
		return nil, err
	}
	return &op.Question{Text: "Delete the note {} for good", Values: []string{in.Slug}, Targets: map[string]string{in.Slug: version(row)}}, nil
}

// remove deletes. Over MCP it wants the person's yes: to this version of the note, and for one act. The row that says the yes was used
// is written in the transaction of the act; checked anywhere else, two calls at once would both pass.
func (n *notes) remove(ctx context.Context, in *named) (*struct{}, error) {
	yes := op.ConfirmationFrom(ctx)
	if yes == nil && op.SurfaceFrom(ctx) == op.SurfaceMCP {
		return nil, apperr.New(apperr.Conflict, op.CodeUnconfirmed, "A person must confirm this.")
	}
	if used, err := n.used(ctx, yes); err != nil || used {
		return nil, again(err, in.Slug)
	}
	row, err := n.find(ctx, in.Slug)
	if err != nil {
		return nil, err
	}
	act := []store.Op{store.Delete(row.Key, store.RevisionIs(row.Revision))}
	if yes != nil {
		if yes.Targets[in.Slug] != version(row) {
			return nil, apperr.New(apperr.Conflict, op.CodeChanged, "The note was changed since the person was asked.")
		}
		act = append(act, store.Put(store.Item{Key: usedKey(yes), Format: rowFormat, Expires: yes.Expires.Add(time.Hour)}, store.Absent()))
	}
	if err := n.rows.Transact(ctx, act...); err != nil {
		return nil, changed(err, "delete note "+in.Slug)
	}
	return nil, nil //nolint:nilnil // 204
}

func usedKey(yes *op.Confirmation) store.Key {
	return store.Key{Table: store.Ephemeral, Partition: "confirmed/" + yes.NonceHash, Sort: "-"}
}

// used says whether a yes was used up: then the act is done, and its target gone.
func (n *notes) used(ctx context.Context, yes *op.Confirmation) (bool, error) {
	if yes == nil {
		return false, nil
	}
	_, err := n.rows.Get(ctx, usedKey(yes))
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// done names the note that an act has deleted already.
type done string

// Error implements error.
func (d done) Error() string { return "deleted " + string(d) }

// Outcome implements op.Outcome.
func (d done) Outcome() string { return string(d) }

// again answers a repeated yes.
func again(err error, name string) error {
	if err != nil {
		return fmt.Errorf("look for the confirmation of %s: %w", name, err)
	}
	return apperr.New(apperr.Conflict, op.CodeDone, "This was done already.").Because(done(name))
}

func version(row store.Item) string { return fmt.Sprint(row.Revision) }

// changed tells the caller of a write that somebody else's came before. Any other error is a fault of ours: the caller gets a fixed
// text and the id of the request, the log the whole chain.
func changed(err error, step string) error {
	if conflict, ok := errors.AsType[*store.ConflictError](err); ok {
		return apperr.New(apperr.Stale, "", "The note was changed at the same time.", "Read it again and repeat the call.").Because(conflict)
	}
	return fmt.Errorf("%s: %w", step, err)
}

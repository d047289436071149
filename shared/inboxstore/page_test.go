package inboxstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/store"
)

// short returns shorter pages than it could, and empty ones, as the contract of Query allows.
type short struct {
	store.Engine
	r *rand.Rand
}

func (s short) Query(ctx context.Context, q store.Query) (store.Page, error) {
	each := q.Each
	q.Each = nil
	p, err := s.page(ctx, q)
	if each == nil || err != nil {
		return p, err
	}
	for i := range p.Items {
		if err := each(&p.Items[i]); err != nil {
			return store.Page{}, err
		}
	}
	p.Items = nil
	return p, nil
}

func (s short) page(ctx context.Context, q store.Query) (store.Page, error) {
	p, err := s.Engine.Query(ctx, q)
	if err != nil || len(p.Items) == 0 {
		return p, err
	}
	switch n := s.r.IntN(len(p.Items) + 1); {
	case n == 0 && s.r.IntN(2) == 0:
		p.Next, p.Items = p.Items[0].Key.Sort, p.Items[:1]
	case n > 0 && n < len(p.Items):
		p.Items = p.Items[:n]
		p.Next = p.Items[n-1].Key.Sort
	}
	return p, nil
}

// Live and deleted mail merged: every row once and in order, whatever pages the engine cuts.
func TestMergedPages(t *testing.T) {
	w := newWorld(t)
	var want []string
	for i := range 60 {
		e := w.mail()
		w.accept(e)
		want = append(want, e.ID)
		if i%3 == 0 || i > 40 {
			_, err := w.UpdateEmail(t.Context(), wsA, e.ID, inbox.Act{}, func(e *inbox.Email) error { e.DeletedAt = w.clock; return nil })
			w.must(err)
		}
	}
	slices.Reverse(want)
	for seed := range uint64(30) {
		s, err := inboxstore.New(short{w.engine, rand.New(rand.NewPCG(seed, 0))}, w.now) //nolint:gosec // repeatable
		w.must(err)
		r := inbox.EmailRange{Workspace: wsA, Deleted: true, Limit: 1 + int(seed)%9}
		var got []string
		for range 1000 {
			rows, next, err := s.Emails(t.Context(), r)
			w.must(err)
			if len(rows) > r.Limit {
				t.Fatalf("%d rows for a limit of %d", len(rows), r.Limit)
			}
			for _, row := range rows {
				got = append(got, row.ID)
			}
			if next == "" {
				break
			}
			if r.After != "" && next >= r.After {
				t.Fatal("the cursor does not move")
			}
			r.After = next
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: %d rows of %d: %s", seed, len(got), len(want), fmt.Sprint(got))
		}
	}
}

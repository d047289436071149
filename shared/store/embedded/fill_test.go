package embedded

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/store"
)

// script does some of everything, refusals too, and tells what came of it.
func script(t *testing.T, e store.Engine, now time.Time) (transcript []string) {
	t.Helper()
	ctx := t.Context()
	say := func(what string, v any, err error) {
		transcript = append(transcript, fmt.Sprintf("%s: %v, %v", what, v, err))
	}
	key := func(i int) store.Key {
		return store.Key{Table: store.Core, Partition: "p", Sort: fmt.Sprintf("%03d", i)}
	}
	item := func(i int, revision uint64) store.Item {
		return store.Item{Key: key(i), Format: 1, Revision: revision, Data: fmt.Appendf(nil, "row %d.%d", i, revision)}
	}
	for i := range 40 {
		say("create", i, e.Put(ctx, item(i, 1), store.Absent()))
	}
	say("create again", nil, e.Put(ctx, item(3, 1), store.Absent()))
	say("replace", nil, e.Put(ctx, item(3, 2), store.RevisionIs(1)))
	say("replace an old one", nil, e.Put(ctx, item(3, 3), store.RevisionIs(1)))
	say("half a transaction", nil, e.Transact(ctx, store.Put(item(50, 1), store.Absent()), store.Put(item(4, 1), store.Absent())))
	for i := 10; i < 20; i++ {
		say("delete", i, e.Delete(ctx, key(i), store.Exists()))
	}
	say("delete an absent one", nil, e.Delete(ctx, key(10), store.Exists()))
	over := item(60, 1)
	over.Expires = now.Add(-time.Second)
	say("expired", nil, e.Put(ctx, over, store.Condition{}))
	for range 3 {
		sum, err := e.Add(ctx, key(70), "n", 2, 5, now.Add(time.Hour))
		say("add", sum, err)
	}
	say("bad item", nil, e.Put(ctx, store.Item{}, store.Condition{}))
	_, err := e.Add(ctx, store.Key{}, "n", 1, 0, time.Time{})
	say("bad counter", nil, err)
	_, err = e.Query(ctx, store.Query{})
	say("bad query", nil, err)
	for _, i := range []int{3, 10, 50, 60, 70} {
		got, err := e.Get(ctx, key(i))
		say("get", got, err)
	}
	_, err = e.Get(ctx, store.Key{})
	say("bad key", nil, err)
	for _, q := range []store.Query{{}, {Descending: true}, {From: "005", To: "035"}, {From: "2", To: "1"}} {
		q.Table, q.Partition, q.Limit = store.Core, "p", 7
		for {
			page, err := e.Query(ctx, q)
			say("page", page, err)
			if q.After = page.Next; q.After == "" {
				break
			}
		}
	}
	return transcript
}

// TestFillIsTheEngine: within one commit everything comes out as in many, and is there afterwards.
func TestFillIsTheEngine(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	o := Options{Clock: func() time.Time { return now }}
	plain, filled := newEngine(t, o), newEngine(t, o)
	want := script(t, plain, now)
	var got []string
	if err := filled.Fill(t.Context(), func(e store.Engine) error { got = script(t, e, now); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Fatalf("%d lines, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got  %s\nwant %s", got[i], want[i])
		}
	}
	q := store.Query{Table: store.Core, Partition: "p", Limit: 100}
	a, aerr := plain.Query(t.Context(), q)
	b, berr := filled.Query(t.Context(), q)
	if err := errors.Join(aerr, berr); err != nil || fmt.Sprint(a) != fmt.Sprint(b) || len(a.Items) == 0 {
		t.Errorf("afterwards %v\nwant %v, %v", b, a, err)
	}
}

// TestFillFails: nothing of it is left, the reason comes back, and the engine goes on.
func TestFillFails(t *testing.T) {
	reason := errors.New("half way")
	tests := map[string]struct {
		how  func() error
		want error
	}{
		"an error": {func() error { return reason }, reason},
		"a panic":  {func() error { panic("damaged page") }, store.ErrUnavailable},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, Options{})
			err := e.Fill(t.Context(), func(within store.Engine) error {
				if err := within.Transact(t.Context(), put("half", store.Absent())); err != nil {
					return err
				}
				return tt.how()
			})
			if !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if err := e.Transact(t.Context(), put("half", store.Absent())); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
	e := newEngine(t, Options{})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := e.Fill(t.Context(), func(store.Engine) error { t.Error("it ran"); return nil }); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("closed: %v", err)
	}
}

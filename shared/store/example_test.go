package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/buzon-mail/buzon/shared/store"
	"github.com/buzon-mail/buzon/shared/store/embedded"
)

type note struct {
	Title string `json:"title"`
}

const noteFormat = 1

func Example() {
	dir, err := os.MkdirTemp("", "store")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	engine, err := embedded.Open(filepath.Join(dir, "store.db"), embedded.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close() //nolint:errcheck // nothing is pending
	if err := example(context.Background(), engine); err != nil {
		fmt.Println(err)
	}
	// Output:
	// the title is taken
	// note#1 holds "shopping", revision 1
	// 1 of at most 100 notes
}

func example(ctx context.Context, engine store.Engine) error {
	key := store.Key{Table: store.Core, Partition: "user#7", Sort: "note#1"}
	item, err := store.Encode(key, noteFormat, 1, note{"shopping"})
	if err != nil {
		return err
	}
	// The row and the guard of its unique title happen together or not at all.
	guard := store.Item{Key: store.Key{Table: store.Core, Partition: "user#7#title", Sort: "shopping"}, Format: 1}
	for range 2 {
		err = engine.Transact(ctx, store.Put(item, store.Condition{}), store.Put(guard, store.Absent()))
		if conflict, ok := errors.AsType[*store.ConflictError](err); ok && conflict.Index == 1 {
			fmt.Println("the title is taken")
		} else if err != nil {
			return err
		}
	}
	from, to := store.Prefix("note#")
	page, err := engine.Query(ctx, store.Query{Table: store.Core, Partition: "user#7", From: from, To: to, Limit: 20})
	if err != nil {
		return err
	}
	for _, item := range page.Items {
		n, err := store.Decode[note](item, noteFormat)
		if err != nil {
			return err
		}
		fmt.Printf("%s holds %q, revision %d\n", item.Key.Sort, n.Title, item.Revision)
	}
	total := store.Key{Table: store.Core, Partition: "user#7#count", Sort: "notes"}
	n, err := engine.Add(ctx, total, "n", 1, 100, item.Expires)
	fmt.Printf("%d of at most 100 notes\n", n)
	return err
}

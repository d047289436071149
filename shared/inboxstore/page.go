package inboxstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/buzon-mail/buzon/shared/store"
)

// merged reads one page from several partitions as if they were one, in the order of the sort key, which no two of them
// share. q's partition is ignored. Each partition costs one query.
func (s *Store) merged(ctx context.Context, partitions []string, q store.Query) (items []store.Item, next string, err error) {
	pages := make([]store.Page, len(partitions))
	for i, p := range partitions {
		q.Partition = p
		if pages[i], err = s.engine.Query(ctx, q); err != nil {
			return nil, "", fmt.Errorf("read partition %d of %d: %w", i+1, len(partitions), err)
		}
	}
	if len(pages) == 1 {
		return pages[0].Items, pages[0].Next, nil
	}
	before := func(a, b string) bool { return a < b != q.Descending && a != b }
	// A partition that has more was read up to its Next only: nothing behind that may be returned, or rows of it would be
	// skipped.
	bound := ""
	for _, p := range pages {
		if p.Next != "" && (bound == "" || before(p.Next, bound)) {
			bound = p.Next
		}
	}
	for {
		best := -1
		for i, p := range pages {
			if len(p.Items) > 0 && (best < 0 || before(p.Items[0].Key.Sort, pages[best].Items[0].Key.Sort)) {
				best = i
			}
		}
		if best < 0 {
			return items, bound, nil
		}
		head := pages[best].Items[0]
		if bound != "" && before(bound, head.Key.Sort) {
			return items, bound, nil
		}
		if len(items) == q.Limit {
			return items, items[len(items)-1].Key.Sort, nil
		}
		items, pages[best].Items = append(items, head), pages[best].Items[1:]
	}
}

func decodeAll[T any](items []store.Item) ([]T, error) {
	rows := make([]T, 0, len(items))
	for i := range items {
		row, err := decoded[T](&items[i])
		if err != nil {
			return nil, err //nolint:wrapcheck // callers name the step
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// earliest reads the first rows of all shards together, up to a sort key that is not among them.
func (s *Store) earliest(ctx context.Context, partition func(shard int) string, to string, limit int) ([]store.Item, error) {
	limit = min(max(limit, 1), store.MaxLimit)
	var items []store.Item
	for shard := range shards {
		page, err := store.Fill(ctx, s.engine, store.Query{Table: store.Core, Partition: partition(shard), To: to, Limit: limit}, 4)
		if err != nil {
			return nil, err //nolint:wrapcheck // callers name the step
		}
		items = append(items, page.Items...)
	}
	slices.SortStableFunc(items, func(a, b store.Item) int { return strings.Compare(a.Key.Sort, b.Key.Sort) })
	return items[:min(len(items), limit)], nil
}

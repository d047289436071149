package main

import (
	"context"
	"fmt"
	"os"
)

// few is what the large list is compared with.
const few = 1000

// pages compares a page of a short list with a page of a long one, through the whole product: it must not cost more.
func pages(ctx context.Context, o options) error {
	var runs []func()
	var names []string
	for _, n := range []int{few, o.many} {
		w, err := newWorld(ctx, n)
		if err != nil {
			return err
		}
		defer w.close() //nolint:errcheck // a temporary folder
		for _, q := range []struct{ name, arguments string }{
			{"workspace", `{"limit":20}`}, {"inbox and status", `{"inbox":"` + w.box.Slug + `","status":"processed","limit":20}`},
		} {
			p, err := newPoster(w.api, request{version: stateless, method: "tools/call", name: "emails_list", arguments: q.arguments, token: w.token})
			if err != nil {
				return err
			}
			runs, names = append(runs, p.send), append(names, fmt.Sprintf("%s, %d mails", q.name, n))
		}
	}
	results := measure(o.rounds, runs)
	var lines []line
	for i, r := range results {
		x := r.over(results[i%2])
		l := line{cells: []string{names[i], number(r.us), number(x), number(r.bytes), number(r.allocs)}}
		if i >= 2 {
			l.judge(x, budget{what: "x", limit: 1.2})
		}
		lines = append(lines, l)
	}
	table(os.Stdout, "A page of 20 mails, whole product; x = of the same page among 1000", []string{"list", "us", "x", "B", "allocs"}, lines)
	return nil
}

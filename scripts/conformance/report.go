package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

var errFailed = errors.New("the suite found what the baselines do not allow")

// report prints a table, what is behind each cell that is not clean, and one closing line.
func report(out io.Writer, doors []string, results []result, took time.Duration) error {
	cell := map[[2]string]result{}
	good, bad := 0, 0
	for _, r := range results {
		cell[[2]string{r.round, r.door}] = r
		if r.ok {
			good++
		} else {
			bad++
		}
	}
	fmt.Fprintln(out, "checks passed/failed/warned (+ unscored ones of extensions); what may fail is in scripts/conformance/baseline.yml")
	table := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprint(table, "\t")
	for _, door := range doors {
		fmt.Fprintf(table, "%s\t", door)
	}
	fmt.Fprintln(table)
	for _, round := range rounds() {
		fmt.Fprintf(table, "%s\t", round.name)
		for _, door := range doors {
			r := cell[[2]string{round.name, door}]
			mark := "ok"
			if !r.ok {
				mark = "FAIL"
			}
			if r.extra > 0 {
				mark += fmt.Sprintf(" (+%d)", r.extra)
			}
			fmt.Fprintf(table, "%d/%d/%d %s\t", r.passed, r.failed, r.warned, mark)
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	for _, r := range results {
		if r.ok {
			continue
		}
		fmt.Fprintf(out, "\n%s at %s:\n", r.round, r.door)
		for _, note := range r.notes {
			fmt.Fprintf(out, "  %s\n", note)
		}
	}
	fmt.Fprintf(out, "took %s\n%d passed, %d failed\n", took.Round(time.Second), good, bad)
	if bad > 0 || good == 0 {
		return errFailed
	}
	return nil
}

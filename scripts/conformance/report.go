package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
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
	if err := tabulate(out, doors, cell); err != nil {
		return err
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

// tabulate prints a row for each round of the fixtures and, below, one for each of the authorization server.
func tabulate(out io.Writer, doors []string, cell map[[2]string]result) error {
	table := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	row := func(round string, doors []string) {
		fmt.Fprintf(table, "%s\t", round)
		for _, door := range doors {
			fmt.Fprintf(table, "%s\t", cell[[2]string{round, door}].summary())
		}
		fmt.Fprintln(table)
	}
	fmt.Fprintf(table, "\t%s\t\n", strings.Join(doors, "\t"))
	for _, round := range rounds() {
		row(round.name, doors)
	}
	fmt.Fprintf(table, "\t%s\t\n", localProcess)
	for _, round := range authorizationRounds() {
		row(round.name(), []string{localProcess})
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// summary is a cell of the table.
func (r result) summary() string {
	mark := "ok"
	if !r.ok {
		mark = "FAIL"
	}
	if r.extra > 0 {
		mark += fmt.Sprintf(" (+%d)", r.extra)
	}
	return fmt.Sprintf("%d/%d/%d %s", r.passed, r.failed, r.warned, mark)
}

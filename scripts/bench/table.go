package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// budget is a limit of DESIGN.md section 12 on a figure; limit 0: none.
type budget struct {
	what  string // the unit: x, B, allocs, MiB, mails/s, reads
	limit float64
	least bool // the figure must reach the limit instead of staying under it
}

// line is one row: what was measured, its figures as text, and how each budget stands.
type line struct {
	cells  []string
	judged []string
}

// judge compares a figure with its budget.
func (l *line) judge(figure float64, b budget) {
	if b.limit == 0 {
		return
	}
	sign, met := "<=", figure <= b.limit
	if b.least {
		sign, met = ">=", figure >= b.limit
	}
	word := "met"
	if !met {
		word = "MISSED"
	}
	l.judged = append(l.judged, fmt.Sprintf("%s %s %s %s", sign, number(b.limit), b.what, word))
}

func number(f float64) string {
	switch {
	case f >= 100:
		return fmt.Sprintf("%.0f", f)
	case f >= 10:
		return fmt.Sprintf("%.1f", f)
	}
	return fmt.Sprintf("%.2f", f)
}

// table prints lines under a title, in columns.
func table(out io.Writer, title string, head []string, lines []line) {
	fmt.Fprintf(out, "\n%s\n", title)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  "+strings.Join(append(head, "budget"), "\t"))
	for _, l := range lines {
		verdict := strings.Join(l.judged, "; ")
		if verdict == "" {
			verdict = "-"
		}
		fmt.Fprintln(w, "  "+strings.Join(append(l.cells, verdict), "\t"))
	}
	_ = w.Flush() //nolint:errcheck // the terminal is gone: nobody reads
}

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
)

// mails runs the pipeline's own benchmark, from accepted to processed, on one core and without flushes to the disk.
func mails(ctx context.Context, o options) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-run=^$", "-bench=AcceptToProcessed/unsynced", "-benchtime=2s", "-cpu=1",
		"-count="+strconv.Itoa(max(o.rounds/5, 1)), "./shared/pipeline")
	cmd.Dir = root
	text, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, text)
	}
	var figures []float64
	for _, m := range regexp.MustCompile(`([0-9.]+) mails/s`).FindAllSubmatch(text, -1) {
		f, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil {
			return err
		}
		figures = append(figures, f)
	}
	l := line{cells: []string{"20 KB, 64 senders, one core, no flush", number(median(figures))}}
	l.judge(median(figures), budget{what: "mails/s", limit: 500, least: true})
	table(os.Stdout, "Mail accepted to processed", []string{"case", "mails/s"}, []line{l})
	return nil
}

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// memory is a folder of a file system in memory; Linux has one.
const memory = "/dev/shm"

// batch is how many mails one run of the benchmark takes through the pipeline.
const batch = 1000

// mails runs the pipeline's own benchmark, from accepted to processed, on one core and without flushes to the disk, and
// divides the mails by the time of the processor, the system's included. A mail makes two files and some ten transactions: on
// a folder in memory the figure is that of the core, which the budget is about, on the temporary folder that of the file
// system too.
func mails(ctx context.Context, o options) error {
	binary := filepath.Join(os.TempDir(), "buzon-pipeline.test")
	defer os.Remove(binary) //nolint:errcheck // a temporary file
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", binary, "./shared/pipeline")
	build.Dir = root
	if text, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w: %s", err, text)
	}
	places := []struct{ title, folder string }{{"temporary folder", os.TempDir()}}
	if info, err := os.Stat(memory); err == nil && info.IsDir() {
		places = append(places, struct{ title, folder string }{"folder in memory", memory})
	}
	figures := make([][]float64, len(places))
	for range max(o.rounds/5, 1) {
		for i, p := range places {
			f, err := mailsASecond(ctx, binary, p.folder)
			if err != nil {
				return err
			}
			figures[i] = append(figures[i], f)
		}
	}
	var lines []line
	for i, p := range places {
		l := line{cells: []string{"20 KB, 64 senders, one core, no flush, " + p.title, number(median(figures[i]))}}
		if i == len(places)-1 {
			l.judge(median(figures[i]), budget{what: "mails/s", limit: 500, least: true})
		}
		lines = append(lines, l)
	}
	table(os.Stdout, "Mail accepted to processed", []string{"case", "mails a second of processor"}, lines)
	return nil
}

func mailsASecond(ctx context.Context, binary, folder string) (float64, error) {
	cmd := exec.CommandContext(ctx, binary, "-test.run=^$", "-test.bench=AcceptToProcessed/unsynced$", "-test.benchtime="+strconv.Itoa(batch)+"x", "-test.cpu=1")
	cmd.Dir, cmd.Env = filepath.Join(root, "shared", "pipeline"), append(os.Environ(), "TMPDIR="+folder)
	text, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%w: %s", err, text)
	}
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return batch / used.Seconds(), nil
}

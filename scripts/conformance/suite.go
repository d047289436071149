package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/buzon-mail/buzon/scripts/conformance/fixture"
)

// installed is the suite, ready to run.
type installed struct {
	node    string
	program string
	results string // folder of the results, emptied for each run
	source  string // folder of the baselines
}

// round is one run of the suite: what it is asked for and what must come of it.
type round struct {
	name      string
	args      []string
	baseline  string
	scenarios int // that it must have run: a suite that skips proves nothing
}

// rounds are every revision that the suite can be asked for. It knows no 2024-11-05; shared/mcp tests that one itself.
func rounds() []round {
	const legacy, none = "baseline.yml", "baseline-2026-07-28.yml"
	all := func(version string) []string { return []string{"--suite", "all", "--spec-version", version} }
	return []round{
		{"2026-07-28", all("2026-07-28"), none, 40},
		{"2025-11-25", all("2025-11-25"), legacy, 33},
		{"2025-06-18", all("2025-06-18"), legacy, 27},
		{"2025-03-26", all("2025-03-26"), legacy, 1},
		{"requirements 2026-07-28", []string{"--requirements", "2026-07-28"}, none, 50},
		{"requirements 2025-11-25", []string{"--requirements", "2025-11-25"}, legacy, 33},
	}
}

// check is one line of the suite's results.
type check struct {
	ID           string `json:"id"`
	Status       string `json:"status"`
	ErrorMessage string `json:"errorMessage"`
	scenario     string
}

// result is what came of a round at a door.
type result struct {
	round  string
	door   string
	ok     bool
	passed int
	failed int
	warned int
	extra  int // failures of extensions that the fixtures do not serve, which no requirement counts
	ran    int
	notes  []string // why it is not ok, and what failed or warned
	output string
}

// perRun is how long one run may take; a healthy one needs a few seconds.
const perRun = 3 * time.Minute

// testAll runs every round at every door and reports. It fails when one of them is not as the baselines say.
func testAll(ctx context.Context, suite installed, doors []string, jobs int, out io.Writer) error {
	if err := os.RemoveAll(suite.results); err != nil {
		return fmt.Errorf("empty the results: %w", err)
	}
	started := time.Now()
	results := make([]result, 0, len(doors)*len(rounds()))
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := make(chan struct{}, max(jobs, 1))
	for _, door := range doors {
		s, err := fixture.Listen(door, "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer func() { _ = s.Close() }()
		for _, r := range rounds() {
			wg.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				got := suite.run(ctx, r, door, s.URL)
				mu.Lock()
				defer mu.Unlock()
				results = append(results, got)
			})
		}
	}
	authorized, err := testAuthorization(ctx, suite) // beside the others, which wait for the machine more than they use it
	wg.Wait()
	if err != nil {
		return err
	}
	results = append(results, authorized...)
	return report(out, doors, results, time.Since(started))
}

// run is one run of the suite.
func (s installed) run(ctx context.Context, r round, door, url string) result {
	res := result{round: r.name, door: door}
	dir, err := filepath.Abs(filepath.Join(s.results, strings.ReplaceAll(door+" "+r.name, "/", "-")))
	if err != nil {
		res.notes = []string{err.Error()}
		return res
	}
	ctx, cancel := context.WithTimeout(ctx, perRun)
	defer cancel()
	args := append([]string{s.program, "server", "--url", url, "-o", dir, "--expected-failures", filepath.Join(s.source, r.baseline)}, r.args...)
	cmd := exec.CommandContext(ctx, s.node, args...) //nolint:gosec // the suite that install laid down
	output, err := cmd.CombinedOutput()
	res.output = string(output)
	checks, ran, readErr := readChecks(dir)
	res.count(checks, ran)
	res.ok = err == nil && readErr == nil && ran == r.scenarios && !slices.ContainsFunc(checks, brokenTask)
	switch {
	case readErr != nil:
		res.notes = append(res.notes, readErr.Error())
	case ran != r.scenarios:
		res.notes = append(res.notes, fmt.Sprintf("%d scenarios ran, want %d", ran, r.scenarios))
	}
	if err != nil {
		res.notes = append(res.notes, "the suite says: "+verdict(res.output, err))
	}
	return res
}

// count adds up the checks.
func (res *result) count(checks []check, ran int) {
	res.ran = ran
	for _, c := range checks {
		if c.Status == "FAILURE" && isExtension(c.scenario) {
			res.extra++
			continue
		}
		switch c.Status {
		case "SUCCESS":
			res.passed++
			continue
		case "FAILURE":
			res.failed++
		case "WARNING":
			res.warned++
		default:
			continue
		}
		res.notes = append(res.notes, fmt.Sprintf("%s %s:%s %s", strings.ToLower(c.Status), c.scenario, c.ID, firstLine(c.ErrorMessage)))
	}
}

// isExtension tells the scenarios of extensions that the fixtures do not serve, which --requirements runs and does not score.
func isExtension(scenario string) bool { return strings.HasPrefix(scenario, "sep-2640-") }

// brokenTask tells a failure in a scenario of the tasks extension: the suite does not score them, and here they must pass.
func brokenTask(c check) bool {
	return strings.HasPrefix(c.scenario, "tasks-") && (c.Status == "FAILURE" || c.Status == "WARNING")
}

// verdict is the part of the suite's words that tells what is wrong.
func verdict(output string, err error) string {
	output = regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(output, "")
	for _, mark := range []string{"Stale baseline entries", "Unexpected failures (", "error"} {
		if i := strings.Index(output, mark); i >= 0 {
			return strings.TrimSpace(output[i:])
		}
	}
	return err.Error()
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// scenarioOf takes the scenario out of the name of a result's folder, server-SCENARIO-TIMESTAMP or
// authorization-server-SCENARIO-TIMESTAMP.
func scenarioOf(folder string) string {
	m := regexp.MustCompile(`^(?:authorization-)?server-(.+?)-\d{4}-\d{2}-\d{2}T.*$`).FindStringSubmatch(folder)
	if m == nil {
		return strings.TrimPrefix(folder, "server-")
	}
	return m[1]
}

// readChecks reads what a run left: a folder for each scenario.
func readChecks(dir string) (all []check, ran int, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, 0, errors.New("the suite left no results")
	}
	for _, e := range entries {
		raw, err := os.ReadFile(filepath.Join(dir, e.Name(), "checks.json")) //nolint:gosec // the suite's own output
		if err != nil {
			return nil, 0, fmt.Errorf("read results: %w", err)
		}
		var checks []check
		if err := json.Unmarshal(raw, &checks); err != nil {
			return nil, 0, fmt.Errorf("read %s: %w", e.Name(), err)
		}
		for i := range checks {
			checks[i].scenario = scenarioOf(e.Name())
		}
		all = append(all, checks...)
		ran++
	}
	slices.SortStableFunc(all, func(a, b check) int { return strings.Compare(a.scenario, b.scenario) })
	return all, ran, nil
}

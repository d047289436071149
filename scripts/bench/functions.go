package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/app/local"
	"github.com/buzon-mail/buzon/shared/lambdaedge"
	"github.com/buzon-mail/buzon/shared/lambdaedge/gateway"
	"github.com/buzon-mail/buzon/shared/testkit"
)

// root is the product's module, seen from this one's folder, where make runs the benchmarks.
const root = "../.."

// A block of warm calls is answered by one function before the next has its turn.
const warmCalls = 200

// function is one bootstrap and its figures.
type function struct {
	title, module, folder string
	env                   []string
	event                 []byte // calls session_get
	path                  string
	init, first, call     []float64 // ms, ms, us
	zip, zipARM, rss      float64   // MiB
}

// functions compares bootstraps behind a Runtime API in miniature: what a cold start and a warm call cost.
func functions(ctx context.Context, o options) error {
	folder, err := os.MkdirTemp("", "buzon-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // a temporary folder
	token, err := local.FillEvent(ctx, []byte("{{token:owner@acme.test}}"), time.Now)
	if err != nil {
		return err
	}
	emulated, err := warmEvent(ctx, string(token))
	if err != nil {
		return err
	}
	a, err := newAccount(ctx, folder)
	if err != nil {
		return err
	}
	defer a.close()
	deployed, err := warmEvent(ctx, a.token)
	if err != nil {
		return err
	}
	emulator := []string{"BUZON_EMULATOR=1", "BUZON_RATE_PER_MINUTE=65535", "BUZON_OUTWARD_PER_MINUTE=65535"}
	all := []*function{
		{title: "bare aws-lambda-go handler", module: ".", folder: "./bare", event: emulated},
		{title: "api, emulated: the first call opens an embedded store", module: root, folder: "./functions/api", env: emulator, event: emulated},
		{title: "api as deployed: DynamoDB, S3, SQS (a stand-in)", module: root, folder: "./functions/api", env: a.env, event: deployed},
	}
	flags, err := buildFlags(ctx)
	if err != nil {
		return err
	}
	for i, f := range all {
		if err := f.build(ctx, filepath.Join(folder, strconv.Itoa(i)), flags); err != nil {
			return err
		}
	}
	for range o.starts {
		for _, f := range all {
			if err := f.cold(ctx, folder); err != nil {
				return fmt.Errorf("%s: %w", f.title, err)
			}
		}
	}
	if err := warm(ctx, folder, all, o.rounds); err != nil {
		return err
	}
	printFunctions(all)
	return nil
}

func printFunctions(all []*function) {
	bare := all[0]
	var lines []line
	for i, f := range all {
		start := median(f.init)
		x := start / median(bare.init)
		call := median(f.call)
		l := line{cells: []string{
			f.title, number(start), number(x), number(median(f.first)), number(call), number(call / median(bare.call)),
			number(f.zip), number(f.zipARM), number(f.rss),
		}}
		if i > 0 {
			l.judge(x, budget{what: "x init", limit: 3})
			l.judge(call/median(bare.call), budget{what: "x warm", limit: 1.25})
			l.judge(f.zipARM, budget{what: "MiB zip", limit: 6})
			l.judge(f.rss, budget{what: "MiB resident", limit: 28})
		}
		lines = append(lines, l)
	}
	table(os.Stdout, "Lambda bootstraps behind a Runtime API in miniature, tools/call session_get 2026; x = of the bare handler",
		[]string{"bootstrap", "init ms", "x", "first reply ms", "warm us", "x", "zip MiB", "arm64", "RSS MiB"}, lines)
}

// buildFlags are those of make build.
func buildFlags(ctx context.Context) ([]string, error) {
	text, err := exec.CommandContext(ctx, "make", "-s", "-C", root, "flags").Output()
	if err != nil {
		return nil, fmt.Errorf("make flags: %w", err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n"), nil
}

// build makes the program with these flags, for this machine and, for its size, for arm64.
func (f *function) build(ctx context.Context, path string, flags []string) error {
	f.path = path
	for _, arm := range []bool{false, true} {
		target := path
		if arm {
			target += ".arm64"
		}
		cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"build"}, flags, []string{"-o", mustAbs(target), f.folder})...) //nolint:gosec // of the Makefile
		cmd.Dir, cmd.Env = f.module, append(os.Environ(), "CGO_ENABLED=0")
		if arm {
			cmd.Env = append(cmd.Env, "GOOS=linux", "GOARCH=arm64")
		}
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w: %s", f.folder, err, text)
		}
		size, err := zipped(target)
		if err != nil {
			return err
		}
		if arm {
			f.zipARM = size
		} else {
			f.zip = size
		}
	}
	return nil
}

func mustAbs(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	return abs
}

func zipped(path string) (mib float64, err error) {
	in, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer in.Close() //nolint:errcheck // read only
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	w, err := z.Create("bootstrap")
	if err != nil {
		return 0, err
	}
	if _, err := io.Copy(w, in); err != nil {
		return 0, err
	}
	if err := z.Close(); err != nil {
		return 0, err
	}
	return float64(out.Len()) / (1 << 20), nil
}

// door is the host of the function URL.
const door = "abc.lambda-url.eu-west-1.on.aws"

// warmEvent is a function-URL event that calls session_get.
func warmEvent(ctx context.Context, token string) ([]byte, error) {
	q := request{version: stateless, method: "tools/call", name: "session_get", arguments: `{}`, token: token}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+door+"/mcp", bytes.NewReader(q.body()))
	if err != nil {
		return nil, err
	}
	r.Header = q.header()
	url, err := gateway.New(lambdaedge.FunctionURL, func(context.Context, []byte) ([]byte, error) { return nil, nil }, gateway.Options{Domain: door})
	if err != nil {
		return nil, err
	}
	return url.Event(r)
}

func (f *function) start(folder string) (*testkit.Lambda, error) {
	return testkit.RunLambda(f.path, folder, f.env...)
}

// cold starts the program once: to its first poll, to its first reply, and how much memory it then holds.
func (f *function) cold(ctx context.Context, folder string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	begun := time.Now()
	l, err := f.start(folder)
	if err != nil {
		return err
	}
	defer l.Close()
	if err := l.Ready(ctx); err != nil {
		return err
	}
	f.init = append(f.init, float64(time.Since(begun))/1e6)
	reply, err := l.Invoke(ctx, f.event)
	if err != nil {
		return err
	}
	f.first = append(f.first, float64(time.Since(begun))/1e6)
	if !bytes.Contains(reply, []byte(`"statusCode":200`)) {
		return fmt.Errorf("it answers %.300s", reply)
	}
	f.rss = max(f.rss, resident(l.PID()))
	return nil
}

// warm calls the functions in turn, a block each.
func warm(ctx context.Context, folder string, all []*function, rounds int) error {
	running := map[*function]*testkit.Lambda{}
	for _, f := range all {
		l, err := f.start(folder)
		if err != nil {
			return err
		}
		defer l.Close()
		running[f] = l
	}
	for round := range rounds + 1 {
		for _, f := range all {
			l := running[f]
			for range warmCalls {
				begun := time.Now()
				if _, err := l.Invoke(ctx, f.event); err != nil {
					return err
				}
				if round > 0 { // the first round warms up
					f.call = append(f.call, float64(time.Since(begun))/1e3)
				}
			}
			f.rss = max(f.rss, resident(l.PID()))
		}
	}
	return nil
}

// resident is the most memory that a process ever held, in MiB; 0 where there is no /proc.
func resident(pid int) float64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
	if m == nil {
		return 0
	}
	kb, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		return 0
	}
	return kb / 1024
}

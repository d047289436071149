// Command conformance runs the official MCP conformance suite against the fixture server, which is shared/mcp and nothing
// else: over net/http and through each of Lambda's front doors, at every revision that the suite knows. It installs the suite
// and its Node, both pinned by package-lock.json, into .tools. It knows nothing of the inbox.
//
//	go run ./scripts/conformance                                  everything, as make conformance
//	go run ./scripts/conformance -doors net/http,rest-api         some doors
//	go run ./scripts/conformance -serve -door http-api -addr 127.0.0.1:8090   the fixture server alone
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/buzon-mail/buzon/scripts/conformance/fixture"
	"github.com/buzon-mail/buzon/scripts/npm"
	"github.com/buzon-mail/buzon/scripts/program"
)

func main() { os.Exit(program.Run("conformance", run)) }

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("conformance", flag.ContinueOnError)
	serve := flags.Bool("serve", false, "only serve the fixtures, until interrupted")
	door := flags.String("door", fixture.NetHTTP, "with -serve: net/http, function-url, function-url-stream, http-api or rest-api")
	addr := flags.String("addr", "127.0.0.1:0", "with -serve: where to listen")
	doors := flags.String("doors", strings.Join(fixture.Doors(), ","), "which doors to test")
	tools := flags.String("tools", ".tools/conformance", "folder for the suite and its results")
	source := flags.String("source", "scripts/conformance", "folder of package.json and the baselines")
	jobs := flags.Int("jobs", 2, "runs of the suite at once")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *serve {
		s, err := fixture.Listen(*door, *addr)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, s.URL)
		<-ctx.Done()
		return s.Close()
	}
	if err := npm.Install(ctx, *source, *tools); err != nil {
		return err
	}
	suite := installed{
		node:    npm.Node(*tools),
		program: filepath.Join(*tools, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js"),
		results: filepath.Join(*tools, "results"), source: *source,
	}
	return testAll(ctx, suite, strings.Split(*doors, ","), *jobs, out)
}

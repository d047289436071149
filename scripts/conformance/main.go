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
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/buzon-mail/buzon/scripts/conformance/fixture"
	"github.com/buzon-mail/buzon/shared/lambdaedge"
	"github.com/buzon-mail/buzon/shared/lambdaedge/gateway"
)

// netHTTP is the door that is none.
const netHTTP = "net/http"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("conformance", flag.ContinueOnError)
	serve := flags.Bool("serve", false, "only serve the fixtures, until interrupted")
	door := flags.String("door", netHTTP, "with -serve: net/http, function-url, http-api or rest-api")
	addr := flags.String("addr", "127.0.0.1:0", "with -serve: where to listen")
	doors := flags.String("doors", strings.Join([]string{
		netHTTP, string(lambdaedge.FunctionURL), string(lambdaedge.HTTPAPI), string(lambdaedge.RESTAPI),
	}, ","), "which doors to test")
	tools := flags.String("tools", ".tools/conformance", "folder for the suite and its results")
	source := flags.String("source", "scripts/conformance", "folder of package.json and the baselines")
	jobs := flags.Int("jobs", 2, "runs of the suite at once")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *serve {
		s, err := start(*door, *addr)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, s.url)
		<-ctx.Done()
		return s.close()
	}
	suite, err := install(ctx, *source, *tools)
	if err != nil {
		return err
	}
	return testAll(ctx, suite, strings.Split(*doors, ","), *jobs, out)
}

// server is the fixtures behind one door.
type server struct {
	url   string
	close func() error
}

// start listens. The public origin is the listener's own, so that the suite's probe of Origin finds the one that passes.
func start(door, addr string) (server, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return server{}, fmt.Errorf("listen: %w", err)
	}
	origin := "http://" + listener.Addr().String()
	h, err := fixture.New(fixture.Options{Origin: origin, LocalHosts: door == netHTTP})
	if err != nil {
		return server{}, err
	}
	prefix := ""
	if door != netHTTP {
		edge := lambdaedge.New(h, lambdaedge.Options{Logger: slog.New(slog.DiscardHandler)})
		g, err := gateway.New(lambdaedge.Door(door), edge.Invoke, gateway.Options{})
		if err != nil {
			return server{}, err
		}
		h, prefix = g, g.Prefix()
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.Serve(listener) }()
	return server{origin + prefix + "/mcp", s.Close}, nil
}

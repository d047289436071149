// Package api is the Lambda function that serves MCP, REST and the metadata documents behind a function URL: configuration,
// engines, the HTTP side, the edge. It links neither the mail parser nor the worker.
package api

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/buzon-mail/buzon/shared/app/jsonlog"
	"github.com/buzon-mail/buzon/shared/app/web"
	"github.com/buzon-mail/buzon/shared/config"
	"github.com/buzon-mail/buzon/shared/lambdaedge"
)

// Function is the started function.
type Function struct {
	*lambdaedge.Handler
	close func() error
}

// Start polls Lambda's runtime for events and never returns.
func (f *Function) Start() { lambdaedge.Start(f.Handler) }

// Close releases the engines; a deployed function never does, for Lambda ends its process.
func (f *Function) Close() error { return f.close() }

// New makes the function. Log lines go to out; build is the version of the build.
func New(ctx context.Context, cfg *config.API, out io.Writer, build string) (*Function, error) {
	log := jsonlog.New(out)
	if build == "" {
		build = web.Unreleased
	}
	if !cfg.Emulated {
		return nil, errors.New("api: there is no engine for a deployed function in this version: set BUZON_EMULATOR=1")
	}
	e, err := emulate(ctx, time.Now)
	if err != nil {
		return nil, fmt.Errorf("api: emulate: %w", err)
	}
	handler, err := web.New(web.Deps{
		Store: e.store, Blobs: web.Blobs{Opener: e.blobs}, Downloads: web.Downloads{Signer: e.blobs}, Serve: e.blobs.Handler(),
		Engine: e.engine, Seal: e.seal, Permanent: e.seal, Keys: e.keys, Logger: log, Clock: time.Now, Random: rand.Reader, RequestID: requestID,
	}, web.Options{
		Origin: e.origin, Issuer: e.issuer, Audience: e.audience, Development: true, AllowedOrigins: cfg.AllowedOrigins,
		PublicDiscover: cfg.PublicDiscover, PerMinute: cfg.Rates.PerMinute, OutwardMinute: cfg.Rates.OutwardPerMinute, Version: build,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("api: %w", err), e.close())
	}
	return &Function{Handler: lambdaedge.New(handler, lambdaedge.Options{Logger: log}), close: e.close}, nil
}

func requestID(ctx context.Context) string {
	info, _ := lambdaedge.From(ctx)
	return info.RequestID
}

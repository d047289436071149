// Package api is the Lambda function that serves MCP, REST and the metadata documents behind a function URL: configuration,
// engines, the HTTP side, the edge. Emulated, or on AWS. It links neither the mail parser nor the worker.
package api

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/buzon-mail/buzon/shared/app/emulator"
	"github.com/buzon-mail/buzon/shared/app/jsonlog"
	"github.com/buzon-mail/buzon/shared/app/web"
	"github.com/buzon-mail/buzon/shared/awsclient"
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
func New(cfg *config.API, out io.Writer, build string) (*Function, error) {
	if !cfg.Emulated {
		aws, err := awsclient.Static(cfg.AWS.Region, cfg.AWS.KeyID, cfg.AWS.KeySecret.Reveal(), cfg.AWS.Session.Reveal())
		if err != nil {
			return nil, fmt.Errorf("api: %w", err)
		}
		return On(cfg, aws, time.Now, out, build)
	}
	if build == "" {
		build = web.Unreleased
	}
	log := jsonlog.ForFunction(out, cfg.AWS.Function)
	e, err := emulator.New(time.Now, emulator.Options{})
	if err != nil {
		return nil, fmt.Errorf("api: emulate: %w", err)
	}
	handler, err := web.New(web.Deps{
		Store: e.Store, Blobs: web.Blobs{Opener: e.Blobs}, Downloads: web.Downloads{Signer: e.Blobs}, Serve: e.Blobs.Handler(), Queue: e.Queue,
		Uploads: e.Blobs, Take: e.Blobs.TakeHandler(),
		Engine: e.Engine, Seal: e.Seal, Permanent: e.Seal, Keys: e.Keys, Logger: log, Clock: time.Now, Random: rand.Reader, RequestID: requestID,
	}, web.Options{
		Origin: e.Origin, Issuer: e.Issuer, Audience: e.Audience, Development: true, AllowedOrigins: cfg.AllowedOrigins,
		PublicDiscover: cfg.PublicDiscover, PerMinute: cfg.Rates.PerMinute, OutwardMinute: cfg.Rates.OutwardPerMinute, MaxWaits: cfg.Waits, Version: build,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("api: %w", err), e.Close())
	}
	return &Function{Handler: lambdaedge.New(handler, lambdaedge.Options{Logger: log, Stream: cfg.Stream}), close: e.Close}, nil
}

// On makes the function on an account of AWS, which it asks nothing yet.
func On(cfg *config.API, aws awsclient.Config, clock func() time.Time, out io.Writer, build string) (*Function, error) {
	if build == "" {
		build = web.Unreleased
	}
	log := jsonlog.ForFunction(out, cfg.AWS.Function)
	d, err := deploy(cfg, aws, log, clock, build)
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	return &Function{Handler: lambdaedge.New(d, lambdaedge.Options{Logger: log, Stream: cfg.Stream}), close: func() error { return nil }}, nil
}

func requestID(ctx context.Context) string {
	info, _ := lambdaedge.From(ctx)
	return info.RequestID
}

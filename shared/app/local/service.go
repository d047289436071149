// Package local is the whole service in one process: HTTP, SMTP and the worker over the embedded engine, and the buzon
// command line. Everything lies in one data folder. It must know neither Lambda nor an engine that needs another machine.
package local

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"github.com/buzon-mail/buzon/shared/app/announce"
	"github.com/buzon-mail/buzon/shared/app/authority"
	"github.com/buzon-mail/buzon/shared/app/jsonlog"
	"github.com/buzon-mail/buzon/shared/app/outlet"
	"github.com/buzon-mail/buzon/shared/app/telling"
	"github.com/buzon-mail/buzon/shared/app/web"
	"github.com/buzon-mail/buzon/shared/blob/dir"
	"github.com/buzon-mail/buzon/shared/config"
	"github.com/buzon-mail/buzon/shared/demo"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/mail"
	"github.com/buzon-mail/buzon/shared/mailauth"
	"github.com/buzon-mail/buzon/shared/oauth"
	"github.com/buzon-mail/buzon/shared/oauth/upstream"
	"github.com/buzon-mail/buzon/shared/pipeline"
	"github.com/buzon-mail/buzon/shared/pipeline/parsing"
	queue "github.com/buzon-mail/buzon/shared/queue/embedded"
	"github.com/buzon-mail/buzon/shared/seal"
	"github.com/buzon-mail/buzon/shared/smtpd"
	"github.com/buzon-mail/buzon/shared/store/embedded"
)

// patience is how long a shutdown waits for what is under way.
const patience = 10 * time.Second

// Options are what a test changes. The zero value works.
type Options struct {
	Log   io.Writer        // one JSON line per request, mail or fault; standard error when nil
	Clock func() time.Time // time.Now when nil
	Build string           // version of the build
	// Program is how the command line is called, for the banner; buzon when empty.
	Program string
	Fetcher oauth.Fetcher // of clients' documents; the network's when nil
}

// Service is the process.
type Service struct {
	cfg     *config.Local
	opts    Options
	version string
	log     *slog.Logger

	engine    *embedded.Engine
	store     *inboxstore.Store
	blobs     *dir.Store
	queue     *queue.Queue
	seal      *seal.Keyring
	fixed     *seal.Keyring // of what clients keep
	keys      *oauth.KeyRing
	intake    *pipeline.Intake
	worker    *pipeline.Worker
	retention *pipeline.Retention
	hooks     *telling.Hooks
	admin     *admin

	origin string
	api    *web.API
	http   net.Listener
	smtp   net.Listener
}

// New opens the data folder and everything in it; nothing listens yet.
func New(cfg *config.Local, opts Options) (_ *Service, err error) {
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	if opts.Log == nil {
		opts.Log = os.Stderr
	}
	if opts.Build == "" {
		opts.Build = web.Unreleased
	}
	s := &Service{cfg: cfg, opts: opts, version: opts.Build, log: jsonlog.New(opts.Log), origin: cfg.PublicURL}
	if err := prepare(cfg.DataDir); err != nil {
		return nil, err
	}
	if s.engine, err = embedded.Open(filepath.Join(cfg.DataDir, storeFile), embedded.Options{Clock: opts.Clock}); err != nil {
		if errors.Is(err, embedded.ErrLocked) {
			return nil, fmt.Errorf("%w: %w", taken(cfg.DataDir), err)
		}
		return nil, fmt.Errorf("open the store in %s: %w", cfg.DataDir, err)
	}
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.engine.Close())
	}
	return s, nil
}

func taken(dataDir string) error {
	return fmt.Errorf("another buzon serves the data folder %s: stop it, or set BUZON_DATA_DIR", dataDir)
}

func (s *Service) open() (err error) {
	dataDir, clock := s.cfg.DataDir, s.opts.Clock
	if s.seal, err = keyring(dataDir, rootsFile, clock); err != nil {
		return err
	}
	if s.fixed, err = keyring(dataDir, permanentFile, clock); err != nil {
		return err
	}
	if s.keys, err = signingKeys(dataDir, clock); err != nil {
		return err
	}
	if s.store, err = inboxstore.New(s.engine, clock); err != nil {
		return err
	}
	if s.queue, err = queue.New(s.engine, "mail", queue.Options{Clock: clock}); err != nil {
		return err
	}
	s.store = s.store.Announcing(announce.To(s.queue, s.log))
	return s.wire(s.cfg.Origin(configured(s.cfg.HTTPAddr)))
}

// configured is an address before anybody listens there; a verb without a running service takes its port for the origin.
type configured string

// Network is tcp.
func (c configured) Network() string { return "tcp" }

// String is the address.
func (c configured) String() string { return string(c) }

// wire makes what depends on the public origin, which is known for good only when the HTTP port is.
func (s *Service) wire(origin string) (err error) {
	s.origin = origin
	s.blobs, err = dir.Open(filepath.Join(s.cfg.DataDir, blobFolder), dir.Options{
		BaseURL: origin, Keys: s.seal, Clock: s.opts.Clock, Log: s.log,
	})
	if err != nil {
		return err
	}
	s.api, err = web.New(web.Deps{
		Store: s.store, Blobs: web.Blobs{Opener: s.blobs}, Downloads: web.Downloads{Signer: s.blobs}, Serve: s.blobs.Handler(), Queue: s.queue,
		Uploads: s.blobs, Take: s.blobs.TakeHandler(),
		Engine: s.engine, Seal: s.seal, Permanent: s.fixed,
		Keys: s.keys, Logger: s.log, Clock: s.opts.Clock, Random: rand.Reader, Fetcher: s.opts.Fetcher,
	}, web.Options{
		Origin: origin, AllowedOrigins: s.cfg.AllowedOrigins, LocalHosts: true, LoopbackReceivers: s.cfg.Loopback(), PublicDiscover: s.cfg.PublicDiscover,
		PerMinute: s.cfg.Rates.PerMinute, OutwardMinute: s.cfg.Rates.OutwardPerMinute, MaxWaits: s.cfg.Waits, Version: s.version,
		Upstream: provider(s.cfg.Upstream),
	})
	if err != nil {
		return err
	}
	s.admin = &admin{
		dir: s.cfg.DataDir, engine: s.engine, store: s.store, api: s.api, clock: s.opts.Clock, loopback: s.cfg.Loopback(),
		signInLink: s.api.OAuth.SignInLink, changeKeys: keyFile(s.cfg.DataDir), server: func() (*oauth.Server, error) { return s.api.OAuth, nil },
	}
	return s.pipeline()
}

func (s *Service) pipeline() (err error) {
	if err := s.webhooks(); err != nil {
		return err
	}
	s.intake, err = pipeline.NewIntake(pipeline.IntakeDeps{
		Recipients: s.store, Outbox: s.store, Blobs: s.blobs, Queue: s.queue, Logger: s.log, Clock: s.opts.Clock,
		Senders: s.store, Known: s.store, Rejected: s.hooks.Rejected,
	}, pipeline.IntakeOptions{})
	if err != nil {
		return err
	}
	s.retention, err = pipeline.NewRetention(pipeline.RetentionDeps{
		Store: s.store, Blobs: s.blobs, Logger: s.log, Clock: s.opts.Clock,
	}, pipeline.RetentionOptions{})
	if err != nil {
		return err
	}
	senders, err := mailauth.New(net.DefaultResolver, mailauth.Options{})
	if err != nil {
		return err
	}
	out, err := s.outlet()
	if err != nil {
		return err
	}
	deps := pipeline.WorkerDeps{
		Outbox: s.store, Mails: s.store, Blobs: s.blobs, Queue: s.queue, Parse: parsing.Mail(mail.Limits{}),
		Logger: s.log, Clock: s.opts.Clock, Authenticate: parsing.Senders(senders), SameOrganization: mailauth.SameOrganization, Senders: s.store,
		Rules: s.store, Extractor: inbox.NewLocators(), Extractions: s.store,
		Jobs: s.store, Reprocess: s.store, Authority: authority.New(s.store, s.engine, s.store),
		Importing: &pipeline.Importing{Uploads: s.store, Inboxes: s.store, Blobs: s.blobs, Intake: s.intake, Cut: parsing.Cut, Dated: parsing.ImportedAt},
		Forward:   &pipeline.Forwarding{Store: s.store, Outlet: outlet.Outlet{To: out}},
	}
	s.hooks.Join(&deps)
	s.worker, err = pipeline.NewWorker(deps, pipeline.WorkerOptions{})
	if err != nil {
		return err
	}
	s.admin.take = importInto(s.store, s.intake, func(ctx context.Context, id string) error { return s.worker.Handle(ctx, id, 1) })
	return nil
}

// provider is the configured one; nil when there is none.
func provider(c *config.Upstream) *upstream.Config {
	if c == nil {
		return nil
	}
	secret := func(context.Context) (string, error) { return c.Secret.Reveal(), nil }
	return &upstream.Config{Issuer: c.Issuer, ClientID: c.ClientID, Secret: secret, Name: c.Name, Allow: c.Allow}
}

// Close closes the store. Only for a service that does not run.
func (s *Service) Close() error { return s.engine.Close() }

// Run serves until ctx ends, then lets what is under way finish. It closes the store.
func (s *Service) Run(ctx context.Context, out io.Writer) (err error) {
	defer func() { err = errors.Join(err, s.engine.Close()) }()
	if err := os.Remove(s.demoPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the old %s: %w", demoFile, err)
	}
	if err := s.listen(); err != nil {
		return err
	}
	if origin := s.cfg.Origin(s.http.Addr()); origin != s.origin { // the system chose the port
		if err := s.wire(origin); err != nil {
			return err
		}
	}
	stop, failed, err := s.start()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if s.cfg.Demo {
		if err := s.demo(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	s.banner(out)
	select {
	case <-ctx.Done():
		_, _ = fmt.Fprintln(out, "Stopping.")
		return nil
	case err := <-failed:
		return err
	}
}

func (s *Service) demo(ctx context.Context) error {
	if err := demo.Seed(ctx, s.store); err != nil {
		return err
	}
	if err := s.seedMails(ctx); err != nil {
		return err
	}
	return s.writeDemo(ctx)
}

// listen takes both ports before anything else happens, so that a busy one is an error that names its variable.
func (s *Service) listen() (err error) {
	if s.http, err = net.Listen("tcp", s.cfg.HTTPAddr); err != nil {
		return fmt.Errorf("listen for HTTP on %s: %w; set BUZON_HTTP_ADDR to another address", s.cfg.HTTPAddr, err)
	}
	if s.smtp, err = net.Listen("tcp", s.cfg.SMTPAddr); err != nil {
		return errors.Join(
			fmt.Errorf("listen for SMTP on %s: %w; set BUZON_SMTP_ADDR to another address", s.cfg.SMTPAddr, err), s.http.Close())
	}
	return nil
}

// start runs everything. stop ends it in the order in which nothing is lost: no new mail, no new requests, then the worker.
func (s *Service) start() (stop func() error, failed <-chan error, err error) {
	mail, err := s.smtpServer()
	if err != nil {
		return nil, nil, err
	}
	adminListener, err := listenAdmin(s.cfg.DataDir)
	if err != nil {
		return nil, nil, err
	}
	runner, err := pipeline.NewRunner(pipeline.RunnerDeps{
		Worker: s.worker, Source: s.queue, Queue: s.queue, Outbox: s.store, Logger: s.log, Clock: s.opts.Clock, Wake: s.queue.Wake(),
	}, pipeline.RunnerOptions{})
	if err != nil {
		return nil, nil, errors.Join(err, adminListener.Close())
	}
	site := &http.Server{
		Handler: s.api, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	failures := make(chan error, 2)
	work, rest := context.WithCancel(context.Background())
	worker := make(chan error, 1)
	var sweeper sync.WaitGroup
	sweeper.Go(func() { s.sweep(work) })
	sweeper.Go(func() { s.tellDue(work) })
	go func() { worker <- runner.Run(work) }()
	verbs := s.admin.serveAdmin(adminListener)
	go func() { failures <- serving("HTTP", site.Serve(stallListener{netutil.LimitListener(s.http, maxHTTP)})) }()
	go func() { failures <- serving("SMTP", mail.Serve(s.smtp)) }()
	stop = func() error {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		err := errors.Join(quiet(mail.Shutdown(ctx)), quiet(site.Shutdown(ctx)))
		rest()
		err = errors.Join(err, <-worker, verbs.Close())
		sweeper.Wait()
		return errors.Join(err, quiet(os.Remove(filepath.Join(s.cfg.DataDir, adminFile))))
	}
	return stop, failures, nil
}

// maxHTTP is how many connections there are at once. Whoever comes then waits in the kernel, so that file descriptors are left for the
// store and for SMTP, which counts its own.
const maxHTTP = 512

func (s *Service) smtpServer() (*smtpd.Server, error) {
	options := smtpd.Options{Addr: s.cfg.SMTPAddr, Domain: s.cfg.SMTPDomain}
	if s.cfg.SMTPTLSCert != "" {
		pair, err := tls.LoadX509KeyPair(s.cfg.SMTPTLSCert, s.cfg.SMTPTLSKey)
		if err != nil {
			return nil, fmt.Errorf("read the certificate (BUZON_SMTP_TLS_CERT, BUZON_SMTP_TLS_KEY): %w", err)
		}
		options.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	return smtpd.New(smtpd.Deps{Acceptor: s.intake, Logger: s.log}, options)
}

// serving turns the normal end of a server into nothing.
func serving(what string, err error) error {
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, smtpd.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve %s: %w", what, err)
}

// quiet drops what a shutdown may say of what was closed already.
func quiet(err error) error {
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, smtpd.ErrServerClosed) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// smtpAddr is where mail goes, also when the port was chosen by the system.
func (s *Service) smtpAddr() string {
	if s.smtp == nil {
		return s.cfg.SMTPAddr
	}
	return s.smtp.Addr().String()
}

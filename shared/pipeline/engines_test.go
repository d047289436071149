package pipeline_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand"
	"net"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/blob/dir"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/mail"
	"github.com/buzon-mail/buzon/shared/pipeline"
	"github.com/buzon-mail/buzon/shared/pipeline/parsing"
	queues "github.com/buzon-mail/buzon/shared/queue/embedded"
	"github.com/buzon-mail/buzon/shared/smtpd"
	"github.com/buzon-mail/buzon/shared/store/embedded"
)

const (
	orgID   = "org_01J0000000000000000000000A"
	wsID    = "ws_01J0000000000000000000000A"
	inboxID = "inbox_01J0000000000000000000000A"
)

// world is the accept path and the worker on the engines that the local process runs.
type world struct {
	store  *inboxstore.Store
	queue  *queues.Queue
	intake *pipeline.Intake
	worker *pipeline.Worker
	runner *pipeline.Runner
	close  func() error
}

// open opens a data folder. ahead puts the runner's clock forward, so that it need not wait for rows to become old.
func open(path string, ahead time.Duration, noSync bool) (*world, error) {
	engine, err := embedded.Open(filepath.Join(path, "core.db"), embedded.Options{NoSync: noSync})
	if err != nil {
		return nil, err
	}
	w := &world{close: engine.Close}
	blobs, err := dir.Open(filepath.Join(path, "blobs"), dir.Options{NoSync: noSync})
	if err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	log := slog.New(slog.DiscardHandler)
	w.store, _ = inboxstore.New(engine, time.Now)
	w.queue, _ = queues.New(engine, "mail", queues.Options{})
	w.intake, err = pipeline.NewIntake(pipeline.IntakeDeps{Recipients: w.store, Outbox: w.store, Blobs: blobs, Queue: w.queue, Logger: log}, pipeline.IntakeOptions{})
	if err != nil {
		return nil, err
	}
	w.worker, err = pipeline.NewWorker(pipeline.WorkerDeps{
		Outbox: w.store, Mails: w.store, Blobs: blobs, Queue: w.queue, Parse: parsing.Mail(mail.Limits{}), Logger: log,
		Rules: w.store, Extractor: inbox.NewLocators(), Extractions: w.store,
	}, pipeline.WorkerOptions{MaxAttempts: 100}) // TestKilled's kills are not the mails' doing
	if err != nil {
		return nil, err
	}
	w.runner, err = pipeline.NewRunner(pipeline.RunnerDeps{
		Worker: w.worker, Source: w.queue, Queue: w.queue, Outbox: w.store, Logger: log, Wake: w.queue.Wake(),
		Clock: func() time.Time { return time.Now().Add(ahead) },
	}, pipeline.RunnerOptions{ResendEvery: 100 * time.Millisecond})
	return w, err
}

// seed creates the organization, workspace, domain and inbox.
func (w *world) seed(ctx context.Context) error {
	org := w.store.CreateOrganization(ctx, inbox.Organization{ID: orgID, Slug: "acme", Name: "Acme"})
	ws := w.store.CreateWorkspace(ctx, inbox.Workspace{ID: wsID, Organization: orgID, Slug: "main", Name: "Main"})
	_, domain := w.store.AddDomain(ctx, orgID, "acme.test")
	return errors.Join(org, ws, domain, w.store.CreateInbox(ctx, inbox.Inbox{
		ID: inboxID, Organization: orgID, Workspace: wsID, Slug: "agent", Address: "agent@acme.test", State: inbox.StateActive, Version: 1,
	}, inbox.Act{}))
}

func (w *world) mails(ctx context.Context) ([]*inbox.Row, error) {
	var all []*inbox.Row
	for after := ""; ; {
		page, next, err := w.store.Emails(ctx, inbox.EmailRange{Workspace: wsID, Inbox: inboxID, After: after, Limit: 100})
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if next == "" {
			return all, nil
		}
		after = next
	}
}

func (w *world) pending(ctx context.Context) (int, error) {
	ids, err := w.store.Pending(ctx, time.Now().Add(time.Hour), 1000)
	return len(ids), err
}

const crashDir = "BUZON_TEST_CRASH_DIR"

// TestMain is also the process that TestKilled kills.
func TestMain(m *testing.M) {
	if path := os.Getenv(crashDir); path != "" {
		fmt.Fprintln(os.Stderr, serveUntilKilled(path))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func serveUntilKilled(path string) error {
	w, err := open(path, time.Minute, false)
	if err != nil {
		return err
	}
	s, err := smtpd.New(smtpd.Deps{Acceptor: w.intake, Logger: slog.New(slog.DiscardHandler)}, smtpd.Options{MailsPerMinute: -1})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = w.runner.Run(context.Background()) }()
	fmt.Println(l.Addr()) // the parent waits for it
	return s.Serve(l)
}

// A process that takes mail over SMTP and processes it is killed at random moments. Clients send again what they heard no
// 250 for, as clients do. In the end every mail that was accepted is there, processed, exactly once, and nothing is left over.
func TestKilled(t *testing.T) {
	rounds := 20
	if testing.Short() {
		rounds = 4
	}
	path := t.TempDir()
	w, err := open(path, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.seed(t.Context()), w.close()); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewSource(1)) //nolint:gosec // the moments must be the same in each run
	c := &clients{acked: map[string]bool{}}
	// A slow machine may need more rounds until enough was accepted to say something.
	for round := 0; round < rounds || len(c.acked) < 20 && round < 400; round++ {
		kill(t, path, c, time.Duration(random.Intn(120))*time.Millisecond)
	}
	if len(c.acked) < 20 {
		t.Fatalf("only %d mails were accepted: the test tests nothing", len(c.acked))
	}
	counts := settle(t, path)
	for name := range c.acked {
		if counts[name] != 1 {
			t.Errorf("%s was accepted and is there %d times", name, counts[name])
		}
	}
	for name, n := range counts {
		if n != 1 {
			t.Errorf("%s is there %d times", name, n)
		}
	}
	t.Logf("%d accepted, %d there", len(c.acked), len(counts))
}

// kill runs the process for a while.
func kill(t *testing.T, path string, c *clients, after time.Duration) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // this very binary
	child.Env = append(os.Environ(), crashDir+"="+path)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the process did not start: %v", err)
	}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() { c.send(strings.TrimSpace(addr)) })
	}
	time.Sleep(after)
	_ = child.Process.Kill()
	_ = child.Wait()
	all.Wait()
}

// settle processes what is left and counts the mails by subject.
func settle(t *testing.T, path string) map[string]int {
	t.Helper()
	w, err := open(path, time.Minute, false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.close() }()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.runner.Run(ctx) }()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		n, err := w.pending(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d outbox rows are left", n)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	mails, err := w.mails(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, m := range mails {
		counts[m.Subject]++
		if m.Status != inbox.StatusProcessed {
			t.Errorf("%s is %s %s", m.Subject, m.Status, m.Reason)
		}
	}
	return counts
}

// clients send mails with subjects of their own until the server is gone.
type clients struct {
	mu    sync.Mutex
	next  int
	again []string // sent, with no answer
	acked map[string]bool
}

func (c *clients) take() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.again); n > 0 {
		name := c.again[n-1]
		c.again = c.again[:n-1]
		return name
	}
	c.next++
	return fmt.Sprintf("mail %d", c.next)
}

func (c *clients) give(name string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ok {
		c.acked[name] = true
	} else if !slices.Contains(c.again, name) {
		c.again = append(c.again, name)
	}
}

func (c *clients) send(addr string) {
	conn, err := textproto.Dial("tcp", addr)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	if _, _, err := conn.ReadResponse(220); err != nil {
		return
	}
	say := func(code int, line string) bool {
		_, err := conn.Cmd("%s", line)
		if err == nil {
			_, _, err = conn.ReadResponse(code)
		}
		return err == nil
	}
	if !say(250, "EHLO client.example") {
		return
	}
	for {
		name := c.take()
		ok := say(250, "MAIL FROM:<s@example.com>") && say(250, "RCPT TO:<agent@acme.test>") && say(354, "DATA") &&
			say(250, "From: s@example.com\r\nMessage-ID: <"+strings.ReplaceAll(name, " ", "-")+"@example.com>\r\nSubject: "+name+"\r\n\r\n"+strings.Repeat(name+"\r\n", 500)+".")
		c.give(name, ok)
		if !ok {
			return
		}
	}
}

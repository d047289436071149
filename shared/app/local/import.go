package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/app/deployed"
	"github.com/buzon-mail/buzon/shared/app/deployed/jobqueue"
	"github.com/buzon-mail/buzon/shared/app/jsonlog"
	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/config"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/pipeline"
	"github.com/buzon-mail/buzon/shared/pipeline/parsing"
	"github.com/buzon-mail/buzon/shared/queue"
)

// importSource is where mail of the command line lies: its ids follow from its bytes alone, so an import may be repeated.
const importSource = "file"

// importTarget names an inbox.
type importTarget struct {
	Inbox     string // slug or address
	Workspace string // id, or the slugs ORGANIZATION/WORKSPACE; not needed with an address
	Notify    bool
}

// importReply is what became of one mail.
type importReply struct {
	Email     string `json:"email_id"`
	Duplicate bool   `json:"duplicate"` // the inbox had it, be it from an earlier import
}

// takes one mail in.
type takeMail func(ctx context.Context, t importTarget, raw []byte) (importReply, error)

// importInto takes a mail of a file in and has it processed: at once, or, where process only sends its id on, by a worker elsewhere.
func importInto(store *inboxstore.Store, intake *pipeline.Intake, process func(ctx context.Context, id string) error) takeMail {
	return func(ctx context.Context, t importTarget, raw []byte) (importReply, error) {
		to, err := importRecipient(ctx, store, t)
		if err != nil {
			return importReply{}, err
		}
		in, err := intake.Import(ctx, inbox.ImportedMail{
			To: to, Raw: raw, Source: importSource, ReceivedAt: parsing.ImportedAt(raw, time.Now()), Quiet: !t.Notify,
		})
		if err != nil {
			return importReply{}, err
		}
		reply := importReply{Email: in.Email, Duplicate: in.Intake == ""}
		if in.Intake == "" {
			return reply, nil
		}
		// Its row is in the outbox, so it is taken whatever becomes of this.
		_ = process(ctx, in.Intake)
		return reply, nil
	}
}

// importRecipient finds the inbox.
func importRecipient(ctx context.Context, store *inboxstore.Store, t importTarget) (inbox.Recipient, error) {
	if strings.Contains(t.Inbox, "@") {
		return store.Recipient(ctx, strings.ToLower(t.Inbox))
	}
	workspace := t.Workspace
	if org, slug, ok := strings.Cut(workspace, "/"); ok {
		o, err := store.OrganizationBySlug(ctx, org)
		if err != nil {
			return inbox.Recipient{}, err
		}
		all, err := store.Workspaces(ctx, o.ID)
		if err != nil {
			return inbox.Recipient{}, err
		}
		workspace = ""
		for _, w := range all {
			if w.Slug == slug {
				workspace = w.ID
			}
		}
	}
	if workspace == "" {
		return inbox.Recipient{}, apperr.New(apperr.Invalid, "", "A slug alone names no inbox: each workspace may have one.",
			"Add --workspace ORGANIZATION/WORKSPACE (slugs), or name the inbox by its address.")
	}
	in, err := store.Inbox(ctx, workspace, t.Inbox)
	if err == nil && !in.DeletedAt.IsZero() {
		err = inbox.NoInbox()
	}
	if err != nil {
		return inbox.Recipient{}, err
	}
	return store.Recipient(ctx, in.Address)
}

// serveImport takes one mail over the socket.
func (a *admin) serveImport(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(io.LimitReader(r.Body, pipeline.MaxRaw+1))
	q := r.URL.Query()
	var reply importReply
	if err == nil {
		reply, err = a.take(r.Context(), importTarget{q.Get("inbox"), q.Get("workspace"), q.Get("notify") == "1"}, raw)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	_ = json.NewEncoder(w).Encode(reply)
}

// importer finds where mail goes: the running service, the store, or a deployed service.
func (p *Process) importer(ctx context.Context) (take takeMail, done func() error, err error) {
	if config.OnAWS(p.Getenv) {
		take, err = p.importOnAWS()
		return take, func() error { return nil }, err
	}
	cfg, err := config.LoadLocal(p.Getenv)
	if err != nil {
		return nil, nil, err
	}
	running := false
	s, err := whenFree(ctx, cfg, Options{Log: p.Stderr, Build: p.Build}, func() (bool, error) {
		take, done, running = remoteImport(ctx, cfg.DataDir)
		return running, nil
	})
	if running || err != nil {
		return take, done, err
	}
	return s.admin.take, s.Close, nil
}

// importOnAWS puts mails into the bucket and the table; the deployed worker processes them.
func (p *Process) importOnAWS() (takeMail, error) {
	names, err := config.LoadImport(p.Getenv)
	if err != nil {
		return nil, err
	}
	a, err := deployed.Here(names)
	if err != nil {
		return nil, err
	}
	store, err := a.Store()
	if err != nil {
		return nil, err
	}
	blobs, err := a.Blobs()
	if err != nil {
		return nil, err
	}
	jobs, err := jobqueue.Open(a)
	if err != nil {
		return nil, err
	}
	intake, err := pipeline.NewIntake(pipeline.IntakeDeps{
		Recipients: store, Outbox: store, Blobs: blobs, Queue: jobs, Logger: jsonlog.New(p.Stderr), Known: store,
	}, pipeline.IntakeOptions{})
	if err != nil {
		return nil, err
	}
	return importInto(store, intake, func(ctx context.Context, id string) error {
		return jobs.Send(ctx, queue.Message{ID: id})
	}), nil
}

// remoteImport sends mails to the running service; ok is false when none runs.
func remoteImport(ctx context.Context, dir string) (take takeMail, done func() error, ok bool) {
	path := filepath.Join(dir, adminFile)
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, nil, false
	}
	_ = conn.Close()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return d.DialContext(ctx, "unix", path)
	}}
	take = func(ctx context.Context, t importTarget, raw []byte) (reply importReply, err error) {
		q := url.Values{"inbox": {t.Inbox}, "workspace": {t.Workspace}}
		if t.Notify {
			q.Set("notify", "1")
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://admin/import-mail?"+q.Encode(), bytes.NewReader(raw))
		if err != nil {
			return reply, fmt.Errorf("import: %w", err)
		}
		res, err := transport.RoundTrip(r)
		if err != nil {
			return reply, fmt.Errorf("ask the running service: %w", err)
		}
		defer func() { _ = res.Body.Close() }()
		if res.StatusCode != http.StatusOK {
			return reply, refusedBy(res)
		}
		if err := json.NewDecoder(res.Body).Decode(&reply); err != nil {
			return reply, fmt.Errorf("read the reply: %w", err)
		}
		return reply, nil
	}
	return take, func() error { transport.CloseIdleConnections(); return nil }, true
}

// mailFile is one file of mails.
type mailFile struct {
	path string
	size int64
}

// mailFiles lists what lies under paths: files that are named, of folders those that end as mails do, and of Maildir folders (cur, new)
// every one. Symbolic links inside a folder are not followed.
func mailFiles(paths []string) ([]mailFile, error) {
	var all []mailFile
	for _, path := range paths {
		top, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("look at the files: %w", err)
		}
		if !top.IsDir() {
			all = append(all, mailFile{path, top.Size()})
			continue
		}
		err = filepath.WalkDir(path, func(name string, d os.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || !mailName(name) {
				return err
			}
			info, err := d.Info()
			if errors.Is(err, os.ErrNotExist) { // Maildir: its owner has moved it
				return nil
			}
			if err == nil {
				all = append(all, mailFile{name, info.Size()})
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("look at %s: %w", path, err)
		}
	}
	return all, nil
}

// mailName reports whether a file of a folder is one of mails.
func mailName(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".eml", ".mbox", ".mbx":
		return true
	}
	folder := filepath.Base(filepath.Dir(path))
	if folder != "cur" && folder != "new" || strings.HasPrefix(filepath.Base(path), ".") {
		return false
	}
	_, err := os.Stat(filepath.Join(filepath.Dir(filepath.Dir(path)), "tmp")) // a Maildir has all three
	return err == nil
}

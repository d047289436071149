package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/blob"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/pipeline/reading"
)

// Uploads keeps what is known of files that were put.
type Uploads interface {
	// Upload finds one; not_found when there is none, or when it has expired.
	Upload(ctx context.Context, workspace, id string) (inbox.Upload, error)
	// ExpiredUploads lists the first whose time was over before a time.
	ExpiredUploads(ctx context.Context, before time.Time, limit int) ([]inbox.Upload, error)
	// DropUpload forgets one. Repeating it is fine.
	DropUpload(ctx context.Context, u inbox.Upload) error
}

// Inboxes finds inboxes.
type Inboxes interface {
	// Inbox finds one by id, deleted ones too.
	Inbox(ctx context.Context, workspace, ref string) (inbox.Inbox, error)
}

// Importing is what a job that imports needs.
type Importing struct {
	Uploads Uploads
	Inboxes Inboxes
	Blobs   StoredBlobs
	Intake  *Intake
	// Cut makes mails of a file of a format, each of max bytes at most.
	Cut func(r io.Reader, format string, max int) reading.Cutter
	// Dated is when an imported mail counts as received; imported is when the import began.
	Dated func(raw []byte, imported time.Time) time.Time
}

const (
	importBatch  = 8        // mails that are in work at once
	importMemory = 16 << 20 // bytes of mails from which on no more join a batch
	importSaves  = 64       // mails from one saved state to the next
	importNamed  = 100      // ids, and errors, that the result names
)

// importState is where the next run of an import goes on.
type importState struct {
	Total int64              `json:"total"` // mails in the file; 0: it was not looked through yet
	Next  int64              `json:"next"`  // mails that are done
	Over  bool               `json:"over,omitempty"`
	Found inbox.ImportResult `json:"found"`
	dirty int
}

// importUpload brings the mails of a file in, each through the stages of any other. A run may be killed at any point: the ids of
// the mails follow from the job and their places, and what was done since the last saved state is found again.
func (w *Worker) importUpload(ctx context.Context, j *JobRun) (any, error) {
	var params inbox.ImportParams
	if err := j.Params(&params); err != nil {
		return nil, err
	}
	g := &importing{worker: w, deps: w.deps.Importing, job: j, params: params}
	g.state.Found = inbox.ImportResult{Upload: params.Upload, Emails: []string{}, Errors: []inbox.ImportError{}}
	if err := j.State(&g.state); err != nil {
		return nil, err
	}
	if !g.state.Over {
		if err := g.run(ctx); err != nil {
			return nil, err
		}
	}
	// The bytes go last: a run that dies here finds Over and has nothing to read. What is left behind expires.
	if g.upload.ID != "" {
		if err := dropUpload(ctx, w.deps.Importing.Uploads, w.deps.Blobs, g.upload); err != nil {
			w.deps.Logger.Warn("pipeline: upload left behind", slog.String("job", j.Job.ID))
		}
	}
	return g.state.Found, nil
}

func dropUpload(ctx context.Context, uploads Uploads, blobs Blobs, u inbox.Upload) error {
	if err := blobs.Delete(ctx, u.Key); err != nil {
		return fmt.Errorf("bytes of %s: %w", u.ID, err)
	}
	return uploads.DropUpload(ctx, u) //nolint:wrapcheck // the store names the step
}

// importing is one run of an import.
type importing struct {
	worker *Worker
	deps   *Importing
	job    *JobRun
	params inbox.ImportParams
	state  importState
	upload inbox.Upload
	to     inbox.Recipient
}

func (g *importing) run(ctx context.Context) error {
	ws := g.job.Job.Workspace
	in, err := g.deps.Inboxes.Inbox(ctx, ws, g.params.Inbox)
	if err != nil {
		return err //nolint:wrapcheck // the store names the step
	}
	if !in.DeletedAt.IsZero() {
		return apperr.New(apperr.Conflict, "inbox_deleted", "The inbox was deleted meanwhile.", "Restore it with inboxes_restore, then import again.")
	}
	if g.to, err = g.deps.Intake.Recipient(ctx, in.Address); err != nil {
		return err
	}
	if g.upload, err = g.deps.Uploads.Upload(ctx, ws, g.params.Upload); err != nil {
		return err //nolint:wrapcheck // the store names the step
	}
	if g.state.Total == 0 {
		if err := g.lookThrough(ctx); err != nil {
			return err
		}
	}
	return g.bringIn(ctx)
}

// open reads the file.
func (g *importing) open(ctx context.Context) (io.ReadCloser, error) {
	body, size, err := g.deps.Blobs.Open(ctx, g.upload.Key)
	switch {
	case errors.Is(err, blob.ErrNotFound):
		return nil, apperr.New(apperr.Conflict, "upload_missing", "Nothing was put at the address of this upload.",
			"PUT the file to put_url with the headers that uploads_create named, then call emails_import again with a new idempotency key.")
	case err != nil:
		return nil, unavailable("open the upload", err)
	case size != g.upload.Size:
		_ = body.Close()
		return nil, damaged()
	}
	return body, nil
}

func damaged() *apperr.Error {
	return apperr.New(apperr.Conflict, "upload_damaged", "The bytes that were put are not those that were announced.",
		"Call uploads_create with the file's own size and SHA-256, and put it again.")
}

// lookThrough counts the mails, and makes sure of the bytes, whatever the store that took them did.
func (g *importing) lookThrough(ctx context.Context) error {
	body, err := g.open(ctx)
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // read only
	h := sha256.New()
	all := io.TeeReader(body, h)
	mails := g.reader(all)
	n, said := int64(0), g.worker.now()
	for {
		_, err := mails.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err := g.readable(err); err != nil {
			return err
		}
		n++
		if now := g.worker.now(); now.Sub(said) > jobLease/4 {
			said = now
			if err := g.job.Progress(ctx, 0, 0); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err //nolint:wrapcheck // the context's
		}
	}
	if _, err := io.Copy(io.Discard, all); err != nil {
		return unavailable("read the upload", err)
	}
	if hex.EncodeToString(h.Sum(nil)) != g.upload.SHA256 {
		return damaged()
	}
	if n == 0 {
		return apperr.New(apperr.Conflict, "no_mails", "There are no mails in the file.", "Compare the file with the format that you named.")
	}
	g.state.Total = n
	return g.job.Save(ctx, 0, n, g.state)
}

// reader cuts the file.
func (g *importing) reader(r io.Reader) reading.Cutter {
	return g.deps.Cut(r, g.params.Format, int(g.deps.Intake.max))
}

// readable makes of a failure of the reader what the job ends with, or comes again for; nil: the mail alone is at fault.
func (g *importing) readable(err error) error {
	switch {
	case err == nil, errors.Is(err, reading.ErrTooLarge):
		return nil
	case errors.Is(err, reading.ErrFormat):
		return apperr.New(apperr.Conflict, "not_mbox", "The file is not an mbox file: it does not begin with a line From.",
			"If it is one mail, name the format message/rfc822.")
	}
	return unavailable("read the upload", err)
}

// found is one mail of a batch and what became of it.
type found struct {
	index int64
	raw   []byte
	err   error // why it was not taken
	is    inbox.Imported
}

// bringIn takes the mails that no earlier run has taken.
func (g *importing) bringIn(ctx context.Context) error {
	body, err := g.open(ctx)
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // read only
	mails, at := g.reader(body), int64(0)
	for over := false; !over; {
		var batch []*found
		bytes := 0
		for len(batch) < importBatch && bytes < importMemory {
			raw, err := mails.Next()
			if errors.Is(err, io.EOF) {
				over = true
				break
			}
			if err := g.readable(err); err != nil {
				return err
			}
			if at++; at <= g.state.Next {
				continue
			}
			bytes += len(raw)
			f := &found{index: at - 1, raw: raw}
			if err != nil {
				f.err = apperr.New(apperr.TooLarge, codeTooLarge, "")
			}
			batch = append(batch, f)
		}
		if err := g.take(ctx, batch, over); err != nil {
			return err
		}
	}
	return nil
}

// take brings in a batch and saves how far the job is, often enough.
func (g *importing) take(ctx context.Context, batch []*found, over bool) error {
	copies := map[[32]byte]bool{}
	var wait sync.WaitGroup
	var late []*found // equal to one of this very batch: they wait for it
	for _, f := range batch {
		if f.err != nil {
			continue
		}
		sum := sha256.Sum256(f.raw)
		if copies[sum] {
			late = append(late, f)
			continue
		}
		copies[sum] = true
		wait.Go(func() { g.one(ctx, f) })
	}
	wait.Wait()
	for _, f := range late {
		g.one(ctx, f)
	}
	if err := ctx.Err(); err != nil {
		return err //nolint:wrapcheck // the context's
	}
	for _, f := range batch {
		if err := g.note(f); err != nil {
			return errors.Join(err, g.save(ctx))
		}
	}
	g.state.Over = over
	soon := g.job.Soon(ctx)
	if !over && !soon && g.state.dirty < importSaves {
		return nil
	}
	if err := g.save(ctx); err != nil {
		return err
	}
	if soon && !over {
		return ErrMore
	}
	return nil
}

func (g *importing) save(ctx context.Context) error {
	g.state.dirty = 0
	return g.job.Save(ctx, g.state.Next, g.state.Total, g.state)
}

// one takes one mail and has it processed here and now. From the moment that its row is in the outbox it is taken, whatever the
// processing says: it will be done again.
func (g *importing) one(ctx context.Context, f *found) {
	f.is, f.err = g.deps.Intake.Import(ctx, inbox.ImportedMail{
		To: g.to, Raw: f.raw, Source: g.job.Job.ID + "/" + strconv.FormatInt(f.index, 10),
		ReceivedAt: g.deps.Dated(f.raw, g.job.Job.CreatedAt), Quiet: !g.params.Notify,
	})
	f.raw = nil
	if f.err != nil || f.is.Intake == "" {
		return
	}
	if err := g.worker.Handle(ctx, f.is.Intake, 1); err != nil {
		g.worker.deps.Logger.Warn("pipeline: imported mail is left to the outbox", slog.String("email", f.is.Email), slog.String("error", err.Error()))
	}
}

// note adds what became of one mail to the result. An error is not the mail's fault: it ends the run in front of the mail.
func (g *importing) note(f *found) error {
	r := &g.state.Found
	switch e := apperr.From(f.err); {
	case f.err == nil && f.is.Duplicate:
		r.Duplicates++
	case f.err == nil:
		r.Imported++
		if len(r.Emails) < importNamed {
			r.Emails = append(r.Emails, f.is.Email)
		}
	case e.Kind == apperr.Invalid, e.Kind == apperr.TooLarge:
		r.Refused++
		if len(r.Errors) < importNamed {
			r.Errors = append(r.Errors, inbox.ImportError{Index: f.index, Code: e.Name()})
		}
	default:
		return fmt.Errorf("mail %d of %s: %w", f.index, g.upload.ID, f.err)
	}
	g.state.Next, g.state.dirty = f.index+1, g.state.dirty+1
	return nil
}

// uploadGrace is how long after its time an upload is removed: two processes may have different clocks, and one may have just begun to
// read it.
const uploadGrace = 10 * time.Minute

// SweepUploads removes what is left of uploads whose time is over, at most limit of them, and tells how many it removed.
func SweepUploads(ctx context.Context, uploads Uploads, blobs Blobs, now time.Time, limit int) (int, error) {
	list, err := uploads.ExpiredUploads(ctx, now.Add(-uploadGrace), limit)
	if err != nil {
		return 0, fmt.Errorf("expired uploads: %w", err)
	}
	for i, u := range list {
		if err := dropUpload(ctx, uploads, blobs, u); err != nil {
			return i, err
		}
	}
	return len(list), nil
}

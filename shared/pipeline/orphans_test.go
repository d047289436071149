package pipeline_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/blob"
	"github.com/buzon-mail/buzon/shared/blob/dir"
	bucket "github.com/buzon-mail/buzon/shared/blob/s3"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/pipeline"
	"github.com/buzon-mail/buzon/shared/testkit/standin"
)

// mortal is a blob store whose process can be killed, and that knows every key that it was ever given.
type mortal struct {
	blob.Store
	*killer
	given sync.Map
}

func (m *mortal) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	m.given.Store(key, true)
	return m.call(func() error { return m.Store.Put(ctx, key, r, size) })
}

func (m *mortal) Get(ctx context.Context, key string, most int64) (data []byte, err error) {
	err = m.call(func() error { data, err = m.Store.Get(ctx, key, most); return err })
	return data, err
}

func (m *mortal) Delete(ctx context.Context, key string) error {
	return m.call(func() error { return m.Store.Delete(ctx, key) })
}

// kept are the keys that hold something.
func (m *mortal) kept(t testing.TB) (keys []string) {
	t.Helper()
	m.given.Range(func(k, _ any) bool {
		if _, err := m.Store.Get(context.Background(), k.(string), 1<<30); err == nil {
			keys = append(keys, k.(string))
		}
		return true
	})
	slices.Sort(keys)
	return keys
}

var blobEngines = map[string]func(t testing.TB, clock func() time.Time) blob.Store{ //nolint:gochecknoglobals // constant
	"dir": func(t testing.TB, _ func() time.Time) blob.Store {
		t.Helper()
		s, err := dir.Open(filepath.Join(t.TempDir(), "blobs"), dir.Options{NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		return s
	},
	"s3": func(t testing.TB, clock func() time.Time) blob.Store {
		t.Helper()
		aws, err := standin.New(t.Context(), clock, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := bucket.New(bucket.Options{AWS: aws.Config(), Bucket: standin.Bucket, PathStyle: true, Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		return s
	},
}

// town is an estate on a blob engine, with imports.
type town struct {
	*estate
	kept *mortal
}

func newTown(t testing.TB, make func(testing.TB, func() time.Time) blob.Store) *town {
	t.Helper()
	e := newEstate(t, engines["embedded"])
	w := &town{estate: e, kept: &mortal{Store: make(t, e.now), killer: e.rows.killer}}
	w.rewire()
	return w
}

func (w *town) rewire() {
	w.t.Helper()
	var err error
	w.store, err = inboxstore.New(w.rows, w.now)
	w.must(err)
	log := slog.New(slog.DiscardHandler)
	w.intake, err = pipeline.NewIntake(pipeline.IntakeDeps{
		Recipients: w.store, Outbox: w.store, Blobs: w.kept, Queue: silent{}, Logger: log, Clock: w.now, Stored: w.kept, Holding: w.store, Known: w.store,
	}, pipeline.IntakeOptions{})
	w.must(err)
	w.worker, err = pipeline.NewWorker(pipeline.WorkerDeps{
		Outbox: w.store, Mails: w.store, Blobs: w.kept, Queue: silent{}, Parse: parseLetter, Logger: log, Clock: w.now, Senders: w.store,
		Jobs: w.store, Reprocess: w.store,
	}, pipeline.WorkerOptions{})
	w.must(err)
}

// sweep runs retention until nothing is due.
func (w *town) sweep() {
	w.t.Helper()
	r, err := pipeline.NewRetention(pipeline.RetentionDeps{Store: w.store, Blobs: w.kept, Logger: slog.New(slog.DiscardHandler), Clock: w.now}, pipeline.RetentionOptions{})
	w.must(err)
	for range 50 {
		w.must(r.Run(w.t.Context()))
		if due, err := w.store.PurgeDue(w.t.Context(), w.now(), 1); err != nil || len(due) == 0 {
			w.must(err)
			return
		}
	}
	w.t.Fatal("something stays due")
}

// named are the keys that rows name: of mails, attachments, bodies, and intakes that are to be fanned out.
func (w *town) named() map[string]bool {
	w.t.Helper()
	out := map[string]bool{}
	add := func(text string) {
		var row struct {
			RawKey  string `json:"raw_key"`
			BodyKey string `json:"body_key"`
			BlobKey string `json:"blob_key"`
			Intake  *struct {
				RawKey string `json:"raw_key"`
			} `json:"intake"`
		}
		if json.NewDecoder(strings.NewReader(text)).Decode(&row) != nil {
			return
		}
		for _, k := range []string{row.RawKey, row.BodyKey, row.BlobKey} {
			out[k] = true
		}
		if row.Intake != nil {
			out[row.Intake.RawKey] = true
		}
	}
	for _, text := range w.rows.rows(w.t) {
		add(text)
	}
	delete(out, "")
	return out
}

func (w *town) check(step string) {
	w.t.Helper()
	named, kept := w.named(), w.kept.kept(w.t)
	for _, k := range kept {
		if !named[k] {
			w.t.Errorf("%s: no row names %s", step, k)
		}
	}
	for k := range named {
		if !slices.Contains(kept, k) {
			w.t.Errorf("%s: %s is named and gone", step, k)
		}
	}
}

// acts are what a process may be killed in.
func (w *town) acts(r *rand.Rand, n int) []func() {
	raw, err := json.Marshal(note{Subject: fmt.Sprint("mail ", r.IntN(4)), ID: fmt.Sprint("id", r.IntN(4)), Files: []string{"a.pdf"}, Large: r.IntN(3) == 0})
	w.must(err)
	raw = append([]byte("Subject: x\n"), raw...)
	to := []inbox.Recipient{w.box("kept@acme.test"), w.box("too@acme.test")}[:1+r.IntN(2)]
	ctx := w.t.Context()
	return []func(){
		func() { _, _ = w.intake.Accept(ctx, inbox.Incoming{Body: bytes.NewReader(raw), Recipients: to}) },
		func() {
			_, _ = w.intake.Import(ctx, inbox.ImportedMail{To: to[0], Raw: raw, Source: fmt.Sprint("file", n%3), ReceivedAt: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)})
		},
		func() {
			ids, _ := w.store.Pending(ctx, w.now().Add(time.Hour), 20)
			for _, id := range ids {
				_ = w.worker.Handle(ctx, id, 1)
			}
		},
		func() {
			mails, _, err := w.store.Emails(ctx, inbox.EmailRange{Workspace: to[0].Workspace, Limit: 5})
			if err != nil || len(mails) == 0 {
				return
			}
			_, _ = w.store.UpdateEmail(ctx, to[0].Workspace, mails[r.IntN(len(mails))].ID, inbox.Act{}, func(e *inbox.Email) error {
				e.DeletedAt, e.Version = w.now(), e.Version+1
				return nil
			})
		},
		func() {
			p, err := pipeline.NewRetention(pipeline.RetentionDeps{Store: w.store, Blobs: w.kept, Logger: slog.New(slog.DiscardHandler), Clock: w.now}, pipeline.RetentionOptions{Lanes: 1})
			w.must(err)
			_ = p.Run(ctx)
		},
	}
}

// Whatever a process is killed in, in whatever order: two hours later, and with the outbox done, no bytes are left that no row names, and
// none are gone that one does.
func TestNoBytesWithoutARow(t *testing.T) {
	for name, engine := range blobEngines {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(12) {
				w := newTown(t, engine)
				w.organization(1, "acme", inbox.Inbox{Slug: "kept"}, inbox.Inbox{Slug: "too"})
				r := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // repeatable
				for n := range 40 {
					w.rows.arm(-1, false)
					act := w.acts(r, n)
					if r.IntN(3) > 0 {
						w.rows.arm(r.IntN(14), r.IntN(2) == 0)
					}
					act[r.IntN(len(act))]()
					w.rows.arm(-1, false)
					w.rewire() // another process
					w.wait(time.Duration(r.IntN(40)) * time.Minute)
				}
				for range 3 {
					w.acts(r, 0)[2]()
				}
				w.wait(2 * time.Hour)
				w.sweep()
				w.check(fmt.Sprint("seed ", seed))
				w.wait(40 * 24 * time.Hour)
				w.sweep()
				w.check(fmt.Sprint("seed ", seed, ", purged"))
				if t.Failed() {
					return
				}
			}
		})
	}
}

// An import that was killed before its outbox row: its bytes go after an hour, not before, and one that begins again takes them.
func TestImportThatNeverWentOn(t *testing.T) {
	begun := func(t *testing.T) (*town, inbox.ImportedMail) {
		w := newTown(t, blobEngines["dir"])
		w.organization(1, "acme", inbox.Inbox{Slug: "kept"})
		m := inbox.ImportedMail{To: w.box("kept@acme.test"), Raw: []byte("Subject: x\n\n{}"), Source: "file", ReceivedAt: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)}
		for n := range 50 { // until the last call but the outbox row
			w.rows.arm(n, false)
			_, err := w.intake.Import(t.Context(), m)
			w.rows.arm(-1, false)
			if err == nil {
				t.Fatal("never killed")
			}
			if len(w.kept.kept(t)) == 1 {
				return w, m
			}
		}
		t.Fatal("no bytes")
		return nil, m
	}
	t.Run("given up", func(t *testing.T) {
		w, m := begun(t)
		w.wait(59 * time.Minute)
		w.sweep()
		if n := len(w.kept.kept(t)); n != 1 {
			t.Fatalf("%d blobs after 59 minutes", n)
		}
		w.wait(2 * time.Minute)
		w.sweep()
		if n := len(w.kept.kept(t)); n != 0 {
			t.Fatalf("%d blobs after an hour", n)
		}
		got, err := w.intake.Import(t.Context(), m)
		if err != nil || got.Duplicate || got.Intake == "" {
			t.Errorf("the same anew: %+v, %v", got, err)
		}
		w.wait(2 * time.Hour)
		w.sweep()
		w.check("anew")
	})
	t.Run("taken by the next", func(t *testing.T) {
		w, m := begun(t)
		w.wait(59 * time.Minute)
		_, err := w.intake.Import(t.Context(), m)
		w.must(err)
		w.wait(2 * time.Hour) // nobody has fanned it out
		w.sweep()
		w.check("taken")
	})
	t.Run("too late", func(t *testing.T) {
		w, m := begun(t)
		ctx := t.Context()
		id, err := inbox.NewID("intake", w.now(), bytes.NewReader(make([]byte, 10)))
		w.must(err)
		key := w.kept.kept(t)[0]
		row := inbox.Intake{ID: id, RawKey: key, Announced: true, Imported: true, Recipients: []inbox.Delivery{{Inbox: m.To.Inbox}}}
		w.must(w.store.AnnounceIntake(ctx, row))
		w.wait(61 * time.Minute)
		w.sweep()
		if err := w.store.PutIntake(ctx, row); !apperr.Is(err, apperr.Unavailable) {
			t.Errorf("too late: %v", err)
		}
	})
}

// An intake that is writing at this moment, and one whose worker is away for weeks, keep their bytes whenever retention runs.
func TestRetentionBesideAnIntake(t *testing.T) {
	w := newTown(t, blobEngines["dir"])
	w.organization(1, "acme", inbox.Inbox{Slug: "kept"})
	for _, d := range []time.Duration{0, time.Minute, 50 * time.Minute, 30 * 24 * time.Hour} {
		in := inbox.Incoming{Body: sweeping{strings.NewReader("{}"), w, d}, Recipients: []inbox.Recipient{w.box("kept@acme.test")}}
		_, err := w.intake.Accept(t.Context(), in)
		w.must(err)
		w.wait(3 * time.Hour)
		w.sweep()
		w.check(d.String())
	}
}

// sweeping is a mail that comes slowly, while retention runs.
type sweeping struct {
	io.Reader
	w *town
	d time.Duration
}

func (s sweeping) Read(p []byte) (int, error) {
	s.w.wait(s.d)
	s.w.sweep()
	return s.Reader.Read(p)
}

// What a second reading no longer names goes with the mail: files that it did not find, and what a run stored that died.
func TestNothingOfOlderReadingsOutlivesAMail(t *testing.T) {
	e := newEstate(t, engines["embedded"])
	e.organization(1, "acme", inbox.Inbox{Slug: "kept"})
	m := e.send(note{Subject: "x", ID: "a", Files: []string{"a.pdf", "b.pdf", "c.pdf"}, Large: true}, "kept@acme.test")[0]
	params, err := json.Marshal(inbox.ReprocessParams{Stages: inbox.ReprocessStages()})
	e.must(err)
	id, err := inbox.NewID("job", e.now(), bytes.NewReader(make([]byte, 10)))
	e.must(err)
	e.must(e.store.StartJob(t.Context(), inbox.Job{
		ID: id, Organization: m.Organization, Workspace: m.Workspace, Kind: inbox.KindReprocess, Status: inbox.JobQueued, CreatedAt: e.now(),
		UpdatedAt: e.now(), ExpiresAt: e.now().Add(day), Version: 1, Target: m.ID, Params: params,
	}, inbox.Act{}))
	worker, err := pipeline.NewWorker(pipeline.WorkerDeps{
		Outbox: e.store, Mails: e.store, Blobs: e.blobs, Queue: silent{}, Logger: slog.New(slog.DiscardHandler), Clock: e.now, Jobs: e.store, Reprocess: e.store,
		Parse: func(ctx context.Context, raw []byte) (pipeline.Reading, error) {
			r, err := parseLetter(ctx, raw)
			r.Files = r.Files[:1]
			return r, err
		},
	}, pipeline.WorkerOptions{})
	e.must(err)
	e.must(worker.Handle(t.Context(), id, 1))
	if n := len(e.blobs.keys()); n != 5 { // raw, body, and three files of which one is named
		t.Fatalf("blobs %v", e.blobs.keys())
	}
	e.deleteMail(m)
	e.wait(31 * day)
	e.purge()
	if keys := e.blobs.keys(); len(keys) != 0 {
		t.Errorf("blobs %v", keys)
	}
}

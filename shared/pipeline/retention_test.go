package pipeline_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/pipeline"
	"github.com/buzon-mail/buzon/shared/store"
)

const day = 24 * time.Hour

// what is due in a full estate, and what is not.
type full struct {
	*estate
	gone, stay []inbox.Email
	dead       inbox.Recipient // a deleted inbox
	blobs      []string        // those that stay
}

// fill makes an estate in which, of everything that retention removes, something is due, beside something alike that is not.
func fill(e *estate) *full {
	e.t.Helper()
	f := &full{estate: e}
	ctx := e.t.Context()
	e.organization(1, "acme", inbox.Inbox{Slug: "kept"}, inbox.Inbox{Slug: "dead"}, inbox.Inbox{Slug: "week", Retention: 7})
	e.organization(2, "globex", inbox.Inbox{Slug: "other"})
	f.dead = e.box("dead@acme.test")
	gone := func(m ...inbox.Email) []inbox.Email { f.gone = append(f.gone, m...); return m }
	stay := func(m ...inbox.Email) []inbox.Email { f.stay = append(f.stay, m...); return m }

	// Deleted mail: of a thread that stays, with files and a large body; one that shares its bytes with another tenant's.
	root := stay(e.send(note{Subject: "Talk", ID: "a1", Files: []string{"a.pdf"}}, "kept@acme.test")...)
	for _, m := range gone(e.send(note{Subject: "Re: Talk", ID: "a2", Refs: []string{"a1", "never"}, Files: []string{"b.pdf", "c.pdf"}, Large: true}, "kept@acme.test")...) {
		e.deleteMail(m)
	}
	both := e.send(note{Subject: "Both", ID: "a3", Files: []string{"d.pdf"}}, "kept@acme.test", "other@globex.test")
	gone(both[0])
	stay(both[1])
	e.deleteMail(both[0])
	restored := stay(e.send(note{Subject: "Restored", ID: "a4"}, "kept@acme.test")...)
	e.deleteMail(restored[0])
	e.must(e.change(restored[0], func(m *inbox.Email) { m.DeletedAt = time.Time{} }))

	// A deleted inbox, with everything that an inbox can have.
	lone := gone(e.send(note{Subject: "Talk", ID: "a1", Files: []string{"e.pdf"}}, "dead@acme.test")...)
	e.must(e.change(lone[0], func(m *inbox.Email) { m.HandledAt = e.now() }))
	shared := e.send(note{Subject: "Shared", ID: "a5"}, "dead@acme.test", "kept@acme.test")
	gone(shared[0])
	stay(shared[1])
	for _, m := range gone(e.send(note{Subject: "Twice deleted", ID: "a6"}, "dead@acme.test")...) {
		e.deleteMail(m)
	}
	bad := gone(e.send(note{Bad: true}, "dead@acme.test")...)
	for _, key := range []string{"att/%s/1/0", "att/%s/1/1", "body/%s/1", "try/%s/1"} { // of a run that was killed
		text := "left"
		e.must(e.blobs.Put(ctx, fmt.Sprintf(key, strings.ToLower(bad[0].ID)), strings.NewReader(text), 4))
	}
	for _, key := range []string{"ses/one", "ses/two"} {
		raw, err := json.Marshal(note{Subject: key, ID: key})
		e.must(err)
		e.must(e.blobs.Put(ctx, key, strings.NewReader(string(raw)), int64(len(raw))))
	}
	ids, err := e.intake.AcceptStored(ctx, inbox.Stored{Source: "ses/one", Key: "ses/one", ReceivedAt: e.now(), Recipients: []inbox.Recipient{f.dead}})
	e.must(err)
	gone(e.arrived(ids[0])...)
	paused := f.dead
	paused.State = inbox.StatePaused
	_, err = e.intake.AcceptStored(ctx, inbox.Stored{Source: "ses/two", Key: "ses/two", ReceivedAt: e.now(), Recipients: []inbox.Recipient{paused}})
	e.must(err)
	for _, value := range []string{"x@spam.test", "y@spam.test"} {
		id := inbox.SenderID(f.dead.Workspace, f.dead.Inbox, inbox.KindAddress, value)
		_, err := e.store.UpdateSender(ctx, f.dead.Workspace, f.dead.Inbox, id, inbox.Act{}, func(s *inbox.AllowedSender) error {
			s.ID, s.Kind, s.Value, s.Version = id, inbox.KindAddress, value, 1
			return nil
		})
		e.must(err)
		e.store.HitSender(ctx, f.dead.Workspace, f.dead.Inbox, id)
	}
	rows, _, err := e.store.Work(ctx, inbox.WorkRange{Workspace: f.dead.Workspace, Inbox: f.dead.Inbox, At: e.now(), Limit: 1})
	e.must(err)
	e.must(e.store.Lease(ctx, rows[0], inbox.Lease{ID: "lease_1", Until: e.now().Add(time.Hour)}, inbox.Act{}))
	e.must(e.changeBox(f.dead, func(in *inbox.Inbox) { in.DeletedAt = e.now() }))

	// An inbox that keeps mail for a week.
	gone(e.send(note{Subject: "Old", ID: "a7", Files: []string{"f.pdf"}}, "week@acme.test")...)
	for _, m := range gone(e.send(note{Subject: "Old, deleted", ID: "a8"}, "week@acme.test")...) {
		e.deleteMail(m)
	}
	e.wait(28 * day)
	stay(e.send(note{Subject: "New", ID: "a9", Files: []string{"g.pdf"}}, "week@acme.test")...)
	for _, m := range stay(e.send(note{Subject: "Deleted late", ID: "b1", Files: []string{"h.pdf"}}, "kept@acme.test")...) {
		e.deleteMail(m)
	}
	e.must(e.change(root[0], func(m *inbox.Email) { m.Labels = []string{"x"} }))
	e.wait(2*day + time.Hour)
	for _, m := range f.stay {
		f.blobs = append(f.blobs, m.RawKey)
		if m.BodyKey != "" {
			f.blobs = append(f.blobs, m.BodyKey)
		}
		for i := range m.Attachments {
			f.blobs = append(f.blobs, fmt.Sprintf("att/%s/1/%d", strings.ToLower(m.ID), i))
		}
	}
	slices.Sort(f.blobs)
	f.blobs = slices.Compact(f.blobs)
	return f
}

// check finds everything gone that was due, and nothing else.
func (f *full) check(before map[string]string) {
	f.t.Helper()
	names := []string{f.dead.Inbox}
	for _, m := range f.gone {
		if !f.estate.gone(m) {
			f.t.Errorf("%s is there", m.ID)
		}
		names = append(names, m.ID, strings.ToLower(m.ID))
	}
	if left := f.traces(names...); len(left) > 0 {
		f.t.Errorf("left:\n%s", strings.Join(left, "\n"))
	}
	for _, m := range f.stay {
		now, _, err := f.store.Email(f.t.Context(), m.Workspace, m.ID, false)
		if err != nil || now.Content.Subject != m.Content.Subject {
			f.t.Errorf("%s %q: %v", m.ID, m.Content.Subject, err)
		}
	}
	if got := f.estate.blobs.keys(); !slices.Equal(got, f.blobs) {
		f.t.Errorf("blobs %v\nwant %v", got, f.blobs)
	}
	after := f.rows.rows(f.t)
	for place, data := range before {
		theirs := strings.Contains(place, "_00000000000000000000000002") && !strings.HasPrefix(place, "core due/")
		if theirs && after[place] != data {
			f.t.Errorf("another tenant's row %s: %q, was %q", place, after[place], data)
		}
	}
	for _, m := range f.stay { // found in the lists as before
		if place := "core mails/" + m.Workspace + " " + inbox.Position(m.ReceivedAt, m.ID); after[place] != before[place] {
			f.t.Errorf("%s in its list: %q, was %q", m.ID, after[place], before[place])
		}
	}
	guard := after["core address/dead@acme.test -"]
	if !strings.Contains(guard, `"deleted":true`) || strings.Contains(guard, "ws_") || !strings.Contains(guard, "org_") {
		f.t.Errorf("guard of the address: %s", guard)
	}
}

// lines are the counts that the audit tells of an inbox, over all runs.
func (f *full) lines(box string) (emails int) {
	f.t.Helper()
	events, _, err := f.store.Events(f.t.Context(), inbox.AuditRange{Workspace: f.dead.Workspace, Limit: 1000})
	f.must(err)
	for _, e := range events {
		if e.Action != "emails_purge" || !slices.Contains(e.Targets, box) {
			continue
		}
		var deleted, expired, files, size int
		if _, err := fmt.Sscanf(e.Reason, "emails: %d deleted, %d past retention_days; attachments: %d; bytes: %d", &deleted, &expired, &files, &size); err != nil {
			f.t.Errorf("reason %q", e.Reason)
		}
		if e.Actor.Type != inbox.ActorSystem || e.Actor.ID != "retention" || e.Before != "" {
			f.t.Errorf("line %+v", e)
		}
		emails += deleted + expired
	}
	return emails
}

func (f *full) checkAudit() {
	f.t.Helper()
	want := map[string]int{}
	for _, m := range f.gone {
		want[m.Inbox]++
	}
	for box, n := range want {
		if got := f.lines(box); got != n {
			f.t.Errorf("the audit tells of %d mails of %s, want %d", got, box, n)
		}
	}
}

func TestRetention(t *testing.T) {
	for name, engine := range engines {
		t.Run(name, func(t *testing.T) {
			f := fill(newEstate(t, engine))
			before := f.rows.rows(t)
			f.purge()
			f.check(before)
			f.checkAudit()
			counts, err := f.store.Counts(t.Context(), f.box("kept@acme.test").Inbox)
			f.must(err)
			if counts != (inbox.Counts{Received: 4, Processed: 3, Deleted: 1}) {
				t.Errorf("counts %+v", counts)
			}
			again := f.rows.rows(t)
			f.purge()
			if !maps.Equal(again, f.rows.rows(t)) {
				t.Error("a second run changes something")
			}
			f.wait(29 * day) // what was deleted late, and the last of the week's
			f.purge()
			if n := len(f.traces(f.stay[len(f.stay)-1].ID, f.stay[len(f.stay)-2].ID)); n != 0 {
				t.Errorf("%d rows left in the end", n)
			}
		})
	}
}

// A run is killed at each of its calls, before it or with its answer lost, and the next goes on.
func TestRetentionIsKilled(t *testing.T) {
	base := fill(newEstate(t, engines["embedded"]))
	before, snap := base.rows.rows(t), base.snapshot()
	step := 1
	if testing.Short() {
		step = 29
	}
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("answer lost %v", late), func(t *testing.T) {
			t.Parallel()
			kills := 0
			for n := 0; ; n += step {
				f := *base
				f.estate = snap.estate(t)
				f.rows.arm(n, late)
				err := f.retention(pipeline.RetentionOptions{Lanes: 1}).Run(t.Context())
				dead := f.rows.left < 0
				f.rows.arm(-1, false)
				if !dead {
					f.must(err)
					break
				}
				kills++
				f.wire()
				f.purge()
				f.check(before)
				if !late { // a lost answer may leave the line of the killed run one mail short
					f.checkAudit()
				}
				f.must(f.close())
				if t.Failed() {
					t.Fatalf("killed at call %d: %v", n, err)
				}
			}
			if kills < 200/step {
				t.Errorf("killed only %d times", kills)
			}
		})
	}
}

// Two processes at once do it once.
func TestRetentionTwice(t *testing.T) {
	f := fill(newEstate(t, engines["embedded"]))
	before := f.rows.rows(t)
	var team sync.WaitGroup
	for range 3 {
		r := f.retention(pipeline.RetentionOptions{})
		team.Go(func() {
			if err := r.Run(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	team.Wait()
	f.purge()
	f.check(before)
	f.checkAudit()
}

// A run does no more than it may, and the following ones the rest.
func TestRetentionIsBounded(t *testing.T) {
	e := newEstate(t, engines["embedded"])
	e.organization(1, "acme", inbox.Inbox{Slug: "kept"}, inbox.Inbox{Slug: "dead"})
	for i := range 1000 {
		to := "dead@acme.test"
		if i%2 == 0 {
			to = "kept@acme.test"
		}
		for _, m := range e.send(note{Subject: "x", ID: fmt.Sprint(i)}, to) {
			if i%2 == 0 {
				e.deleteMail(m)
			}
		}
	}
	dead := e.box("dead@acme.test")
	e.must(e.changeBox(dead, func(in *inbox.Inbox) { in.DeletedAt = e.now() }))
	e.wait(31 * day)
	left := func() int { return len(e.blobs.keys()) }
	runs := 0
	for last := left(); last > 0; runs++ {
		r := e.retention(pipeline.RetentionOptions{Limit: 100, Chunk: 20})
		calls := e.rows.calls
		e.must(r.Run(t.Context()))
		if n := last - left(); n > 100 {
			t.Fatalf("%d mails in one run", n)
		}
		if n := e.rows.calls - calls; n > 100*40 {
			t.Fatalf("%d calls in one run", n)
		}
		if last = left(); runs > 60 {
			t.Fatalf("%d mails after %d runs", last, runs)
		}
	}
	if runs < 20 { // a mail and its bytes are two things
		t.Errorf("done in %d runs", runs)
	}
	e.purge()
	if rows := e.traces(dead.Inbox); len(rows) != 0 {
		t.Errorf("left: %v", rows)
	}
}

// What can't be done is put off and keeps nothing else.
func TestRetentionPutsOff(t *testing.T) {
	f := fill(newEstate(t, engines["embedded"]))
	key := ""
	for _, m := range f.gone {
		if m.BodyKey == "" && m.RawOwn { // the last of its trash
			key = m.RawKey
		}
	}
	broken := &brokenShelf{shelf: f.estate.blobs}
	broken.key.Store(&key)
	r, err := pipeline.NewRetention(pipeline.RetentionDeps{Store: f.store, Blobs: broken, Logger: slog.New(slog.DiscardHandler), Clock: f.now}, pipeline.RetentionOptions{Lanes: 1})
	f.must(err)
	for range 5 {
		_ = r.Run(t.Context())
	}
	if got := f.estate.blobs.keys(); len(got) != len(f.blobs)+1 || !slices.Contains(got, key) {
		t.Errorf("blobs %v, want %v and the broken %s", got, f.blobs, key)
	}
	f.must(r.Run(t.Context())) // nothing is due
	f.wait(61 * time.Minute)
	f.purge()
	if got := f.estate.blobs.keys(); !slices.Equal(got, f.blobs) {
		t.Errorf("%d blobs in the end, want %d", len(got), len(f.blobs))
	}
}

type brokenShelf struct {
	*shelf
	key atomic.Pointer[string]
}

func (b *brokenShelf) Delete(ctx context.Context, key string) error {
	if key == *b.key.Load() {
		return errCut
	}
	return b.shelf.Delete(ctx, key)
}

// The 1,001st inbox can be deleted again once the first ones are purged; their slugs are free, their addresses never are.
func TestRetentionFreesTheHidden(t *testing.T) {
	e := newEstate(t, engines["embedded"])
	e.organization(1, "acme", inbox.Inbox{Slug: "last"})
	ctx := t.Context()
	last := e.box("last@acme.test")
	for i := range inboxstore.MaxHidden {
		in := inbox.Inbox{
			ID: fmt.Sprintf("inbox_%026d", i), Organization: last.Organization, Workspace: last.Workspace, Slug: fmt.Sprintf("s%d", i),
			Address: fmt.Sprintf("s%d@acme.test", i), State: inbox.StateActive, Version: 1,
		}
		e.must(e.store.CreateInbox(ctx, in, inbox.Act{}))
		e.must(e.changeBox(inbox.Recipient{Workspace: in.Workspace, Inbox: in.ID}, func(in *inbox.Inbox) { in.DeletedAt = e.now() }))
	}
	drop := func() error { return e.changeBox(last, func(in *inbox.Inbox) { in.DeletedAt = e.now() }) }
	if err := drop(); !errors.Is(err, inbox.ErrTooManyDeleted) {
		t.Fatalf("the 1,001st: %v", err)
	}
	e.wait(30 * day)
	e.purge()
	e.must(drop())
	hidden, err := e.store.Hidden(ctx, last.Workspace)
	if err != nil || len(hidden) != 1 {
		t.Errorf("%d hidden, %v", len(hidden), err)
	}
	anew := inbox.Inbox{
		ID: "inbox_00000000000000000000009999", Organization: last.Organization, Workspace: last.Workspace, Slug: "s1", Address: "s1@acme.test", Version: 1,
	}
	if err := e.store.CreateInbox(ctx, anew, inbox.Act{}); !errors.Is(err, inbox.ErrAddressTaken) {
		t.Errorf("an address of before: %v", err)
	}
	anew.Address = "anew@acme.test"
	e.must(e.store.CreateInbox(ctx, anew, inbox.Act{}))
}

// At the moment at which its time is over a mail is restored and purged: one of the two happens, wholly.
func TestRestoreRaces(t *testing.T) {
	e := newEstate(t, engines["embedded"])
	e.organization(1, "acme", inbox.Inbox{Slug: "kept"}, inbox.Inbox{Slug: "dead"})
	var mails []inbox.Email
	for i := range 40 {
		m := e.send(note{Subject: "x", ID: fmt.Sprint(i), Files: []string{"a.pdf"}}, "kept@acme.test")[0]
		e.deleteMail(m)
		mails = append(mails, m)
	}
	dead := e.box("dead@acme.test")
	inside := e.send(note{Subject: "y", ID: "y", Files: []string{"b.pdf"}}, "dead@acme.test")[0]
	e.must(e.changeBox(dead, func(in *inbox.Inbox) { in.DeletedAt = e.now() }))
	e.wait(30 * day)
	var team sync.WaitGroup
	won := make([]bool, len(mails))
	boxWon := false
	team.Go(func() {
		if err := e.retention(pipeline.RetentionOptions{}).Run(t.Context()); err != nil {
			t.Error(err)
		}
	})
	team.Go(func() {
		err := e.changeBox(dead, func(in *inbox.Inbox) { in.DeletedAt = time.Time{} })
		if boxWon = err == nil; err != nil && !apperr.Is(err, apperr.NotFound) {
			t.Error(err)
		}
	})
	team.Go(func() {
		for i, m := range mails {
			err := e.change(m, func(m *inbox.Email) { m.DeletedAt = time.Time{} })
			if won[i] = err == nil; err != nil && !apperr.Is(err, apperr.NotFound) {
				t.Error(err)
			}
		}
	})
	team.Wait()
	e.purge()
	whole := func(m inbox.Email, there bool) {
		blobs := slices.DeleteFunc(e.blobs.keys(), func(k string) bool { return k != m.RawKey && !strings.Contains(k, strings.ToLower(m.ID)) })
		rows, _, err := e.store.Attachments(t.Context(), inbox.AttachmentRange{
			Workspace: m.Workspace, Inbox: m.Inbox, Email: inbox.Position(m.ReceivedAt, m.ID), Limit: 10,
		})
		if want := map[bool]int{true: 2}[there]; e.gone(m) == there || len(blobs) != want || len(rows) != want/2 || err != nil {
			t.Errorf("%s restored %v: blobs %v, %d attachments, %v", m.ID, there, blobs, len(rows), err)
		}
		if left := e.traces(m.ID); !there && len(left) > 0 {
			t.Errorf("left of a purged one: %v", left)
		}
	}
	for i, m := range mails {
		whole(m, won[i])
	}
	whole(inside, boxWon)
}

// The bytes of a mail whose outbox row never came are removed, not before and not when it came in time.
func TestRetentionOfRefusedMail(t *testing.T) {
	e := newEstate(t, engines["embedded"])
	e.organization(1, "acme", inbox.Inbox{Slug: "kept"}, inbox.Inbox{Slug: "too"})
	ctx := t.Context()
	in := func(id string, mails ...string) inbox.Intake {
		row := inbox.Intake{ID: "intake_" + id, ReceivedAt: e.now(), RawKey: "raw/" + strings.ToLower(id), Announced: true}
		for i, m := range mails {
			r := e.box([]string{"kept@acme.test", "too@acme.test"}[i])
			row.Recipients = append(row.Recipients, inbox.Delivery{Email: m, Organization: r.Organization, Workspace: r.Workspace, Inbox: r.Inbox, Address: r.Address})
		}
		e.must(e.store.AnnounceIntake(ctx, row))
		e.must(e.blobs.Put(ctx, row.RawKey, strings.NewReader("{}"), 2))
		return row
	}
	lost, both := in("01A", "email_01A"), in("01B", "email_01B", "email_01C")
	intime := in("01D", "email_01D")
	e.wait(59 * time.Minute)
	e.purge()
	if n := len(e.blobs.keys()); n != 3 {
		t.Fatalf("%d blobs after 59 minutes", n)
	}
	e.must(e.store.PutIntake(ctx, intime))
	e.must(e.store.PutIntake(ctx, intime)) // its answer was lost
	e.wait(2 * time.Minute)
	e.purge()
	if keys := e.blobs.keys(); !slices.Equal(keys, []string{intime.RawKey}) {
		t.Errorf("blobs %v", keys)
	}
	for _, late := range []inbox.Intake{lost, both} {
		if err := e.store.PutIntake(ctx, late); !apperr.Is(err, apperr.Unavailable) {
			t.Errorf("too late: %v", err)
		}
	}
	if left := e.traces(lost.ID, both.ID, both.RawKey, "email_01A", "email_01B"); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// A notice of SES that comes again when its mail was purged is done; one that names an inbox more finds the bytes gone.
func TestNoticeAfterPurge(t *testing.T) {
	e := newEstate(t, engines["embedded"])
	e.organization(1, "acme", inbox.Inbox{Slug: "kept"}, inbox.Inbox{Slug: "more"}, inbox.Inbox{Slug: "other"})
	ctx := t.Context()
	e.must(e.blobs.Put(ctx, "ses/one", strings.NewReader(`{"ID":"a"}`), 10))
	notice := func(to ...string) inbox.Stored {
		s := inbox.Stored{Source: "ses/one", Key: "ses/one", ReceivedAt: time.Date(2026, 3, 1, 11, 0, 0, 0, time.UTC)}
		for _, a := range to {
			s.Recipients = append(s.Recipients, e.box(a+"@acme.test"))
		}
		return s
	}
	ids, err := e.intake.AcceptStored(ctx, notice("kept"))
	e.must(err)
	first := e.arrived(ids[0])[0]
	ids, err = e.intake.AcceptStored(ctx, notice("kept", "more"))
	e.must(err)
	second := e.arrived(ids[0])
	for _, m := range append(second, first) {
		if e.gone(m) {
			t.Fatalf("%s is missing", m.ID)
		}
	}
	e.deleteMail(first)
	e.wait(30 * day)
	e.purge()
	if !slices.Contains(e.blobs.keys(), "ses/one") {
		t.Fatal("the bytes of a mail that is left are gone")
	}
	for _, m := range second {
		if m.Inbox != first.Inbox {
			e.deleteMail(m)
		}
	}
	e.wait(30 * day)
	e.purge()
	if n := len(e.blobs.keys()); n != 0 {
		t.Fatalf("blobs %v", e.blobs.keys())
	}
	if ids, err := e.intake.AcceptStored(ctx, notice("more", "kept")); err != nil || len(ids) != 0 {
		t.Errorf("the same again: %v, %v", ids, err)
	}
	if ids, err := e.intake.AcceptStored(ctx, notice("other")); !apperr.Is(err, apperr.Conflict) {
		t.Errorf("one more: %v, %v", ids, err)
	}
}

// Exact copies leave nothing behind, whoever shares their bytes.
func TestRetentionOfDuplicates(t *testing.T) {
	e := newEstate(t, engines["embedded"])
	e.organization(1, "acme", inbox.Inbox{Slug: "kept"}, inbox.Inbox{Slug: "too"})
	e.send(note{Subject: "x", ID: "a"}, "kept@acme.test")
	raw, err := json.Marshal(note{Subject: "x", ID: "a"})
	e.must(err)
	for _, to := range [][]string{{"kept@acme.test"}, {"kept@acme.test", "too@acme.test"}} {
		in := inbox.Incoming{Body: strings.NewReader(string(raw))}
		for _, a := range to {
			in.Recipients = append(in.Recipients, e.box(a))
		}
		e.wait(time.Second)
		_, err := e.intake.Accept(t.Context(), in)
		e.must(err)
		e.drain()
	}
	e.wait(2 * time.Hour)
	e.purge()
	if n := len(e.blobs.keys()); n != 2 { // the first one's, and what the other inbox got
		t.Errorf("blobs %v", e.blobs.keys())
	}
}

// A mail that is read again while it is purged: the job says that it is gone, and leaves nothing.
func TestReprocessOfPurged(t *testing.T) {
	e := newEstate(t, engines["embedded"])
	e.organization(1, "acme", inbox.Inbox{Slug: "week", Retention: 7})
	m := e.send(note{Subject: "x", ID: "a", Files: []string{"a.pdf", "b.pdf"}, Large: true}, "week@acme.test")[0]
	id, err := inbox.NewID("job", e.now(), rand.Reader)
	e.must(err)
	params, err := json.Marshal(inbox.ReprocessParams{Stages: inbox.ReprocessStages()})
	e.must(err)
	e.wait(8 * day)
	e.must(e.store.StartJob(t.Context(), inbox.Job{
		ID: id, Organization: m.Organization, Workspace: m.Workspace, Kind: inbox.KindReprocess, Status: inbox.JobQueued, CreatedAt: e.now(),
		UpdatedAt: e.now(), ExpiresAt: e.now().Add(day), Version: 1, Target: m.ID, Params: params,
	}, inbox.Act{}))
	once := sync.Once{}
	worker, err := pipeline.NewWorker(pipeline.WorkerDeps{
		Outbox: e.store, Mails: e.store, Blobs: e.blobs, Queue: silent{}, Logger: slog.New(slog.DiscardHandler), Clock: e.now, Jobs: e.store, Reprocess: e.store,
		Parse: func(ctx context.Context, raw []byte) (pipeline.Reading, error) {
			once.Do(e.purge)
			return parseLetter(ctx, raw)
		},
	}, pipeline.WorkerOptions{})
	e.must(err)
	e.must(worker.Handle(t.Context(), id, 1))
	j, err := e.store.Job(t.Context(), m.Workspace, id)
	e.must(err)
	if j.Status != inbox.JobFailed || j.Error.Kind != "not_found" {
		t.Errorf("%s %+v", j.Status, j.Error)
	}
	if keys := e.blobs.keys(); len(keys) != 0 {
		t.Errorf("blobs %v", keys)
	}
}

// Mail that was accepted for an inbox and comes to its worker when that is purged goes with it.
func TestRetentionOfOrphans(t *testing.T) {
	e := newEstate(t, engines["embedded"])
	e.organization(1, "acme", inbox.Inbox{Slug: "dead"})
	dead := e.box("dead@acme.test")
	_, err := e.intake.Accept(t.Context(), inbox.Incoming{Recipients: []inbox.Recipient{dead}, Body: strings.NewReader(`{"ID":"a","Files":["x"]}`)})
	e.must(err)
	e.must(e.changeBox(dead, func(in *inbox.Inbox) { in.DeletedAt = e.now() }))
	e.wait(31 * day)
	e.purge()
	e.drain()
	e.wait(2 * time.Hour)
	e.purge()
	if keys := e.blobs.keys(); len(keys) != 0 {
		t.Errorf("blobs %v", keys)
	}
	if rows, _, err := e.store.Emails(t.Context(), inbox.EmailRange{Workspace: dead.Workspace, Deleted: true, Limit: 10}); err != nil || len(rows) != 0 {
		t.Errorf("%d mails, %v", len(rows), err)
	}
}

// A deleted mail is shown until when it can be restored, and that is when it goes.
func TestPurgeAtIsTrue(t *testing.T) {
	for name, c := range map[string]struct {
		keep int // days
		age  time.Duration
		want time.Duration // after the deletion
	}{
		"kept for ever":                {0, 90 * day, 30 * day},
		"kept for longer":              {60, day, 30 * day},
		"the inbox keeps it no longer": {20, 15 * day, 5 * day},
		"too old already":              {20, 20*day - time.Minute, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEstate(t, engines["embedded"])
			e.organization(1, "acme", inbox.Inbox{Slug: "kept", Retention: c.keep})
			m := e.send(note{Subject: "x", ID: "a"}, "kept@acme.test")[0]
			e.wait(c.age)
			e.deleteMail(m)
			now, _, err := e.store.Email(t.Context(), m.Workspace, m.ID, false)
			e.must(err)
			rows, _, err := e.store.Emails(t.Context(), inbox.EmailRange{Workspace: m.Workspace, Deleted: true, Limit: 2})
			e.must(err)
			if want := e.now().Add(c.want); !now.PurgesAt().Equal(want) || len(rows) != 1 || !rows[0].PurgesAt().Equal(want) {
				t.Fatalf("purge_at %v, want %v", now.PurgesAt(), want)
			}
			e.wait(c.want - time.Millisecond)
			e.purge()
			if e.gone(m) {
				t.Error("it went early")
			}
			e.wait(time.Millisecond)
			e.purge()
			if !e.gone(m) {
				t.Error("it is there still")
			}
		})
	}
}

// A retention that is set, lowered or raised is looked at at once, and a raise that comes first keeps the mail.
func TestRetentionChanges(t *testing.T) {
	e := newEstate(t, engines["embedded"])
	e.organization(1, "acme", inbox.Inbox{Slug: "kept"})
	box := e.box("kept@acme.test")
	keep := func(days int) { e.must(e.changeBox(box, func(in *inbox.Inbox) { in.Retention = days })) }
	old := e.send(note{Subject: "x", ID: "a"}, "kept@acme.test")[0]
	e.wait(10 * day)
	young := e.send(note{Subject: "y", ID: "b"}, "kept@acme.test")[0]
	e.purge()
	keep(11)
	e.purge()
	keep(5)
	keep(20)
	e.purge()
	if e.gone(old) {
		t.Fatal("gone although the retention was raised in time")
	}
	keep(5)
	e.purge()
	if !e.gone(old) || e.gone(young) {
		t.Fatalf("old gone %v, young gone %v", e.gone(old), e.gone(young))
	}
	keep(0)
	e.wait(90 * day)
	e.purge()
	if e.gone(young) {
		t.Fatal("gone although mail is kept for ever")
	}
	if rows := e.traces("retention/"); len(rows) > 0 {
		t.Errorf("looked at for nothing: %v", rows)
	}
}

func TestRetentionNeedsAll(t *testing.T) {
	if _, err := pipeline.NewRetention(pipeline.RetentionDeps{}, pipeline.RetentionOptions{}); err == nil {
		t.Error("made of nothing")
	}
}

var _ store.Engine = ledger{}

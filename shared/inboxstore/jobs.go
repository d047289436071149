package inboxstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

func jobKey(ws, id string) store.Key { return key("jobs/"+ws, id) }

// creatorPartition is a digest of who started the jobs in it, for a subject may be any text.
func creatorPartition(ws, subject string) string {
	return "jobs/" + ws + "/by/" + inbox.ShortDigest(sha256.Sum256([]byte(subject)))
}

// jobRows writes a job and its row among those of its creator, which every list of theirs reads: without what only the handler needs.
func (b *batch) jobRows(j inbox.Job, read uint64) {
	cond := store.Absent()
	if read > 0 {
		cond = store.RevisionIs(read)
	}
	b.expiring(jobKey(j.Workspace, j.ID), read+1, j, cond, j.ExpiresAt)
	listed := j
	listed.Params, listed.State = nil, nil
	b.expiring(key(creatorPartition(j.Workspace, j.Creator.Subject), j.ID), 1, listed, store.Condition{}, j.ExpiresAt)
}

// expiring writes a row that goes by itself.
func (b *batch) expiring(k store.Key, revision uint64, v any, cond store.Condition, until time.Time) {
	item, err := store.Encode(k, format, revision, v)
	if err != nil && b.err == nil {
		b.err = err
	}
	item.Expires = until
	b.ops = append(b.ops, store.Put(item, cond))
}

// startJob stores a new job with its outbox row, in the transaction of whatever it is for: three rows.
func (b *batch) startJob(j inbox.Job) {
	b.jobRows(j, 0)
	b.set(outboxKey(j.ID), outboxRow{Workspace: j.Workspace})
}

// StartJob implements inbox.JobStore.
func (s *Store) StartJob(ctx context.Context, j inbox.Job, act inbox.Act) error {
	return s.insert(ctx, "start job "+j.ID, act, func(b *batch) {
		b.startJob(j)
		b.act(act, j.ID, nil, j, targetsOf(j)...)
	})
}

func targetsOf(j inbox.Job) []string {
	if j.Target == "" {
		return nil
	}
	return []string{j.Target}
}

// StartEmailJob implements inbox.EmailStore.
func (s *Store) StartEmailJob(
	ctx context.Context, ws, id string, act inbox.Act, start func(inbox.Email) (inbox.Job, error),
) (inbox.Job, error) {
	for range attempts {
		row, revision, err := s.mail(ctx, ws, id)
		if err != nil {
			return inbox.Job{}, err
		}
		if err := s.unused(ctx, act); err != nil {
			return inbox.Job{}, err
		}
		j, err := start(row.Email)
		if err != nil {
			return inbox.Job{}, err
		}
		var b batch
		b.startJob(j)
		b.check(mailKey(ws, id, docSort), store.RevisionIs(revision))
		b.act(act, j.ID, nil, j, targetsOf(j)...)
		err = s.commit(ctx, &b)
		if err == nil {
			return j, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return inbox.Job{}, failed("start job "+j.ID, err)
		}
	}
	return inbox.Job{}, inbox.Busy()
}

// Job implements inbox.JobStore.
func (s *Store) Job(ctx context.Context, ws, id string) (inbox.Job, error) {
	j, _, err := s.job(ctx, ws, id)
	return j, err
}

func (s *Store) job(ctx context.Context, ws, id string) (inbox.Job, uint64, error) {
	j, revision, err := get[inbox.Job](ctx, s, jobKey(ws, id))
	if err != nil {
		return inbox.Job{}, 0, missing("job "+id, err, inbox.NoJob())
	}
	return j, revision, nil
}

// Jobs implements inbox.JobStore.
func (s *Store) Jobs(ctx context.Context, r inbox.JobRange) ([]inbox.Job, string, error) {
	partition := jobKey(r.Workspace, "").Partition
	if r.Creator != "" {
		partition = creatorPartition(r.Workspace, r.Creator)
	}
	page, err := s.engine.Query(ctx, store.Query{
		Table: store.Core, Partition: partition, From: r.From, After: r.After, Limit: r.Limit, Descending: true,
	})
	if err != nil {
		return nil, "", failed("jobs", err)
	}
	rows, err := decodeAll[inbox.Job](page.Items)
	for i := range rows {
		rows[i].Params, rows[i].State = nil, nil
	}
	return rows, page.Next, wrapIf("jobs", err)
}

// UpdateJob implements inbox.JobStore.
func (s *Store) UpdateJob(ctx context.Context, ws, id string, act inbox.Act, change func(*inbox.Job) error) (inbox.Job, error) {
	for range attempts {
		old, revision, err := s.job(ctx, ws, id)
		if err != nil {
			return inbox.Job{}, err
		}
		if err := s.unused(ctx, act); err != nil {
			return inbox.Job{}, err
		}
		next := old
		if err := change(&next); err != nil {
			return inbox.Job{}, err
		}
		if same, err := equalJobs(old, next); err != nil || same {
			return old, err
		}
		var b batch
		next = b.changeJob(next, revision)
		b.act(act, id, old, next)
		err = s.commit(ctx, &b)
		if err == nil {
			return next, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return inbox.Job{}, failed("update job "+id, err)
		}
	}
	return inbox.Job{}, inbox.Busy()
}

// changeJob writes a job over the row that was read with this revision; one that is over leaves the outbox.
func (b *batch) changeJob(next inbox.Job, read uint64) inbox.Job {
	next.Version++
	b.jobRows(next, read)
	if next.Status.Over() {
		b.drop(outboxKey(next.ID), store.Condition{})
	}
	return next
}

func equalJobs(a, b inbox.Job) (bool, error) {
	x, err := json.Marshal(a)
	if err != nil {
		return false, fmt.Errorf("encode job: %w", err)
	}
	y, err := json.Marshal(b)
	if err != nil {
		return false, fmt.Errorf("encode job: %w", err)
	}
	return bytes.Equal(x, y), nil
}

// ClaimJob implements pipeline.Jobs.
func (s *Store) ClaimJob(ctx context.Context, id, lease string, life time.Duration) (inbox.Job, error) {
	place, err := s.outbox(ctx, id)
	if err != nil {
		return inbox.Job{}, err
	}
	over := false
	j, err := s.UpdateJob(ctx, place.Workspace, id, inbox.Act{}, func(j *inbox.Job) error {
		now := s.now().UTC().Truncate(time.Millisecond)
		switch {
		case j.Status.Over():
			over = true
			return nil
		case j.Status == inbox.JobRunning && j.LeaseUntil.After(now):
			return apperr.New(apperr.Unavailable, "in_work", "Another worker has this job.")
		}
		j.Status, j.Lease, j.LeaseUntil, j.UpdatedAt = inbox.JobRunning, lease, now.Add(life), now
		j.Attempts++
		return nil
	})
	if over || apperr.Is(err, apperr.NotFound) { // it has expired, or its outbox row was left behind
		if err := s.engine.Delete(ctx, outboxKey(id), store.Condition{}); err != nil {
			return inbox.Job{}, failed("drop the outbox row of "+id, err)
		}
		return inbox.Job{}, noOutbox()
	}
	return j, err
}

// HoldJob implements pipeline.Jobs.
func (s *Store) HoldJob(ctx context.Context, held inbox.Job, change func(*inbox.Job) error) (inbox.Job, error) {
	return s.UpdateJob(ctx, held.Workspace, held.ID, inbox.Act{}, func(j *inbox.Job) error {
		if err := j.HeldBy(held.Lease); err != nil {
			return err
		}
		return change(j)
	})
}

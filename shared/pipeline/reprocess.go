package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
)

// Reprocessing is what reading a mail again needs of storage.
type Reprocessing interface {
	// Email reads one mail, deleted or not; the Body is nil unless asked for and kept in a row. not_found when there is none.
	Email(ctx context.Context, workspace, id string, body bool) (inbox.Email, *inbox.Body, error)
	// Attachments reads one page of what is known of a mail's attachments.
	Attachments(ctx context.Context, r inbox.AttachmentRange) (rows []inbox.AttachmentRow, next string, err error)
	// Extractions reads one page of what was extracted.
	Extractions(ctx context.Context, r inbox.ExtractionRange) (rows []inbox.Extraction, next string, err error)
	// PutEvent stores an event, if a webhook wants it.
	PutEvent(ctx context.Context, e inbox.Event) error
	// Reprocess stores a new reading of a mail and the end of the job that asked for it in one transaction, so that a job which ended has
	// replaced the reading exactly once. merge makes of the mail as it is, and of what was extracted from it (beside each of
	// r.Extractions, a zero one for none), what they are to be, and the job's result; it is called again when something came between. No
	// event is written. It refuses with inbox.ErrJobCanceled, inbox.ErrJobLost, or an error of merge as it is.
	Reprocess(ctx context.Context, held inbox.Job, r inbox.Reread, merge func(now inbox.Email, was []inbox.Extraction) (inbox.Remade, error)) error
}

// reprocess reads a mail again. Everything that it puts into blobs has the keys of the first reading by this version of the
// pipeline, and the same bytes; what the mail says changes in one transaction, at the end.
func (w *Worker) reprocess(ctx context.Context, j *JobRun) (any, error) {
	result, err := w.reread(ctx, j)
	if err == nil || errors.Is(err, ErrEnded) {
		return result, err
	}
	// The mail may have been purged under this run, which then found its bytes gone, or stored some after they were removed.
	_, _, gone := w.deps.Reprocess.Email(ctx, j.Job.Workspace, j.Job.Target, false)
	if !apperr.Is(gone, apperr.NotFound) {
		return nil, err
	}
	if err := removeUnnamed(ctx, w.deps.Blobs, j.Job.Target); err != nil {
		return nil, err
	}
	return nil, gone //nolint:wrapcheck // the store names the step
}

func (w *Worker) reread(ctx context.Context, j *JobRun) (any, error) {
	var params inbox.ReprocessParams
	if err := j.Params(&params); err != nil {
		return nil, err
	}
	e, body, err := w.deps.Reprocess.Email(ctx, j.Job.Workspace, j.Job.Target, true)
	if err != nil {
		return nil, err //nolint:wrapcheck // the store names the step
	}
	if !e.DeletedAt.IsZero() {
		return nil, deletedMeanwhile()
	}
	if e.Status == inbox.StatusFailed { // nothing of it was read
		params.Stages = inbox.ReprocessStages()
	}
	again := &rereading{worker: w, job: j, params: params, old: e, oldBody: body}
	release, err := w.room(ctx, again.old.Size)
	if err != nil {
		return nil, err
	}
	defer release()
	for _, step := range []func(context.Context) error{
		again.read,
		func(ctx context.Context) error { return j.Progress(ctx, 0, 1) },
		again.extract,
		again.notify,
		again.store,
	} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return nil, ErrEnded
}

// store ends the job. What rules matched anew is counted when that has happened: a run that dies between the two has them counted once
// less, and none ever counts a mail twice.
func (g *rereading) store(ctx context.Context) error {
	r, d := g.run, g.worker.deps
	again := inbox.Reread{
		Processed: inbox.Processed{
			Email: r.email, Body: r.body, Attachments: r.attachments, References: r.reading.References[max(0, len(r.reading.References)-maxParent):],
		},
		MessageKey: r.messageKey(), Content: g.takes(inbox.StageContent), Extractions: g.extracted,
	}
	if err := d.Reprocess.Reprocess(ctx, g.job.Job, again, g.merge); err != nil {
		return err //nolint:wrapcheck // the store names the step
	}
	if len(g.hits) > 0 {
		d.Rules.HitRules(ctx, g.old.Workspace, g.hits)
	}
	return nil
}

func deletedMeanwhile() *apperr.Error {
	return apperr.New(apperr.Conflict, "email_deleted", "The email was deleted before it could be read again. Nothing was changed.",
		"Restore it with emails_restore, then start this once more.")
}

// unreadAgain are the words for a mail that can't be read now, by the reason that a first reading would have failed with. What an
// earlier reading found stays: it is better than nothing.
func unreadAgain(reason string) *apperr.Error {
	public := map[string]string{
		reasonRawMissing: "The raw bytes of this email are gone.",
		reasonRawDamaged: "The raw bytes of this email are not those that were received.",
		reasonTimeout:    "This email took too long to read.",
		reasonPanic:      "This email could not be read.",
		reasonUnreadable: "This email could not be read.",
	}[reason]
	return apperr.New(apperr.Conflict, reason, public+" What is known of it was left as it is.", "Report the id of the email if you expected another outcome.")
}

// rereading is one run of a job that reads a mail again.
type rereading struct {
	worker *Worker
	job    *JobRun
	params inbox.ReprocessParams
	run    *run // of the stages, over a copy of the mail without what the last reading found

	old      inbox.Email // when the job's run began
	oldBody  *inbox.Body
	oldFiles []inbox.Attachment
	seen     inbox.Email    // the new reading before its lists were cut: what rules look at
	rules    *inbox.RuleSet // nil: they are not asked, or can't be used
	body     bool           // it has changed
	files    bool           // they have changed
	notified bool

	extracted []inbox.Extraction
	known     []inbox.Extraction // what was extracted before, beside each of extracted
	left      int                // extractions that were not renewed
	warnings  []inbox.Warning    // of rules and extraction
	hits      []inbox.RuleRef    // rules that had not matched the mail before, as the last merge found
}

func (g *rereading) takes(stage string) bool { return slices.Contains(g.params.Stages, stage) }

// lasting are the warnings that no reading of the raw bytes can find: the transport's, and that of another mail with this message id.
func lasting(w inbox.Warning) bool {
	return slices.Contains([]string{"bare_lf", "bare_cr", "nul", "duplicate_message_id"}, w.Code)
}

// read runs the stages of a first reading but for those that look for duplicates.
func (g *rereading) read(ctx context.Context) error {
	fresh := g.old
	fresh.Content, fresh.BodyKey, fresh.Attachments, fresh.Reason = inbox.Content{}, "", 0, ""
	fresh.Signals, fresh.Codes, fresh.OtherCodes, fresh.Links, fresh.Flags = nil, nil, nil, nil, nil
	fresh.Warnings = slices.DeleteFunc(slices.Clone(g.old.Warnings), func(w inbox.Warning) bool { return !lasting(w) })
	fresh.Labels, fresh.Status = slices.Clone(g.old.Labels), inbox.StatusProcessing
	r := &run{w: g.worker, email: fresh}
	g.run = r
	if err := r.through(ctx, []stage{
		{"load", (*run).load},
		{"parse", (*run).parse},
		{"flags", (*run).flags},
		{"senders", (*run).senders},
		{"body", (*run).bodies},
		{"attachments", (*run).files},
		{"look", (*run).look},
		{"fit", (*run).fit},
	}, r.failed); err != nil {
		return fmt.Errorf("%s: %w", r.stage, err)
	}
	if r.failed() {
		return unreadAgain(r.email.Reason)
	}
	g.seen = r.seen
	// What was proved when the mail came stays proved: keys are taken out of DNS, and servers change.
	if len(g.old.Auth) > 0 {
		if err := g.judge(ctx); err != nil {
			return err
		}
	}
	if err := g.ready(ctx); err != nil {
		return err
	}
	return g.compare(ctx)
}

// look keeps the mail as rules see it: its lists are cut next.
func (r *run) look(context.Context) error {
	r.seen = r.email
	return nil
}

// judge judges the mail by what was found out about its origin when it came, and by the entries of now.
func (g *rereading) judge(ctx context.Context) error {
	r := g.run
	policy, unlisted, entries, err := r.listed(ctx)
	if err != nil {
		return err
	}
	r.email.Auth = g.old.Auth
	r.judged = r.verdict(r.author, g.old.Auth, policy, unlisted, entries)
	r.email.Trust = r.judged.Trust
	g.seen.Auth, g.seen.Trust = r.email.Auth, r.email.Trust
	return nil
}

// notify tells of the mail where its job wants that. It comes before the job's end, so it may come twice of one job.
func (g *rereading) notify(ctx context.Context) error {
	if !g.params.Notify || g.worker.deps.Notify == nil {
		return nil
	}
	if err := g.job.Authorized(ctx); err != nil {
		return err
	}
	made, err := g.merge(g.old, g.known)
	if err != nil {
		return err
	}
	if err := g.worker.deps.Notify(ctx, made.Email, g.job.Job.ID); err != nil {
		return fmt.Errorf("notify: %w", err)
	}
	for _, e := range made.Extractions {
		event, err := inbox.ExtractionEvent(e)
		if err != nil {
			return err //nolint:wrapcheck // it names the event
		}
		if err := g.worker.deps.Reprocess.PutEvent(ctx, event); err != nil {
			return fmt.Errorf("notify: %w", err)
		}
	}
	g.notified = true
	return nil
}

// merge lays the new reading over the mail as it is now. What people decided stays: their labels, category and handled mark (see
// inbox.Settled), a deletion, and that a mail was released. A mail that is held back stays so: only a person lets it go.
func (g *rereading) merge(now inbox.Email, was []inbox.Extraction) (inbox.Remade, error) {
	if !now.DeletedAt.IsZero() {
		return inbox.Remade{}, deletedMeanwhile()
	}
	read, next := g.run.email, now
	if g.takes(inbox.StageContent) {
		next.Content, next.BodyKey, next.Attachments = read.Content, read.BodyKey, read.Attachments
		next.Signals, next.Codes, next.OtherCodes, next.Links = read.Signals, read.Codes, read.OtherCodes, read.Links
		next.Flags, next.Warnings = read.Flags, read.Warnings
	}
	if g.takes(inbox.StageSenders) {
		next.Auth, next.Trust = read.Auth, read.Trust
	}
	held, full := g.byRules(now, &next)
	if g.takes(inbox.StageSenders) || g.takes(inbox.StageRules) {
		switch {
		case now.Status == inbox.StatusQuarantined:
			if held != "" {
				next.Reason = held
			}
		case held != "" && now.ReleasedAt.IsZero():
			next.Status, next.Reason = inbox.StatusQuarantined, held
		default:
			next.Status, next.Reason = inbox.StatusProcessed, ""
		}
	}
	next.Warnings = g.warned(now, next, full)
	renewed, diffs := renew(g.extracted, was)
	at := g.worker.now()
	changed := g.changes(now, next)
	if len(renewed) > 0 {
		changed = append(changed, "extractions")
	}
	next.ProcessedAt, next.Pipeline = at, Version
	if len(changed) > 0 {
		next.UpdatedAt, next.Version = at, now.Version+1
	}
	return inbox.Remade{Email: next, Extractions: renewed, Result: Reprocessed{
		Email: now.ID, Old: brief(now), New: brief(next), Changed: changed, Extractions: diffs, Left: g.left, Notified: g.notified,
	}}, nil
}

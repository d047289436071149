package pipeline

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/buzon-mail/buzon/shared/inbox"
)

// Reprocessed is the result of a job that read a mail again. It names what changed, with values where these are our own words or
// counts: nothing that the sender wrote is in it.
type Reprocessed struct {
	Email    string   `json:"email_id"`
	Old      Brief    `json:"old"`
	New      Brief    `json:"new"`
	Changed  []string `json:"changed"` // names of members of the mail, and extractions
	Notified bool     `json:"notified"`

	Extractions []Reextracted `json:"extractions,omitempty"`      // those that changed
	Left        int           `json:"extractions_left,omitempty"` // that were too many to be renewed: extractions_run does it
}

// Reextracted is an extraction that a second reading changed, or made. It names fields of the template and holds no value.
type Reextracted struct {
	Template string                 `json:"template"`
	Old      uint64                 `json:"old_template_version,omitempty"` // absent: there was none
	New      uint64                 `json:"template_version"`
	Was      inbox.ExtractionStatus `json:"old_status,omitempty"`
	Status   inbox.ExtractionStatus `json:"status"`
	Changed  []string               `json:"changed_fields"`
}

// Brief is a mail in our own words and numbers.
type Brief struct {
	Version     uint64           `json:"version"`  // of the mail
	Pipeline    int              `json:"pipeline"` // version of the pipeline that read it
	Status      inbox.Status     `json:"status"`
	Reason      string           `json:"reason,omitempty"`
	Trust       inbox.TrustLevel `json:"trust,omitempty"`
	Labels      []string         `json:"labels"`
	Category    string           `json:"category,omitempty"`
	Handled     bool             `json:"handled"`
	Flags       []string         `json:"flags"`
	Warnings    []string         `json:"warnings"` // codes
	Attachments int              `json:"attachments"`
	Codes       int              `json:"codes"`
	Links       int              `json:"links"`
}

// maxBrief bounds the lists of a Brief.
const maxBrief = 50

func brief(e inbox.Email) Brief {
	b := Brief{
		Version: e.Version, Pipeline: e.Pipeline, Status: e.Status, Reason: e.Reason, Trust: e.Trust.Level,
		Labels: append([]string{}, e.Labels...), Category: e.Category, Handled: !e.HandledAt.IsZero(),
		Flags: append([]string{}, e.Flags[:min(len(e.Flags), maxBrief)]...), Warnings: []string{},
		Attachments: e.Attachments, Codes: len(e.Codes), Links: len(e.Links),
	}
	for _, w := range e.Warnings {
		if len(b.Warnings) < maxBrief && !slices.Contains(b.Warnings, w.Code) {
			b.Warnings = append(b.Warnings, w.Code)
		}
	}
	return b
}

// changes names the members in which two states of the mail differ. Body and attachments lie apart, and were compared before.
func (g *rereading) changes(old, next inbox.Email) []string {
	changed := []string{}
	for _, m := range []struct {
		name string
		a, b any
	}{
		{"status", old.Status, next.Status},
		{"reason", old.Reason, next.Reason},
		{"labels", old.Labels, next.Labels},
		{"category", old.Category, next.Category},
		{"handled", !old.HandledAt.IsZero(), !next.HandledAt.IsZero()},
		{"subject", old.Content.Subject, next.Content.Subject},
		{"snippet", old.Content.Snippet, next.Content.Snippet},
		{"from", old.Content.From, next.Content.From},
		{"sender", old.Content.Sender, next.Content.Sender},
		{"reply_to", old.Content.ReplyTo, next.Content.ReplyTo},
		{"to", old.Content.To, next.Content.To},
		{"cc", old.Content.CC, next.Content.CC},
		{"date", old.Content.Date, next.Content.Date},
		{"message_id", old.Content.MessageID, next.Content.MessageID},
		{"auth", old.Auth, next.Auth},
		{"trust", old.Trust, next.Trust},
		{"flags", old.Flags, next.Flags},
		{"warnings", warned(old.Warnings), warned(next.Warnings)},
		{"signals", old.Signals, next.Signals},
		{"codes", old.Codes, next.Codes},
		{"links", old.Links, next.Links},
	} {
		if differ(m.a, m.b) {
			changed = append(changed, m.name)
		}
	}
	if g.takes(inbox.StageContent) {
		if g.body {
			changed = append(changed, "text")
		}
		if g.files {
			changed = append(changed, "attachments")
		}
	}
	return changed
}

// warned are warnings in an order that does not depend on who warned first, without those of the store, which cuts what it stores later.
func warned(list []inbox.Warning) []inbox.Warning {
	list = slices.DeleteFunc(slices.Clone(list), func(w inbox.Warning) bool { return w.Code == "row_cut" || w.Code == "attachments_cut" })
	slices.SortStableFunc(list, func(a, b inbox.Warning) int {
		return cmp.Or(strings.Compare(a.Code, b.Code), strings.Compare(a.Detail, b.Detail))
	})
	return list
}

// differ compares what would be stored: an empty list and none are one.
func differ(a, b any) bool {
	x, err := json.Marshal(a)
	if err != nil {
		return true
	}
	y, err := json.Marshal(b)
	if err != nil {
		return true
	}
	return !bytes.Equal(stored(x), stored(y))
}

func stored(text []byte) []byte {
	switch string(text) {
	case "null", "[]", `""`:
		return nil
	}
	return text
}

// compare holds what lies apart from the mail's row against the last reading.
func (g *rereading) compare(ctx context.Context) error {
	if g.oldBody == nil && g.old.BodyKey != "" {
		data, err := g.worker.deps.Blobs.Get(ctx, g.old.BodyKey, maxBodyBlob)
		if err != nil {
			return blobFailure(err)
		}
		g.oldBody = &inbox.Body{}
		if err := json.Unmarshal(data, g.oldBody); err != nil {
			return fmt.Errorf("body of %s: %w", g.old.ID, err)
		}
	}
	var was inbox.Body
	if g.oldBody != nil {
		was = *g.oldBody
	}
	g.body = differ(was, g.run.reading.Body)
	old, err := g.attachments(ctx)
	if err != nil {
		return err
	}
	g.oldFiles = old
	g.files = !slices.EqualFunc(old, g.run.attachments, func(a, b inbox.Attachment) bool {
		return a.SHA256 == b.SHA256 && a.Kind == b.Kind && a.Filename == b.Filename && a.ContentType == b.ContentType
	})
	return nil
}

// maxBodyBlob is more than the pipeline keeps.
const maxBodyBlob = 64 << 20

func (g *rereading) attachments(ctx context.Context) (all []inbox.Attachment, err error) {
	r := inbox.AttachmentRange{
		Workspace: g.old.Workspace, Inbox: g.old.Inbox, Email: inbox.Position(g.old.ReceivedAt, g.old.ID), Limit: 100,
	}
	for g.old.Attachments > 0 && len(all) < g.worker.opts.MaxFiles {
		rows, next, err := g.worker.deps.Reprocess.Attachments(ctx, r)
		if err != nil {
			return nil, fmt.Errorf("attachments of %s: %w", g.old.ID, err)
		}
		for _, row := range rows {
			all = append(all, row.Attachment)
		}
		if next == "" {
			break
		}
		r.After = next
	}
	return all, nil
}

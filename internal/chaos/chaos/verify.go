package chaos

import (
	"context"
	"encoding/hex"
	"strings"

	"github.com/buzon-mail/buzon/shared/inbox"
)

// verify looks at every inbox, and then at every mail.
func (r *run) verify(ctx context.Context) {
	copies := map[string]int{} // by canary and inbox
	for _, t := range r.world.tenants {
		for _, in := range t.inboxes {
			r.inbox(ctx, t, in, copies)
		}
	}
	for canary, l := range r.mails {
		for box := range l.to {
			n := copies[canary+" "+box]
			delete(copies, canary+" "+box)
			if n > 1 || n == 0 && l.accepted {
				r.wrong.add("%s is %d times in %s, accepted: %t", canary, n, box, l.accepted)
			}
		}
	}
	for where := range copies {
		r.wrong.add("%s was not sent there", where)
	}
}

func (r *run) inbox(ctx context.Context, t *tenant, in inbox.Inbox, copies map[string]int) {
	for after := ""; ; {
		page, next, err := r.world.store.Emails(ctx, inbox.EmailRange{Workspace: t.workspace.ID, Inbox: in.ID, Limit: 200, After: after})
		if err != nil {
			r.wrong.add("list %s: %w", in.ID, err)
			return
		}
		for _, m := range page {
			r.report.Stored++
			r.stored(ctx, t, m.ID, copies)
		}
		if after = next; next == "" {
			return
		}
	}
}

// stored looks at one mail: processed, whole, its own words and bytes and nobody else's.
func (r *run) stored(ctx context.Context, t *tenant, id string, copies map[string]int) {
	e, body, err := r.world.store.Email(ctx, t.workspace.ID, id, true)
	if err != nil || body == nil {
		r.wrong.add("read %s: body %t, %w", id, body != nil, err)
		return
	}
	canary := strings.TrimPrefix(e.Content.Subject, "About ")
	l := r.mails[canary]
	if l == nil {
		r.wrong.add("%s has the subject %q", id, e.Content.Subject)
		return
	}
	copies[canary+" "+e.Inbox]++
	if r.gone[id] {
		r.wrong.add("%s, %s is there, and was not found before", id, canary)
	}
	if e.Status != inbox.StatusProcessed || e.Organization != t.org.ID || e.RawSHA256 != hex.EncodeToString(l.sha256[:]) {
		r.wrong.add("%s, %s: status %s %s, of %s", id, canary, e.Status, e.Reason, e.Organization)
	}
	for _, found := range canaries.FindAllString(body.Text+e.Content.Snippet, -1) {
		if found != canary {
			r.wrong.add("%s, %s holds words of %s", id, canary, found)
		}
	}
	if !strings.Contains(body.Text, canary) {
		r.wrong.add("%s, %s has lost its text: %.80q", id, canary, body.Text)
	}
	if raw, err := r.world.blobs.Get(ctx, e.RawKey, 1<<20); err != nil || string(raw) != l.raw {
		r.wrong.add("%s, %s: its raw bytes are %d, %w", id, canary, len(raw), err)
	}
	if want := min(len(l.file), 1); e.Attachments != want {
		r.wrong.add("%s, %s has %d attachments, want %d", id, canary, e.Attachments, want)
	}
}

package inbox_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
)

// tenant is one side of the property: everything it writes carries its mark.
type tenant struct {
	actor   inbox.Actor
	mark    string
	slugs   []string
	ids     []string // of inboxes, mails and attachments, its own
	cursors []string
}

// play drives the services with random operations of both tenants. Each uses any id it has ever heard of, the other one's
// too, and any cursor. Whatever comes back, result or error, must not hold the other's mark.
func play(t *testing.T, seed uint64, steps int) {
	w := newWorld(t)
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a repeatable sequence, not a secret
	sides := []*tenant{{actor: acme(), mark: "acme"}, {actor: globex(), mark: "globex"}}
	for i := range steps {
		me, other := sides[i%2], sides[(i+1)%2]
		out, err := w.step(r, me, other)
		var text string
		if err != nil {
			e := apperr.From(err)
			if e.Kind == apperr.Internal {
				t.Fatalf("seed %d step %d: %v", seed, i, err)
			}
			text = fmt.Sprintf("%s %s %v %v", e.Name(), e.Public, e.Fixes, e.Details)
		} else {
			b, err := json.Marshal(out)
			w.must(err)
			text = string(b)
		}
		if strings.Contains(text, other.mark) || strings.Contains(text, other.actor.Workspace) || strings.Contains(text, other.actor.Organization) {
			t.Fatalf("seed %d step %d: %s sees %s: %.600s", seed, i, me.mark, other.mark, text)
		}
	}
	for _, s := range sides {
		if len(s.ids) < 20 || len(s.cursors) == 0 {
			t.Errorf("seed %d: %s had %d ids and %d cursors: nothing was tried", seed, s.mark, len(s.ids), len(s.cursors))
		}
	}
}

func any1(r *rand.Rand, lists ...[]string) string {
	var all []string
	for _, l := range lists {
		all = append(all, l...)
	}
	if len(all) == 0 {
		return ""
	}
	return all[r.IntN(len(all))]
}

func (w *world) step(r *rand.Rand, me, other *tenant) (any, error) {
	ctx, s, a := w.tb.Context(), w.services, me.actor
	id, slug := any1(r, me.ids, me.ids, other.ids), any1(r, me.slugs, other.slugs)
	page := inbox.PageRequest{Limit: 1 + r.IntN(3)}
	if r.IntN(3) == 0 {
		page.Cursor = any1(r, me.cursors, other.cursors)
	}
	a.ReadCodes = r.IntN(2) == 0
	if r.IntN(4) == 0 {
		return w.workStep(r, a, me, other, page)
	}
	a.Role, a.OrganizationRole = inbox.RoleOwner, inbox.RoleOwner
	switch n := r.IntN(24); n {
	case 21:
		reach := inbox.Reach{Scopes: []string{"emails:read"}, Whole: true, Workspaces: []inbox.WorkspaceRow{{ID: a.Workspace, Slug: "main"}}}
		k, _, err := s.APIKeys.Create(ctx, a, reach, inbox.NewAPIKey{
			Name: fmt.Sprintf("%s %d", me.mark, r.IntN(5)), Scopes: reach.Scopes, ExpiresAt: w.now().Add(time.Hour), Inboxes: []string{any1(r, me.slugs, other.ids)},
		})
		if err == nil {
			me.ids = append(me.ids, k.ID)
		}
		return k, err
	case 22:
		if r.IntN(2) == 0 {
			return s.APIKeys.Revoke(ctx, a, id)
		}
		out, err := s.APIKeys.List(ctx, a, page)
		return me.keep(out.Next, out, err)
	case 23:
		if r.IntN(2) == 0 {
			return s.Members.Delete(ctx, a, id)
		}
		m, err := s.Members.Upsert(ctx, a, inbox.MemberPatch{
			Email: fmt.Sprintf("p%d@%s.invalid", r.IntN(4), me.mark), Role: inbox.Set(inbox.RoleViewer), Restore: true,
			Roles: inbox.Set(map[string]inbox.Role{any1(r, []string{"main"}, other.ids): inbox.RoleAdmin}),
		})
		if err == nil {
			me.ids = append(me.ids, m.User)
		}
		return m.Member, err
	case 0, 1:
		slug := fmt.Sprintf("box-%d", r.IntN(8))
		in, _, err := s.Inboxes.Upsert(ctx, a, inbox.InboxPatch{Slug: slug, DisplayName: inbox.Set(me.mark)})
		if err != nil {
			return nil, err
		}
		me.slugs, me.ids = append(me.slugs, slug), append(me.ids, in.ID)
		w.mark(in, me)
		return in, nil
	case 2:
		out, _, err := s.Inboxes.Upsert(ctx, a, inbox.InboxPatch{ID: id, Address: "x@" + other.mark + ".invalid", State: inbox.Set(inbox.StatePaused)})
		return out, err
	case 3:
		return s.Inboxes.Get(ctx, a, id, r.IntN(2) == 0)
	case 4:
		out, err := s.Inboxes.List(ctx, a, inbox.InboxQuery{IncludeDeleted: r.IntN(2) == 0}, page)
		return me.keep(out.Next, out, err)
	case 5:
		return s.Inboxes.Delete(ctx, a, id)
	case 6:
		return s.Inboxes.Restore(ctx, a, id)
	case 7:
		q := inbox.EmailQuery{IncludeDeleted: r.IntN(2) == 0}
		if r.IntN(2) == 0 {
			q.Inbox = slug
		}
		if r.IntN(3) == 0 {
			q.Q = other.mark
		}
		out, err := s.Emails.List(ctx, a, q, page)
		return me.keep(out.Next, out, err)
	case 8:
		return s.Emails.Get(ctx, a, id, inbox.EmailRead{Include: []string{"text", "html", "headers"}, IncludeDeleted: r.IntN(2) == 0})
	case 9:
		out, err := s.Emails.Update(ctx, a, id, inbox.EmailPatch{AddLabels: []string{me.mark}, Handled: inbox.Set(true)})
		if err == nil && r.IntN(2) == 0 {
			return s.Emails.Delete(ctx, a, id)
		}
		return out, err
	case 10:
		return s.Emails.Restore(ctx, a, id)
	case 16:
		out, err := s.Audits.List(ctx, a, inbox.AuditQuery{Target: any1(r, []string{""}, other.ids), Organization: r.IntN(4) == 0}, page)
		return me.keep(out.Next, out, err)
	case 17, 18, 19, 20:
		return w.stepRules(r, n, me, other, id, page)
	case 11:
		return s.Emails.Release(ctx, a, id)
	case 12:
		e, _, err := s.Senders.Upsert(ctx, a, inbox.SenderPatch{
			Inbox: any1(r, []string{id}, me.slugs), Kind: inbox.KindDomain, Value: me.mark + ".test", Note: inbox.Set(me.mark), Restore: true,
		})
		if err == nil {
			me.ids = append(me.ids, e.ID)
		}
		return e, err
	case 13:
		out, err := s.Senders.List(ctx, a, inbox.SenderQuery{Inbox: any1(r, me.slugs, other.ids)}, page)
		return me.keep(out.Next, out, err)
	case 14:
		return s.Senders.Delete(ctx, a, slug, id)
	}
	q := inbox.AttachmentQuery{Email: id}
	if r.IntN(2) == 0 {
		q = inbox.AttachmentQuery{Inbox: slug}
	}
	if r.IntN(2) == 0 {
		return s.Attachments.DownloadURL(ctx, a, id, 0)
	}
	if r.IntN(2) == 0 {
		return s.Attachments.Get(ctx, a, id)
	}
	out, err := s.Attachments.List(ctx, a, q, page)
	return me.keep(out.Next, out, err)
}

// stepRules is step for rules and extraction.
func (w *world) stepRules(r *rand.Rand, n int, me, other *tenant, id string, page inbox.PageRequest) (any, error) {
	ctx, s, a := w.tb.Context(), w.services, me.actor
	switch n {
	case 17:
		row, _, err := s.Rules.Upsert(ctx, a, inbox.RulePatch{
			Slug: me.mark, Inbox: any1(r, []string{""}, me.slugs, other.ids), Restore: true, Conditions: []inbox.Condition{{Field: "subject", Op: "contains", Value: me.mark}},
			Actions: []inbox.Action{{Type: "add_label", Value: me.mark}},
		})
		if err == nil {
			me.ids = append(me.ids, row.ID)
			return s.Rules.Test(ctx, a, inbox.RuleTrial{Email: id})
		}
		return row, err
	case 18:
		if r.IntN(3) == 0 {
			return s.Rules.Delete(ctx, a, id)
		}
		out, err := s.Rules.List(ctx, a, inbox.RuleQuery{Inbox: any1(r, []string{""}, me.slugs, other.ids)}, page)
		return me.keep(out.Next, out, err)
	case 19:
		t, _, err := s.Templates.Upsert(ctx, a, inbox.TemplatePatch{
			Slug: "t" + fmt.Sprint(r.IntN(3)), Restore: true, Schema: json.RawMessage(`{"type":"object","properties":{"x":{"type":"string"}},"description":"` + me.mark + `"}`),
			Locators: []inbox.Locator{{Field: "x", Kind: inbox.LocateRegex, Value: ".+"}},
		})
		if err != nil {
			return nil, err
		}
		me.ids = append(me.ids, t.ID)
		if e, _, err := w.store.Email(ctx, a.Workspace, id, false); err == nil {
			got, err := inbox.Extract(ctx, inbox.NewLocators(), t, e, inbox.ExtractionMail{Text: me.mark}, "x", w.now())
			w.must(err)
			w.must(w.store.PutExtraction(ctx, got))
		}
		if r.IntN(4) == 0 {
			return s.Templates.Delete(ctx, a, any1(r, me.ids, other.ids))
		}
		return t, nil
	}
	if r.IntN(3) == 0 {
		out, err := s.Templates.List(ctx, a, inbox.TemplateQuery{Q: "t"}, page)
		return me.keep(out.Next, out, err)
	}
	out, err := s.Extractions.List(ctx, a, inbox.ExtractionQuery{Email: any1(r, []string{""}, []string{id}), Template: any1(r, []string{"", "t1"})}, page)
	return me.keep(out.Next, out, err)
}

// workStep is a step of those who share the work.
func (w *world) workStep(r *rand.Rand, a inbox.Actor, me, other *tenant, page inbox.PageRequest) (any, error) {
	ctx, s := w.tb.Context(), w.services
	id, box := any1(r, me.ids, other.ids), any1(r, me.slugs, me.ids, other.ids)
	switch r.IntN(7) {
	case 0:
		out, err := s.Threads.List(ctx, a, inbox.ThreadQuery{Q: any1(r, []string{"", me.mark, other.mark})}, page)
		for _, row := range out.Rows {
			me.ids = append(me.ids, row.ID)
		}
		return me.keep(out.Next, out, err)
	case 1:
		out, err := s.Threads.Get(ctx, a, id, inbox.ThreadRead{MaxEmails: 1, Cursor: page.Cursor})
		return me.keep(out.Next, out, err)
	case 2:
		out, err := s.Work.Claim(ctx, a, inbox.ClaimRequest{Query: inbox.ClaimQuery{Inbox: box}, Limit: 2, Cursor: page.Cursor})
		if err == nil {
			me.ids = append(me.ids, out.ID)
		}
		return me.keep(out.Next, out, err)
	case 3:
		return s.Emails.Update(ctx, a, id, inbox.EmailPatch{Lease: any1(r, me.ids, other.ids), LeaseFor: inbox.Set(inbox.MaxLease)})
	case 4:
		out, err := s.Waits.Wait(ctx, a, inbox.WaitRequest{Query: inbox.WaitQuery{Inbox: box}, After: page.Cursor, Timeout: new(time.Duration)})
		return me.keep(out.Next, out, err)
	case 5:
		out, err := s.Emails.RawURL(ctx, a, id, 0)
		return strings.Contains(out.URL, id), err
	}
	return s.Usage.Get(ctx, a, "")
}

func (x *tenant) keep(cursor string, out any, err error) (any, error) {
	if cursor != "" {
		x.cursors = append(x.cursors, cursor)
	}
	return out, err
}

// mark delivers a mail that carries the tenant's mark everywhere.
func (w *world) mark(in inbox.Inbox, me *tenant) {
	w.deliver(in, func(p *inbox.Processed) {
		a := attachment(p.Email, me.mark+".pdf", 1)
		p.Attachments = []inbox.Attachment{a}
		p.Email.Content.Subject, p.Email.Content.Snippet = me.mark, me.mark
		p.Body = &inbox.Body{Text: me.mark, HTML: me.mark, Headers: []inbox.Header{{Name: "X", Value: me.mark}}}
		me.ids = append(me.ids, p.Email.ID, a.ID)
	})
}

func TestTenantsNeverMeet(t *testing.T) {
	for seed := range uint64(6) {
		play(t, seed, 600)
	}
}

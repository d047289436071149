package inbox_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/store"
)

func (w *world) listed(a inbox.Actor, in string, kind inbox.SenderKind, value string) inbox.AllowedSender {
	w.tb.Helper()
	e, _, err := w.services.Senders.Upsert(w.tb.Context(), a, inbox.SenderPatch{Inbox: in, Kind: kind, Value: value})
	w.must(err)
	return e
}

func TestSenderUpsert(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "support")
	up := func(p inbox.SenderPatch) (inbox.AllowedSender, bool) {
		t.Helper()
		p.Inbox = "support"
		e, created, err := w.services.Senders.Upsert(t.Context(), acme(), p)
		w.must(err)
		return e, created
	}
	key := inbox.SenderPatch{Kind: inbox.KindAddress, Value: "Ana@Example.com"}
	first, created := up(key)
	if !created || first.Value != "ana@example.com" || first.Effect != inbox.EffectAllow || first.Require != inbox.RequireDMARC || first.Version != 1 || first.Inbox != in.ID {
		t.Errorf("made %+v, %t", first, created)
	}
	if again, created := up(key); created || again != first {
		t.Errorf("again %+v, %t", again, created)
	}
	key.Effect, key.Note, key.ExpiresAt = inbox.Set(inbox.EffectBlock), inbox.Set("rude"), inbox.Set(w.now().Add(time.Hour))
	second, _ := up(key)
	if second.Effect != inbox.EffectBlock || second.Note != "rude" || second.ExpiresAt.IsZero() || second.Version != 2 || second.ID != first.ID {
		t.Errorf("changed %+v", second)
	}
	third, _ := up(inbox.SenderPatch{Kind: inbox.KindAddress, Value: "ana@example.com", Effect: inbox.Null[inbox.SenderEffect](), ExpiresAt: inbox.Null[time.Time]()})
	if third.Effect != inbox.EffectAllow || !third.ExpiresAt.IsZero() || third.Note != "rude" {
		t.Errorf("reset %+v", third)
	}
	_, _, err := w.services.Senders.Upsert(t.Context(), acme(), inbox.SenderPatch{Inbox: in.ID, Kind: inbox.KindAddress, Value: "ana@example.com", IfVersion: 1})
	wantKind(t, err, apperr.Stale, "")
	for name, p := range map[string]inbox.SenderPatch{
		"effect":  {Effect: inbox.Set(inbox.SenderEffect("maybe"))},
		"require": {Require: inbox.Set(inbox.Require("luck"))},
		"past":    {ExpiresAt: inbox.Set(w.now())},
		"note":    {Note: inbox.Set("a\x00b")},
		"long":    {Note: inbox.Set(strings.Repeat("x", 201))},
	} {
		p.Inbox, p.Kind, p.Value = in.ID, inbox.KindAddress, "new@example.com"
		if _, _, err := w.services.Senders.Upsert(t.Context(), acme(), p); !apperr.Is(err, apperr.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if page, err := w.services.Senders.List(t.Context(), acme(), inbox.SenderQuery{Inbox: in.ID}, inbox.PageRequest{}); err != nil || len(page.Rows) != 1 {
		t.Errorf("a refused upsert left %+v, %v", page.Rows, err)
	}
}

func TestSenderDeleteAndRestore(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "support")
	e := w.listed(acme(), in.ID, inbox.KindDomain, "example.com")
	found := func() int {
		t.Helper()
		got, err := w.store.SendersFor(t.Context(), wsAcme, in.ID, "ana@example.com")
		w.must(err)
		return len(got)
	}
	if found() != 1 {
		t.Fatal("not found")
	}
	gone, err := w.services.Senders.Delete(t.Context(), acme(), in.ID, e.ID)
	if err != nil || gone.DeletedAt.IsZero() || found() != 0 {
		t.Errorf("deleted %+v, %v, found %d", gone, err, found())
	}
	if again, err := w.services.Senders.Delete(t.Context(), acme(), in.ID, e.ID); err != nil || again != gone {
		t.Errorf("again %+v, %v", again, err)
	}
	patch := inbox.SenderPatch{Inbox: in.ID, Kind: inbox.KindDomain, Value: "example.com"}
	_, _, err = w.services.Senders.Upsert(t.Context(), acme(), patch)
	wantKind(t, err, apperr.Conflict, "deleted_exists")
	patch.Restore = true
	back, created, err := w.services.Senders.Upsert(t.Context(), acme(), patch)
	if err != nil || created || !back.DeletedAt.IsZero() || back.ID != e.ID || found() != 1 {
		t.Errorf("restored %+v, %t, %v", back, created, err)
	}
	_, err = w.services.Senders.Delete(t.Context(), acme(), in.ID, inbox.SenderID(wsAcme, in.ID, inbox.KindDomain, "other.test"))
	wantKind(t, err, apperr.NotFound, "")
	_, err = w.services.Inboxes.Delete(t.Context(), acme(), in.ID)
	w.must(err)
	_, _, err = w.services.Senders.Upsert(t.Context(), acme(), patch)
	wantKind(t, err, apperr.NotFound, "")
}

// However long the list is: two reads for a mail, and pages that neither repeat nor leave out.
func TestSenderCosts(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "support")
	for i := range 60 {
		w.listed(acme(), in.ID, inbox.KindAddress, fmt.Sprintf("a%d@example.com", i))
		w.listed(acme(), in.ID, inbox.KindSubdomains, fmt.Sprintf("d%d.example.com", i))
	}
	w.engine.reset()
	got, err := w.store.SendersFor(t.Context(), wsAcme, in.ID, "a7@x.d9.example.com")
	if err != nil || len(got) != 60 || w.engine.reads != 2 {
		t.Errorf("%d entries, %v, %d reads", len(got), err, w.engine.reads)
	}
	seen, cursor := map[string]bool{}, ""
	for {
		w.engine.reset()
		page, err := w.services.Senders.List(t.Context(), acme(), inbox.SenderQuery{Inbox: in.ID}, inbox.PageRequest{Limit: 50, Cursor: cursor})
		w.must(err)
		if w.engine.reads > 3 {
			t.Errorf("a page cost %d reads", w.engine.reads)
		}
		for _, row := range page.Rows {
			if seen[row.ID] {
				t.Errorf("%s twice", row.Value)
			}
			seen[row.ID] = true
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if len(seen) != 120 {
		t.Errorf("%d entries in the pages", len(seen))
	}
	page, err := w.services.Senders.List(t.Context(), acme(), inbox.SenderQuery{Inbox: in.ID, Kind: inbox.KindAddress, Q: "A7@"}, inbox.PageRequest{})
	if err != nil || len(page.Rows) != 1 || page.Window == nil || !page.Window.Complete {
		t.Errorf("filtered %+v, %v", page, err)
	}
}

func TestSenderHits(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "support")
	a, b := w.listed(acme(), in.ID, inbox.KindAddress, "a@example.com"), w.listed(acme(), in.ID, inbox.KindAddress, "b@example.com")
	w.listed(acme(), in.ID, inbox.KindAddress, "c@example.com")
	for range 3 {
		w.store.HitSender(t.Context(), wsAcme, in.ID, a.ID)
	}
	w.store.HitSender(t.Context(), wsAcme, in.ID, b.ID)
	page, err := w.services.Senders.List(t.Context(), acme(), inbox.SenderQuery{Inbox: in.ID}, inbox.PageRequest{})
	w.must(err)
	hits := map[string]int64{}
	for _, row := range page.Rows {
		hits[row.Value] = row.Hits
	}
	if fmt.Sprint(hits) != "map[a@example.com:3 b@example.com:1 c@example.com:0]" {
		t.Errorf("hits %v", hits)
	}
	// A hit is no operation: a yes that was given before it still holds.
	if e, err := w.store.Sender(t.Context(), wsAcme, in.ID, a.ID); err != nil || e.Version != 1 {
		t.Errorf("version %d, %v", e.Version, err)
	}
}

func TestSenderZoneIsBounded(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "support")
	for i := range inboxstore.MaxZone {
		w.listed(acme(), in.ID, inbox.KindDomain, fmt.Sprintf("d%d.example.com", i))
	}
	_, _, err := w.services.Senders.Upsert(t.Context(), acme(), inbox.SenderPatch{Inbox: in.ID, Kind: inbox.KindDomain, Value: "more.example.com"})
	wantKind(t, err, apperr.Conflict, "zone_full")
	w.listed(acme(), in.ID, inbox.KindDomain, "more.example.org")
	w.listed(acme(), in.ID, inbox.KindAddress, "a@more.example.com")
}

// Many at once make one entry; many of one zone are all there.
func TestSendersAtOnce(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "support")
	var all sync.WaitGroup
	var mu sync.Mutex
	made, failed := 0, 0
	for i := range 8 {
		all.Go(func() {
			_, created, err := w.services.Senders.Upsert(t.Context(), acme(), inbox.SenderPatch{Inbox: in.ID, Kind: inbox.KindDomain, Value: "one.test"})
			_, _, other := w.services.Senders.Upsert(t.Context(), acme(), inbox.SenderPatch{Inbox: in.ID, Kind: inbox.KindDomain, Value: fmt.Sprintf("d%d.example.com", i)})
			mu.Lock()
			defer mu.Unlock()
			if created {
				made++
			}
			for _, e := range []error{err, other} {
				if e != nil && !apperr.Is(e, apperr.Conflict) {
					t.Error(e)
				}
			}
			if other != nil { // told to come again
				failed++
			}
		})
	}
	all.Wait()
	got, err := w.store.SendersFor(t.Context(), wsAcme, in.ID, "a@example.com")
	if err != nil || made != 1 || len(got) != 8-failed {
		t.Errorf("made %d; %d of one zone, %d failed, %v", made, len(got), failed, err)
	}
}

// Another tenant's inbox, entry or mail is a missing one, and its list decides nothing here.
func TestSendersOfAnotherTenant(t *testing.T) {
	w := newWorld(t)
	ours, theirs := w.inbox(acme(), "support"), w.inbox(globex(), "support")
	e := w.listed(globex(), theirs.ID, inbox.KindAddress, "ana@example.com")
	missing := func(what string, err error) {
		t.Helper()
		if !apperr.Is(err, apperr.NotFound) || strings.Contains(err.Error(), "globex") {
			t.Errorf("%s: %v", what, err)
		}
	}
	s, ctx := w.services, t.Context()
	_, err := s.Senders.List(ctx, acme(), inbox.SenderQuery{Inbox: theirs.ID}, inbox.PageRequest{})
	missing("list", err)
	_, _, err = s.Senders.Upsert(ctx, acme(), inbox.SenderPatch{Inbox: theirs.ID, Kind: inbox.KindDomain, Value: "x.test"})
	missing("upsert", err)
	_, err = s.Senders.AskUpsert(ctx, acme(), inbox.SenderPatch{Inbox: theirs.ID, Kind: inbox.KindDomain, Value: "x.test"})
	missing("ask", err)
	_, err = s.Senders.Delete(ctx, acme(), theirs.ID, e.ID)
	missing("delete", err)
	_, err = s.Senders.Delete(ctx, acme(), ours.ID, e.ID)
	missing("delete by an inbox of ours", err)
	_, err = s.Senders.AskDelete(ctx, acme(), ours.ID, e.ID)
	missing("ask to delete", err)
	_, err = s.Senders.Check(ctx, acme(), inbox.SenderCheck{Inbox: theirs.ID, From: "ana@example.com"})
	missing("check", err)
	_, err = s.Inboxes.SetSenderPolicy(ctx, acme(), theirs.ID, inbox.PolicyPatch{Policy: inbox.Set(inbox.PolicyListed)})
	missing("policy", err)
	held := w.deliver(theirs, func(p *inbox.Processed) { p.Email.Status = inbox.StatusQuarantined })
	_, err = s.Emails.Release(ctx, acme(), held.ID)
	missing("release", err)
	if got, err := w.store.SendersFor(ctx, wsAcme, ours.ID, "ana@example.com"); err != nil || len(got) != 0 {
		t.Errorf("their list decides here: %v, %v", got, err)
	}
	if still, err := w.store.Sender(ctx, wsGlobex, theirs.ID, e.ID); err != nil || still != e {
		t.Errorf("their entry %+v, %v", still, err)
	}
}

func TestSenderCheck(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "support")
	w.listed(acme(), in.ID, inbox.KindAddress, "ana@example.com")
	_, _, err := w.services.Senders.Upsert(t.Context(), acme(), inbox.SenderPatch{
		Inbox: in.ID, Kind: inbox.KindSubdomains, Value: "evil.test", Effect: inbox.Set(inbox.EffectBlock),
	})
	w.must(err)
	set := func(p inbox.SenderPolicy, o inbox.OnUnlisted) {
		_, err := w.services.Inboxes.SetSenderPolicy(t.Context(), acme(), in.ID, inbox.PolicyPatch{Policy: inbox.Set(p), OnUnlisted: inbox.Set(o)})
		w.must(err)
	}
	for _, x := range []struct {
		policy      inbox.SenderPolicy
		unlisted    inbox.OnUnlisted
		from, proof string
		want        string
	}{
		{inbox.PolicyOpen, inbox.UnlistedQuarantine, "x@y.test", "none", "accept  unverified -"},
		{inbox.PolicyOpen, inbox.UnlistedQuarantine, "x@a.evil.test", "dmarc", "reject sender_blocked blocked evil.test"},
		{inbox.PolicyListed, inbox.UnlistedQuarantine, "Ana@example.com", "dmarc", "accept  trusted ana@example.com"},
		{inbox.PolicyListed, inbox.UnlistedQuarantine, "ana@example.com", "fail", "quarantine sender_unauthenticated suspicious -"},
		{inbox.PolicyListed, inbox.UnlistedQuarantine, "ana@example.com", "", "quarantine sender_unauthenticated unverified -"},
		{inbox.PolicyListed, inbox.UnlistedLabel, "x@y.test", "spf_or_dkim", "label  verified -"},
		{inbox.PolicyListed, inbox.UnlistedReject, "x@y.test", "dmarc", "reject sender_unlisted verified -"},
	} {
		set(x.policy, x.unlisted)
		got, err := w.services.Senders.Check(t.Context(), acme(), inbox.SenderCheck{Inbox: "support", From: x.from, Proof: x.proof})
		w.must(err)
		entry := "-"
		if got.Entry != nil {
			entry = got.Entry.Value
		}
		if s := fmt.Sprintf("%s %s %s %s", got.Decision, got.Reason, got.Trust.Level, entry); s != x.want {
			t.Errorf("%+v: got %s", x, s)
		}
	}
	for _, q := range []inbox.SenderCheck{{Inbox: "support", From: "nobody"}, {Inbox: "support", From: "a@b.test", Proof: "luck"}} {
		_, err := w.services.Senders.Check(t.Context(), acme(), q)
		wantKind(t, err, apperr.Invalid, "")
	}
}

func TestSenderPolicy(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "support")
	if p, o := in.Policy(); p != inbox.PolicyOpen || o != inbox.UnlistedQuarantine {
		t.Errorf("a new inbox: %s, %s", p, o)
	}
	set := func(p inbox.PolicyPatch) inbox.Inbox {
		t.Helper()
		in, err := w.services.Inboxes.SetSenderPolicy(t.Context(), acme(), "support", p)
		w.must(err)
		return in
	}
	got := set(inbox.PolicyPatch{Policy: inbox.Set(inbox.PolicyListed), OnUnlisted: inbox.Set(inbox.UnlistedReject)})
	if again := set(inbox.PolicyPatch{Policy: inbox.Set(inbox.PolicyListed)}); again != got || got.Version != 2 {
		t.Errorf("again %+v, was %+v", again, got)
	}
	r, err := w.store.Recipient(t.Context(), in.Address)
	if p, o := r.Policy(); err != nil || p != inbox.PolicyListed || o != inbox.UnlistedReject {
		t.Errorf("at the door: %s, %s, %v", p, o, err)
	}
	if p, o := set(inbox.PolicyPatch{Policy: inbox.Null[inbox.SenderPolicy]()}).Policy(); p != inbox.PolicyOpen || o != inbox.UnlistedReject {
		t.Errorf("reset: %s, %s", p, o)
	}
	for _, p := range []inbox.PolicyPatch{{}, {Policy: inbox.Set(inbox.SenderPolicy("x"))}, {OnUnlisted: inbox.Set(inbox.OnUnlisted("drop"))}} {
		_, err := w.services.Inboxes.SetSenderPolicy(t.Context(), acme(), "support", p)
		wantKind(t, err, apperr.Invalid, "")
	}
	_, err = w.services.Inboxes.SetSenderPolicy(t.Context(), acme(), "support", inbox.PolicyPatch{Policy: inbox.Set(inbox.PolicyListed), IfVersion: 1})
	wantKind(t, err, apperr.Stale, "")
	// An upsert of something else leaves it.
	w.inbox(acme(), "support")
	if in, err := w.services.Inboxes.Get(t.Context(), acme(), "support", false); err != nil || in.OnUnlisted != inbox.UnlistedReject {
		t.Errorf("after an upsert: %+v, %v", in, err)
	}
}

func TestRelease(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "support")
	held := w.deliver(in, func(p *inbox.Processed) {
		p.Email.Status, p.Email.Reason, p.Email.Trust = inbox.StatusQuarantined, inbox.HeldUnlisted, inbox.Trust{Level: inbox.Unverified}
	})
	if rows := w.list(acme(), inbox.EmailQuery{Status: inbox.StatusQuarantined, Trust: inbox.Unverified}); len(rows) != 1 || rows[0].Trust.Level != inbox.Unverified {
		t.Fatalf("held %+v", rows)
	}
	got, err := w.services.Emails.Release(t.Context(), acme(), held.ID)
	if err != nil || got.Status != inbox.StatusProcessed || got.Reason != "" || got.ReleasedAt.IsZero() || got.Trust.Level != inbox.Unverified {
		t.Errorf("released %+v, %v", got.Email, err)
	}
	if again, err := w.services.Emails.Release(t.Context(), acme(), held.ID); err != nil || again.Version != got.Version {
		t.Errorf("again: version %d, %v", again.Version, err)
	}
	if rows := w.list(acme(), inbox.EmailQuery{Status: inbox.StatusQuarantined}); len(rows) != 0 {
		t.Errorf("still held: %+v", rows)
	}
	d, err := w.services.Inboxes.Get(t.Context(), acme(), in.ID, false)
	if err != nil || d.Counts.Quarantined != 0 || d.Counts.Processed != 1 {
		t.Errorf("counts %+v, %v", d.Counts, err)
	}
	_, err = w.services.Emails.Release(t.Context(), acme(), w.received(in).ID)
	wantKind(t, err, apperr.Conflict, "not_quarantined")
	_, err = w.services.Emails.Delete(t.Context(), acme(), held.ID)
	w.must(err)
	_, err = w.services.Emails.Release(t.Context(), acme(), held.ID)
	wantKind(t, err, apperr.NotFound, "")
}

// Without a yes nothing of it happens where a person is to be asked, and no row is left.
func TestSendersAsk(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "support")
	e := w.listed(acme(), in.ID, inbox.KindDomain, "old.test")
	held := w.deliver(in, func(p *inbox.Processed) { p.Email.Status = inbox.StatusQuarantined })
	a, ctx, s := acme(), t.Context(), w.services
	a.Direct = false
	_, _, err := s.Senders.Upsert(ctx, a, inbox.SenderPatch{Inbox: in.ID, Kind: inbox.KindDomain, Value: "new.test"})
	wantKind(t, err, apperr.Conflict, "confirmation_required")
	_, err = s.Senders.Delete(ctx, a, in.ID, e.ID)
	wantKind(t, err, apperr.Conflict, "confirmation_required")
	_, err = s.Inboxes.SetSenderPolicy(ctx, a, in.ID, inbox.PolicyPatch{Policy: inbox.Set(inbox.PolicyListed)})
	wantKind(t, err, apperr.Conflict, "confirmation_required")
	_, err = s.Emails.Release(ctx, a, held.ID)
	wantKind(t, err, apperr.Conflict, "confirmation_required")
	if _, err := w.engine.Engine.Get(ctx, store.Key{
		Table: store.Core, Partition: "senders/" + wsAcme + "/" + in.ID, Sort: inbox.SenderID(wsAcme, in.ID, inbox.KindDomain, "new.test"),
	}); err == nil {
		t.Error("a refused upsert left a row")
	}
	note := inbox.SenderPatch{Inbox: in.ID, Kind: inbox.KindDomain, Value: "old.test", Note: inbox.Set("why")}
	if q, err := s.Senders.AskUpsert(ctx, a, note); q != nil || err != nil {
		t.Errorf("a note asks %+v, %v", q, err)
	}
	if got, _, err := s.Senders.Upsert(ctx, a, note); err != nil || got.Note != "why" {
		t.Errorf("a note: %+v, %v", got, err)
	}
	block := inbox.SenderPatch{Inbox: in.ID, Kind: inbox.KindDomain, Value: "old.test", Effect: inbox.Set(inbox.EffectBlock)}
	q, err := s.Senders.AskUpsert(ctx, a, block)
	if err != nil || q.Text != "For inbox {}: block mail from {}; until now: {}" || strings.Join(q.Values, "|") != "support|domain old.test|allow, if DMARC passes" ||
		q.Targets[e.ID] != "2" {
		t.Errorf("question %+v, %v", q, err)
	}
	w.must(second(s.Senders.Delete(ctx, acme(), in.ID, e.ID)))
	block.Restore = true
	if q, err := s.Senders.AskUpsert(ctx, a, block); err != nil || q.Values[2] != "not listed" {
		t.Errorf("restoring asks %+v, %v", q, err)
	}
	// A yes to making it does not hold once somebody else made it.
	fresh := inbox.SenderPatch{Inbox: in.ID, Kind: inbox.KindDomain, Value: "new.test"}
	q, err = s.Senders.AskUpsert(ctx, a, fresh)
	w.must(err)
	w.listed(acme(), in.ID, inbox.KindDomain, "new.test")
	a.Confirmed = &inbox.Confirmation{Nonce: "n", Targets: q.Targets, Expires: w.now().Add(time.Minute)}
	_, _, err = s.Senders.Upsert(ctx, a, fresh)
	wantKind(t, err, apperr.Conflict, "confirmation_outdated")
}

func second[T any](_ T, err error) error { return err }

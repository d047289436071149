package inbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// WebhookPatch is what an upsert sets: a merge-patch of the webhook that ID names, or else the natural key Name.
type WebhookPatch struct {
	ID        string
	Name      string
	URL       string          // needed on creation
	Events    []EventType     // needed on creation; nil: as they are
	Inboxes   Field[[]string] // ids or slugs; null, and on creation: all
	Enabled   Field[bool]     // null, and on creation: true
	IfVersion uint64          // 0: whatever it is
}

// normal checks the patch and puts what it holds into its one spelling.
func (s *Webhooks) normal(ctx context.Context, a Actor, p WebhookPatch) (WebhookPatch, error) {
	switch {
	case p.ID == "" && p.Name == "":
		return p, invalid("body.name", "name or id is needed", "Send name to create a webhook or to change the one that has it.")
	case p.ID != "" && !validID("webhook", p.ID):
		return p, NoWebhook()
	}
	if p.Name != "" {
		if err := checkSlug("body.name", p.Name); err != nil {
			return p, err
		}
	}
	var err error
	if p.URL != "" {
		if p.URL, err = s.address(p.URL); err != nil {
			return p, err
		}
	}
	if p.Events != nil {
		if p.Events, err = checkEvents(p.Events); err != nil {
			return p, err
		}
	}
	if f := p.Inboxes; f.Present && !f.Null {
		if p.Inboxes.Value, err = s.inboxes(ctx, a, f.Value); err != nil {
			return p, err
		}
	}
	return p, nil
}

// checkEvents orders them as they are documented, each once.
func checkEvents(list []EventType) ([]EventType, error) {
	for _, t := range list {
		if !slices.Contains(EventTypes(), t) || t == EventTest {
			return nil, invalid("body.events", strings.TrimSuffix(eventNames(), ", "+string(EventTest)))
		}
	}
	if len(list) == 0 {
		return nil, invalid("body.events", "at least one", "Delete or disable the webhook to be told of nothing.")
	}
	var out []EventType
	for _, t := range EventTypes() {
		if slices.Contains(list, t) {
			out = append(out, t)
		}
	}
	return out, nil
}

// inboxes are the ids of those that are named, in order.
func (s *Webhooks) inboxes(ctx context.Context, a Actor, refs []string) ([]string, error) {
	if len(refs) > maxWebhookInboxes {
		return nil, invalid("body.inboxes", fmt.Sprintf("at most %d", maxWebhookInboxes), "Leave inboxes out to be told of all.")
	}
	var ids []string
	for _, ref := range refs {
		in, err := s.d.live(ctx, a, ref)
		if err != nil {
			return nil, err
		}
		ids = append(ids, in.ID)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// apply changes a webhook or makes it, but for its secret. It reports whether a lasting outlet opens or leads elsewhere: created,
// another address, other events or inboxes, switched on.
func (p WebhookPatch) apply(a Actor, w *Webhook, id string, now time.Time) (opens bool, err error) {
	next := *w
	if w.Version == 0 {
		if p.URL == "" || p.Events == nil {
			return false, invalid("body.url", "url and events are needed to create a webhook", "Send name, url and events.")
		}
		next = Webhook{ID: id, Organization: a.Organization, Workspace: a.Workspace, Name: p.Name, CreatedAt: now, Enabled: true}
	}
	switch {
	case p.IfVersion != 0 && p.IfVersion != w.Version:
		return false, staleVersion(w.Version, "webhooks_get")
	case !w.DeletedAt.IsZero():
		return false, apperr.New(apperr.Conflict, "deleted_exists", "A webhook with this name was deleted and can still be restored.",
			"Call webhooks_restore with id "+w.ID+", then repeat this call.", "Or choose another name.")
	}
	if p.Name != "" {
		next.Name = p.Name
	}
	if p.URL != "" {
		next.URL = p.URL
	}
	if p.Events != nil {
		next.Events = p.Events
	}
	next.Inboxes = p.Inboxes.or(w.Inboxes)
	if e := p.Enabled; e.Present {
		next.Enabled = e.Null || e.Value
	}
	switch {
	case next.Enabled:
		next.DisabledReason = ""
	case w.Enabled || w.Version == 0:
		next.DisabledReason = DisabledByPerson
	}
	opens = w.Version == 0 || next.URL != w.URL || next.Enabled && !w.Enabled || !slices.Equal(next.Events, w.Events) || !slices.Equal(next.Inboxes, w.Inboxes)
	if !opens && next.Name == w.Name && next.Enabled == w.Enabled {
		return false, nil
	}
	next.UpdatedAt, next.Version = now, w.Version+1
	*w = next
	return opens, nil
}

// find is the webhook that a patch names; a zero one when its name is free.
func (s *Webhooks) find(ctx context.Context, a Actor, p WebhookPatch) (Webhook, error) {
	if p.ID != "" {
		return s.any(ctx, a, p.ID)
	}
	w, err := s.d.Webhooks.WebhookNamed(ctx, a.Workspace, p.Name)
	if apperr.Is(err, apperr.NotFound) {
		return Webhook{}, nil
	}
	return w, err //nolint:wrapcheck // the store names the step
}

// nameTarget is what a person is asked about when a webhook is created: its natural key.
func nameTarget(name string) string { return "webhook:" + name }

const upsertInstead = "PUT /api/v1/webhooks"

// AskUpsert says what a person is asked before Upsert; nil when no outlet opens or leads elsewhere.
func (s *Webhooks) AskUpsert(ctx context.Context, a Actor, p WebhookPatch) (*Question, error) {
	p, err := s.normal(ctx, a, p)
	if err != nil {
		return nil, err
	}
	w, err := s.find(ctx, a, p)
	if err != nil {
		return nil, err
	}
	next := w
	opens, err := p.apply(a, &next, "", s.d.now())
	if err != nil || !opens {
		return nil, err
	}
	q := &Question{Values: []string{next.Name, next.Host(), joined(next.Events)}, Targets: map[string]string{w.ID: Version(w.Version)}}
	q.Text = "Change webhook {}: from now on it sends to {}, at {}"
	if w.Version == 0 {
		if err := a.mayReceive(upsertInstead); err != nil {
			return nil, err
		}
		q.Text = "Create webhook {}, which sends to {}, at {}"
		q.Targets = map[string]string{nameTarget(p.Name): absent}
	}
	q.Text += ", of {}"
	q.Values = append(q.Values, s.reach(next))
	if !next.Enabled {
		q.Text += "; it is disabled"
	}
	if w.Version > 0 && next.Host() != w.Host() {
		q.Text += "; until now it sent to {}"
		q.Values = append(q.Values, w.Host())
	}
	return q, nil
}

// reach is the inboxes in words.
func (s *Webhooks) reach(w Webhook) string {
	switch n := len(w.Inboxes); n {
	case 0:
		return "every inbox"
	case 1:
		return w.Inboxes[0]
	default:
		return fmt.Sprintf("%d inboxes", n)
	}
}

// joined is events in words: all of them by name as far as there is room, for a question cuts long values.
func joined(list []EventType) string {
	var names []string
	for _, t := range list {
		names = append(names, string(t))
	}
	text := strings.Join(names, ", ")
	if len(text) <= 80 {
		return text
	}
	return fmt.Sprintf("%d events, %s among them", len(list), strings.Join(names[:2], " and "))
}

// Upsert creates the webhook or changes the one that is there; created tells which. Only who creates gets a secret.
func (s *Webhooks) Upsert(ctx context.Context, a Actor, p WebhookPatch) (w Webhook, secret SecretReply, created bool, err error) {
	p, err = s.normal(ctx, a, p)
	if err != nil {
		return Webhook{}, SecretReply{}, false, err
	}
	for range upsertAttempts {
		w, secret, created, err = s.upsertOnce(ctx, a, p)
		// A name that was free when it was looked for was taken meanwhile: by this very call at once elsewhere, as a rule.
		if !errors.Is(err, ErrWebhookName) || p.ID != "" {
			return w, secret, created, err
		}
	}
	return Webhook{}, SecretReply{}, false, Busy()
}

func (s *Webhooks) upsertOnce(ctx context.Context, a Actor, p WebhookPatch) (w Webhook, secret SecretReply, created bool, err error) {
	found, err := s.find(ctx, a, p)
	if err != nil {
		return Webhook{}, SecretReply{}, false, err
	}
	id, plain, sealed := found.ID, "", ""
	if found.Version == 0 {
		if err := a.mayReceive(upsertInstead); err != nil {
			return Webhook{}, SecretReply{}, false, err
		}
		if id, err = NewID("webhook", s.d.now(), s.d.Rand); err != nil {
			return Webhook{}, SecretReply{}, false, err
		}
		if plain, sealed, err = s.newSecret(a.Workspace, id); err != nil {
			return Webhook{}, SecretReply{}, false, err
		}
	}
	w, err = s.update(ctx, a, id, func(w *Webhook) error {
		if w.Version == 0 && sealed == "" {
			return NoWebhook() // it was purged in between
		}
		before := *w
		opens, err := p.apply(a, w, id, s.d.now())
		if err != nil {
			return err
		}
		if created = before.Version == 0; !created {
			return a.confirm(id, before.Version, opens)
		}
		if err := a.confirmState(nameTarget(p.Name), absent, true); err != nil {
			return err
		}
		w.Secret, w.SecretPrefix = sealed, plain[:shownSecret]
		if secret == (SecretReply{}) {
			secret, err = s.d.hand(ctx, a, "webhook "+w.Name, plain)
		}
		return err
	})
	return w, secret, created && err == nil, err
}

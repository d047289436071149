package inbox

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// Bounds of a webhook.
const (
	maxWebhookURL     = 2048
	maxWebhookInboxes = 20
	// MaxOverlap is how long a signing secret that was replaced goes on signing at most.
	MaxOverlap = 24 * time.Hour

	secretBytes  = 32 // Standard Webhooks asks for 24 to 64
	secretMarker = "whsec_"
	shownSecret  = len(secretMarker) + 4
	forever      = time.Duration(math.MaxInt64) // what Sealer takes for no expiry
)

// Webhooks are the operations on webhooks.
type Webhooks struct{ d Deps }

// WebhookQuery filters a list of webhooks.
type WebhookQuery struct {
	Enabled        *bool
	Event          EventType
	Inbox          string // id or slug
	IncludeDeleted bool   // admins only
}

// WebhookPage is one page of webhooks.
type WebhookPage struct {
	Rows   []WebhookRow
	Next   string  // cursor
	Window *Window // nil when the keys serve the list
}

// WebhookDetail is a webhook with its last deliveries.
type WebhookDetail struct {
	WebhookRow
	Deliveries []WebhookDelivery
}

// lastDeliveries are shown with a webhook.
const lastDeliveries = 5

// List returns the webhooks of the workspace in the order in which they were made.
func (s *Webhooks) List(ctx context.Context, a Actor, q WebhookQuery, p PageRequest) (WebhookPage, error) {
	limit, err := p.limit()
	if err != nil {
		return WebhookPage{}, err
	}
	if q.IncludeDeleted && !a.Role.AtLeast(RoleAdmin) {
		return WebhookPage{}, adminOnly()
	}
	if q.Event != "" && !slices.Contains(EventTypes(), q.Event) {
		return WebhookPage{}, invalid("query.event", eventNames())
	}
	c := newCursors(s.d.Cursors, a, "webhooks_list", q)
	after, err := c.open(p.Cursor)
	if err != nil {
		return WebhookPage{}, err
	}
	match, err := s.matcher(ctx, a, q)
	if err != nil {
		return WebhookPage{}, err
	}
	l := lister[WebhookRow]{
		after: after, limit: limit, match: match,
		key: func(w *WebhookRow) string { return w.ID },
		read: func(ctx context.Context, after string, n int) ([]WebhookRow, string, error) {
			return s.d.Webhooks.Webhooks(ctx, WebhookRange{a.Workspace, q.IncludeDeleted, after, n})
		},
	}
	rows, next, err := l.collect(ctx)
	if err != nil {
		return WebhookPage{}, fmt.Errorf("list webhooks of %s: %w", a.Workspace, err)
	}
	page := WebhookPage{Rows: rows}
	if l.match != nil {
		page.Window = &Window{Examined: l.examined, Complete: next == ""}
	}
	page.Next, err = c.seal(next)
	return page, err
}

func (s *Webhooks) matcher(ctx context.Context, a Actor, q WebhookQuery) (func(*WebhookRow) bool, error) {
	if q.Enabled == nil && q.Event == "" && q.Inbox == "" {
		return nil, nil //nolint:nilnil // the keys serve the list
	}
	inbox := ""
	if q.Inbox != "" {
		in, err := s.d.live(ctx, a, q.Inbox)
		if err != nil {
			return nil, err
		}
		inbox = in.ID
	}
	return func(w *WebhookRow) bool {
		return (q.Enabled == nil || w.Enabled == *q.Enabled) && (q.Event == "" || slices.Contains(w.Events, q.Event)) &&
			(inbox == "" || len(w.Inboxes) == 0 || slices.Contains(w.Inboxes, inbox))
	}, nil
}

// Get returns one webhook with its last deliveries.
func (s *Webhooks) Get(ctx context.Context, a Actor, id string) (WebhookDetail, error) {
	w, err := s.live(ctx, a, id)
	if err != nil {
		return WebhookDetail{}, err
	}
	d := WebhookDetail{WebhookRow: WebhookRow{Webhook: w}}
	if d.Health, err = s.d.Webhooks.Health(ctx, a.Workspace, id); err != nil {
		return WebhookDetail{}, fmt.Errorf("health of %s: %w", id, err)
	}
	d.Deliveries, _, err = s.d.Deliveries.Deliveries(ctx, DeliveryRange{Workspace: a.Workspace, Webhook: id, Limit: lastDeliveries})
	if err != nil {
		return WebhookDetail{}, fmt.Errorf("deliveries of %s: %w", id, err)
	}
	return d, nil
}

// live finds a webhook that is not deleted.
func (s *Webhooks) live(ctx context.Context, a Actor, id string) (Webhook, error) {
	w, err := s.any(ctx, a, id)
	if err == nil && !w.DeletedAt.IsZero() {
		return Webhook{}, NoWebhook()
	}
	return w, err
}

func (s *Webhooks) any(ctx context.Context, a Actor, id string) (Webhook, error) {
	if !validID("webhook", id) {
		return Webhook{}, NoWebhook()
	}
	return s.d.Webhooks.Webhook(ctx, a.Workspace, id) //nolint:wrapcheck // the store names the step
}

// newSecret draws a signing secret and seals it for a webhook.
func (s *Webhooks) newSecret(ws, id string) (plain, sealed string, err error) {
	var b [secretBytes]byte
	if _, err := io.ReadFull(s.d.Rand, b[:]); err != nil {
		return "", "", fmt.Errorf("random bytes of a secret: %w", err)
	}
	plain = secretMarker + base64.StdEncoding.EncodeToString(b[:])
	sealed, err = s.d.WebhookSecrets.Seal([]byte(plain), WebhookSecretAD(ws, id), forever)
	if err != nil {
		return "", "", fmt.Errorf("seal a secret: %w", err)
	}
	return plain, sealed, nil
}

// address puts a receiver's address into its one spelling, the host in A-labels, and refuses what is never sent to.
func (s *Webhooks) address(raw string) (string, error) {
	refused := func() error {
		return invalid("body.url", "an https address of a public host on port 443, without user and fragment",
			"Send an address such as https://example.com/hooks/mail.")
	}
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil || u.Host == "" || len(raw) > maxWebhookURL {
		return "", refused()
	}
	if host := u.Hostname(); strings.Contains(host, ".") {
		normal, err := NormalDomain(host)
		if err != nil {
			return "", refused()
		}
		if port := u.Port(); port != "" && port != "443" {
			normal += ":" + port // Check judges it
		}
		u.Host = normal
	}
	if s.d.Receivers.Check(u.String()) != nil {
		return "", refused()
	}
	return u.String(), nil
}

// Host is the receiving host, in A-labels.
func (w Webhook) Host() string {
	u, err := url.Parse(w.URL)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// Origin is a webhook's address without what may be a secret of the receiver's: path and query.
func (w Webhook) Origin() string {
	u, err := url.Parse(w.URL)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host + "/"
}

func eventNames() string {
	var names []string
	for _, t := range EventTypes() {
		names = append(names, string(t))
	}
	return strings.Join(names, ", ")
}

func (s *Webhooks) update(ctx context.Context, a Actor, id string, change func(*Webhook) error) (Webhook, error) {
	act, err := s.d.act(a)
	if err != nil {
		return Webhook{}, err
	}
	w, err := s.d.Webhooks.UpdateWebhook(ctx, a.Workspace, id, act, change)
	switch {
	case errors.Is(err, ErrTooManyWebhooks):
		return Webhook{}, apperr.New(apperr.Conflict, "too_many_webhooks", "This workspace has as many webhooks as it can have.",
			"Delete one, or add events to one that is there.").Because(err)
	case errors.Is(err, ErrTooManyDeleted):
		return Webhook{}, apperr.New(apperr.Conflict, "too_many_deleted", "This workspace has as many deleted webhooks as it can keep.",
			"Disable this one instead (webhooks_upsert, enabled false), or wait until the oldest are purged after 30 days.").Because(err)
	case errors.Is(err, ErrWebhookName):
		return Webhook{}, apperr.New(apperr.Conflict, "name_taken", "Another webhook of the workspace has this name.", "Choose another name.").Because(err)
	case err != nil:
		return Webhook{}, fmt.Errorf("change webhook %s: %w", id, err)
	}
	return w, nil
}

// AskDelete says what a person is asked before Delete; nil when it is deleted already.
func (s *Webhooks) AskDelete(ctx context.Context, a Actor, id string) (*Question, error) {
	w, err := s.any(ctx, a, id)
	if err != nil || !w.DeletedAt.IsZero() {
		return nil, err
	}
	return &Question{
		Text:    "Delete webhook {}, which sends to {}; restorable until {}",
		Values:  []string{w.Name, w.Host(), until(PurgeAt(s.d.now()))},
		Targets: map[string]string{w.ID: Version(w.Version)},
	}, nil
}

// Delete ends a webhook: nothing is sent to it from now on, not what waits either. Repeating it answers the same.
func (s *Webhooks) Delete(ctx context.Context, a Actor, id string) (Webhook, error) {
	if !validID("webhook", id) {
		return Webhook{}, NoWebhook()
	}
	return s.update(ctx, a, id, func(w *Webhook) error {
		if w.Version == 0 {
			return NoWebhook()
		}
		if err := a.confirm(id, w.Version, w.DeletedAt.IsZero()); err != nil {
			return err
		}
		if w.DeletedAt.IsZero() {
			w.DeletedAt = s.d.now()
			w.UpdatedAt, w.Version = w.DeletedAt, w.Version+1
		}
		return nil
	})
}

// Restore brings a deleted webhook back, switched off: events went by, and whoever runs the receiver may have gone. Repeating it
// answers the same.
func (s *Webhooks) Restore(ctx context.Context, a Actor, id string) (Webhook, error) {
	if !validID("webhook", id) {
		return Webhook{}, NoWebhook()
	}
	return s.update(ctx, a, id, func(w *Webhook) error {
		switch {
		case w.Version == 0:
			return NoWebhook()
		case w.DeletedAt.IsZero():
			return nil
		}
		w.DeletedAt, w.Enabled, w.DisabledReason = time.Time{}, false, DisabledRestored
		w.UpdatedAt, w.Version = s.d.now(), w.Version+1
		return nil
	})
}

// AskRotate says what a person is asked before Rotate.
func (s *Webhooks) AskRotate(ctx context.Context, a Actor, id string, overlap time.Duration) (*Question, error) {
	if err := checkOverlap(overlap); err != nil {
		return nil, err
	}
	if err := a.mayReceive("POST /api/v1/webhooks/" + id + "/rotate-secret"); err != nil {
		return nil, err
	}
	w, err := s.live(ctx, a, id)
	if err != nil {
		return nil, err
	}
	q := &Question{
		Text: "Make a new signing secret for webhook {}, which sends to {}; ", Values: []string{w.Name, w.Host()},
		Targets: map[string]string{w.ID: Version(w.Version)},
	}
	if overlap == 0 {
		q.Text += "the old one stops signing at once"
		return q, nil
	}
	q.Text += "the old one signs too for {}"
	q.Values = append(q.Values, hours(overlap))
	return q, nil
}

func hours(d time.Duration) string {
	if d == time.Hour {
		return "1 hour"
	}
	return fmt.Sprintf("%d hours", d/time.Hour)
}

func checkOverlap(d time.Duration) error {
	if d < 0 || d > MaxOverlap || d%time.Hour != 0 {
		return invalid("body.overlap_h", fmt.Sprintf("0 to %d", MaxOverlap/time.Hour))
	}
	return nil
}

// Rotate makes a new signing secret; the one before signs too for a while. Each call makes one.
func (s *Webhooks) Rotate(ctx context.Context, a Actor, id string, overlap time.Duration) (Webhook, SecretReply, error) {
	if err := checkOverlap(overlap); err != nil {
		return Webhook{}, SecretReply{}, err
	}
	if err := a.mayReceive("POST /api/v1/webhooks/" + id + "/rotate-secret"); err != nil {
		return Webhook{}, SecretReply{}, err
	}
	if !validID("webhook", id) {
		return Webhook{}, SecretReply{}, NoWebhook()
	}
	plain, sealed, err := s.newSecret(a.Workspace, id)
	if err != nil {
		return Webhook{}, SecretReply{}, err
	}
	reply := SecretReply{}
	w, err := s.update(ctx, a, id, func(w *Webhook) error {
		if w.Version == 0 || !w.DeletedAt.IsZero() {
			return NoWebhook()
		}
		if err := a.confirm(id, w.Version, true); err != nil {
			return err
		}
		if reply == (SecretReply{}) { // once, however often the change starts again
			if reply, err = s.d.hand(ctx, a, "webhook "+w.Name, plain); err != nil {
				return err
			}
		}
		now := s.d.now()
		w.Previous, w.PreviousUntil = "", time.Time{}
		if overlap > 0 {
			w.Previous, w.PreviousUntil = w.Secret, now.Add(overlap)
		}
		w.Secret, w.SecretPrefix = sealed, plain[:shownSecret]
		w.UpdatedAt, w.Version = now, w.Version+1
		return nil
	})
	return w, reply, err
}

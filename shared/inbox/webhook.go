package inbox

import (
	"slices"
	"strconv"
	"time"
)

// Webhook is an address of somebody else's that is told of events.
type Webhook struct {
	ID             string      `json:"id"`
	Organization   string      `json:"organization"`
	Workspace      string      `json:"workspace"`
	Name           string      `json:"name"` // the natural key, a slug
	URL            string      `json:"url"`  // its host in A-labels
	Events         []EventType `json:"events"`
	Inboxes        []string    `json:"inboxes,omitempty"` // ids; none: all, and what is about no inbox
	Enabled        bool        `json:"enabled"`
	DisabledReason string      `json:"disabled_reason,omitempty"` // a code of ours; empty while it is enabled
	// Secret and Previous are sealed signing secrets, bound to the webhook. The previous one signs too until PreviousUntil.
	Secret        string    `json:"secret"`
	SecretPrefix  string    `json:"secret_prefix"`
	Previous      string    `json:"previous,omitempty"`
	PreviousUntil time.Time `json:"previous_until,omitzero"`
	CreatedAt     time.Time `json:"created_at"`
	UpdatedAt     time.Time `json:"updated_at"`
	DeletedAt     time.Time `json:"deleted_at,omitzero"`
	Version       uint64    `json:"version"` // moved by operations only, not when the service switches it off; 0: there is none
}

// Why a webhook is disabled.
const (
	DisabledByPerson = "by_person"
	DisabledRestored = "restored" // it came back from deletion and waits to be enabled
	DisabledGone     = "gone"     // the receiver said 410
	DisabledFailing  = "failing"  // nothing was delivered for days
)

// Wants reports whether a webhook is to be told of an event. An event of no inbox is for webhooks without a choice of inboxes.
func (w WebhookEntry) Wants(e Event) bool {
	if !w.Enabled || !w.DeletedAt.IsZero() {
		return false
	}
	if e.Webhook != "" {
		return e.Webhook == w.ID
	}
	if slices.Contains(e.Also, w.Name) {
		return true
	}
	return slices.Contains(w.Events, e.Type) && (len(w.Inboxes) == 0 || e.Inbox != "" && slices.Contains(w.Inboxes, e.Inbox))
}

// WebhookEntry is what is known of each webhook of a workspace without reading it: who wants what, and which names are taken.
type WebhookEntry struct {
	ID        string      `json:"id"`
	Name      string      `json:"name"`
	Events    []EventType `json:"events,omitempty"`
	Inboxes   []string    `json:"inboxes,omitempty"`
	Enabled   bool        `json:"enabled,omitempty"`
	DeletedAt time.Time   `json:"deleted_at,omitzero"`
}

// Entry is the entry of a webhook.
func (w Webhook) Entry() WebhookEntry {
	return WebhookEntry{w.ID, w.Name, w.Events, w.Inboxes, w.Enabled, w.DeletedAt}
}

// WebhookHealth is how a webhook's receiver answered lately. It is kept beside the webhook, for it changes with deliveries.
type WebhookHealth struct {
	Failures     int       `json:"failures"`               // attempts in a row
	FailingSince time.Time `json:"failing_since,omitzero"` // the first of them
}

// DeliveryStatus is where a delivery stands.
type DeliveryStatus string

// The statuses of a delivery.
const (
	DeliveryPending   DeliveryStatus = "pending"   // waits for its first or next attempt
	DeliverySucceeded DeliveryStatus = "succeeded" // the receiver answered 2xx
	DeliveryFailed    DeliveryStatus = "failed"    // the last attempt failed and another follows
	DeliveryDead      DeliveryStatus = "dead"      // given up; webhook_deliveries_retry tries once more
)

// DeliveryStatuses lists them.
func DeliveryStatuses() []DeliveryStatus {
	return []DeliveryStatus{DeliveryPending, DeliverySucceeded, DeliveryFailed, DeliveryDead}
}

// Why a delivery is dead.
const (
	DeadExhausted = "exhausted"        // every attempt failed
	DeadDisabled  = "webhook_disabled" // also when it is deleted
	DeadExpired   = "event_expired"    // what was to be sent is kept no longer
	DeadRefused   = "gone"             // the receiver said 410
)

// Bounds of deliveries.
const (
	// DeliveryRetention is how long deliveries and what they carried are kept.
	DeliveryRetention = 30 * 24 * time.Hour
	// MaxAttempts of a delivery are remembered, the last ones.
	MaxAttempts = 20
	// MaxResponse is how much of a response is kept, in bytes.
	MaxResponse = 1 << 10
)

// WebhookDelivery is one event on its way to one webhook.
type WebhookDelivery struct {
	ID        string         `json:"id"` // follows from event and webhook; it is the webhook-id of every attempt
	Workspace string         `json:"workspace"`
	Webhook   string         `json:"webhook"`
	Event     string         `json:"event"`
	Type      EventType      `json:"type"`
	Email     string         `json:"email,omitempty"`
	Inbox     string         `json:"inbox,omitempty"` // that the event is about; of older ones it is not known
	Status    DeliveryStatus `json:"status"`
	Reason    string         `json:"reason,omitempty"`    // why it is dead
	Attempt   int            `json:"attempt"`             // how many were made
	Scheduled int            `json:"scheduled,omitempty"` // of them, those of the schedule
	// Manual: the next attempt was asked for, outside of the schedule. Once: and nothing follows it, for the schedule was over.
	Manual     bool              `json:"manual,omitempty"`
	Once       bool              `json:"once,omitempty"`
	RetryJob   string            `json:"retry_job,omitempty"` // the last that asked
	Claimed    time.Time         `json:"claimed,omitzero"`    // a worker is at it since then
	HTTPStatus int               `json:"http_status,omitempty"`
	Duration   int64             `json:"duration_ms,omitempty"`
	NextAt     time.Time         `json:"next_at,omitzero"` // zero when nothing follows
	CreatedAt  time.Time         `json:"created_at"`
	UpdatedAt  time.Time         `json:"updated_at"`
	Attempts   []DeliveryAttempt `json:"attempts,omitempty"` // oldest first; not in lists
}

// What an attempt without an answer ended with. The words are few on purpose: finer ones would scan networks for whoever
// chooses addresses.
const (
	AttemptNoAnswer    = "no_answer"   // nothing came back in time, or it was not HTTPS on a public address
	AttemptInterrupted = "interrupted" // the worker died; whether the receiver has it is unknown
)

// DeliveryAttempt is one try.
type DeliveryAttempt struct {
	At         time.Time `json:"at"` // also its webhook-timestamp, cut to the second
	HTTPStatus int       `json:"http_status,omitempty"`
	Duration   int64     `json:"duration_ms"`
	Error      string    `json:"error,omitempty"` // a code of ours
	Response   string    `json:"response,omitempty"`
	Signatures int       `json:"signatures,omitempty"`
	Manual     bool      `json:"manual,omitempty"`
}

// Open reports whether an attempt is still to come.
func (d WebhookDelivery) Open() bool {
	return d.Status == DeliveryPending || d.Status == DeliveryFailed
}

// Retry has a delivery sent again at once, for a job; a job that asks twice is heard once.
func (d *WebhookDelivery) Retry(job string, now time.Time) {
	if d.RetryJob == job {
		return
	}
	d.RetryJob, d.Manual, d.Once = job, true, !d.Open()
	d.Status, d.Reason, d.NextAt, d.UpdatedAt = DeliveryPending, "", now, now
}

// NewDelivery is the delivery of an event to a webhook; making it twice makes the same.
func NewDelivery(e Event, webhook string, now time.Time) WebhookDelivery {
	now = now.UTC().Truncate(time.Millisecond)
	return WebhookDelivery{
		ID: timedID("delivery", e.At, e.ID, webhook), Workspace: e.Workspace, Webhook: webhook, Event: e.ID, Type: e.Type, Email: e.Email, Inbox: e.Inbox,
		Status: DeliveryPending, NextAt: now, CreatedAt: now, UpdatedAt: now,
	}
}

// WebhookSecretPurpose is what signing secrets are sealed for: one process seals them, another opens.
const WebhookSecretPurpose = "webhook/secret"

// WebhookSecretAD is what a sealed signing secret is bound to: a row copied to another webhook does not open there.
func WebhookSecretAD(workspace, webhook string) []byte {
	return []byte("webhook/" + workspace + "/" + webhook)
}

// DeliveryMessage is the id under which a delivery goes through a queue: it says where the delivery lies.
func DeliveryMessage(workspace, id string) string { return id + "_" + workspace }

// ParseDeliveryMessage is the inverse of DeliveryMessage.
func ParseDeliveryMessage(s string) (workspace, id string, ok bool) {
	const n = len("delivery_") + 26
	if len(s) < n+2 || s[n] != '_' || !validID("delivery", s[:n]) {
		return "", "", false
	}
	return s[n+1:], s[:n], true
}

// Headers are what an attempt said of itself, but for its signature, which is not kept.
func (d WebhookDelivery) Headers(a DeliveryAttempt) map[string]string {
	return map[string]string{"webhook-id": d.ID, "webhook-timestamp": strconv.FormatInt(a.At.Unix(), 10), "content-type": "application/json"}
}

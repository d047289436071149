package inboxmcp

import (
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
)

// happening explains one event.
type happening struct {
	Event   inbox.EventType `json:"event"`
	Meaning string          `json:"meaning"`
}

// events is the catalogue for webhooks.
func events() any {
	meanings := map[inbox.EventType]string{
		inbox.EventReceived:        "Mail was accepted; nothing of it was read yet. Dropped later if it is an exact copy of an earlier one.",
		inbox.EventProcessed:       "Mail can be read; also when a person released it from quarantine.",
		inbox.EventQuarantined:     "Mail is held back until a person releases it; reason says why.",
		inbox.EventRejected:        "A sender was refused at the door: there is no email. Once a second and inbox at most.",
		inbox.EventFailed:          "Mail could not be read; the raw bytes are kept.",
		inbox.EventHandled:         "Somebody marked an email as handled.",
		inbox.EventExtracted:       "Data was extracted from an email.",
		inbox.EventSendersChanged:  "Who may send to an inbox changed.",
		inbox.EventWebhookDisabled: "The service switched a webhook off: gone or failing.",
		inbox.EventJobFailed:       "A job came to nothing.",
		inbox.EventTest:            "Sent by webhooks_test; not to be subscribed to.",
	}
	var list []happening
	for _, t := range inbox.EventTypes() {
		list = append(list, happening{t, meanings[t]})
	}
	return map[string]any{
		"events": list,
		"sample": map[string]any{
			"type": inbox.EventProcessed, "timestamp": time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC), "id": "event_01KDT00000000000000000000E",
			"workspace_id": "ws_01KDT00000000000000000000W", "api_url": "https://mail.example.com/api/v1/emails/email_01KDT00000000000000000000M",
			"data": map[string]any{
				"email_id": "email_01KDT00000000000000000000M", "inbox_id": "inbox_01KDT00000000000000000000N", "status": inbox.StatusProcessed,
				"labels": []string{}, "handled": false, "trust": inbox.Verified, "flags": []string{}, "received_at": time.Date(2026, 7, 28, 11, 59, 58, 0, time.UTC),
				"size_bytes": 20480, "attachments": 1, "codes": 0, "links": 2,
				"untrusted": map[string]any{
					"notice": inbox.UntrustedNotice, "from": []any{map[string]any{"name": "Ana", "address": "ana@example.com"}},
					"subject": "Invoice", "snippet": "Attached is the invoice.",
				},
			},
		},
		"verify": "Standard Webhooks: webhook-signature holds v1,BASE64 of HMAC-SHA256 over webhook-id.webhook-timestamp.body with the bytes behind whsec_, " +
			"several with spaces between after a rotation; refuse timestamps older than 5 minutes. Every language has a library.",
		"delivery": "At least once and in no order: the same webhook-id is the same delivery, so remember those that were dealt with. Answer 2xx within 10 seconds; " +
			"anything else is tried again after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 10 h. No redirects. 410 disables the webhook, as do 5 days of failures. " +
			"The body has no mail text but a snippet, codes and links masked: read the email at api_url.",
	}
}

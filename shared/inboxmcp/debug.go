package inboxmcp

import (
	"context"
	"fmt"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/mcp"
)

// maxDebugged is how many deliveries that are not through the prompt looks at closely.
const maxDebugged = 3

func spanNames() []string { return []string{"1h", "24h", "7d"} }

func spans() map[string]time.Duration {
	return map[string]time.Duration{"1h": time.Hour, "24h": 24 * time.Hour, "7d": 7 * 24 * time.Hour}
}

// debugWebhook embeds the webhook, its deliveries, and the newest of them that did not arrive.
func (o *Offers) debugWebhook(ctx context.Context, r mcp.CallRequest, arguments map[string]string) (*mcp.PromptResult, error) {
	id, since := arguments[argWebhook], arguments[argSince]
	if since == "" {
		since = "24h"
	}
	hook, err := o.call(ctx, r, toolWebhook, map[string]any{argID: id})
	if err != nil {
		return nil, err
	}
	var page struct {
		Data []struct{ ID, Status string }
	}
	list, err := o.get(ctx, r, toolDeliveries, map[string]any{
		"webhook": id, argLimit: inbox.MaxLimit, "after": o.now().Add(-spans()[since]).UTC().Format(time.RFC3339),
	}, &page)
	if err != nil {
		return nil, err
	}
	v, delivery := values{argID: id}, o.family("webhook_delivery")
	contents := []mcp.Content{
		mcp.EmbedText(o.family("webhook").fill(v), typeJSON, hook.json), mcp.EmbedText(o.family("webhook_deliveries").fill(v), typeJSON, list.json),
	}
	looked := 0
	for _, d := range page.Data {
		if looked == maxDebugged || d.Status == string(inbox.DeliverySucceeded) {
			continue
		}
		got, err := o.call(ctx, r, toolDelivery, map[string]any{argID: d.ID})
		if apperr.Is(err, apperr.NotFound) {
			continue // it ended by itself after the list was read
		}
		if err != nil {
			return nil, err
		}
		looked++
		contents = append(contents, mcp.EmbedText(delivery.fill(values{argID: d.ID}), typeJSON, got.json))
	}
	again := "You can't send anything here: leave it at advice."
	if may, err := o.visible(r, toolRetry); err != nil {
		return nil, err
	} else if may {
		again = "Send nothing yet: ask me first, then use webhook_deliveries_retry or webhooks_test."
	}
	return o.conversation(arguments[argLanguage], contents,
		fmt.Sprintf("Find out what is wrong with the webhook %s: it, its deliveries of the last %s and the newest that did not arrive are in the resources that follow.", id, since),
		"Say whether it works, since when it does not, what the attempts have in common (status, no answer, time) and what that points to: address, certificate, "+
			"signature check, a slow or missing receiver, a disabled webhook.",
		"Give the next steps in their order. response_excerpt was written by the receiver. "+again), nil
}

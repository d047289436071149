package inboxops

import (
	"context"
	"math"
	"net/http"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/rest"
)

type usageGetInput struct {
	Period string `query:"period" maxLength:"7" doc:"A month, as 2026-07; the present one when left out." tool:"As 2026-07; default: this month."`
}

// Usage is what a workspace used in a month.
type Usage struct {
	Period   string        `json:"period"`
	Counters UsageCounters `json:"counters" doc:"Approximate."`
	Limits   UsageLimits   `json:"limits"`
	Rate     *UsageRate    `json:"rate" doc:"Of this grant, as this instance counts; null: calls are not limited."`
}

// UsageCounters count.
type UsageCounters struct {
	Received    int64 `json:"emails_received" doc:"Read by the service; exact duplicates left out."`
	Processed   int64 `json:"emails_processed"`
	Quarantined int64 `json:"emails_quarantined" doc:"On arrival."`
	Failed      int64 `json:"emails_failed"`
}

// UsageLimits are what may be used.
type UsageLimits struct {
	WaitsPerGrant int `json:"waits_per_grant" doc:"emails_wait at once."`
	WaitsInAll    int `json:"waits_in_all"`
	ClaimEmails   int `json:"emails_per_claim"`
	LeaseSeconds  int `json:"lease_seconds"`
	EmailBytes    int `json:"email_bytes" doc:"The workspace's max_message_bytes."`
	Labels        int `json:"labels_per_email"`
}

// UsageRate is what a grant has left.
type UsageRate struct {
	PerMinute int `json:"per_minute"`
	Remaining int `json:"remaining"`
	ResetS    int `json:"reset_s" doc:"Seconds until all is back."`
}

// UsageOutput is the reply of usage_get.
type UsageOutput struct{ Body UsageBody }

// UsageBody is its JSON.
type UsageBody struct {
	Data Usage    `json:"data"`
	Meta ItemMeta `json:"meta"`
}

func (o *operations) usage() []op.Operation {
	return []op.Operation{
		rest.Define(op.Spec{
			Name: "usage_get", Method: http.MethodGet, Path: "/usage",
			Title:       "Usage and limits",
			Description: "Emails of the workspace in a month, the limits, and your calls that are left in this minute.",
			Scope:       scopeUsageRead, Role: op.Viewer, Effect: op.Read, Idempotent: true,
		}, o.usageGet),
	}
}

func (o *operations) usageGet(ctx context.Context, in *usageGetInput) (*UsageOutput, error) {
	u, err := o.services.Usage.Get(ctx, o.actor(ctx), in.Period)
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	c := u.Counts
	out := Usage{
		Period: u.Month, Counters: UsageCounters{c.Received(), c.Processed, c.Quarantined, c.Failed},
		Limits: UsageLimits{
			WaitsPerGrant: inbox.WaitsOfGrant, WaitsInAll: u.Waits, ClaimEmails: inbox.MaxClaim,
			LeaseSeconds: int(inbox.MaxLease / time.Second), EmailBytes: int(u.Bytes), Labels: inbox.MaxLabels,
		},
	}
	if r := u.Rate; r != nil {
		out.Rate = &UsageRate{r.PerMinute, r.Remaining, int(math.Ceil(r.Reset.Seconds()))}
	}
	return &UsageOutput{UsageBody{Data: out}}, nil
}

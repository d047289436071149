package inboxmcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/mcp"
)

// The operations that this package calls.
const (
	toolSession     = "session_get"
	toolInboxes     = "inboxes_list"
	toolInbox       = "inboxes_get"
	toolEmails      = "emails_list"
	toolEmail       = "emails_get"
	toolUpdate      = "emails_update"
	toolThreads     = "threads_list"
	toolThread      = "threads_get"
	toolAttachments = "attachments_list"
	toolAttachment  = "attachments_get"
	toolRules       = "rules_list"
	toolRuleTest    = "rules_test"
	toolTemplates   = "extraction_templates_list"
	toolExtractions = "extractions_list"
	toolWebhooks    = "webhooks_list"
	toolWebhook     = "webhooks_get"
	toolDeliveries  = "webhook_deliveries_list"
	toolDelivery    = "webhook_deliveries_get"
	toolRetry       = "webhook_deliveries_retry"

	toolSenders      = "allowed_senders_list"
	toolSenderCheck  = "allowed_senders_check"
	toolSenderUpsert = "allowed_senders_upsert"
	toolJobs         = "jobs_list"
	toolJob          = "jobs_get"
)

// reply is what an operation answered, as it is on every surface.
type reply struct {
	json string
	meta []byte // members of the result's _meta
}

// call runs an operation. An *apperr.Error is the operation's own refusal.
func (o *Offers) call(ctx context.Context, r mcp.CallRequest, tool string, arguments map[string]any) (reply, error) {
	r.Name = tool
	if arguments != nil {
		raw, err := json.Marshal(arguments)
		if err != nil {
			return reply{}, fmt.Errorf("arguments of %s: %w", tool, err)
		}
		r.Arguments = raw
	}
	result, err := o.operations.CallTool(ctx, &r)
	if err != nil {
		return reply{}, fmt.Errorf("call %s: %w", tool, err)
	}
	if result.Released != nil {
		defer result.Released()
	}
	switch {
	case result.IsError:
		return reply{}, refusal(tool, result.JSON)
	case len(result.JSON) == 0:
		return reply{}, fmt.Errorf("call %s: no JSON came back", tool)
	}
	return reply{string(result.JSON), bytes.Clone(result.Meta)}, nil
}

// get runs an operation and reads what it answered.
func (o *Offers) get(ctx context.Context, r mcp.CallRequest, tool string, arguments map[string]any, into any) (reply, error) {
	got, err := o.call(ctx, r, tool, arguments)
	if err != nil {
		return reply{}, err
	}
	if err := json.Unmarshal([]byte(got.json), into); err != nil {
		return reply{}, fmt.Errorf("reply of %s: %w", tool, err)
	}
	return got, nil
}

// refusal reads a problem document.
func refusal(tool string, document []byte) error {
	var p struct {
		Kind, Code, Detail string
		Fixes              []string
	}
	if err := json.Unmarshal(document, &p); err != nil {
		return fmt.Errorf("problem of %s: %w", tool, err)
	}
	for _, k := range apperr.Kinds() {
		if k.String() == p.Kind && k != apperr.Internal {
			return apperr.New(k, p.Code, p.Detail, p.Fixes...)
		}
	}
	return errors.New(tool + " failed and has logged why")
}

// params makes of an operation's refusal what a client can act on; what is nobody's fault in the request stays as it is.
func params(err error, facts map[string]string) error {
	e, ok := errors.AsType[*apperr.Error](err)
	if !ok {
		return err
	}
	switch e.Kind {
	case apperr.Internal, apperr.RateLimited, apperr.Unavailable:
		return err
	case apperr.Forbidden:
		return mcp.ErrUnknown
	}
	return &mcp.ParamsError{Message: strings.Join(append([]string{e.Public}, e.Fixes...), " "), Reason: e.Name(), Facts: facts}
}

package inboxops

import "github.com/buzon-mail/buzon/shared/op"

// The scopes that the declarations here name.
const (
	scopeWorkspacesRead  = "workspaces:read"
	scopeWorkspacesWrite = "workspaces:write"
	scopeMembersRead     = "members:read"
	scopeMembersWrite    = "members:write"
	scopeInboxesRead     = "inboxes:read"
	scopeInboxesWrite    = "inboxes:write"
	scopeEmailsRead      = "emails:read"
	scopeEmailsWrite     = "emails:write"
	scopeEmailsSend      = "emails:send"
	scopeAttachmentsRead = "attachments:read"
	scopeSendersRead     = "senders:read"
	scopeSendersWrite    = "senders:write"
	scopeKeysRead        = "keys:read"
	scopeKeysWrite       = "keys:write"
	scopeUsageRead       = "usage:read"
	scopeAuditRead       = "audit:read"
	scopeCodesRead       = "codes:read"
	scopeRulesRead       = "rules:read"
	scopeRulesWrite      = "rules:write"
	scopeExtractionRead  = "extraction:read"
	scopeExtractionWrite = "extraction:write"
	scopeExtractionRun   = "extraction:run"
	scopeWebhooksRead    = "webhooks:read"
	scopeWebhooksWrite   = "webhooks:write"
	scopeWebhooksSend    = "webhooks:send"
	scopeJobsRead        = "jobs:read"
	scopeJobsWrite       = "jobs:write"
)

// Vocabulary is the closed list of scopes. Their order decides the bits of sealed and signed sets: append only.
func Vocabulary() (*op.Vocabulary, error) {
	return op.NewVocabulary([]op.ScopeInfo{ //nolint:wrapcheck // op names the scope
		{Name: scopeWorkspacesRead, Description: "See your workspaces."},
		{Name: scopeWorkspacesWrite, Description: "Create and change workspaces.", Reserved: true},
		{Name: scopeMembersRead, Description: "See who is a member and with which role.", Reserved: true},
		{Name: scopeMembersWrite, Description: "Invite members, change their roles, remove them.", Reserved: true},
		{Name: scopeInboxesRead, Description: "See inboxes and their addresses."},
		{Name: scopeInboxesWrite, Description: "Create, change, pause, delete and restore inboxes."},
		{Name: scopeEmailsRead, Description: "Read emails and the list of their attachments."},
		{Name: scopeEmailsWrite, Description: "Label, handle, delete, restore and reprocess emails."},
		{Name: scopeEmailsSend, Description: "Forward emails to members."},
		{Name: scopeAttachmentsRead, Description: "Download attachments."},
		{Name: scopeSendersRead, Description: "See allowed and blocked senders."},
		{Name: scopeSendersWrite, Description: "Change who may send to an inbox."},
		{Name: scopeWebhooksRead, Description: "See webhooks and their deliveries."},
		{Name: scopeWebhooksWrite, Description: "Create, change and delete webhooks and rotate their secrets."},
		{Name: scopeWebhooksSend, Description: "Test webhooks and repeat deliveries."},
		{Name: scopeRulesRead, Description: "See and test rules."},
		{Name: scopeRulesWrite, Description: "Create, change and delete rules."},
		{Name: scopeExtractionRead, Description: "See extraction templates and extracted data."},
		{Name: scopeExtractionWrite, Description: "Create, change and delete extraction templates."},
		{Name: scopeExtractionRun, Description: "Extract data from emails."},
		{Name: scopeKeysRead, Description: "See API keys, never their secrets.", Reserved: true, Strong: true},
		{Name: scopeKeysWrite, Description: "Create, rotate and revoke API keys.", Reserved: true, Strong: true},
		{Name: scopeJobsRead, Description: "Follow long-running jobs."},
		{Name: scopeAuditRead, Description: "Read the audit log.", Reserved: true},
		{Name: scopeUsageRead, Description: "See usage and limits."},
		{Name: scopeCodesRead, Description: "See one-time codes and links in emails; needs the role operator. Without it they are masked."},
		{Name: scopeJobsWrite, Description: "Cancel long-running jobs."},
	})
}

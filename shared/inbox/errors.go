package inbox

import (
	"errors"
	"fmt"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// What a store answers when a guard refuses a new inbox. The services make of it what the caller may know.
var (
	// ErrSlugTaken: the workspace has an inbox of this slug, deleted or not.
	ErrSlugTaken = errors.New("inbox: slug taken")
	// ErrAddressTaken: some inbox, of any tenant, has this address.
	ErrAddressTaken = errors.New("inbox: address taken")
	// ErrTooManyDeleted: the workspace has as many deleted inboxes as one row can name.
	ErrTooManyDeleted = errors.New("inbox: too many deleted inboxes")
	// ErrZoneFull: as many entries for domains that end alike as one row can hold.
	ErrZoneFull = errors.New("inbox: too many domains that end alike")
	// ErrRulesFull: the rules of a workspace are more than one row can hold.
	ErrRulesFull = errors.New("inbox: too many rules")
	// ErrRawDone: every mail that was to share these raw bytes has come and gone.
	ErrRawDone = errors.New("inbox: every mail of these bytes is gone")
	// ErrWebhookName: another webhook of the workspace has this name, deleted or not.
	ErrWebhookName = errors.New("inbox: webhook name taken")
	// ErrTooManyWebhooks: as many webhooks as a workspace can have.
	ErrTooManyWebhooks = errors.New("inbox: too many webhooks")
)

// NoInbox is the one answer for an inbox that is missing, deleted or another tenant's.
func NoInbox() *apperr.Error {
	return apperr.New(apperr.NotFound, "", "There is no such inbox.", "Call inboxes_list for the inboxes of this workspace.")
}

// NoEmail is the one answer for a mail that is missing, deleted, in a deleted inbox or another tenant's.
func NoEmail() *apperr.Error {
	return apperr.New(apperr.NotFound, "", "There is no such email.", "Call emails_list for the emails of this workspace.")
}

// NoAttachment is the one answer for an attachment that is missing or whose mail can't be read.
func NoAttachment() *apperr.Error {
	return apperr.New(apperr.NotFound, "", "There is no such attachment.",
		"Call attachments_list with email_id for the attachments of an email.")
}

// NoThread is the one answer for a thread that is missing, without mail, in a deleted inbox or another tenant's.
func NoThread() *apperr.Error {
	return apperr.New(apperr.NotFound, "", "There is no such thread.",
		"Call threads_list for the threads of this workspace; thread_id of an email names its thread.")
}

// NoSender is the one answer for an entry that is missing or deleted.
func NoSender() *apperr.Error {
	return apperr.New(apperr.NotFound, "", "There is no such entry.",
		"Call allowed_senders_list for the entries of the inbox.")
}

// NoRule is the one answer for a rule that is missing or another tenant's.
func NoRule() *apperr.Error {
	return apperr.New(apperr.NotFound, "", "There is no such rule.", "Call rules_list for the rules of this workspace.")
}

// NoTemplate is the one answer for an extraction template that is missing or another tenant's.
func NoTemplate() *apperr.Error {
	return apperr.New(apperr.NotFound, "", "There is no such extraction template.",
		"Call extraction_templates_list for those of this workspace.")
}

// NoWebhook is the one answer for a webhook that is missing, deleted or another tenant's.
func NoWebhook() *apperr.Error {
	return apperr.New(apperr.NotFound, "", "There is no such webhook.", "Call webhooks_list for the webhooks of this workspace.")
}

// NoDelivery is the one answer for a delivery that is missing, over a month old or another tenant's.
func NoDelivery() *apperr.Error {
	return apperr.New(apperr.NotFound, "", "There is no such delivery.",
		"Call webhook_deliveries_list; deliveries are kept for 30 days.")
}

// staleVersion names the operation that reads the thing as it is now.
func staleVersion(current uint64, read string) *apperr.Error {
	return apperr.New(apperr.Stale, "", fmt.Sprintf("The version you named is not the current one, which is %d.", current),
		"Read it again with "+read+", look at what changed, and repeat with the new version in if_version.")
}

// CodeBusy is the one conflict that waiting resolves.
const CodeBusy = "busy"

// Busy is the answer when an optimistic write lost its race too often.
func Busy() *apperr.Error {
	return apperr.New(apperr.Conflict, CodeBusy, "Others are changing the same thing right now.", "Repeat the call.")
}

func adminOnly() *apperr.Error {
	return apperr.New(apperr.Forbidden, "", "Deleted things are shown to admins only.", "Leave include_deleted out.")
}

// notFoundAs replaces the answer for a missing thing, so that a caller is told of what it asked for.
func notFoundAs(err error, as *apperr.Error) error {
	if apperr.Is(err, apperr.NotFound) {
		return as
	}
	return err
}

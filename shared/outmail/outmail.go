// Package outmail is how mail leaves: one message is made here and handed to SES (package ses), to an SMTP relay (package relay), or to a folder of .eml
// files. It knows bytes and an envelope, neither whose mail it is nor why it goes.
//
// It follows RFC 5322 (message), RFC 2045 to 2047 and 2231 (MIME), RFC 3834 (automatic mail).
package outmail

import (
	"context"
	"errors"
	"net/mail"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// Message is one message on its way to one recipient. Recipient alone decides where it goes; To is what everybody reads.
type Message struct {
	ID        string // letters, digits, _ and -: names the message for good, with From's domain its Message-ID
	From      mail.Address
	Recipient string
	To        []string
	Subject   string
	Text      string
	Date      time.Time
	Original  []byte // a raw mail, attached; nil: none
}

// LoopField marks every message that leaves here, with the address that it leaves from. Whoever reads it in a mail that comes in does
// not send that on: so no circle is ever gone twice.
const LoopField = "X-Buzon-Loop"

// Outlet hands messages over. Of the errors, all *apperr.Error: unavailable may be tried again, with the same message; anything else
// is the last word on this recipient. Nil says that somebody else has taken the message, not that it arrived. A message may go twice
// where an answer was lost: then both are equal.
type Outlet interface {
	Send(ctx context.Context, m Message) error
}

// The codes of refusals.
const (
	CodeAddress   = "address_not_supported" // not plain ASCII
	CodeRecipient = "recipient_refused"
	CodeMail      = "mail_refused"
	CodeSender    = "sender_refused" // the domain may not send
	CodeTooLarge  = "too_large"
)

// errNotPlain is the cause of a message that can't be written.
var errNotPlain = errors.New("outmail: an address that is not plain ASCII, or an id that is no id")

// notPlain refuses what a header or an SMTP command can't hold.
func notPlain() *apperr.Error {
	return apperr.New(apperr.Invalid, CodeAddress, "This address can't be written into a message.").Because(errNotPlain)
}

package smtpd

import (
	"errors"

	"github.com/emersion/go-smtp"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
)

// reply makes what a client hears. The texts are ours and fixed: no version, no cause, no address.
func reply(code int, subject, detail int, text string) *smtp.SMTPError {
	return &smtp.SMTPError{Code: code, EnhancedCode: smtp.EnhancedCode{code / 100, subject, detail}, Message: text}
}

// failure is the reply to a failure of the Acceptor while a message is handed over. Everything that is not the message's own
// fault is temporary, so that the client keeps the mail and comes again.
func failure(err error) *smtp.SMTPError {
	var known *smtp.SMTPError
	if errors.As(err, &known) { // what body refused
		return known
	}
	e := apperr.From(err)
	if e.Code == inbox.CodeStorageFull {
		return reply(452, 3, 1, "Not enough storage, try again later")
	}
	switch e.Kind {
	case apperr.TooLarge:
		return reply(552, 3, 4, "Message too large")
	case apperr.RateLimited:
		return reply(451, 7, 1, "Too much mail, try again later")
	case apperr.NotFound:
		return reply(550, 1, 1, "No such recipient here")
	case apperr.Invalid, apperr.UnsupportedMedia:
		return reply(554, 6, 0, "Message not accepted")
	case apperr.Internal, apperr.Unauthenticated, apperr.Forbidden, apperr.Conflict, apperr.Stale,
		apperr.MethodNotAllowed, apperr.Unavailable:
		return reply(451, 3, 0, "Try again later")
	}
	return reply(451, 3, 0, "Try again later")
}

// recipientFailure is the reply to a failure to find a recipient.
func recipientFailure(err error) *smtp.SMTPError {
	switch apperr.From(err).Kind {
	case apperr.NotFound, apperr.Invalid:
		return unknownRecipient()
	default:
		return reply(451, 3, 0, "Try again later")
	}
}

// senderFailure is the reply to a sender whom the recipient does not take (RFC 3463 X.7.1), or of whom that is not known.
func senderFailure(err error) *smtp.SMTPError {
	if apperr.From(err).Kind == apperr.Forbidden {
		return reply(550, 7, 1, "Sender not accepted by this recipient")
	}
	return reply(451, 3, 0, "Try again later")
}

func unknownRecipient() *smtp.SMTPError {
	return reply(550, 1, 1, "No such recipient here")
}

func shuttingDown() *smtp.SMTPError {
	return reply(421, 3, 2, "Service is shutting down, try again later")
}

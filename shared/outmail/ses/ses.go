// Package ses is the Outlet through SES (API v2, SendEmail with a raw message). SES writes a Message-ID of its own in place of ours, and has
// nothing by which it would know a message that it was handed before: what was sent when an answer was lost goes twice.
package ses

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sesv2"
	"github.com/aws/aws-sdk-go-v2/service/sesv2/types"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/awsclient"
	"github.com/buzon-mail/buzon/shared/outmail"
)

const (
	// maxMessage is what SES takes of one message, MIME included.
	maxMessage = 40 << 20
	// sendTimeout: SES answers once it has read the message.
	sendTimeout = 20 * time.Second
)

// Outlet sends through SES.
type Outlet struct {
	client  *sesv2.Client
	retries *awsclient.Retries
}

var _ outmail.Outlet = (*Outlet)(nil)

// New makes an Outlet and asks AWS nothing.
func New(c awsclient.Config) (*Outlet, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("ses: %w", err)
	}
	retries := c.NewRetries()
	return &Outlet{retries: retries, client: sesv2.New(sesv2.Options{
		Region: c.Region, Credentials: c.Credentials, BaseEndpoint: c.Base(), Retryer: retries, HTTPClient: c.Client(sendTimeout, 0),
	})}, nil
}

// Send implements outmail.Outlet. SES wants lines of seven bits.
func (o *Outlet) Send(ctx context.Context, m outmail.Message) error {
	b, err := m.Bytes(false)
	if err != nil {
		return err //nolint:wrapcheck // it names the step
	}
	if len(b) > maxMessage {
		return apperr.New(apperr.TooLarge, outmail.CodeTooLarge, "The message is larger than SES takes.")
	}
	from := m.From.Address
	_, err = o.client.SendEmail(ctx, &sesv2.SendEmailInput{
		FromEmailAddress: &from, Destination: &types.Destination{ToAddresses: []string{m.Recipient}},
		Content: &types.EmailContent{Raw: &types.RawMessage{Data: b}},
	}, func(opts *sesv2.Options) { opts.Retryer = &awsclient.Call{Retries: o.retries, Once: true} })
	if err != nil {
		return refused(ctx, err)
	}
	return nil
}

// refused tells what is the last word from what may be otherwise in a while. AWS's own message is not kept: it repeats addresses.
func refused(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		return fmt.Errorf("ses: send: %w", ended)
	}
	cause := fmt.Errorf("ses: send: %w", awsclient.Brief(err))
	var (
		rejected   *types.MessageRejected
		unverified *types.MailFromDomainNotVerifiedException
		paused     *types.SendingPausedException
		suspended  *types.AccountSuspendedException
		bad        *types.BadRequestException
	)
	switch {
	case errors.As(err, &paused), errors.As(err, &suspended): // the operator's to mend
	case errors.As(err, &unverified):
		return apperr.New(apperr.Conflict, outmail.CodeSender, "SES does not know the domain of the inbox as a sender.").Because(cause)
	case errors.As(err, &rejected), errors.As(err, &bad):
		return apperr.New(apperr.Conflict, outmail.CodeMail, "SES refused the message.").Because(cause)
	case awsclient.Status(err) == http.StatusRequestEntityTooLarge:
		return apperr.New(apperr.TooLarge, outmail.CodeTooLarge, "The message is larger than SES takes.").Because(cause)
	}
	return apperr.New(apperr.Unavailable, "ses", "SES does not take mail now.").Because(cause)
}
